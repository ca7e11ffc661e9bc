"""The body of a scripted response: said piece by piece, and broken off when a fault, or the end of its server, says so."""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator, Callable

import httpx2
import trio

__all__ = ["Body"]


class Body(httpx2.AsyncByteStream):
    """What a response says, piece by piece, until its end, its breaking off, or the client's leaving.

    Args:
        left: called once, when the client closes it.
        pieces: (seconds before it, bytes).
        ends: whether it ends after them.
        breaks: the reason for which it breaks off after them, or None.
    """

    def __init__(
        self,
        left: Callable[[Body], None],
        pieces: list[tuple[float, bytes]],
        *,
        ends: bool = True,
        breaks: str | None = None,
    ) -> None:
        self._left: Callable[[Body], None] | None = left
        self._pieces = deque(pieces)
        self._ends = ends
        self._breaks = breaks
        self._broken: str | None = None
        self._news = trio.lowlevel.ParkingLot()

    def put(self, data: bytes) -> None:
        """Say more. Never waits."""
        self._pieces.append((0.0, data))
        self._news.unpark_all()

    def end(self) -> None:
        """Say no more. Never waits."""
        self._ends = True
        self._news.unpark_all()

    def break_off(self, why: str) -> None:
        """Break off at this instant. Never waits."""
        self._broken = why
        self._news.unpark_all()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        await trio.lowlevel.checkpoint()
        while True:
            wait, data = self._pieces.popleft() if self._pieces else (0.0, b"")
            if wait:
                with trio.move_on_after(wait):
                    while self._broken is None:
                        await self._news.park()
            if self._broken is not None:
                raise httpx2.ReadError(self._broken)
            if data:
                yield data
            elif self._breaks is not None:
                raise httpx2.RemoteProtocolError(self._breaks)
            elif self._ends:
                return
            else:
                await self._news.park()

    async def aclose(self) -> None:
        """The client needs it no more. Not a checkpoint."""
        left, self._left = self._left, None
        if left is not None:
            left(self)
