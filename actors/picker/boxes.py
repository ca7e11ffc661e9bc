"""What is drawn around and instead of the list: an open dialog, the line at the bottom, the keys."""

from __future__ import annotations

from collections.abc import Sequence

from .dialogs import dialog_lines, dialog_title, key_hints
from .paint import Brush, Line
from .state import State, visible
from .values import AddForm, LogTail, TextLine, ToolRow

__all__ = ["bottom", "dialog_box"]

_SEPARATE = "  "
_MOST_SAID = 4


def dialog_box(state: State, brush: Brush, height: int) -> list[Line]:
    """The open dialog on so many lines.

    Args:
        state: with a dialog open.
        brush: of the screen's width.
        height: in lines; what has no room is reached by scrolling.
    """
    dialog = state.dialog
    lines: list[Line] = [brush.bar(f" {dialog_title(state)}")]
    if isinstance(dialog, AddForm):
        lines.append(_field(brush, "name", dialog.name, dialog.field == 0))
        lines.append(_field(brush, "command or URL", dialog.what, dialog.field == 1))
        lines.append([("playbill dim", brush.glyphs.rule * brush.columns)])
    room = max(0, height - len(lines))
    texts = dialog_lines(state)
    top = getattr(dialog, "top", 0)
    follows = isinstance(dialog, LogTail) and top is None
    shown = _last(brush, texts, room) if follows else _from(brush, texts, top or 0, room)
    lines += [[("playbill", text)] for text in shown]
    return (lines + [[] for _ in range(height)])[:height]


def bottom(state: State, brush: Brush) -> list[Line]:
    """The lines at the bottom: what was said last, or the filter; and the keys that count here."""
    return [*_status(state, brush), _keys(state, brush)]


def _status(state: State, brush: Brush) -> list[Line]:
    if state.editing:
        return [_typed(brush, "/", state.filter, True)]
    if state.status is not None:
        kind = {"error": "playbill error", "ask": "playbill ask"}.get(state.status.kind, "playbill status")
        lines = brush.wrapped(f" {state.status.text}")
        return [[(kind, text)] for text in lines[:_MOST_SAID]]
    if state.filter.text:
        return [brush.fit([("playbill ask", f" filter: {state.filter.text}")])]
    return [_why(state, brush)]


def _why(state: State, brush: Brush) -> Line:
    """Why the tool under the cursor is not on the wire: its row may have no room for that. Empty of any other row."""
    if state.dialog is not None:
        return []
    shown = visible(state)
    at = shown.find(state.cursor)
    try:
        row = None if at is None else shown[at]
    except Exception:  # its own line says so
        return []
    if not isinstance(row, ToolRow) or row.verdict == "on_wire":
        return []
    return brush.fit([("playbill dim", f" {row.words}")])


def _keys(state: State, brush: Brush) -> Line:
    line: Line = []
    left = brush.columns - 1
    for key, what in key_hints(state):
        need = brush.width(f"{key} {what}{_SEPARATE if line else ''}")
        if need > left:
            break
        left -= need
        line += [("playbill dim", _SEPARATE if line else " "), ("playbill key", key), ("playbill dim", f" {what}")]
    return line


def _field(brush: Brush, label: str, typed: TextLine, active: bool) -> Line:
    return _typed(brush, f" {label}: ", typed, active)


def _typed(brush: Brush, label: str, typed: TextLine, active: bool) -> Line:
    """A line that is typed, with its caret in sight."""
    before, after = brush.plain(typed.text[: typed.caret]), brush.plain(typed.text[typed.caret :])
    under, after = (after[:1] or " ", after[1:]) if active else ("", after)
    room = max(1, brush.columns - brush.width(label) - brush.width(under))
    while before and brush.width(before) > room:
        before = before[1:]
    after = brush.clip(after, max(0, room - brush.width(before)))
    head = brush.fit([("playbill key" if active else "playbill dim", label), ("playbill", before)])
    return [*head, ("playbill caret", under), ("playbill", after)]


def _from(brush: Brush, texts: Sequence[str], top: int, room: int) -> list[str]:
    """The lines from one on; of a beginning too far down, as many as fill the room."""
    shown: list[str] = []
    for text in texts[top:]:
        shown += brush.wrapped(text)
        if len(shown) >= room:
            return shown[:room]
    return _last(brush, texts, room) if top else shown


def _last(brush: Brush, texts: Sequence[str], room: int) -> list[str]:
    """The last lines, as many as there is room for."""
    shown: list[str] = []
    for text in reversed(texts):
        shown[:0] = brush.wrapped(text)
        if len(shown) >= room:
            break
    return shown[max(0, len(shown) - room) :]
