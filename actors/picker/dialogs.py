"""What a dialog says, and which keys the line at the bottom hints at."""

from __future__ import annotations

from typing import Any

from ..model.plain import label, line
from .details import lines_of_server, lines_of_tool, shown_lines
from .keys import TABLE, Mode, mode_of, shown_key
from .state import State
from .values import AddForm, Details, Help, LogTail, TrustReview

__all__ = ["dialog_lines", "dialog_title", "key_hints"]

_MODES: dict[Mode, str] = {
    "list": "In the list",
    "filter": "While the filter is typed",
    "text": "In a window of text",
    "review": "In a review",
    "form": "In the form of a new server",
}


def dialog_title(state: State) -> str:
    """The title of the open dialog: one line; empty when none is open."""
    match state.dialog:
        case Help():
            return "Keys"
        case Details(identity=("tool", server, bare)):
            return f"{label(bare)} of {label(server)}"
        case Details(identity=identity):
            return label(identity[-1])
        case LogTail(server=server):
            return f"stderr of {label(server)}"
        case TrustReview(server=server):
            return f"Trust {label(server)}?"
        case AddForm():
            return "Add a server"
    return ""


def dialog_lines(state: State) -> tuple[str, ...]:
    """The lines of the open dialog, whole and not wrapped, each without control characters; empty when none is open.

    Of an `AddForm`, what to say below its two fields. Of the others ``top`` is the first line to be shown; of a `LogTail` None
    is the end.
    """
    dialog = state.dialog
    match dialog:
        case Help():
            return _HELP
        case Details(identity=identity):
            key: tuple[Any, ...] = (dialog_lines, state.snapshot, state.now, identity)
            made: tuple[str, ...] | None = state.memo.last(key)
            if made is None:
                made = _details(state, identity)
                state.memo.keep(key, made)
            return made
        case LogTail(lines=lines, error=error):
            if error is not None:
                return (line(error),)
            if lines is None:
                return ("reading…",)
            return tuple(shown for each in lines for shown in shown_lines(each) or [""]) or ("it has written nothing",)
        case TrustReview(review=review, error=error):
            if error is not None:
                return (line(error),)
            return ("reading…",) if review is None else tuple(map(line, review.lines))
        case AddForm(error=error, sent=sent):
            if sent is not None:
                return ("adding it…",)
            said = ("A command line, with NAME=value in front for its environment, or a URL.",)
            return said if error is None else (line(error), *said)
    return ()


def _details(state: State, identity: tuple[str, ...]) -> tuple[str, ...]:
    server = state.snapshot.model.server(identity[1])
    if server is None:
        return ()
    if identity[0] == "server":
        return tuple(lines_of_server(state.snapshot, server, state.now))
    tool = server.tool(identity[2])
    return () if tool is None else tuple(lines_of_tool(state.snapshot, server, tool, state.now))


def key_hints(state: State) -> tuple[tuple[str, str], ...]:
    """(key, what it does) for a line at the bottom, the most important first."""
    bindings = TABLE[mode_of(state.dialog, state.editing)]
    return tuple((shown_key(each.keys[0]), each.hint) for each in bindings if each.hint is not None)


def _help() -> tuple[str, ...]:
    width = max(len(_names(each.keys)) for bindings in TABLE.values() for each in bindings)
    lines: list[str] = []
    for mode, bindings in TABLE.items():
        lines += [*([""] if lines else []), f"{_MODES[mode]}:"]
        lines += [f"  {_names(each.keys).ljust(width)}  {each.help}" for each in bindings]
    return tuple(lines)


def _names(keys: tuple[str, ...]) -> str:
    return " ".join(map(shown_key, keys))


_HELP = _help()
