"""How faults reach a host: a decorator over scripted servers, and the sites of the core actors. No global, no patching.

Theory of operation
    `FaultyServers` is a `Delivery` (see `strikes`) that stands in for whole connections: a call comes to a server or does not,
    and an answer is a value. `CoreFaults` does the same for the core actors. The bytes below are for `wires`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

import trio

from ..model.config import ServerEntry
from ..model.status import ToolDef
from ..ports import (
    Client,
    Connection,
    ConnectionFailed,
    ConnectionLost,
    EraMemory,
    ListFailed,
    Listing,
    Loss,
    Opening,
    Progress,
)
from .faults import CORE, Fault, FaultPlan
from .scripted import ScriptedConnection, ScriptedServers
from .strikes import DEATHS, REASONS, Delivery, InjectedCrash, Note, Queues, late

__all__ = ["CoreFaults", "FaultyServers", "InjectedCrash", "Note"]


class CoreFaults:
    """`ports.Sites` that make core actors crash or dawdle by plan."""

    def __init__(self, faults: FaultPlan) -> None:
        self.struck: list[tuple[float, Fault]] = []
        self._queues = Queues(FaultPlan(tuple(fault for fault in faults if fault.site in CORE)))

    def heal(self) -> None:
        """Nothing that was told until now strikes any more."""
        self._queues.clear()

    def add(self, fault: Fault) -> None:
        """Have one more fault wait."""
        self._queues.add(fault)

    def waiting(self) -> tuple[Fault, ...]:
        """The faults that have not struck."""
        return self._queues.waiting()

    async def hit(self, site: str, who: str) -> None:
        """A core actor comes to a site; a checkpoint only if it is delayed there.

        Raises:
            InjectedCrash: it is to crash here.
        """
        fault = self._queues.take("", site)
        if fault is None:
            return
        self.struck.append((trio.current_time(), fault))
        if (seconds := late(fault, 1)) is not None:
            await trio.sleep(seconds)
        else:
            raise InjectedCrash(f"{who} at {site}")


class FaultyServers(Delivery):
    """A `Connect` over scripted servers, with faults.

    Args:
        servers: the scripts.
        faults: what goes wrong; those of core actors are ignored here.

    Attributes:
        notes: all that happened, in order.
        connections: those that are open now, by server name.
    """

    def __init__(self, servers: ScriptedServers, faults: FaultPlan) -> None:
        super().__init__(servers, faults)
        self.connections: dict[str, FaultyConnection] = {}

    def __call__(
        self, entry: ServerEntry, *, eras: EraMemory, on_list_changed: Callable[[], None], client: Client | None = None
    ) -> Opening:
        """Connect with faults; see `ports.Connect`."""
        inner = self.servers(entry, eras=eras, on_list_changed=on_list_changed, client=client)
        return _FaultyOpening(self, entry.name, inner)

    def acting(self) -> Mapping[str, FaultyConnection]:
        """As `Delivery.acting`."""
        return self.connections

    def kill(self, server: str, reason: str) -> bool:
        """As `Delivery.kill`."""
        connection = self.servers.live.get(server)
        if connection is not None:
            connection.lose(reason)
        return connection is not None


class FaultyConnection:
    """One live connection to a scripted server, with faults."""

    def __init__(self, owner: FaultyServers, server: str, number: int, inner: ScriptedConnection) -> None:
        self.owner = owner
        self.server = server
        self.number = number
        self.inner = inner
        self.limit: trio.Semaphore | None = None
        self._extra: tuple[ToolDef, ...] = ()

    @property
    def pid(self) -> int | None:
        """As `Connection.pid`."""
        return self.inner.pid

    @property
    def protocol_version(self) -> str | None:
        """As `Connection.protocol_version`."""
        return self.inner.protocol_version

    @property
    def kind(self) -> str | None:
        """As `Connection.kind`."""
        return self.inner.kind

    def announce(self) -> None:
        """Announce a change of the list, while connected."""
        self.inner.announce()

    def heal(self) -> None:
        """As `Acting.heal`."""
        self.limit = None
        self.announce()

    async def wait_lost(self) -> str:
        """As `Connection.wait_lost`."""
        return await self.inner.wait_lost()

    @property
    def loss(self) -> Loss | None:
        """As `Connection.loss`."""
        return self.inner.loss

    def stderr_tail(self) -> str:
        """As `Connection.stderr_tail`."""
        return self.inner.stderr_tail()

    def lose(self, fault: Fault) -> None:
        """End the connection as a fault has it."""
        reason = REASONS[fault.kind]
        self.owner.note(self.server, self.number, "lost", reason)
        self.inner.lose(reason)

    async def strike(self, site: str, size: float = 1) -> Fault | None:
        """Carry out what is due at a site, if it is a delay or a death.

        Returns:
            The fault when it is for the caller to carry out, else None.

        Raises:
            ConnectionLost: it was a death.
        """
        fault = self.owner.due(self.server, self.number, site)
        if fault is None:
            return None
        if (seconds := late(fault, size)) is not None:
            await trio.sleep(seconds)
        elif fault.kind == "hang":
            await trio.sleep_forever()
        elif fault.kind == "slice":
            for _ in range(int(fault.arg)):
                await trio.sleep(0.001)
        elif fault.kind in DEATHS:
            self.lose(fault)
            raise ConnectionLost(REASONS[fault.kind])
        else:
            return fault
        return None

    async def act(self, fault: Fault) -> None:
        """Do what a fault has the server do by itself; a checkpoint only if that takes time."""
        self.owner.note(self.server, self.number, "fault", f"{fault.site} {fault.kind}")
        if fault.site == "idle":
            self.lose(fault)
        elif fault.kind == "flaky":
            for _ in range(100 * int(fault.arg)):
                self.announce()
                await trio.sleep(0.001)
        else:
            if fault.kind == "huge_listing":
                self._extra = _many(fault)
            self.announce()
            if fault.kind == "duplicate_frame":
                self.announce()
            if fault.kind == "crash":
                self.lose(fault)

    async def list_tools(self) -> Listing:
        """As `Connection.list_tools`, with faults."""

        async def work() -> Listing:
            fault = await self.strike("list", len(self.inner.script.tools))
            listing = await self.inner.list_tools()
            extra, self._extra = self._extra, ()
            if fault is not None and fault.kind == "garbage_frame":
                raise ListFailed(REASONS["garbage_frame"])
            if fault is not None and fault.kind == "duplicate_frame":
                self.announce()
            if fault is not None and fault.kind == "huge_listing":
                extra = _many(fault)
            self.owner.note(self.server, self.number, "listed", str(len(listing.tools) + len(extra)))
            return Listing((*listing.tools, *extra), listing.problems)

        listing: Listing = await self.inner.until_lost(work)
        return listing

    async def call_tool(
        self,
        bare: str,
        arguments: Mapping[str, Any],
        progress: Progress | None,
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> Any:
        """As `Connection.call_tool`, with faults."""
        token = str(arguments.get("token", ""))

        async def send() -> Any:
            fault = await self.strike("call_before")
            if fault is not None and fault.kind == "limit":
                self.limit = trio.Semaphore(int(fault.arg))
            if self.limit is None:
                return await answer()
            async with self.limit:
                return await answer()

        async def answer() -> Any:
            self.owner.note(self.server, self.number, "sent", token)
            await self.strike("call_after")
            reply = await self.inner.call_tool(bare, arguments, progress, meta=meta)
            fault = await self.strike("call_reply", len(repr(reply)) / 100)
            if fault is not None and fault.kind == "garbage_frame":
                # An answer that cannot be read is one that never comes.
                await trio.sleep_forever()
            self.owner.note(self.server, self.number, "replied", token)
            return reply

        return await self.inner.until_lost(send)


def _many(fault: Fault) -> tuple[ToolDef, ...]:
    return tuple(ToolDef(f"extra{n}") for n in range(int(fault.arg)))


class _FaultyOpening:
    def __init__(self, owner: FaultyServers, server: str, inner: Opening) -> None:
        self._owner = owner
        self._server = server
        self._inner = inner
        self._number = owner.number(server)
        self._connection: FaultyConnection | None = None

    def stderr_tail(self) -> str:
        return self._inner.stderr_tail()

    async def __aenter__(self) -> Connection:
        owner, server = self._owner, self._server
        owner.note(server, self._number, "spawn")
        entered = False
        try:
            await self._spawn()
            inner = await self._inner.__aenter__()
            entered = True
            assert isinstance(inner, ScriptedConnection)
            connection = self._connection = FaultyConnection(owner, server, self._number, inner)
            await inner.until_lost(self._shake_hands)
            owner.connections[server] = connection
            owner.note(server, self._number, "connected")
            return connection
        except BaseException as error:
            if entered:
                await self._leave(type(error), error, error.__traceback__)
            else:
                owner.note(server, self._number, "end")
            if isinstance(error, ConnectionLost):
                raise ConnectionFailed(error.reason, stderr_tail=error.reason) from None
            raise

    async def _spawn(self) -> None:
        fault = self._owner.due(self._server, self._number, "spawn")
        if fault is None:
            return
        if fault.kind in ("crash", "flaky"):
            await trio.lowlevel.checkpoint()
            raise ConnectionFailed("the process could not be started", stderr_tail="no such file")
        await trio.sleep_forever() if fault.kind == "hang" else await trio.sleep(late(fault, 1) or 0.0)

    async def _shake_hands(self) -> None:
        assert self._connection is not None
        await self._connection.strike("connect")
        fault = await self._connection.strike("handshake")
        if fault is not None:
            raise ConnectionFailed(REASONS[fault.kind], stderr_tail=REASONS[fault.kind])

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> bool | None:
        await self._leave(kind, error, trace)
        return None

    async def _leave(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        owner, server = self._owner, self._server
        if owner.connections.get(server) is self._connection:
            owner.connections.pop(server, None)
        if self._connection is not None:
            # Whoever still waits for an answer has it from now on.
            self._connection.inner.lose("closed")
        fault = owner.due(server, self._number, "close")
        # Leaving has its own deadlines, also when it is cancelled.
        with trio.CancelScope(shield=True):
            if fault is not None and fault.kind in ("slow_close", "refuses_to_die", "latency", "jitter"):
                await trio.sleep(fault.arg if "_" in fault.kind else late(fault, 1) or 0.0)
            await self._inner.__aexit__(None, None, None)
            if fault is not None and fault.kind == "slow_teardown":
                await trio.sleep(fault.arg)
        owner.note(server, self._number, "end")
        if fault is not None and fault.kind == "crash":
            raise InjectedCrash(f"closing {server}")
