"""How far it goes: 1 → 200 servers, 10 → 20,000 tools, and one host against several.

    python benchmarks/scaling.py [--servers 1,10,50,100,200] [--tools 10,100,1000,5000,20000] [--hosts 1,2,4] [--json FILE]
    python benchmarks/scaling.py --quick

Three sweeps, each row in a process of its own, so that no row inherits another's memory:

    servers   real processes with two tools each: ms until all are ready, KB of the host for each; then idle for `IDLE` seconds:
              CPU of the host in % of a core, and wake-ups a second of the host, and of the watcher and the reapers that it
              started (voluntary context switches: whoever polls has many)
    tools     scripted servers in memory, 100 tools each: ms until all are ready, the size of the catalog as JSON, memory,
              ms from a toggle to the snapshot that shows it
    hosts     the same 8 servers over one host or shared out over several, each in a process of its own: calls a second,
              16 callers for each host. More hosts help as long as there are cores: a host is one thread

Where a curve bends is told by the last column: what one more costs, from one row to the next. With ``--json`` each row is
written as it is done, and a run with the same settings goes on with what is there.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from time import perf_counter, process_time
from typing import Any

import trio
from playbill.actors import Budget, Config, ServerEntry, open_host
from playbill.actors.edge.wire.sdk import import_sdk
from playbill.actors.model.status import ToolDef
from playbill.actors.testing.scripted import Script, ScriptedServers
from record import Record

TINY = str(Path(__file__).with_name("tiny_server.py"))
IDLE = 10.0
TOOLS_EACH = 100
SHARED = 8
AT_ONCE = 16
LIMIT = 600.0
"""Seconds that one row may take."""

SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "Where."},
        "limit": {"type": "integer", "minimum": 1, "default": 10},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["path"],
}

Row = dict[str, Any]


def memory() -> float:
    """Resident KB of this process."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / 1024


def tiny(count: int) -> Config:
    """So many tiny servers."""
    return Config(tuple(ServerEntry(f"s{at}", command=sys.executable, args=("-I", "-S", TINY)) for at in range(count)))


def sleeps(pids: list[int]) -> dict[Path, int]:
    """How often each thread of some processes went to sleep by itself so far."""
    found = {}
    for pid in pids:
        for status in Path(f"/proc/{pid}/task").glob("*/status"):
            try:
                lines = status.read_text().splitlines()
            except OSError:
                continue
            found[status] = next(int(line.split()[1]) for line in lines if line.startswith("voluntary_ctxt"))
    return found


def wakeups(pids: list[int], before: dict[Path, int]) -> int:
    """How often they woke since then. A thread that has ended meanwhile is not counted."""
    return sum(count - before.get(status, 0) for status, count in sleeps(pids).items())


def below(top: int, mark: bytes) -> list[int]:
    """The processes below one, at any depth, that have a mark in their command line: the watcher and the reapers."""
    children: dict[int, list[int]] = {}
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            parent = int((folder / "stat").read_text().rpartition(")")[2].split()[1])
        except OSError:
            continue
        children.setdefault(parent, []).append(int(folder.name))
    found, new = [], [top]
    while new:
        new = [child for pid in new for child in children.get(pid, ())]
        found += new
    return [pid for pid in found if mark in _command(pid)]


def _command(pid: int) -> bytes:
    try:
        return Path(f"/proc/{pid}/cmdline").read_bytes()
    except OSError:
        return b""


async def servers(count: int, quick: bool) -> Row:
    """One host with so many real servers."""
    import_sdk()
    async with open_host(tiny(1)) as host:  # what is loaded once is no server's
        await host.ready(timeout=60)
    before, begun = memory(), perf_counter()
    async with open_host(tiny(count), budget=Budget(None)) as host:
        readiness = await host.ready(timeout=LIMIT)
        assert not readiness.missing, dict(list(readiness.missing.items())[:3])
        took, grown = (perf_counter() - begun) * 1e3, memory() - before
        await trio.sleep(1)
        helpers = below(os.getpid(), b"watcher.py")
        cpu, slept, theirs, began = process_time(), sleeps([os.getpid()]), sleeps(helpers), perf_counter()
        await trio.sleep(1.0 if quick else IDLE)
        idle = perf_counter() - began
        return {
            "ready ms": took,
            "KB a server": grown / count,
            "idle CPU %": 100 * (process_time() - cpu) / idle,
            "wake-ups/s": wakeups([os.getpid()], slept) / idle,
            "theirs/s": wakeups(helpers, theirs) / idle,
            "helpers": len(helpers),
        }


async def tools(count: int, quick: bool) -> Row:
    """One host with so many tools, over scripted servers."""
    each = min(count, TOOLS_EACH)
    stage = ScriptedServers(
        **{
            f"server_{at}": Script(
                ToolDef(f"tool_{tool}", description=f"Tool {tool} of server {at}.", input_schema=SCHEMA)
                for tool in range(each)
            )
            for at in range(count // each)
        }
    )
    before, begun = memory(), perf_counter()
    async with open_host(Config(stage.entries()), budget=Budget(None), profile="mcp", connect=stage) as host:
        readiness = await host.ready(timeout=LIMIT)
        assert not readiness.missing, dict(list(readiness.missing.items())[:3])
        took, grown = (perf_counter() - begun) * 1e3, memory() - before
        sent = [
            {"name": tool.wire_name, "description": tool.description, "input_schema": tool.input_schema}
            for tool in host.snapshot().catalog.tools
        ]
        times = []
        for turn in range(3 if quick else 20):
            start = perf_counter()
            await host.tool_set_enabled(f"server_{turn % (count // each)}", "tool_1", bool(turn // (count // each) % 2))
            times.append((perf_counter() - start) * 1e3)
        return {
            "ready ms": took,
            "on the wire": len(sent),
            "catalog KB": len(json.dumps(sent)) / 1024,
            "KB a tool": grown / count,
            "toggle ms": sorted(times)[len(times) // 2],
        }


async def calls(count: int, quick: bool) -> Row:
    """Calls a second of one host with so many servers; it begins and ends with the others on a line of its stdin."""
    import_sdk()
    async with open_host(tiny(count)) as host:
        readiness = await host.ready(timeout=LIMIT)
        assert not readiness.missing, readiness.missing
        print("ready", flush=True)
        await trio.to_thread.run_sync(sys.stdin.readline)
        done = 0

        async def caller(lane: int) -> None:
            nonlocal done
            while True:
                await host.call_tool(f"s{lane % count}", "echo", {"text": "hello"}, timeout=60)
                done += 1

        cpu, begun = process_time(), perf_counter()
        with trio.move_on_after(1.0 if quick else 5.0):
            async with trio.open_nursery() as nursery:
                for lane in range(AT_ONCE):
                    nursery.start_soon(caller, lane)
        took = perf_counter() - begun
        return {"calls/s": done / took, "host CPU %": 100 * (process_time() - cpu) / took}


def alone(sweep: str, count: int, quick: bool) -> subprocess.Popen[str]:
    """One row in a process of its own."""
    command = [sys.executable, __file__, "--row", sweep, str(count), *["--quick"] * quick]
    return subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)


def row_of(process: subprocess.Popen[str]) -> Row:
    """What it measured.

    Raises:
        SystemExit: it failed.
    """
    out, _ = process.communicate("go\n", timeout=LIMIT + 60)
    if process.returncode:
        sys.exit(process.returncode)
    row: Row = json.loads(out.splitlines()[-1])
    return row


def hosts(count: int, quick: bool) -> Row:
    """The same servers over so many hosts."""
    processes = [alone("calls", SHARED // count, quick) for _ in range(count)]
    for process in processes:
        assert process.stdout is not None
        if not process.stdout.readline():
            row_of(process)  # it has said why
    for process in processes:  # all at once, when all are ready
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    rows = [row_of(process) for process in processes]
    return {name: sum(row[name] for row in rows) for name in rows[0]}


def sweep(record: Record, name: str, counts: list[int], row: Callable[[int], Row], more: str | None) -> None:
    """Measure and print one sweep, as far as it is not there yet.

    Args:
        record: where the rows are kept.
        name: of what there is more of.
        counts: how many.
        row: measures one.
        more: the column whose growth for one more is shown, or None.
    """
    rows: list[Row] = []
    columns: list[str] = []
    for count in counts:
        found = record.find(name, **{name: count})
        if found is None:
            found = {name: count, **row(count)}
            if more is not None and rows:
                found[f"{more} each more"] = (found[more] - rows[-1][more]) / (count - rows[-1][name])
            record.add(name, found)
        rows.append(found)
        if not columns:
            columns = [*found, *([f"{more} each more"] if more is not None else [])]
            print("\n" + "".join(f"{column:>{max(12, len(column) + 2)}}" for column in columns))
        print("".join(f"{found.get(column, 0):>{max(12, len(column) + 2)},.4g}" for column in columns), flush=True)


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", default="1,10,50,100,200")
    parser.add_argument("--tools", default="10,100,1000,5000,20000")
    parser.add_argument("--hosts", default="1,2,4", help="of 8 servers in all")
    parser.add_argument("--json", type=Path, help="keep the figures in this file, and go on with what is in it")
    parser.add_argument("--quick", action="store_true", help="little of each")
    parser.add_argument("--row", nargs=2, help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.row:
        kind, count = given.row
        work = {"servers": servers, "tools": tools, "calls": calls}[kind]
        print(json.dumps(trio.run(work, int(count), given.quick)))
        return
    if given.quick:
        given.servers, given.tools, given.hosts = "1,4", "10,200", "1,2"

    def numbers(text: str) -> list[int]:
        return [int(each) for each in text.split(",") if each]

    record = Record(given.json, {"quick": given.quick}, "servers", "tools", "hosts")
    sweep(record, "servers", numbers(given.servers), lambda n: row_of(alone("servers", n, given.quick)), "ready ms")
    sweep(record, "tools", numbers(given.tools), lambda n: row_of(alone("tools", n, given.quick)), "ready ms")
    sweep(record, "hosts", numbers(given.hosts), lambda n: hosts(n, given.quick), None)


if __name__ == "__main__":
    main()
