"""Many crashes, one host: what is left of them, while it runs and afterwards.

    python benchmarks/soak.py [--seconds 300] [--servers 20] [--crashing 10] [--seed 1]

Half of the servers are killed with SIGKILL again and again, at random moments, while every server is called all the time. Every
other one of those has started a process that left its session, ignores what asks it to end, and has to be found and killed.

Counted are the host (open files, tasks, resident memory) and all processes below it, at any depth:

    watchers    what the host has started itself
    reapers     the parents of the servers
    servers     they themselves
    started     what servers have started
    zombies     of any of these kinds
    escaped     those that were ever seen below the host, or carry its mark in their environment, and are not below it any more
    held        open files of watchers and reapers, so that a leak there is seen as well

Files, tasks and processes are compared twice: when all servers are ready, before the first crash and after the last, so that
what the closing would sweep up is not overlooked; and before the host was opened and after it was closed, when no process may
be left. Exit code 1 when anything is left or too much, a call has not ended, a healthy server was restarted, or memory grew by
more than `GROWTH` after the first sixth of the time. Linux only.
"""

from __future__ import annotations

import argparse
import os
import random
import signal
import sys
import uuid
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import trio
from playbill.actors import Config, Host, PlaybillError, ServerEntry, open_host
from playbill.supervision import Backoff, Intensity

TINY = str(Path(__file__).with_name("tiny_server.py"))
SAMPLES = 6
GROWTH = 16
"""MB of memory more than after the first sixth of the time."""

CALL = 20.0
"""Seconds that a call may take."""

SETTLE = 30.0
"""Seconds in which all is again as it should be, once nothing crashes any more."""

MARK = f"PLAYBILL_SOAK={uuid.uuid4().hex}"

COMPANY = """
import os, signal, sys
if os.fork() == 0:
    os.setsid()
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    os.execv("/bin/sleep", ["sleep", "3600"])
exec(compile(open(sys.argv[1]).read(), sys.argv[1], "exec"))
"""
"""A server that first starts a process in a session of its own, which holds its stdout."""


class Process(NamedTuple):
    """One line of /proc: the start tells it from a later one with the same id."""

    pid: int
    parent: int
    start: str
    state: str


def everything() -> dict[int, Process]:
    """All processes there are."""
    found = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text().rpartition(")")[2].split()
        except OSError:
            continue
        found[int(folder.name)] = Process(int(folder.name), int(fields[1]), fields[19], fields[0])
    return found


def of(pid: int, what: str) -> bytes:
    """A file of /proc/<pid>; empty for a zombie, and for one that is gone."""
    try:
        return Path(f"/proc/{pid}/{what}").read_bytes()
    except OSError:
        return b""


def files_of(pid: int) -> int:
    """How many files a process has open."""
    try:
        return len(list(Path(f"/proc/{pid}/fd").iterdir()))
    except OSError:
        return 0


class Census:
    """Counts what is below this process, and knows again what was."""

    def __init__(self) -> None:
        self.seen: set[tuple[int, str]] = set()
        self.escaped: list[Process] = []

    def note(self, pid: int) -> None:
        """One that must not be missed, though nobody may count before it is gone."""
        fields = of(pid, "stat").decode().rpartition(")")[2].split()
        if fields:
            self.seen.add((pid, fields[19]))

    def count(self) -> dict[str, int]:
        """Everything, as in the text at the top of this file."""
        processes = everything()
        children: dict[int, list[int]] = {}
        for each in processes.values():
            children.setdefault(each.parent, []).append(each.pid)
        found = dict.fromkeys(("watchers", "reapers", "servers", "started", "zombies", "escaped", "held"), 0)
        below: set[int] = set()
        new = [os.getpid()]
        while new:
            parents, new = new, [child for pid in new for child in children.get(pid, ()) if child not in below]
            below.update(new)
            for pid in new:
                kind = "zombies" if processes[pid].state == "Z" else _kind(pid, first=os.getpid() in parents)
                found[kind] += 1
                if kind in ("watchers", "reapers"):
                    found["held"] += files_of(pid)
        self.seen.update((pid, processes[pid].start) for pid in below)
        self.escaped = [
            each
            for each in processes.values()
            if each.pid not in below
            and ((each.pid, each.start) in self.seen or MARK.encode() in of(each.pid, "environ").split(b"\0"))
        ]
        found["escaped"] = len(self.escaped)
        return found

    def tidy(self) -> None:
        """Kill what escaped: a benchmark leaves nothing, whatever it has found."""
        for each in self.escaped:
            if (now := everything().get(each.pid)) is not None and now.start == each.start:
                os.kill(each.pid, signal.SIGKILL)


def _kind(pid: int, *, first: bool) -> str:
    command = of(pid, "cmdline")
    if b"watcher.py" in command:
        return "watchers" if first else "reapers"
    return "servers" if os.fsencode(TINY) in command else "started"


BELOW = ("watchers", "reapers", "servers", "started", "zombies", "escaped")
COLUMNS = ("files", "tasks", "MB", *BELOW, "held")


def measure(census: Census) -> dict[str, int]:
    """What this process holds now, and what is below it."""
    pages = int(Path("/proc/self/statm").read_text().split()[1])
    return {
        "files": files_of(os.getpid()) - 1,  # the listing itself is one
        "tasks": trio.lowlevel.current_statistics().tasks_living,
        "MB": pages * os.sysconf("SC_PAGE_SIZE") // 2**20,
        **census.count(),
    }


def show(when: str, seen: dict[str, int], crashes: int) -> None:
    """Print one row."""
    print(f"{when:>12} {crashes:>8}" + "".join(f"{seen[key]:>10}" for key in COLUMNS), flush=True)


async def settled(census: Census, good: Callable[[dict[str, int]], bool]) -> dict[str, int]:
    """The first measure that is good, or the last within `SETTLE` seconds."""
    seen = measure(census)
    with trio.move_on_after(SETTLE):
        while not good(seen):
            await trio.sleep(0.1)
            seen = measure(census)
    return seen


async def keep_calling(host: Host, server: str, ends: Counter[str], longest: list[float], over: trio.Event) -> None:
    """Call one server until it is over; every call is counted by how it ends."""
    while not over.is_set():
        began = trio.current_time()
        ends["begun"] += 1
        try:
            await host.call_tool(server, "echo", {"text": "x"}, timeout=CALL)
            end = "answered"
        except PlaybillError as error:
            end = type(error).__name__
        ends[end] += 1
        longest[0] = max(longest[0], trio.current_time() - began)
        await trio.sleep(0.01 if end == "answered" else 0.03)


async def keep_killing(
    host: Host, server: str, rng: random.Random, crashes: Counter[str], census: Census, over: trio.Event
) -> None:
    """Kill one server whenever it runs, a random moment after it began to."""
    killed = None
    while not over.is_set():
        await trio.sleep(rng.uniform(0.0, 0.2))
        state = host.snapshot().model.server(server)
        if state is not None and state.pid is not None and state.pid != killed:
            killed = state.pid
            crashes[server] += kill(killed, census)


def kill(pid: int, census: Census) -> bool:
    """Kill a server; not whoever has its id when it is gone by itself."""
    try:
        pidfd = os.pidfd_open(pid)
    except OSError:
        return False
    try:
        if MARK.encode() not in of(pid, "environ"):
            return False
        census.note(pid)
        signal.pidfd_send_signal(pidfd, signal.SIGKILL)
    except OSError:
        return False
    finally:
        os.close(pidfd)
    return True


def entry(name: str, *, company: bool) -> ServerEntry:
    """A tiny server, with or without a process beside it."""
    how = ("-c", COMPANY, TINY) if company else (TINY,)
    key, _, value = MARK.partition("=")
    return ServerEntry(name, command=sys.executable, args=("-I", "-S", *how), env={key: value})


def generations(host: Host, names: list[str]) -> dict[str, int | None]:
    """Which incarnation of each server there is."""
    return {server.name: server.generation for server in host.snapshot().model.servers if server.name in names}


async def soak(seconds: float, servers: int, crashing: int, seed: int) -> int:
    """Run it; returns the exit code."""
    rng = random.Random(seed)
    census = Census()
    names = [f"s{number}" for number in range(servers)]
    accompanied = names[:crashing:2]
    config = Config(tuple(entry(name, company=name in accompanied) for name in names))
    expected = {"watchers": 1, "reapers": servers, "servers": servers, "started": len(accompanied)}
    expected |= {"zombies": 0, "escaped": 0}
    crashes: Counter[str] = Counter()
    ends: Counter[str] = Counter()
    longest = [0.0]
    wrong: list[str] = []

    def differs(when: str, seen: dict[str, int], wanted: dict[str, int]) -> None:
        wrong.extend(f"{when}: {key} {seen[key]}, not {wanted[key]}" for key in wanted if seen[key] != wanted[key])

    async with open_host(Config((entry("warm", company=True),))) as host:
        await host.ready(timeout=60)  # what the first host of a process opens and imports for good is no leak
    print(f"{'':>12} {'crashes':>8}" + "".join(f"{key:>10}" for key in COLUMNS))
    none = dict.fromkeys(BELOW, 0)
    before = await settled(census, lambda seen: none.items() <= seen.items())
    show("before", before, 0)
    backoff = Backoff(base=0.01, max=0.05, reset_after=1.0)
    async with open_host(
        config, backoff=backoff, intensity=Intensity(restarts=10**9, then="park"), budget=1000
    ) as host:
        readiness = await host.ready(timeout=60)
        wrong += [f"not ready: {name}: {reason}" for name, reason in readiness.missing.items()]
        healthy = generations(host, names[crashing:])
        first = await settled(census, lambda seen: expected.items() <= seen.items())
        show("all ready", first, 0)
        differs("before the first crash", first, expected)
        early = 0
        async with trio.open_nursery() as nursery:
            over, killed = trio.Event(), trio.Event()
            for name in names:
                nursery.start_soon(keep_calling, host, name, ends, longest, over)
            for name in names[:crashing]:
                nursery.start_soon(keep_killing, host, name, rng, crashes, census, killed)
            for sample in range(1, SAMPLES + 1):
                await trio.sleep(seconds / SAMPLES)
                seen = measure(census)
                early = early or seen["MB"]
                show(f"{sample * seconds / SAMPLES:.0f} s", seen, crashes.total())
            killed.set()
            over.set()
            nursery.cancel_scope.deadline = trio.current_time() + CALL + 10
        touched = [name for name, old in generations(host, names[crashing:]).items() if healthy[name] != old]
        await host.ready(timeout=60)
        wanted = {**expected, **{key: first[key] for key in ("files", "tasks", "held")}}
        last = await settled(census, lambda seen: wanted.items() <= seen.items())
        show("all ready", last, crashes.total())
        differs("after the last crash", last, wanted)
    wanted = {**none, **{key: before[key] for key in ("files", "tasks")}}
    after = await settled(census, lambda seen: wanted.items() <= seen.items())
    show("closed", after, crashes.total())
    differs("after closing", after, wanted)
    census.tidy()
    pending = 2 * ends["begun"] - ends.total()
    print(f"calls: {dict(ends)} | never ended: {pending} | the longest: {longest[0]:.1f} s, of {CALL:g} s allowed")
    print(f"memory: {early} MB after a sixth of the time, {last['MB']} MB after the last crash")
    wrong += [f"calls that never ended: {pending}"] * bool(pending)
    wrong += [f"healthy servers that were restarted: {touched}"] * bool(touched)
    wrong += [f"memory grew by {last['MB'] - early} MB, more than {GROWTH} MB"] * (last["MB"] - early > GROWTH)
    print("\n".join(f"WRONG {each}" for each in wrong) if wrong else "nothing is left, and nothing was too much")
    return 1 if wrong else 0


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
