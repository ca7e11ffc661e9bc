"""Many crashes, one host: what is left of them afterwards.

    python benchmarks/soak.py [--seconds 300] [--servers 20] [--crashing 10] [--seed 1]

Half of the servers are killed with SIGKILL again and again, at random moments, while every server is called all the time.
Printed: how many crashes there were, how every call ended, and, at the start, at regular moments and after closing, the host's
open files, children, zombies, tasks and resident memory. Exit code 1 when anything is left, or a call has not ended.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
from collections import Counter
from pathlib import Path

import trio
from playbill.actors import Config, Host, PlaybillError, ServerEntry, open_host
from playbill.supervision import Backoff, Intensity

TINY = str(Path(__file__).with_name("tiny_server.py"))
SAMPLES = 6


def children() -> tuple[int, int]:
    """How many children we have, and how many of them are zombies."""
    count = zombies = 0
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if int(parent) == os.getpid():
            count += 1
            zombies += state == "Z"
    return count, zombies


def measure() -> dict[str, int]:
    """What this process holds now."""
    count, zombies = children()
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "files": len(list(Path("/proc/self/fd").iterdir())) - 1,  # the listing itself is one
        "children": count,
        "zombies": zombies,
        "tasks": trio.lowlevel.current_statistics().tasks_living,
        "MB": pages * os.sysconf("SC_PAGE_SIZE") // 2**20,
    }


def show(when: str, seen: dict[str, int], crashes: int) -> None:
    """Print one row."""
    print(
        f"{when:>12}  crashes {crashes:>6}  " + "  ".join(f"{key} {value:>5}" for key, value in seen.items()),
        flush=True,
    )


async def keep_calling(host: Host, server: str, ends: Counter[str]) -> None:
    """Call one server without end; every call is counted by how it ends."""
    while True:
        ends["begun"] += 1
        try:
            await host.call_tool(server, "echo", {"text": "x"}, timeout=20)
            ends["answered"] += 1
        except PlaybillError as error:
            ends[type(error).__name__] += 1
            await trio.sleep(0.02)
        await trio.sleep(0.01)


async def keep_killing(host: Host, server: str, rng: random.Random, crashes: Counter[str]) -> None:
    """Kill one server whenever it runs, a random moment after it began to."""
    killed = None
    while True:
        await trio.sleep(rng.uniform(0.0, 0.4))
        state = host.snapshot().model.server(server)
        if state is not None and state.pid is not None and state.pid != killed:
            killed = state.pid
            try:
                os.kill(killed, signal.SIGKILL)
            except ProcessLookupError:
                continue
            crashes[server] += 1


async def soak(seconds: float, servers: int, crashing: int, seed: int) -> int:
    """Run it; returns the exit code."""
    rng = random.Random(seed)
    names = [f"s{number}" for number in range(servers)]
    config = Config(tuple(ServerEntry(name, command=sys.executable, args=("-I", "-S", TINY)) for name in names))
    crashes: Counter[str] = Counter()
    ends: Counter[str] = Counter()
    before = measure()
    show("before", before, 0)
    backoff = Backoff(base=0.01, max=0.05, reset_after=1.0)
    async with open_host(
        config, backoff=backoff, intensity=Intensity(restarts=10**9, then="park"), budget=1000
    ) as host:
        await host.ready(timeout=60)
        healthy = {name: host.snapshot().model.server(name).generation for name in names[crashing:]}  # type: ignore[union-attr]
        async with trio.open_nursery() as nursery:
            for name in names:
                nursery.start_soon(keep_calling, host, name, ends)
            for name in names[:crashing]:
                nursery.start_soon(keep_killing, host, name, rng, crashes)
            for sample in range(SAMPLES):
                show(f"{sample * seconds / SAMPLES:.0f} s", measure(), crashes.total())
                await trio.sleep(seconds / SAMPLES)
            show(f"{seconds:.0f} s", measure(), crashes.total())
            nursery.cancel_scope.cancel()
        touched = [name for name, old in healthy.items() if host.snapshot().model.server(name).generation != old]  # type: ignore[union-attr]
    after = measure()
    show("closed", after, crashes.total())
    open_calls = ends["begun"] - sum(count for how, count in ends.items() if how != "begun")
    print("calls:", dict(ends), "| cut short by the end of this run:", open_calls)
    left = {key: after[key] - before[key] for key in ("children", "zombies", "tasks")}
    left["files"] = max(0, after["files"] - before["files"] - 2)  # what the first host of a process opens for good
    print("left:", left, "| healthy servers that were restarted:", touched)
    return 1 if any(left.values()) or touched or open_calls > servers else 0


def main() -> None:
    """Read the arguments and run."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--servers", type=int, default=20)
    parser.add_argument("--crashing", type=int, default=10)
    parser.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    sys.exit(trio.run(soak, given.seconds, given.servers, given.crashing, given.seed))


if __name__ == "__main__":
    main()
