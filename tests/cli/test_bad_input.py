"""Bad input: one clear line naming file, path and the nearest valid name; exit 2 or 3; no traceback; nothing written."""

from __future__ import annotations

import subprocess
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

Playbill = Callable[..., "subprocess.CompletedProcess[str]"]
WriteConfig = Callable[..., Path]
Entry = Callable[..., dict[str, Any]]

VERBS = [["list"], ["tools"], ["call", "clock/now"]]


@pytest.fixture(autouse=True)
def _nothing_is_written(tmp_path: Path) -> Iterator[None]:
    """Holds every test of this file to it: no file but the config the test itself wrote, not even for a moment's lock."""
    yield
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} <= {"mcp.json"}


@pytest.mark.parametrize("verb", VERBS, ids=" ".join)
def test_a_missing_config(playbill: Playbill, tmp_path: Path, verb: list[str]) -> None:
    done = playbill(*verb, "--config", tmp_path / "none.json")
    assert (done.returncode, done.stdout) == (3, "")
    assert str(tmp_path / "none.json") in done.stderr
    assert done.stderr.count("\n") == 1


def test_no_config_anywhere(inside: Playbill) -> None:
    done = inside("list")
    assert (done.returncode, done.stdout) == (3, "")
    assert "mcp.json" in done.stderr
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize(
    ("verb", "text", "place"),
    [
        (["list"], "", "mcp.json"),
        (["list"], '{"mcpServers": {\n  "a": {"command": "x",, }}}', "mcp.json:2:"),
        (["tools"], "[1, 2]", "mcp.json"),
        (["call", "clock/now"], "{", "mcp.json:1:"),
    ],
)
def test_a_config_that_cannot_be_read(
    playbill: Playbill, write_config: WriteConfig, verb: list[str], text: str, place: str
) -> None:
    config = write_config(text)
    done = playbill(*verb, "--config", config)
    assert (done.returncode, done.stdout) == (3, "")
    assert place in done.stderr
    assert done.stderr.count("\n") == 1
    assert config.read_text() == text


def test_a_folder_instead_of_a_config(inside: Playbill, tmp_path: Path) -> None:
    done = inside("list", "--config", tmp_path)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("verb", [["list"], ["tools"]], ids=" ".join)
def test_an_entry_without_command_and_url_fails_alone_and_is_placed(
    inside: Playbill, write_config: WriteConfig, entry: Entry, verb: list[str]
) -> None:
    config = write_config(clock=entry("clock"), broken={"comand": "x"})
    done = inside(*verb, "--config", config)
    assert done.returncode == 3
    assert "clock" in done.stdout
    assert "invalid" in done.stdout
    (line,) = [line for line in done.stderr.splitlines() if "warning" not in line]
    assert str(config) in line
    assert "mcpServers.broken" in line
    assert "did you mean 'command'" in line


def test_a_call_to_an_entry_without_command_and_url(inside: Playbill, write_config: WriteConfig) -> None:
    config = write_config(broken={"args": ["x"]})
    done = inside("call", "broken/tool", "--config", config)
    assert (done.returncode, done.stdout) == (3, "")
    assert str(config) in done.stderr
    assert "mcpServers.broken" in done.stderr


@pytest.mark.parametrize(
    ("name", "line"),
    [
        ("clokc/now", "no server named 'clokc' is configured (did you mean 'clock/now'?)"),
        ("clock/nwo", "server 'clock' has no tool named 'nwo' (did you mean 'clock/now'?)"),
        ("mcp__clok__now", "no tool is named 'mcp__clok__now' (did you mean 'mcp__clock__now'?)"),
    ],
)
def test_an_unknown_name_is_answered_with_the_nearest(
    inside: Playbill, write_config: WriteConfig, entry: Entry, name: str, line: str
) -> None:
    config = write_config(clock=entry("clock"))
    done = inside("call", name, "--config", config)
    assert (done.returncode, done.stdout, done.stderr) == (2, "", f"playbill: {line}\n")


@pytest.mark.parametrize(
    ("arguments", "part"),
    [
        ('{"zone": }', "Expecting value at line 1 column 10"),
        ("zone=UTC", "the arguments are not JSON"),
        ('"UTC"', 'must be a JSON object like {"key": 1}'),
        ("[" * 100_000, "the arguments"),
        ("", "the arguments are not JSON"),
        ('{"a": NaN}', "there is no number NaN"),
        ('{"a": [-Infinity]}', "there is no number -Infinity"),
        ('{"a": 1e999}', "there is no number 1e999"),
        ('{"a": 1' + "0" * 5000 + "}", "the arguments are not usable JSON"),
    ],
)
def test_wrong_argument_json_starts_nothing(
    inside: Playbill, write_config: WriteConfig, tmp_path: Path, arguments: str, part: str
) -> None:
    started = tmp_path / "started"
    config = write_config(clock={"command": "touch", "args": [str(started)]})
    done = inside("call", "clock/now", arguments, "--config", config)
    assert (done.returncode, done.stdout) == (2, "")
    assert part in done.stderr
    assert done.stderr.count("\n") == 1
    assert len(done.stderr) < 1000
    assert not started.exists()
