"""Servers in memory, over the SDK's own message streams.

The streams tell little of a failure: the SDK logs what happened and closes them. So the wire here has a place of its own that
sees the cause: the task that runs the server.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import trio

from .stream_wire import StreamWire, leaf_of
from .wire import Wire

__all__ = ["open_memory"]

MEMORY_GRACE = 2.0
"""Seconds an in-memory server has to leave after its streams ended."""


@asynccontextmanager
async def open_memory(server: Any, scrub: Callable[[str], str]) -> AsyncIterator[Wire]:
    """Run a server object in a task of its own; what it raises ends the connection and nothing else."""
    from mcp.shared.memory import create_client_server_memory_streams

    actual = getattr(server, "_lowlevel_server", server)  # MCPServer wraps a low-level Server
    async with create_client_server_memory_streams() as (ours, theirs):
        wire = StreamWire(scrub, *ours)
        done = trio.Event()

        async def serve() -> None:
            try:
                await actual.run(*theirs, actual.create_initialization_options())
            except Exception as error:
                wire.cause = f"the in-memory server raised {leaf_of(error)}"
            finally:
                done.set()
                await _close_quietly(*theirs)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve)
            try:
                yield wire
            finally:
                with trio.move_on_after(MEMORY_GRACE, shield=True):
                    await _close_quietly(ours[1], theirs[1])
                    await done.wait()
                nursery.cancel_scope.cancel()


async def _close_quietly(*streams: Any) -> None:
    for stream in streams:
        with contextlib.suppress(Exception):
            await stream.aclose()
