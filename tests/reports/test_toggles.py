"""Servers and tools that are switched off, and stay so."""

from __future__ import annotations

import json
import random
import sys
from pathlib import Path
from typing import Any

import pytest
import trio
from playbill.actors import Config, ServerEntry, open_host
from playbill.actors.edge.config.file import FileStore
from playbill.actors.testing import Script, ScriptedServers

from .conftest import PATIENCE, SMALL, Project, opened, until, virtual_time

MARKS = """
import pathlib
pathlib.Path(sys.argv[1]).write_text("started")
serve(lambda cursor: listed("x"))
"""


def marks(path: Path, **keys: Any) -> dict[str, Any]:
    """A server that leaves a file when it starts."""
    return {"command": sys.executable, "args": ["-I", "-S", "-c", SMALL + MARKS, str(path)], **keys}


async def test_b124_a_server_that_is_disabled_in_any_words_is_not_started_and_shows_so(project: Project) -> None:
    words: dict[str, dict[str, Any]] = {
        "off1": {"disabled": True},
        "off2": {"enabled": False},
        "off3": {"isActive": False},
        "off4": {"disabled": False, "enabled": False},
        "on": {"disabled": False, "enabled": True, "isActive": True},
    }
    project.write(**{name: marks(project.folder / name, **keys) for name, keys in words.items()})
    async with open_host(project.path) as host:
        assert await host.ready(timeout=PATIENCE)
        snapshot = host.snapshot()
        assert [each.phase for each in snapshot.model.servers] == ["disabled"] * 4 + ["ready"]
        assert [tool.server for tool in snapshot.catalog.tools] == ["on"]
        await host.reload()
        assert {name for name in words if (project.folder / name).exists()} == {"on"}


@virtual_time
async def test_b127_a_list_of_hidden_tools_outlives_every_other_change_and_names_them_as_the_server_does(
    tmp_path: Path,
) -> None:
    path = tmp_path / "mcp.json"
    entries = {
        "a": {"command": "a", "disabledTools": ["hidden", "mcp__a__shown"]},
        "b": {"command": "b"},
        "c": {"command": "c", "disabled": True},
    }
    path.write_text(json.dumps({"theme": "dark", "mcpServers": entries}, indent=4))

    def scripted() -> ScriptedServers:
        return ScriptedServers(a=["hidden", "shown"], b=["x"], c=["y"])

    async with opened(scripted(), store=FileStore(path)) as host:
        await host.ready(timeout=5)
        await host.server_set_enabled("c", True)
        await host.tool_set_enabled("b", "x", False)
        await host.plugin_add("d", "d", env={"K": "v"})
        await host.plugin_remove("d")
        await host.server_set_enabled("b", False)
    path.write_text(path.read_text().replace("dark", "light"))
    assert json.loads(path.read_text())["mcpServers"]["a"] == entries["a"]
    async with opened(scripted(), store=FileStore(path)) as host:
        await host.ready(timeout=5)
        state = host.snapshot().model.server("a")
        # Bare names are the documented ones: an exposed name in the list hides nothing.
        assert {tool.bare: tool.enabled for tool in state.tools} == {"hidden": False, "shown": True}


@virtual_time
async def test_b128_a_storm_of_toggles_ends_as_the_last_one_said_with_one_process_and_growing_versions() -> None:
    rng = random.Random(128)
    servers = ScriptedServers(a=Script(["x"], connect_delay=0.3, close_delay=0.1))
    async with opened(servers, Config((ServerEntry("a", command="a"),))) as host:
        seen: list[int] = []
        over = trio.Event()

        async def poll() -> None:
            while not over.is_set():
                seen.append(host.snapshot().version)
                await trio.sleep(0.01)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(poll)
            async with trio.open_nursery() as storm:
                for turn in range(20):
                    storm.start_soon(host.server_set_enabled, "a", turn % 2 == 1)
                    await trio.sleep(rng.uniform(0, 0.2))
            over.set()
        snapshot = await until(host, lambda snapshot: snapshot.model.server("a").phase == "ready")
        assert snapshot.model.server("a").connected
        assert servers.most_at_once["a"] == 1
        assert servers.spawns["a"] <= 11
        assert seen == sorted(seen)
        final = await host.server_set_enabled("a", False)
        assert final.model.server("a").phase in ("stopping", "disabled")
        await until(host, lambda snapshot: snapshot.model.server("a").phase == "disabled")
        assert servers.alive == {}


@virtual_time
@pytest.mark.parametrize(
    ("lists", "shown"),
    [
        ({"enabledTools": ["a"]}, ["a"]),
        ({"disabledTools": ["a"]}, ["b", "c"]),
        ({"enabledTools": []}, []),
        ({"disabledTools": []}, ["a", "b", "c"]),
        ({"enabledTools": ["a", "b"], "disabledTools": ["a"]}, ["b"]),
    ],
)
async def test_b129_a_tool_that_comes_later_is_hidden_by_an_allow_list_and_shown_by_a_block_list(
    tmp_path: Path, lists: dict[str, Any], shown: list[str]
) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"s": {"command": "s", **lists}}}))
    servers = ScriptedServers(s=["a"])
    async with opened(servers, store=FileStore(path)) as host:
        await host.ready(timeout=5)
        servers.scripts["s"] = servers.live["s"].script = Script(["a", "b", "c"])
        servers.live["s"].announce()
        snapshot = await until(host, lambda snapshot: len(snapshot.model.server("s").tools) == 3)
        assert [tool.bare for tool in snapshot.model.server("s").tools if tool.enabled] == shown
        assert [tool.bare for tool in snapshot.catalog.tools] == shown
