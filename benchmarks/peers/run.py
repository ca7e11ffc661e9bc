"""Playbill beside what people use today: the same server, the same workload, each in its own environment.

    python benchmarks/peers/run.py [--peers …] [--rows …] [--rounds 5] [--out FOLDER] [--json FILE] [--quick]

Makes the environments (see `environments.py`), runs every row of `workload.py` with every peer in a process of its own, peers
turn about within a row, and writes ``results.json``, or FILE, after each row (a run with the same settings goes on with the
rows that are there); and ``table.md`` and, where matplotlib is (extra ``bench``), plots as SVG, into FOLDER. A cell is
measured, or says in words how it ended or why it could not run. Numbers are medians of the rounds; rows that tell what
happens, and not how fast, run once. Linux only.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import json
import os
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from typing import Any

from environments import WHERE, make, python_of, versions
from plots import draw

sys.path.insert(0, str(Path(__file__).resolve().parents[1]))
from record import Record

HERE = Path(__file__).parent
LIMIT = 90.0
"""Seconds that one row of one peer may take."""

PEERS = {
    "floor": "playbill",
    "playbill": "playbill",
    "mcp_client": "mcp",
    "mcp_group": "mcp",
    "fastmcp": "fastmcp",
    "fastmcp_group": "fastmcp",
    "langchain": "langchain-mcp-adapters",
    "langchain_sessions": "langchain-mcp-adapters",
    "openai_agents": "openai-agents",
    "pydantic_ai": "pydantic-ai",
    "google_adk": "google-adk",
}
"""Adapter (``peer_NAME.py``) → environment."""

MANY = ("connect 1", "connect 10", "connect 40", "calls")
ONCE = ("hanging", "crash", "recovery", "change", "list_changed", "collision", "close", "killed")
NOT_FOR_THE_FLOOR = {"hanging", "recovery", "crash", "list_changed", "collision", "killed"}
SETTLE = 3.0
"""Seconds after a kill in which what belongs to the killed may go."""

Cells = dict[str, Any]


def run_rows(peer: str, rows: list[str], where: Path, quick: bool) -> list[Cells]:
    """Some rows of one peer, in a process of their own; what it leaves behind is counted, and ended."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        command = [str(python_of(PEERS[peer], where)), str(HERE / "workload.py"), peer, "+".join(rows), folder]
        # Files and no pipes: servers that are left behind hold a pipe open, and whoever reads it would wait for them.
        with (scratch / "out").open("wb") as out, (scratch / "err").open("wb") as err:
            process = subprocess.Popen(
                command + ["--quick"] * quick,
                stdout=out,
                stderr=err,
                stdin=subprocess.DEVNULL,
                cwd=HERE,
                start_new_session=True,
            )
        try:
            return _ended(process, scratch, rows)
        finally:
            process.kill()
            process.wait()
            for pid in living(scratch):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)


def _ended(process: subprocess.Popen[bytes], scratch: Path, rows: list[str]) -> list[Cells]:
    """What rows printed; the row ``killed`` is killed once it has its servers, and what is left of them is counted."""
    deadline = time.monotonic() + LIMIT * len(rows)
    while process.poll() is None and time.monotonic() < deadline:
        time.sleep(0.05)
        if rows == ["killed"] and b"ready" in (scratch / "out").read_bytes():
            process.kill()
            end = time.monotonic() + SETTLE
            while living(scratch) and time.monotonic() < end:
                time.sleep(0.05)
            return [{"processes left after kill -9 of the program": len(living(scratch))}]
    found: list[Cells] = []
    for line in (scratch / "out").read_text(errors="replace").splitlines():
        with contextlib.suppress(ValueError):
            cells = json.loads(line)
            found += [cells] if isinstance(cells, dict) else []
    if len(found) < len(rows):
        said = (scratch / "err").read_text(errors="replace").strip().splitlines()
        why = (said or [f"exit code {process.returncode}"])[-1][:120]
        if process.poll() is None:
            left = len(living(scratch))
            why = f"nothing within {LIMIT * len(rows):g} s, with {left} processes of servers left"
        found += [{"could not": why}] * (len(rows) - len(found))
    return found[: len(rows)]


def living(folder: Path) -> list[int]:
    """As `workload.living`: the servers' processes that have this folder in their command line."""
    found = []
    for process in Path("/proc").glob("[0-9]*"):
        with contextlib.suppress(OSError):
            command = (process / "cmdline").read_bytes().split(b"\0")
            if os.fsencode(str(HERE / "server.py")) in command and os.fsencode(str(folder)) in command:
                found.append(int(process.name))
    return found


def merged(rounds: list[Cells]) -> Cells:
    """The median of each cell that is a number in every round; else what it said last."""
    cells: Cells = {}
    for name in dict.fromkeys(name for each in rounds for name in each):
        values = [each[name] for each in rounds if name in each]
        numbers = [value for value in values if isinstance(value, (int, float))]
        cells[name] = round(median(numbers), 1) if len(numbers) == len(rounds) else values[-1]
    return cells


def measure(
    peers: list[str], rows: list[str], rounds: int, where: Path, quick: bool
) -> Iterator[tuple[str, dict[str, Cells]]]:
    """Each row, as it is done: its name, and peer → cells."""
    missing: dict[str, str | None] = {}
    for environment in dict.fromkeys(PEERS[peer] for peer in peers):
        missing[environment] = make(environment, where)
        print(f"environment {environment}: {missing[environment] or 'ready'}", flush=True)
    # Those that are timed share a process in each round: what a peer takes to be imported would be most of the time.
    timed = [row for row in rows if row in MANY]
    for together in ([timed] if timed else []) + [[row] for row in rows if row not in MANY]:
        tries: dict[str, list[list[Cells]]] = {peer: [] for peer in peers}
        for turn in range(rounds if together == timed else 1):
            for peer in peers if turn % 2 else reversed(peers):
                if why := missing[PEERS[peer]]:
                    tries[peer].append([{"could not": why}] * len(together))
                elif peer == "floor" and together[0] in NOT_FOR_THE_FLOOR:
                    tries[peer].append([{"could not": "the floor only spawns, lists and calls"}])
                else:
                    tries[peer].append(run_rows(peer, together, where, quick))
        for at, row in enumerate(together):
            found = {peer: merged([cells[at] for cells in each]) for peer, each in tries.items()}
            for peer, cells in found.items():
                words = " · ".join(f"{name}: {value}" for name, value in cells.items())
                print(f"{row:<14}{peer:<20}{words}", flush=True)
            yield row, found


def how(peer: str) -> str:
    """How an adapter uses its peer: the first line of its docstring."""
    text = ast.get_docstring(ast.parse((HERE / f"peer_{peer}.py").read_text())) or ""
    return text.splitlines()[0]


def table(found: dict[str, dict[str, Cells]], peers: list[str], about: dict[str, Any]) -> str:
    """The results in Markdown: a line for each cell, a column for each peer."""
    lines = [f"{key}: {value}" for key, value in about.items() if isinstance(value, (str, int))]
    lines = ["  \n".join(lines), "", "| | " + " | ".join(peers) + " |", "|---" * (len(peers) + 1) + "|"]
    lines.append("| how it is used | " + " | ".join(how(peer) for peer in peers) + " |")
    for row, by_peer in found.items():
        names = [
            name for name in dict.fromkeys(name for cells in by_peer.values() for name in cells) if name != "could not"
        ]
        for name in names or [row]:
            values = []
            for peer in peers:
                cells = by_peer[peer]
                value = cells.get(name, f"could not: {cells['could not']}" if "could not" in cells else "–")
                values.append(
                    f"{value:,.0f}" if isinstance(value, (int, float)) else re.sub(r"\s+", " ", value).replace("|", "/")
                )
            lines.append(f"| {name} | " + " | ".join(values) + " |")
    return "\n".join(lines) + "\n"


def main() -> None:
    """Read the arguments, measure, write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", default=",".join(PEERS), help=f"of {', '.join(PEERS)}")
    parser.add_argument("--rows", default=",".join(MANY + ONCE), help=f"of {', '.join(MANY + ONCE)}")
    parser.add_argument("--rounds", type=int, default=5, help="of the rows that are timed")
    parser.add_argument("--where", type=Path, default=WHERE, help="the folder of the environments")
    parser.add_argument("--out", type=Path, help="the folder to write results.json, a table and plots to")
    parser.add_argument("--json", type=Path, help="keep the results in this file, and go on with what is in it")
    parser.add_argument("--quick", action="store_true", help="one round, few calls: does it run")
    given = parser.parse_args()
    peers, rows = given.peers.split(","), given.rows.split(",")
    if unknown := ({*peers} - {*PEERS}) | ({*rows} - {*MANY, *ONCE}):
        parser.error(f"no such peer or row: {', '.join(sorted(unknown))}")
    rounds = 1 if given.quick else given.rounds
    file = given.json or (given.out / "results.json" if given.out else None)
    record = Record(file, {"rounds": rounds, "quick": given.quick})
    record.data["about"]["preliminary"] = "yes: made with --quick" if given.quick else "no"
    found: dict[str, dict[str, Cells]] = record.data.setdefault("rows", {})
    left = [row for row in rows if not {*peers} <= {*found.get(row, ())}]
    for row, by_peer in measure(peers, left, rounds, given.where, given.quick):
        found.setdefault(row, {}).update(by_peer)
        record.data["about"].setdefault("peers' versions", {}).update(
            {name: versions(name, given.where) for name in dict.fromkeys(map(PEERS.get, peers)) if name}
        )
        record.save()
    if given.out:
        given.out.mkdir(parents=True, exist_ok=True)
        (given.out / "table.md").write_text(table(found, peers, record.data["about"]))
        print("\n".join(["", f"written: {given.out / 'table.md'}", draw(found, peers, given.out)]))


if __name__ == "__main__":
    sys.exit(main())
