"""One server cannot hurt another; what a server does is seen in its own row only."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping
from typing import Any

import pytest
import trio
from playbill.actors import Config, ServerDied, ServerEntry, ServerUnavailable
from playbill.actors.testing import Script, ScriptedServers

from .conftest import Open


def ten(*, bad: bool) -> ScriptedServers:
    scripts: dict[str, Script] = {f"good{n}": Script(("x",), connect_delay=0.1 * n) for n in range(8)}
    if bad:
        scripts["hangs"] = Script(("x",), connect_delay=math.inf)
    return ScriptedServers(**scripts)


async def timeline(opened: Open, servers: ScriptedServers, entries: tuple[ServerEntry, ...]) -> dict[str, float]:
    seen: dict[str, float] = {}
    start = trio.current_time()
    async with opened(servers, Config(entries)) as host:
        with trio.move_on_after(5):
            async for snapshot in host.changes():
                for server in snapshot.model.servers:
                    if server.phase == "ready":
                        seen.setdefault(server.name, trio.current_time() - start)
    return seen


async def test_a_hanging_and_a_missing_server_cost_the_others_no_virtual_time(opened: Open) -> None:
    alone, together = ten(bad=False), ten(bad=True)
    without = await timeline(opened, alone, alone.entries())
    missing = ServerEntry("missing", command="no-such-command")
    hangs, good = together.entries()[-1], together.entries()[:-1]
    among = await timeline(opened, together, (hangs, *good[:4], missing, *good[4:]))
    assert len(without) == 8
    assert among == pytest.approx(without, abs=1e-9)


async def test_ready_names_the_hanging_and_the_missing_server_with_reasons(opened: Open) -> None:
    servers = ten(bad=True)
    entries = (*servers.entries(), ServerEntry("missing", command="no-such-command"))
    async with opened(servers, Config(entries)) as host:
        start = trio.current_time()
        readiness = await host.ready(timeout=2)
        assert trio.current_time() - start == pytest.approx(2)
        assert len(readiness.ready) == 8
        assert set(readiness.missing) == {"hangs", "missing"}
        assert "has not answered" in readiness.missing["hangs"]
        assert "no-such-command" in readiness.missing["missing"]
        assert await host.ready(require="any", timeout=0)
        assert await host.ready(require=["good1"], timeout=0)


async def test_a_crash_leaves_the_catalog_as_it_is_before_during_and_after(opened: Open) -> None:
    servers = ScriptedServers(a=["x", "y"], b=["z"])
    async with opened(servers) as host:
        await host.ready(timeout=5)
        catalog = host.snapshot().catalog
        servers.live["a"].lose("killed by signal 9")
        await trio.testing.wait_all_tasks_blocked()
        down = host.snapshot()
        assert down.model.server("a").phase == "backing_off"
        assert down.model.server("a").error == "killed by signal 9"
        assert down.model.server("a").list_state == "stale"
        assert down.catalog is catalog
        await host.ready(timeout=5)
        assert host.snapshot().model.server("a").restarts == 1
        assert host.snapshot().catalog is catalog
        assert servers.spawns == {"a": 2, "b": 1}


async def test_a_call_in_flight_ends_when_its_server_dies_and_no_other_call_notices(opened: Open) -> None:
    async def slow(bare: str, arguments: Mapping[str, Any]) -> Any:
        await trio.sleep(1)
        return bare

    servers = ScriptedServers(a=Script(("x",), handler=slow), b=Script(("y",), handler=slow))
    ended: dict[str, tuple[float, Any]] = {}
    async with opened(servers) as host:
        await host.ready(timeout=5)
        start = trio.current_time()

        async def call(name: str) -> None:
            try:
                outcome: Any = await host.call(name, timeout=30)
            except ServerDied as died:
                outcome = died
            ended[name] = (trio.current_time() - start, outcome)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call, "mcp__a__x")
            nursery.start_soon(call, "mcp__b__y")
            await trio.sleep(0.25)
            servers.live["a"].lose("exited with code 3")
        assert ended["mcp__a__x"][0] == pytest.approx(0.25)
        assert "exited with code 3" in str(ended["mcp__a__x"][1])
        assert ended["mcp__b__y"] == (pytest.approx(1), "y")


async def test_a_call_during_a_restart_fails_at_once_and_during_the_first_start_waits(opened: Open) -> None:
    servers = ScriptedServers(a=Script(("x",), connect_delay=2))
    async with opened(servers) as host:
        start = trio.current_time()
        await host.call_tool("a", "x")
        assert trio.current_time() - start == pytest.approx(2)
        servers.live["a"].lose("boom")
        await trio.testing.wait_all_tasks_blocked()
        start = trio.current_time()
        with pytest.raises(ServerUnavailable, match="boom"):
            await host.call("mcp__a__x")
        assert trio.current_time() == start


async def test_a_server_that_always_dies_is_parked_and_can_be_revived(opened: Open) -> None:
    servers = ScriptedServers(bad=Script(refuse="exited with code 1: no such module"), good=["x"])
    async with opened(servers) as host:
        readiness = await host.ready(timeout=200)
        assert readiness.ready == ("good",)
        assert readiness.missing["bad"].startswith("parked: exited with code 1")
        state = host.snapshot().model.server("bad")
        assert state.phase == "parked"
        assert state.next_retry_at is not None
        assert state.stderr_tail.endswith("no such module")
        assert servers.spawns["bad"] == 6
        servers.scripts["bad"].refuse = None
        servers.scripts["bad"].tools = servers.scripts["good"].tools
        await host.revive("bad")
        assert await host.ready(timeout=5)
        assert host.snapshot().model.server("bad").restarts == 0
        assert servers.spawns["good"] == 1


async def test_the_slow_retry_of_a_parked_server_does_not_bring_its_tools_back_before_it_is_ready(opened: Open) -> None:
    servers = ScriptedServers(a=["x"], b=["y"])
    async with opened(servers) as host:
        await host.ready(timeout=5)
        servers.scripts["a"].refuse = "still broken"
        servers.scripts["a"].connect_delay = 5
        servers.live["a"].lose("broken")
        seen: list[tuple[str, int]] = []
        retried = servers.spawns["a"]
        with trio.move_on_after(1000):
            async for snapshot in host.changes():
                phase = snapshot.model.server("a").phase
                if phase == "parked" or seen:
                    seen.append((phase, len(snapshot.catalog.tools)))
        assert servers.spawns["a"] > retried + 6
        assert set(seen) == {("parked", 1)}
        servers.scripts["a"].refuse = None
        await trio.sleep(400)
        assert host.snapshot().model.server("a").phase == "ready"
        assert len(host.snapshot().catalog.tools) == 2


async def test_a_start_that_takes_too_long_is_told_with_the_last_words(opened: Open) -> None:
    script = Script(connect_delay=math.inf, says="npm warn\nNeed to install: thing. Ok to proceed? (y)")
    servers = ScriptedServers(asks=script)
    async with opened(servers, Config((ServerEntry("asks", command="npx", connect_timeout=20),))) as host:
        await trio.sleep(20.1)
        state = host.snapshot().model.server("asks")
        assert state.phase == "backing_off"
        assert state.error == (
            "no answer within 20 s (it waited for the handshake); it said: Need to install: thing. Ok to proceed? (y)"
        )
        assert state.stderr_tail == script.says


async def test_last_words_are_told_without_what_drives_a_terminal(opened: Open) -> None:
    servers = ScriptedServers(asks=Script(connect_delay=math.inf, says="\x07\x1b[1mProceed?\x1b[0m"))
    async with opened(servers, Config((ServerEntry("asks", command="npx", connect_timeout=20),))) as host:
        await trio.sleep(20.1)
        error = host.snapshot().model.server("asks").error
        assert error.endswith("it said: [1mProceed?[0m")
        assert error.isprintable()


async def test_connect_then_die_backs_off_too(opened: Open) -> None:
    servers = ScriptedServers(flaps=["x"])
    deaths: list[float] = []
    async with opened(servers) as host:
        async for snapshot in host.changes():
            state = snapshot.model.server("flaps")
            if state.phase == "ready":
                deaths.append(trio.current_time())
                servers.live["flaps"].lose("flap")
            if state.phase == "parked":
                break
    gaps = [later - earlier for earlier, later in itertools.pairwise(deaths)]
    assert len(deaths) == 6
    assert all(later > 1.5 * earlier for earlier, later in itertools.pairwise(gaps))


async def test_a_storm_of_list_changes_costs_few_listings(opened: Open) -> None:
    servers = ScriptedServers(a=["x"], b=["y"])
    async with opened(servers) as host:
        await host.ready(timeout=5)
        connection = servers.live["a"]
        lists = connection.lists
        servers.scripts["a"] = connection.script = Script(("x", "late"))
        for _ in range(2000):
            connection.announce()
            await trio.sleep(0.001)
        await trio.sleep(1)
        assert connection.lists - lists <= 4
        assert [tool.bare for tool in host.snapshot().model.server("a").tools] == ["x", "late"]
        assert servers.live["b"].lists == 1


async def test_a_failed_relist_keeps_the_last_good_list_and_is_tried_again(opened: Open) -> None:
    servers = ScriptedServers(a=["x"])
    async with opened(servers) as host:
        await host.ready(timeout=5)
        catalog = host.snapshot().catalog
        script = servers.scripts["a"]
        script.list_error = "internal error"
        servers.live["a"].announce()
        await trio.sleep(0.5)
        state = host.snapshot().model.server("a")
        assert state.phase == "ready"
        assert state.list_state == "stale"
        assert "internal error" in state.list_error
        assert host.snapshot().catalog is catalog
        script.list_error = None
        script.tools = ()
        await trio.sleep(5)
        state = host.snapshot().model.server("a")
        assert (state.phase, state.list_state, state.tools) == ("ready", "current", ())


async def test_a_server_without_tools_is_ready(opened: Open) -> None:
    async with opened(ScriptedServers(a=[])) as host:
        assert await host.ready(timeout=5)
        assert host.snapshot().model.server("a").tools == ()


async def test_replacing_a_server_lets_calls_finish_and_new_calls_wait_for_the_successor(opened: Open) -> None:
    async def slow(bare: str, arguments: Mapping[str, Any]) -> Any:
        await trio.sleep(3)
        return "finished"

    servers = ScriptedServers(a=Script(("x",), handler=slow))
    async with opened(servers) as host:
        await host.ready(timeout=5)
        results: list[Any] = []

        async def call() -> None:
            results.append(await host.call("mcp__a__x", timeout=30))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await trio.sleep(1)
            await host.plugin_add("a", "a", ["--new"], replace=True)
            await host.plugin_add("a", "a", ["--newer"], replace=True)
            nursery.start_soon(call)
        assert results == ["finished", "finished"]
        assert servers.spawns == {"a": 2}
        assert servers.most_at_once == {"a": 1}


async def test_calls_that_outlast_the_drain_end_as_unavailable(opened: Open) -> None:
    servers = ScriptedServers(a=Script(("x",), call_delay=math.inf))
    async with opened(servers) as host:
        await host.ready(timeout=5)
        ended: list[tuple[float, str]] = []

        async def call() -> None:
            with pytest.raises(ServerUnavailable) as unavailable:
                await host.call("mcp__a__x", timeout=60)
            ended.append((trio.current_time() - start, unavailable.value.reason))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await trio.testing.wait_all_tasks_blocked()
            start = trio.current_time()
            await host.plugin_add("a", "a", ["--new"], replace=True)
        assert ended == [(pytest.approx(10), "it was replaced")]
