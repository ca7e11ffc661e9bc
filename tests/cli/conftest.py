"""What the tests of the command line share: a folder with an mcp.json, and the program run in it.

`playbill` runs the real program, a process of its own; `forked` says what of that is not there, and which tests start an
interpreter too. `inside` runs the same command line in the test's process, on the same real servers; each exit code and each
verb is also seen with `playbill`.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from playbill.actors import servers
from playbill.actors.cli import app

from .. import forked

Playbill = Callable[..., "subprocess.CompletedProcess[str]"]
WriteConfig = Callable[..., Path]

PROGRAM = [sys.executable, "-m", "playbill.actors.cli"]


def shipped(name: str, **more: Any) -> dict[str, Any]:
    """An entry for one of the servers that ship with Playbill."""
    return {"command": sys.executable, "args": [str(servers.path(name))], **more}


@pytest.fixture(autouse=True)
def signals_as_at_a_terminal() -> Iterator[None]:
    """A shell lets what it runs in the background ignore Ctrl-C, and that is inherited; here somebody types it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.fixture
def entry() -> Callable[..., dict[str, Any]]:
    """Makes entries for shipped servers."""
    return shipped


@pytest.fixture
def write_config(tmp_path: Path) -> WriteConfig:
    """Writes ``mcp.json`` into the test's folder: entries as keywords, or a text."""

    def write(text: str | None = None, /, **entries: Any) -> Path:
        path = tmp_path / "mcp.json"
        path.write_text(json.dumps({"mcpServers": entries}) if text is None else text, encoding="utf-8")
        return path

    return write


@pytest.fixture
def environment(tmp_path: Path) -> dict[str, str]:
    """An environment without the tester's own settings: no config, no cache, no colour asked for."""
    home = tmp_path / "home"
    kept = {
        name: value
        for name, value in os.environ.items()
        if not name.startswith(("PLAYBILL", "XDG_")) and name not in ("FORCE_COLOR", "NO_COLOR", "COLUMNS")
    }
    return {**kept, "HOME": str(home)}


@pytest.fixture
def playbill(tmp_path: Path, environment: dict[str, str]) -> Playbill:
    """Runs the program to its end in the test's folder; whatever it does, no traceback reaches a person."""

    def run(*arguments: str | Path, **environ: str) -> subprocess.CompletedProcess[str]:
        done = forked.run(
            [*PROGRAM, *map(str, arguments)],
            cwd=tmp_path,
            env={**environment, **environ},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=60,
        )
        assert "Traceback" not in done.stderr, done.stderr
        return done

    return run


@pytest.fixture
def inside(
    tmp_path: Path,
    environment: dict[str, str],
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> Playbill:
    """Runs the command line in this process, in the test's folder and environment."""
    monkeypatch.chdir(tmp_path)
    for name in set(os.environ) - set(environment):
        monkeypatch.delenv(name)
    monkeypatch.setenv("HOME", environment["HOME"])

    def run(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        words = [str(each) for each in arguments]
        capsys.readouterr()
        code = app.run(words)
        out, err = capsys.readouterr()
        assert "Traceback" not in err, err
        return subprocess.CompletedProcess(words, code, out, err)

    return run
