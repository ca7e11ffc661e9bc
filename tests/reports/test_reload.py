"""What counts as a change of the configuration, and what does not: for a `reload` that is asked for, and for a host that watches.

With a watch, time and files are real. That something is not taken for a change is seen by a change that comes after it: what the
watch tells is in order, so when that one is in force, nothing before it is still to come.
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
from playbill.actors.testing import ScriptedServers

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


async def test_b083_nor_do_they_when_the_file_is_watched(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch, "STEP", 0.02)
    loads = []
    load = Coordinator._load

    def loading(coordinator: Coordinator, trusted: Any) -> Any:
        loads.append(trusted)
        return load(coordinator, trusted)

    monkeypatch.setattr(Coordinator, "_load", loading)
    path = tmp_path / "mcp.json"
    path.write_text(config())
    servers = ScriptedServers(a=["x"], b=["y"], c=["z"])
    async with open_host(path, connect=servers, watch=True) as host:
        assert await host.ready(timeout=PATIENCE)
        for word in ("second", "third"):
            for name in BESIDE:
                (tmp_path / name).write_text('{"mcpServers": {"c": {"command": "c"}}}')
            os.utime(path, (0, 0))
            by_renaming(path, config(word=word))
            await until(host, lambda snapshot, word=word: snapshot.model.server("a").args == (word,))
            assert await host.ready(timeout=PATIENCE)
        assert servers.spawns == {"a": 3, "b": 1}
        assert len(loads) == 2
        catalog = host.snapshot().catalog
        by_renaming(path, config(word="third", defaults={"startup": "slow"}))
        with trio.fail_after(PATIENCE):
            while len(loads) < 3:
                await trio.sleep(0.005)
        by_renaming(path, config(word="fourth", defaults={"startup": "slow"}))
        await until(host, lambda snapshot: snapshot.model.server("a").args == ("fourth",))
        assert await host.ready(timeout=PATIENCE)
        assert servers.spawns == {"a": 4, "b": 1}
        assert host.snapshot().catalog is catalog


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
