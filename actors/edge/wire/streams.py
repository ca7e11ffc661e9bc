"""Wires over the SDK's own message streams: servers in memory.

The streams tell little of a failure: the SDK logs what happened and closes them. So the wire here has a place of its own that
sees the cause: the task that runs the server.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio

from .wire import Wire

if TYPE_CHECKING:
    from mcp.shared.dispatcher import Dispatcher

__all__ = ["StreamWire", "leaf_of", "open_memory"]

MEMORY_GRACE = 2.0
"""Seconds an in-memory server has to leave after its streams ended."""


class StreamWire(Wire):
    """A pair of the SDK's message streams under the SDK's own dispatcher."""

    def __init__(self, scrub: Callable[[str], str], read: Any, write: Any) -> None:
        super().__init__(scrub)
        self._streams = (read, write)
        self.cause = ""
        """What is known of a failure that the streams themselves do not tell."""

    def dispatcher(self, on_list_changed: Callable[[], None]) -> Dispatcher[Any]:
        from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher

        return JSONRPCDispatcher(*self._streams)

    def dispatcher_ended(self) -> None:
        self.lose(self.cause or "the server closed the connection")

    def last_words(self) -> str:
        return self.scrub(self.cause)


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


def leaf_of(error: BaseException) -> str:
    """The first exception in a group of groups, in words."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__
