"""Configurations that cannot be read, or not as they were meant."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from playbill.actors import ConfigError, open_host
from playbill.actors.edge.config.file import FileStore
from playbill.actors.edge.config.read import read_config
from playbill.actors.testing import ScriptedServers

from .conftest import opened, virtual_time

GOOD = {"command": "good"}


@virtual_time
async def test_b015_a_backslash_that_was_not_doubled_is_placed_and_the_last_good_config_stays(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"good": GOOD}}))
    bad = '{\n  "mcpServers": {\n    "good": {\n      "command": "C:\\Users\\me\\node.exe"\n    }\n  }\n}\n'
    servers = ScriptedServers(good=["x"])
    async with opened(servers, store=FileStore(path)) as host:
        assert await host.ready(timeout=5)
        path.write_text(bad)
        with pytest.raises(ConfigError) as caught:
            await host.reload()
        assert str(caught.value) == f"{path}:4:21: bad escape \\U in a string (double each backslash: \\\\)"
        model = host.snapshot().model
        assert model.config_error == str(caught.value)
        assert model.server("good").phase == "ready"
        with pytest.raises(ConfigError):
            await host.tool_set_enabled("good", "x", False)
        assert path.read_text() == bad
        assert servers.spawns == {"good": 1}


def test_b015_a_backslash_that_makes_a_character_of_its_own_is_warned_about() -> None:
    text = r'{"mcpServers": {"a": {"command": "C:\bin\node", "args": ["C:\temp"], "cwd": "C:\\temp"}}}'
    config = read_config(text)
    assert [each.partition(" (")[0] for each in config.warnings] == [
        "mcpServers.a.command: this holds the control character U+0008",
        "mcpServers.a.args[0]: this holds the control character U+0009",
    ]


@virtual_time
@pytest.mark.parametrize(
    ("entry", "error"),
    [
        ({}, "mcpServers.bad: there is no command and no url here"),
        (None, "mcpServers.bad: expected an object, found null"),
        ([], "mcpServers.bad: expected an object, found a list"),
        ("npx x", "mcpServers.bad: expected an object, found a string"),
        ({"command": None}, "mcpServers.bad: there is no command and no url here"),
        ({"command": ""}, "mcpServers.bad.command: expected a program, found an empty string"),
        ({"url": 5}, "mcpServers.bad.url: expected a string, found the number 5"),
    ],
)
async def test_b131_an_entry_that_is_wrong_is_shown_with_its_key_and_the_others_run(
    tmp_path: Path, entry: Any, error: str
) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"bad": entry, "good": GOOD}}))
    async with opened(ScriptedServers(good=["x"]), store=FileStore(path)) as host:
        assert await host.ready(require="any", timeout=5)
        bad, good = host.snapshot().model.servers
        assert (bad.name, bad.phase, good.phase) == ("bad", "invalid", "ready")
        assert bad.error is not None
        assert bad.error.startswith(f"{path}:1:")
        assert error in bad.error


@virtual_time
async def test_b131_of_a_command_and_a_url_one_is_used_and_that_is_said(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(json.dumps({"mcpServers": {"both": {"command": "c", "url": "https://h"}, "good": GOOD}}))
    store = FileStore(path)
    async with opened(ScriptedServers(good=["x"], both=["y"]), store=store) as host:
        assert await host.ready(timeout=5)
        said = "mcpServers.both: there is a command and a url here: the command is used, the url is not"
        assert store.load().warnings == (said,)
        assert host.snapshot().model.server("both").url is None


@pytest.mark.parametrize("root", ["null", "true", "3", '"x"', "[]"])
async def test_b132_a_root_that_is_no_object_is_refused_and_the_file_is_left_alone(tmp_path: Path, root: str) -> None:
    path = tmp_path / "mcp.json"
    path.write_text(root)
    with pytest.raises(ConfigError, match=r'mcp\.json:1:1: expected an object with "mcpServers" in it, found a '):
        async with open_host(path):
            raise AssertionError("the host opened")
    assert path.read_text() == root
    path.write_text('{"mcpServers": {"a": {"url": "https://h", "disabled": true}}}')
    async with open_host(path) as host:
        path.write_text(root)
        with pytest.raises(ConfigError):
            await host.tool_set_enabled("a", "x", False)
        with pytest.raises(ConfigError):
            await host.plugin_add("b", "c")
    assert path.read_text() == root
    assert sorted(each.name for each in tmp_path.iterdir() if each.name != "mcp.json.lock") == ["mcp.json"]


def test_b133_what_is_nested_one_level_deeper_is_told_and_not_dropped() -> None:
    entry = {"transport": {"type": "http", "url": "http://h", "headers": {"x-token": "t"}}}
    (read,) = read_config(json.dumps({"mcpServers": {"x": entry}}), "f.json").servers
    assert read.error == "f.json:1:17: mcpServers.x: there is no command and no url here (found transport.url)"
    assert not read.runnable
