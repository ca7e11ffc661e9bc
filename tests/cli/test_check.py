"""`check`: what it prints and what it exits with; it starts nothing and writes nothing."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from .test_scopes_and_trust import write

Playbill = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return tmp_path / ".mcp.json"


@pytest.fixture
def user(tmp_path: Path) -> Path:
    return tmp_path / "home" / ".config" / "playbill" / "mcp.json"


def test_check_prints_file_line_column_path_and_message(playbill: Playbill, tmp_path: Path) -> None:
    started = tmp_path / "started"
    config = tmp_path / "mcp.json"
    config.write_text(
        '{"mcpServers": {\n'
        f'  "good": {{"command": "touch", "args": ["{started}"], "timeout": 5}},\n'
        '  "bad": {"command": 3},\n'
        '  "odd": {"command": "no-such-program-here", "disabeld": true}\n}}'
    )
    before = config.read_bytes()
    done = playbill("check", "--config", config)
    assert (done.returncode, done.stderr) == (3, "")
    assert done.stdout.splitlines() == [
        "mcp.json:2:"
        + str(len(f'  "good": {{"command": "touch", "args": ["{started}"], "timeout": ') + 1)
        + ": mcpServers.good.timeout: note: read as seconds: 5 s (from 1000 on it is milliseconds)",
        "mcp.json:3:22: mcpServers.bad.command: expected a string, found the number 3 (write it in quotes)",
        "mcp.json:4:22: mcpServers.odd.command: warning: 'no-such-program-here' is not found in PATH",
        "mcp.json:4:46: mcpServers.odd.disabeld: warning: unknown key (did you mean 'disabled'?)",
        "mcp.json: 1 error, 2 warnings",
    ]
    assert not started.exists()
    assert config.read_bytes() == before
    assert {path.name for path in tmp_path.rglob("*") if path.is_file()} == {"mcp.json"}


@pytest.mark.parametrize(
    ("text", "plain", "strict"),
    [
        ('{"mcpServers": {"a": {"command": "true"}}}', 0, 0),
        ('{"mcpServers": {"a": {"command": "true", "timeout": 5}}}', 0, 0),
        ('{"mcpServers": {"a": {"command": "no-such-program-here"}}}', 0, 3),
        ('{"mcpServers": {}}', 0, 0),
        ('{"mcpServers": {"a": {}}}', 3, 3),
        ("{", 3, 3),
    ],
)
def test_the_exit_code(inside: Playbill, tmp_path: Path, text: str, plain: int, strict: int) -> None:
    config = tmp_path / "mcp.json"
    config.write_text(text)
    assert inside("check", "--config", config).returncode == plain
    assert inside("check", "--config", config, "--strict").returncode == strict


def test_every_file_in_force_is_checked(playbill: Playbill, project: Path, user: Path) -> None:
    write(project, a={"command": "true"}, both={"url": "https://x.example/"})
    write(user, both={"command": "true"})
    done = playbill("check", "--json", "--strict")
    assert (done.returncode, done.stderr) == (3, "")
    value = json.loads(done.stdout)
    assert value["files"] == [str(project), str(user)]
    assert (value["errors"], value["warnings"]) == (0, 2)
    untrusted, hidden = value["findings"]
    assert (untrusted["path"], untrusted["server"]) == ("mcpServers.a", "a")
    assert "untrusted" in untrusted["message"]
    assert (hidden["file"], hidden["line"], hidden["path"]) == (str(user), 3, "mcpServers.both")
    assert "not used" in hidden["message"]
    assert json.loads(playbill("check", "--json", "--scope", "user").stdout)["findings"] == []


def test_a_broken_file_does_not_keep_the_other_from_being_checked(inside: Playbill, project: Path, user: Path) -> None:
    project.write_text("{")
    write(user, bad={"comand": "x"})
    done = inside("check", "--quiet")
    assert done.returncode == 3
    first, second = done.stdout.splitlines()
    assert first.startswith(".mcp.json:1:")
    assert "mcpServers.bad" in second


def test_quiet_prints_only_what_makes_the_exit_code(inside: Playbill, tmp_path: Path) -> None:
    config = tmp_path / "mcp.json"
    config.write_text('{"mcpServers": {"a": {"command": "no-such-program-here", "timeout": 5}}}')
    assert inside("check", "--config", config, "--quiet").stdout == ""
    assert inside("check", "--config", config, "--quiet", "--strict").stdout.count("\n") == 1


def test_no_file_at_all(inside: Playbill, tmp_path: Path) -> None:
    done = inside("check")
    assert (done.returncode, done.stdout) == (3, "")
    assert "no .mcp.json in" in done.stderr
    done = inside("check", "--config", tmp_path / "none.json")
    assert (done.returncode, done.stdout.splitlines()[0]) == (3, "none.json: there is no such file")


def test_check_notes_the_names_of_what_comes_from_the_environment(playbill: Playbill, project: Path) -> None:
    write(project, web={"url": "https://x.example/", "headers": {"Authorization": "Bearer ${WEB_TOKEN}"}})
    done = playbill("check", WEB_TOKEN="s3cret-value")
    assert (done.returncode, done.stderr) == (0, "")
    note, last = done.stdout.splitlines()
    assert note.endswith(": mcpServers.web.headers.Authorization: note: WEB_TOKEN is taken from the environment")
    assert last == ".mcp.json: 0 errors, 0 warnings"
    assert playbill("check", "--strict", "--quiet", WEB_TOKEN="s3cret-value").stdout == ""
    assert "s3cret" not in playbill("check", "--json", WEB_TOKEN="s3cret-value").stdout
