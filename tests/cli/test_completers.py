"""What is offered at the tab key, asked for without a shell."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from playbill.actors.cli import completers

from .test_scopes_and_trust import write

Playbill = Callable[..., "subprocess.CompletedProcess[str]"]


def at_tab(incomplete: str = "", *typed: str, **options: str) -> Any:
    """A line on which the words before are typed, and some options."""
    values = {"NAME": typed[0]} if typed else {}
    values |= {f"--{name}": value for name, value in options.items()}
    return SimpleNamespace(
        incomplete=incomplete,
        argument=SimpleNamespace(tokens=[SimpleNamespace(value=each) for each in typed]),
        get=lambda name: SimpleNamespace(raw=values[name]) if name in values else None,
    )


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder, with a project's config and one of the person's own."""
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.setenv("XDG_CONFIG_HOME", str(tmp_path / "home" / ".config"))
    monkeypatch.chdir(tmp_path)
    lists = {"exclude": ["write_file"], "pin": ["read_file"]}
    write(tmp_path / ".mcp.json", files={"command": "run-files", "tools": lists}, fetch={"command": "x" * 200})
    write(tmp_path / "home" / ".config" / "playbill" / "mcp.json", mine={"command": "y"})
    return tmp_path


def test_a_server_is_offered_with_what_it_runs_in_few_words_and_once(folder: Path) -> None:
    found = dict(completers.servers(at_tab()))
    assert list(found) == ["files", "fetch", "mine"]
    assert found["files"] == "run-files"
    assert len(found["fetch"]) == 60
    assert list(dict(completers.servers(at_tab("", "files")))) == ["fetch", "mine"]


def test_the_files_that_are_chosen_are_those_whose_names_are_offered(folder: Path) -> None:
    assert list(dict(completers.servers(at_tab(scope="user")))) == ["mine"]
    assert list(dict(completers.servers(at_tab(scope="project")))) == ["files", "fetch"]
    write(folder / "other.json", elsewhere={"command": "z"})
    assert list(dict(completers.servers(at_tab(config="other.json")))) == ["elsewhere"]


def test_a_tool_is_offered_of_the_server_that_is_typed_and_it_is_said_when_it_is_excluded(folder: Path) -> None:
    assert sorted(completers.tools(at_tab("", "files"))) == [("read_file", ""), ("write_file", "excluded")]
    write(folder / "only.json", only={"command": "z", "tools": {"include": ["go"], "exclude": ["stop"]}})
    assert sorted(completers.tools(at_tab("", "only", config="only.json"))) == [("go", ""), ("stop", "excluded")]
    assert list(completers.tools(at_tab("", "nobody"))) == []
    assert list(completers.tools(at_tab())) == []
    assert {"files/write_file": "excluded", "files/read_file": ""}.items() <= dict(
        completers.subjects(at_tab())
    ).items()


def test_files_are_folders_to_go_on_from_and_json(folder: Path) -> None:
    (folder / "conf").mkdir()
    for name in ("a.json", "b.jsonc", "c.txt", "conf/d.json"):
        (folder / name).write_text("{}")
    assert [name for name, _ in completers.files(at_tab())] == [".mcp.json", "a.json", "b.jsonc", "conf/", "home/"]
    assert [name for name, _ in completers.files(at_tab("conf/x"))] == ["conf/d.json"]
    (folder / "home" / "own.json").write_text("{}")
    assert "~/own.json" in [name for name, _ in completers.files(at_tab("~/o"))]


def test_verbs_are_offered_with_their_first_line() -> None:
    found = dict(completers.verbs(at_tab()))
    assert {"list", "pick", "run"} <= set(found)
    assert all(said and "\n" not in said for said in found.values())


def test_an_installed_completion_is_told_as_json_with_its_file_and_what_is_in_it(
    inside: Playbill, environment: dict[str, str]
) -> None:
    Path(environment["HOME"]).mkdir()
    done = inside("completion", "bash", "--install", "--json")
    told = json.loads(done.stdout)
    assert (done.returncode, told["shell"]) == (0, "bash")
    assert told["script"] == Path(told["file"]).read_text("utf-8") != ""
