"""What keys do in a dialog of text: scroll, close, approve. A line is one of the screen: `dialog_lines` are wrapped already."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from ..model.plain import label
from .dialogs import dialog_lines, wrapped
from .state import State, Step, say, send
from .values import FetchLog, LogTail, Trust, TrustReview
from .wrap import joined

__all__ = [
    "approve",
    "close",
    "first_line",
    "first_shown",
    "last_line",
    "line_down",
    "line_up",
    "page_back",
    "page_on",
    "refetch",
    "resized",
    "shown",
    "unseen",
]

_NARROWEST = 20
"""Columns of the narrowest screen that a review can be read on."""


def close(state: State) -> Step:
    """Close the dialog."""
    return evolve(state, dialog=None), ()


def first_shown(state: State, room: int) -> int:
    """The first line of the dialog that is shown, with room for so many: its ``top``, but no line stays empty at the end."""
    last = max(0, len(dialog_lines(state)) - max(1, room))
    top: int | None = getattr(state.dialog, "top", 0)
    return last if top is None else min(max(0, top), last)


def _scroll(state: State, by: int) -> Step:
    dialog: Any = state.dialog
    last = max(0, len(dialog_lines(state)) - state.page)
    return evolve(state, dialog=evolve(dialog, top=min(max(0, first_shown(state, state.page) + by), last))), ()


def line_up(state: State) -> Step:
    """A line up."""
    return _scroll(state, -1)


def line_down(state: State) -> Step:
    """A line down."""
    return _scroll(state, 1)


def page_back(state: State) -> Step:
    """A page up: a line less than is shown."""
    return _scroll(state, -max(1, state.page - 1))


def page_on(state: State) -> Step:
    """A page down: a line less than is shown."""
    return _scroll(state, max(1, state.page - 1))


def first_line(state: State) -> Step:
    """To the beginning."""
    dialog: Any = state.dialog
    return evolve(state, dialog=evolve(dialog, top=0)), ()


def last_line(state: State) -> Step:
    """To the end; a log follows it from then on."""
    if isinstance(state.dialog, LogTail):
        return evolve(state, dialog=_following(state.dialog)), ()
    return _scroll(state, len(dialog_lines(state)))


def _following(log: LogTail) -> LogTail:
    """The log at its end, with the newest lines."""
    return evolve(log, top=None, lines=log.lines if log.newer is None else log.newer, newer=None)


def refetch(state: State) -> Step:
    """Fetch the log again."""
    if not isinstance(state.dialog, LogTail):
        return state, ()
    name = state.dialog.server
    state = evolve(state, dialog=evolve(_following(state.dialog), error=None))
    if any(isinstance(each, FetchLog) and each.server == name for each in state.flights):
        return state, ()
    return send(state, FetchLog(state.next_id, name))


def resized(state: State, rows: int, columns: int | None) -> State:
    """The state with room for so many lines of so many columns: what was the first line of a dialog still is on the first."""
    after = evolve(state, page=max(1, rows), columns=None if columns is None else max(1, columns))
    dialog: Any = after.dialog
    top: int | None = getattr(dialog, "top", None)
    if not top or state.columns == after.columns:
        return after
    was, now = wrapped(state), wrapped(after)
    place = was.starts[min(top, len(was.starts) - 1)] if was.starts else 0
    return evolve(after, dialog=evolve(dialog, top=now.at(place)))


def shown(state: State, first: int, last: int) -> State:
    """The state after lines of a dialog were on the screen: in a review, what of it has been seen."""
    dialog = state.dialog
    if not isinstance(dialog, TrustReview) or dialog.review is None:
        return state
    if state.columns is not None and state.columns < _NARROWEST:
        return state
    text, seen = wrapped(state), dialog.seen
    for at in range(max(0, first), min(last, len(text.lines))):
        seen = joined(seen, text.span(at, at + 1))
    return state if seen == dialog.seen else evolve(state, dialog=evolve(dialog, seen=seen))


def unseen(state: State) -> tuple[int, ...]:
    """Which lines of a review have not been on the screen, whole, at any width; empty: it can be approved."""
    dialog = state.dialog
    if not isinstance(dialog, TrustReview) or dialog.review is None:
        return ()
    text = wrapped(state)
    if dialog.seen == ((0, text.end),):
        return ()
    spans = [text.span(at, at + 1) for at in range(len(text.lines))]
    return tuple(
        at
        for at, (start, end) in enumerate(spans)
        if not any(begin <= start and end <= until for begin, until in dialog.seen)
    )


def approve(state: State) -> Step:
    """Approve what was shown; nothing before all of it was."""
    dialog = state.dialog
    if not isinstance(dialog, TrustReview):
        return state, ()
    if dialog.review is None or not dialog.review.lines:
        return say(state, "nothing is shown that could be approved", "ask"), ()
    if state.columns is not None and state.columns < _NARROWEST:
        return say(state, "the screen is too narrow to review it", "ask"), ()
    if left := unseen(state):
        lines = "line" if len(left) == 1 else "lines"
        said = f"not approved: {len(left)} {lines} of it not seen yet, from line {left[0] + 1} on; space goes on"
        return say(state, said, "ask"), ()
    state = say(evolve(state, dialog=None), f"approving {label(dialog.server)}")
    return send(state, Trust(state.next_id, dialog.server, dialog.review.seal))
