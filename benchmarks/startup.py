"""From nothing to "all ready": 1, 10 and 40 servers, against the floor of doing it by hand on trio.

    python benchmarks/startup.py [--rounds 11] [--servers 1,10,40] [--json FILE]

Both arms run the same server in the same process, turn about, with `mcp` imported beforehand. The clock runs from
before the first spawn until every server has listed its tools; stopping them is not counted. Aim: ratio at most 1.15 at 40.
"""

from __future__ import annotations

import argparse
import sys
from pathlib import Path
from statistics import median
from time import perf_counter, process_time

import mcp  # noqa: F401  (its import is not what is measured)
import trio
from floor import start_all, stop_all
from playbill.actors import Config, ServerEntry, open_host
from record import Record

SERVER = str(Path(__file__).with_name("tiny_server.py"))
Taken = tuple[float, float]
"""Seconds, and seconds of CPU of this process."""

COMMAND = [sys.executable, "-I", "-S", SERVER]


async def by_hand(count: int) -> Taken:
    """What it takes until `count` servers are ready, started by hand."""
    begun, cpu = perf_counter(), process_time()
    servers = await start_all(COMMAND, count)
    took = perf_counter() - begun, process_time() - cpu
    assert len(servers) == count
    assert all(len(server.tools) == 2 for server in servers)
    await stop_all(servers)
    return took


async def by_playbill(count: int) -> Taken:
    """What it takes until `count` servers are ready, in a host."""
    begun, cpu = perf_counter(), process_time()
    config = Config(
        tuple(ServerEntry(f"s{number}", command=COMMAND[0], args=tuple(COMMAND[1:])) for number in range(count))
    )
    async with open_host(config) as host:
        readiness = await host.ready(timeout=60)
        took = perf_counter() - begun, process_time() - cpu
        assert not readiness.missing, readiness.missing
        assert all(len(server.tools) == 2 for server in host.snapshot().model.servers)
    return took


async def measure(counts: list[int], rounds: int, record: Record) -> None:
    """Run all rounds, print a table and keep it.

    Args:
        counts: how many servers.
        rounds: how often each arm runs for each; the first of each is thrown away.
        record: where the rows are kept.
    """
    heads = f"{'servers':>7}  {'by hand ms':>10}  {'playbill ms':>11}  {'ratio':>5}  {'CPU ms':>7}  {'CPU ms':>7}"
    print(f"{heads}   (medians of {rounds}, turn about; CPU: of this process, by hand and playbill)")
    for count in counts:
        hand: list[Taken] = []
        bill: list[Taken] = []
        for turn in range(rounds + 1):
            arms = [(by_hand, hand), (by_playbill, bill)]
            for arm, times in arms if turn % 2 else reversed(arms):
                times.append(await arm(count))
        (low, low_cpu), (ours, our_cpu) = (
            [median(each) * 1e3 for each in zip(*times[1:], strict=True)] for times in (hand, bill)
        )
        print(
            f"{count:>7}  {low:>10.1f}  {ours:>11.1f}  {ours / low:>5.2f}  {low_cpu:>7.1f}  {our_cpu:>7.1f}", flush=True
        )
        row = {"by hand ms": low, "playbill ms": ours, "by hand CPU ms": low_cpu, "playbill CPU ms": our_cpu}
        record.add(
            "rows",
            {"servers": count, **{name: round(value, 1) for name, value in row.items()}, "ratio": round(ours / low, 3)},
        )


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=11, help="counted rounds of each arm")
    parser.add_argument("--servers", default="1,10,40", help="how many, with commas between")
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    given = parser.parse_args()
    record = Record(given.json, {"rounds": given.rounds}, "rows")
    record.data["rows"] = []
    trio.run(measure, [int(each) for each in given.servers.split(",")], given.rounds, record)


if __name__ == "__main__":
    main()
