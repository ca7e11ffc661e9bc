"""What keys do in the list: each action is a pure function of a state, for the row that the cursor is on."""

from __future__ import annotations

from attrs import evolve

from ..model.phase import predicate
from ..model.plain import flat, label
from ..model.snapshot import ServerState
from .state import State, Step, lasting, say, send, server_of, visible
from .values import (
    AddForm,
    Details,
    FetchLog,
    FetchReview,
    Help,
    LogTail,
    Notices,
    Pin,
    Quit,
    Reload,
    Remove,
    Restart,
    Revive,
    SetServer,
    SetTool,
    TextLine,
    TrustReview,
)
from .wishes import Wishes, changes, told
from .words import plural, wanted

__all__ = [
    "add",
    "bottom",
    "clear",
    "details",
    "down",
    "edit_filter",
    "help_",
    "log",
    "next_server",
    "notices",
    "page_down",
    "page_up",
    "pin",
    "previous_server",
    "quit_",
    "reload",
    "remove",
    "restart",
    "toggle",
    "top",
    "trust",
    "up",
]


# Moving.


def _go(state: State, place: int) -> Step:
    shown = visible(state)
    place = min(max(place, shown.top), len(shown) - 1)
    return evolve(state, cursor=shown.identity(place)), ()


def _move(state: State, by: int) -> Step:
    at = visible(state).find(state.cursor)
    return _go(state, 0 if at is None else at + by)


def up(state: State) -> Step:
    """To the row above."""
    return _move(state, -1)


def down(state: State) -> Step:
    """To the row below."""
    return _move(state, 1)


def page_up(state: State) -> Step:
    """A page up: a row less than is shown."""
    return _move(state, -max(1, state.page - 1))


def page_down(state: State) -> Step:
    """A page down: a row less than is shown."""
    return _move(state, max(1, state.page - 1))


def top(state: State) -> Step:
    """To the first row."""
    return _go(state, 0)


def bottom(state: State) -> Step:
    """To the last row."""
    return _go(state, len(visible(state)))


def next_server(state: State) -> Step:
    """To the head of the next section."""
    shown = visible(state)
    at = shown.find(state.cursor) or 0
    return _go(state, next((head for head in shown.heads() if head > at), at))


def previous_server(state: State) -> Step:
    """To the head of this section, or of the one before."""
    shown = visible(state)
    at = shown.find(state.cursor) or 0
    return _go(state, max((head for head in shown.heads() if head < at), default=at))


# Filtering, and what opens a dialog.


def edit_filter(state: State) -> Step:
    """Let keys be the text of the filter."""
    return evolve(state, editing=True), ()


def clear(state: State) -> Step:
    """Take back leaving; else clear the filter, and the message."""
    if state.quitting:
        return evolve(state, quitting=False, status=lasting(state)), ()
    return evolve(state, filter=TextLine(), status=None), ()


def help_(state: State) -> Step:
    """Open the list of keys."""
    return evolve(state, dialog=Help()), ()


def notices(state: State) -> Step:
    """Open all warnings and errors."""
    return evolve(state, dialog=Notices()), ()


def add(state: State) -> Step:
    """Open the form of a new server."""
    return evolve(state, dialog=AddForm()), ()


def details(state: State) -> Step:
    """Open all there is to say of the row."""
    match state.cursor:
        case ("tool", _, _):
            return evolve(state, dialog=Details(state.cursor)), ()
        case ("server" | "empty", name):
            return evolve(state, dialog=Details(("server", name))), ()
    return _no_server(state)


def log(state: State) -> Step:
    """Open what the server wrote on stderr last."""
    server = _server(state)
    if server is None:
        return _no_server(state)
    return send(evolve(state, dialog=LogTail(server.name)), FetchLog(state.next_id, server.name))


def trust(state: State) -> Step:
    """Open what an untrusted server would run, for approval."""
    server = _server(state)
    if server is None:
        return _no_server(state)
    if server.phase == "invalid":
        why_not = f": {flat(server.error)}" if server.error else ""
        return say(state, f"{label(server.name)} cannot be reviewed, as its entry is invalid{why_not}"), ()
    if server.phase != "untrusted":
        return say(state, f"{label(server.name)} needs no approval"), ()
    return send(evolve(state, dialog=TrustReview(server.name)), FetchReview(state.next_id, server.name))


# Changing.


def toggle(state: State) -> Step:
    """Turn the tool, or the server, the other way than it is shown."""
    if (leaving := _leaving(state)) is not None:
        return leaving
    wishes, model = Wishes(state.flights), state.snapshot.model
    match state.cursor:
        case ("tool", name, bare) if (tool := model.tool(name, bare)) is not None:
            on = wishes.tool_check(name, bare, tool.enabled) in ("on", "pending-on")
            return send(state, SetTool(state.next_id, name, bare, not on))
        case ("server", name) if (server := model.server(name)) is not None:
            on = wishes.server_check(name, wanted(server)) in ("on", "pending-on")
            return send(state, SetServer(state.next_id, name, not on))
    return say(state, "there is nothing to turn on or off here"), ()


def pin(state: State) -> Step:
    """Pin the tool, or unpin it."""
    if (leaving := _leaving(state)) is not None:
        return leaving
    match state.cursor:
        case ("tool", name, bare) if (tool := state.snapshot.model.tool(name, bare)) is not None:
            on = Wishes(state.flights).pin(name, bare, tool.pinned)
            return send(state, Pin(state.next_id, name, bare, not on))
    return say(state, "only a tool can be pinned"), ()


def remove(state: State) -> Step:
    """Remove the server: the first time it only says so, and the second time in a row it does."""
    match state.cursor:
        case ("server", name) if state.snapshot.model.server(name) is not None:
            if (leaving := _leaving(state)) is not None:
                return leaving
            if state.armed == name:
                return send(evolve(state, armed=None), Remove(state.next_id, name))
            return evolve(say(state, f"press d again to remove {label(name)}", "ask"), armed=name), ()
        case ("tool" | "empty", name, *_):
            said = f"d removes a server, on its own row: go up to {label(name)}; a tool is turned off with space"
            return say(state, said), ()
    return _no_server(state)


def reload(state: State) -> Step:
    """Read the config anew."""
    return send(state, Reload(state.next_id))


def restart(state: State) -> Step:
    """Start the server anew: at once if it waits for that or is parked, else after it was stopped."""
    server = _server(state)
    if server is None:
        return _no_server(state)
    if (leaving := _leaving(state)) is not None:
        return leaving
    match server.phase:
        case "parked" | "backing_off":
            return send(state, Revive(state.next_id, server.name))
        case "ready" | "starting" | "needs_auth":
            return send(state, Restart(state.next_id, server.name))
        case "untrusted":
            return say(state, f"{label(server.name)} is not trusted: press t to review what it would run"), ()
        case "invalid":
            return say(state, f"the entry of {label(server.name)} is invalid: correct it in its file"), ()
    return say(state, f"{label(server.name)} {predicate(server.phase)}: press space on its row to enable it"), ()


def quit_(state: State) -> Step:
    """Leave: at once, or when what is under way is done; the second time at once."""
    waiting = [each for each in state.flights if changes(each)]
    if state.quitting or not waiting:
        last = Quit(state.next_id)
        return evolve(state, quitting=True, ended=True, next_id=state.next_id + 1), (last,)
    what = told(waiting[0]) if len(waiting) == 1 else plural(len(waiting), "operation")
    said = f"leaving when done: {what}; q again leaves at once, esc stays"
    return evolve(say(state, said, "ask"), quitting=True), ()


def _server(state: State) -> ServerState | None:
    """The server whose row, or whose tool's row, the cursor is on."""
    name = server_of(state.cursor)
    return None if name is None else state.snapshot.model.server(name)


def _leaving(state: State) -> Step | None:
    """What is said of a server that is being removed; None of any other."""
    name = server_of(state.cursor)
    if any(isinstance(each, Remove) and each.server == name for each in state.flights):
        return say(state, f"{label(name or '')} is being removed"), ()
    return None


def _no_server(state: State) -> Step:
    return say(state, "there is no server on this row"), ()
