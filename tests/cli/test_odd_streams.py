"""Streams that are closed, full, or read by nobody: the work is done, and what is said of it is one line or none."""

from __future__ import annotations

import os
import pty
import select
import shlex
import subprocess
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from playbill.actors.cli.voice import _TERMINALS, Voice

from .conftest import PROGRAM, shipped
from .terminal import on_terminal

WriteConfig = Callable[..., Path]


def shell(line: str, folder: Path, environ: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Run a line of shell in which ``PB`` is the program."""
    line = line.replace("PB", shlex.join(PROGRAM))
    return subprocess.run(
        ["/bin/bash", "-c", line], cwd=folder, env=environ, capture_output=True, text=True, timeout=60
    )


@pytest.mark.parametrize("closed", [">&-", "2>&-", "<&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize("verb", ["list", "disable a", "check", "lsit"])
def test_a_closed_stream_is_as_one_that_goes_nowhere(
    write_config: WriteConfig, tmp_path: Path, environment: dict[str, str], closed: str, verb: str
) -> None:
    config = write_config(a={"command": "sh"})
    nowhere = closed.replace("<&-", "</dev/null").replace(">&-", ">/dev/null")
    named = "" if verb == "lsit" else " --config mcp.json"
    expected = shell(f"PB {verb}{named} {nowhere}", tmp_path, environment)
    config = write_config(a={"command": "sh"})
    done = shell(f"PB {verb}{named} {closed}", tmp_path, environment)
    assert (done.returncode, done.stdout, done.stderr) == (expected.returncode, expected.stdout, expected.stderr)
    if verb.startswith("disable"):
        assert "disabled" in config.read_text()


def test_run_whose_reader_has_gone_ends_without_a_word(
    write_config: WriteConfig, tmp_path: Path, environment: dict[str, str]
) -> None:
    write_config(a=shipped("dice"))
    done = shell('PB run --no-watch --config mcp.json | true; echo "${PIPESTATUS[0]}"', tmp_path, environment)
    assert (done.stdout, done.stderr) == ("141\n", "")


@pytest.mark.parametrize("words", ["help", "help add", "--help", "list --config mcp.json"])
def test_whatever_is_printed_for_nobody_is_141(
    write_config: WriteConfig, tmp_path: Path, environment: dict[str, str], words: str
) -> None:
    write_config(a={"command": "sh"})
    done = shell(f'{{ sleep 0.5; PB {words}; echo "$?" >&2; }} | true', tmp_path, environment)
    assert (done.stdout, done.stderr) == ("", "141\n")


@pytest.mark.parametrize("words", ["list --config mcp.json", "list --json --config mcp.json", "help add"])
def test_a_full_disk_is_one_line(
    write_config: WriteConfig, tmp_path: Path, environment: dict[str, str], words: str
) -> None:
    write_config(a={"command": "sh"})
    done = shell(f"PB {words} >/dev/full", tmp_path, environment)
    assert done.returncode == 1
    assert done.stderr == "playbill: what was asked for cannot be written: No space left on device\n"


def test_progress_fits_the_terminal_that_stderr_is(
    write_config: WriteConfig, tmp_path: Path, environment: dict[str, str]
) -> None:
    hang = {"command": "sleep", "args": ["600"]}
    config = write_config(**{"a-server-with-a-long-name": hang, "another-server-with-a-long-name": hang})
    environ = {**environment, "TERM": "xterm", "LC_ALL": "C.UTF-8"}
    with open(tmp_path / "out", "wb") as file:
        words = ["tools", "--json", "--timeout", "1.5", "--config", str(config)]
        _, text = on_terminal([*PROGRAM, *words], tmp_path, environ, 40, stdout=file.fileno())
    told = [part.partition("\x1b")[0] for part in text.split("\r") if part.startswith("waiting")]
    assert told
    assert max(map(len, told)) == 39


def test_a_terminal_that_nobody_reads_costs_what_is_said_there_two_seconds_and_no_more(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("playbill.actors.cli.voice._PATIENCE", 0.1)
    ours, theirs = pty.openpty()
    name = os.ttyname(theirs)
    with open(theirs, "w", encoding="utf-8") as stderr:
        monkeypatch.setattr("playbill.actors.cli.voice.sys", SimpleNamespace(stderr=stderr))
        voice = Voice()
        done = threading.Event()

        def say_much() -> None:
            for number in range(3000):
                voice.say(f"line {number} {'x' * 100}")
            done.set()

        threading.Thread(target=say_much, daemon=True).start()
        assert done.wait(60), "it waits for a terminal that nobody reads"
        # What it had taken is there, in order, and what is said once it is read again.
        found = b""
        while select.select([ours], [], [], 0.2)[0]:
            found += os.read(ours, 65536)
        assert found.startswith(b"line 0 x")
        voice.say("and on")
        assert select.select([ours], [], [], 10)[0]
        assert os.read(ours, 65536).endswith(b"and on\r\n")
        os.close(_TERMINALS.pop(name))
    os.close(ours)
