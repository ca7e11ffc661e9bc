"""What is under way, as the rows show it: the last wish of each switch, and what is being done with a server."""

from __future__ import annotations

from collections.abc import Sequence

from attrs import define, field

from ..model.plain import label
from .values import (
    Add,
    Check,
    FetchLog,
    FetchReview,
    Operation,
    Pin,
    Quit,
    Reload,
    Remove,
    Restart,
    Revive,
    SetServer,
    SetTool,
    Trust,
)

__all__ = ["Wishes", "changes", "told"]

_DOING: dict[type[Operation], str] = {
    Add: "adding",
    Remove: "removing",
    Restart: "restarting",
    Revive: "reviving",
    Trust: "approving",
}


def changes(operation: Operation) -> bool:
    """Whether an operation changes anything: leaving waits for it."""
    return not isinstance(operation, FetchLog | FetchReview | Quit)


def told(operation: Operation) -> str:
    """An operation in words: ``disable search``."""
    match operation:
        case SetTool(bare=bare, on=on):
            return f"{'enable' if on else 'disable'} {label(bare)}"
        case SetServer(server=server, on=on):
            return f"{'enable' if on else 'disable'} {label(server)}"
        case Pin(bare=bare, on=on):
            return f"{'pin' if on else 'unpin'} {label(bare)}"
        case Reload():
            return "reload"
        case Quit():
            return "quit"
        case FetchLog(server=server):
            return f"log of {label(server)}"
        case FetchReview(server=server):
            return f"review of {label(server)}"
    return f"{type(operation).__name__.lower()} {label(operation.server)}"


@define(eq=False)
class Wishes:
    """The operations under way, the oldest first, by what they are of."""

    flights: Sequence[Operation] = ()
    busy: int = field(init=False, default=0)
    doing: dict[str, str] = field(init=False, factory=dict)
    count: dict[tuple[str, str], int] = field(init=False, factory=dict)
    _tools: dict[tuple[str, str], bool] = field(init=False, factory=dict)
    _pins: dict[tuple[str, str], bool] = field(init=False, factory=dict)
    _servers: dict[str, bool] = field(init=False, factory=dict)

    def __attrs_post_init__(self) -> None:
        for each in self.flights:
            self.busy += changes(each)
            match each:
                case SetTool(server=server, bare=bare, on=on):
                    self._tools[server, bare] = on
                    self.count[server, bare] = self.count.get((server, bare), 0) + 1
                case Pin(server=server, bare=bare, on=on):
                    self._pins[server, bare] = on
                    self.count[server, bare] = self.count.get((server, bare), 0) + 1
                case SetServer(server=server, on=on):
                    self._servers[server] = on
                    self.doing[server] = "enabling" if on else "disabling"
                case Add() | Remove() | Restart() | Revive() | Trust():
                    self.doing[each.server] = _DOING[type(each)]

    def tool_check(self, server: str, bare: str, enabled: bool) -> Check:
        """The checkbox of a tool."""
        return _check(self._tools.get((server, bare)), enabled)

    def server_check(self, server: str, enabled: bool) -> Check:
        """The checkbox of a server."""
        return _check(self._servers.get(server), enabled)

    def pin(self, server: str, bare: str, pinned: bool) -> bool:
        """Whether a tool is pinned, or is to be."""
        return self._pins.get((server, bare), pinned)


def _check(wish: bool | None, is_on: bool) -> Check:
    if wish is None:
        return "on" if is_on else "off"
    return "pending-on" if wish else "pending-off"
