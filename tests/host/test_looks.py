"""What a watcher asks for: a reload if the text is another one than was last taken up or refused. Told by content alone."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from playbill.actors import ConfigError, Host, Snapshot
from playbill.actors.desk import Reload
from playbill.actors.testing import ScriptedServers

from .conftest import ConfigFile, Open


async def look(host: Host) -> Snapshot:
    return await host._operations.submit("reload", Reload(if_changed=True), None)


class Loads:
    """How often the store was read for a reload or an edit."""

    def __init__(self, config_file: ConfigFile) -> None:
        self.count = 0
        load = config_file.store.load

        def counted(previous: Any = None) -> Any:
            self.count += 1
            return load(previous)

        config_file.store.load = counted  # type: ignore[method-assign]


@pytest.fixture
def servers() -> ScriptedServers:
    return ScriptedServers(a=["x"], b=["y"])


async def test_a_text_that_is_in_force_is_not_read_again(
    opened: Open, config_file: ConfigFile, servers: ScriptedServers
) -> None:
    config_file.write({"a": {"command": "a"}})
    async with opened(servers, config_file.store) as host:
        await host.ready(timeout=5)
        loads = Loads(config_file)
        before = host.snapshot()
        assert await look(host) is before
        config_file.path.write_bytes(config_file.path.read_bytes())
        assert await look(host) is before
        assert loads.count == 0
        config_file.write({"b": {"command": "b"}})
        assert [server.name for server in (await look(host)).model.servers] == ["b"]
        assert loads.count == 1
        await look(host)
        assert loads.count == 1


async def test_our_own_writes_are_known(opened: Open, config_file: ConfigFile, servers: ScriptedServers) -> None:
    config_file.write({"a": {"command": "a"}})
    async with opened(servers, config_file.store) as host:
        await host.ready(timeout=5)
        await host.plugin_add("b", "b")
        await host.tool_set_enabled("a", "x", False)
        loads = Loads(config_file)
        await look(host)
        assert loads.count == 0
        config_file.write({"a": {"command": "a"}})  # as it was before us
        assert [server.name for server in (await look(host)).model.servers] == ["a"]


async def test_what_is_written_right_behind_our_write_is_not_taken_for_ours(
    opened: Open, config_file: ConfigFile, servers: ScriptedServers
) -> None:
    config_file.write({"a": {"command": "a"}})
    edit = config_file.store.edit

    def followed(edits: Any, previous: Any = None) -> Any:
        done = edit(edits, previous)
        config_file.write({"b": {"command": "b"}})
        return done

    async with opened(servers, config_file.store) as host:
        await host.ready(timeout=5)
        config_file.store.edit = followed  # type: ignore[method-assign]
        await host.tool_set_enabled("a", "x", False)
        assert [server.name for server in (await look(host)).model.servers] == ["b"]


async def test_what_is_put_back_while_it_is_read_is_not_taken_for_what_was_read(
    opened: Open, config_file: ConfigFile, servers: ScriptedServers
) -> None:
    config_file.write({"a": {"command": "a"}})
    store = config_file.store
    fingerprint = store.fingerprint

    async with opened(servers, store) as host:
        await host.ready(timeout=5)
        first = config_file.path.read_text()
        load = store.load

        def in_between(previous: Any = None) -> Any:
            config_file.write({"b": {"command": "b"}})
            loaded = load(previous)
            config_file.path.write_text(first)
            return loaded

        store.load = in_between  # type: ignore[method-assign]
        assert [server.name for server in (await host.reload()).model.servers] == ["b"]
        store.load = load  # type: ignore[method-assign]
        assert fingerprint() is not None
        assert [server.name for server in (await look(host)).model.servers] == ["a"]


@pytest.mark.parametrize("broken", ["{", "", None])
async def test_a_text_that_was_refused_is_told_once_and_the_old_one_put_back_mends_it(
    opened: Open, config_file: ConfigFile, servers: ScriptedServers, broken: str | None
) -> None:
    config_file.write({"a": {"command": "a"}})
    async with opened(servers, config_file.store) as host:
        await host.ready(timeout=5)
        good = config_file.path.read_text()
        loads = Loads(config_file)
        config_file.path.unlink() if broken is None else config_file.path.write_text(broken)
        with pytest.raises(ConfigError):
            await look(host)
        refused = host.snapshot()
        assert refused.model.config_error is not None
        assert await look(host) is refused
        assert loads.count == 1
        config_file.path.write_text(good)
        assert (await look(host)).model.config_error is None
        assert servers.spawns == {"a": 1}


@pytest.mark.parametrize("late", [False, True])
async def test_a_text_that_an_edit_found_broken_is_mended_by_the_old_one(
    opened: Open, config_file: ConfigFile, servers: ScriptedServers, late: bool
) -> None:
    """Broken before the edit, or between its first look at the text and its second."""
    config_file.write({"a": {"command": "a"}})
    edit = config_file.store.edit

    def breaking(edits: Any, previous: Any = None) -> Any:
        config_file.path.write_text("{")
        return edit(edits, previous)

    async with opened(servers, config_file.store) as host:
        await host.ready(timeout=5)
        good = config_file.path.read_text()
        if late:
            config_file.store.edit = breaking  # type: ignore[method-assign]
        else:
            config_file.path.write_text("{")
        with pytest.raises(ConfigError):
            await host.tool_set_enabled("a", "x", False)
        config_file.store.edit = edit  # type: ignore[method-assign]
        assert host.snapshot().model.config_error is not None
        config_file.path.write_text(good)
        assert (await look(host)).model.config_error is None


async def test_a_reload_asked_for_beside_a_look_is_a_reload(
    opened: Open, config_file: ConfigFile, servers: ScriptedServers
) -> None:
    config_file.write({"a": {"command": "a"}})
    async with opened(servers, config_file.store) as host:
        await host.ready(timeout=5)
        loads = Loads(config_file)
        async with trio.open_nursery() as nursery:
            for _ in range(50):
                nursery.start_soon(look, host)
                nursery.start_soon(host.reload)
        assert 1 <= loads.count <= 2


async def test_a_hundred_looks_at_a_new_text_cost_one_reload(
    opened: Open, config_file: ConfigFile, servers: ScriptedServers
) -> None:
    config_file.write({"a": {"command": "a"}})
    async with opened(servers, config_file.store) as host:
        await host.ready(timeout=5)
        loads = Loads(config_file)
        config_file.write({"a": {"command": "a"}, "b": {"command": "b"}})
        async with trio.open_nursery() as nursery:
            for _ in range(100):
                nursery.start_soon(look, host)
        assert loads.count == 1
        assert servers.spawns == {"a": 1, "b": 1}
