"""The grammar: reads the arguments, calls the verb, turns what comes of it into an exit code.

One grammar for all verbs: ``playbill VERB [NAMES…] [--config PATH | --scope SCOPE] [--json] …``; options may stand before the
verb too. The verbs are in `verbs`, their options in `options`.
"""

from __future__ import annotations

import errno
import io
import os
import sys
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from cyclopts import CycloptsError, UnknownOptionError, UnusedCliTokensError

from .errors import CliError, Exit, explain, failure, leaf_of
from .options import Options, SaidOptions
from .render import print_failure
from .verbs import app
from .voice import Voice, diagnose, speak, voice

__all__ = ["Options", "app", "run"]

_APART = ("-", "--", "--help", "-h", "--version", "-V")
"""What begins with a dash and is no option of a verb."""

_NO_ROOM = (errno.ENOSPC, errno.EDQUOT, errno.EFBIG, errno.EIO)

_SIGNALS = (Exit.HANGUP, Exit.INTERRUPTED, Exit.QUIT, Exit.TERMINATED)


def _options() -> Mapping[str, bool]:
    """Every option of every verb, and whether a value follows it."""
    found = {}
    for verb in app:
        if not verb.startswith("-"):
            for argument in app[verb].assemble_argument_collection():
                for name in argument.names:
                    if name.startswith("-"):
                        found[name] = not name.startswith("--no-") and not _is_flag(argument.hint)
    return found


def _is_flag(hint: Any) -> bool:
    return hint is bool or bool in getattr(hint, "__args__", ())


def _verb_first(tokens: Sequence[str]) -> list[str]:
    """The tokens with the options that stand before the verb moved behind it; of ``--help`` and ``--version`` they say nothing.

    Raises:
        CliError: before the verb there is something that is no option of any verb, or there is no verb.
    """
    if not tokens or not tokens[0].startswith("-") or tokens[0] in _APART:
        return list(tokens)
    known = _options()
    at = 0
    while at < len(tokens) and tokens[at].startswith("-") and tokens[at] not in _APART:
        name, has_value, _ = tokens[at].partition("=")
        if name not in known:
            raise CliError(Exit.USAGE, f"{_no_option(name, known)}; see playbill --help")
        at += 2 if known[name] and not has_value else 1
    if at >= len(tokens) or tokens[at] == "--":
        raise CliError(Exit.USAGE, "there is no verb beside the options; see playbill --help")
    if tokens[at].startswith("-"):
        return list(tokens[at:])
    return [tokens[at], *tokens[:at], *tokens[at + 1 :]]


def _readable(token: str) -> str:
    """A token as text: where the locale is not UTF-8 (``LC_ALL=C``) Python may have left its bytes undecoded."""
    try:
        return os.fsencode(token).decode()
    except UnicodeError:
        return token


def _as_text(tokens: Sequence[str]) -> list[str]:
    """The tokens as text, but for a command that is run: its arguments are handed on byte for byte."""
    end = tokens.index("--") if "--" in tokens and "run" in tokens[: tokens.index("--")] else len(tokens)
    return [*map(_readable, tokens[:end]), *tokens[end:]]


def _no_option(name: str, known: Collection[str]) -> str:
    """What is said of an option that there is not: with the one that is most like it, or of a letter, that begins with it."""
    from ..model.nearest import nearest

    name = name.partition("=")[0]
    if name.startswith("--") or len(name) < 2:
        near = nearest(name, [each for each in known if each.startswith("--")])
    else:
        word = nearest(f"-{name}", known) if len(name) > 3 else None
        near = word or next((each for each in known if each[2:3] == name[1:2].lower()), None)
    return f"there is no option {name!r}" + ("" if near is None else f" (did you mean {near!r}?)")


def _options_of(error: UnknownOptionError) -> list[str]:
    own = [name for argument in error.argument_collection or () for name in argument.names if name.startswith("-")]
    return [*own, *(name for name in _APART if len(name) > 2)]


def _usage(error: CycloptsError) -> str:
    verb = next(iter(error.command_chain or ()), None)
    where = "playbill --help" if verb is None else f"playbill {verb} --help"
    if isinstance(error, UnusedCliTokensError):
        unused = " ".join(map(repr, error.unused_tokens or ()))
        hint = " (JSON with spaces needs quotes)" if verb == "call" else ""
        return f"too many arguments: {unused}; see {where}{hint}"
    if isinstance(error, UnknownOptionError):
        said = _no_option(error.token.keyword or error.token.value, _options_of(error))
        behind = {"add": "the command of a server", "run": "the command that is run"}.get(verb or "")
        if behind is not None:
            name = "NAME " if verb == "add" else ""
            return f"{said}; {behind} comes behind --: playbill {verb} {name}-- COMMAND ARGUMENTS"
        return f"{said}; see {where}"
    said = " ".join(str(error).split())
    return f"{said} See {where}."


def _parse(tokens: Sequence[str]) -> Callable[[], Any]:
    """What the tokens ask for, ready to be called.

    Raises:
        CycloptsError, CliError: they ask for nothing that there is.
    """
    command, bound, _ = app.parse_args(_verb_first(tokens), exit_on_error=False, print_error=False)
    for options in bound.kwargs.values():
        if isinstance(options, SaidOptions):
            if options.quiet and options.verbose:
                raise CliError(Exit.USAGE, "--quiet says less, --verbose says more: not both")
            speak(Voice(json=options.json, quiet=options.quiet, verbose=options.verbose))
    return lambda: command(*bound.args, **bound.kwargs)


def _asks_for_json(tokens: Sequence[str]) -> bool:
    """Whether JSON is asked for, as far as it can be told of tokens that may be wrong."""
    mine = tokens[: tokens.index("--")] if "--" in tokens else tokens
    return "--json" in mine


def _failed(code: int, message: str, error: BaseException | None = None) -> int:
    """Say what is wrong, as JSON too if that was asked for and nothing was printed."""
    if message:
        diagnose(message)
    said = voice()
    if said.json and not said.answered:
        print_failure(failure(code, message or "interrupted", error))
    return code


def run(tokens: Sequence[str]) -> int:
    """Run one command line.

    Args:
        tokens: the arguments, without the program's name.

    Returns:
        The exit code. Never raises for anything a verb does; what is wrong is said in one line on stderr.
    """
    for stream in (sys.stdout, sys.stderr):
        if isinstance(stream, io.TextIOWrapper):
            # A name that the encoding lacks must not end a listing.
            stream.reconfigure(errors="backslashreplace")
    tokens = _as_text(tokens)
    speak(Voice(json=_asks_for_json(tokens)))
    try:
        code = _run(tokens)
        sys.stdout.flush()
    except BrokenPipeError:
        # Whoever read our output has had enough.
        _write_no_more()
        return Exit.PIPE
    except OSError as error:
        _write_no_more()
        return _failed(Exit.FAILURE, f"what was asked for cannot be written: {error.strerror or error}")
    said = voice()
    if said.verbose:
        said.say(f"playbill: {said.elapsed:7.3f} s  exit code {code}")
    return code


def _write_no_more() -> None:
    """What is buffered for stdout must not fail again when Python ends."""
    os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _of_output(error: BaseException) -> OSError | None:
    """The failure of stdout that an error comes from, or None: nobody reads it any more, or there is no room."""
    if isinstance(error, SystemExit):  # rich ends so when it meets one
        return error.__context__ if isinstance(error.__context__, BrokenPipeError) else None
    leaf = leaf_of(error)
    # An error of a file that was opened names it.
    ours = isinstance(leaf, OSError) and leaf.filename is None and leaf.errno in _NO_ROOM
    return leaf if isinstance(leaf, BrokenPipeError) or (ours and isinstance(leaf, OSError)) else None


def _run(tokens: Sequence[str]) -> int:
    try:
        try:
            code = int(_parse(tokens)() or 0)
        finally:
            sys.stdout.flush()
    except CycloptsError as error:
        return _failed(Exit.USAGE, _usage(error))
    except BaseException as error:
        if (failed := _of_output(error)) is not None:
            raise failed from None
        if isinstance(error, SystemExit | GeneratorExit):
            raise
        code, message = explain(error)
        return _failed(code, message, error)
    # The lines of a verb that goes on end where they end.
    return _failed(code, "") if code in _SIGNALS and voice().lines is None else code
