"""Waiting for servers as a person wants it: not for one that has failed, and with a word on what is awaited."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Collection
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

from ..model.snapshot import ServerState, Snapshot
from .patience import PATIENCE
from .voice import voice

if TYPE_CHECKING:
    from ..host import Host

__all__ = ["awaited", "settle", "working"]


def awaited(server: ServerState) -> bool:
    """Whether a server may soon be ready: it is on its first attempt or its first retry.

    One that failed twice goes on trying under supervision, but nobody at a prompt wants to wait for it.
    """
    if server.phase == "starting":
        return server.attempt is None or server.attempt[0] <= 2
    return server.phase == "backing_off" and server.attempt is not None and server.attempt[0] <= 1


async def settle(host: Host, timeout: float, names: Collection[str] | None = None) -> Snapshot:
    """Wait until every server is ready or has failed twice.

    Args:
        host: an open host.
        timeout: seconds; when they have passed the wait is over, whoever is still starting.
        names: only wait for these; None = for all.

    Returns:
        The snapshot at the end of the wait.
    """
    snapshot = host.snapshot()
    async with working(lambda: _words(host.snapshot(), names)):
        with trio.move_on_after(timeout):
            async for snapshot in host.changes():
                if not _awaited(snapshot, names):
                    break
    return snapshot


@asynccontextmanager
async def working(what: Callable[[], str], since: trio.Event | None = None) -> AsyncIterator[None]:
    """Keep one line on the terminal current while the block takes its time, and wipe it in the end.

    It is there for who waits more than half a second, on a terminal, and not with ``--quiet``.

    Args:
        what: says in one line what is being done; empty while there is nothing to say.
        since: when it is set there may be something to say; None: from the start.
    """
    said = voice()
    if not said.shows_progress:
        yield
        return
    over = trio.CancelScope(shield=True)  # what is done when we are cancelled takes its time too

    async def tell() -> None:
        begun: float | None = None
        with over:
            if since is not None:
                await since.wait()
            while True:
                text = what()
                begun = None if not text else trio.current_time() if begun is None else begun
                if begun is not None and trio.current_time() - begun >= PATIENCE:
                    said.draw(text)
                await trio.sleep(PATIENCE / 2)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(tell)
        try:
            yield
        finally:
            over.cancel()
            said.draw("")


def _awaited(snapshot: Snapshot, names: Collection[str] | None) -> list[str]:
    return [server.name for server in _wanted(snapshot, names) if awaited(server)]


def _wanted(snapshot: Snapshot, names: Collection[str] | None) -> list[ServerState]:
    return [each for each in snapshot.model.servers if names is None or each.name in names]


def _words(snapshot: Snapshot, names: Collection[str] | None) -> str:
    """How far it is: how many are ready, of those that are waited for at all, and who is not."""
    waiting = _awaited(snapshot, names)
    ready = sum(server.phase == "ready" for server in _wanted(snapshot, names))
    count = f" ({ready} of {ready + len(waiting)} ready)" if ready else ""
    return f"waiting for {', '.join(waiting)}{count}" if waiting else ""
