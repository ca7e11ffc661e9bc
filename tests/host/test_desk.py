"""Operations to their end: merged, refused, begun, given up, and what is remembered of them."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import playbill.actors.house
import playbill.actors.opening
import playbill.actors.projector
import pytest
import trio
from playbill.actors import (
    Config,
    ConfigError,
    OperationTimeout,
    ServerEntry,
    Snapshot,
    UnknownServer,
)
from playbill.actors.desk import REMEMBERED, Desk, Taken, merge
from playbill.actors.model.edits import AddServer, RemoveServer, SetTool
from playbill.actors.testing import ScriptedServers

from .conftest import ConfigFile, Open

PLAIN = {"a": {"command": "a"}}


class Crash(Exception):
    """A defect of ours: nothing that the code expects."""


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


async def test_a_file_that_was_emptied_is_unreadable_and_not_a_configuration_without_servers(
    opened: Open, config_file: ConfigFile
) -> None:
    servers = ScriptedServers(a=["x"])
    config_file.write(PLAIN)
    async with opened(servers, config_file.store) as host:
        await host.ready(timeout=5)
        config_file.path.write_text("")
        for operation in (host.reload, lambda: host.plugin_add("b", "b")):
            with pytest.raises(ConfigError, match="empty"):
                await operation()
        await trio.sleep(60)
        assert config_file.path.read_text() == ""
        assert host.snapshot().model.server("a").phase == "ready"
        assert servers.spawns == {"a": 1}
        assert servers.ends == {}


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

    def crashing(*given: Any, **named: Any) -> Any:
        nonlocal crashes
        if crashes:
            crashes -= 1
            raise Crash
        return project(*given, **named)

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
