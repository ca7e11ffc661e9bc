"""Scripted servers for one test, with faults by name: what the pytest fixture ``playbill_servers`` gives.

Theory of operation
    A `ServerKit` joins the parts of this package: `ScriptedServers`, the transport decorator `FaultyServers` around them, and
    the `CoreFaults`. Faults may be told before a host is opened (they wait, and their seconds count from its opening) or
    while it is open (their seconds count from now). A server that acts by itself needs a task for that; such tasks run in a
    nursery around the host, and what the body raises still leaves it as it is. The kit needs no pytest.
"""

from __future__ import annotations

import random
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from typing import Any, ClassVar

import trio
from attrs import evolve

from ..host import Host
from ..model.config import Config
from ..model.nearest import nearest
from ..model.status import ToolDef
from ..opening import open_host
from .delivery import CoreFaults, FaultyServers, Note
from .faults import CORE, SPONTANEOUS, Fault, FaultPlan, Level, args, check
from .scripted import Script, ScriptedServers
from .strikes import Delivery

__all__ = ["SHORT", "ServerKit"]

SHORT = {"call": "call_after"}
"""Sites by a shorter name: a server that fails at ``call`` has received the call and has not answered it."""


class ServerKit:
    """Scripted servers, and what goes wrong with them.

    Args:
        scripts: name → `Script`, or the names of its tools.

    Attributes:
        scripted: the servers themselves: their scripts, which may be changed at any time, spawns, live connections, log.
        level: where the faults of servers are delivered; `wires.WireServerKit` is the same on the wire.
    """

    level: ClassVar[Level] = "connection"

    def __init__(self, **scripts: Script | Iterable[str]) -> None:
        self.scripted = ScriptedServers(**scripts)
        self._faulty = self._deliver()
        self._core = CoreFaults(FaultPlan())
        self._pending: list[Fault] = []
        self._nursery: trio.Nursery | None = None

    def _deliver(self) -> Delivery:
        return FaultyServers(self.scripted, FaultPlan())

    def add(self, name: str, tools: Iterable[str | ToolDef] = (), **behaviour: Any) -> Script:
        """Add a server, or write the script of one anew.

        A server that is added while a host is open is not configured there yet: ``await host.plugin_add(name, name)``.

        Args:
            name: of the server.
            tools: names, or `ToolDef` values, of what it advertises.
            behaviour: the other fields of `Script`: delays in seconds, refusals, the handler of calls.

        Returns:
            Its script, which may be changed while it runs.

        Raises:
            TypeError: `Script` has no such field.
        """
        script = self.scripted.scripts[name] = Script(tuple(tools), **behaviour)  # type: ignore[arg-type]
        return script

    def fail(self, server: str, site: str, kind: str, *, after: float = 0.0, arg: float | None = None) -> None:
        """Have something go wrong, once: the first who comes to the site from then on is struck.

        Args:
            server: whom; empty for a site in the host's own core actors.
            site: where, a key of `faults.VALID`; ``call`` is short for ``call_after``.
            kind: what, one of the site's kinds.
            after: seconds from now, or from the opening of the host when it is not open yet.
            arg: how much, for the kinds that need it: seconds, times, pieces, calls or tools.

        Raises:
            ValueError: no such server is scripted; site and kind do not go together; the kind needs an ``arg``.
        """
        self._known(server)
        fault = Fault(after, server, SHORT.get(site, site), kind, arg or 0.0)
        check(fault, self.level)
        usual = args(fault.site, kind, self.level)[0]
        if usual and arg is None:
            raise ValueError(f"{kind!r} needs how much: arg={usual:g}, for example")
        self._tell(fault)

    def plan(self, faults: Iterable[Fault]) -> None:
        """Have all of a plan go wrong, such as one that was reported; its seconds count as ``after`` does.

        Raises:
            ValueError: a fault is of a server that is not scripted, or cannot be delivered here; then none of them is told.
        """
        every = tuple(faults)
        for fault in every:
            self._known(fault.server)
            check(fault, self.level)
        for fault in every:
            self._tell(fault)

    def kill(self, server: str, reason: str = "killed by signal 9") -> None:
        """End a server's connection at this instant, as a crash does. Never waits.

        Raises:
            ValueError: no such server is scripted, or it is not connected now.
        """
        self._known(server or "?")
        if not self._faulty.kill(server, reason):
            raise ValueError(f"server {server!r} is not connected now")

    def heal(self) -> None:
        """Nothing of what was told until now goes wrong any more."""
        self._pending.clear()
        self._core.heal()
        self._faulty.heal()

    @property
    def waiting(self) -> tuple[Fault, ...]:
        """The faults that have not struck. A test that expects all of its faults to strike says that there are none."""
        return tuple(FaultPlan((*self._pending, *self._faulty.waiting(), *self._core.waiting())))

    @property
    def notes(self) -> tuple[Note, ...]:
        """What happened to the servers, in order."""
        return tuple(self._faulty.notes)

    def config(self, **keys: Any) -> Config:
        """A configuration of all scripted servers; ``keys`` go to the entry of each."""
        return Config(self.scripted.entries(**keys))

    @asynccontextmanager
    async def open(self, config: Config | None = None, **options: Any) -> AsyncIterator[Host]:
        """Open a host over the servers; like `open_host` it does not wait for any of them.

        Args:
            config: None for `config`.
            options: further ones of `open_host`, such as ``native_tools`` or ``intensity``. For a file, give a ``store``: it
                is read without a thread, which a clock that jumps would not wait for.

        Raises:
            RuntimeError: a host is open over these servers.
            BaseException: what the body raises, as it is; and what `open_host` raises.
        """
        if self._nursery is not None:
            raise RuntimeError("a host is open over these servers already")
        if config is None and "store" not in options:
            config = self.config()
        options.setdefault("rng", random.Random(0))
        raised: BaseException | None = None
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                pending, self._pending = self._pending, []
                for fault in pending:
                    self._tell(fault)
                try:
                    async with open_host(config, connect=self._faulty, sites=self._core, **options) as host:
                        yield host
                except BaseException as error:
                    raised = error
                finally:
                    nursery.cancel_scope.cancel()
        finally:
            self._nursery = None
        if raised is not None:
            raise raised

    def _known(self, server: str) -> None:
        if server and server not in self.scripted.scripts:
            near = nearest(server, self.scripted.scripts)
            hint = f" (did you mean {near!r}?)" if near is not None else ""
            raise ValueError(f"no server named {server!r} is scripted{hint}")

    def _tell(self, fault: Fault) -> None:
        """Have a fault, in seconds from now, wait where it strikes; or for a host."""
        if self._nursery is None:
            self._pending.append(fault)
            return
        fault = evolve(fault, at=trio.current_time() + fault.at)
        if fault.site in CORE:
            self._core.add(fault)
            return
        self._faulty.add(fault)
        if fault.site in SPONTANEOUS:
            self._nursery.start_soon(self._faulty.act, fault)
