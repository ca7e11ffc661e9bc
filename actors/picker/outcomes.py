"""What becomes of a state when it hears of the host: snapshots, the time, and what came of operations."""

from __future__ import annotations

from typing import Any

from attrs import evolve

from ..model.plain import label, line
from ..model.snapshot import Snapshot
from .state import State, Step, say, send, visible
from .values import (
    Add,
    AddForm,
    Details,
    FetchLog,
    FetchReview,
    Identity,
    LogTail,
    Operation,
    Pin,
    Quit,
    Reload,
    Remove,
    Restart,
    Review,
    Revive,
    SetTool,
    Trust,
    TrustReview,
)
from .wishes import changes, told

__all__ = ["answered", "closed", "done", "failed", "leave_if_done", "say_closed", "take", "tick"]

_LINES_KEPT = 1_000
_LOST_NAMED = 3


def take(state: State, snapshot: Snapshot) -> State:
    """The state with a snapshot, unless it has a newer one; a dialog of what is gone closes."""
    if snapshot.version <= state.snapshot.version:
        return state
    mended = state.snapshot.model.config_error is not None and snapshot.model.config_error is None
    if mended and state.status is not None and state.status.of is not None:
        state = evolve(state, status=None)  # it was refused because the file could not be read
    state = evolve(state, snapshot=snapshot)
    model, dialog = snapshot.model, state.dialog
    gone: str | None = None
    match dialog:
        case Details(identity=("tool", name, bare)) if model.tool(name, bare) is None:
            gone = f"{label(bare)} is gone"
        case Details(identity=("server", name)) if model.server(name) is None:
            gone = f"{label(name)} is gone"
        case LogTail(server=name) if model.server(name) is None:
            gone = f"{label(name)} is gone"
        case TrustReview(server=name):
            server = model.server(name)
            if server is None:
                gone = f"{label(name)} is gone"
            elif server.phase != "untrusted":
                gone = f"{label(name)} needs no approval any more"
    return state if gone is None else evolve(say(state, gone), dialog=None)


def tick(state: State, now: float) -> Step:
    """The state at a later time; an open log is fetched again."""
    if now > state.now:
        state = evolve(state, now=now)
    match state.dialog:
        case LogTail(server=name, error=None) if not state.closed:
            if not any(isinstance(each, FetchLog) and each.server == name for each in state.flights):
                return send(state, FetchLog(state.next_id, name))
    return state, ()


def _landed(state: State, number: int) -> tuple[State, Operation | None]:
    """The state without an operation, and that operation; None when it is not under way."""
    found = next((each for each in state.flights if each.id == number), None)
    if found is None:
        return state, None
    return evolve(state, flights=tuple(each for each in state.flights if each is not found)), found


def _of(operation: Operation) -> Identity:
    """What an operation is on: an error of the last one on it is out of date when another one is done."""
    if isinstance(operation, SetTool | Pin):
        return ("tool", operation.server, operation.bare)
    server = getattr(operation, "server", None)
    return ("config",) if server is None else ("server", server)


_DONE: dict[type[Operation], str] = {
    Add: "added {}",
    Remove: "removed {}",
    Restart: "restarted {}",
    Revive: "started {} again",
    Trust: "approved {}",
}


def done(state: State, number: int, snapshot: Snapshot) -> State:
    """The state after an operation was done: its snapshot says what it came to."""
    state, operation = _landed(take(state, snapshot), number)
    if operation is not None and state.status is not None and state.status.of == _of(operation):
        state = evolve(state, status=None)
    if isinstance(operation, Reload):
        state = say(state, "read the config anew")
    elif operation is not None and type(operation) in _DONE:
        name = getattr(operation, "server", "")
        state = say(state, _DONE[type(operation)].format(label(name)))
    match operation, state.dialog:
        case Add(server=name), AddForm(sent=sent) if sent == number:
            state = evolve(state, dialog=None)
            if visible(state).find(("server", name)) is not None:
                state = evolve(state, cursor=("server", name))
    return state


def failed(state: State, number: int, message: str) -> State:
    """The state after an operation was refused: what it wished is shown no more, and why is said.

    Leaving is taken back: a person is to see it.
    """
    state, operation = _landed(state, number)
    said = line(message) or "it failed, and does not say why"
    if operation is None:
        return state
    dialog: Any = state.dialog
    match operation, dialog:
        case Add(), AddForm(sent=sent) if sent == number:
            return evolve(state, dialog=evolve(dialog, sent=None, error=said), quitting=False)
        case FetchLog(server=name), LogTail(server=of) if of == name:
            return evolve(state, dialog=evolve(dialog, error=said))
        case FetchReview(server=name), TrustReview(server=of, review=None) if of == name:
            return evolve(state, dialog=evolve(dialog, error=said))
        case ((FetchLog() | FetchReview()), _):
            return state  # nobody looks any more
    return evolve(say(state, line(f"{told(operation)}: {said}"), "error", _of(operation)), quitting=False)


def answered(state: State, number: int, payload: str | Review) -> State:
    """The state after something was fetched; what nobody waits for any more is dropped."""
    state, operation = _landed(state, number)
    dialog: Any = state.dialog
    match operation, dialog, payload:
        case FetchLog(server=name), LogTail(server=of), str() if of == name:
            lines = tuple(payload.splitlines()[-_LINES_KEPT:])
            if dialog.top is not None and dialog.lines is not None:
                return evolve(state, dialog=evolve(dialog, newer=lines, error=None))
            return evolve(state, dialog=evolve(dialog, lines=lines, error=None))
        # A second review does not take the place of the one that is being read: what is approved is what was seen.
        case FetchReview(server=name), TrustReview(server=of, review=None), Review() if of == name:
            return evolve(state, dialog=evolve(dialog, review=payload, error=None))
    return state


_CLOSED = "the host is closed: q leaves"


def closed(state: State) -> State:
    """The state after the host has closed: nothing is under way any more, and what was is named.

    A dialog that waits for the host, or would ask it for something, closes. Leaving is taken back: a person is to see it.
    """
    if state.closed:
        return state
    lost = [told(each) for each in state.flights if changes(each)]
    named = ", ".join(lost[:_LOST_NAMED]) + (f" and {len(lost) - _LOST_NAMED} more" if len(lost) > _LOST_NAMED else "")
    waits = isinstance(state.dialog, AddForm | TrustReview) or (
        isinstance(state.dialog, LogTail) and state.dialog.lines is None
    )
    state = evolve(state, closed=True, flights=(), quitting=False, armed=None, dialog=None if waits else state.dialog)
    return say(state, f"{_CLOSED}; nobody knows what came of: {named}" if lost else _CLOSED, "error")


def say_closed(state: State) -> State:
    """The state in which it is said that the host is closed, if it is, and nothing else is said."""
    return say(state, _CLOSED, "error") if state.closed and state.status is None else state


def leave_if_done(state: State) -> Step:
    """Leave, if that waited for operations, and none is under way any more."""
    if not state.quitting or state.ended or any(changes(each) for each in state.flights):
        return state, ()
    return evolve(state, ended=True, next_id=state.next_id + 1), (Quit(state.next_id),)
