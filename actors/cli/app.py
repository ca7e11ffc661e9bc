"""The grammar: reads the arguments, calls the verb, turns what comes of it into an exit code.

One grammar for all verbs: ``playbill VERB [NAMES…] [--config PATH | --scope SCOPE] [--json] …``; options may stand before the
verb too. The verbs are in `verbs`, their options in `options`.
"""

from __future__ import annotations

import io
import os
import sys
from collections.abc import Callable, Sequence
from typing import Any

from cyclopts import CycloptsError, UnknownOptionError, UnusedCliTokensError

from .errors import Exit, diagnose, explain
from .options import Options
from .verbs import app

__all__ = ["Options", "app", "run"]

_WITH_VALUE = frozenset(
    {"--config", "--scope", "--timeout", "--url", "--header", "--env", "--cwd", "--profile", "--budget"}
    | {"--seeds", "--seed", "--replay", "--keep", "--jobs"}
)


def _verb_first(tokens: Sequence[str]) -> list[str]:
    """The tokens with the options that stand before the verb moved behind it; ``--help`` and ``--version`` stay."""
    at = 0
    while at < len(tokens) and tokens[at].startswith("--") and tokens[at] not in ("--", "--help", "--version"):
        at += 2 if tokens[at] in _WITH_VALUE else 1
    if at >= len(tokens) or tokens[at].startswith("-"):
        return list(tokens)
    return [tokens[at], *tokens[:at], *tokens[at + 1 :]]


def _usage(error: CycloptsError) -> str:
    if isinstance(error, UnusedCliTokensError):
        unused = " ".join(map(repr, error.unused_tokens or ()))
        return f"too many arguments: {unused}; see playbill --help (JSON with spaces needs quotes)"
    said = " ".join(str(error).split())
    if isinstance(error, UnknownOptionError) and error.command_chain == ("add",):
        return f"{said} The command of a server comes behind --: playbill add NAME -- COMMAND ARGUMENTS"
    return f"{said} See playbill --help."


def _parse(tokens: Sequence[str]) -> Callable[[], Any]:
    command, bound, _ = app.parse_args(_verb_first(tokens), exit_on_error=False, print_error=False)
    return lambda: command(*bound.args, **bound.kwargs)


def run(tokens: Sequence[str]) -> int:
    """Run one command line.

    Args:
        tokens: the arguments, without the program's name.

    Returns:
        The exit code. Never raises for anything a verb does; what is wrong is said in one line on stderr.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        # A name that stdout's encoding lacks must not end a listing.
        sys.stdout.reconfigure(errors="backslashreplace")
    try:
        try:
            code = int(_parse(tokens)() or 0)
        finally:
            sys.stdout.flush()
    except CycloptsError as error:
        diagnose(_usage(error))
        return Exit.USAGE
    except BrokenPipeError:
        # Whoever read our output has had enough. What is buffered must not fail again when Python ends.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return Exit.PIPE
    except BaseException as error:
        if isinstance(error, SystemExit | GeneratorExit):
            raise
        code, message = explain(error)
        if message:
            diagnose(message)
    return code
