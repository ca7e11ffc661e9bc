"""Waiting for servers as a person wants it: not for one that has failed, and with a word on what is awaited."""

from __future__ import annotations

import sys
from collections.abc import Collection
from typing import TYPE_CHECKING

import trio

from ..model.snapshot import ServerState, Snapshot
from .errors import one_line

if TYPE_CHECKING:
    from ..host import Host

__all__ = ["awaited", "settle"]

_PATIENCE = 0.5
"""Seconds of silence before a person is told what is awaited."""


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
    with trio.move_on_after(timeout):
        async with trio.open_nursery() as nursery:
            if sys.stderr.isatty():
                nursery.start_soon(_tell, host, names)
            async for snapshot in host.changes():
                if not _awaited(snapshot, names):
                    break
            nursery.cancel_scope.cancel()
    return snapshot


def _awaited(snapshot: Snapshot, names: Collection[str] | None) -> list[str]:
    return [
        server.name for server in snapshot.model.servers if (names is None or server.name in names) and awaited(server)
    ]


async def _tell(host: Host, names: Collection[str] | None) -> None:
    """Keep one line on the terminal current while we wait, and wipe it in the end."""
    await trio.sleep(_PATIENCE)
    try:
        while True:
            text = one_line(f"waiting for {', '.join(_awaited(host.snapshot(), names))}")
            sys.stderr.write(f"\r{text[:78]}\x1b[K")
            sys.stderr.flush()
            await trio.sleep(_PATIENCE / 2)
    finally:
        sys.stderr.write("\r\x1b[K")
        sys.stderr.flush()
