"""Lines, calls and lists while servers come and go: who is told what, and when."""

from __future__ import annotations

import math
from typing import Any

import pytest
import trio
from playbill.actors import (
    Config,
    HostClosed,
    ServerEntry,
    ServerUnavailable,
    ToolNotOffered,
)
from playbill.actors import server as server_module
from playbill.actors.board import Board
from playbill.actors.line import Line
from playbill.actors.model.config import ConfigState
from playbill.actors.model.profile import Profile
from playbill.actors.model.status import Lifecycle, Report, ToolDef
from playbill.actors.testing import Script, ScriptedServers

from .conftest import Open

PLAIN = {"a": {"command": "a"}}


class Crash(Exception):
    """A defect of ours: nothing that the code expects."""


def a_board() -> Board:
    board = Board(ConfigState(1, Config((ServerEntry("a", command="a"),))))
    board.set_lifecycle("a", Lifecycle(stage="running", generation=2))
    board.report("a", Report(generation=2, connected=True, ready=True), (ToolDef("new"),))
    return board


def test_the_last_words_of_an_older_incarnation_change_nothing() -> None:
    board = a_board()
    before, version = board.status("a"), board.version
    board.report("a", Report(generation=1, error="I died"), (ToolDef("old"),))
    assert board.status("a") is before
    assert board.version == version


def test_an_incarnation_that_is_being_stopped_has_nothing_more_to_say() -> None:
    board = a_board()
    board.set_lifecycle("a", Lifecycle(stage="stopping", generation=2))
    before, version = board.status("a"), board.version
    # Its successor may be another server of the same name: this list must not become the successor's.
    board.report("a", Report(generation=2, connected=True, ready=True), (ToolDef("old"),))
    assert board.status("a") is before
    assert board.version == version


def test_a_line_that_closes_late_leaves_its_successor_open() -> None:
    board, connection = a_board(), ScriptedServers()
    old, new = (Line("a", generation, connection) for generation in (1, 2))  # type: ignore[arg-type]
    board.open_line(old)
    board.open_line(new)
    board.close_line(old)
    assert board.lines == {"a": new}
    board.close_line(new)
    assert board.lines == {}


async def test_a_tool_that_is_as_it_was_before_a_restart_is_not_judged_again(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[ToolDef] = []
    prepare = server_module.prepare

    def noted(server: str, tool: ToolDef, profile: Profile) -> Any:
        judged.append(tool)
        return prepare(server, tool, profile)

    monkeypatch.setattr(server_module, "prepare", noted)
    listed = [ToolDef("one"), ToolDef("two"), ToolDef("three")]
    servers = ScriptedServers(a=Script(listed))
    async with opened(servers, Config((ServerEntry("a", command="a"),))) as host:
        await host.ready(timeout=5)
        first, judged[:] = tuple(judged), []
        # As another connection makes them: equal, and other objects.
        servers.scripts["a"] = Script([ToolDef("two"), ToolDef("one", description="news"), ToolDef("three")])
        await host.restart("a")
        await host.ready(timeout=30)
    assert [tool.bare for tool in judged] == ["two", "one", "three"]
    assert [tool in first and any(tool is each for each in first) for tool in judged] == [True, False, True]


async def test_what_only_python_takes_for_equal_is_another_definition_after_a_restart(opened: Open) -> None:
    def switch(default: Any) -> ToolDef:
        return ToolDef("t", input_schema={"type": "object", "properties": {"on": {"default": default}}})

    servers = ScriptedServers(a=Script([switch(True)]))
    async with opened(servers, Config((ServerEntry("a", command="a"),))) as host:
        await host.ready(timeout=5)
        for default in (1, 1.0, 0.0, -0.0, False):
            before = host.snapshot().catalog
            servers.scripts["a"] = Script([switch(default)])
            await host.restart("a")
            await host.ready(timeout=30)
            (tool,) = host.snapshot().catalog.tools
            assert repr(tool.input_schema["properties"]["on"]["default"]) == repr(default)
            assert host.snapshot().catalog.digest != before.digest


async def test_the_same_list_after_a_crash_is_current_again(opened: Open) -> None:
    servers = ScriptedServers(a=["x"])
    async with opened(servers) as host:
        await host.ready(timeout=5)
        servers.live["a"].lose()
        await trio.testing.wait_all_tasks_blocked()
        assert host.snapshot().model.server("a").list_state == "stale"
        await host.ready(timeout=5)
        assert host.snapshot().model.server("a").list_state == "current"


async def test_a_disabled_server_keeps_its_tools_in_the_model_with_the_reason(opened: Open) -> None:
    servers = ScriptedServers(a=["x"], b=["y"])
    async with opened(servers) as host:
        await host.ready(timeout=5)
        await host.server_set_enabled("b", False)
        await trio.sleep(5)
        state = host.snapshot().model.server("b")
        assert state.phase == "disabled"
        assert [(tool.bare, tool.verdict) for tool in state.tools] == [("y", "server_down")]
        assert [tool.bare for tool in host.snapshot().catalog.tools] == ["x"]


async def test_removing_a_server_leaves_the_calls_of_the_others_alone(opened: Open) -> None:
    servers = ScriptedServers(a=Script(("x",), call_delay=3), b=["y"])
    async with opened(servers) as host:
        await host.ready(timeout=5)
        results: list[Any] = []

        async def call() -> None:
            results.append(await host.call("mcp__a__x", timeout=5))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await trio.testing.wait_all_tasks_blocked()
            await host.plugin_remove("b")
            nursery.start_soon(call)
        assert len(results) == 2


async def test_what_changes_nothing_is_answered_at_once(opened: Open) -> None:
    async with opened(ScriptedServers(a=["x"])) as host:
        await host.ready(timeout=5)
        before, start = host.snapshot(), trio.current_time()
        assert await host.revive("a") is before
        assert await host.reload() is before
        assert await host.tool_set_enabled("a", "x", True) is not None
        assert trio.current_time() == start


async def test_a_replacement_waits_for_the_calls_in_flight_and_no_longer(opened: Open) -> None:
    servers = ScriptedServers(a=Script(("x",), call_delay=3))
    async with opened(servers) as host:
        await host.ready(timeout=5)
        # The line has been idle before: that must not count for the calls that come later.
        await host.call("mcp__a__x", timeout=10)
        results: list[Any] = []

        async def call() -> None:
            results.append(await host.call("mcp__a__x", timeout=10))

        start = trio.current_time()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await trio.sleep(1)
            nursery.start_soon(call)
            await trio.testing.wait_all_tasks_blocked()
            await host.plugin_add("a", "a", ["--new"], replace=True)
        assert len(results) == 2
        assert await host.ready(timeout=5)
        spawned = [at for at, name, what in servers.log if (name, what) == ("a", "spawn")]
        assert spawned[1] - start == pytest.approx(4)


async def test_calls_in_flight_of_a_server_that_is_removed_may_finish(opened: Open) -> None:
    servers = ScriptedServers(a=Script(("x",), call_delay=3))
    async with opened(servers) as host:
        await host.ready(timeout=5)
        results: list[Any] = []

        async def call() -> None:
            results.append(await host.call("mcp__a__x", timeout=10))

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await trio.testing.wait_all_tasks_blocked()
            assert (await host.plugin_remove("a")).model.servers == ()
        assert len(results) == 1
        await trio.testing.wait_all_tasks_blocked()
        assert servers.alive == {}


@pytest.mark.parametrize("how", ["removed", "disabled"])
async def test_a_call_that_waits_for_a_first_start_ends_when_that_start_is_given_up(opened: Open, how: str) -> None:
    servers = ScriptedServers(a=Script(("x",), connect_delay=math.inf))
    async with opened(servers) as host:
        start = trio.current_time()

        async def call() -> None:
            with pytest.raises(ServerUnavailable, match="not configured any more" if how == "removed" else "disabled"):
                await host.call_tool("a", "x")

        async with trio.open_nursery() as nursery:
            nursery.start_soon(call)
            await trio.testing.wait_all_tasks_blocked()
            await (host.plugin_remove("a") if how == "removed" else host.server_set_enabled("a", False))
        assert trio.current_time() == start


async def test_a_call_that_waits_for_a_first_start_ends_when_the_host_closes(opened: Open) -> None:
    servers = ScriptedServers(a=Script(("x",), connect_delay=math.inf))
    start = trio.current_time()
    async with trio.open_nursery() as nursery, opened(servers) as host:

        async def call() -> None:
            with pytest.raises(HostClosed):
                await host.call_tool("a", "x")

        nursery.start_soon(call)
        await trio.testing.wait_all_tasks_blocked()
    assert trio.current_time() == start


async def test_a_call_while_a_dead_server_connects_again_fails_at_once(opened: Open) -> None:
    servers = ScriptedServers(a=Script(("x",), connect_delay=2))
    async with opened(servers) as host:
        await host.ready(timeout=5)
        servers.live["a"].lose("boom")
        await trio.testing.wait_all_tasks_blocked()
        await trio.sleep(1)
        assert servers.spawns["a"] == 2
        assert host.snapshot().model.server("a").phase == "starting"
        start = trio.current_time()
        with pytest.raises(ServerUnavailable, match="restarted after: boom"):
            await host.call("mcp__a__x")
        assert trio.current_time() == start


async def test_an_allow_list_counts_for_calls_by_origin_too(opened: Open) -> None:
    servers = ScriptedServers(a=["x", "y"])
    entry = ServerEntry("a", command="a", include=("x",))
    async with opened(servers, Config((entry,))) as host:
        await host.ready(timeout=5)
        assert [(tool.bare, tool.enabled) for tool in host.snapshot().model.server("a").tools] == [
            ("x", True),
            ("y", False),
        ]
        assert await host.call_tool("a", "x")
        with pytest.raises(ToolNotOffered):
            await host.call_tool("a", "y")


async def test_an_empty_allow_list_allows_nothing(opened: Open) -> None:
    async with opened(ScriptedServers(a=["x"]), Config((ServerEntry("a", command="a", include=()),))) as host:
        await host.ready(timeout=5)
        assert host.snapshot().model.tool("a", "x").verdict == "excluded"
        with pytest.raises(ToolNotOffered):
            await host.call_tool("a", "x")


async def test_a_call_through_a_held_catalog_waits_for_a_server_that_was_added_anew(opened: Open) -> None:
    servers = ScriptedServers(a=Script(("x",), connect_delay=1))
    async with opened(servers) as host:
        await host.ready(timeout=5)
        held = host.snapshot().catalog
        await host.plugin_remove("a")
        await host.plugin_add("a", "a")
        assert host.snapshot().model.server("a").list_state == "none"
        assert await host.call("mcp__a__x", catalog=held, timeout=5)


async def test_a_long_list_is_judged_in_slices_before_it_is_shown(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    judged: list[tuple[int, bool]] = []
    turns = 0
    real = server_module.prepare

    def prepare(name: str, tool: ToolDef, profile: Profile) -> None:
        judged.append((turns, bool(tool.prepared_memo)))
        real(name, tool, profile)

    async def neighbour() -> None:
        nonlocal turns
        while True:
            turns += 1
            await trio.lowlevel.checkpoint()

    monkeypatch.setattr(server_module, "prepare", prepare)
    many = [f"t{number}" for number in range(4 * server_module.JUDGED_AT_ONCE)]
    async with opened(ScriptedServers(a=many)) as host, trio.open_nursery() as nursery:
        nursery.start_soon(neighbour)
        assert await host.ready(timeout=5)
        nursery.cancel_scope.cancel()
    assert [known for _, known in judged] == [False] * len(many), "something judged them before"
    turn_of = [turn for turn, _ in judged]
    # Twice: who ran last in one batch of the scheduler may run first in the next.
    assert max(turn_of.count(turn) for turn in set(turn_of)) <= 2 * server_module.JUDGED_AT_ONCE
