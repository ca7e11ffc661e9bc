"""A line to one ready server: what calls go through, in the caller's own task.

Calls bypass mailboxes. The line counts them, so that an orderly stop can let them finish, and turns the end of the
connection into what the caller should know: `ServerDied` when it was lost, `ServerUnavailable` when we closed it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import trio
from attrs import frozen

from .model.errors import ServerDied, ServerUnavailable
from .model.phase import predicate
from .ports import Connection, ConnectionLost, Progress

__all__ = ["Line", "Stop"]


@frozen
class Stop:
    """The stop message a server actor understands: why, and how many seconds calls in flight may still take."""

    reason: str
    drain: float


class Line:
    """The way to one incarnation of a server.

    Args:
        server: its name.
        generation: of the incarnation.
        connection: ready: the handshake is done and the first list is in.

    Attributes:
        lost: a caller was told that the server died; the snapshot may say so a few steps later.
    """

    def __init__(self, server: str, generation: int, connection: Connection) -> None:
        self.server = server
        self.generation = generation
        self.connection = connection
        self.in_flight = 0
        self.closing: str | None = None
        self.lost = False
        self._idle = trio.Event()

    async def call(self, bare: str, arguments: Mapping[str, Any], progress: Progress | None) -> Any:
        """Call a tool.

        Args:
            bare: the server's own name of the tool.
            arguments: as JSON values.
            progress: called for each progress notification, or None.

        Returns:
            The ``mcp`` ``CallToolResult``.

        Raises:
            ServerDied: the connection was lost before the answer.
            ServerUnavailable: the line is closing, or was closed before the answer; or the server wants a login.
        """
        if self.closing is not None:
            raise ServerUnavailable(self.server, self.closing)
        self.in_flight += 1
        try:
            return await self.connection.call_tool(bare, arguments, progress)
        except ConnectionLost as lost:
            if self.closing is not None:
                raise ServerUnavailable(self.server, self.closing) from None
            loss = self.connection.loss
            if loss is not None and loss.needs_auth:
                raise ServerUnavailable(self.server, f"it {predicate('needs_auth')}: {lost.reason}") from None
            self.lost = True
            raise ServerDied(self.server, lost.reason) from None
        finally:
            self.in_flight -= 1
            if not self.in_flight:
                self._idle.set()

    @property
    def renewing(self) -> bool:
        """Whether it ended because its session did: another one is opened at once, and a new call may wait for that."""
        loss = self.connection.loss
        return loss is not None and loss.renew

    def close(self, reason: str) -> None:
        """Refuse new calls, and say why those still in flight end when the connection does."""
        if self.closing is None:
            self.closing = reason

    async def drain(self, seconds: float) -> None:
        """Wait until no call is in flight, at most ``seconds``. A checkpoint."""
        with trio.move_on_after(seconds):
            while self.in_flight:
                self._idle = trio.Event()
                await self._idle.wait()
        await trio.lowlevel.checkpoint()
