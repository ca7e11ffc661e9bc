"""What processes use: CPU below this one, its memory; and processes that burn CPU on purpose. Linux only."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Collection
from pathlib import Path

TICK = 1.0 / os.sysconf("SC_CLK_TCK")

BURNER = """
import os, sys, time
share, piece, begun = float(sys.argv[1]), float(sys.argv[2]), time.monotonic() - float(sys.argv[3])
program = sys.argv[4:]
while True:
    behind = share * (time.monotonic() - begun) - sum(os.times()[:4])
    if behind < piece:
        time.sleep(max(0.001, (piece - behind) / share))
        continue
    if program:
        os.waitpid(os.posix_spawn(program[0], [*program, str(piece)], os.environ, setsid=True), 0)
    else:
        end = time.process_time() + piece
        while time.process_time() < end: pass
"""
"""It burns in pieces, and makes good what it was kept from by others. With a program, each piece is a new process of that."""

FRESH = "import json, sys, time\nwhile time.process_time() < float(sys.argv[1]): pass"


def cpu_below(apart: Collection[int] = ()) -> tuple[float, float]:
    """CPU seconds of all processes below this one so far, with those that ended and were reaped by one that lives, or by this.

    Args:
        apart: some that are counted by themselves.

    Returns:
        Of the others, and of these with all below them.
    """
    fields: dict[int, list[str]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields[int(folder.name)] = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
    own = fields[os.getpid()]
    # Whoever has no reapers reaps its servers itself.
    found, total, aside = {os.getpid()}, sum(int(ticks) for ticks in own[13:15]), 0
    aparts = {*apart}
    while new := {pid for pid, each in fields.items() if int(each[1]) in found} - found:
        aparts |= {pid for pid in new if int(fields[pid][1]) in aparts}
        total += sum(int(ticks) for pid in new - aparts for ticks in fields[pid][11:15])
        aside += sum(int(ticks) for pid in new & aparts for ticks in fields[pid][11:15])
        found |= new
    return total * TICK, aside * TICK


def memory() -> float:
    """Resident MB of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


class Burners:
    """Neutral processes that burn CPU.

    Args:
        cores: how much, in cores; next to none starts no process.
        processes: how many share it, if they can: as many as the servers whose place they take. Each is in a session
            of its own, as servers are: the kernel may share out CPU time by session.
        piece: seconds of CPU that one of them burns at a time: a program that starts takes as much without a pause.
        fresh: each piece is burned by a new process, as it is by servers that are started again: to start one costs
            the others on the machine more than as much CPU in a loop does.

    Attributes:
        pids: their ids.
    """

    def __init__(self, cores: float, processes: int = 1, piece: float = 0.002, *, fresh: bool = False) -> None:
        count = 0 if cores < 0.005 else max(processes, int(cores) + 1)
        python = [sys.executable, "-I", "-S", "-c"]
        command, program = [*python, BURNER], [*python, FRESH] if fresh else []
        piece = min(max(piece, 0.001), 0.1)
        # Not all at the same time: each begins with another part of its first pause behind it.
        self._processes = [
            subprocess.Popen(
                [*command, str(cores / count), str(piece), str(piece * count / cores * number / count), *program],
                start_new_session=True,
            )
            for number in range(count)
        ]
        self.pids = [process.pid for process in self._processes]

    def end(self) -> None:
        """End them and reap them."""
        for process in self._processes:
            process.kill()
            process.wait()
