"""What counts as a change of the configuration, and what does not: for a `reload` that is asked for, and for a watch.

With a watch, time and files are real: a test waits for the snapshot, or for the end of a look at the file.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from playbill.actors import open_host
from playbill.actors.coordinator import Coordinator
from playbill.actors.edge.config import watch
from playbill.actors.edge.config.file import FileStore
from playbill.actors.house import House
from playbill.actors.testing import ScriptedServers
from playbill.supervision import Cell

from .conftest import PATIENCE, opened, until, virtual_time

BESIDE = ("mcp.json.backup.1", "mcp.json.tmp", "mcp.json~", ".mcp.json.swp", "mcp.json.lock.old")


def config(*, word: str = "x", **more: Any) -> str:
    servers = {"a": {"command": "a", "args": [word]}, "b": {"command": "b"}}
    return json.dumps({**more, "mcpServers": servers})


@virtual_time
async def test_b083_files_with_similar_names_and_what_concerns_no_server_restart_nothing(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(config())
    servers = ScriptedServers(a=["x"], b=["y"])
    async with opened(servers, store=FileStore(path)) as host:
        assert await host.ready(timeout=5)
        before = host.snapshot()
        for name in BESIDE:
            (tmp_path / name).write_text('{"mcpServers": {"c": {"command": "c"}}}')
            assert await host.reload() is before
        os.utime(path, (0, 0))
        assert await host.reload() is before
        path.write_text(config(defaults={"startup": "slow"}))
        await host.reload()
        assert host.snapshot().catalog is before.catalog
        path.write_text(config(word="another", defaults={"startup": "slow"}))
        await host.reload()
        assert await host.ready(timeout=5)
        assert servers.spawns == {"a": 2, "b": 1}


class Seen:
    """What a watch caused: how often the host looked at its file, and how often that was a reload."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.looks = Cell(0)
        self.reloads = 0
        look, load = House._look_again, Coordinator._load

        async def looking(house: House) -> None:
            await look(house)
            self.looks.set(self.looks.value + 1)

        def loading(coordinator: Coordinator, trusted: Any) -> Any:
            self.reloads += 1
            return load(coordinator, trusted)

        monkeypatch.setattr(watch, "STEP", 0.02)
        monkeypatch.setattr(House, "_look_again", looking)
        monkeypatch.setattr(Coordinator, "_load", loading)

    async def look(self, than: int) -> None:
        """Wait until there were more looks than so many."""
        with trio.fail_after(PATIENCE):
            await self.looks.wait(lambda count: count > than)


async def test_b083_nor_do_they_when_the_file_is_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    seen = Seen(monkeypatch)
    path = tmp_path / "mcp.json"
    path.write_text(config())
    servers = ScriptedServers(a=["x"], b=["y"], c=["z"])
    async with open_host(path, connect=servers, watch=True) as host:
        assert await host.ready(timeout=PATIENCE)
        await seen.look(0)
        before = host.snapshot()
        for name in BESIDE:
            (tmp_path / name).write_text('{"mcpServers": {"c": {"command": "c"}}}')
        for _ in range(3):
            looks = seen.looks.value
            os.utime(path, (0, 0))
            await seen.look(looks)
        assert host.snapshot() is before
        assert seen.reloads == 0
        by_renaming(path, config(defaults={"startup": "slow"}))
        while not seen.reloads:
            await seen.look(seen.looks.value)
        assert servers.spawns == {"a": 1, "b": 1}
        assert host.snapshot().catalog is before.catalog
        by_renaming(path, config(word="another", defaults={"startup": "slow"}))
        await until(host, lambda snapshot: snapshot.model.server("a").args == ("another",))
        assert await host.ready(timeout=PATIENCE)
        assert servers.spawns == {"a": 2, "b": 1}
        assert seen.reloads == 2


def in_place(path: Path, text: str) -> None:
    path.write_text(text)


def by_renaming(path: Path, text: str) -> None:
    path.with_suffix(".new").write_text(text)
    path.with_suffix(".new").rename(path)


def by_deleting(path: Path, text: str) -> None:
    path.unlink()
    path.write_text(text)


def by_another_link(path: Path, text: str) -> None:
    target = path.with_name(f"target{len(list(path.parent.iterdir()))}.json")
    target.write_text(text)
    path.with_suffix(".link").symlink_to(target)
    path.with_suffix(".link").rename(path)


@virtual_time
@pytest.mark.parametrize("save", [in_place, by_renaming, by_deleting, by_another_link])
async def test_b084_a_reload_reads_what_was_saved_last_however_it_was_saved(
    tmp_path: Path, save: Callable[[Path, str], None]
) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(config())
    servers = ScriptedServers(a=["x"], b=["y"])
    async with opened(servers, store=FileStore(path)) as host:
        assert await host.ready(timeout=5)
        for round_ in range(1, 11):
            save(path, config(word="overwritten"))
            save(path, config(word=f"round {round_}"))
            await host.reload()
            assert await host.ready(timeout=5)
            assert host.snapshot().model.server("a").args == (f"round {round_}",)
            assert servers.spawns == {"a": 1 + round_, "b": 1}
            before = host.snapshot()
            path.chmod(0o600 if round_ % 2 else 0o644)
            assert await host.reload() is before
        await host.tool_set_enabled("b", "y", False)
        saved = json.loads(path.read_text())["mcpServers"]
        assert saved["a"]["args"] == ["round 10"]
        assert saved["b"]["tools"] == {"exclude": ["y"]}


@pytest.mark.parametrize("save", [in_place, by_renaming, by_deleting, by_another_link])
async def test_b084_a_watch_notices_each_save_once_however_it_was_saved(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, save: Callable[[Path, str], None]
) -> None:
    monkeypatch.setattr(watch, "STEP", 0.02)
    monkeypatch.setattr(watch, "RETURN", 0.05)
    path = tmp_path / "mcp.json"
    path.write_text(config())
    servers = ScriptedServers(a=["x"], b=["y"])
    async with open_host(path, connect=servers, watch=True) as host:
        assert await host.ready(timeout=PATIENCE)
        for round_ in range(1, 11):
            save(path, config(word=f"round {round_}"))
            path.chmod(0o600 if round_ % 2 else 0o644)
            await until(host, lambda snapshot, n=round_: snapshot.model.server("a").args == (f"round {n}",))
            assert await host.ready(timeout=PATIENCE)
            assert servers.spawns == {"a": 1 + round_, "b": 1}
        rev = host.snapshot().config_rev
        path.chmod(0o640)
        by_renaming(path, config(word="the last"))
        await until(host, lambda snapshot: snapshot.model.server("a").args == ("the last",))
        assert host.snapshot().config_rev == rev + 1
        assert host.snapshot().model.config_error is None
