"""`open_host()` without a path, watching: real files and the real watch; servers in memory.

Determinism: a test waits for the snapshot; no time is asserted.
"""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from playbill.actors import ConfigError, open_host
from playbill.actors.edge.config import watch as watch_module
from playbill.actors.edge.config.discover import user_file
from playbill.actors.edge.config.trust import TrustStore
from playbill.actors.testing import ScriptedServers

from .conftest import PATIENCE
from .test_watching import shows, shows_servers


def write(path: Path, *names: str) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name("new")
    new.write_text(json.dumps({"mcpServers": {name: {"command": name} for name in names}}))
    new.replace(path)


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, deep in a project; the user's own folders are empty ones."""
    deep = tmp_path / "project" / "deep"
    deep.mkdir(parents=True)
    monkeypatch.chdir(deep)
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / "config"))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path / "home" / "state"))
    monkeypatch.setattr(watch_module, "STEP", 0.02)
    return deep


def servers() -> ScriptedServers:
    return ScriptedServers(**{name: ["x"] for name in "abcd"})


async def test_without_any_file_it_does_not_open(folder: Path) -> None:
    with pytest.raises(ConfigError, match="or its parents"):
        async with open_host(connect=servers()):
            raise AssertionError("it opened")


async def test_whatever_file_comes_changes_or_goes_is_noticed_and_so_is_an_approval(folder: Path) -> None:
    connect = servers()
    project, above = folder / ".mcp.json", folder.parent / ".mcp.json"
    write(user_file(), "a")
    async with open_host(connect=connect, watch=True) as host:
        assert await host.ready(timeout=PATIENCE)
        write(above, "b")
        await shows_servers(host, "b", "a")
        snapshot = host.snapshot()
        assert [(each.name, each.phase, each.source) for each in snapshot.model.servers] == [
            ("b", "untrusted", str(above)),
            ("a", "ready", str(user_file())),
        ]
        TrustStore().path.parent.mkdir(parents=True, exist_ok=True)
        entry = host._board.config.config.get("b")
        assert entry is not None
        TrustStore().approve(entry, above)  # what `playbill trust b` does, in another process
        await shows(host, lambda seen: (b := seen.model.server("b")) is not None and b.phase == "ready")
        write(project, "c")
        await shows_servers(host, "c", "a")
        project.write_text("{")
        await shows(host, lambda seen: seen.model.config_error is not None and str(project) in seen.model.config_error)
        write(user_file(), "a", "d")
        await shows(host, lambda seen: [each.name for each in seen.model.servers] == ["c", "a", "d"])
        project.unlink()
        await shows_servers(host, "b", "a", "d")
        assert await host.ready(timeout=PATIENCE)
        assert connect.spawns == {"a": 1, "b": 2, "d": 1}
