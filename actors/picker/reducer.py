"""What an event makes of a state: a pure function, and the only way a picker changes.

    mode       keys by the table in `keys`            any other key
    list       actions on the row of the cursor       nothing
    filter     keep, clear, move                      text of the filter
    text       scroll, close                          nothing
    review     approve, scroll, close                 nothing
    form       other field, submit, close             text of the field

While `State.quitting`, only leaving and staying are keys. Once the host has closed, what would ask it for something says that.
After `Quit` was given out nothing happens any more.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import cast

from attrs import evolve

from . import actions, forms, outcomes, panes
from .keys import Binding, binding, mode_of
from .state import State, Step, follow, lasting, say, start, visible
from .values import (
    AddForm,
    Answer,
    Closed,
    Done,
    Event,
    Failed,
    Key,
    News,
    Operation,
    Paste,
    Resized,
    Shown,
    TextLine,
    Tick,
)

__all__ = ["ACTIONS", "State", "reduce", "start", "visible"]


def _end_filter(state: State) -> Step:
    return evolve(state, editing=False), ()


def _clear_filter(state: State) -> Step:
    return evolve(state, editing=False, filter=TextLine()), ()


def _of_form(act: Callable[[State, AddForm], Step]) -> Callable[[State], Step]:
    def acted(state: State) -> Step:
        return act(state, cast(AddForm, state.dialog))

    return acted


ACTIONS: dict[str, Callable[[State], Step]] = {
    "add": actions.add,
    "approve": panes.approve,
    "bottom": actions.bottom,
    "clear": actions.clear,
    "clear_filter": _clear_filter,
    "close": panes.close,
    "details": actions.details,
    "down": actions.down,
    "edit_filter": actions.edit_filter,
    "end_filter": _end_filter,
    "first_line": panes.first_line,
    "help": actions.help_,
    "last_line": panes.last_line,
    "line_down": panes.line_down,
    "line_up": panes.line_up,
    "log": actions.log,
    "next_server": actions.next_server,
    "notices": actions.notices,
    "page_back": panes.page_back,
    "page_down": actions.page_down,
    "page_on": panes.page_on,
    "page_up": actions.page_up,
    "pin": actions.pin,
    "previous_server": actions.previous_server,
    "quit": actions.quit_,
    "refetch": panes.refetch,
    "reload": actions.reload,
    "remove": actions.remove,
    "restart": actions.restart,
    "to_next": _of_form(forms.to_next),
    "to_other": _of_form(forms.to_other),
    "toggle": actions.toggle,
    "top": actions.top,
    "trust": actions.trust,
    "up": actions.up,
}
"""What the names in the table of keys stand for."""

_LONGEST_FILTER = 200
"""Characters that a filter takes: each one more is looked for in every tool."""

_OF_THE_HOST = frozenset(
    {"add", "approve", "log", "pin", "refetch", "reload", "remove", "restart", "to_next", "toggle", "trust"}
)
"""Actions that are of no use without the host."""


def reduce(state: State, event: Event) -> tuple[State, tuple[Operation, ...]]:
    """What a state becomes by an event, and what the host is to be asked for, in this order.

    Args:
        state: before; it is not changed.
        event: a key, or what was heard of the host.

    Returns:
        The state after it, whose cursor is on a row that is `visible`; and the operations that came of it, which are in
        ``State.flights`` until `Done`, `Failed` or `Answer` of their id. It never raises.
    """
    if state.ended:
        return state, ()
    after, operations = _step(state, event)
    after = outcomes.say_closed(follow(state, after))
    if after.status is not None and after.status.kind == "error" and after.status is not state.status:
        after = evolve(after, complaint=after.status)
    if after.armed is not None and not _asks(after):
        after = evolve(after, armed=None)
    if isinstance(event, Done | Failed | Answer):
        after, more = outcomes.leave_if_done(after)
        operations = (*operations, *more)
    return after, operations


def _step(state: State, event: Event) -> Step:
    match event:
        case Key(name=name):
            return _key(state, name)
        case Paste(text=text):
            return _paste(state, text)
        case News(snapshot=snapshot):
            return outcomes.take(state, snapshot), ()
        case Tick(now=now):
            return outcomes.tick(state, now)
        case Done(id=number, snapshot=snapshot):
            return outcomes.done(state, number, snapshot), ()
        case Failed(id=number, message=message):
            return outcomes.failed(state, number, message), ()
        case Answer(id=number, payload=payload):
            return outcomes.answered(state, number, payload), ()
        case Closed():
            return outcomes.closed(state), ()
        case Resized(rows=rows, columns=columns):
            return panes.resized(state, rows, columns), ()
        case Shown(first=first, last=last):
            return panes.shown(state, first, last), ()


def _key(state: State, name: str) -> Step:
    mode = mode_of(state.dialog, state.editing)
    found = binding(mode, name)
    if state.quitting and not _leaves(found):
        return state, ()
    if state.closed and found is not None and found.action in _OF_THE_HOST:
        return evolve(state, status=lasting(state)), ()
    # The question of a first `d` goes too, and with it what it would have removed.
    state = evolve(state, status=lasting(state))
    return _text(state, name) if found is None else ACTIONS[found.action](state)


def _paste(state: State, text: str) -> Step:
    if state.quitting:
        return state, ()
    state = evolve(state, status=lasting(state))
    if isinstance(state.dialog, AddForm):
        return forms.paste_into(state, state.dialog, text)
    if state.dialog is None and state.editing:
        return evolve(state, filter=state.filter.pasted(text, _LONGEST_FILTER)), ()
    return say(state, "what was pasted was left alone: it is no keys"), ()


def _asks(state: State) -> bool:
    """Whether the person still sees the server that ``d`` was pressed on, and the question."""
    return state.cursor == ("server", state.armed) and state.status is not None and state.status.kind == "ask"


def _leaves(found: Binding | None) -> bool:
    return found is not None and found.action in ("quit", "clear")


def _text(state: State, name: str) -> Step:
    """A key that no table has: text, where there is a line that is typed."""
    if isinstance(state.dialog, AddForm):
        return forms.type_into(state, state.dialog, name)
    if state.dialog is None and state.editing:
        if name == "backspace" and not state.filter.text:
            return _end_filter(state)
        typed = state.filter.typed(name, _LONGEST_FILTER)
        return (state if typed is None else evolve(state, filter=typed)), ()
    return state, ()
