"""What a dialog says, and which keys the line at the bottom hints at."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from typing import Any

from ..model.plain import label, line
from .details import lines_of_server, lines_of_tool, shown_lines
from .keys import TABLE, Mode, mode_of, shown_key
from .state import State, server_of
from .values import AddForm, Details, Help, LogTail, Notices, TrustReview
from .words import notices
from .wrap import Wrapped, exactly, softly, spelled, whole

__all__ = ["dialog_lines", "dialog_title", "key_hints", "wrapped"]

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
        case Notices():
            return "Warnings and errors"
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
    """The lines of the open dialog, wrapped to `State.columns`, each without control characters; empty when none is open.

    Of an `AddForm`, what to say below its two fields. Of the others ``top`` is the first line to be shown; of a `LogTail` None
    is the end. A review has all characters of what it shows; a line that begins with ``↳`` goes on with the one above.
    """
    return wrapped(state).lines


def wrapped(state: State) -> Wrapped:
    """The same, with what of the text is on which line."""
    look = state.look
    review = state.dialog.review if isinstance(state.dialog, TrustReview) else None
    texts = _texts(state) if review is None else review.lines
    of: tuple[Any, ...] = (wrapped, texts, review, state.columns, look)
    made: Wrapped | None = state.memo.last(of)
    if made is None:
        if review is None:
            made = whole([look.plain(each) for each in texts], state.columns, partial(softly, look=look))
        else:
            made = whole([spelled(each, look) for each in texts], state.columns, partial(exactly, look=look))
        state.memo.keep(of, made)
    return made


def _texts(state: State) -> tuple[str, ...]:
    """What a dialog says, each a line that is not wrapped; the same object as long as it says the same."""
    dialog = state.dialog
    match dialog:
        case Help():
            return _HELP if state.columns is None or state.columns >= _BESIDE else _HELP_BELOW
        case Details(identity=identity):
            return _kept(state, (state.snapshot, state.now, identity), lambda: _details(state, identity))
        case Notices():
            return _kept(state, (state.snapshot, state.complaint), lambda: tuple(_notices(state)))
        case LogTail(lines=lines, error=None) if lines is not None:
            return _kept(state, (lines,), lambda: _log(lines))
        case LogTail(error=error) | TrustReview(error=error):
            return _READING if error is None else (line(error),)
        case AddForm(error=error, sent=sent):
            if sent is not None:
                return ("adding it…",)
            said = ("A command line, with NAME=value in front for its environment, or a URL.",)
            return said if error is None else (line(error), *said)
    return ()


def _kept(state: State, of: tuple[Any, ...], make: Callable[[], tuple[str, ...]]) -> tuple[str, ...]:
    key = (_kept, *of)
    made: tuple[str, ...] | None = state.memo.last(key)
    if made is None:
        made = make()
        state.memo.keep(key, made)
    return made


def _log(lines: Sequence[str]) -> tuple[str, ...]:
    return tuple(shown for each in lines for shown in shown_lines(each) or [""]) or ("it has written nothing",)


def _notices(state: State) -> Iterator[str]:
    """Of every warning all its words."""
    if state.complaint is not None:
        yield "What failed last:"
        yield from (f"  {each}" for each in state.complaint.errors or (state.complaint.text,))
    found = list(notices(state.snapshot.model, most=None))
    if not found:
        yield "There is nothing to warn of."
    for kind, title in (("error", "Errors:"), ("warning", "Warnings:")):
        said = [each for each in found if each.kind == kind]
        if said:
            yield title
        for each in said:
            yield f"  {each.text}"
            if each.more is not None:
                yield f"    {each.more}"


def _details(state: State, identity: tuple[str, ...]) -> tuple[str, ...]:
    server = state.snapshot.model.server(identity[1])
    if server is None:
        return ()
    if identity[0] == "server":
        return tuple(lines_of_server(state.snapshot, server, state.now))
    tool = server.tool(identity[2])
    return () if tool is None else tuple(lines_of_tool(state.snapshot, server, tool, state.now))


def key_hints(state: State) -> tuple[tuple[str, str], ...]:
    """(key, what it does) for a line at the bottom, the most important first: in the list those that count on this row."""
    mode = mode_of(state.dialog, state.editing)
    hints = {each.action: (shown_key(each.keys[0]), each.hint) for each in TABLE[mode] if each.hint is not None}
    if mode == "list":
        return tuple(hints[action] for action in _counting(state))
    for action in _idle(state):
        hints.pop(action, None)
    return tuple(hints.values())


def _idle(state: State) -> Iterator[str]:
    """The actions of a dialog that do nothing now."""
    dialog = state.dialog
    if isinstance(dialog, TrustReview) and (dialog.review is None or dialog.seen != ((0, wrapped(state).end),)):
        yield "approve"  # there is nothing that could be, or not all of it was seen
    if isinstance(dialog, AddForm):
        if dialog.sent is not None:
            yield "to_next"  # it is being added
    elif dialog is not None and len(wrapped(state).lines) <= state.page:
        yield "line_down"


def _counting(state: State) -> Iterator[str]:
    """The actions that do something on the row under the cursor, the most important first."""
    name = server_of(state.cursor)
    server = None if name is None else state.snapshot.model.server(name)
    kind = state.cursor[0] if server is not None else ""
    untrusted = server is not None and server.phase == "untrusted"
    yield from {"tool": ["toggle"], "server": ["trust", "toggle"] if untrusted else ["toggle"]}.get(kind, [])
    if kind == "empty" and untrusted:
        yield "trust"
    if server is None:
        yield "add"
    yield from ("help", "quit")
    if kind == "tool":
        yield from ("details", "pin", "edit_filter", "log")
    elif server is not None:
        yield from ("remove",) if kind == "server" else ()
        yield from () if server.phase in ("untrusted", "disabled", "invalid") else ("restart",)
        yield from ("log", "details", "edit_filter")
    if server is not None:
        yield "add"
    yield from ("reload", "notices")


def _help(*, beside: bool) -> tuple[str, ...]:
    """Each key with what it does, beside it or below it."""
    width = max(len(_names(each.keys)) for bindings in TABLE.values() for each in bindings)
    lines: list[str] = []
    for mode, bindings in TABLE.items():
        lines += [*([""] if lines else []), f"{_MODES[mode]}:"]
        for each in bindings:
            names = _names(each.keys)
            lines += [f"  {names.ljust(width)}  {each.help}"] if beside else [f"  {names}", f"      {each.help}"]
    return tuple(lines)


def _names(keys: tuple[str, ...]) -> str:
    return " ".join(map(shown_key, keys))


_BESIDE = 80  # columns from which help has a line for each key
_HELP, _HELP_BELOW = _help(beside=True), _help(beside=False)
_READING = ("reading…",)
