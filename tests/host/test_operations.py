"""Operations: the answer is the snapshot that shows the effect; a toggle spawns nothing and waits for no server."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import playbill.actors.projector
import pytest
import trio
from playbill.actors import (
    Config,
    ConfigError,
    Host,
    HostClosed,
    OperationTimeout,
    ServerEntry,
    ServerExists,
    ServerUnavailable,
    UnknownServer,
    UnknownTool,
)
from playbill.actors.testing import Script, ScriptedServers

from .conftest import ConfigFile, Open


async def test_open_host_returns_before_any_server_has_connected(opened: Open) -> None:
    servers = ScriptedServers(a=Script(("x",), connect_delay=math.inf))
    start = trio.current_time()
    async with opened(servers) as host:
        assert trio.current_time() == start
        state = host.snapshot().model.server("a")
        assert (state.phase, state.connected, state.error) == ("starting", False, None)


async def test_a_toggle_spawns_nothing_and_the_tool_stays_listed(opened: Open, config_file: ConfigFile) -> None:
    servers = ScriptedServers(a=["x", "y"])
    config_file.write({"a": {"command": "a", "mine": 1}}, other=[1, 2])
    async with opened(servers, config_file.store) as host:
        await host.ready(timeout=5)
        pid = host.snapshot().model.server("a").pid
        snapshot = await host.tool_set_enabled("a", "x", False)
        assert snapshot.model.tool("a", "x").verdict == "excluded"
        assert [tool.bare for tool in snapshot.catalog.tools] == ["y"]
        assert config_file.read() == {
            "mcpServers": {"a": {"command": "a", "mine": 1, "tools": {"exclude": ["x"]}}},
            "other": [1, 2],
        }
        snapshot = await host.tool_set_enabled("a", "x", True)
        assert [tool.bare for tool in snapshot.catalog.tools] == ["x", "y"]
        assert snapshot.model.server("a").pid == pid
        assert servers.spawns == {"a": 1}


async def test_a_toggle_is_answered_though_its_server_hangs(opened: Open) -> None:
    servers = ScriptedServers(a=Script(("x",), connect_delay=math.inf))
    async with opened(servers) as host:
        start = trio.current_time()
        snapshot = await host.tool_set_enabled("a", "x", False)
        assert trio.current_time() == start
        assert snapshot.model.tool("a", "x").verdict == "excluded"
        assert snapshot.model.server("a").list_state == "none"


async def test_a_burst_of_toggles_costs_few_writes(opened: Open, config_file: ConfigFile) -> None:
    names = [f"t{n}" for n in range(200)]
    servers = ScriptedServers(a=names)
    config_file.write({"a": {"command": "a"}})
    edit = config_file.store.edit
    writes: list[int] = []

    def counted(edits: Sequence[Any], previous: Any = None) -> Any:
        writes.append(len(edits))
        return edit(edits, previous)

    config_file.store.edit = counted  # type: ignore[method-assign]
    async with opened(servers, config_file.store) as host:
        await host.ready(timeout=5)
        async with trio.open_nursery() as nursery:
            for name in names:
                nursery.start_soon(host.tool_set_enabled, "a", name, False)
                nursery.start_soon(host.tool_set_enabled, "a", name, True)
            nursery.start_soon(host.tool_set_enabled, "a", "t0", False)
        assert len(writes) <= 2
        assert sum(writes) <= 201


async def test_the_last_of_many_quick_toggles_wins(opened: Open) -> None:
    servers = ScriptedServers(a=["x"])
    async with opened(servers) as host:
        await host.ready(timeout=5)
        for on in (False, True) * 20:
            snapshot = await host.tool_set_enabled("a", "x", on)
            assert snapshot.model.tool("a", "x").enabled is on


async def test_a_foreign_edit_found_while_applying_ours_is_kept_and_applied(
    opened: Open, config_file: ConfigFile
) -> None:
    servers = ScriptedServers(a=["x"], b=["y"])
    config_file.write({"a": {"command": "a"}})
    async with opened(servers, config_file.store) as host:
        await host.ready(timeout=5)
        config_file.write({"a": {"command": "a"}, "b": {"command": "b"}})
        snapshot = await host.tool_set_enabled("a", "x", False)
        assert [server.name for server in snapshot.model.servers] == ["a", "b"]
        assert snapshot.model.tool("a", "x").enabled is False
        await host.ready(timeout=5)
        assert servers.spawns == {"a": 1, "b": 1}


async def test_add_remove_and_disable_are_visible_at_once(opened: Open) -> None:
    servers = ScriptedServers(a=["x"], b=Script(("y",), connect_delay=3, close_delay=3))
    async with opened(servers, Config((ServerEntry("a", command="a"),))) as host:
        await host.ready(timeout=5)
        snapshot = await host.plugin_add("b", "b")
        assert snapshot.model.server("b").phase == "starting"
        await host.ready(timeout=5)
        start = trio.current_time()
        snapshot = await host.server_set_enabled("b", False)
        assert snapshot.model.server("b").phase in ("stopping", "disabled")
        snapshot = await host.server_set_enabled("b", True)
        assert snapshot.model.server("b").phase == "starting"
        snapshot = await host.plugin_remove("b")
        assert snapshot.model.server("b") is None
        assert trio.current_time() == start
        await trio.sleep(10)
        assert servers.alive == {"a": 1}
        assert servers.most_at_once["b"] == 1


async def test_restart_gives_a_new_process_and_a_clean_history(opened: Open) -> None:
    servers = ScriptedServers(a=["x"])
    async with opened(servers) as host:
        await host.ready(timeout=5)
        old = host.snapshot().model.server("a")
        snapshot = await host.restart("a")
        assert snapshot.model.server("a").phase in ("starting", "ready")
        await host.ready(timeout=5)
        new = host.snapshot().model.server("a")
        assert new.pid != old.pid
        assert new.generation > old.generation
        assert new.restarts == 0
        assert servers.most_at_once == {"a": 1}


async def test_pin_and_trust(opened: Open) -> None:
    servers = ScriptedServers(a=["x", "y"], b=["z"])
    entries = (ServerEntry("a", command="a"), ServerEntry("b", command="b", trusted=False))
    async with opened(servers, Config(entries), budget=1) as host:
        await host.ready(timeout=5)
        assert host.snapshot().model.server("b").phase == "untrusted"
        assert [tool.bare for tool in host.snapshot().catalog.tools] == ["x"]
        snapshot = await host.pin("a", "y", True)
        assert [tool.bare for tool in snapshot.catalog.tools] == ["y"]
        snapshot = await host.pin("a", "y", False)
        assert [tool.bare for tool in snapshot.catalog.tools] == ["x"]
        assert "b" not in servers.spawns
        snapshot = await host.trust("b")
        assert snapshot.model.server("b").phase == "starting"
        assert await host.ready(timeout=5)


async def test_bad_names_are_refused_with_the_nearest_valid_one(opened: Open, config_file: ConfigFile) -> None:
    servers = ScriptedServers(github=["create_issue"])
    config_file.write({"github": {"command": "github"}})
    text = config_file.path.read_text()
    async with opened(servers, config_file.store) as host:
        await host.ready(timeout=5)
        with pytest.raises(UnknownServer, match="did you mean 'github'"):
            await host.tool_set_enabled("gihub", "create_issue", False)
        with pytest.raises(UnknownTool, match="did you mean 'create_issue'"):
            await host.tool_set_enabled("github", "create_isue", False)
        with pytest.raises(UnknownServer):
            await host.plugin_remove("gitlab")
        with pytest.raises(ServerExists):
            await host.plugin_add("github", "other")
        with pytest.raises(ConfigError, match="command or a url"):
            await host.plugin_add("new")
        with pytest.raises(UnknownServer):
            await host.restart("gihub")
        with pytest.raises(ConfigError):
            await host.apply(Config())
        assert config_file.path.read_text() == text


async def test_apply_puts_a_value_in_force_and_runs_its_delta(opened: Open) -> None:
    servers = ScriptedServers(a=["x"], b=["y"])
    a, b = servers.entries()
    async with opened(servers, Config((a,))) as host:
        await host.ready(timeout=5)
        snapshot = await host.apply(Config((a, b)))
        assert [server.name for server in snapshot.model.servers] == ["a", "b"]
        assert await host.ready(timeout=5)
        snapshot = await host.tool_set_enabled("b", "y", False)
        assert snapshot.catalog.tool("mcp__b__y") is None
        assert servers.spawns == {"a": 1, "b": 1}


async def test_an_operation_that_is_not_visible_in_time_says_whether_it_was_applied(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = ScriptedServers(a=["x"])
    async with opened(servers) as host:
        await host.ready(timeout=5)
        monkeypatch.setattr(playbill.actors.projector, "project", lambda *args: args[4])
        start = trio.current_time()
        with pytest.raises(OperationTimeout) as timeout:
            await host.tool_set_enabled("a", "x", False, timeout=3)
        assert trio.current_time() - start == pytest.approx(3)
        assert timeout.value.applied is True


async def test_a_closed_host_refuses_everything_and_still_reads(opened: Open) -> None:
    servers = ScriptedServers(a=["x"])
    seen: list[int] = []
    async with trio.open_nursery() as nursery, opened(servers) as host:
        await host.ready(timeout=5)

        async def watch(host: Host) -> None:
            async for snapshot in host.changes():
                seen.append(snapshot.version)

        nursery.start_soon(watch, host)
        await trio.testing.wait_all_tasks_blocked()
    assert seen
    assert host.snapshot().model.server("a") is not None
    for operation in (
        lambda: host.reload(),
        lambda: host.plugin_add("b", "b"),
        lambda: host.restart("a"),
        lambda: host.call("mcp__a__x"),
        lambda: host.call_tool("a", "x"),
    ):
        with pytest.raises(HostClosed):
            await operation()


async def test_what_the_body_raises_leaves_unwrapped(opened: Open) -> None:
    servers = ScriptedServers(a=["x"])
    with pytest.raises(KeyError, match="mine"):
        async with opened(servers) as host:
            await host.ready(timeout=5)
            raise KeyError("mine")
    assert servers.alive == {}


async def test_cancelling_the_program_closes_the_host(opened: Open) -> None:
    servers = ScriptedServers(a=Script(("x",), close_delay=2), b=Script(("y",), close_delay=2))
    start = trio.current_time()
    with trio.move_on_after(1) as scope:
        async with opened(servers) as host:
            await host.ready(timeout=0.5)
            await trio.sleep_forever()
    assert scope.cancelled_caught
    assert servers.alive == {}
    assert trio.current_time() - start == pytest.approx(3)


async def test_servers_that_refuse_to_end_do_not_hold_close_beyond_its_budget(opened: Open) -> None:
    servers = ScriptedServers(**{f"s{n}": Script(("x",), close_delay=4) for n in range(5)})
    async with opened(servers) as host:
        await host.ready(timeout=5)
        start = trio.current_time()
    assert trio.current_time() - start == pytest.approx(4)


async def test_restarting_what_is_not_meant_to_run_is_refused(opened: Open) -> None:
    entries = (ServerEntry("off", command="x", disabled=True), ServerEntry("bad", error="no command"))
    async with opened(ScriptedServers(), Config(entries)) as host:
        with pytest.raises(ServerUnavailable, match="disabled"):
            await host.restart("off")
        with pytest.raises(ServerUnavailable, match="no command"):
            await host.revive("bad")
        with pytest.raises(ServerUnavailable, match="disabled"):
            await host.call_tool("off", "x")


async def test_what_cannot_be_a_name_is_refused_where_it_is_written(opened: Open) -> None:
    anything: Any = None
    async with opened(ScriptedServers(a=["x"])) as host:
        await host.ready(timeout=5)
        for operation in (
            lambda: host.trust(anything),
            lambda: host.plugin_remove(anything),
            lambda: host.plugin_add(b"a", "b"),  # type: ignore[arg-type]
            lambda: host.tool_set_enabled("a", anything, False),
            lambda: host.server_set_enabled(anything, True),
            lambda: host.apply("x"),  # type: ignore[arg-type]
            lambda: host.call("mcp__a__x", {1: 2}),  # type: ignore[dict-item]
            lambda: host.call_tool("a", "x", ["y"]),  # type: ignore[arg-type]
        ):
            with pytest.raises(TypeError):
                await operation()
        with pytest.raises(ValueError, match="timeout"):
            await host.call("mcp__a__x", timeout=math.nan)
        assert await host.reload() is host.snapshot()


async def test_an_operation_that_ends_the_coordinator_each_time_is_given_up_and_costs_nobody_else(
    opened: Open, config_file: ConfigFile
) -> None:
    config_file.write({"a": {"command": "a"}})
    edit = config_file.store.edit

    def crashing(edits: Sequence[Any], previous: Any = None) -> Any:
        if any(each.server == "cursed" for each in edits):
            raise RuntimeError("a defect of ours")
        return edit(edits, previous)

    config_file.store.edit = crashing  # type: ignore[method-assign]
    async with opened(ScriptedServers(a=["x"]), config_file.store) as host:
        await host.ready(timeout=5)
        with pytest.raises(ConfigError, match="given up"):
            await host.plugin_add("cursed", "x")
        snapshot = await host.tool_set_enabled("a", "x", False)
        assert snapshot.model.config_error is None
        assert snapshot.model.tool("a", "x").verdict == "excluded"
