"""Real servers from the registries, run together from one mcp.json.

What a server lists may grow with its releases: the counts are floors.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
from playbill.actors import Host, ServerState, open_host

from .conftest import Installed

pytestmark = pytest.mark.real

PATIENCE = 90.0
"""Seconds, for things that take a few."""


@pytest.fixture
def config(installed: Installed, tmp_path: Path) -> Path:
    """One mcp.json of them all."""
    servers: dict[str, dict[str, Any]] = {
        "time": {"command": str(installed.new / "mcp-server-time"), "args": ["--local-timezone", "UTC"]},
        "git": {"command": str(installed.new / "mcp-server-git"), "args": ["--repository", str(installed.work)]},
        "everything": {"command": str(installed.node / "mcp-server-everything"), "args": ["stdio"]},
        "filesystem": {"command": str(installed.node / "mcp-server-filesystem"), "args": ["${WORK}"]},
        "memory": {
            "command": str(installed.node / "mcp-server-memory"),
            "env": {"MEMORY_FILE_PATH": str(tmp_path / "memory.jsonl")},
        },
        "sqlite": {"command": str(installed.old / "mcp-server-sqlite"), "args": ["--db-path", str(tmp_path / "a.db")]},
        "dying": {"command": str(installed.new / "mcp-server-sqlite"), "args": ["--db-path", str(tmp_path / "b.db")]},
    }
    servers["filesystem"]["env"] = {"WORK": str(installed.work)}
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": servers}, indent=2), "utf-8")
    return path


AT_LEAST = {"time": 2, "git": 12, "everything": 10, "filesystem": 11, "memory": 9, "sqlite": 6}


def _calls(work: Path) -> dict[str, tuple[str, dict[str, Any], str]]:
    """Server → a tool of it, its arguments, and what its answer must contain."""
    return {
        "time": ("convert_time", {"source_timezone": "UTC", "time": "12:00", "target_timezone": "Asia/Tokyo"}, "21:00"),
        "git": ("git_log", {"repo_path": str(work)}, "The first scene"),
        "everything": ("echo", {"message": "hear, hear"}, "hear, hear"),
        "filesystem": ("read_text_file", {"path": str(work / "hello.txt")}, "hello from a file"),
        "memory": (
            "create_entities",
            {"entities": [{"name": "Hamlet", "entityType": "prince", "observations": ["hesitates"]}]},
            "Hamlet",
        ),
        "sqlite": ("read_query", {"query": "SELECT 40 + 2 AS answer"}, "42"),
    }


def _pid_is_gone(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return True
    return False


async def _until(host: Host, holds: Callable[[ServerState], bool], name: str) -> ServerState:
    with trio.fail_after(PATIENCE):
        async for snapshot in host.changes():
            state = snapshot.model.server(name)
            if state is not None and holds(state):
                return state
    raise AssertionError("the host closed")


async def test_six_real_servers_and_one_that_dies_run_from_one_file(installed: Installed, config: Path) -> None:
    async with open_host(config) as host:
        readiness = await host.ready(require=list(AT_LEAST), timeout=PATIENCE)
        assert readiness.missing == {}

        model = host.snapshot().model
        counts = {name: len(state.tools) for name in AT_LEAST if (state := model.server(name))}
        assert {name: count for name, count in counts.items() if count < AT_LEAST[name]} == {}
        assert {state.protocol_version for state in model.servers if state.connected} - {None}

        catalog = host.snapshot().catalog
        by_origin = {(tool.server, tool.bare): tool.wire_name for tool in catalog.tools}
        assert len(by_origin) == sum(counts.values())
        for server, (bare, arguments, expected) in _calls(installed.work).items():
            result = await host.call(by_origin[server, bare], arguments, catalog=catalog, timeout=PATIENCE)
            said = " ".join(part.text for part in result.content if part.type == "text")
            assert not result.is_error, f"{server}: {said}"
            assert expected in said, f"{server}: {said}"

        dead = await _until(host, lambda state: state.error is not None, "dying")
        assert not dead.connected
        assert "list_resources" in (dead.error or ""), dead.error  # the last line of its traceback, from stderr
        assert "Traceback" in dead.stderr_tail
        again = await host.ready(require=["dying"], timeout=0)
        assert "list_resources" in again.missing["dying"]
        pids = [state.pid for state in host.snapshot().model.servers if state.pid is not None]
        assert len(pids) >= len(AT_LEAST)
    assert [pid for pid in pids if not _pid_is_gone(pid)] == []


async def test_a_real_server_that_is_killed_comes_back_with_the_same_catalog(config: Path) -> None:
    async with open_host(config) as host:
        await host.ready(require=["everything", "memory"], timeout=PATIENCE)
        before, other = await _until(host, lambda state: state.phase == "ready", "everything"), host.snapshot()
        digest = {tool.wire_name for tool in other.catalog.tools if tool.server == "everything"}
        assert before.pid is not None
        os.kill(before.pid, 9)
        after = await _until(host, lambda s: s.phase == "ready" and s.generation != before.generation, "everything")
        assert after.restarts == 1
        assert after.pid not in (None, before.pid)
        now = host.snapshot()
        assert {tool.wire_name for tool in now.catalog.tools if tool.server == "everything"} == digest
        memory_before, memory_after = other.model.server("memory"), now.model.server("memory")
        assert memory_before is not None
        assert memory_after is not None
        assert memory_after.pid == memory_before.pid
