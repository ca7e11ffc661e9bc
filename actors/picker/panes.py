"""What keys do in a dialog of text: scroll, close, approve."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from ..model.plain import label
from .dialogs import dialog_lines
from .state import State, Step, say, send
from .values import FetchLog, LogTail, Trust, TrustReview

__all__ = [
    "approve",
    "close",
    "first_line",
    "last_line",
    "line_down",
    "line_up",
    "page_back",
    "page_on",
    "refetch",
]


def close(state: State) -> Step:
    """Close the dialog."""
    return evolve(state, dialog=None), ()


def _scroll(state: State, to: int | None = None, by: int = 0) -> Step:
    dialog: Any = state.dialog
    lines = len(dialog_lines(state))
    if to is None:
        was: int | None = dialog.top
        to = (max(0, lines - state.page) if was is None else was) + by
    return evolve(state, dialog=evolve(dialog, top=min(max(0, to), max(0, lines - 1)))), ()


def line_up(state: State) -> Step:
    """A line up."""
    return _scroll(state, by=-1)


def line_down(state: State) -> Step:
    """A line down."""
    return _scroll(state, by=1)


def page_back(state: State) -> Step:
    """A page up."""
    return _scroll(state, by=-max(1, state.page - 1))


def page_on(state: State) -> Step:
    """A page down."""
    return _scroll(state, by=max(1, state.page - 1))


def first_line(state: State) -> Step:
    """To the beginning."""
    return _scroll(state, to=0)


def last_line(state: State) -> Step:
    """To the end; a log follows it from then on."""
    if isinstance(state.dialog, LogTail):
        return evolve(state, dialog=evolve(state.dialog, top=None)), ()
    # Half a page of the end, as lines may be wrapped.
    return _scroll(state, to=len(dialog_lines(state)) - max(1, state.page // 2))


def refetch(state: State) -> Step:
    """Fetch the log again."""
    if not isinstance(state.dialog, LogTail):
        return state, ()
    name = state.dialog.server
    state = evolve(state, dialog=evolve(state.dialog, error=None, top=None))
    if any(isinstance(each, FetchLog) and each.server == name for each in state.flights):
        return state, ()
    return send(state, FetchLog(state.next_id, name))


def approve(state: State) -> Step:
    """Approve what is shown; nothing before it is shown."""
    dialog = state.dialog
    if not isinstance(dialog, TrustReview) or dialog.review is None:
        return state, ()
    state = say(evolve(state, dialog=None), f"approving {label(dialog.server)}")
    return send(state, Trust(state.next_id, dialog.server, dialog.review.seal))
