"""`add`, `remove`, `enable`, `disable`: real files, edited by the real program; nothing is started."""

from __future__ import annotations

import json
import os
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from playbill.actors.cli.errors import HOW_TO_ADD
from playbill.actors.model.naming import wire_name

from .test_scopes_and_trust import write

Playbill = Callable[..., "subprocess.CompletedProcess[str]"]
WriteConfig = Callable[..., Path]

COMMENTED = """{
  // what I use
  "mcpServers": {
    "clock": { "command": "x", "args": ["a"], }, // the time
    "my notes": { "command": "y" }
  }
}
"""


@pytest.fixture
def project(tmp_path: Path) -> Path:
    return tmp_path / ".mcp.json"


@pytest.fixture
def user(tmp_path: Path) -> Path:
    return tmp_path / "home" / ".config" / "playbill" / "mcp.json"


def entries(path: Path) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(path.read_text())["mcpServers"]
    return found


# add


def test_add_makes_the_users_file_where_there_is_none(playbill: Playbill, project: Path, user: Path) -> None:
    done = playbill(
        "add", "clock", "--env", "A=1", "--env", "B=x=y", "--cwd", "/tmp", "--", "npx", "-y", "--", "--json"
    )
    assert (done.returncode, done.stderr) == (0, "")
    assert (
        done.stdout
        == f"added 'clock' to the new file {str(user).removeprefix(f'{project.parent}/')} (your own): npx -y -- --json\n"
    )
    assert entries(user) == {
        "clock": {"command": "npx", "args": ["-y", "--", "--json"], "env": {"A": "1", "B": "x=y"}, "cwd": "/tmp"}
    }
    assert stat.S_IMODE(user.stat().st_mode) == 0o600
    assert not project.exists()


def test_add_goes_to_the_project_where_there_is_one_and_is_approved_by_it(
    playbill: Playbill, project: Path, user: Path
) -> None:
    project.write_text(COMMENTED)
    done = playbill("add", "web", "--url", "https://x.example/mcp", "--header", "Authorization: Bearer ${TOKEN}")
    assert (done.returncode, done.stdout) == (0, "added 'web' to .mcp.json (project): https://x.example/mcp\n")
    text = project.read_text()
    assert text.startswith(COMMENTED[: COMMENTED.index('"my notes"')])
    assert '"Authorization": "Bearer ${TOKEN}"' in text
    assert not user.exists()
    assert playbill("add", "mine", "--", "x").returncode == 0
    trusted = {each["name"]: each["trusted"] for each in json.loads(playbill("list", "--json").stdout)["servers"]}
    assert trusted == {"clock": False, "my notes": False, "web": True, "mine": True}


def test_add_writes_the_command_that_gives_headers_and_approves_it(
    playbill: Playbill, project: Path, user: Path
) -> None:
    project.write_text(COMMENTED)
    typed = ("add", "web", "--url", "https://x.example/mcp", "--headers-helper", "./login", "--type", "http")
    assert playbill(*typed).returncode == 0
    text = project.read_text()
    assert '"headersHelper": "./login"' in text
    assert '"type": "http"' in text
    trusted = {each["name"]: each["trusted"] for each in json.loads(playbill("list", "--json").stdout)["servers"]}
    assert trusted["web"]


def test_add_writes_the_version_of_the_protocol_as_given_and_list_shows_it(inside: Playbill, project: Path) -> None:
    assert inside("add", "a", "--scope", "project", "--protocol-version", "2025-11-25", "--", "x").returncode == 0
    assert entries(project)["a"] == {"command": "x", "protocolVersion": "2025-11-25"}
    (listed,) = json.loads(inside("list", "--json").stdout)["servers"]
    assert listed["protocol_version"] == "2025-11-25"


@pytest.mark.parametrize("scope", ["project", "user"])
def test_the_scope_says_which_file_is_made(inside: Playbill, project: Path, user: Path, scope: str) -> None:
    old = os.umask(0o022)
    try:
        done = inside("add", "a", "--scope", scope, "--json", "--", "x")
    finally:
        os.umask(old)
    value = json.loads(done.stdout)
    path = project if scope == "project" else user
    assert value == {
        "schema": 1, "verb": "add", "server": "a", "file": str(path), "changed": True, "created": True, "notes": [],
    }  # fmt: skip
    assert path.read_text() == '{\n  "mcpServers": {\n    "a": {\n      "command": "x"\n    }\n  }\n}\n'
    assert stat.S_IMODE(path.stat().st_mode) == (0o644 if scope == "project" else 0o600)
    assert (project.exists(), user.exists()) == (scope == "project", scope == "user")


def test_a_file_that_is_named_is_made_and_edited(playbill: Playbill, tmp_path: Path, user: Path) -> None:
    path = tmp_path / "x.json"
    assert playbill("add", "a", "--config", path, "--", "x").returncode == 0
    assert playbill("add", "b", "--config", path, "--quiet", "--", "y").stdout == ""
    assert list(entries(path)) == ["a", "b"]
    done = playbill("remove", "a", "--config", path)
    assert (done.returncode, done.stdout, done.stderr) == (0, "removed 'a' from x.json\n", "")
    assert not user.exists()


def test_a_name_that_is_there_is_replaced_only_when_asked_for(inside: Playbill, project: Path, user: Path) -> None:
    write(project, a={"command": "old"})
    write(user, b={"command": "old"})
    done = inside("add", "a", "--", "new")
    assert (done.returncode, done.stdout) == (2, "")
    assert f"configured already in {project} (--replace replaces it)" in done.stderr
    done = inside("add", "b", "--", "new")
    assert done.returncode == 2
    assert "--scope project" in done.stderr
    assert inside("add", "a", "--replace", "--", "new").stdout == "replaced 'a' in .mcp.json (project): new\n"
    assert inside("add", "b", "--replace", "--", "new").returncode == 0
    assert (entries(project)["a"], entries(user)["b"]) == ({"command": "new"}, {"command": "new"})


def test_it_is_said_when_one_entry_hides_another(inside: Playbill, project: Path, user: Path) -> None:
    write(user, a={"command": "far"})
    done = inside("add", "a", "--scope", "project", "--", "near")
    assert f"used here instead of the one in {user.relative_to(project.parent)} (your own)" in done.stderr
    done = inside("add", "a", "--scope", "user", "--replace", "--", "other")
    assert "not used here: .mcp.json (project) has a server of this name" in done.stderr
    done = inside("remove", "a", "--json")
    value = json.loads(done.stdout)
    assert value["file"] == str(project)
    assert value["notes"] == [f"the 'a' of {user.relative_to(project.parent)} (your own) is in force now"]
    assert (entries(project), list(entries(user))) == ({}, ["a"])


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["a"], "comes behind --, or a URL"),
        (["a", "--url", "https://x.example/", "--", "x"], "not both"),
        (["a", "--url", "ftp://x.example/"], "https://"),
        (["a", "--url", "https://x.example/", "--env", "A=1"], "are for a server with a command"),
        (["a", "--header", "A: b", "--", "x"], "--header is for"),
        (["a", "--headers-helper", "./login", "--", "x"], "--headers-helper is for a remote server"),
        (["a", "--type", "sse", "--", "x"], "--type is for a server with a URL"),
        (["a", "--url", "https://x.example/", "--headers-helper", " "], "--headers-helper takes a command line"),
        (["a", "--protocol-version", "2025-11-24", "--", "x"], "did you mean '2025-11-25'?"),
        (["a", "--env", "topsecret", "--", "x"], "--env takes KEY=VALUE"),
        (["a", "--env", "A=1", "--env", "A=2", "--", "x"], "'A' twice"),
        (["a", "--url", "https://x.example/", "--header", "topsecret"], "--header takes 'KEY: VALUE'"),
        (["", "--", "x"], "needs a name"),
        (["a", "--", ""], "empty string"),
        (["a", "--url", "https://x.example/", "--header", "A: topsecret\r\nB: c"], "headers.A: a line break"),
        (["a", "--url", "https://x.example/", "--header", "A b: c"], "'A b' cannot be the name of a header"),
        (["a", "--url", "https://"], "no host"),
        (["a", "--config", "a\0b", "--", "x"], "NUL"),
        (["a", "npx", "-y", "b"], "behind --"),
        (["a", "--evn", "A=1", "--", "x"], "did you mean '--env'?"),
        (["--", "x"], "comes behind --, or a URL"),
        (["a", "--scope", "global", "--", "x"], "--scope"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_an_add_that_means_nothing_writes_nothing(
    inside: Playbill, tmp_path: Path, words: list[str], part: str
) -> None:
    done = inside("add", *words)
    assert (done.returncode, done.stdout) == (2, "")
    assert part in done.stderr
    assert "topsecret" not in done.stderr
    assert done.stderr.count("\n") == 1
    assert not [path for path in tmp_path.rglob("*") if path.is_file()]


def test_what_looks_wrong_with_a_new_server_is_said(inside: Playbill, user: Path) -> None:
    done = inside("add", "a", "--", "npx -y thing")
    assert done.returncode == 0
    assert "more than one word" in done.stderr
    assert entries(user)["a"] == {"command": "npx -y thing"}


# remove, enable, disable


def test_remove_takes_out_one_entry_and_nothing_else(playbill: Playbill, project: Path) -> None:
    project.write_text(COMMENTED)
    done = playbill("remove", "my notes")
    assert (done.returncode, done.stdout, done.stderr) == (0, "removed 'my notes' from .mcp.json (project)\n", "")
    assert '"clock": { "command": "x", "args": ["a"], } // the time\n' in project.read_text()
    assert "// what I use" in project.read_text()


@pytest.mark.parametrize(
    ("words", "server", "tool"),
    [
        (["clock"], "clock", None),
        (["clock/now"], "clock", "now"),
        (["clock", "now"], "clock", "now"),
        (["clock", "mcp__clock__now"], "clock", "now"),
        (["mcp__clock__now"], "clock", "now"),
        (["my notes/a/b"], "my notes", "a/b"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_disable_and_enable_give_the_file_back(
    inside: Playbill, project: Path, words: list[str], server: str, tool: str | None
) -> None:
    project.write_text(COMMENTED)
    done = inside("disable", *words, "--json")
    assert done.returncode == 0
    value = json.loads(done.stdout)
    assert (value["server"], value["tool"], value["changed"]) == (server, tool, True)
    assert ("not checked" in "".join(value["notes"])) is (tool is not None)
    listed = {each["name"]: each for each in json.loads(inside("list", "--json").stdout)["servers"]}
    assert listed[server]["disabled"] is (tool is None)
    assert listed[server]["exclude"] == ([] if tool is None else [tool])
    again = inside("disable", *words)
    assert (again.returncode, "already" in again.stdout) == (0, True)
    done = inside("enable", *words)
    assert done.returncode == 0
    assert done.stdout.startswith("enabled ")
    assert project.read_text() == COMMENTED


def test_a_wire_name_that_does_not_tell_its_server_is_known_from_the_lists(inside: Playbill, project: Path) -> None:
    write(project, **{"my notes": {"command": "y", "tools": {"exclude": ["read it"]}}})
    assert inside("enable", wire_name("my notes", "read it")).returncode == 0
    assert entries(project) == {"my notes": {"command": "y", "tools": {"exclude": []}}}
    done = inside("disable", wire_name("my notes", "other one"))
    assert (done.returncode, done.stdout) == (2, "")
    assert "SERVER/TOOL" in done.stderr


def test_enabling_a_tool_edits_whichever_list_hides_it(inside: Playbill, project: Path) -> None:
    write(project, a={"command": "x", "tools": {"include": ["one"]}, "disabled": True})
    done = inside("enable", "a/two")
    assert entries(project)["a"]["tools"] == {"include": ["one", "two"]}
    assert "the server itself is disabled: playbill enable a" in done.stderr


@pytest.mark.parametrize(
    ("words", "part"),
    [
        (["disable", "clok"], "did you mean 'clock'?"),
        (["enable", "clok/now"], "did you mean 'clock/now'?"),
        (["enable", "clok", "now"], "did you mean 'clock'?"),
        (["remove", "clok"], "did you mean 'clock'?"),
        (["remove", "clock/now"], "no server named 'clock/now'"),
        (["disable", "clock/"], "names no tool"),
        (["disable", "clock", ""], "names no tool"),
        (["disable", "mcp__else__x"], "SERVER/TOOL"),
        (["disable"], "NAME"),
        (["remove", "clock", "now"], "too many arguments"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else None,
)
def test_a_name_that_is_not_there(inside: Playbill, project: Path, words: list[str], part: str) -> None:
    project.write_text(COMMENTED)
    done = inside(*words)
    assert (done.returncode, done.stdout) == (2, "")
    assert part in done.stderr
    assert done.stderr.count("\n") == 1
    assert project.read_text() == COMMENTED


def test_a_tool_that_is_in_no_list_is_hinted_at(inside: Playbill, project: Path) -> None:
    write(project, a={"command": "x", "tools": {"exclude": ["read_file"]}})
    done = inside("enable", "a/read_fil")
    assert done.returncode == 0
    assert "(did you mean 'read_file'? That is in its lists)" in done.stderr


@pytest.mark.parametrize("verb", [["add", "x", "--", "y"], ["remove", "a"], ["disable", "a"]], ids=" ".join)
def test_a_file_that_cannot_be_read_is_left_alone(inside: Playbill, project: Path, verb: list[str]) -> None:
    project.write_text('{"mcpServers": {"a": {"command": "x",, }}}')
    done = inside(*verb)
    assert (done.returncode, done.stdout) == (3, "")
    assert ".mcp.json:1:" in done.stderr
    assert project.read_text() == '{"mcpServers": {"a": {"command": "x",, }}}'


@pytest.mark.parametrize(
    "verb", [["add", "x", "--", "y"], ["remove", "a"], ["disable", "a"], ["list"], ["check"]], ids=" ".join
)
def test_a_file_that_is_named_needs_no_current_folder(inside: Playbill, tmp_path: Path, verb: list[str]) -> None:
    path = tmp_path / "m.json"
    write(path, a={"command": sys.executable})
    before = path.read_text()
    gone = tmp_path / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    done = inside(verb[0], "--config", path, *verb[1:])
    assert (done.returncode, done.stderr) == (0, "")
    assert str(path) in done.stdout
    assert (path.read_text() != before) is (verb[0] in ("add", "remove", "disable"))


@pytest.mark.parametrize(
    "verb", [["add", "x", "--", "y"], ["remove", "a"], ["trust", "a"], ["list"], ["check"], ["tools"]], ids=" ".join
)
def test_a_relative_path_where_the_current_folder_is_gone_is_one_line(
    inside: Playbill, tmp_path: Path, verb: list[str]
) -> None:
    gone = tmp_path / "gone"
    gone.mkdir()
    os.chdir(gone)
    gone.rmdir()
    done = inside(verb[0], "--config", "m.json", *verb[1:])
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr.startswith("playbill: m.json: the current folder is gone")
    assert done.stderr.endswith("name the file by its whole path\n")


def test_a_project_without_a_file_says_that_no_parent_has_one(inside: Playbill, project: Path) -> None:
    done = inside("list", "--scope", "project")
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == f"playbill: {project}: there is no such file, nor one in a parent folder; {HOW_TO_ADD}\n"


def test_an_add_where_nothing_can_be_looked_at_is_told_of_in_one_line(inside: Playbill, tmp_path: Path) -> None:
    done = inside("add", "a", "--config", tmp_path / ("x" * 300), "--", "x")
    assert (done.returncode, done.stdout) == (3, "")
    assert "name too long" in done.stderr
    with tempfile.TemporaryDirectory() as shut:
        inner = Path(shut) / "inner"
        inner.mkdir()
        inner.chmod(0o000)
        if root := os.geteuid() == 0:
            Path(shut).chmod(0o755)
            os.seteuid(65534)  # nothing is shut to root
        try:
            done = inside("add", "a", "--config", inner / "m.json", "--", "x")
        finally:
            if root:
                os.seteuid(0)
            inner.chmod(0o700)
    assert (done.returncode, done.stdout) == (3, "")
    assert done.stderr == f"playbill: {inner}/m.json: cannot be read: Permission denied\n"


def test_a_file_that_cannot_be_written_is_a_failure(inside: Playbill, project: Path) -> None:
    write(project, a={"command": "x"})
    project.chmod(0o400)
    done = inside("disable", "a")
    assert (done.returncode, done.stdout) == (1, "")
    assert "not written" in done.stderr


def test_no_verb_that_edits_or_checks_imports_the_sdk_or_trio(tmp_path: Path, environment: dict[str, str]) -> None:
    words = [
        ["add", "a", "--scope", "project", "--", "x"],
        ["add", "b", "--url", "https://x.example/"],
        ["disable", "a/t"],
        ["enable", "a"],
        ["trust", "--all", "--yes"],
        ["check"],
        ["list"],
        ["remove", "a"],
    ]
    code = (
        "import sys\nfrom playbill.actors.cli.app import run\n"
        f"codes = [run(each) for each in {words!r}]\n"
        "heavy = {'mcp', 'mcp_types', 'pydantic', 'anyio', 'httpx2', 'trio', 'rich'} & set(sys.modules)\n"
        "print(codes, sorted(heavy), file=sys.stderr)"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, env=environment, capture_output=True, text=True)
    assert done.stderr.splitlines()[-1] == "[0, 0, 0, 0, 0, 0, 0, 0] []"
