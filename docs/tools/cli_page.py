"""The reference of the command line, from its grammar."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal, get_args, get_origin

from cyclopts import App
from playbill.actors.cli.errors import Exit
from playbill.actors.cli.verbs import app

from .pages import Undocumented, literal, page, table

__all__ = ["EXITS", "cli_page", "exit_table", "verb_part", "verbs"]

EXITS: Mapping[str, str] = {
    "OK": "done",
    "FAILURE": "failure: a tool reported an error, a tool is not offered, a file cannot be written, something was declined",
    "USAGE": "usage: an unknown verb, option, server or tool; arguments that cannot be read; a name that is taken",
    "CONFIG": "the config is missing, cannot be read, or an entry in it is invalid",
    "SERVER": "a server failed: it is not ready, it died, it did not answer in time",
    "BUDGET": "over budget: tools were trimmed",
    "CRASH": "`chaos`: a run crashed",
    "LIVENESS": "`chaos`: something never ended",
    "CORRECTNESS": "`chaos`: something was wrong",
    "HANGUP": "the terminal was closed (SIGHUP)",
    "INTERRUPTED": "interrupted with Ctrl-C",
    "QUIT": "ended by SIGQUIT",
    "PIPE": "whoever read the output stopped reading",
    "TERMINATED": "ended by SIGTERM",
}


def verbs(grammar: App = app) -> list[str]:
    """The verbs, in the order of the help."""
    return [name for name in grammar if not name.startswith("-")]


def _values(hint: Any) -> tuple[str, ...]:
    if get_origin(hint) is Literal:
        return tuple(map(str, get_args(hint)))
    return tuple(value for each in get_args(hint) for value in _values(each))


def _is_flag(hint: Any) -> bool:
    return hint is bool or bool in get_args(hint)


def _words(verb: str, arguments: Iterable[Any]) -> Iterator[tuple[str, str]]:
    for each in arguments:
        if not each.parse or not each.show:
            continue
        if not each.parameter.help:
            raise Undocumented(f"playbill {verb}: {each.names[0]} has no help (Parameter(help=…))")
        name = each.names[0]
        if name.startswith("-"):
            values = _values(each.hint)
            given = "" if _is_flag(each.hint) else f" {'|'.join(values) if values else name.strip('-').upper()}"
            yield ", ".join(literal(one + given) for one in each.names), each.parameter.help
        else:
            many = each.field_info.kind is inspect.Parameter.VAR_POSITIONAL
            yield literal(name + ("…" if many else "")), each.parameter.help


def _usage(verb: str, arguments: Iterable[Any]) -> str:
    words = [f"playbill {verb}"]
    for each in arguments:
        name = each.names[0]
        if each.parse and each.show and not name.startswith("-"):
            many = each.field_info.kind is inspect.Parameter.VAR_POSITIONAL
            words.append(f"[{name}…]" if many else name if each.required else f"[{name}]")
    return " ".join([*words, "[OPTIONS]"])


def verb_part(verb: str, command: App) -> str:
    """What the page says of one verb.

    Args:
        verb: its name.
        command: the grammar below it.

    Raises:
        Undocumented: it has no help or no example, or one of its arguments has no help.
    """
    text, _, example = inspect.cleandoc(command.help or "").partition("Example: ")
    if not text or not example:
        raise Undocumented(f"playbill {verb}: its docstring has no text, or no line that begins with `Example: `")
    arguments = list(command.assemble_argument_collection())
    rows = list(_words(verb, arguments))
    return "\n\n".join(
        (
            f"## `{verb}`",
            text.strip(),
            f"```text\n{_usage(verb, arguments)}\n```",
            "```sh\n" + "\n".join(line.strip() for line in example.strip().splitlines()) + "\n```",
            *([table(("argument or option", "meaning"), rows)] if rows else ()),
        )
    )


def exit_table(codes: Mapping[str, str] = EXITS) -> str:
    """The table of the exit codes.

    Args:
        codes: the words for each.

    Raises:
        Undocumented: a code has no words, or the words no code.
    """
    for name in codes.keys() ^ set(Exit.__members__):
        raise Undocumented(f"exit code {name}: see EXITS in docs/tools/cli_page.py")
    return table(("code", "meaning"), ((str(int(code)), codes[name]) for name, code in Exit.__members__.items()))


def cli_page() -> str:
    """The page, as it is to be.

    Raises:
        Undocumented: something has no words.
    """
    return page(
        "# Command line reference",
        "Every verb with its options, from the grammar. How they behave, and what `--json` prints, is in"
        " [the command line](../cli.md).",
        "Options may stand before the verb too. `playbill --version` prints the version, `playbill VERB --help` the help.",
        *(verb_part(verb, app[verb]) for verb in verbs()),
        "## Exit codes",
        exit_table(),
    )
