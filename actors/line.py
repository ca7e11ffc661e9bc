"""A line to one ready server: what calls go through, in the caller's own task.

Calls bypass mailboxes. The line counts them, so that an orderly stop can let them finish, and turns the end of the
connection into what the caller should know: `ServerDied` when it was lost, `ServerUnavailable` when we closed it.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from contextlib import nullcontext
from typing import Any

import trio
from attrs import frozen

from .model.errors import ServerDied, ServerUnavailable
from .model.phase import predicate
from .ports import Client, Connection, ConnectionLost, Expiry, Patience, Progress

__all__ = ["Line", "Stop", "own_meta"]


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
        client: what the server may ask of us, or None.

    Attributes:
        lost: a caller was told that the server died; the snapshot may say so a few steps later.
    """

    def __init__(self, server: str, generation: int, connection: Connection, client: Client | None = None) -> None:
        self.client = client
        self.server = server
        self.generation = generation
        self.connection = connection
        self.in_flight = 0
        self.closing: str | None = None
        self.lost = False
        self._idle = trio.Event()
        self._directly: Callable[..., Awaitable[Any]] | None = getattr(connection, "call_directly", None)

    async def call(
        self,
        bare: str,
        arguments: Mapping[str, Any],
        progress: Progress | None,
        *,
        patience: Patience | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call a tool.

        Args:
            bare: the server's own name of the tool.
            arguments: as JSON values.
            progress: called for each progress notification, or None.
            patience: stands still while the server waits for an answer of ours; or None.
            meta: for the request's ``_meta``, or None.

        Returns:
            The ``mcp`` ``CallToolResult``.

        Raises:
            ServerDied: the connection was lost before the answer.
            ServerUnavailable: the line is closing, or was closed before the answer; or the server wants a login.
        """
        more = {} if meta is None else {"meta": own_meta(meta)}
        return await self.use(lambda: self.connection.call_tool(bare, arguments, progress, **more), patience)

    @property
    def direct(self) -> bool:
        """Whether `call_directly` is to be had now."""
        return self._directly is not None and self.closing is None and not self.renewing

    async def call_directly(
        self, bare: str, arguments: Mapping[str, Any], expiry: Expiry, meta: Mapping[str, Any] | None
    ) -> Any:
        """As `call`, by a deadline that is no scope; only while the line is `direct`.

        Raises:
            Expired: the deadline is past.
            ServerDied, ServerUnavailable: as there.
        """
        assert self._directly is not None
        self.in_flight += 1
        try:
            if self.client is None:
                return await self._directly(bare, arguments, expiry, own_meta(meta))
            with self.client.holding(expiry):
                return await self._directly(bare, arguments, expiry, own_meta(meta))
        except ConnectionLost as lost:
            raise self._why(lost) from None
        finally:
            self._one_less()

    async def use(self, work: Callable[[], Awaitable[Any]], patience: Patience | None = None) -> Any:
        """Ask something of the connection, which is counted as a call; raises as `call`."""
        if self.closing is not None:
            raise ServerUnavailable(self.server, self.closing)
        self.in_flight += 1
        try:
            with nullcontext() if self.client is None or patience is None else self.client.holding(patience):
                return await work()
        except ConnectionLost as lost:
            raise self._why(lost) from None
        finally:
            self._one_less()

    def _why(self, lost: ConnectionLost) -> ServerDied | ServerUnavailable:
        """What a caller is told of the end of the connection."""
        if self.closing is not None:
            return ServerUnavailable(self.server, self.closing)
        loss = self.connection.loss
        if loss is not None and loss.needs_auth:
            return ServerUnavailable(self.server, f"it {predicate('needs_auth')}: {lost.reason}")
        self.lost = True
        return ServerDied(self.server, lost.reason)

    def _one_less(self) -> None:
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


def own_meta(meta: Mapping[str, Any] | None) -> Mapping[str, Any] | None:
    """A program's ``_meta`` without the progress token, which is ours: its own might be that of another call."""
    if meta is None or "progressToken" not in meta:
        return meta
    return {key: value for key, value in meta.items() if key != "progressToken"}
