"""Reloads: exactly the delta is spawned and stopped; serialized, coalesced, and no edit is lost."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from playbill.actors import ConfigError
from playbill.actors.model.why import why
from playbill.actors.testing import Script, ScriptedServers

from .conftest import ConfigFile, Open


def entry(name: str, **keys: Any) -> dict[str, Any]:
    return {"command": name, **keys}


async def test_a_reload_spawns_and_stops_exactly_the_delta(opened: Open, config_file: ConfigFile) -> None:
    servers = ScriptedServers(kept=["k"], gone=["g"], new=["n"], changed=["c"])
    config_file.write({"kept": entry("kept"), "gone": entry("gone"), "changed": entry("changed")})
    async with opened(servers, config_file.store) as host:
        assert await host.ready(timeout=5)
        pid = host.snapshot().model.server("kept").pid
        config_file.write({"new": entry("new"), "kept": entry("kept"), "changed": entry("changed", args=["-v"])})
        await host.reload()
        assert await host.ready(timeout=5)
        model = host.snapshot().model
        assert [server.name for server in model.servers] == ["new", "kept", "changed"]
        assert model.server("kept").pid == pid
        assert servers.spawns == {"kept": 1, "gone": 1, "changed": 2, "new": 1}
        assert servers.alive == {"kept": 1, "changed": 1, "new": 1}
        assert servers.most_at_once["changed"] == 1
    assert servers.alive == {}


async def test_a_reload_of_an_unchanged_file_changes_nothing_at_all(opened: Open, config_file: ConfigFile) -> None:
    servers = ScriptedServers(a=["x"], b=["y"])
    config_file.write({"a": entry("a"), "b": entry("b")})
    async with opened(servers, config_file.store) as host:
        await host.ready(timeout=5)
        before = host.snapshot()
        assert await host.reload() is before
        assert servers.spawns == {"a": 1, "b": 1}


@pytest.mark.parametrize(
    "edit",
    [
        {"tools": {"exclude": ["x"]}},
        {"priority": 7},
        {"timeout": 5},
        {"note": "an unknown key"},
        {"tools": {"pin": ["x"]}},
    ],
)
async def test_an_edit_by_hand_that_is_no_launch_key_spawns_nothing_and_the_snapshot_follows(
    opened: Open, config_file: ConfigFile, edit: dict[str, Any]
) -> None:
    servers = ScriptedServers(a=["x", "y"])
    config_file.write({"a": entry("a")})
    async with opened(servers, config_file.store) as host:
        await host.ready(timeout=5)
        config_file.write({"a": entry("a", **edit)})
        snapshot = await host.reload()
        assert servers.spawns == {"a": 1}
        assert servers.ends == {}
        excluded = edit.get("tools", {}).get("exclude", [])
        assert [tool.bare for tool in snapshot.model.server("a").tools if not tool.enabled] == excluded


async def test_a_comment_added_by_hand_spawns_nothing(opened: Open, config_file: ConfigFile) -> None:
    servers = ScriptedServers(a=["x"])
    config_file.write({"a": entry("a")})
    async with opened(servers, config_file.store) as host:
        await host.ready(timeout=5)
        config_file.path.write_text("// mine\n" + config_file.path.read_text())
        before = host.snapshot()
        assert await host.reload() is before
        assert servers.spawns == {"a": 1}


async def test_a_comment_added_above_a_list_moves_the_line_that_is_told_and_nothing_else(
    opened: Open, config_file: ConfigFile
) -> None:
    servers = ScriptedServers(a=["x"])
    config_file.write({"a": entry("a", tools={"exclude": ["x"]})})
    async with opened(servers, config_file.store) as host:
        await host.ready(timeout=5)
        before, line = host.snapshot(), host.why("a", "x").line
        assert line is not None
        config_file.path.write_text("// mine\n" + config_file.path.read_text())
        after = await host.reload()
        assert host.why("a", "x").line == line + 1
        assert why(before, "a", "x").line == line, "a snapshot does not change"
        assert (after.model, after.catalog) == (before.model, before.catalog)
        assert after.model.servers[0] is before.model.servers[0]
        assert servers.spawns == {"a": 1}


async def test_the_launch_keys_are_compared_by_meaning(opened: Open, config_file: ConfigFile) -> None:
    servers = ScriptedServers(a=["x"])
    config_file.write({"a": entry("a", env={"B": "2", "A": "1"})})
    async with opened(servers, config_file.store) as host:
        await host.ready(timeout=5)
        config_file.write({"a": {"type": "stdio", "env": {"A": "1", "B": "2"}, "args": [], "command": "a"}})
        await host.reload()
        assert servers.spawns == {"a": 1}


async def test_a_hundred_concurrent_reloads_cost_at_most_two_and_all_return(
    opened: Open, config_file: ConfigFile
) -> None:
    servers = ScriptedServers(a=["x"])
    config_file.write({"a": entry("a")})
    loads = 0
    load = config_file.store.load

    def counted(previous: Any = None) -> Any:
        nonlocal loads
        loads += 1
        return load(previous)

    config_file.store.load = counted  # type: ignore[method-assign]
    async with opened(servers, config_file.store) as host:
        await host.ready(timeout=5)
        loads = 0
        returned = 0

        async def one() -> None:
            nonlocal returned
            await host.reload()
            returned += 1

        async with trio.open_nursery() as nursery:
            for _ in range(100):
                nursery.start_soon(one)
        assert returned == 100
        assert 1 <= loads <= 2


async def test_a_config_edited_during_a_reload_is_in_the_last_snapshot(opened: Open, config_file: ConfigFile) -> None:
    servers = ScriptedServers(a=["x"], b=["y"])
    config_file.write({"a": entry("a")})
    load = config_file.store.load
    edited = False

    def slow(previous: Any = None) -> Any:
        """Reads the file, and only then the person saves: the reload in progress cannot have seen it."""
        nonlocal edited
        loaded = load(previous)
        if not edited and host_is_open:
            edited = True
            config_file.write({"a": entry("a"), "b": entry("b")})
            late.append(None)
        return loaded

    host_is_open = False
    late: list[None] = []
    config_file.store.load = slow  # type: ignore[method-assign]
    async with opened(servers, config_file.store) as host:
        host_is_open = True

        async def second() -> None:
            while not late:
                await trio.lowlevel.checkpoint()
            await host.reload()

        async with trio.open_nursery() as nursery:
            nursery.start_soon(second)
            await host.reload()
        assert host.snapshot().model.server("b") is not None


async def test_a_file_that_cannot_be_read_never_replaces_a_good_one(opened: Open, config_file: ConfigFile) -> None:
    servers = ScriptedServers(a=["x"])
    config_file.write({"a": entry("a")})
    async with opened(servers, config_file.store) as host:
        await host.ready(timeout=5)
        good = config_file.path.read_text()
        config_file.path.write_text('{"mcpServers": {"a": ')
        with pytest.raises(ConfigError) as refused:
            await host.reload()
        assert str(config_file.path) in str(refused.value)
        model = host.snapshot().model
        assert model.config_error == str(refused.value)
        assert model.server("a").phase == "ready"
        with pytest.raises(ConfigError):
            await host.tool_set_enabled("a", "x", False)
        assert config_file.path.read_text() == '{"mcpServers": {"a": '
        config_file.path.write_text(good)
        snapshot = await host.reload()
        assert snapshot.model.config_error is None
        assert servers.spawns == {"a": 1}


async def test_an_entry_that_is_wrong_fails_alone(opened: Open, config_file: ConfigFile) -> None:
    servers = ScriptedServers(good=["x"])
    config_file.write({"bad": {}, "good": entry("good")})
    async with opened(servers, config_file.store) as host:
        readiness = await host.ready(timeout=5)
        assert readiness.ready == ("good",)
        assert "mcpServers.bad" in readiness.missing["bad"]
        assert host.snapshot().model.server("bad").phase == "invalid"
        assert servers.spawns == {"good": 1}


async def test_a_server_removed_while_it_connects_is_gone_without_grace(opened: Open, config_file: ConfigFile) -> None:
    servers = ScriptedServers(slow=Script(("x",), connect_delay=100))
    config_file.write({"slow": entry("slow")})
    async with opened(servers, config_file.store) as host:
        await trio.sleep(1)
        assert servers.alive == {"slow": 1}
        config_file.write({})
        snapshot = await host.reload()
        assert snapshot.model.servers == ()
        await trio.testing.wait_all_tasks_blocked()
        assert servers.alive == {}
        assert trio.current_time() < 2
        assert host.tree().children[-1].children == ()
