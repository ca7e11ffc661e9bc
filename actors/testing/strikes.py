"""What every delivery of faults has in common: the faults that wait, by place, and the notes of what happened.

Theory of operation
    A `Delivery` is a `Connect` around scripted servers. At each site of a connection's life it asks whether a fault is due: the
    oldest of that (server, site) whose time has come is taken and carried out, once. A fault of a server that acts by itself
    (`faults.SPONTANEOUS`) is carried out by `Delivery.run_spontaneous` at its time, if the server is connected. After
    `Delivery.heal` nothing strikes any more. All that happens is noted as (seconds, server, connection, what), for the oracle.

    There are three: `delivery.FaultyServers` stands in for whole connections, `wires.FaultyWires` for the bytes below them,
    `http.FaultyHttp` for servers that are reached over HTTP.
"""

from __future__ import annotations

import random
from abc import ABC, abstractmethod
from collections import Counter, defaultdict, deque
from collections.abc import Callable, Mapping
from typing import Protocol

import trio
from attrs import evolve, frozen

from ..model.config import ServerEntry
from ..ports import Client, EraMemory, Opening
from .faults import CORE, SPONTANEOUS, Fault, FaultPlan
from .scripted import ScriptedServers

__all__ = ["DEATHS", "REASONS", "Acting", "Delivery", "InjectedCrash", "Note", "Queues", "late"]

REASONS = {
    "crash": "killed by signal 9",
    "flaky": "exited with code 1",
    "clean_exit": "exited with code 0",
    "reset": "connection reset by peer",
    "garbage_frame": "it answered with garbage",
    "limit": "closed its stdout",
}
"""Kind → what is told of the end that it makes."""

DEATHS = frozenset({"crash", "clean_exit", "reset", "flaky"})
"""The kinds that end a connection."""


class InjectedCrash(Exception):
    """A core actor, or the closing of a connection, was made to crash."""


@frozen
class Note:
    """Something that happened to a server.

    Args:
        at: trio clock seconds.
        server: its name.
        connection: which of its connections, from 1.
        what: ``spawn``, ``connected``, ``listed``, ``sent``, ``replied``, ``deaf`` (it
            reads no more), ``struck`` (a call, by a fault), ``left`` (the caller of one has closed its response), ``open`` (a
            response was not closed by the end), ``lost``, ``end``, ``fault``.
        detail: of it: the reason, the token of the call, the fault.
    """

    at: float
    server: str
    connection: int
    what: str
    detail: str = ""


class Queues:
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


def late(fault: Fault, size: float) -> float | None:
    """Seconds of delay that a fault means, or None when it means something else.

    Args:
        fault: any.
        size: of what is delayed, for the kinds whose delay grows with it.
    """
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


class Acting(Protocol):
    """One live connection, as a delivery sees it."""

    async def act(self, fault: Fault) -> None:
        """Do what a fault has the server do by itself; a checkpoint only if that takes time."""
        ...

    def heal(self) -> None:
        """What was told until now goes wrong no more. Never waits."""
        ...


class Delivery(ABC):
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
        self._faults = faults
        self._queues = Queues(FaultPlan(tuple(fault for fault in faults if fault.site not in CORE)))
        self._numbers: Counter[str] = Counter()

    @abstractmethod
    def __call__(
        self, entry: ServerEntry, *, eras: EraMemory, on_list_changed: Callable[[], None], client: Client | None = None
    ) -> Opening:
        """Connect with faults; see `ports.Connect`."""

    @abstractmethod
    def acting(self) -> Mapping[str, Acting]:
        """What is connected now, by server name."""

    @abstractmethod
    def kill(self, server: str, reason: str) -> bool:
        """End a server's connection at this instant; returns whether it was connected. Never waits."""

    def heal(self) -> None:
        """Nothing that was told until now strikes any more; every server announces its list: it may have been a faulty one."""
        self._queues.clear()
        for connection in tuple(self.acting().values()):
            connection.heal()

    async def run_spontaneous(self) -> None:
        """Carry out the faults of servers that act by themselves, each at its time; returns after the last."""
        for fault in self._faults:
            if fault.site in SPONTANEOUS:
                await self.act(fault)

    async def act(self, fault: Fault) -> None:
        """Wait for the time of a fault of a server that acts by itself, and carry it out, if the server is connected then."""
        await trio.sleep_until(fault.at)
        connection = self.acting().get(fault.server)
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
