"""Plays one plan: opens a host over scripted servers in virtual time, does the work, strikes, heals, looks, closes.

Theory of operation
    All of the work runs side by side, each piece at its time and in a task of its own with a watchdog, so that what never
    ends is seen as such and the rest goes on. At `Plan.heal_at` nothing strikes any more; parked servers are revived, as a
    person would, and the host has `CONVERGE` virtual seconds until all is well. Everything goes into a `History`; judging it
    is the oracle's.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

import trio
from attrs import evolve

from ...supervision.testing import Result, Simulation, run_simulation
from ..edge.config.file import MemoryStore
from ..host import Host
from ..model.budget import Budget
from ..model.config import Config, ServerEntry
from ..model.errors import PlaybillError
from ..model.snapshot import Snapshot
from ..opening import open_host
from ..server import ServerSettings
from .delivery import CoreFaults, FaultyServers
from .faults import FaultPlan
from .history import REFUSED, Asked, Called, History, Seen
from .plans import Op, Plan
from .scripted import Script, ScriptedServers
from .strikes import Delivery

__all__ = ["CONVERGE", "Opener", "play"]

CONVERGE = 60.0
"""Virtual seconds after the heal within which all has to be well."""

WATCHDOG = 60.0
"""Virtual seconds after its own deadline at which a piece of work counts as one that never ends."""

Opener = Callable[..., AbstractAsyncContextManager[Host]]
"""`open_host`, or what stands in for it."""


class _Store(MemoryStore):
    """A configuration in memory that counts how often it is read, and that a person may edit by hand."""

    def __init__(self, config: Config) -> None:
        super().__init__(config)
        self.loads = 0
        self.rows = 0

    def load(self, previous: Config | None = None) -> Config:
        """The configuration as it is."""
        self.loads += 1
        return super().load(previous)

    def add_row(self) -> None:
        """Add a row by hand: a server that is not to be run."""
        row = ServerEntry(f"note{self.rows}", command="note", disabled=True)
        self.rows += 1
        self.config = evolve(self.config, servers=(*self.config.servers, row))


async def _echo(bare: str, arguments: Mapping[str, Any]) -> Any:
    await trio.lowlevel.checkpoint()
    return {"tool": bare, "token": arguments.get("token")}


def play(
    plan: Plan,
    *,
    opener: Opener = open_host,
    servers: Callable[..., ScriptedServers] = ScriptedServers,
    steps: int = 400_000,
) -> tuple[Result[None], History]:
    """Play a plan.

    Args:
        plan: what.
        opener: `open_host`, or what stands in for it.
        servers: makes the scripted servers from name → script.
        steps: task steps it may take.

    Returns:
        How the run ended, and what happened in it (as far as it came).
    """
    history = History(plan)

    async def main(simulation: Simulation) -> None:
        await _Run(plan, history, simulation, servers).play(opener)

    seconds = plan.heal_at + CONVERGE + 3 * WATCHDOG
    return run_simulation(main, seed=plan.seed, seconds=seconds, steps=steps), history


class _Run:
    def __init__(
        self, plan: Plan, history: History, simulation: Simulation, servers: Callable[..., ScriptedServers]
    ) -> None:
        self.plan = plan
        self.history = history
        self.simulation = simulation
        scripts = {
            each.name: Script(
                tuple(f"t{n}" for n in range(each.tools)),
                connect_delay=each.connect,
                call_delay=each.call,
                handler=_echo,
                modern=each.modern,
            )
            for each in plan.servers
        }
        self.scripted = servers(**scripts, extra=Script(("t0",), handler=_echo))
        self.faulty = _delivery(plan)(self.scripted, plan.faults)
        self.core = CoreFaults(plan.faults)
        history.notes = self.faulty.notes
        history.struck = self.core.struck
        self.store = _Store(Config(tuple(ServerEntry(each.name, command=each.name) for each in plan.servers)))
        self.replacements = 0

    async def play(self, opener: Opener) -> None:
        plan, history = self.plan, self.history
        settings = ServerSettings(
            connect_timeout=plan.connect_timeout,
            list_timeout=plan.list_timeout,
            drain=plan.drain,
            relist_pause=0.5,
            relist_pause_max=4.0,
        )
        try:
            opening = opener(
                store=self.store,
                connect=self.faulty,
                sites=self.core,
                settings=settings,
                backoff=plan.backoff,
                intensity=plan.intensity,
                budget=Budget(plan.budget),
                rng=random.Random(plan.seed),
            )
            async with trio.open_nursery() as parting:
                async with opening as host, trio.open_nursery() as watching:
                    watching.start_soon(self._watch, host)
                    await self._work(host)
                    await self._converge(host)
                    await self._look(host)
                    await self._part(host, parting)
                    history.close_began = trio.current_time()
                    watching.cancel_scope.cancel()
                history.closed = trio.current_time()
        finally:
            history.loads = self.store.loads
            history.left = self.scripted.alive
            history.most_at_once = dict(self.scripted.most_at_once)

    async def _watch(self, host: Host) -> None:
        async for snapshot in host.changes():
            now = trio.current_time()
            self.history.seen.append(Seen(now, snapshot))
            self.simulation.say("snapshot", ", ".join(f"{s.name} {s.phase}" for s in snapshot.model.servers))

    async def _work(self, host: Host) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self.faulty.run_spontaneous)
            for number, op in enumerate(self.plan.work):
                nursery.start_soon(self._do, host, number, op)
            await trio.sleep_until(self.plan.heal_at)
            self.core.heal()
            self.faulty.heal()
            self.history.healed_at = trio.current_time()
            self.simulation.say("kit", "healed")

    async def _do(self, host: Host, number: int, op: Op) -> None:
        await trio.sleep_until(op.at)
        if op.what in ("call", "wire"):
            called = Called(number, op, trio.current_time())
            self.history.calls.append(called)
            await self._call(host, called)
        else:
            await self._ask(host, number, op)

    async def _call(self, host: Host, called: Called) -> None:
        op = called.op
        arguments = {"token": f"t{called.number}"}
        patience = op.timeout + WATCHDOG if op.cancel is None else op.cancel
        with trio.move_on_after(patience):
            try:
                if op.what == "wire":
                    called.reply = await host.call(f"mcp__{op.server}__{op.tool}", arguments, timeout=op.timeout)
                else:
                    called.reply = await host.call_tool(op.server, op.tool, arguments, timeout=op.timeout)
                called.outcome = "ok"
                if self.plan.level != "connection":
                    _read(called)
            except Exception as error:
                called.outcome, called.detail = type(error).__name__, str(error)
        if not called.outcome and op.cancel is None:
            return
        called.end = trio.current_time()
        called.outcome = called.outcome or "cancelled"
        self.simulation.say(f"call {called.number}", f"{op.server}/{op.tool} {called.outcome} {called.detail}".rstrip())

    async def _part(self, host: Host, nursery: trio.Nursery) -> None:
        """Leave a call in flight to each server, for the closing to end."""
        for script in self.scripted.scripts.values():
            script.call_delay = math.inf
        for state in host.snapshot().model.servers:
            tool = next((tool.bare for tool in state.tools if tool.enabled), None)
            if state.phase == "ready" and tool is not None:
                number = 1000 + len(self.history.parting)
                op = Op(trio.current_time(), "call", state.name, tool, timeout=WATCHDOG)
                called = Called(number, op, trio.current_time())
                self.history.parting.append(called)
                nursery.start_soon(self._call, host, called)
        await trio.sleep(0.01)

    async def _ask(self, host: Host, number: int, op: Op) -> None:
        if op.what == "note":
            self.store.add_row()
        asked = Asked(number, op, trio.current_time(), rows=self.store.rows)
        self.history.asks.append(asked)
        with trio.move_on_after(op.timeout + WATCHDOG):
            try:
                asked.snapshot = await self._operate(host, op)
                asked.outcome = "ok"
            except Exception as error:
                asked.outcome, asked.detail = type(error).__name__, str(error)
        if asked.outcome:
            asked.end = trio.current_time()
        words = " ".join(word for word in (op.what, op.server, op.tool, asked.outcome, asked.detail) if word)
        self.simulation.say(f"ask {number}", words)

    async def _operate(self, host: Host, op: Op) -> Snapshot:
        name, tool, timeout = op.server, op.tool, op.timeout
        match op.what:
            case "off" | "on":
                return await host.tool_set_enabled(name, tool, op.what == "on", timeout=timeout)
            case "pin" | "unpin":
                return await host.pin(name, tool, op.what == "pin", timeout=timeout)
            case "disable" | "enable":
                return await host.server_set_enabled(name, op.what == "enable", timeout=timeout)
            case "restart":
                return await host.restart(name, timeout=timeout)
            case "revive":
                return await host.revive(name, timeout=timeout)
            case "add":
                return await host.plugin_add(name, name, timeout=timeout)
            case "remove":
                return await host.plugin_remove(name, timeout=timeout)
            case "replace":
                self.replacements += 1
                return await host.plugin_add(name, name, [str(self.replacements)], replace=True, timeout=timeout)
            case _:
                return await host.reload(timeout=timeout)

    async def _converge(self, host: Host) -> None:
        """Wait until all is well; a parked server is revived as often as it parks, one that wants a login restarted."""
        deadline = trio.current_time() + CONVERGE
        # What the heal itself ended is shown some steps later.
        await trio.sleep(0.01)
        while True:
            self.history.unwell = self._unwell(host.snapshot())
            if not self.history.unwell:
                self.history.converged_at = trio.current_time()
                return
            if trio.current_time() >= deadline:
                return
            for name, why in self.history.unwell.items():
                if why.startswith("parked"):
                    await host.revive(name)
                elif why.startswith("needs_auth"):
                    await host.restart(name)
            await trio.sleep(0.25)

    def _unwell(self, snapshot: Snapshot) -> dict[str, str]:
        unwell = {}
        for state in snapshot.model.servers:
            if state.phase == "disabled":
                continue
            script = self.scripted.scripts.get(state.name)
            tools = [] if script is None else [tool.bare for tool in script.tools]
            if state.phase != "ready":
                unwell[state.name] = f"{state.phase}: {state.error}"
            elif state.list_state != "current":
                unwell[state.name] = f"its list is {state.list_state}: {state.list_error}"
            elif [tool.bare for tool in state.tools] != tools:
                unwell[state.name] = f"its tools are {[tool.bare for tool in state.tools][:8]}, not {tools}"
        for name, copies in self.scripted.alive.items():
            if (row := snapshot.model.server(name)) is None or row.phase == "disabled":
                unwell[name] = f"{copies} copies are alive, none is wanted"
        return unwell

    async def _look(self, host: Host) -> None:
        history = self.history
        history.readiness = await host.ready(timeout=0)
        await self._ask(host, len(self.plan.work), Op(trio.current_time(), "reload"))
        last = history.last = host.snapshot()
        tools = [(state, tool) for state in last.model.servers for tool in state.tools]
        history.whys = {(state.name, tool.bare): host.why(state.name, tool.bare).verdict for state, tool in tools}
        async with trio.open_nursery() as nursery:
            for state, tool in tools:
                if state.phase == "ready" and tool.enabled:
                    op = Op(trio.current_time(), "call", state.name, tool.bare, timeout=10.0)
                    called = Called(len(self.plan.work) + 1 + len(history.last_calls), op, trio.current_time())
                    history.last_calls.append(called)
                    nursery.start_soon(self._call, host, called)


def _delivery(plan: Plan) -> Callable[[ScriptedServers, FaultPlan], Delivery]:
    if plan.level == "connection":
        return FaultyServers
    # Imported here: the SDK comes with them.
    if plan.level == "http":
        from .http import FaultyHttp

        return FaultyHttp
    from .wires import FaultyWires

    return FaultyWires


def _read(called: Called) -> None:
    """Make of a ``CallToolResult`` what a scripted server answers without a wire, or `REFUSED`."""
    result = called.reply
    if result.is_error:
        called.outcome, called.detail = REFUSED, "".join(getattr(part, "text", "") for part in result.content)
    called.reply = result.structured_content


def is_ours(outcome: str) -> bool:
    """Whether an outcome is an error that may leave a host."""
    return outcome in {each.__name__ for each in _kinds(PlaybillError)}


def _kinds(base: type[Exception]) -> list[type[Exception]]:
    return [base, *(deeper for each in base.__subclasses__() for deeper in _kinds(each))]
