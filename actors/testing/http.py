"""Faults in HTTP: a `Connect` whose sessions are real, and whose servers are scripted ones behind the client's transport.

Theory of operation
    Everything above the network is the real thing: negotiation, the SDK's session, the conversation over streamable HTTP, the
    HTTP client. Below, in place of the client's transport, is an `HttpPeer` in the same run: no socket, no thread, no byte of
    HTTP's own framing, so that a run is exact. What sockets and the pool of connections do is tested with real ones.

    A fault of a request strikes whichever comes to its site; a connection is lost when the session finds out, which is when
    it asks, or when the stream of changes breaks. `heal` gives forgotten sessions back.
"""

from __future__ import annotations

import functools
import json
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any

import trio

from ..edge.wire.sdk import import_sdk
from ..edge.wire.session import make_connect
from ..edge.wire.transports import open_wire
from ..edge.wire.wire import HttpRefused, Refused, Wire
from ..model.config import ServerEntry
from ..ports import Client, Connection, EraMemory, Opening
from .faults import FaultPlan
from .kit import ServerKit
from .scripted import ScriptedServers
from .strikes import Delivery
from .wires import MAX_LINE, Noted, ScriptedLaunch

if TYPE_CHECKING:
    from .http_peer import HttpPeer

__all__ = ["FaultyHttp", "HttpServerKit"]


def _launch(entry: ServerEntry) -> ScriptedLaunch:
    return ScriptedLaunch(None, url=f"http://{entry.name}.test/mcp")


class FaultyHttp(Delivery):
    """A `Connect` over HTTP to scripted servers, with faults.

    Making one imports the SDK, which takes about a second the first time.

    Args:
        servers: the scripts.
        faults: what goes wrong, of the kinds of `faults.HTTP_VALID`; those of core actors are ignored here.
        max_message: the longest message that a session accepts, in bytes.

    Attributes:
        notes: all that happened, in order.
    """

    def __init__(self, servers: ScriptedServers, faults: FaultPlan, *, max_message: int = MAX_LINE) -> None:
        super().__init__(servers, faults)
        import_sdk()
        import httpx2  # noqa: F401 — here, so that no thread imports it, which a clock that jumps would not wait for

        self.max_message = max_message
        self.peers: dict[str, HttpPeer] = {}
        self._make = functools.partial(make_connect, expand=_launch, max_line=max_message, dispatcher="native")

    def __call__(
        self, entry: ServerEntry, *, eras: EraMemory, on_list_changed: Callable[[], None], client: Client | None = None
    ) -> Opening:
        """Connect with faults; see `ports.Connect`."""
        opening = _HttpOpening(self, entry.name, self.number(entry.name))
        connect = self._make(open_wire=functools.partial(_open, opening))
        opening.inner = connect(entry, eras=eras, on_list_changed=on_list_changed, client=client)
        return opening

    def peer(self, server: str) -> HttpPeer:
        """The server of that name, which need not be connected to."""
        from .http_peer import HttpPeer

        if server not in self.peers:
            self.peers[server] = HttpPeer(self, server, self.max_message)
        return self.peers[server]

    def acting(self) -> Mapping[str, HttpPeer]:
        """As `Delivery.acting`."""
        return {name: peer for name, peer in self.peers.items() if peer.up}

    def heal(self) -> None:
        """As `Delivery.heal`, also for servers that are not connected to now."""
        super().heal()
        for peer in self.peers.values():
            if not peer.up:
                peer.heal()

    def kill(self, server: str, reason: str) -> bool:
        """As `Delivery.kill`: what is open breaks off with that reason, and its sessions are forgotten."""
        peer = self.acting().get(server)
        if peer is None:
            return False
        peer.forget()
        peer.break_all(reason)
        return True


class HttpServerKit(ServerKit):
    """A `ServerKit` whose servers are reached over HTTP, with the faults of `faults.HTTP_VALID`.

    The results of calls are ``mcp`` values: ``structured_content`` is what a script's handler answered.
    """

    level = "http"

    def _deliver(self) -> Delivery:
        return FaultyHttp(self.scripted, FaultPlan())


class _HttpOpening:
    """As `ports.Opening`: the real one, and what is noted of it."""

    inner: Opening

    def __init__(self, owner: FaultyHttp, server: str, number: int) -> None:
        self.owner = owner
        self.server = server
        self.number = number
        self.connected = False

    def stderr_tail(self) -> str:
        return self.inner.stderr_tail()

    def lost(self, reason: str) -> None:
        """Note that the connection is lost, once, if it is one."""
        if self.connected:
            self.leave()
            self.owner.note(self.server, self.number, "lost", reason)

    def leave(self) -> None:
        """It is no connection any more."""
        if self.connected:
            self.connected = self.owner.peer(self.server).up = False

    async def __aenter__(self) -> Connection:
        self.owner.note(self.server, self.number, "spawn")
        self.owner.servers.spawns[self.server] += 1
        try:
            connection = await self.inner.__aenter__()
        except BaseException:
            self._end()
            raise
        peer = self.owner.peer(self.server)
        peer.number, peer.up, self.connected = self.number, True, True
        self.owner.note(self.server, self.number, "connected")
        if (loss := connection.loss) is not None:
            self.lost(loss.reason)
        return Noted(self.owner, self.server, self.number, connection)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> bool | None:
        self.leave()
        try:
            return await self.inner.__aexit__(kind, error, trace)
        finally:
            self._end()

    def _end(self) -> None:
        peer = self.owner.peers.get(self.server)
        if peer is not None and self.number in peer.responses.values():
            self.owner.note(self.server, self.number, "open")
        self.owner.note(self.server, self.number, "end")


@asynccontextmanager
async def _open(
    opening: _HttpOpening,
    entry: ServerEntry,
    launch: ScriptedLaunch,
    scrub: Callable[[str], str],
    *,
    warden: Any,
    native: bool,
    max_line: int,
    older: bool = False,
) -> AsyncIterator[Wire]:
    """As `transports.open_wire`, to a scripted server."""
    import httpx2

    owner, server, number = opening.owner, opening.server, opening.number
    script = owner.servers.scripts.get(server)
    if script is None:
        raise Refused(f"no such host: {launch.url}")
    if script.refuse is not None:
        await trio.sleep(script.connect_delay)
        raise HttpRefused(script.refuse, script.needs_auth)
    peer = owner.peer(server)

    class Transport(httpx2.AsyncBaseTransport):
        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            body = await request.aread()
            message = json.loads(body) if body else {}
            return await peer.handle(number, request.method, request.headers, message)

    with owner.servers.life(server):
        async with (
            open_wire(entry, launch, scrub, max_line=max_line, older=older, network=Transport) as wire,
            trio.open_nursery() as nursery,
        ):

            async def watch() -> None:
                await wire.lost.wait()
                opening.lost(wire.reason)

            nursery.start_soon(watch)
            yield wire
            nursery.cancel_scope.cancel()
