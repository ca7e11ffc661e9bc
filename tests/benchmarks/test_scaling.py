"""The sweeps run, and a host with idle servers sleeps."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from .conftest import BENCHMARKS


def test_the_sweeps_run_and_nothing_polls(tmp_path: Path) -> None:
    file = tmp_path / "scaling.json"
    command = [sys.executable, str(BENCHMARKS / "scaling.py"), "--quick", "--json", str(file)]
    ran = subprocess.run(command, capture_output=True, text=True, timeout=900, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    found = json.loads(file.read_text())
    assert [row["servers"] for row in found["servers"]] == [1, 4]
    # A second of idling is one sleep; some more may come of what the machine does, but a poll would be ten at the least.
    assert all(row["wake-ups/s"] < 8 for row in found["servers"])
    assert all(row["theirs/s"] < 8 for row in found["servers"])
    assert [row["helpers"] for row in found["servers"]] == [2, 5]
    assert [row["on the wire"] for row in found["tools"]] == [10, 200]
    assert [row["hosts"] for row in found["hosts"]] == [1, 2]
    assert all(row["calls/s"] > 0 for row in found["hosts"])
