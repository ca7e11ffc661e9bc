"""Faults in bytes: a `Connect` whose sessions are real, and whose servers are scripted ones at the other end of two pipes.

Theory of operation
    Everything of a connection above the process is the real thing: negotiation, the SDK's session, the dispatcher, the line
    splitter, listing. Below, instead of a process, is a `Peer` in a task of the same run, behind pipes of the operating system.
    Between the two stands its `Outlet`, which has the faults in it. trio looks whether a pipe is ready before a virtual clock
    may jump, so that a run is as exact, and as much the same each time, as one without pipes.

    Leaving a wire is what leaving a process is: the end of its stdin, `GRACE` later a request to end, `GRACE` later its death.

    It needs pipes that trio can wait for: not on Windows.
"""

from __future__ import annotations

import functools
import os
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from types import TracebackType
from typing import TYPE_CHECKING, Any, cast

import trio
from attrs import define, field

from ..edge.wire.sdk import import_sdk
from ..edge.wire.session import make_connect
from ..edge.wire.wire import HttpRefused, Refused, Wire
from ..model.config import ServerEntry
from ..ports import Client, Connection, EraMemory, Expiry, Listing, Loss, Opening, Progress
from .faults import Fault, FaultPlan
from .kit import ServerKit
from .peer import Peer
from .scripted import ScriptedServers
from .strikes import Delivery, InjectedCrash, late

if TYPE_CHECKING:
    from mcp.shared.dispatcher import Dispatcher

    from ..edge.wire.bridge import SdkPipes
    from ..edge.wire.dispatcher import PipeDispatcher

__all__ = ["GRACE", "MAX_LINE", "FaultyWires", "Noted", "PipeWire", "ScriptedLaunch", "WireServerKit"]

MAX_LINE = 256 * 1024
"""The longest line that a session accepts here, in bytes: a run need not carry more to see one that is too long."""

GRACE = 2.0
"""Seconds that a server has to leave by itself, and then to obey."""

LAST_READ = 0.25
"""Seconds given to the rest of what a server wrote that reads no more."""


@define
class ScriptedLaunch:
    """As `edge.wire.wire.Launch`; nothing is expanded."""

    command: str | None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(factory=dict)
    cwd: str | None = None
    url: str | None = None
    headers: Mapping[str, str] = field(factory=dict)
    secrets: set[str] = field(factory=set)


def _launch(entry: ServerEntry) -> ScriptedLaunch:
    return ScriptedLaunch(entry.command or entry.name)


class PipeWire(Wire):
    """A wire over two pipes and a scripted server behind them.

    Args:
        peer: that server.
        receive, send: the session's ends of the pipes.
        scrub: takes a text and returns it without secrets.
        native: our own dispatcher, or the SDK's behind a bridge.
        max_line: the longest line accepted, in bytes.
    """

    def __init__(
        self,
        peer: Peer,
        receive: trio.lowlevel.FdStream,
        send: trio.lowlevel.FdStream,
        scrub: Callable[[str], str],
        *,
        native: bool,
        max_line: int,
    ) -> None:
        super().__init__(scrub)
        self._peer = peer
        self._ends = (receive, send)
        self._native = native
        self._max_line = max_line
        self._pipes: PipeDispatcher | SdkPipes | None = None
        self._made = trio.Event()

    def dispatcher(self, on_list_changed: Callable[[], None]) -> Dispatcher[Any]:
        """As `Wire.dispatcher`."""
        if self._native:
            from ..edge.wire.dispatcher import PipeDispatcher

            pipes = PipeDispatcher(*self._ends, on_list_changed=on_list_changed, forward=False, max_line=self._max_line)
            self._pipes = pipes
            self._made.set()
            self.plain = True
            return pipes
        from ..edge.wire.bridge import SdkPipes

        bridge = SdkPipes(*self._ends, max_line=self._max_line)
        self._pipes = bridge
        self._made.set()
        return bridge.dispatcher

    def dispatcher_ended(self) -> None:
        """Nothing: `attend` sees it too, and knows more."""

    def stderr_tail(self) -> str:
        """What the script says."""
        return self._peer.script.says

    def read_something(self) -> bool:
        """Whether the server has taken any of what was written."""
        return self._pipes is not None and self._peer.read > 0

    @property
    def restartable(self) -> bool:
        """As a process is."""
        return True

    async def attend(self) -> None:
        """Find out that it ended, and say how."""
        await self._made.wait()
        pipes = self._pipes
        assert pipes is not None
        await pipes.failed.wait()
        with trio.move_on_after(LAST_READ):
            await pipes.closed.wait()
        pipes.shut()
        how = self._peer.how if self._peer.gone.is_set() else f"closed its {pipes.failed_on}"
        self._peer.lost(how)
        self.lose(f"the server {how}")


class FaultyWires(Delivery):
    """A `Connect` over the bytes of scripted servers, with faults.

    Making one imports the SDK, which takes about a second the first time.

    Args:
        servers: the scripts.
        faults: what goes wrong, of the kinds of `faults.WIRE_VALID`; those of core actors are ignored here.
        dispatcher: ``native`` or ``sdk``: what the sessions run over.
        max_line: the longest line that they accept, in bytes.

    Attributes:
        notes: all that happened, in order.
    """

    def __init__(
        self, servers: ScriptedServers, faults: FaultPlan, *, dispatcher: str = "native", max_line: int = MAX_LINE
    ) -> None:
        if os.name == "nt":
            raise RuntimeError("the wire level needs pipes that trio can wait for, which Windows has not")
        super().__init__(servers, faults)
        import_sdk()
        self.max_line = max_line
        self.peers: dict[str, Peer] = {}
        self._make = functools.partial(
            make_connect, expand=_launch, max_line=max_line, dispatcher="sdk" if dispatcher == "sdk" else "native"
        )

    def __call__(
        self, entry: ServerEntry, *, eras: EraMemory, on_list_changed: Callable[[], None], client: Client | None = None
    ) -> Opening:
        """Connect with faults; see `ports.Connect`."""
        number = self.number(entry.name)
        opening = _WireOpening(self, entry.name, number)
        connect = self._make(open_wire=functools.partial(_open, opening))
        opening.inner = connect(entry, eras=eras, on_list_changed=on_list_changed, client=client)
        return opening

    def acting(self) -> Mapping[str, Peer]:
        """As `Delivery.acting`; a server that still shakes hands does nothing by itself."""
        return {name: peer for name, peer in self.peers.items() if peer.up}

    def heal(self) -> None:
        """As `Delivery.heal`; it also frees what waits in a handshake."""
        super().heal()
        for peer in tuple(self.peers.values()):
            if not peer.up:
                peer.heal()

    def kill(self, server: str, reason: str) -> bool:
        """As `Delivery.kill`."""
        peer = self.acting().get(server)
        if peer is None:
            return False
        peer.lost(reason)
        peer.die(reason)
        return True


class WireServerKit(ServerKit):
    """A `ServerKit` whose servers speak MCP in bytes, with the faults of `faults.WIRE_VALID`.

    The results of calls are ``mcp`` values: ``structured_content`` is what a script's handler answered.
    """

    level = "wire"

    def _deliver(self) -> Delivery:
        return FaultyWires(self.scripted, FaultPlan())


class _WireOpening:
    """As `ports.Opening`: the real one, and what is noted of it."""

    inner: Opening

    def __init__(self, owner: FaultyWires, server: str, number: int) -> None:
        self.owner = owner
        self.server = server
        self.number = number
        self.peer: Peer | None = None

    def stderr_tail(self) -> str:
        return self.inner.stderr_tail()

    async def __aenter__(self) -> Connection:
        self.owner.note(self.server, self.number, "spawn")
        self.owner.servers.spawns[self.server] += 1
        try:
            connection = await self.inner.__aenter__()
        except BaseException:
            self.owner.note(self.server, self.number, "end")
            raise
        assert self.peer is not None
        if not self.peer.gone.is_set():
            self.peer.up = True
        self.owner.note(self.server, self.number, "connected")
        return Noted(self.owner, self.server, self.number, connection)

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> bool | None:
        if self.peer is not None:
            self.peer.up = False
        try:
            return await self.inner.__aexit__(kind, error, trace)
        finally:
            self.owner.note(self.server, self.number, "end")


class Noted:
    """A connection whose listings are noted."""

    def __init__(self, owner: Delivery, server: str, number: int, inner: Connection) -> None:
        self._owner = owner
        self._server = server
        self._number = number
        self._inner = inner

    @property
    def pid(self) -> int | None:
        return self._inner.pid

    @property
    def protocol_version(self) -> str | None:
        return self._inner.protocol_version

    @property
    def kind(self) -> str | None:
        return self._inner.kind

    async def list_tools(self) -> Listing:
        listing = await self._inner.list_tools()
        self._owner.note(self._server, self._number, "listed", str(len(listing.tools)))
        return listing

    async def call_tool(
        self,
        bare: str,
        arguments: Mapping[str, Any],
        progress: Progress | None,
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> Any:
        return await self._inner.call_tool(bare, arguments, progress, meta=meta)

    async def call_directly(
        self, bare: str, arguments: Mapping[str, Any], expiry: Expiry, meta: Mapping[str, Any] | None
    ) -> Any:
        return await cast("Any", self._inner).call_directly(bare, arguments, expiry, meta)

    async def wait_lost(self) -> str:
        return await self._inner.wait_lost()

    @property
    def loss(self) -> Loss | None:
        return self._inner.loss

    def stderr_tail(self) -> str:
        return self._inner.stderr_tail()


@asynccontextmanager
async def _open(
    opening: _WireOpening,
    entry: ServerEntry,
    launch: ScriptedLaunch,
    scrub: Callable[[str], str],
    *,
    warden: Any,
    native: bool,
    max_line: int,
) -> AsyncIterator[PipeWire]:
    """As `transports.open_wire`, to a scripted server."""
    owner, server = opening.owner, opening.server
    script = owner.servers.scripts.get(server)
    if script is None:
        raise HttpRefused(f"command not found: {launch.command}", False, futile=True)
    fault = owner.due(server, opening.number, "spawn")
    if fault is not None:
        await _spawn(fault)
    if script.refuse is not None:
        await trio.sleep(script.connect_delay)
        raise HttpRefused(script.refuse, script.needs_auth, script.futile)
    theirs, ours = _pipes()
    peer = opening.peer = owner.peers[server] = Peer(owner, server, opening.number, script, *theirs, max_line)
    wire = PipeWire(peer, *ours, scrub, native=native, max_line=max_line)
    with owner.servers.life(server):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(peer.run)
            nursery.start_soon(wire.attend)
            try:
                yield wire
            finally:
                peer.up = False
                with trio.CancelScope(shield=True):
                    await _leave(owner, peer, ours, graceful=wire.graceful)
                if owner.peers.get(server) is peer:
                    del owner.peers[server]
                nursery.cancel_scope.cancel()


def _pipes() -> tuple[
    tuple[trio.lowlevel.FdStream, trio.lowlevel.FdStream], tuple[trio.lowlevel.FdStream, trio.lowlevel.FdStream]
]:
    """The server's stdin and stdout, and what the session reads and writes."""
    stdin, send = (trio.lowlevel.FdStream(end) for end in os.pipe())
    receive, stdout = (trio.lowlevel.FdStream(end) for end in os.pipe())
    return (stdin, stdout), (receive, send)


async def _spawn(fault: Fault) -> None:
    if fault.kind in ("crash", "flaky"):
        await trio.lowlevel.checkpoint()
        raise Refused("the process could not be started")
    await trio.sleep_forever() if fault.kind == "hang" else await trio.sleep(late(fault, 1) or 0.0)


async def _leave(
    owner: FaultyWires,
    peer: Peer,
    ours: tuple[trio.lowlevel.FdStream, trio.lowlevel.FdStream],
    *,
    graceful: bool,
) -> None:
    """End a server, by the deadlines of a process; takes `GRACE` twice at most, and what a fault adds."""
    fault = owner.due(peer.server, peer.number, "close")
    kind = "" if fault is None else fault.kind
    if fault is not None and kind in ("slow_close", "latency", "jitter"):
        peer.lasting += late(fault, 1) or fault.arg
    peer.stubborn = kind == "refuses_to_die"
    receive, send = ours
    send.close()
    if graceful:
        with trio.move_on_after(GRACE):
            await peer.gone.wait()
        if not peer.gone.is_set():
            peer.terminate()
            with trio.move_on_after(GRACE):
                await peer.gone.wait()
    peer.die("killed by signal 9")
    receive.close()
    if fault is not None and kind == "slow_teardown":
        await trio.sleep(fault.arg)
    if kind == "crash":
        raise InjectedCrash(f"closing {peer.server}")
