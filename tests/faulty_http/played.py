"""A network in memory: a faulty server and the real HTTP client at the ends of a pipe, so that a host runs in virtual time."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from types import SimpleNamespace
from typing import Any

import httpcore2
import httpx2
import trio
import trio.testing
from playbill.actors.edge.wire.remote.opening import open_remote
from playbill.actors.edge.wire.session import make_connect
from playbill.actors.model.config import ServerEntry
from playbill.actors.ports import Connect

from .server import Web

__all__ = ["Network"]


class Network(httpcore2.AsyncNetworkBackend):
    """Names of hosts, each with a server; one that is not there, or is down, refuses.

    Attributes:
        up: whether a host takes connections.
    """

    def __init__(self, nursery: trio.Nursery, **webs: Web) -> None:
        self.webs = webs
        self.up = dict.fromkeys(webs, True)
        self._nursery = nursery
        self._scopes: dict[str, set[trio.CancelScope]] = {name: set() for name in webs}

    def connect(self) -> Connect:
        """What a host is given."""

        def expand(entry: ServerEntry) -> Any:
            headers, none = dict(entry.headers), None
            return SimpleNamespace(
                command=none, args=(), env={}, cwd=none, url=entry.url, headers=headers, secrets=set[str]()
            )

        def open_wire(entry: ServerEntry, launch: Any, scrub: Callable[[str], str], **more: Any) -> Any:
            older = more.get("older", False) or entry.type == "sse"
            return open_remote(launch, scrub, older=older, max_message=more["max_line"], transport=self._transport)

        return make_connect(expand=expand, open_wire=open_wire)

    def go_down(self, name: str) -> None:
        """End a server: its connections, and its sessions."""
        self.up[name] = False
        self.webs[name].forget()
        for scope in self._scopes[name]:
            scope.cancel()

    def _transport(self) -> httpx2.AsyncHTTPTransport:
        transport = httpx2.AsyncHTTPTransport()
        transport._pool = httpcore2.AsyncConnectionPool(network_backend=self, max_connections=100, keepalive_expiry=5.0)
        return transport

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,
        local_address: str | None = None,
        socket_options: Iterable[Any] | None = None,
    ) -> httpcore2.AsyncNetworkStream:
        await trio.lowlevel.checkpoint()
        if not self.up.get(host, False):
            raise httpcore2.ConnectError("connection refused")
        ours, theirs = trio.testing.memory_stream_pair()
        end = _Stream(ours)
        self._nursery.start_soon(self._serve, host, theirs, end)
        return end

    async def _serve(self, host: str, stream: Any, end: _Stream) -> None:
        stream.setsockopt = lambda *_: None
        with trio.CancelScope() as scope:
            self._scopes[host].add(scope)
            await self.webs[host]._connection(stream)
        end.over = True
        self._scopes[host].discard(scope)


class _Stream(httpcore2.AsyncNetworkStream):
    def __init__(self, stream: Any) -> None:
        self._stream = stream
        self.over = False

    async def read(self, max_bytes: int, timeout: float | None = None) -> bytes:
        try:
            data: bytes = await self._stream.receive_some(max_bytes)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise httpcore2.ReadError(str(error)) from error
        return data

    async def write(self, buffer: bytes, timeout: float | None = None) -> None:
        try:
            await self._stream.send_all(buffer)
        except (trio.BrokenResourceError, trio.ClosedResourceError) as error:
            raise httpcore2.WriteError(str(error)) from error

    async def aclose(self) -> None:
        await self._stream.aclose()

    def get_extra_info(self, info: str) -> Any:
        return self.over if info == "is_readable" else None  # an idle one that is has ended
