"""One call, and 64 at once: through `Host.call`, against a bare `ClientSession` over the SDK's own stdio client.

    python benchmarks/call.py [--blocks 15] [--calls 200] [--json FILE]

Two processes of the same server, one for each arm, in one trio program; the arms take turns block by block, so that a
noisy machine disturbs both alike. Aims: sequential ratio at most 0.55, throughput ratio at least 5.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Awaitable, Callable
from pathlib import Path
from statistics import median, quantiles
from time import perf_counter, process_time

import trio
from mcp import ClientSession, StdioServerParameters
from mcp.client.stdio import stdio_client
from playbill.actors import Config, ServerEntry, open_host
from record import Record

SERVER = str(Path(__file__).with_name("tiny_server.py"))
COMMAND = [sys.executable, "-I", "-S", SERVER]
ARGUMENTS = {"text": "hello"}
AT_ONCE = 64
COLUMNS = ("median µs", "p99 µs", f"{AT_ONCE} at once /s", "CPU µs a call")

Call = Callable[[], Awaitable[object]]


async def one_by_one(call: Call, calls: int) -> list[float]:
    """Seconds of each of `calls` calls, one after the other."""
    times = []
    for _ in range(calls):
        begun = perf_counter()
        await call()
        times.append(perf_counter() - begun)
    return times


async def at_once(call: Call, calls: int) -> tuple[float, float]:
    """(calls a second, CPU seconds a call) of 64 tasks that share about `calls` calls."""
    each = max(1, calls // AT_ONCE)

    async def worker() -> None:
        for _ in range(each):
            await call()

    begun, cpu = perf_counter(), process_time()
    async with trio.open_nursery() as nursery:
        for _ in range(AT_ONCE):
            nursery.start_soon(worker)
    return each * AT_ONCE / (perf_counter() - begun), (process_time() - cpu) / (each * AT_ONCE)


async def measure(sdk: Call, bill: Call, blocks: int, calls: int) -> dict[str, list[float]]:
    """Run both arms in turns and print their figures and ratios; returns those, in the order of `COLUMNS`."""
    arms = {"ClientSession": sdk, "Host.call": bill}
    times: dict[str, list[float]] = {name: [] for name in arms}
    rates: dict[str, list[float]] = {name: [] for name in arms}
    costs: dict[str, list[float]] = {name: [] for name in arms}
    for call in arms.values():
        await one_by_one(call, calls)
        await at_once(call, calls)
    for turn in range(blocks):
        for name, call in list(arms.items())[:: 1 if turn % 2 else -1]:
            times[name] += await one_by_one(call, calls)
            rate, cost = await at_once(call, calls * 4)
            rates[name].append(rate)
            costs[name].append(cost)
    print(f"{'':>14}  {'median µs':>9}  {'p99 µs':>7}  {f'{AT_ONCE} at once /s':>15}  {'CPU µs a call':>13}")
    rows = {}
    for name in arms:
        p99 = quantiles(times[name], n=100)[98]
        rows[name] = (median(times[name]) * 1e6, p99 * 1e6, median(rates[name]), median(costs[name]) * 1e6)
        print("{:>14}  {:>9.0f}  {:>7.0f}  {:>15.0f}  {:>13.0f}".format(name, *rows[name]))
    ratios = [ours / theirs for ours, theirs in zip(rows["Host.call"], rows["ClientSession"], strict=True)]
    print("{:>14}  {:>9.2f}  {:>7.2f}  {:>15.2f}  {:>13.2f}".format("ratio", *ratios))
    return {**{name: [*row] for name, row in rows.items()}, "ratio": ratios}


async def run(blocks: int, calls: int) -> dict[str, list[float]]:
    """Open both arms and measure."""
    parameters = StdioServerParameters(command=COMMAND[0], args=COMMAND[1:])
    config = Config((ServerEntry("tiny", command=COMMAND[0], args=tuple(COMMAND[1:])),))
    async with (
        open_host(config) as host,
        stdio_client(parameters) as (read, write),
        ClientSession(read, write) as session,
    ):
        await session.initialize()
        await session.list_tools()
        readiness = await host.ready(timeout=30)
        assert not readiness.missing, readiness.missing
        (wire_name,) = (tool.wire_name for tool in host.snapshot().catalog.tools if tool.bare == "echo")
        return await measure(
            lambda: session.call_tool("echo", ARGUMENTS), lambda: host.call(wire_name, ARGUMENTS), blocks, calls
        )


def main() -> None:
    """Read the arguments and measure."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--blocks", type=int, default=15, help="blocks of each arm")
    parser.add_argument(
        "--calls", type=int, default=200, help="sequential calls in a block (four times as many at once)"
    )
    parser.add_argument("--json", type=Path, help="write the figures to this file too")
    given = parser.parse_args()
    rows = trio.run(run, given.blocks, given.calls)
    record = Record(given.json, {"blocks": given.blocks, "calls": given.calls})
    record.data["rows"] = {
        name: {key: round(value, 3) for key, value in zip(COLUMNS, row, strict=True)} for name, row in rows.items()
    }
    record.save()


if __name__ == "__main__":
    main()
