"""What fixed workloads cost, counted and not timed: a count that has changed fails, on any machine.

    python benchmarks/guard.py           compare with guard.json; exit code 1 when anything differs that must not
    python benchmarks/guard.py --write   make guard.json anew, after a change that was meant

Theory of operation. The workloads run in virtual time, over scripted servers at the other end of real pipes: all of Playbill
but the processes is the real thing, and each run takes the same steps. Counts are taken from outside, by standing in for a
function (how often is a projection made, a config text read, a file written, a line parsed), by an instrument of trio's
(task steps; those of the scripted servers are left out) and from the interpreter (blocks that are still allocated when the
work is done).

    count                                    must be
    `EXACT`   our own decisions              equal
    `PINNED`  steps and bytes, in which      equal, where the versions are those in guard.json; else as the next
              trio and the SDK have a say
    `LOOSE`   the interpreter's blocks,      at most `SLACK` times as many, and `ROOM` more
              the kernel's calls

System calls are counted by strace, where there is one that may trace, in a host with real processes; those of its main thread
alone. Nothing here is a time.
"""

from __future__ import annotations

import argparse
import contextlib
import gc
import importlib.metadata
import json
import os
import pkgutil
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any
from unittest.mock import patch

import trio
from playbill.actors import Config, Host, ServerEntry, open_host
from playbill.actors.edge.config.file import FileStore
from playbill.actors.testing.faults import FaultPlan
from playbill.actors.testing.scripted import Script, ScriptedServers
from playbill.actors.testing.wires import FaultyWires
from playbill.supervision.testing.determinism import Simulation, run_simulation

COMMITTED = Path(__file__).with_name("guard.json")
TINY = str(Path(__file__).with_name("tiny_server.py"))

SERVERS = 10
TOOLS = 5
SETTLE = 60.0
"""Virtual seconds after the work, which what it set off may take."""

EXACT = ("spawns", "listings", "projections", "snapshots", "config reads", "config bytes", "config writes")
PINNED = ("steps", "tasks kept", "lines parsed", "bytes parsed", "bytes written")
LOOSE = ("blocks kept", "system calls")

SLACK = 1.3
ROOM = {
    "blocks kept": 500,
    "system calls": 30,
    "steps": 20,
    "tasks kept": 5,
    "lines parsed": 5,
    "bytes parsed": 500,
    "bytes written": 500,
}

Counts = dict[str, int]


class Stage:
    """Scripted servers, and a config file that names them.

    Args:
        folder: where the file is made.
    """

    def __init__(self, folder: Path) -> None:
        self.names = [f"s{number}" for number in range(SERVERS)]
        tools = [f"tool_{number}" for number in range(TOOLS)]
        self.scripted = ScriptedServers(**dict.fromkeys(self.names, tools))
        self.wires = FaultyWires(self.scripted, FaultPlan())
        self.path = folder / "mcp.json"
        self.write()

    def write(self, **first: Any) -> None:
        """Save the file, as a person would; ``first`` are further keys of its first server."""
        entries: dict[str, dict[str, Any]] = {name: {"command": name} for name in self.names}
        entries[self.names[0]].update(first)
        self.path.write_text(json.dumps({"mcpServers": entries}, indent=2))


# ── the workloads ────────────────────────────────────────────────────────────────────────────────────────────────────────


async def idle(host: Host, stage: Stage) -> None:
    await trio.sleep(600)


async def toggles(host: Host, stage: Stage) -> None:
    for turn in range(10):
        await host.tool_set_enabled("s3", "tool_1", bool(turn % 2))


async def reloads(host: Host, stage: Stage) -> None:
    stage.write(tools={"exclude": ["tool_2"]})
    async with trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(host.reload)


async def reloads_of_nothing(host: Host, stage: Stage) -> None:
    async with trio.open_nursery() as nursery:
        for _ in range(50):
            nursery.start_soon(host.reload)


async def crash(host: Host, stage: Stage) -> None:
    assert stage.wires.kill("s5", "killed by signal 9")
    async for snapshot in host.changes():
        state = snapshot.model.server("s5")
        if state is not None and state.phase == "ready" and state.restarts == 1:
            return


async def storm(host: Host, stage: Stage) -> None:
    stage.scripted.scripts["s2"].tools = Script(("tool_0", "late")).tools
    for _ in range(2000):
        stage.wires.peers["s2"].announce()
        await trio.sleep(0.001)


async def calls(host: Host, stage: Stage) -> None:
    for number in range(100):
        await host.call_tool("s1", "tool_0", {"n": number}, timeout=60)


async def calls_at_once(host: Host, stage: Stage) -> None:
    async def one(number: int) -> None:
        await host.call_tool(stage.names[number % SERVERS], "tool_0", {"n": number}, timeout=60)

    async with trio.open_nursery() as nursery:
        for number in range(100):
            nursery.start_soon(one, number)


Work = Callable[[Host, Stage], Awaitable[None]]

WORKLOADS: dict[str, Work | None] = {
    f"open {SERVERS} servers of {TOOLS} tools, until all are ready": None,
    "10 idle minutes": idle,
    "10 toggles of a tool": toggles,
    "50 reloads at once, of a file that has changed": reloads,
    "50 reloads at once, of one that has not": reloads_of_nothing,
    "a crash, until it is ready again": crash,
    "2,000 list_changed in 2 s": storm,
    "100 calls, one after the other": calls,
    "100 calls at once, over all servers": calls_at_once,
}
"""The first is the opening itself; each of the others runs in a host that is ready."""


# ── counting ─────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Tally(trio.abc.Instrument):
    """Counts, from when it is begun until it is ended; in the loop that runs then."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._kept = 0
        self._on = False
        self.counts: Counter[str] = Counter()

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        # The coroutine's file, and not the task's name: a nursery's child is named after what it runs.
        if not task.coro.cr_code.co_filename.startswith(_PEERS):
            self.counts["steps"] += 1

    def begin(self) -> None:
        self.counts.clear()
        self.counts.subtract(self._so_far())
        gc.collect()
        self._kept = sys.getallocatedblocks()
        self._on = True
        trio.lowlevel.add_instrument(self)

    def end(self) -> None:
        self._on = False
        trio.lowlevel.remove_instrument(self)
        gc.collect()
        self.counts["blocks kept"] = sys.getallocatedblocks() - self._kept
        self.counts.update(self._so_far())

    def _so_far(self) -> Counts:
        listings = sum(note.what == "listed" for note in self._stage.wires.notes)
        # With those of the played servers, of which each has as many as ever.
        living = trio.lowlevel.current_statistics().tasks_living
        return {"spawns": self._stage.scripted.spawns.total(), "listings": listings, "tasks kept": living}

    @contextlib.contextmanager
    def standing_in(self) -> Iterator[None]:
        """Count each call of some functions, and the length of what they were given or gave."""
        inside = "playbill.actors."
        with contextlib.ExitStack() as stack:
            for name, count, size, result in (
                ("projector.project", "projections", None, False),
                ("edge.config.file.write_atomic", "config writes", None, False),
                ("edge.config.read.Reader.read", "config reads", "config bytes", False),
                ("edge.wire.dispatcher.decode", "lines parsed", "bytes parsed", False),
                ("edge.wire.dispatcher.encode", None, "bytes written", True),
            ):
                module, _, last = (inside + name).rpartition(".")
                owner = pkgutil.resolve_name(module)
                stack.enter_context(patch.object(owner, last, self._counted(getattr(owner, last), count, size, result)))
            yield

    def _counted(self, function: Any, count: str | None, size: str | None, result: bool) -> Any:
        def counted(*args: Any, **named: Any) -> Any:
            answer = function(*args, **named)
            if count is not None and self._on:
                self.counts[count] += 1
            if size is not None and self._on:
                self.counts[size] += len(
                    answer if result else next(each for each in args if isinstance(each, (str, bytes)))
                )
            return answer

        return counted


_PEERS = str(Path(sys.modules[FaultyWires.__module__].__file__ or "").parent)


def count(work: Work | None) -> Counts:
    """Run one workload, and count.

    Args:
        work: what is done in a host that is ready; None counts its opening.

    Returns:
        How often, by what; every name of `EXACT` and `PINNED` is there, and ``blocks kept``.

    Raises:
        AssertionError: the workload did not end as it should.
    """
    with tempfile.TemporaryDirectory() as folder:
        stage = Stage(Path(folder))
        tally = Tally(stage)

        async def main(simulation: Simulation) -> None:
            tally.begin()
            async with open_host(
                store=FileStore(stage.path, fsync=False), connect=stage.wires, rng=simulation.rng
            ) as host:
                readiness = await host.ready(timeout=60)
                assert not readiness.missing, readiness.missing
                version = 0
                if work is not None:
                    await trio.sleep(SETTLE)
                    tally.end()
                    tally.begin()
                    version = host.snapshot().version
                    await work(host, stage)
                await trio.sleep(SETTLE)
                tally.end()
                tally.counts["snapshots"] += host.snapshot().version - version

        with tally.standing_in():
            result = run_simulation(main, seed=1, seconds=3600)
    assert result.verdict == "ok", result.reason
    return {name: tally.counts[name] for name in (*EXACT, *PINNED, "blocks kept")}


def measure() -> dict[str, Counts]:
    """The counts of all workloads, by name."""
    for work in (calls, toggles):  # what is imported, compiled and remembered for good belongs to none of them
        count(work)
    return {name: count(work) for name, work in WORKLOADS.items()}


# ── system calls ─────────────────────────────────────────────────────────────────────────────────────────────────────────

MARK = "/playbill-guard/"
"""The beginning of a path that is looked for to say, in the trace, which part comes now."""

TRACED = ("real processes: 200 calls, one after the other", "real processes: idle for 3 s")


async def traced() -> None:
    """What strace runs: a host with real processes, and marks between the parts."""

    def part(name: str) -> None:
        os.access(MARK + name, os.F_OK)

    async def call(times: int) -> None:
        for _ in range(times):
            await host.call_tool("s1", "echo", {"text": "hello"}, timeout=60)

    entries = tuple(ServerEntry(f"s{each}", command=sys.executable, args=("-I", "-S", TINY)) for each in range(3))
    async with open_host(Config(entries)) as host:
        readiness = await host.ready(timeout=60)
        assert not readiness.missing, readiness.missing
        await call(20)
        calls, none = TRACED
        part(calls)
        await call(200)
        part("settling")
        await trio.sleep(1)
        part(none)
        await trio.sleep(3)
        part("end")


def system_calls() -> dict[str, Counts] | str:
    """The system calls of the host's main thread in each part, by strace; or why they cannot be counted here."""
    strace = shutil.which("strace")
    if strace is None:
        return "there is no strace"
    with tempfile.TemporaryDirectory() as folder:
        trace = Path(folder) / "trace"
        command = [strace, "-qq", "-o", str(trace), sys.executable, __file__, "--traced"]
        ran = subprocess.run(command, capture_output=True, text=True, check=False)
        if ran.returncode:
            return f"strace cannot trace here: {(ran.stderr.strip().splitlines() or ['?'])[-1]}"
        found: dict[str, Counts] = {}
        part = ""
        for line in trace.read_text(errors="replace").splitlines():
            if MARK in line:
                part = line.partition(MARK)[2].partition('"')[0]
            elif part in TRACED and not line.startswith(("---", "+++")):
                counts = found.setdefault(part, {"system calls": 0})
                counts["system calls"] += 1
    return {part: found.get(part, {"system calls": 0}) for part in TRACED}


# ── comparing ────────────────────────────────────────────────────────────────────────────────────────────────────────────


def versions() -> dict[str, str]:
    """What has a say in the counts that are pinned."""
    names = ("playbill", "trio", "mcp", "pydantic-core")
    return {
        "python": f"{sys.version_info.major}.{sys.version_info.minor}",
        **{name: importlib.metadata.version(name) for name in names},
    }


def differences(found: dict[str, Counts], committed: dict[str, Any], now: dict[str, str] | None = None) -> list[str]:
    """What is not as committed, one line each; empty when all is well.

    Args:
        found: the counts of some workloads, by name.
        committed: as in guard.json.
        now: the versions that were used; None: the ones here.
    """
    same = committed["made with"] == (versions() if now is None else now)
    wrong = []
    for workload, counts in found.items():
        expected = committed["counts"].get(workload)
        if expected is None:
            wrong.append(f"{workload}: not in {COMMITTED.name}: run with --write")
            continue
        for name, number in counts.items():
            was = expected.get(name)
            if was is None:
                wrong.append(f"{workload}: {name} is not in {COMMITTED.name}: run with --write")
            elif name in EXACT or (name in PINNED and same):
                if number != was:
                    wrong.append(f"{workload}: {name} {number}, committed {was}")
            elif number > was * SLACK + ROOM[name]:
                wrong.append(
                    f"{workload}: {name} {number}, more than {SLACK:g} × the committed {was}, and {ROOM[name]}"
                )
    return wrong


def table(found: dict[str, Counts]) -> str:
    """The counts as lines of text."""
    lines = []
    for workload, counts in found.items():
        lines.append(workload)
        lines.append("    " + " · ".join(f"{name} {number:,}" for name, number in counts.items() if number))
    return "\n".join(lines)


def main() -> None:
    """Count, and compare or write."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--write", action="store_true", help="make guard.json anew")
    parser.add_argument("--traced", action="store_true", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.traced:
        trio.run(traced)
        return
    found = measure()
    kernel = system_calls()
    if isinstance(kernel, str):
        print(f"system calls are not counted: {kernel}")
        if given.write:
            sys.exit("guard.json was not written: it needs them")
    else:
        found |= kernel
    print(table(found))
    if given.write:
        COMMITTED.write_text(json.dumps({"made with": versions(), "counts": found}, indent=1) + "\n")
        return
    wrong = differences(found, json.loads(COMMITTED.read_text()))
    if wrong:
        print("\n" + "\n".join(f"WRONG {each}" for each in wrong))
        sys.exit("if this was meant: python benchmarks/guard.py --write, and say why in the commit")
    print("\nall counts are as committed")


if __name__ == "__main__":
    main()
