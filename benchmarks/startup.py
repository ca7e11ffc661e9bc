"""From nothing to "all ready": 1, 10 and 40 servers, against the floor of doing it by hand on trio.

    python benchmarks/startup.py [--rounds 11] [--servers 1,10,40]

Both arms run the same server in the same process, turn about, with `mcp` imported beforehand. The clock runs from
before the first spawn until every server has listed its tools; stopping them is not counted. Aim: ratio at most 1.25 at 40.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import median
from time import perf_counter

import mcp  # noqa: F401  (its import is not what is measured)
import trio
from floor import start_all, stop_all
from playbill.actors import Config, ServerEntry, open_host

SERVER = str(Path(__file__).with_name("tiny_server.py"))
COMMAND = [sys.executable, "-I", "-S", SERVER]


async def by_hand(count: int) -> float:
    """Seconds until `count` servers are ready, started by hand."""
    begun = perf_counter()
    servers = await start_all(COMMAND, count)
    took = perf_counter() - begun
    assert len(servers) == count
    assert all(len(server.tools) == 2 for server in servers)
    await stop_all(servers)
    return took


async def by_playbill(count: int) -> float:
    """Seconds until `count` servers are ready, in a host."""
    begun = perf_counter()
    config = Config(
        tuple(ServerEntry(f"s{number}", command=COMMAND[0], args=tuple(COMMAND[1:])) for number in range(count))
    )
    async with open_host(config) as host:
        readiness = await host.ready(timeout=60)
        took = perf_counter() - begun
        assert not readiness.missing, readiness.missing
        assert all(len(server.tools) == 2 for server in host.snapshot().model.servers)
    return took


async def measure(counts: list[int], rounds: int) -> None:
    """Run all rounds and print a table.

    Args:
        counts: how many servers.
        rounds: how often each arm runs for each; the first of each is thrown away.
    """
    print(f"{'servers':>7}  {'by hand ms':>10}  {'playbill ms':>11}  {'ratio':>5}   (medians of {rounds}, turn about)")
    for count in counts:
        hand: list[float] = []
        bill: list[float] = []
        for turn in range(rounds + 1):
            arms = [(by_hand, hand), (by_playbill, bill)]
            for arm, times in arms if turn % 2 else reversed(arms):
                times.append(await arm(count))
        low, ours = median(hand[1:]) * 1e3, median(bill[1:]) * 1e3
        print(f"{count:>7}  {low:>10.1f}  {ours:>11.1f}  {ours / low:>5.2f}", flush=True)


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=11, help="counted rounds of each arm")
    parser.add_argument("--servers", default="1,10,40", help="how many, with commas between")
    given = parser.parse_args()
    trio.run(measure, [int(each) for each in given.servers.split(",")], given.rounds)


if __name__ == "__main__":
    main()
