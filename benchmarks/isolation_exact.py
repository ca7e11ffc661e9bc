"""The exact form of `isolation.py`: the same run twice in virtual time, without faults and with them; calls must be equal.

    python benchmarks/isolation_exact.py [--servers 8] [--json FILE]

Each fault that a server can have on the wire (`playbill.actors.testing.faults`) strikes one half of the servers, while all are
called: one after the other, and 16 at a time over the healthy half. Every call of a healthy server must begin and end at the
same instant as in the run without faults, with the same answer, and the servers themselves must be as they were.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from typing import Any

import trio
from playbill.actors import Config, Host, PlaybillError, open_host
from playbill.actors.testing.faults import CORE, SPONTANEOUS, Fault, FaultPlan, all_pairs, args
from playbill.actors.testing.scripted import Script, ScriptedServers
from playbill.actors.testing.wires import FaultyWires
from playbill.supervision import Backoff
from playbill.supervision.testing.determinism import Simulation, run_simulation
from record import Record

AT_ONCE = 16
CALLS = 40
STEP = 0.05
"""Virtual seconds between two calls of one caller."""

PAIRS = tuple((site, kind) for site, kind in all_pairs("wire") if site not in CORE)

Call = tuple[str, int, float, float, str]
"""Server, number, when it began and ended in virtual seconds, what came."""


async def _call(host: Host, server: str, number: int) -> str:
    try:
        result = await host.call_tool(server, "echo", {"n": number}, timeout=5)
    except PlaybillError as error:
        return repr(error)
    return str(result.structured_content)


def timeline(faults: FaultPlan, servers: int, seed: int = 1) -> tuple[list[Call], list[Any]]:
    """One run.

    Args:
        faults: of the servers ``bad0``, ``bad1``, …, which are one half of all.
        servers: how many in all.
        seed: of the scheduler and of all that is drawn.

    Returns:
        The calls of the healthy half, in order; and what the snapshot says of each of them at the end: its phase, restarts,
        whether it is the incarnation that it was, its error.

    Raises:
        AssertionError: the run did not end.
    """
    healthy = [f"good{number}" for number in range(servers - servers // 2)]
    bad = [f"bad{number}" for number in range(servers // 2)]
    scripts = {
        name: Script(("echo",), call_delay=0.004 * (1 + at), connect_delay=0.1) for at, name in enumerate(healthy)
    }
    scripts |= {name: Script(("echo",), call_delay=0.01) for name in bad}
    calls: list[Call] = []

    async def main(simulation: Simulation) -> list[Any]:
        wires = FaultyWires(ScriptedServers(**scripts), faults)

        async def caller(mine: list[str], lane: int) -> None:
            for turn in range(CALLS):
                number = lane * CALLS + turn
                server = mine[number % len(mine)]
                await trio.sleep_until(2 + turn * STEP)
                begun = trio.current_time()
                answer = await _call(host, server, number)
                if mine is healthy:
                    calls.append((server, number, begun, trio.current_time(), answer))

        async def provoker(server: str) -> None:
            # Whatever the fault waits for, comes: calls, a new list, a close, a start.
            await trio.sleep_until(2.4)
            if server in wires.peers:
                wires.peers[server].announce()
            await trio.sleep_until(2.8)
            await host.restart(server)

        async with open_host(
            Config(wires.servers.entries(connect_timeout=5)),
            connect=wires,
            rng=simulation.rng,
            backoff=Backoff(base=0.05, max=0.2, reset_after=30.0),
        ) as host:
            await host.ready(require=healthy, timeout=60)
            await trio.sleep_until(1)
            # Generations are numbered over all servers: what counts is that each of these has the one it began with.
            began = [(state.name, state.generation) for state in host.snapshot().model.servers]
            async with trio.open_nursery() as nursery:
                nursery.start_soon(wires.run_spontaneous)
                for lane in range(1 + AT_ONCE):
                    nursery.start_soon(caller, healthy, lane)
                for server in bad:
                    nursery.start_soon(caller, [server], 0)
                    nursery.start_soon(provoker, server)
            states = [host.snapshot().model.server(name) for name in healthy]
            return [
                (state.name, state.phase, state.restarts, (state.name, state.generation) in began, state.error)
                for state in states
                if state is not None
            ]

    result = run_simulation(main, seed=seed, seconds=600)
    assert result.verdict == "ok", result.reason
    assert result.value is not None
    return sorted(calls), result.value


def plan(site: str, kind: str, servers: int) -> FaultPlan:
    """One fault for each server of the bad half, from when the calls begin on."""
    at = 2.1 if site in SPONTANEOUS else 1.5
    return FaultPlan(
        tuple(Fault(at, f"bad{each}", site, kind, args(site, kind, "wire")[0]) for each in range(servers // 2))
    )


def differences(pairs: tuple[tuple[str, str], ...] = PAIRS, servers: int = 8) -> list[str]:
    """Run each fault against the run without one.

    Args:
        pairs: (site, kind) of the faults.
        servers: how many in all; half of them are struck.

    Returns:
        One line for each fault that the healthy half noticed.
    """
    without, states = timeline(FaultPlan(), servers)
    wrong = []
    for site, kind in pairs:
        calls, now = timeline(plan(site, kind, servers), servers)
        first = next((f"{a} became {b}" for a, b in zip(without, calls, strict=True) if a != b), None)
        if first is not None:
            wrong.append(f"{site} {kind}: the call {first}")
        elif states != now:
            wrong.append(f"{site} {kind}: {states} became {now}")
    return wrong


def main() -> None:
    """Run all pairs and say what differs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--servers", type=int, default=8)
    parser.add_argument("--json", type=Path, help="write what was found to this file too")
    given = parser.parse_args()
    wrong = differences(servers=given.servers)
    print("\n".join(f"DIFFERS {each}" for each in wrong))
    print(f"{len(PAIRS) - len(wrong)} of {len(PAIRS)} faults changed no call of a healthy server by anything")
    record = Record(given.json, {"servers": given.servers})
    record.data |= {"faults": len(PAIRS), "calls": CALLS * (1 + AT_ONCE), "differences": wrong}
    record.save()
    sys.exit(1 if wrong else 0)


if __name__ == "__main__":
    main()
