"""The comparison runs, with what every environment of this project has; what a peer cannot do is said and not left out."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from .conftest import BENCHMARKS

PEERS = BENCHMARKS / "peers"


def test_playbill_and_the_floor_run_the_rows_and_every_cell_says_something(tmp_path: Path) -> None:
    rows = "connect 1,recovery,change,collision,killed"
    command = [sys.executable, str(PEERS / "run.py"), "--quick", "--peers", "floor,playbill", "--rows", rows]
    ran = subprocess.run([*command, "--out", str(tmp_path)], capture_output=True, text=True, timeout=280, check=False)
    assert ran.returncode == 0, ran.stdout + ran.stderr
    found = json.loads((tmp_path / "results.json").read_text())
    ours = {name: value for by_peer in found["rows"].values() for name, value in by_peer["playbill"].items()}
    assert "could not" not in ours, ours
    assert isinstance(ours["connect + list 1, ms"], float)
    assert ours["restart by itself"].endswith(" ms")
    assert ours["disable a tool"].endswith(", 0 started")
    assert ours["drop a server"].endswith(", 0 started")
    assert ours["add a server to 10"].endswith(", 1 started")
    assert ours["the same names in two servers"] == "6 names for 6 tools"
    assert ours["processes left after kill -9 of the program"] == 0
    assert "only spawns" in found["rows"]["recovery"]["floor"]["could not"]
    assert found["about"]["preliminary"].startswith("yes")
    lines = (tmp_path / "table.md").read_text().splitlines()
    assert "| | floor | playbill |" in lines
    assert f"| disable a tool | no: no such operation: filter the list yourself | {ours['disable a tool']} |" in lines


def test_each_peer_has_an_adapter_of_at_most_120_lines() -> None:
    ran = subprocess.run(
        [sys.executable, "-c", "import json, run, environments as e; print(json.dumps([run.PEERS, e.REQUIREMENTS]))"],
        cwd=PEERS,
        capture_output=True,
        text=True,
        check=True,
    )
    peers, requirements = json.loads(ran.stdout)
    assert {path.stem for path in PEERS.glob("peer_*.py")} == {f"peer_{peer}" for peer in peers}
    assert {*peers.values()} == {*requirements}
    for path in PEERS.glob("peer_*.py"):
        assert len(path.read_text().splitlines()) <= 120, path.name


def test_an_environment_that_cannot_be_made_is_said_in_every_cell_of_its_peer(tmp_path: Path) -> None:
    python = tmp_path / "mcp" / "bin" / "python"
    python.parent.mkdir(parents=True)
    python.write_text("#!/bin/sh\necho 'ERROR: No matching distribution' >&2\nexit 1\n")
    python.chmod(0o700)
    program = f"""
import pathlib, run
found = dict(run.measure(["mcp_client"], ["calls", "crash"], 1, pathlib.Path({str(tmp_path)!r}), True))
print(run.table(found, ["mcp_client"], {{}}))
"""
    ran = subprocess.run(
        [sys.executable, "-c", program], cwd=PEERS, capture_output=True, text=True, timeout=200, check=False
    )
    assert ran.returncode == 0, ran.stderr
    lines = [line for line in ran.stdout.splitlines() if line.startswith(("| calls", "| crash"))]
    assert len(lines) == 2
    for line in lines:
        assert "could not: mcp==2.3.0 could not be installed: ERROR: No matching distribution" in line
