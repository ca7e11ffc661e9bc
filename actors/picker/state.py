"""The state of a picker: the newest snapshot, and what is the person's own. Where the cursor goes when its row goes."""

from __future__ import annotations

from typing import Any

from attrs import evolve, field, frozen

from ..model.snapshot import Snapshot
from .rows import Rows, rows
from .sections import Memo
from .values import Dialog, Identity, Operation, Status, TextLine
from .wrap import PLAIN, Look

__all__ = ["State", "Step", "follow", "lasting", "say", "send", "server_of", "start", "visible"]

_ERROR_STAYS = 5.0
"""Seconds that an error stays, whatever is typed and whatever else comes of operations."""

_MOST_SAID = 160
"""Characters that several errors may take together."""


@frozen(kw_only=True)
class State:
    """What a picker is at a moment.

    Args:
        snapshot: the newest.
        now: the clock (trio's) at the last tick, in seconds.
        cursor: the identity of the row that keys are for: always one of `visible`.
        filter: what rows are to match; empty for all.
        editing: the filter is being typed: keys are text.
        dialog: what is open, or None.
        flights: the operations under way, the oldest first.
        status: the line at the bottom, or None.
        page: lines that the list shows, or the open dialog.
        columns: that a line of a dialog has; None: it has as many as it takes.
        look: what the screen shows of a text.
        complaint: the last error that was said, also when it is not said any more; or None.
        armed: the server that ``d`` was pressed on, once, or None.
        quitting: ``q`` was pressed; it ends when no operation is under way any more.
        closed: the host has closed, and can be asked for nothing.
        ended: `Quit` was given out; nothing happens any more.
        next_id: of the next operation.
        memo: makes it fast, and changes nothing.
    """

    snapshot: Snapshot
    now: float
    cursor: Identity
    filter: TextLine = field(factory=TextLine)
    editing: bool = False
    dialog: Dialog | None = None
    flights: tuple[Operation, ...] = ()
    status: Status | None = None
    page: int = 20
    columns: int | None = None
    look: Look = field(default=PLAIN, eq=False, repr=False)
    complaint: Status | None = None
    armed: str | None = None
    quitting: bool = False
    closed: bool = False
    ended: bool = False
    next_id: int = 1
    memo: Memo = field(factory=Memo, eq=False, repr=False)


Step = tuple[State, tuple[Operation, ...]]
"""A state, and what the host is to be asked for."""


def start(snapshot: Snapshot, now: float, *, look: Look = PLAIN) -> State:
    """The state of a picker that opens.

    Args:
        snapshot: the one now.
        now: trio's clock, in seconds.
        look: what the screen shows of a text, and how wide that is; for what is wrapped, once `Resized` told the columns.
    """
    memo = Memo()
    shown = rows(snapshot, now, memo=memo)
    return State(snapshot=snapshot, now=now, cursor=shown.identity(shown.top), look=look, memo=memo)


def visible(state: State) -> Rows:
    """The rows that are shown: those that match the filter, with what is under way as pending.

    Lazy, and the same object as long as nothing of it changes.
    """
    key: tuple[Any, ...] = (state.snapshot, state.now, state.filter.text, state.flights)
    made: Rows | None = state.memo.last(key)
    if made is None:
        made = rows(state.snapshot, state.now, matching=state.filter.text, flights=state.flights, memo=state.memo)
        state.memo.keep(key, made)
    return made


def server_of(identity: Identity) -> str | None:
    """The server that a row is of, or None."""
    return identity[1] if identity[0] in ("server", "tool", "empty") else None


def say(state: State, text: str, kind: Any = "info", of: Identity | None = None) -> State:
    """The state with a status line.

    An error that is some seconds old only stays in sight: what comes by the way is not said then, a question is said in front
    of it, and a further error is said with it.
    """
    error = lasting(state)
    if error is None:
        return evolve(state, status=Status(text, kind, state.now, of))
    if kind == "error":
        return evolve(state, status=_together(error, text, state.now))
    if kind == "ask":
        return evolve(state, status=Status(f"{text} — {error.text}", kind, state.now, under=error))
    return state


def lasting(state: State) -> Status | None:
    """The error that has not been in sight for long enough yet, or None: it came while a person did something else."""
    status = state.status
    error = status if status is None or status.kind == "error" else status.under
    return error if error is not None and state.now - error.since < _ERROR_STAYS else None


def _together(error: Status, text: str, now: float) -> Status:
    before = error.errors or (error.text,)
    if text in before:
        return evolve(error, since=now)
    all_of_them = (*before, text)
    said = "; ".join(all_of_them)
    if len(said) > _MOST_SAID:
        said = f"{text} (and {len(before)} more)"
    return Status(said, "error", now, errors=all_of_them)


def send(state: State, operation: Operation) -> Step:
    """The state with an operation under way, and that operation. Its id is `State.next_id`."""
    return evolve(state, flights=(*state.flights, operation), next_id=state.next_id + 1), (operation,)


def follow(before: State, after: State) -> State:
    """The state with its cursor on a row that is shown.

    It stays where it was. If its row went, it goes to the nearest row that was shown and still is: first among those of the
    same server, then among all; of two as near, the lower one on the screen. If none remained, to the first. From a server's
    row that said that there are no tools it goes to the first of the tools that are there now.
    """
    shown = visible(after)
    if shown.find(after.cursor) is not None:
        return after
    if after.cursor[0] == "empty" and (head := shown.find(("server", after.cursor[1]))) is not None:
        return evolve(after, cursor=shown.identity(head + 1))
    was = visible(before)
    at = was.find(after.cursor)
    if at is not None:
        server = server_of(after.cursor)
        same = server is not None and shown.find(("server", server)) is not None
        if same and (near := _nearest(was, at, shown, server)) is not None:
            return evolve(after, cursor=near)
        if (near := _nearest(was, at, shown, None)) is not None:
            return evolve(after, cursor=near)
    return evolve(after, cursor=shown.identity(shown.top))


def _nearest(was: Rows, at: int, shown: Rows, server: str | None) -> Identity | None:
    """The nearest row to a place of before that is shown still; of one server, if it is given."""
    low, high = was.top, len(was)
    if server is not None:
        low = was.find(("server", server)) or low
        high = next((head for head in was.heads() if head > at), high)
    for distance in range(1, max(at - low, high - 1 - at) + 1):
        for place in (at + distance, at - distance):
            if low <= place < high and shown.find(identity := was.identity(place)) is not None:
                return identity
    return None
