"""`ServerKit` without pytest's fixtures. Determinism contract: `run_simulation` only."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
from playbill.actors import ServerDied, ServerUnavailable
from playbill.actors.testing import Fault, Script, ServerKit
from playbill.actors.testing.delivery import FaultyConnection, FaultyServers
from playbill.actors.testing.faults import FaultPlan
from playbill.actors.testing.scripted import ScriptedConnection, ScriptedServers
from playbill.actors.testing.wires import Noted
from playbill.supervision.testing import Simulation, run_simulation


def simulate(main: Callable[[], Awaitable[Any]]) -> Any:
    async def simulated(simulation: Simulation) -> Any:
        return await main()

    result = run_simulation(simulated, seed=1, seconds=600)
    if result.error is not None:
        raise result.error
    assert result.verdict == "ok", result.reason
    return result.value


def test_a_call_that_has_arrived_when_its_server_crashes_ends_at_once() -> None:
    kit = ServerKit(search=Script(("find",), call_delay=5))

    async def main() -> None:
        async with kit.open() as host:
            await host.ready(timeout=10)
            kit.fail("search", "call", "crash", after=1)
            await host.call_tool("search", "find")  # comes before its time
            before = trio.current_time()
            with pytest.raises(ServerDied):
                await host.call_tool("search", "find")
            assert trio.current_time() == before

    simulate(main)
    assert [note.what for note in kit.notes if note.what in ("sent", "replied", "lost")] == [
        "sent", "replied", "sent", "lost",
    ]  # fmt: skip


def test_seconds_count_from_now_while_a_host_is_open_and_from_its_opening_before() -> None:
    kit = ServerKit(search=["find"])
    kit.fail("search", "idle", "crash", after=2)

    async def main() -> list[float]:
        await trio.sleep(10)
        async with kit.open() as host:
            await host.ready(timeout=10)
            await trio.sleep_until(20)
            kit.fail("search", "idle", "clean_exit", after=3)
            await trio.sleep_until(30)
            return [note.at for note in kit.notes if note.what == "lost"]

    assert simulate(main) == [12.0, 23.0]


def test_faults_that_did_not_strike_are_told_and_healing_forgets_them() -> None:
    kit = ServerKit(search=["find"])
    kit.plan([Fault(5.0, "search", "idle", "crash"), Fault(0.0, "", "projector", "crash")])
    assert [(fault.server, fault.site) for fault in kit.waiting] == [("", "projector"), ("search", "idle")]

    async def main() -> None:
        async with kit.open() as host:
            await host.ready(timeout=10)
            # The list was shown, so the projector has been at its site; that it was started anew is in the tree.
            await trio.sleep(1)
            assert [
                node.state.restarts for node in host.tree().children if node.name == "projector" and node.state
            ] == [1]
            assert [fault.site for fault in kit.waiting] == ["idle"]
            kit.heal()
            assert kit.waiting == ()
            await trio.sleep(10)
            assert kit.scripted.spawns["search"] == 1
            kit.fail("search", "call", "crash")  # and it can be told anew
            with pytest.raises(ServerDied):
                await host.call_tool("search", "find")

    simulate(main)


def test_what_the_body_raises_leaves_the_kit_as_it_is_and_it_can_be_opened_again() -> None:
    kit = ServerKit(search=["find"])
    kit.fail("search", "idle", "crash", after=100)

    async def main() -> None:
        with pytest.raises(KeyError, match="mine"):
            async with kit.open():
                raise KeyError("mine")
        with trio.move_on_after(1) as scope:
            async with kit.open():
                with pytest.raises(RuntimeError, match="open over these servers already"):
                    async with kit.open():
                        pass
                await trio.sleep_forever()
        assert scope.cancelled_caught
        async with kit.open() as host:
            await host.ready(timeout=10)
        assert kit.scripted.alive == {}

    simulate(main)


def test_a_killed_server_comes_back_and_a_server_added_later_is_configured_by_an_operation() -> None:
    kit = ServerKit(search=["find"])

    async def main() -> None:
        async with kit.open() as host:
            with pytest.raises(ValueError, match="'search' is not connected"):
                kit.kill("search")
            await host.ready(timeout=10)
            kit.kill("search", "pulled the plug")
            await trio.sleep(0.1)
            with pytest.raises(ServerUnavailable, match="pulled the plug"):
                await host.call_tool("search", "find")
            kit.add("notes", ["read"], call_delay=1)
            await host.plugin_add("notes", "notes")
            await host.ready(timeout=10)
            assert await host.call_tool("notes", "read") == {"tool": "read", "arguments": {}}

    simulate(main)
    assert kit.scripted.spawns == {"search": 2, "notes": 1}


@pytest.mark.parametrize(
    ("told", "complaint"),
    [
        (("serch", "call", "crash"), r"no server named 'serch' is scripted \(did you mean 'search'\?\)"),
        (("search", "cal", "crash"), "no such site: 'cal'; there are spawn, "),
        (("search", "idle", "hang"), "'hang' makes no sense at 'idle'; there: crash"),
        (("", "call", "crash"), "a fault at 'call_after' names a server"),
        (("search", "call", "latency"), "'latency' needs how much: arg=0.02"),
    ],
)
def test_what_makes_no_sense_is_refused_where_it_is_written(told: tuple[str, str, str], complaint: str) -> None:
    kit = ServerKit(search=["find"])
    with pytest.raises(ValueError, match=complaint):
        kit.fail(*told)
    assert kit.waiting == ()


def test_a_call_that_is_watched_or_struck_keeps_its_meta() -> None:
    given: list[Any] = []

    class Inner(ScriptedConnection):
        async def call_tool(self, bare: str, arguments: Any, progress: Any, *, meta: Any = None) -> Any:
            given.append(meta)
            return await super().call_tool(bare, arguments, progress, meta=meta)

    async def main() -> None:
        inner = Inner(Script(("find",)), 1, lambda _: None, lambda: None)
        owner = FaultyServers(ScriptedServers(), FaultPlan(()))
        for connection in (FaultyConnection(owner, "search", 1, inner), Noted(owner, "search", 1, inner)):
            await connection.call_tool("find", {}, None, meta={"m": 1})

    simulate(main)
    assert given == [{"m": 1}, {"m": 1}]
