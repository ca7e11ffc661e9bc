"""The table of keys: what the reducer goes by, what help tells, and what the line at the bottom hints at."""

from __future__ import annotations

from typing import Literal

from attrs import field, frozen

from .values import AddForm, Dialog, TrustReview

__all__ = ["TABLE", "Binding", "Mode", "binding", "mode_of", "shown_key"]

Mode = Literal["list", "filter", "text", "review", "form"]
"""What keys are for: the list, the filter as it is typed, a dialog that is read, one that approves, or the form."""


def _keys(value: str | tuple[str, ...]) -> tuple[str, ...]:
    return (value,) if isinstance(value, str) else value


@frozen
class Binding:
    """A line of the table.

    Args:
        keys: by urwid's names; the first one is told in hints.
        action: which of the reducer's actions it is.
        help: what it does, in few words.
        hint: the same in a word, for the line at the bottom; None: not told there.
    """

    keys: tuple[str, ...] = field(converter=_keys)
    action: str
    help: str
    hint: str | None = None


TABLE: dict[Mode, tuple[Binding, ...]] = {
    "list": (
        Binding((" ", "enter"), "toggle", "turn the tool or the server on or off", "toggle"),
        Binding("/", "edit_filter", "show only what matches, as you type", "filter"),
        Binding("?", "help", "this list of keys", "help"),
        Binding("q", "quit", "leave, when what is under way is done; twice: at once", "quit"),
        Binding("a", "add", "add a server", "add"),
        Binding("d", "remove", "twice: remove the server from the config", "remove"),
        Binding("i", "details", "all about the row: why, schema, process", "details"),
        Binding("l", "log", "what the server wrote on stderr last", "log"),
        Binding("t", "trust", "review what an untrusted server would run, and approve it", "trust"),
        Binding("R", "restart", "restart the server, or revive it at once", "restart"),
        Binding("r", "reload", "read the config anew", "reload"),
        Binding("w", "notices", "all warnings and errors, whole", "warnings"),
        Binding("p", "pin", "pin the tool, so that the budget drops it last, or unpin it", "pin"),
        Binding("esc", "clear", "clear the filter and the message; take back leaving"),
        Binding(("up", "k"), "up", "a row up"),
        Binding(("down", "j"), "down", "a row down"),
        Binding(("page up", "ctrl b"), "page_up", "a page up"),
        Binding(("page down", "ctrl f"), "page_down", "a page down"),
        Binding(("home", "g"), "top", "to the first row"),
        Binding(("end", "G"), "bottom", "to the last row"),
        Binding("tab", "next_server", "to the next server"),
        Binding("shift tab", "previous_server", "to this server's row, or the one before"),
    ),
    "filter": (
        Binding("enter", "end_filter", "keep the filter, and go back to the list", "keep"),
        Binding("esc", "clear_filter", "clear the filter, and go back to the list", "clear"),
        Binding("up", "up", "a row up"),
        Binding("down", "down", "a row down"),
        Binding("page up", "page_up", "a page up"),
        Binding("page down", "page_down", "a page down"),
    ),
    "text": (
        Binding(("esc", "q", "enter", "i", "w", "?"), "close", "close", "close"),
        Binding(("up", "k"), "line_up", "a line up"),
        Binding(("down", "j"), "line_down", "a line down", "scroll"),
        Binding(("page up", "ctrl b"), "page_back", "a page up"),
        Binding(("page down", "ctrl f", " "), "page_on", "a page down"),
        Binding(("home", "g"), "first_line", "to the beginning"),
        Binding(("end", "G"), "last_line", "to the end; a log follows it"),
        Binding(("l", "r"), "refetch", "of a log: read it again"),
    ),
    "review": (
        Binding("y", "approve", "approve exactly what was shown, and start it; when all of it was", "approve"),
        Binding(("esc", "q", "n"), "close", "close without approving", "do not"),
        Binding(("up", "k"), "line_up", "a line up"),
        Binding(("down", "j"), "line_down", "a line down", "scroll"),
        Binding(("page up", "ctrl b"), "page_back", "a page up"),
        Binding(("page down", "ctrl f", " "), "page_on", "a page down"),
        Binding(("home", "g"), "first_line", "to the beginning"),
        Binding(("end", "G"), "last_line", "to the end"),
    ),
    "form": (
        Binding("enter", "to_next", "to the next field; from the last one, add the server", "next"),
        Binding(("tab", "shift tab", "up", "down"), "to_other", "to the other field", "other field"),
        Binding("esc", "close", "close without adding", "close"),
    ),
}
"""Of each mode its keys, the most important first. A key that is not here is text in ``filter`` and ``form``, else nothing."""

_BOUND: dict[Mode, dict[str, Binding]] = {
    mode: {key: each for each in bindings for key in each.keys} for mode, bindings in TABLE.items()
}

_SHOWN = {" ": "space", "enter": "Enter", "esc": "Esc", "tab": "Tab", "shift tab": "Shift-Tab"}


def binding(mode: Mode, key: str) -> Binding | None:
    """What a key does, or None."""
    return _BOUND[mode].get(key)


def mode_of(dialog: Dialog | None, editing: bool) -> Mode:
    """What keys are for."""
    match dialog:
        case None:
            return "filter" if editing else "list"
        case AddForm():
            return "form"
        case TrustReview():
            return "review"
    return "text"


def shown_key(key: str) -> str:
    """A key as a person reads it: ``space``, ``PageUp``, ``Ctrl-B``."""
    if key.startswith("ctrl "):
        return f"Ctrl-{key[5:].upper()}"
    return _SHOWN.get(key, key if len(key) == 1 else key.title().replace(" ", ""))
