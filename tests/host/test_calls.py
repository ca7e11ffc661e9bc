"""Calls: each ends exactly once, by its deadline, with what the caller should know."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import pytest
import trio
from playbill.actors import (
    CallTimeout,
    Config,
    ServerEntry,
    ServerUnavailable,
    ToolNotOffered,
    UnknownServer,
    UnknownTool,
)
from playbill.actors.calls import refusal
from playbill.actors.model.status import Lifecycle, Report, ServerStatus
from playbill.actors.testing import Script, ScriptedServers

from .conftest import Open


async def test_a_call_reaches_the_server_and_tool_that_the_catalog_names(opened: Open) -> None:
    async with opened(ScriptedServers(a=["x"], b=["x"])) as host:
        await host.ready(timeout=5)
        for tool in host.snapshot().catalog.tools:
            result: Any = await host.call(tool.wire_name, {"k": tool.server})
            assert result == {"tool": "x", "arguments": {"k": tool.server}}


async def test_a_call_that_is_not_answered_ends_at_its_deadline(opened: Open) -> None:
    servers = ScriptedServers(a=Script(("x",), call_delay=math.inf), slow=Script(("x",), connect_delay=math.inf))
    entries = (
        ServerEntry("a", command="a", timeout=20),
        ServerEntry("slow", command="slow", connect_timeout=1000),
    )
    async with opened(servers, Config(entries)) as host:
        await host.ready(require=["a"], timeout=5)
        for server, timeout, seconds in (("a", 3.0, 3), ("a", None, 20), ("slow", None, 60)):
            start = trio.current_time()
            with pytest.raises(CallTimeout, match=f"within {seconds} s"):
                await host.call_tool(server, "x", timeout=timeout)
            assert trio.current_time() - start == pytest.approx(seconds)
        assert host.snapshot().model.server("a").phase == "ready"
        assert servers.spawns["a"] == 1


async def test_cancelled_calls_cost_the_server_nothing(opened: Open) -> None:
    servers = ScriptedServers(a=Script(("x",), call_delay=math.inf))
    async with opened(servers) as host:
        await host.ready(timeout=5)
        async with trio.open_nursery() as nursery:
            for _ in range(500):
                nursery.start_soon(host.call, "mcp__a__x")
            await trio.testing.wait_all_tasks_blocked()
            nursery.cancel_scope.cancel()
        assert host.snapshot().model.server("a").phase == "ready"
        assert host._board.lines["a"].in_flight == 0


async def test_disabling_affects_new_calls_only(opened: Open) -> None:
    servers = ScriptedServers(a=Script(("x",), call_delay=5))
    async with opened(servers) as host:
        await host.ready(timeout=5)
        results: list[Any] = []

        async def call() -> None:
            results.append(await host.call("mcp__a__x"))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await trio.testing.wait_all_tasks_blocked()
            held = host.snapshot().catalog
            await host.tool_set_enabled("a", "x", False)
            with pytest.raises(ToolNotOffered, match="exclude"):
                await host.call("mcp__a__x")
            with pytest.raises(ToolNotOffered, match="exclude"):
                await host.call("mcp__a__x", catalog=held)
            with pytest.raises(ToolNotOffered, match="exclude"):
                await host.call_tool("a", "x")
        assert len(results) == 1


async def test_a_held_catalog_reaches_the_tool_it_named_or_none(opened: Open) -> None:
    servers = ScriptedServers(a=["x", "y"])
    async with opened(servers, budget=1) as host:
        await host.ready(timeout=5)
        held = host.snapshot().catalog
        assert [tool.bare for tool in held.tools] == ["x"]
        await host.pin("a", "y", True)
        with pytest.raises(ToolNotOffered, match="budget"):
            await host.call("mcp__a__x")
        assert await host.call("mcp__a__x", catalog=held)
        assert await host.call_tool("a", "x")
        servers.scripts["a"].tools = servers.scripts["a"].tools[1:]
        servers.live["a"].announce()
        await trio.sleep(1)
        with pytest.raises(ToolNotOffered, match="advertise"):
            await host.call("mcp__a__x", catalog=held)
        with pytest.raises(UnknownTool):
            await host.call_tool("a", "x")
        await host.plugin_remove("a")
        with pytest.raises(ServerUnavailable):
            await host.call("mcp__a__x", catalog=held)


async def test_unknown_names_are_refused_with_the_nearest(opened: Open) -> None:
    async with opened(ScriptedServers(a=["search"])) as host:
        await host.ready(timeout=5)
        with pytest.raises(UnknownTool, match="did you mean 'mcp__a__search'"):
            await host.call("mcp__a__serch")
        with pytest.raises(UnknownTool, match="did you mean 'search'"):
            await host.call_tool("a", "serch")
        with pytest.raises(UnknownServer):
            await host.call_tool("b", "search")


async def test_progress_extends_the_idle_part_and_never_the_total(opened: Open) -> None:
    heard: list[float] = []

    async def on_progress(done: float, total: float | None, message: str | None) -> None:
        await trio.lowlevel.checkpoint()
        heard.append(done)

    servers = ScriptedServers(a=["x"])
    async with opened(servers, Config((ServerEntry("a", command="a", timeout=10),))) as host:
        await host.ready(timeout=5)

        async def chatty(bare: str, arguments: Mapping[str, Any], progress: Any) -> Any:
            for n in range(1000):
                await trio.sleep(6)
                if progress is not None:
                    await progress(n, None, None)

        servers.live["a"].call_tool = chatty  # type: ignore[method-assign]
        start = trio.current_time()
        with pytest.raises(CallTimeout):
            await host.call("mcp__a__x", progress=on_progress)
        assert trio.current_time() - start == pytest.approx(100)
        assert len(heard) == 16
        start = trio.current_time()
        with pytest.raises(CallTimeout):
            await host.call("mcp__a__x", progress=on_progress, timeout=15)
        assert trio.current_time() - start == pytest.approx(15)


async def test_a_call_by_wire_name_waits_for_the_first_list_of_its_server(opened: Open) -> None:
    servers = ScriptedServers(slow=Script(("x",), connect_delay=3), never=Script(("x",), connect_delay=math.inf))
    async with opened(servers) as host:
        start = trio.current_time()
        result: Any = await host.call("mcp__slow__x")
        assert result["tool"] == "x"
        assert trio.current_time() - start == pytest.approx(3)
        with pytest.raises(UnknownTool):
            await host.call("mcp__slow__y")
        with pytest.raises(CallTimeout):
            await host.call("mcp__never__x", timeout=2)


async def test_the_wait_for_a_first_list_counts_for_the_deadline(opened: Open) -> None:
    servers = ScriptedServers(slow=Script(("x",), connect_delay=3, call_delay=math.inf))
    async with opened(servers) as host:
        start = trio.current_time()
        with pytest.raises(CallTimeout, match="within 5 s"):
            await host.call("mcp__slow__x", timeout=5)
        assert trio.current_time() - start == pytest.approx(5)


async def test_a_name_with_nothing_in_common_is_not_suggested(opened: Open) -> None:
    async with opened(ScriptedServers(dice=["roll"])) as host:
        await host.ready(timeout=5)
        with pytest.raises(UnknownTool) as unknown:
            await host.call("mcp__time__now")
        assert unknown.value.near is None


def test_outside_of_trio_it_says_so_in_one_line() -> None:
    import asyncio

    from playbill.actors import PlaybillError, open_host

    async def program() -> None:
        async with open_host(Config()):
            pass

    with pytest.raises(PlaybillError, match="trio"):
        asyncio.run(program())


@pytest.mark.parametrize("stage", ["running", "backing_off", "parked", "stopping"])
@pytest.mark.parametrize("needs_auth", [False, True])
def test_a_refusal_is_one_line_whatever_a_server_said_when_it_died(stage: Any, needs_auth: bool) -> None:
    said = "boom\n\x1b[31m" + "x" * 100_000
    status = ServerStatus(
        lifecycle=Lifecycle(stage=stage, generation=1, first=False, error=said),
        report=Report(generation=1, error=said, needs_auth=needs_auth),
    )
    told = refusal(ServerEntry("a", command="a"), status)
    assert told is not None
    assert "boom" in told
    assert told.isprintable()
    assert len(told) < 1000
