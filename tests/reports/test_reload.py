"""What counts as a change of the configuration, and what does not.

A host watches no file: its program asks for a reload, by a watch or a command of its own. What a watch could get wrong in these
reports is therefore about what a reload reads, and about what it takes for a change.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playbill.actors.edge.config.file import FileStore
from playbill.actors.testing import ScriptedServers

from .conftest import opened, virtual_time


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
        for name in ("mcp.json.backup.1", "mcp.json.tmp", "mcp.json~", ".mcp.json.swp", "mcp.json.lock.old"):
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
