"""Operations of the reducer, done by a host: which method each is, in what order, and what is told of its end.

Operations on one server are done in the order of the keys, so that the last wish wins and none comes upon a server that was
removed before it; but those on its tools only wait for each other if they are on the same tool. All others are side by side.
Whatever an operation raises is told in one line, and ends nothing else.
"""

from __future__ import annotations

import shlex
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from typing import Any, Protocol

import trio

from ..model.errors import PlaybillError
from ..model.plain import LONGEST_NAME, quoted
from ..model.snapshot import Snapshot
from .values import (
    Add,
    Answer,
    Done,
    Event,
    Failed,
    FetchLog,
    FetchReview,
    Operation,
    Pin,
    Reload,
    Remove,
    Restart,
    Review,
    Revive,
    SetServer,
    SetTool,
    Trust,
)

__all__ = ["Desk", "HostLike", "Reviewer"]

_ON_A_SERVER = SetServer | Add | Remove | Restart | Revive | Trust
_ON_A_TOOL = SetTool | Pin


class HostLike(Protocol):
    """What the picker needs of a `Host`."""

    def snapshot(self) -> Snapshot:
        """The snapshot now."""
        ...

    def changes(self) -> AsyncIterator[Snapshot]:
        """The snapshot now, then the latest after each change."""
        ...

    def stderr_tail(self, name: str) -> str:
        """What a server wrote on stderr last."""
        ...

    async def tool_set_enabled(self, server: str, bare: str, on: bool) -> Snapshot:
        """As `Host.tool_set_enabled`."""
        ...

    async def server_set_enabled(self, name: str, on: bool) -> Snapshot:
        """As `Host.server_set_enabled`."""
        ...

    async def pin(self, server: str, bare: str, on: bool) -> Snapshot:
        """As `Host.pin`."""
        ...

    async def plugin_add(
        self,
        name: str,
        command: str | None = None,
        args: Sequence[str] = (),
        *,
        env: Mapping[str, str] | None = None,
        url: str | None = None,
    ) -> Snapshot:
        """As `Host.plugin_add`."""
        ...

    async def plugin_remove(self, name: str) -> Snapshot:
        """As `Host.plugin_remove`."""
        ...

    async def reload(self) -> Snapshot:
        """As `Host.reload`."""
        ...

    async def restart(self, name: str) -> Snapshot:
        """As `Host.restart`."""
        ...

    async def revive(self, name: str) -> Snapshot:
        """As `Host.revive`."""
        ...


class Reviewer(Protocol):
    """Shows what a server would run, and approves exactly what was shown. `playbill pick` brings its own."""

    async def review(self, server: str) -> Review:
        """What the server would run.

        Raises:
            PlaybillError: that cannot be shown, or not be approved.
        """
        ...

    async def approve(self, server: str, seal: str) -> Snapshot:
        """Approve what was shown under this seal, and nothing else.

        Raises:
            PlaybillError: it is not what was shown any more, or the approval cannot be kept.
        """
        ...


def follows(later: Operation, earlier: Operation) -> bool:
    """Whether an operation waits for the end of one that was asked for before it.

    Args:
        later, earlier: any two.
    """
    if isinstance(later, _ON_A_TOOL) and isinstance(earlier, _ON_A_TOOL):
        return (later.server, later.bare) == (earlier.server, earlier.bare)
    if not isinstance(later, _ON_A_SERVER | _ON_A_TOOL) or not isinstance(earlier, _ON_A_SERVER | _ON_A_TOOL):
        return False
    return later.server == earlier.server


def _said(error: Exception) -> str:
    try:
        return str(error)
    except Exception:  # a defect of the error, which must not hide that there was one
        return "it does not say why"


class Desk:
    """Does operations and tells how each ended.

    Args:
        host: who does them.
        nursery: in which they run; what it cancels is not told of.
        tell: takes the event of each end.
        reviewer: for what is to be approved; None: nothing can be.
    """

    def __init__(
        self, host: HostLike, nursery: trio.Nursery, tell: Callable[[Event], None], reviewer: Reviewer | None = None
    ) -> None:
        self._host = host
        self._nursery = nursery
        self._tell = tell
        self._reviewer = reviewer
        self._under_way: dict[Operation, trio.Event] = {}

    def take(self, operation: Operation) -> None:
        """Begin an operation, or let it wait for those that it must come after. Not async: its end is told."""
        before = [ended for earlier, ended in self._under_way.items() if follows(operation, earlier)]
        self._under_way[operation] = trio.Event()
        self._nursery.start_soon(self._work, operation, before)

    async def _work(self, operation: Operation, before: Sequence[trio.Event]) -> None:
        """Do an operation, after those before it, and tell of its end. A checkpoint."""
        event: Event
        for ended in before:
            await ended.wait()
        try:
            outcome = await self._do(operation)
        except PlaybillError as error:
            event = Failed(operation.id, _said(error))
        except Exception as error:  # a defect of one operation, told as its failure
            event = Failed(operation.id, f"unexpected {type(error).__name__}: {_said(error)}")
        else:
            answered = isinstance(outcome, str | Review)
            event = Answer(operation.id, outcome) if answered else Done(operation.id, outcome)
        # Its end is told before another one begins, and so before that one's.
        ended = self._under_way.pop(operation)
        self._tell(event)
        ended.set()

    async def _do(self, operation: Operation) -> Any:
        host = self._host
        match operation:
            case SetTool(_, server, bare, on):
                return await host.tool_set_enabled(server, bare, on)
            case SetServer(_, server, on):
                return await host.server_set_enabled(server, on)
            case Pin(_, server, bare, on):
                return await host.pin(server, bare, on)
            case Add(_, server, command, args, env, url):
                return await host.plugin_add(server, command, args, env=env or None, url=url)
            case Remove(_, server):
                return await host.plugin_remove(server)
            case Reload():
                return await host.reload()
            case Restart(_, server):
                return await host.restart(server)
            case Revive(_, server):
                return await host.revive(server)
            case FetchLog(_, server):
                await trio.lowlevel.checkpoint()
                return host.stderr_tail(server)
            case FetchReview(_, server):
                return await self._reviews(server).review(server)
            case Trust(_, server, seal):
                return await self._reviews(server).approve(server, seal)
        raise PlaybillError(f"the picker cannot do {type(operation).__name__}")

    def _reviews(self, server: str) -> Reviewer:
        if self._reviewer is None:
            can_be_typed = server.isprintable() and len(server) <= LONGEST_NAME
            how = f"playbill trust {shlex.quote(server)}" if can_be_typed else "playbill trust --all"
            raise PlaybillError(f"what {quoted(server)} would run cannot be shown here: see `{how}`")
        return self._reviewer
