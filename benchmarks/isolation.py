"""What servers that misbehave cost the others: the same load on healthy servers, in three arms that take turns in one run.

    python benchmarks/isolation.py [--servers 10,40] [--shares 0.1,0.25,0.5] [--rounds 5] [--seconds 2] [--json FILE]
    python benchmarks/isolation.py --quick      # seconds instead of half an hour: does it run

With ``--json`` each cell is written as it is done, and a run with the same settings goes on with what is there.

Theory of operation
    One host with N servers, of which the last half is healthy and is called; K of the others can misbehave. A round has a block
    of each arm, in another order each time (`load.ORDERS`):

    calm      nobody misbehaves (half as long: it is not what the others are compared with)
    faulty    K servers do, all the time, in one way (`KINDS`)
    busy      nobody misbehaves, and K processes that have nothing to do with us burn as much CPU as the K servers, and all that
              was started for them, did in the faulty block before, in as large pieces: so that two busy cores are not blamed on
              isolation. Where servers were started again, each piece is burned by a new process: on a machine with two
              cores a start costs whatever else runs there more than as much CPU in a loop does

    In each block the load is the same, and fixed: `SEQUENTIAL` calls a second from one caller, then 16 callers with
    `CONCURRENT` a second together, for half of the block each. A call's time runs from when it was due, so that a host that
    stops for a while pays for every call that waited. Before the next block begins all servers are ready again.

    What is imported is frozen first (`gc.freeze`), as docs/embedding.md says for programs that must not stop: a full collection
    of the garbage collector else stops the program for some 0.1 s, whoever makes the garbage.

    Printed for each arm: percentiles in ms, errors, CPU of the host and of all below it in % of a core, the host's memory, and
    how long a server that misbehaved was not callable, since the fault or, for one that hung, since it hangs no more; and p99
    of faulty over that of busy, the median of all rounds (aim: at most 1.1, and no errors), beside it the same of all rounds
    together. K = 0 shows what the arms differ by when nothing does. The exact form is `isolation_exact.py`.
"""

from __future__ import annotations

import argparse
import gc
import json
import os
import signal
import sys
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from time import perf_counter, process_time
from typing import Any

import trio
from load import AT_ONCE, SHORT, Load, orders, over, run_load
from playbill.actors import Config, Host, PlaybillError, ServerEntry, open_host
from playbill.actors.edge.wire.sdk import import_sdk
from playbill.supervision import Backoff, Intensity
from record import Record
from usage import Burners, cpu_below, memory

HERE = Path(__file__).parent
TINY = str(HERE / "tiny_server.py")
FAULTY = str(HERE.parent / "tests" / "faulty" / "server.py")

SEQUENTIAL, CONCURRENT = 200, 400
CALL = 20.0
CHUNK = 256 * 1024
"""Bytes of a flood at a time; one of them each `PAUSE` seconds."""

PAUSE = 0.05
STORM = 1000
"""Announcements a second of each server that storms."""

HANGS = """
import os, sys, time
if os.path.exists(sys.argv.pop(1)):
    time.sleep(3600)
del sys.argv[0]
exec(compile(open(sys.argv[0]).read(), sys.argv[0], "exec"))
"""
"""A server that says nothing from its start on while a file is there."""


class Scene:
    """One host, its servers, and who provokes the bad ones.

    Args:
        host: open.
        bad, healthy: names of servers.
        switch: the file that makes new servers hang while it is there.
    """

    def __init__(self, host: Host, bad: list[str], healthy: list[str], switch: Path) -> None:
        self.host = host
        self.bad = bad
        self.healthy = healthy
        self.switch = switch
        self.faults = 0
        self.since: dict[str, float] = {}
        self.back: list[float] = []

    def struck(self, server: str) -> None:
        """One more fault; until when it is not callable is told from now on."""
        self.faults += 1
        self.since[server] = trio.current_time()

    async def do(self, server: str, deed: str, **options: Any) -> None:
        """Have a server do something; that it does not answer is no error of ours."""
        try:
            await self.host.call_tool(server, "do", {"do": deed, **options}, timeout=CALL)
        except PlaybillError:
            return

    async def callable_again(self, server: str) -> None:
        """Wait until a server answers; how long that took, since the fault or since now, is noted."""
        begun = self.since.get(server, trio.current_time())
        while True:
            try:
                await self.host.call_tool(server, "echo", {}, timeout=CALL)
            except PlaybillError:
                # Not asked again and again: what that costs is none of what is measured.
                await self.host.ready(require=[server], timeout=CALL)
                await trio.sleep(0.005)
            else:
                self.back.append(trio.current_time() - begun)
                self.since.pop(server, None)
                return

    def kill(self, server: str) -> None:
        """Kill a server's process, if there is one now."""
        state = self.host.snapshot().model.server(server)
        if state is None or state.pid is None:
            return
        try:
            pidfd = os.pidfd_open(state.pid)
        except OSError:
            return
        try:
            if state.pid == getattr(self.host.snapshot().model.server(server), "pid", None):
                signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        except OSError:
            return
        finally:
            os.close(pidfd)


# ── what goes wrong, again and again, until it is cancelled ──────────────────────────────────────────────────────────────


async def exits(scene: Scene, server: str) -> None:
    await scene.do(server, "leave", code=1)
    scene.struck(server)
    await scene.callable_again(server)


async def killed(scene: Scene, server: str) -> None:
    await trio.sleep(PAUSE)
    scene.kill(server)
    scene.struck(server)
    await trio.sleep(PAUSE)
    await scene.callable_again(server)


async def hangs(scene: Scene, server: str) -> None:
    scene.switch.touch()
    scene.kill(server)
    scene.faults += 1
    await trio.sleep(CALL)  # each start of it hangs until its connectTimeout


async def floods_stdout(scene: Scene, server: str) -> None:
    await scene.do(server, "put", text="no message at all, and there are many of them\n", times=CHUNK // 46)
    scene.faults += 1
    await trio.sleep(PAUSE)


async def floods_stderr(scene: Scene, server: str) -> None:
    await scene.do(server, "say", text="e" * CHUNK)
    scene.faults += 1
    await trio.sleep(PAUSE)


async def storms(scene: Scene, server: str) -> None:
    await scene.do(server, "storm", count=STORM // 2, seconds=0.5)
    scene.faults += 1
    await trio.sleep(0.5)


async def refuses(scene: Scene, server: str) -> None:
    await scene.do(server, "ignore")
    scene.struck(server)
    await scene.host.restart(server)
    await scene.callable_again(server)


Fault = Callable[[Scene, str], Awaitable[None]]

KINDS: dict[str, tuple[str, Fault]] = {
    "exit": ("exits in a call", exits),
    "kill": ("kill -9 while idle", killed),
    "hang": ("hangs in the handshake", hangs),
    "stdout": (f"floods stdout: {CHUNK / PAUSE / 2**20:.0f} MB/s at most", floods_stdout),
    "stderr": (f"floods stderr: {CHUNK / PAUSE / 2**20:.0f} MB/s at most", floods_stderr),
    "storm": (f"{STORM:,} list_changed a second", storms),
    "stubborn": ("refuses to die, and is restarted", refuses),
}

STARTED = {"exit", "kill", "hang", "stubborn"}
"""What makes new processes, so that the neutral ones burn in new processes too."""


# ── arms ─────────────────────────────────────────────────────────────────────────────────────────────────────────────────


class Arm:
    """What was seen in all blocks of one arm."""

    def __init__(self) -> None:
        self.loads = {"sequential": Load(), f"{AT_ONCE} at once": Load()}
        self.wall = self.host_cpu = self.below_cpu = self.burned = 0.0
        self.memory = 0.0
        self.faults = 0
        self.back: list[float] = []

    def figures(self) -> dict[str, Any]:
        """As JSON."""
        back = sorted(self.back)
        return {
            "loads": {name: load.figures() for name, load in self.loads.items()},
            "host CPU %": round(100 * self.host_cpu / self.wall, 1),
            "CPU below %": round(100 * self.below_cpu / self.wall, 1),
            "burned %": round(100 * self.burned / self.wall, 1),
            "host MB": round(self.memory, 1),
            "faults": self.faults,
            "back": {"median ms": round(median(back) * 1e3, 1), "max ms": round(back[-1] * 1e3, 1)} if back else None,
        }


async def block(
    scene: Scene, arm: Arm, seconds: float, fault: Fault | None, burn: float, piece: float = 0.0, *, fresh: bool = False
) -> tuple[float, float]:
    """One block of an arm; returns the CPU seconds a second of all below the host, and how many faults a second."""
    scene.faults, scene.since, scene.back = 0, {}, []

    async def keep_on(server: str, after: float) -> None:
        assert fault is not None
        await trio.sleep(after)
        while True:
            await fault(scene, server)
            await trio.lowlevel.checkpoint()

    async def call(server: str) -> None:
        await scene.host.call_tool(server, "echo", {"text": "x"}, timeout=CALL)

    burners = Burners(burn, len(scene.bad), piece, fresh=fresh)
    try:
        async with trio.open_nursery() as nursery:
            if fault is not None:
                for at, server in enumerate(
                    scene.bad
                ):  # not all at the same instant: they have nothing to do with one another
                    nursery.start_soon(keep_on, server, 0.3 * at / len(scene.bad))
            # Not from the first instant: what begins is not what goes on.
            await trio.sleep(min(0.3, seconds / 4))
            begun, own, (below, burned) = perf_counter(), process_time(), cpu_below(burners.pids)
            before = scene.faults
            for load, callers, rate in zip(arm.loads.values(), (1, AT_ONCE), (SEQUENTIAL, CONCURRENT), strict=True):
                await run_load(call, scene.healthy, load, callers, rate, seconds / 2)
            wall, now = perf_counter() - begun, cpu_below(burners.pids)
            arm.host_cpu += process_time() - own
            faults = scene.faults - before
            nursery.cancel_scope.cancel()
    finally:
        burners.end()
    used = now[0] - below
    arm.wall += wall
    arm.below_cpu += used
    arm.burned += now[1] - burned
    arm.memory = max(arm.memory, memory())
    arm.faults += scene.faults
    scene.switch.unlink(missing_ok=True)
    async with trio.open_nursery() as nursery:
        for server in scene.bad:
            nursery.start_soon(scene.callable_again, server)
    arm.back += scene.back
    return used / wall, faults / wall


def entry(name: str, bad: bool, kind: str, switch: Path) -> ServerEntry:
    """A tiny server, or one that can misbehave."""
    python = (sys.executable, "-I", "-S")
    if not bad:
        return ServerEntry(name, command=python[0], args=(*python[1:], TINY))
    how = ("-c", HANGS, str(switch), FAULTY) if kind == "hang" else (FAULTY,)
    moments = {"eof": [{"do": "hang"}]} if kind == "stubborn" else {}
    return ServerEntry(
        name,
        command=python[0],
        args=(*python[1:], *how, json.dumps(moments)),
        connect_timeout=1.0 if kind == "hang" else None,
    )


async def cell(kind: str, servers: int, bad: int, rounds: int, seconds: float) -> dict[str, Any]:
    """Measure one kind of fault, for one N and K.

    Args:
        kind: a key of `KINDS`, or ``nobody``.
        servers, bad: N and K.
        rounds: how often each arm has its turn.
        seconds: of one block.
    """
    names = [f"s{number}" for number in range(servers)]
    fault = KINDS[kind][1] if bad else None
    arms = {"calm": Arm(), "faulty": Arm(), "busy": Arm()}
    with tempfile.TemporaryDirectory() as folder:
        switch = Path(folder) / "hang"
        config = Config(tuple(entry(name, at < bad, kind, switch) for at, name in enumerate(names)))
        # A host's own first pause before a restart, and it never grows: as if each death were the first.
        backoff = Backoff(base=Backoff().base, max=Backoff().base, reset_after=1.0)
        patient = Intensity(restarts=10**9, then="park")
        async with open_host(config, backoff=backoff, intensity=patient, budget=1000) as host:
            readiness = await host.ready(timeout=120)
            assert not readiness.missing, readiness.missing
            scene = Scene(host, names[:bad], names[servers // 2 :], switch)
            calm, _ = await block(scene, Arm(), seconds / 2, None, 0.0)
            used, rate = await block(scene, Arm(), seconds / 2, fault, 0.0)
            burn = used - calm
            for order in orders(rounds):
                for name in order:
                    busy = max(0.0, burn) if name == "busy" and bad else 0.0
                    long = seconds * (SHORT if name == "calm" else 1.0)
                    piece = burn / rate if rate else 0.0
                    wrong = fault if name == "faulty" else None
                    used, seen = await block(scene, arms[name], long, wrong, busy, piece, fresh=kind in STARTED)
                    if name == "calm":
                        calm = used
                    elif name == "faulty":
                        burn, rate = used - calm, seen
    ratios = {load: over(arms["faulty"].loads[load], arms["busy"].loads[load]) for load in arms["calm"].loads}
    figures = {name: arm.figures() for name, arm in arms.items()}
    return {"kind": kind, "servers": servers, "bad": bad, "arms": figures, "p99 over busy": ratios}


COLUMNS = ("p50", "p99", "p99.9", "max", "errors", "calls")
SHARED = ("host CPU %", "CPU below %", "burned %", "host MB")


def show(found: dict[str, Any]) -> None:
    """Print one cell."""
    words = KINDS[found["kind"]][0] if found["kind"] in KINDS else "nobody misbehaves"
    print(f"\n{found['bad']} of {found['servers']} servers: {words}")
    print(f"{'':>20}" + "".join(f"{name:>9}" for name in COLUMNS) + "".join(f"{name:>13}" for name in SHARED))
    for name, arm in found["arms"].items():
        for load, each in arm["loads"].items():
            row = "".join(f"{each[key] or 0:>9.2f}" for key in COLUMNS[:4]) + "".join(
                f"{each[key]:>9}" for key in COLUMNS[4:]
            )
            print(f"{name + ', ' + load:>20}" + row + "".join(f"{arm[key]:>13}" for key in SHARED))
    ratios = (f"{load} {each['median']} ({each['pooled']})" for load, each in found["p99 over busy"].items())
    print("p99 of faulty over busy, median of the rounds (of all together): " + ", ".join(ratios), flush=True)
    faulty = found["arms"]["faulty"]
    if back := faulty["back"]:
        words = f"callable again after {back['median ms']:.0f} ms, {back['max ms']:.0f} at most"
        print(f"{faulty['faults']} faults; {words}", flush=True)


async def measure(given: argparse.Namespace, record: Record) -> None:
    """All cells that are not there yet."""
    plan: list[tuple[str, int, int]] = []
    for servers in [int(each) for each in given.servers.split(",")]:
        plan.append(("nobody", servers, 0))
        for share in [float(each) for each in given.shares.split(",") if float(each)]:
            bad = min(max(1, round(servers * share)), servers // 2)
            plan += [(kind, servers, bad) for kind in given.kinds.split(",")]
    begun, done = perf_counter(), 0
    for number, (kind, servers, bad) in enumerate(plan, 1):
        if record.find("cells", kind=kind, servers=servers, bad=bad) is None:
            show(record.add("cells", await cell(kind, servers, bad, given.rounds, given.seconds)))
            done += 1
            left = (perf_counter() - begun) / done * (len(plan) - number) / 60
            print(f"{number} of {len(plan)} cells, {left:.0f} minutes left", flush=True)


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", default="10,40", help="N, with commas between")
    parser.add_argument("--shares", default="0.1,0.25,0.5", help="K/N, with commas between; at most half")
    parser.add_argument("--kinds", default=",".join(KINDS), help=f"of {', '.join(KINDS)}")
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--seconds", type=float, default=2.0, help="of one block of one arm")
    parser.add_argument("--json", type=Path, help="keep the figures in this file, and go on with what is in it")
    parser.add_argument("--quick", action="store_true", help="4 servers, one round, short blocks")
    given = parser.parse_args()
    if unknown := set(given.kinds.split(",")) - set(KINDS):
        parser.error(f"no such kind: {', '.join(sorted(unknown))}")
    if given.quick:
        given.servers, given.shares, given.rounds, given.seconds = "4", "0.5", 1, 0.8
    settings = {
        "rounds": given.rounds,
        "seconds": given.seconds,
        "quick": given.quick,
        "calls a second": {"sequential": SEQUENTIAL, f"{AT_ONCE} at once": CONCURRENT},
    }
    import_sdk()
    gc.collect()
    gc.freeze()
    trio.run(measure, given, Record(given.json, settings, "cells"))


if __name__ == "__main__":
    main()
