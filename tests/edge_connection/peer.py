"""A scripted peer at the other end of two real pipes: it sees each message a dispatcher writes, and says what a test wants."""

from __future__ import annotations

import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio


class Peer:
    """The server's side, by hand."""

    def __init__(self) -> None:
        their_read, our_write = os.pipe()
        our_read, their_write = os.pipe()
        self.client_receive = trio.lowlevel.FdStream(our_read)
        self.client_send = trio.lowlevel.FdStream(our_write)
        self._receive = trio.lowlevel.FdStream(their_read)
        self._send = trio.lowlevel.FdStream(their_write)
        self._rest = b""

    async def next(self) -> dict[str, Any]:
        """The next message the client wrote."""
        while b"\n" not in self._rest:
            data = await self._receive.receive_some(1_000_000)
            assert data, "the client closed its end"
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        message: dict[str, Any] = json.loads(line)
        return message

    async def ended(self) -> bool:
        """Whether the client closed its end without another message."""
        return not self._rest and not await self._receive.receive_some(1)

    async def raw(self, data: bytes) -> None:
        await self._send.send_all(data)

    async def send(self, **message: Any) -> None:
        await self.raw(json.dumps({"jsonrpc": "2.0", **message}).encode() + b"\n")

    async def reply(self, request: dict[str, Any], **result: Any) -> None:
        await self.send(id=request["id"], result=result)

    async def stop_writing(self) -> None:
        await self._send.aclose()

    async def stop_reading(self) -> None:
        await self._receive.aclose()

    async def aclose(self) -> None:
        for stream in (self.client_receive, self.client_send, self._receive, self._send):
            await stream.aclose()


@asynccontextmanager
async def open_peer() -> AsyncIterator[Peer]:
    peer = Peer()
    try:
        yield peer
    finally:
        with trio.CancelScope(shield=True):
            await peer.aclose()
