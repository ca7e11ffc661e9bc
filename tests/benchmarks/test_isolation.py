"""Whatever servers do, no call of another one is later by anything; and what would make it so is seen."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

import playbill.actors.line
import pytest
import trio

from .conftest import BENCHMARKS

Runner = Callable[[str], ModuleType]

NAMED = (
    ("call_after", "crash"),  # exits in a call
    ("idle", "crash"),  # kill -9 idle
    ("handshake", "hang"),
    ("idle", "long_line"),  # floods its stdout
    ("list_changed", "flaky"),  # a storm of announcements
    ("close", "refuses_to_die"),
)
"""Those of `isolation.py`, as far as they are on the wire: stderr is a file of its own. `isolation_exact.py` runs all."""


def test_faults_of_half_the_servers_move_no_call_of_the_others_in_virtual_time(runner: Runner) -> None:
    assert runner("isolation_exact").differences(NAMED, servers=4) == []


def test_the_faults_do_strike(runner: Runner) -> None:
    exact = runner("isolation_exact")
    for site, kind in NAMED:
        assert len(exact.plan(site, kind, 4)) == 2
    calls, states = exact.timeline(exact.plan("call_after", "crash", 4), 4)
    assert len(calls) == exact.CALLS * (1 + exact.AT_ONCE)
    assert states == [("good0", "ready", 0, True, None), ("good1", "ready", 0, True, None)]


def test_a_limiter_shared_between_servers_is_seen(runner: Runner, monkeypatch: pytest.MonkeyPatch) -> None:
    shared = trio.Semaphore(17)  # as many as call healthy servers at once

    def limited(call: Any) -> Any:
        async def limit(self: Any, *args: Any, **more: Any) -> Any:
            async with shared:
                return await call(self, *args, **more)

        return limit

    for way in ("call", "call_directly"):
        monkeypatch.setattr(playbill.actors.line.Line, way, limited(getattr(playbill.actors.line.Line, way)))
    (line,) = runner("isolation_exact").differences((("call_after", "hang"),), servers=4)
    assert line.startswith("call_after hang: the call ('good")


@pytest.mark.parametrize(("changed", "words"), [("calls", "the call 1 became 2"), ("states", "1 became 2")])
def test_a_call_that_changed_and_a_server_that_changed_are_told(
    runner: Runner, monkeypatch: pytest.MonkeyPatch, changed: str, words: str
) -> None:
    exact = runner("isolation_exact")

    def timeline(faults: Any, servers: int) -> tuple[list[int], int]:
        struck = bool(faults.faults)
        return [1 + (struck and changed == "calls")], 1 + (struck and changed == "states")

    monkeypatch.setattr(exact, "timeline", timeline)
    assert exact.differences((("call_after", "crash"),), servers=4) == [f"call_after crash: {words}"]


def test_the_measuring_runner_runs(tmp_path: Path) -> None:
    results = tmp_path / "isolation.json"
    command = [
        sys.executable,
        str(BENCHMARKS / "isolation.py"),
        "--quick",
        "--kinds",
        "exit,storm",
        "--json",
        str(results),
    ]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=240, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    cells = json.loads(results.read_text())["cells"]
    assert [cell["kind"] for cell in cells] == ["nobody", "exit", "storm"]
    for cell in cells:
        for arm in cell["arms"].values():
            assert all(load["errors"] == 0 and load["calls"] > 0 for load in arm["loads"].values())
    assert cells[1]["arms"]["faulty"]["faults"] > 0
    assert cells[1]["arms"]["faulty"]["back"]["median ms"] > 0
