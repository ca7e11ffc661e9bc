"""The corners that a tired colleague breaks first: who is told what, and when, while servers come and go."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Mapping
from typing import Any

import playbill.actors.house
import playbill.actors.opening
import playbill.actors.projector
import pytest
import trio
from playbill.actors import (
    CallTimeout,
    Config,
    ConfigError,
    HostClosed,
    OperationTimeout,
    ServerEntry,
    ServerUnavailable,
    Snapshot,
    ToolNotOffered,
    UnknownServer,
)
from playbill.actors.board import Board
from playbill.actors.desk import REMEMBERED, Desk, Taken, merge
from playbill.actors.line import Line
from playbill.actors.model.config import ConfigState
from playbill.actors.model.edits import AddServer, RemoveServer, SetTool
from playbill.actors.model.status import Lifecycle, Report, ToolDef
from playbill.actors.testing import Script, ScriptedServers

from .conftest import ConfigFile, Open

PLAIN = {"a": {"command": "a"}}


class Crash(Exception):
    """A defect of ours: nothing that the code expects."""


# The board.


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


def test_a_line_that_closes_late_leaves_its_successor_open() -> None:
    board, connection = a_board(), ScriptedServers()
    old, new = (Line("a", generation, connection) for generation in (1, 2))  # type: ignore[arg-type]
    board.open_line(old)
    board.open_line(new)
    board.close_line(old)
    assert board.lines == {"a": new}
    board.close_line(new)
    assert board.lines == {}


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


# Calls.


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


# Servers.


async def test_a_server_that_wants_a_login_is_not_tried_again_until_asked(opened: Open) -> None:
    servers = ScriptedServers(a=Script(("x",), refuse="401: log in first", needs_auth=True), b=["y"])
    async with opened(servers) as host:
        await host.ready(require=["b"], timeout=5)
        start = trio.current_time()
        readiness = await host.ready(timeout=1000)
        assert trio.current_time() == start
        assert readiness.missing["a"].startswith("needs_auth: 401")
        with pytest.raises(ServerUnavailable, match="login"):
            await host.call_tool("a", "x")
        await trio.sleep(1000)
        assert servers.spawns == {"a": 1, "b": 1}
        servers.scripts["a"].refuse = None
        await host.restart("a")
        assert await host.ready(timeout=5)


async def test_a_relist_that_is_never_answered_is_given_up_and_tried_again(opened: Open) -> None:
    servers = ScriptedServers(a=["x"])
    async with opened(servers) as host:
        await host.ready(timeout=5)
        script = servers.scripts["a"]
        script.list_delay = math.inf
        servers.live["a"].announce()
        await trio.sleep(40)
        state = host.snapshot().model.server("a")
        assert (state.phase, state.list_state) == ("ready", "stale")
        assert "no answer within 30 s" in state.list_error
        script.list_delay = 0
        script.tools = Script(("x", "late")).tools
        await trio.sleep(40)
        assert [tool.bare for tool in host.snapshot().model.server("a").tools] == ["x", "late"]
        assert servers.spawns == {"a": 1}


async def test_a_change_announced_while_the_list_is_fetched_is_fetched_too(opened: Open) -> None:
    servers = ScriptedServers(a=["x"])
    async with opened(servers) as host:
        await host.ready(timeout=5)
        script = servers.scripts["a"]
        script.list_delay = 1
        servers.live["a"].announce()
        await trio.sleep(0.5)
        script.tools = Script(("x", "late")).tools
        servers.live["a"].announce()
        await trio.sleep(5)
        assert [tool.bare for tool in host.snapshot().model.server("a").tools] == ["x", "late"]


async def test_a_server_that_never_stops_announcing_is_listed_all_the_same(opened: Open) -> None:
    servers = ScriptedServers(a=["x"])
    async with opened(servers) as host:
        await host.ready(timeout=5)
        servers.scripts["a"].tools = Script(("x", "late")).tools
        with trio.move_on_after(3):
            while True:
                servers.live["a"].announce()
                await trio.sleep(0.01)
        assert [tool.bare for tool in host.snapshot().model.server("a").tools] == ["x", "late"]


async def test_a_list_that_keeps_failing_is_asked_for_less_and_less_often(opened: Open) -> None:
    servers = ScriptedServers(a=["x"])
    asked: list[float] = []
    async with opened(servers) as host:
        await host.ready(timeout=5)
        script, connection = servers.scripts["a"], servers.live["a"]
        list_tools = connection.list_tools

        async def noted() -> Any:
            asked.append(trio.current_time())
            await trio.sleep(0.001)
            return await list_tools()

        connection.list_tools = noted  # type: ignore[method-assign]
        script.list_error = "internal error"
        connection.announce()
        await trio.sleep(300)
        gaps = [later - earlier for earlier, later in itertools.pairwise(asked)]
        assert gaps[0] == pytest.approx(1, abs=0.2)
        assert gaps == sorted(gaps) or max(gaps) <= 31
        assert max(gaps) == pytest.approx(30, abs=1)
        assert len(asked) < 20


async def test_a_parked_server_that_recovered_is_no_longer_on_probation(opened: Open) -> None:
    servers = ScriptedServers(a=["x"], b=["y"])
    async with opened(servers) as host:
        await host.ready(timeout=5)
        script = servers.scripts["a"]
        script.refuse = "broken"
        servers.live["a"].lose("broken")
        await trio.testing.wait_all_tasks_blocked()
        assert not await host.ready(timeout=200)
        assert host.snapshot().model.server("a").phase == "parked"
        script.refuse = None
        await trio.sleep(400)
        assert host.snapshot().model.server("a").phase == "ready"
        # It has long been healthy: the next death is a first one, and its tools stay on the wire while it connects.
        catalog = host.snapshot().catalog
        script.connect_delay = 5
        servers.live["a"].lose("once")
        await trio.sleep(3)
        assert host.snapshot().model.server("a").phase == "starting"
        assert host.snapshot().catalog is catalog
        assert len(catalog.tools) == 2


async def test_the_next_start_uses_the_times_as_they_are_configured_now(opened: Open, config_file: ConfigFile) -> None:
    servers = ScriptedServers(a=Script(("x",), connect_delay=20))
    config_file.write({"a": {"command": "a", "connectTimeout": 5}})
    async with opened(servers, config_file.store) as host:
        assert not await host.ready(timeout=5.1)
        config_file.write({"a": {"command": "a", "connectTimeout": 50}})
        await host.reload()
        assert servers.spawns == {"a": 1}
        assert await host.ready(timeout=30)
        assert servers.spawns == {"a": 2}


async def test_closing_is_over_after_ten_seconds_though_a_connection_takes_longer_to_leave(opened: Open) -> None:
    class Reluctant(ScriptedServers):
        def __call__(self, entry: ServerEntry, **keys: Any) -> Any:
            opening = super().__call__(entry, **keys)
            leave = opening.__class__.__aexit__

            class Slow(opening.__class__):  # type: ignore[name-defined,misc]
                async def __aexit__(self, *raised: Any) -> Any:
                    try:
                        await trio.sleep(14)
                    finally:
                        await leave(self, *raised)

            opening.__class__ = Slow
            return opening

    servers = Reluctant(a=["x"])
    async with opened(servers) as host:
        await host.ready(timeout=5)
        start = trio.current_time()
    assert trio.current_time() - start == pytest.approx(10)
    assert servers.alive == {}


# Operations.


async def test_every_caller_of_a_merged_toggle_is_told_of_its_refusal(opened: Open) -> None:
    async with opened(ScriptedServers(a=["x"])) as host:
        await host.ready(timeout=5)
        refused: list[UnknownServer] = []

        async def toggle(on: bool) -> None:
            with pytest.raises(UnknownServer) as unknown:
                await host.tool_set_enabled("nobody", "x", on)
            refused.append(unknown.value)

        async with trio.open_nursery() as nursery:
            for n in range(10):
                nursery.start_soon(toggle, n % 2 == 0)
        assert len(refused) == 10


async def test_tools_of_one_name_at_several_servers_are_toggled_each_for_itself(opened: Open) -> None:
    servers = ScriptedServers(a=["x"], b=["x"], c=["x"])
    async with opened(servers) as host:
        await host.ready(timeout=5)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(host.tool_set_enabled, "a", "x", False)
            nursery.start_soon(host.tool_set_enabled, "b", "x", False)
        model = host.snapshot().model
        assert [model.tool(name, "x").enabled for name in "abc"] == [False, False, True]


def test_toggles_are_not_merged_across_the_coming_or_going_of_their_server() -> None:
    off, on = SetTool("a", "x", False), SetTool("a", "x", True)
    for between in (RemoveServer("a"), AddServer(ServerEntry("a", command="a"), True)):
        assert merge([off, between, on]) == [(off, [0]), (between, [1]), (on, [2])]
    other = RemoveServer("b")
    assert merge([off, other, on]) == [(other, [1]), (on, [0, 2])]


async def test_a_name_that_only_the_config_knows_can_be_shown_again(opened: Open) -> None:
    servers = ScriptedServers(a=["x"])
    entry = ServerEntry("a", command="a", exclude=("withdrawn",))
    async with opened(servers, Config((entry,))) as host:
        await host.ready(timeout=5)
        await host.tool_set_enabled("a", "withdrawn", True)
        assert host._board.config.config.get("a").exclude == ()


async def test_a_toggle_that_finds_the_file_unreadable_says_so_in_the_snapshot(
    opened: Open, config_file: ConfigFile
) -> None:
    config_file.write(PLAIN)
    async with opened(ScriptedServers(a=["x"]), config_file.store) as host:
        await host.ready(timeout=5)
        config_file.path.write_text("{")
        with pytest.raises(ConfigError) as refused:
            await host.tool_set_enabled("a", "x", False)
        model = host.snapshot().model
        assert model.config_error == str(refused.value)
        assert model.tool("a", "x").verdict == "on_wire"
        config_file.write(PLAIN)
        snapshot = await host.tool_set_enabled("a", "x", False)
        assert snapshot.model.config_error is None


async def test_an_operation_nobody_answered_in_time_does_not_claim_to_be_applied(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with opened(ScriptedServers(a=["x"])) as host:
        await host.ready(timeout=5)

        async def nobody(name: str) -> Any:
            await trio.sleep_forever()

        monkeypatch.setattr(host._operations._core, "up", nobody)
        with pytest.raises(OperationTimeout) as timeout:
            await host.tool_set_enabled("a", "x", False, timeout=3)
        assert timeout.value.applied is None


async def slow_store(work: Callable[[], Any], /) -> Any:
    """A store that takes three seconds, as a slow disk does; it can be given up while it waits."""
    await trio.sleep(3)
    return work()


async def test_a_write_that_was_begun_is_finished_and_answered_though_the_host_closes(
    opened: Open, config_file: ConfigFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    config_file.write(PLAIN)
    monkeypatch.setattr(playbill.actors.opening, "_inline", slow_store)
    answers: list[Snapshot] = []
    async with trio.open_nursery() as nursery, opened(ScriptedServers(a=["x"]), config_file.store) as host:
        await host.ready(timeout=5)

        async def toggle() -> None:
            answers.append(await host.tool_set_enabled("a", "x", False))

        nursery.start_soon(toggle)
        await trio.testing.wait_all_tasks_blocked()
    assert config_file.read()["mcpServers"]["a"]["tools"] == {"exclude": ["x"]}
    assert [snapshot.model.tool("a", "x").enabled for snapshot in answers] == [False]


async def test_a_refusal_is_in_the_snapshot_before_it_is_told_though_the_projector_dies(
    opened: Open, config_file: ConfigFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    config_file.write(PLAIN)
    project = playbill.actors.projector.project
    crashes = 0

    def crashing(*given: Any) -> Any:
        nonlocal crashes
        if crashes:
            crashes -= 1
            raise Crash
        return project(*given)

    monkeypatch.setattr(playbill.actors.projector, "project", crashing)
    async with opened(ScriptedServers(a=["x"]), config_file.store) as host:
        await host.ready(timeout=5)
        config_file.path.write_text("{")
        crashes = 2
        with pytest.raises(ConfigError) as refused:
            await host.reload()
        assert crashes == 0
        assert host.snapshot().model.config_error == str(refused.value)


@pytest.mark.parametrize(
    ("keys", "starts"),
    [
        ({"priority": 7}, 1),
        ({"tools": {"exclude": ["x"]}}, 1),
        ({"tools": {"include": ["x"]}}, 1),
        ({"tools": {"pin": ["x"]}}, 1),
        ({"timeout": 5}, 1),
        ({"connectTimeout": 5}, 1),
        ({"note": "an unknown key"}, 1),
        ({"args": ["-v"]}, 2),
        ({"env": {"A": "1"}}, 2),
        ({"cwd": "/"}, 2),
        ({"command": "another"}, 2),
    ],
)
async def test_only_launch_keys_start_a_server_anew_also_in_the_time_after_the_reload(
    opened: Open, config_file: ConfigFile, keys: dict[str, Any], starts: int
) -> None:
    servers = ScriptedServers(a=["x"], b=["y"])
    config_file.write({**PLAIN, "b": {"command": "b"}})
    async with opened(servers, config_file.store) as host:
        await host.ready(timeout=5)
        config_file.write({"a": {"command": "a", **keys}, "b": {"command": "b"}})
        await host.reload()
        await trio.sleep(60)
        assert servers.spawns == {"a": starts, "b": 1}
        assert servers.ends.total() == starts - 1
        assert servers.alive == {"a": 1, "b": 1}


async def test_toggles_pins_and_refusals_leave_every_process_alone_also_in_the_time_after_them(
    opened: Open, config_file: ConfigFile
) -> None:
    servers = ScriptedServers(a=["x", "y"], b=["y"])
    config_file.write({**PLAIN, "b": {"command": "b"}})
    async with opened(servers, config_file.store) as host:
        await host.ready(timeout=5)
        await host.tool_set_enabled("a", "x", False)
        await trio.sleep(60)
        await host.pin("a", "y", True)
        await trio.sleep(60)
        with pytest.raises(UnknownServer):
            await host.tool_set_enabled("nobody", "x", True)
        await trio.sleep(60)
        assert servers.spawns == {"a": 1, "b": 1}
        assert servers.ends == {}


# The desk: what outlives a coordinator.


async def test_nothing_of_an_operation_that_ended_stays_begun_however_it_ended(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    desk = Desk()
    monkeypatch.setattr(playbill.actors.house, "Desk", lambda: desk)
    async with opened(ScriptedServers(a=["x"])) as host:
        await host.ready(timeout=5)
        await host.tool_set_enabled("a", "x", False)
        with pytest.raises(UnknownServer):
            await host.plugin_remove("nobody")
        await host.reload()
    assert not desk.begun
    assert len(desk.ended) == 3
    assert desk.reading is None


def test_the_desk_remembers_the_newest_ends_only() -> None:
    desk = Desk()
    for operation in range(REMEMBERED + 10):
        desk.end(operation, Taken(1))
    assert list(desk.ended) == list(range(10, REMEMBERED + 10))


async def test_a_text_is_not_suspected_of_one_crash_or_of_crashes_of_others(
    opened: Open, config_file: ConfigFile
) -> None:
    servers = ScriptedServers(a=["x"], b=["y"])
    config_file.write(PLAIN)
    load, fingerprint = config_file.store.load, config_file.store.fingerprint
    crashes = {"load": 0, "fingerprint": 0}

    def crashing_load(previous: Any = None) -> Any:
        if crashes["load"]:
            crashes["load"] -= 1
            raise Crash
        return load(previous)

    def crashing_fingerprint() -> str | None:
        if crashes["fingerprint"]:
            crashes["fingerprint"] -= 1
            raise Crash
        return fingerprint()

    config_file.store.load = crashing_load  # type: ignore[method-assign]
    config_file.store.fingerprint = crashing_fingerprint  # type: ignore[method-assign]
    async with opened(servers, config_file.store) as host:
        await host.ready(timeout=5)
        config_file.write({**PLAIN, "b": {"command": "b"}})
        crashes["load"] = 1
        assert (await host.reload()).model.config_error is None
        # It dies again and again, but never while a text is being taken up: after an edit that changed nothing, too.
        for _ in range(3):
            await host.tool_set_enabled("a", "x", False)
            crashes["fingerprint"] = 1
            assert (await host.reload()).model.config_error is None
        assert host.snapshot().model.server("b") is not None
        assert servers.spawns["a"] == 1
