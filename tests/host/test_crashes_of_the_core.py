"""A crash of the projector or coordinator reconnects no server, loses no edit and applies none twice (invariant 8)."""

from __future__ import annotations

from typing import Any

import playbill.actors.projector
import pytest
import trio
from playbill.actors import ConfigError, ServerExists, UnknownServer
from playbill.actors.ports import NoSites
from playbill.actors.testing import Script, ScriptedServers
from playbill.supervision import Escalated

from .conftest import ConfigFile, Open
from .test_looks import look


class Crash(Exception):
    """A defect of ours: nothing that the code expects."""


async def test_coordinator_killed_between_the_files_replacement_and_the_reply_of_an_add(
    opened: Open, config_file: ConfigFile
) -> None:
    servers = ScriptedServers(a=["x"], b=["y"])
    config_file.write({"a": {"command": "a"}})
    async with opened(servers, config_file.store) as host:
        await host.ready(timeout=5)
        left = config_file.crash_after_edit()
        snapshot = await host.plugin_add("b", "b")
        assert left == [0]
        assert [server.name for server in snapshot.model.servers] == ["a", "b"]
        await host.ready(timeout=5)
        assert list(config_file.read()["mcpServers"]) == ["a", "b"]
        assert servers.spawns == {"a": 1, "b": 1}


async def test_coordinator_killed_before_the_reply_of_a_remove(opened: Open, config_file: ConfigFile) -> None:
    servers = ScriptedServers(a=["x"], b=["y"])
    config_file.write({"a": {"command": "a"}, "b": {"command": "b"}})
    async with opened(servers, config_file.store) as host:
        await host.ready(timeout=5)
        config_file.crash_after_edit(times=3)
        snapshot = await host.plugin_remove("b")
        assert [server.name for server in snapshot.model.servers] == ["a"]
        assert servers.spawns == {"a": 1, "b": 1}


async def test_an_operation_that_was_refused_stays_refused_after_a_crash(opened: Open, config_file: ConfigFile) -> None:
    servers = ScriptedServers(a=["x"])
    config_file.write({"a": {"command": "a"}})
    async with opened(servers, config_file.store) as host:
        await host.ready(timeout=5)
        config_file.crash_after_edit()
        with pytest.raises(ServerExists):
            await host.plugin_add("a", "another-command")
        config_file.crash_after_edit()
        with pytest.raises(UnknownServer):
            await host.tool_set_enabled("nobody", "x", False)
        assert servers.spawns == {"a": 1}


async def test_no_edit_of_a_burst_is_lost_or_applied_twice_when_the_coordinator_dies_in_it(
    opened: Open, config_file: ConfigFile
) -> None:
    names = [f"t{n}" for n in range(50)]
    servers = ScriptedServers(a=names)
    config_file.write({"a": {"command": "a"}})
    async with opened(servers, config_file.store) as host:
        await host.ready(timeout=5)
        config_file.crash_after_edit(times=4)
        async with trio.open_nursery() as nursery:
            for name in names:
                nursery.start_soon(host.tool_set_enabled, "a", name, False)
        assert sorted(config_file.read()["mcpServers"]["a"]["tools"]["exclude"]) == sorted(names)
        assert servers.spawns == {"a": 1}


async def test_a_text_that_crashes_the_coordinator_is_refused_by_fingerprint(
    opened: Open, config_file: ConfigFile
) -> None:
    servers = ScriptedServers(a=["x"], b=["y"])
    config_file.write({"a": {"command": "a"}})
    load = config_file.store.load

    def load_it(previous: Any = None) -> Any:
        loaded = load(previous)
        if loaded.get("poison") is not None:
            raise Crash
        return loaded

    config_file.store.load = load_it  # type: ignore[method-assign]
    async with opened(servers, config_file.store) as host:
        await host.ready(timeout=5)
        config_file.write({"a": {"command": "a"}, "poison": {"command": "p"}})
        with pytest.raises(ConfigError, match="twice"):
            await host.reload()
        model = host.snapshot().model
        assert model.config_error is not None
        assert model.server("a").phase == "ready"
        config_file.write({"a": {"command": "a"}, "b": {"command": "b"}})
        snapshot = await host.reload()
        assert snapshot.model.config_error is None
        await host.ready(timeout=5)
        assert servers.spawns == {"a": 1, "b": 1}


async def test_a_restarted_coordinator_does_not_forget_that_the_file_cannot_be_read(
    opened: Open, config_file: ConfigFile
) -> None:
    """It dies behind its write, and by then the file is broken: what it finds when it sits down again is told, and stays."""
    servers = ScriptedServers(a=["x"])
    config_file.write({"a": {"command": "a"}})
    errors: list[str | None] = []

    class Strike(NoSites):
        left = 1

        async def hit(self, site: str, who: str) -> None:
            await trio.lowlevel.checkpoint()
            if site == "coordinator" and self.left:
                self.left -= 1
                config_file.path.write_text("{")
                raise Crash

    async with opened(servers, config_file.store, sites=Strike()) as host:
        await host.ready(timeout=5)

        async def watch() -> None:
            async for snapshot in host.changes():
                errors.append(snapshot.model.config_error)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(watch)
            await host.tool_set_enabled("a", "x", False)  # it was written, so it is not refused
            assert host.snapshot().model.config_error is not None
            await trio.sleep(1)
            assert host.snapshot().model.config_error is not None
            nursery.cancel_scope.cancel()
        told = [error is not None for error in errors]
        assert told == sorted(told), "once it is told it stays"
        refused = host.snapshot()
        assert await look(host) is refused, "and what was refused is known"
        config_file.write({"a": {"command": "a"}})
        assert (await look(host)).model.config_error is None
        assert servers.spawns == {"a": 1}


async def test_projector_killed_again_and_again_during_a_hundred_toggles(
    opened: Open, config_file: ConfigFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = [f"t{n}" for n in range(100)]
    servers = ScriptedServers(a=names)
    config_file.write({"a": {"command": "a"}})
    project = playbill.actors.projector.project
    rounds = crashes = 0

    def crashing(*args: Any, **named: Any) -> Any:
        nonlocal rounds, crashes
        rounds += 1
        if rounds % 3 == 0 and crashes < 15:
            crashes += 1
            raise Crash
        return project(*args, **named)

    async with opened(servers, config_file.store, budget=1000) as host:
        await host.ready(timeout=5)
        pid = host.snapshot().model.server("a").pid
        monkeypatch.setattr(playbill.actors.projector, "project", crashing)
        versions = [host.snapshot().version]
        for name in names:
            snapshot = await host.tool_set_enabled("a", name, False)
            assert snapshot.model.tool("a", name).verdict == "excluded"
            versions.append(snapshot.version)
        assert crashes == 15
        assert versions == sorted(versions)
        assert servers.spawns == {"a": 1}
        assert servers.ends == {}
        assert host.snapshot().model.server("a").pid == pid


async def test_a_dead_projector_means_stale_never_hung(opened: Open, monkeypatch: pytest.MonkeyPatch) -> None:
    servers = ScriptedServers(a=["x"])

    def crashing(*args: Any, **named: Any) -> Any:
        raise Crash

    async with opened(servers) as host:
        await host.ready(timeout=5)
        before = host.snapshot()
        with monkeypatch.context() as patch:
            patch.setattr(playbill.actors.projector, "project", crashing)
            servers.scripts["a"].tools = Script(("x", "new")).tools
            servers.live["a"].announce()
            await trio.sleep(0.2)
            assert host.snapshot() is before
            assert (await host.call("mcp__a__x")) is not None
        await trio.sleep(5)
        assert [tool.bare for tool in host.snapshot().model.server("a").tools] == ["x", "new"]


async def test_a_core_actor_that_cannot_be_kept_alive_leaves_open_host_alone_and_closes_everything(
    opened: Open, monkeypatch: pytest.MonkeyPatch
) -> None:
    servers = ScriptedServers(a=["x"])

    def crashing(*args: Any, **named: Any) -> Any:
        raise Crash

    with pytest.raises(Escalated):
        async with opened(servers) as host:
            await host.ready(timeout=5)
            monkeypatch.setattr(playbill.actors.projector, "project", crashing)
            servers.live["a"].lose()
            await trio.sleep_forever()
    assert servers.alive == {}
