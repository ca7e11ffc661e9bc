"""What an operation costs with 200 servers of 50 tools each: toggles, an unchanged reload, and reading a snapshot.

    python benchmarks/ops.py [--servers 200] [--tools 50] [--rounds 40]

The servers are scripted connections: no process, so that what is measured is the host. Spawns are counted. Aims: no
spawn at all, a toggle under 5 ms without the fsync, `snapshot()` under 200 ns.
"""

from __future__ import annotations

import argparse
import json
import os
import tempfile
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median
from time import perf_counter
from timeit import timeit
from unittest.mock import patch

import trio
from playbill.actors import Budget, Host, open_host
from playbill.actors.model.status import ToolDef
from playbill.actors.testing.scripted import Script, ScriptedServers

SCHEMA = {
    "type": "object",
    "properties": {
        "path": {"type": "string", "description": "Where."},
        "limit": {"type": "integer", "minimum": 1, "default": 10},
        "tags": {"type": "array", "items": {"type": "string"}},
    },
    "required": ["path"],
}


def scripted(servers: int, tools: int) -> ScriptedServers:
    """That many servers in memory, each with that many tools; it counts how often each is started."""
    return ScriptedServers(
        **{
            f"server_{number}": Script(
                ToolDef(f"tool_{each}", description=f"Tool {each} of server {number}.", input_schema=SCHEMA)
                for each in range(tools)
            )
            for number in range(servers)
        }
    )


def write_config(path: Path, servers: int) -> None:
    """An mcp.json of that many servers, each with a list of excluded tools."""
    entries = {
        f"server_{number}": {
            "command": "scripted",
            "args": ["--number", str(number)],
            "env": {"TOKEN": "${TOKEN:-none}"},
            "tools": {"exclude": ["tool_1", "tool_2"]},
        }
        for number in range(servers)
    }
    path.write_text(json.dumps({"mcpServers": entries}, indent=2), "utf-8")


async def timed(rounds: int, act: Callable[[int], Awaitable[object]]) -> list[float]:
    """Milliseconds of each round."""
    times = []
    for turn in range(rounds):
        begun = perf_counter()
        await act(turn)
        times.append((perf_counter() - begun) * 1e3)
    return times


async def measure(host: Host, stage: ScriptedServers, servers: int, rounds: int) -> None:
    """Print what each operation costs and how many spawns it took."""

    async def toggle(turn: int) -> None:
        name = f"server_{turn * 7 % servers}"
        before = host.snapshot().model.tool(name, "tool_1")
        assert before is not None
        snapshot = await host.tool_set_enabled(name, "tool_1", not before.enabled)
        after = snapshot.model.tool(name, "tool_1")
        assert after is not None
        assert after.enabled is not before.enabled

    def row(what: str, times: list[float], spawned: int) -> None:
        print(
            f"{what:<44}  median {median(times):>8.2f} ms   worst {max(times):>8.2f} ms   spawns {spawned}", flush=True
        )

    before = stage.spawns.total()
    times = await timed(rounds, toggle)
    row("toggle", times, stage.spawns.total() - before)

    before = stage.spawns.total()
    with patch.object(os, "fsync", lambda fd: None):
        times = await timed(rounds, toggle)
    row("toggle, without the fsync", times, stage.spawns.total() - before)

    before = stage.spawns.total()
    times = await timed(max(3, rounds // 4), lambda turn: host.reload())
    row("reload, nothing changed", times, stage.spawns.total() - before)

    reads = 200_000
    print(f"{'snapshot()':<44}  {timeit(host.snapshot, number=reads) / reads * 1e9:>15.0f} ns")


async def run(servers: int, tools: int, rounds: int) -> None:
    """Open a host of scripted servers and measure: on the disk, and in a memory file system where there is one.

    Without a flush ext4 still writes a file out when another one takes its name, so that only the latter shows the host.
    """
    memory = Path("/dev/shm")
    for where in (Path(tempfile.gettempdir()), *([memory] if os.access(memory, os.W_OK) else [])):
        for budget in (None, 100):
            await run_one(servers, tools, rounds, where, budget)


async def run_one(servers: int, tools: int, rounds: int, where: Path, budget: int | None) -> None:
    """One host, with its config in a folder of ``where``."""
    stage = scripted(servers, tools)
    with tempfile.TemporaryDirectory(dir=where) as folder:
        path = Path(folder) / "mcp.json"
        write_config(path, servers)
        begun = perf_counter()
        async with open_host(path, budget=Budget(budget), profile="mcp", connect=stage) as host:
            readiness = await host.ready(timeout=120)
            assert not readiness.missing, dict(list(readiness.missing.items())[:3])
            took = (perf_counter() - begun) * 1e3
            count = len(host.snapshot().catalog.tools)
            spawns = stage.spawns.total()
            print(f"\n{servers} servers × {tools} tools, {count} on the wire, config in {where}")
            print(f"ready in {took:.0f} ms, {spawns} spawns")
            await measure(host, stage, servers, rounds)


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, default=200)
    parser.add_argument("--tools", type=int, default=50)
    parser.add_argument("--rounds", type=int, default=40, help="toggles of each kind")
    given = parser.parse_args()
    trio.run(run, given.servers, given.tools, given.rounds)


if __name__ == "__main__":
    main()
