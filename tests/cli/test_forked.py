"""The forks that stand for the program in these tests are what the program is: each verb that no other test starts as a new
interpreter is started here as both."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from ..forked import Forked
from .conftest import PROGRAM, shipped

Playbill = Callable[..., "subprocess.CompletedProcess[str]"]
WriteConfig = Callable[..., Path]

LATIN = {"LC_ALL": "C", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"}


@pytest.mark.parametrize("environ", [{}, LATIN], ids=["as it is", "nothing is UTF-8"])
@pytest.mark.parametrize(
    "words",
    [
        "",
        "list --config mcp.json",
        "remove ü --config mcp.json",
        "trust --all",
        "chaos --seeds 0",
        "demo --config mcp.json",
    ],
)
def test_a_fork_says_and_does_what_an_interpreter_does(
    playbill: Playbill,
    write_config: WriteConfig,
    monkeypatch: pytest.MonkeyPatch,
    words: str,
    environ: dict[str, str],
) -> None:
    seen = []
    for forked in ("0", "1"):
        monkeypatch.setenv("PLAYBILL_FORKED", forked)
        config = write_config(ü={"command": "x", "args": ["東京"]})
        done = playbill(*words.split(), **environ)
        seen.append((done.returncode, done.stdout, done.stderr, config.read_bytes()))
    assert seen[0] == seen[1]


@pytest.mark.skipif(sys.platform != "linux", reason="only there are processes forked")
def test_a_fork_is_a_child_of_the_test_and_ends_of_the_signal_it_is_sent(
    write_config: WriteConfig, tmp_path: Path, environment: dict[str, str]
) -> None:
    config = write_config(clock=shipped("clock"))
    how: dict[str, Any] = {"cwd": tmp_path, "env": environment, "stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE}
    with Forked([*PROGRAM, "run", "--config", str(config)], text=True, start_new_session=True, **how) as process:
        assert process.stdout is not None
        process.stdout.readline()
        status = Path(f"/proc/{process.pid}/status").read_text()
        assert f"PPid:\t{os.getpid()}\n" in status
        assert os.getsid(process.pid) == process.pid
        assert Path(f"/proc/{process.pid}/cwd").resolve() == tmp_path.resolve()
        assert len(os.listdir(f"/proc/{process.pid}/fd")) < 32
        process.kill()
    assert process.returncode == -signal.SIGKILL
