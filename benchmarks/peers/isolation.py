"""Healthy servers' calls while others misbehave: the same for Playbill and for what people use today.

    python benchmarks/peers/isolation.py [--peers …] [--kinds …] [--rounds 3] [--seconds 1.6] [--json FILE] [--quick]

Theory of operation
    As `../isolation.py`, which says what the arms are (calm, faulty, busy) and why; here every peer does it by its adapter,
    with 10 servers, of which 3 can misbehave and the last 5 are called. A cell (a kind of fault, a peer) is a process by itself
    (`under_fault.py`, in the peer's environment), with a limit. Peers are at their defaults. Servers that die do so once in a
    block: what a peer does about it is told by whether, and when, they can be called again. Cells are written as they are
    done, and a run with the same settings goes on with what is there.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from environments import WHERE, make, python_of, versions
from run import PEERS, Record, living

HERE = Path(__file__).parent
KINDS = {
    "exit": "exits in a call",
    "kill": "kill -9 while idle",
    "hang": "hangs in the handshake",
    "stdout": "floods stdout",
    "stderr": "floods stderr",
    "storm": "1,000 list_changed a second",
    "stubborn": "refuses to die, and is restarted",
}
LIMIT = 60.0
"""Seconds more than its blocks that one cell may take."""


def cell(peer: str, kind: str, where: Path, rounds: int, seconds: float) -> dict[str, Any]:
    """Measure one, in a process of its own; what it leaves behind is ended."""
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder)
        command = [str(python_of(PEERS[peer], where)), str(HERE / "under_fault.py"), peer, kind, folder]
        begun = time.monotonic()
        with (scratch / "out").open("wb") as out, (scratch / "err").open("wb") as err:
            process = subprocess.Popen(
                [*command, str(rounds), str(seconds)],
                stdout=out,
                stderr=err,
                stdin=subprocess.DEVNULL,
                cwd=HERE,
                start_new_session=True,
            )
        limit = LIMIT + 3 * (rounds + 1) * seconds
        try:
            while process.poll() is None and time.monotonic() < begun + limit and not said(scratch):
                time.sleep(0.05)
            took = round(time.monotonic() - begun, 1)
            if found := said(scratch):
                return {**found, "seconds": took}
            if process.poll() is None:
                return {"the group failed": f"nothing came within {limit:.0f} s", "seconds": took}
            errors = (scratch / "err").read_text(errors="replace").strip().splitlines()
            return {"the group failed": (errors or [f"exit code {process.returncode}"])[-1][:120], "seconds": took}
        finally:
            process.kill()
            process.wait()
            for pid in living(scratch):
                with contextlib.suppress(OSError):
                    os.kill(pid, signal.SIGKILL)


def said(scratch: Path) -> dict[str, Any] | None:
    """The cell, once it was printed."""
    for line in reversed((scratch / "out").read_text(errors="replace").splitlines(keepends=True)):
        with contextlib.suppress(ValueError):
            found = json.loads(line) if line.endswith("\n") else None
            if isinstance(found, dict):
                return found
    return None


def show(found: dict[str, Any]) -> None:
    """Print one cell, in a line."""
    parts = [f"{found['kind']:<9}{found['peer']:<20}"]
    if "arms" in found:
        parts.append(f"{found['errors']} errors")
        parts += [f"p99 {load} × {each['median']}" for load, each in found["p99 over busy"].items()]
        parts.append(found["callable again"])
    parts += [f"{key}: {found[key]}" for key in ("could not", "the group failed", "load") if key in found]
    print(" · ".join(parts) + f"  ({found.get('seconds', 0):g} s)", flush=True)


def main() -> None:
    """Read the arguments and measure."""
    names = [peer for peer in PEERS if peer != "floor"]
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--peers", default=",".join(names), help=f"of {', '.join(names)}")
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"of {', '.join(KINDS)}")
    parser.add_argument("--rounds", type=int, default=3)
    parser.add_argument("--seconds", type=float, default=1.6, help="of one block of one arm")
    parser.add_argument("--where", type=Path, default=WHERE, help="the folder of the environments")
    parser.add_argument("--json", type=Path, help="keep the cells in this file, and go on with what is in it")
    parser.add_argument("--quick", action="store_true", help="one round of short blocks: does it run")
    given = parser.parse_args()
    peers, kinds = given.peers.split(","), given.kinds.split(",")
    if unknown := [each for each in peers if each not in names] + [each for each in kinds if each not in KINDS]:
        parser.error(f"no such peer or kind: {', '.join(unknown)}")
    if given.quick:
        given.rounds, given.seconds = 1, 0.6
    record = Record(given.json, {"rounds": given.rounds, "seconds": given.seconds, "quick": given.quick}, "cells")
    missing = {environment: make(environment, given.where) for environment in {PEERS[peer] for peer in peers}}
    record.data["about"].setdefault("peers' versions", {}).update(
        {
            name: version
            for environment in sorted(missing)
            for name, version in versions(environment, given.where).items()
            if name == environment or (environment, name) == ("pydantic-ai", "pydantic-ai-slim")
        }
    )
    for number, (kind, peer) in enumerate(((kind, peer) for kind in kinds for peer in peers), 1):
        if record.find("cells", kind=kind, peer=peer) is None:
            why = missing[PEERS[peer]]
            found = {"could not": why} if why else cell(peer, kind, given.where, given.rounds, given.seconds)
            print(f"{number:>3}/{len(kinds) * len(peers)} ", end="")
            show(record.add("cells", {"kind": kind, "peer": peer, **found}))


if __name__ == "__main__":
    main()
