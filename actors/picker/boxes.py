"""What is drawn around and instead of the list: an open dialog, the line at the bottom, the keys."""

from __future__ import annotations

from collections.abc import Sequence

from ..model.plain import quoted
from .dialogs import dialog_lines, dialog_title, key_hints
from .paint import Brush, Line
from .panes import first_shown, resized, unseen
from .state import State, visible
from .values import AddForm, LogTail, TextLine, ToolRow, TrustReview

__all__ = ["bottom", "dialog_box", "dialog_room", "head_of"]

_SEPARATE = "  "
_MOST_SAID = 4
_MOST_WHY = 3
_LOWEST = 3  # lines of a screen that has one at the bottom: the list needs the others


def dialog_room(state: State, height: int) -> int:
    """Of so many lines those that the text of the open dialog has: what is above it takes the others."""
    return max(0, height - (4 if isinstance(state.dialog, AddForm) else 1))


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
    room = dialog_room(state, height)
    if state.columns != brush.columns:
        state = resized(state, room, brush.columns)
    first = first_shown(state, room)
    lines += [[("playbill", text)] for text in dialog_lines(state)[first : first + room]]
    return (lines + [[] for _ in range(height)])[:height]


def head_of(rows: Sequence[Sequence[Line]], brush: Brush, height: int) -> list[Line]:
    """The header and the notices on so many lines: all of them, or of each its beginning, and how much more there is.

    Args:
        rows: the lines of each, at least one.
        brush: of the screen's width.
        height: in lines.
    """
    total = sum(map(len, rows))
    if total <= height:
        return [line for row in rows for line in row]
    room = max(0, height - 1)  # the last line says how much more there is
    counts = [1 if at < room else 0 for at in range(len(rows))]
    for at, row in enumerate(rows):
        if counts[at]:
            counts[at] += min(len(row) - 1, room - sum(counts))
    head: list[Line] = []
    for row, count in zip(rows, counts, strict=True):
        shown = list(row[:count])
        if 0 < count < len(row):
            shown[-1] = [*shown[-1][:-1], (shown[-1][-1][0], brush.ended(shown[-1][-1][1]))]
        head += shown
    left = total - len(head)
    if room:
        head.append(brush.fit([("playbill ask", f" {left} more {'line' if left == 1 else 'lines'}: w shows all")]))
    return head or list(rows[0][:height])


def bottom(state: State, brush: Brush, height: int = 24) -> list[Line]:
    """The lines at the bottom: what was said last, or the filter, or about the row; and the keys that count here.

    Args:
        state: any.
        brush: of the screen's width.
        height: of the screen, in lines: of a low one little is taken.
    """
    said = _status(state, brush, max(1, height // 4))
    if height > _LOWEST:
        return [*said, _keys(state, brush)]
    return said[:1] if state.status is not None or state.editing else [_keys(state, brush)]


def _status(state: State, brush: Brush, most: int) -> list[Line]:
    if state.editing:
        return [_typed(brush, "/", state.filter, True)]
    if state.status is not None:
        kind = {"error": "playbill error", "ask": "playbill ask"}.get(state.status.kind, "playbill status")
        return [[(kind, text)] for text in brush.several(f" {state.status.text}", min(most, _MOST_SAID))]
    if isinstance(state.dialog, TrustReview):
        return [_reviewed(state, brush)]
    if state.dialog is not None:
        return [brush.fit([("playbill dim", _below(state))])]
    if state.filter.text:
        return [brush.fit([("playbill ask", f" filter: {state.filter.text}")])]
    return [[("playbill dim", text)] for text in brush.several(_why(state), min(most, _MOST_WHY))]


def _reviewed(state: State, brush: Brush) -> Line:
    """How much of a review has been seen. Always one line, or what is counted here would change what is counted."""
    dialog = state.dialog
    if not isinstance(dialog, TrustReview) or dialog.review is None:
        return []
    left = unseen(state)
    if not left:
        return brush.fit([("playbill status", " all of it was shown: y approves it")])
    return brush.fit([("playbill ask", f" {len(left)} of {len(dialog_lines(state))} lines not seen yet: space")])


def _below(state: State) -> str:
    """How much of a dialog is below what is shown."""
    dialog = state.dialog
    if isinstance(dialog, AddForm):
        return ""
    left = len(dialog_lines(state)) - first_shown(state, state.page) - state.page
    more = f" {left} more {'line' if left == 1 else 'lines'}" if left > 0 else ""
    if isinstance(dialog, LogTail) and dialog.newer is not None and dialog.newer != dialog.lines:
        return f"{more or ' the end of what was there'}; it has written more: G shows it"
    return more


def _why(state: State) -> str:
    """Of the tool under the cursor what its row may have no room for, in the words of `why`; empty of any other row.

    Of one on the wire: what else there is to say of it.
    """
    shown = visible(state)
    at = shown.find(state.cursor)
    try:
        row = None if at is None else shown[at]
    except Exception:  # its own line says so
        return ""
    if not isinstance(row, ToolRow):
        return ""
    if row.verdict != "on_wire":
        return f" {row.words}"
    tool = state.snapshot.model.tool(*row.identity[1:])
    more = "" if tool is None else row.words.removeprefix(f"on the wire as {quoted(tool.wire_name)}").removeprefix("; ")
    return f" on the wire; {more}" if more else ""


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
    before = before[-4 * room :]  # of more than can be seen not all is measured
    while before and brush.width(before) > room:
        before = before[1:]
    after = brush.clip(after, max(0, room - brush.width(before)))
    head = brush.fit([("playbill key" if active else "playbill dim", label), ("playbill", before)])
    return [*head, ("playbill caret", under), ("playbill", after)]
