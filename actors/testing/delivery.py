"""How faults reach a host: a decorator over scripted servers, and the sites of the core actors. No global, no patching.

Theory of operation
    `FaultyServers` is a `Connect` around `ScriptedServers`. At each site of a connection's life it asks its plan whether a
    fault is due: the oldest of that (server, site) whose time has come is taken and carried out, once. A fault of a server
    that acts by itself (`faults.SPONTANEOUS`) is carried out by `run_spontaneous` at its time, if the server is connected.
    `CoreFaults` does the same for the core actors.

    After `heal` nothing strikes any more. All that happens is noted as (seconds, server, connection, what), for the oracle.
"""

from __future__ import annotations

import random
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping
from types import TracebackType
from typing import Any

import trio
from attrs import evolve, frozen

from ..model.config import ServerEntry
from ..model.status import ToolDef
from ..ports import Connection, ConnectionFailed, ConnectionLost, EraMemory, ListFailed, Listing, Opening, Progress
from .faults import CORE, SPONTANEOUS, Fault, FaultPlan
from .scripted import ScriptedConnection, ScriptedServers

__all__ = ["CoreFaults", "FaultyServers", "InjectedCrash", "Note"]

_REASONS = {
    "crash": "killed by signal 9",
    "flaky": "exited with code 1",
    "clean_exit": "exited with code 0",
    "reset": "connection reset by peer",
    "garbage_frame": "it answered with garbage",
}


class InjectedCrash(Exception):
    """A core actor, or the closing of a connection, was made to crash."""


@frozen
class Note:
    """Something that happened to a server.

    Args:
        at: trio clock seconds.
        server: its name.
        connection: which of its connections, from 1.
        what: ``spawn``, ``connected``, ``listed``, ``sent``, ``replied``, ``lost``, ``end``, ``fault``.
        detail: of it: the reason, the token of the call, the fault.
    """

    at: float
    server: str
    connection: int
    what: str
    detail: str = ""


class _Queues:
    """The faults that have not struck yet, by (server, site)."""

    def __init__(self, faults: FaultPlan) -> None:
        self._waiting: defaultdict[tuple[str, str], deque[Fault]] = defaultdict(deque)
        for fault in faults:
            self.add(fault)

    def add(self, fault: Fault) -> None:
        """Have one more wait, behind those of the same place whose time is not later."""
        queue = self._waiting[fault.server, fault.site]
        queue.append(fault)
        self._waiting[fault.server, fault.site] = deque(sorted(queue, key=lambda each: each.at))

    def clear(self) -> None:
        """Have none wait."""
        self._waiting.clear()

    def waiting(self) -> tuple[Fault, ...]:
        """All that have not struck yet (a flaky one: not often enough), by time."""
        return tuple(FaultPlan(tuple(fault for queue in self._waiting.values() for fault in queue)))

    def take(self, server: str, site: str) -> Fault | None:
        """The fault that is due there now, or None. A flaky one stays until it has struck ``arg`` times."""
        queue = self._waiting.get((server, site))
        if not queue or queue[0].at > trio.current_time():
            return None
        fault = queue.popleft()
        if fault.kind == "flaky" and fault.arg > 1:
            queue.appendleft(evolve(fault, arg=fault.arg - 1))
        return fault


def _late(fault: Fault, size: float) -> float | None:
    """Seconds of delay that a fault means, or None when it means something else."""
    match fault.kind:
        case "latency" | "stalled_mailbox":
            return fault.arg
        case "jitter":
            # Of its own generator: what a fault draws must not depend on what else has drawn.
            return fault.arg * (0.5 + random.Random(repr(fault)).random())
        case "bandwidth":
            return fault.arg * size
        case _:
            return None


class CoreFaults:
    """`ports.Sites` that make core actors crash or dawdle by plan."""

    def __init__(self, faults: FaultPlan) -> None:
        self.struck: list[tuple[float, Fault]] = []
        self._queues = _Queues(FaultPlan(tuple(fault for fault in faults if fault.site in CORE)))

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
        if (seconds := _late(fault, 1)) is not None:
            await trio.sleep(seconds)
        else:
            raise InjectedCrash(f"{who} at {site}")


class FaultyServers:
    """A `Connect` over scripted servers, with faults.

    Args:
        servers: the scripts.
        faults: what goes wrong; those of core actors are ignored here.

    Attributes:
        notes: all that happened, in order.
    """

    def __init__(self, servers: ScriptedServers, faults: FaultPlan) -> None:
        self.servers = servers
        self.notes: list[Note] = []
        self.connections: dict[str, FaultyConnection] = {}
        self._faults = faults
        self._queues = _Queues(FaultPlan(tuple(fault for fault in faults if fault.site not in CORE)))
        self._numbers: Counter[str] = Counter()

    def __call__(self, entry: ServerEntry, *, eras: EraMemory, on_list_changed: Callable[[], None]) -> Opening:
        """Connect with faults; see `ports.Connect`."""
        inner = self.servers(entry, eras=eras, on_list_changed=on_list_changed)
        return _FaultyOpening(self, entry.name, inner, on_list_changed)

    def heal(self) -> None:
        """Nothing that was told until now strikes any more; every server announces its list: it may have been a faulty one."""
        self._queues.clear()
        for connection in self.connections.values():
            connection.limit = None
            connection.announce()

    async def run_spontaneous(self) -> None:
        """Carry out the faults of servers that act by themselves, each at its time; returns after the last."""
        for fault in self._faults:
            if fault.site in SPONTANEOUS:
                await self.act(fault)

    async def act(self, fault: Fault) -> None:
        """Wait for the time of a fault of a server that acts by itself, and carry it out, if the server is connected then."""
        await trio.sleep_until(fault.at)
        connection = self.connections.get(fault.server)
        if connection is not None and self._queues.take(fault.server, fault.site) is not None:
            await connection.act(fault)

    def add(self, fault: Fault) -> None:
        """Have one more fault wait; one of a server that acts by itself is given to `act` as well."""
        self._queues.add(fault)

    def waiting(self) -> tuple[Fault, ...]:
        """The faults that have not struck."""
        return self._queues.waiting()

    def number(self, server: str) -> int:
        """A number for a server's next connection."""
        self._numbers[server] += 1
        return self._numbers[server]

    def note(self, server: str, connection: int, what: str, detail: str = "") -> None:
        """Note something of now."""
        self.notes.append(Note(trio.current_time(), server, connection, what, detail))

    def due(self, server: str, number: int, site: str) -> Fault | None:
        """Take the fault that is due, and note it."""
        fault = self._queues.take(server, site)
        if fault is not None:
            self.note(server, number, "fault", f"{site} {fault.kind}")
        return fault


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

    def announce(self) -> None:
        """Announce a change of the list, while connected."""
        self.inner.announce()

    async def wait_lost(self) -> str:
        """As `Connection.wait_lost`."""
        return await self.inner.wait_lost()

    def stderr_tail(self) -> str:
        """As `Connection.stderr_tail`."""
        return self.inner.stderr_tail()

    def lose(self, fault: Fault) -> None:
        """End the connection as a fault has it."""
        reason = _REASONS[fault.kind]
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
        if (seconds := _late(fault, size)) is not None:
            await trio.sleep(seconds)
        elif fault.kind == "hang":
            await trio.sleep_forever()
        elif fault.kind == "slice":
            for _ in range(int(fault.arg)):
                await trio.sleep(0.001)
        elif fault.kind in ("crash", "clean_exit", "reset", "flaky"):
            self.lose(fault)
            raise ConnectionLost(_REASONS[fault.kind])
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
                raise ListFailed(_REASONS["garbage_frame"])
            if fault is not None and fault.kind == "duplicate_frame":
                self.announce()
            if fault is not None and fault.kind == "huge_listing":
                extra = _many(fault)
            self.owner.note(self.server, self.number, "listed", str(len(listing.tools) + len(extra)))
            return Listing((*listing.tools, *extra), listing.problems)

        listing: Listing = await self.inner.until_lost(work)
        return listing

    async def call_tool(self, bare: str, arguments: Mapping[str, Any], progress: Progress | None) -> Any:
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
            reply = await self.inner.call_tool(bare, arguments, progress)
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
    def __init__(self, owner: FaultyServers, server: str, inner: Opening, changed: Callable[[], None]) -> None:
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
        await trio.sleep_forever() if fault.kind == "hang" else await trio.sleep(_late(fault, 1) or 0.0)

    async def _shake_hands(self) -> None:
        assert self._connection is not None
        await self._connection.strike("connect")
        fault = await self._connection.strike("handshake")
        if fault is not None:
            raise ConnectionFailed(_REASONS[fault.kind], stderr_tail=_REASONS[fault.kind])

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
                await trio.sleep(fault.arg if "_" in fault.kind else _late(fault, 1) or 0.0)
            await self._inner.__aexit__(None, None, None)
            if fault is not None and fault.kind == "slow_teardown":
                await trio.sleep(fault.arg)
        owner.note(server, self._number, "end")
        if fault is not None and fault.kind == "crash":
            raise InjectedCrash(f"closing {server}")
