"""A host that watches its file: real files and the real watch; servers in memory, so that a test counts what is started.

Determinism: a test waits for the snapshot, or for the end of a look that the watch caused; no time is asserted.
"""

from __future__ import annotations

import json
import os
import shutil
import sys
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager, suppress
from pathlib import Path
from typing import Any

import pytest
import trio
import watchfiles
from playbill.actors import Config, Host, OperationTimeout, PlaybillError, Snapshot, open_host
from playbill.actors.coordinator import Coordinator
from playbill.actors.edge.config import file as file_module
from playbill.actors.edge.config import watch as watch_module
from playbill.actors.edge.config.file import FileStore
from playbill.actors.house import House
from playbill.actors.testing import ScriptedServers
from playbill.supervision import Cell

from .conftest import PATIENCE, Project, fake


def text_of(*names: str, **keys: Any) -> str:
    return json.dumps({"mcpServers": {name: {"command": name, **keys} for name in names}}, indent=2)


def servers() -> ScriptedServers:
    return ScriptedServers(**{name: ["x", "y", "z"] for name in "abcdef"})


def watched(path: Path, connect: ScriptedServers, **options: Any) -> AbstractAsyncContextManager[Host]:
    return open_host(path, connect=connect, watch=True, **options)


async def shows(host: Host, what: Callable[[Snapshot], bool]) -> Snapshot:
    with trio.fail_after(PATIENCE):
        async for snapshot in host.changes():
            if what(snapshot):
                return snapshot
    raise AssertionError("the host closed")


async def shows_servers(host: Host, *names: str) -> Snapshot:
    return await shows(
        host,
        lambda snapshot: (
            snapshot.model.config_error is None and [each.name for each in snapshot.model.servers] == list(names)
        ),
    )


class Looks:
    """What the watch caused: how often it had the coordinator look, and how often that was a reload."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.ended = Cell(0)
        self.reloads = 0
        look, load = House._look_again, Coordinator._load

        async def looking(house: House) -> None:
            await look(house)
            self.ended.set(self.ended.value + 1)

        def loading(coordinator: Coordinator, trusted: Any) -> Any:
            self.reloads += 1
            return load(coordinator, trusted)

        monkeypatch.setattr(House, "_look_again", looking)
        monkeypatch.setattr(Coordinator, "_load", loading)

    async def another(self, than: int) -> None:
        with trio.fail_after(PATIENCE):
            await self.ended.wait(lambda count: count > than)


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> Looks:
    monkeypatch.setattr(watch_module, "STEP", 0.02)
    return Looks(monkeypatch)


async def test_a_change_of_the_file_starts_and_stops_exactly_the_delta(tmp_path: Path, looks: Looks) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(text_of("a", "b"))
    connect = servers()
    async with watched(path, connect) as host:
        assert await host.ready(timeout=PATIENCE)
        path.write_text(text_of("b", "c"))
        await shows_servers(host, "b", "c")
        assert await host.ready(timeout=PATIENCE)
        path.with_suffix(".new").write_text(text_of("b", "c", "d"))
        path.with_suffix(".new").replace(path)
        await shows_servers(host, "b", "c", "d")
        assert await host.ready(timeout=PATIENCE)
        assert connect.spawns == {"a": 1, "b": 1, "c": 1, "d": 1}
        assert connect.alive == {"b": 1, "c": 1, "d": 1}


async def test_our_own_writes_cause_no_reload_and_a_foreign_one_between_them_does(tmp_path: Path, looks: Looks) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(text_of("a"))
    connect = servers()
    async with watched(path, connect) as host:
        assert await host.ready(timeout=PATIENCE)
        await looks.another(0)
        for on in (False, True, False):
            count = looks.ended.value
            await host.tool_set_enabled("a", "x", on)
            await looks.another(count)
        count = looks.ended.value
        await host.plugin_add("b", "b")
        await looks.another(count)
        assert looks.reloads == 0
        path.write_text(text_of("a", "b", "c"))
        await shows_servers(host, "a", "b", "c")
        reloads = looks.reloads
        assert reloads >= 1
        count = looks.ended.value
        await host.plugin_remove("c")
        await looks.another(count)
        assert looks.reloads == reloads
        assert connect.spawns == {"a": 1, "b": 1, "c": 1}


async def test_a_text_that_was_ours_before_and_is_put_back_by_hand_is_taken_up(tmp_path: Path, looks: Looks) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(text_of("a"))
    async with watched(path, servers()) as host:
        await looks.another(0)
        for _ in range(3):
            await host.plugin_add("b", "b")
            path.write_text(text_of("a"))
            await shows_servers(host, "a")


async def test_what_another_program_writes_right_behind_us_is_not_taken_for_ours(
    tmp_path: Path, looks: Looks, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(text_of("a"))
    write = file_module.write_atomic

    def followed(target: Path, data: bytes, **options: Any) -> bool:
        done = write(target, data, **options)
        path.write_text(text_of("a", "b", "c"))
        return done

    async with watched(path, servers()) as host:
        await looks.another(0)
        monkeypatch.setattr(file_module, "write_atomic", followed)
        await host.plugin_add("b", "b")
        await shows_servers(host, "a", "b", "c")


async def test_a_file_that_is_broken_while_it_is_saved_costs_nothing_and_is_told_until_it_is_mended(
    tmp_path: Path, looks: Looks
) -> None:
    path = tmp_path / "mcp.json"
    good = text_of("a", "b")
    path.write_text(good)
    connect = servers()
    async with watched(path, connect) as host:
        assert await host.ready(timeout=PATIENCE)
        for broken, words in (
            (good[: len(good) // 2], "mcp.json:"),
            ("", "mcp.json"),
            (None, "no such file"),
        ):
            if broken is None:
                path.unlink()
            else:
                path.write_text(broken)
            snapshot = await shows(host, lambda snapshot: snapshot.model.config_error is not None)
            assert words in str(snapshot.model.config_error)
            assert [server.name for server in snapshot.model.servers] == ["a", "b"]
            path.write_text(good)
            snapshot = await shows_servers(host, "a", "b")
        assert connect.spawns == {"a": 1, "b": 1}


async def test_a_broken_text_is_read_once_and_not_again_at_each_look(tmp_path: Path, looks: Looks) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(text_of("a"))
    async with watched(path, servers()) as host:
        await looks.another(0)
        path.with_suffix(".new").write_text("{")
        path.with_suffix(".new").replace(path)
        await shows(host, lambda snapshot: snapshot.model.config_error is not None)
        count, reloads = looks.ended.value, looks.reloads
        os.utime(path)
        await looks.another(count)
        path.with_suffix(".new").write_text("{")
        path.with_suffix(".new").replace(path)
        await looks.another(looks.ended.value)
        assert looks.reloads == reloads
        assert host.snapshot().model.config_error is not None


async def test_a_symlinked_file_in_a_folder_that_comes_and_goes(tmp_path: Path, looks: Looks) -> None:
    folder = tmp_path / "dotfiles"
    folder.mkdir()
    (folder / "mcp.json").write_text(text_of("a"))
    path = tmp_path / "home" / ".mcp.json"
    path.parent.mkdir()
    path.symlink_to(folder / "mcp.json")
    async with watched(path, servers()) as host:
        (folder / "mcp.json").write_text(text_of("a", "b"))
        await shows_servers(host, "a", "b")
        shutil.rmtree(folder)
        await shows(host, lambda snapshot: "no such file" in str(snapshot.model.config_error))
        folder.mkdir()
        (folder / "mcp.json").write_text(text_of("c"))
        await shows_servers(host, "c")
        (tmp_path / "other.json").write_text(text_of("d"))
        path.unlink()
        path.symlink_to("../other.json")
        await shows_servers(host, "d")
        # And our own edits go to where the link points, and are known.
        await host.plugin_add("e", "e")
        assert path.is_symlink()
        assert "e" in json.loads((tmp_path / "other.json").read_text())["mcpServers"]
        path.write_text(text_of("f"))
        await shows_servers(host, "f")


async def test_changes_before_the_watch_has_begun_are_not_lost(tmp_path: Path, looks: Looks) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(text_of("a"))
    async with watched(path, servers()) as host:
        path.write_text(text_of("b"))  # before this task has waited for anything
        await shows_servers(host, "b")


async def test_without_watch_nothing_is_noticed_and_no_watcher_runs(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(text_of("a"))
    async with open_host(path, connect=servers()) as host:
        assert [child.name for child in host.tree().children] == ["projector", "coordinator", "servers"]
    async with open_host(Config(servers().entries()), connect=servers(), watch=True) as host:
        assert "watcher" not in [child.name for child in host.tree().children]
    async with watched(path, servers()) as host:
        assert "watcher" in [child.name for child in host.tree().children]


async def test_a_watch_that_fails_is_told_and_tried_again_and_never_ends_the_host(
    tmp_path: Path, looks: Looks, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(text_of("a"))

    def broken(*_: str, **__: Any) -> Any:
        raise OSError(28, "OS file watch limit reached.")

    async with watched(path, servers()) as host:
        await looks.another(0)
        with monkeypatch.context() as patch:
            patch.setattr(watchfiles, "watch", broken)
            shutil.rmtree(tmp_path)
            tmp_path.mkdir()
            path.write_text(text_of("b"))
            snapshot = await shows(host, lambda snapshot: bool(snapshot.model.config_warnings))
            [warning] = snapshot.model.config_warnings
            assert warning.startswith(f"{path}: changes of it are not noticed, only reload() reads it: ")
            assert "OS file watch limit reached." in warning
            assert "\n" not in warning
            await host.reload()
            path.write_text(text_of("c"))
        await shows_servers(host, "c")
        await shows(host, lambda snapshot: not snapshot.model.config_warnings)


async def test_a_store_that_does_not_answer_is_asked_again(
    tmp_path: Path, looks: Looks, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(text_of("a"))
    fingerprint = FileStore.fingerprint
    hung: list[None] = []

    def hanging(self: FileStore) -> str | None:
        if len(hung) < 2 and path.read_text() != text_of("a"):
            hung.append(None)
            raise OperationTimeout("reading or writing the configuration", 8, None)
        return fingerprint(self)

    monkeypatch.setattr(FileStore, "fingerprint", hanging)
    async with watched(path, servers()) as host:
        await looks.another(0)
        path.write_text(text_of("b"))
        await shows_servers(host, "b")
        assert len(hung) == 2


def inotify_files() -> int:
    count = 0
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            count += "inotify" in os.readlink(f"/proc/self/fd/{name}")
    return count


async def only_inotify_files(count: int) -> None:
    """Wait until there are as many again: the library's own thread closes its file a moment after its watch has ended."""
    with trio.fail_after(PATIENCE):
        while inotify_files() != count:
            await trio.sleep(0.005)


async def test_once_the_host_is_closed_nothing_of_the_watch_is_left(tmp_path: Path, looks: Looks) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(text_of("a"))
    before = inotify_files()
    for _ in range(3):
        async with watched(path, servers()):
            await looks.another(looks.ended.value)
            assert inotify_files() == before + 1
        await only_inotify_files(before)
    with trio.CancelScope() as scope:
        async with watched(path, servers()):
            await looks.another(looks.ended.value)
            scope.cancel()
            await trio.sleep_forever()
    await only_inotify_files(before)


async def test_without_the_extra_the_host_does_not_open_and_says_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(text_of("a"))
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    with pytest.raises(PlaybillError, match=r"extra 'watch' \(in a clone: pip install '\.\[watch\]'\)"):
        async with watched(path, servers()):
            raise AssertionError("it opened")
    async with open_host(path, connect=servers()) as host:
        assert await host.ready(timeout=PATIENCE)


async def test_real_servers_follow_the_file(project: Project) -> None:
    project.write(a=fake(), b=fake())
    async with open_host(project.path, watch=True) as host:
        assert await host.ready(timeout=PATIENCE)
        pid = host.snapshot().model.server("b").pid
        project.write(b=fake(), c=fake())
        await shows_servers(host, "b", "c")
        assert await host.ready(timeout=PATIENCE)
        assert host.snapshot().model.server("b").pid == pid
        await host.call("mcp__c__echo", {}, timeout=PATIENCE)
