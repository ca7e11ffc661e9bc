"""Completion at the tab key: the script in a real bash, and that it starts no server."""

from __future__ import annotations

import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from playbill.actors.cli import completers
from playbill.actors.model.config import ServerEntry

from .. import forked
from .conftest import PROGRAM
from .test_scopes_and_trust import write

Playbill = Callable[..., "subprocess.CompletedProcess[str]"]
Complete = Callable[..., list[str]]

DRIVE = r"""
source "$1"; shift
COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=()
eval "$(complete -p playbill | sed -n 's/.* -F \([^ ]*\) .*/\1/p')"
printf '%s\n' "${COMPREPLY[@]}"
"""


@pytest.fixture(scope="module")
def script() -> str:
    """The script for bash."""
    done = forked.run([*PROGRAM, "completion", "bash"], capture_output=True, text=True, check=True, timeout=60)
    return done.stdout


@pytest.fixture
def complete(tmp_path: Path, environment: dict[str, str], script: str) -> Iterator[Complete]:
    """What an interactive bash completes the last of some words to, with `playbill` in its PATH."""
    folder = tmp_path / "bin"
    folder.mkdir()
    program = folder / "playbill"
    program.write_text(f'#!/bin/sh\nexec {" ".join(PROGRAM)} "$@"\n')
    program.chmod(0o755)
    (tmp_path / "script").write_text(script)
    (tmp_path / "drive").write_text(DRIVE)
    environ = {**environment, "PATH": f"{folder}:{environment['PATH']}"}
    marker = tmp_path / "started"
    write(
        tmp_path / ".mcp.json",
        files={"command": sys.executable, "args": ["-c", f"open({str(marker)!r}, 'w')"],
               "tools": {"exclude": ["write_file"], "pin": ["read_file"]}},
        fetch={"command": "x"},
        **{"zwei drei": {"command": "y"}},
    )  # fmt: skip

    def press_tab(*words: str) -> list[str]:
        done = subprocess.run(
            ["bash", "--norc", "-i", str(tmp_path / "drive"), str(tmp_path / "script"), "playbill", *words],
            cwd=tmp_path, env=environ, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=60,
        )  # fmt: skip
        return done.stdout.splitlines() if done.stdout.strip() else []

    yield press_tab
    assert not marker.exists()


def test_bash_completes_verbs_and_options(complete: Complete) -> None:
    assert {"list", "tools", "call", "completion"} <= set(complete(""))
    assert complete("tr") == ["trust"]
    assert {"--config", "--scope", "--json", "--quiet", "--verbose", "--timeout"} <= set(complete("list", "--"))
    assert complete("list", "--scope", "") == ["project", "user"]
    assert complete("completion", "f") == ["fish"]


def test_bash_completes_names_of_the_config_without_starting_anything(complete: Complete) -> None:
    assert complete("remove", "") == ["files", "fetch", r"zwei\ drei"]
    assert sorted(complete("why", "files")) == ["files", "files/read_file", "files/write_file"]
    assert complete("disable", "files", "w") == ["write_file"]
    assert complete("trust", "files", "f") == ["fetch"]


def test_bash_completes_what_needs_no_config(complete: Complete, tmp_path: Path) -> None:
    assert "openai" in complete("tools", "--profile", "open")
    (tmp_path / "conf").mkdir()
    (tmp_path / "conf" / "other.json").write_text(json.dumps({"mcpServers": {"elsewhere": {"command": "x"}}}))
    assert complete("list", "--config", "conf/") == ["conf/other.json"]
    assert complete("call", "--config", "conf/other.json", "e") == ["elsewhere"]
    assert complete("help", "rem") == ["remove"]


def test_a_config_that_cannot_be_read_completes_to_nothing_and_says_nothing(complete: Complete, tmp_path: Path) -> None:
    (tmp_path / ".mcp.json").write_text("{")
    assert complete("remove", "") == []


@pytest.mark.parametrize(("shell", "starts"), [("bash", "# Bash"), ("zsh", "#compdef playbill"), ("fish", "# Fish")])
def test_each_shell_has_a_script_that_its_parser_takes(
    inside: Playbill, tmp_path: Path, shell: str, starts: str
) -> None:
    done = inside("completion", shell)
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith(starts)
    if (program := shutil.which(shell)) is not None:  # the machine of a test need not have all three
        (tmp_path / "script").write_text(done.stdout)
        subprocess.run([program, "-n", str(tmp_path / "script")], check=True, timeout=60)


def test_install_writes_where_the_shell_looks(inside: Playbill, environment: dict[str, str]) -> None:
    home = Path(environment["HOME"])
    home.mkdir()
    done = inside("completion", "bash", "--install")
    assert (done.returncode, done.stderr) == (0, "")
    file = home / ".local/share/bash-completion/completions/playbill"
    assert file.read_text() == inside("completion", "bash").stdout.removesuffix("\n")
    assert inside("completion", "bash", "--install", "--quiet").stdout == ""


def test_a_name_that_no_line_can_hold_is_not_offered() -> None:
    names = ["plain", "with a blank", "two\nlines", "a\ttab", "\x1b[2J", "--yes", "-x"]
    entries = tuple(ServerEntry(name, command="x", exclude=("ok", "bad\x07", "-t")) for name in names)
    entry = entries[-1]
    assert [name for name in names if completers._plain(name)] == ["plain", "with a blank"]
    assert [name for name, _ in completers._tools(entry, "")] == ["ok"]
    assert [name for name, _ in completers._tools(entries[0], "plain/")] == ["plain/ok", "plain/-t"]
    assert [name for name, _ in completers._tools(entry, "-x/")] == []


@pytest.mark.parametrize(
    ("home", "why"),
    [
        ("", "there is no home folder ''"),
        ("$(touch x)", "a shell would read more than a name"),
        ("rc is a folder", "no file that can be added to"),
        ("rc is utf-16", "it is UTF-16"),
    ],
)
def test_an_odd_home_has_nothing_installed_and_one_line_says_why(
    playbill: Playbill, tmp_path: Path, home: str, why: str
) -> None:
    where = tmp_path / home if home else None
    if where is not None:
        where.mkdir()
    if where is not None and "folder" in home:
        (where / ".bashrc").mkdir()
    elif where is not None and "utf" in home:
        (where / ".bashrc").write_bytes(b"\xff\xfe bin\n")
    done = playbill("completion", "bash", "--install", HOME="" if where is None else str(where))
    assert (done.returncode, done.stderr.count("\n")) == (1, 1)
    assert why in done.stderr
    assert where is None or [each.name for each in where.iterdir()] in ([], [".bashrc"])
