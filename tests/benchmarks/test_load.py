"""The load that all arms share: when a call counts from, which percentile is which, and that no error goes uncounted."""

from __future__ import annotations

from collections.abc import Callable
from types import ModuleType

import pytest
import trio
import trio.testing

Runner = Callable[[str], ModuleType]


def test_percentiles_are_those_that_they_are_called(runner: Runner) -> None:
    load = runner("load").Load()
    load.times = [each / 1000 for each in range(1001, 0, -1)]
    load.p99s = [0.5, None]
    figures = load.figures()
    assert {name: figures[name] for name in ("p50", "p99", "p99.9", "max")} == {
        "p50": 501.0,
        "p99": 991.0,
        "p99.9": 1000.0,
        "max": 1001.0,
    }
    assert (figures["calls"], figures["errors"], figures["p99 of each block"]) == (1001, 0, [500.0, None])


async def test_a_call_counts_from_when_it_was_due(runner: Runner, autojump_clock: trio.testing.MockClock) -> None:
    """One that takes long makes those late that its caller could not begin."""
    module = runner("load")
    load, takes = module.Load(), iter([0.375])

    async def call(server: str) -> None:
        await trio.sleep(next(takes, 0.0))

    await module.run_load(call, ["a"], load, 1, 8.0, 1.0)
    assert load.times == [0.375, 0.25, 0.125, *[0.0] * 5]


async def test_the_p99_of_a_block_is_that_of_its_calls(runner: Runner, autojump_clock: trio.testing.MockClock) -> None:
    module = runner("load")
    load = module.Load()
    load.times = [9.0]  # of a block before
    takes = iter([each / 1000 for each in range(1, 102)])

    async def call(server: str) -> None:
        await trio.sleep(next(takes))

    await module.run_load(call, ["a"], load, 1, 1.0, 100.5)
    assert load.p99s == [pytest.approx(0.1)]
    assert len(load.times) == 102


async def test_callers_share_the_rate_and_call_all_healthy_servers_in_turn(
    runner: Runner, autojump_clock: trio.testing.MockClock
) -> None:
    module = runner("load")
    load, called = module.Load(), []

    async def call(server: str) -> None:
        called.append((server, round(trio.current_time() - begun, 6)))
        await trio.lowlevel.checkpoint()

    begun = trio.current_time()
    await module.run_load(call, ["a", "b", "c"], load, 4, 8.0, 2.0)
    called.sort(key=lambda each: each[1])
    assert [at for _, at in called] == [each / 8 for each in range(16)]
    assert [server for server, _ in called] == [["a", "b", "c"][each % 3] for each in range(16)]


async def test_every_call_that_failed_is_counted_also_in_a_way_that_is_not_told(
    runner: Runner, autojump_clock: trio.testing.MockClock
) -> None:
    module = runner("load")
    load, ways = module.Load(), iter(range(100))

    async def call(server: str) -> None:
        await trio.lowlevel.checkpoint()
        raise ValueError(f"way {next(ways)}\nand more")

    await module.run_load(call, ["a"], load, 1, 8.0, 2.0)
    figures = load.figures()
    assert (figures["errors"], figures["calls"]) == (16, 16)
    assert figures["errors were"] == {f"ValueError: way {each}": 1 for each in range(5)}
    assert load.p99s == [None]


async def test_a_call_that_was_due_and_could_not_be_made_is_an_error(
    runner: Runner, autojump_clock: trio.testing.MockClock
) -> None:
    module = runner("load")
    load = module.Load()

    async def call(server: str) -> None:
        await trio.sleep(10.0)

    await module.run_load(call, ["a"], load, 1, 8.0, 1.0)
    figures = load.figures()
    assert (figures["errors"], figures["calls"]) == (7, 8)


def test_both_ratios_are_of_the_faulty_arm_over_the_busy_one(runner: Runner) -> None:
    module = runner("load")
    faulty, busy = module.Load(), module.Load()
    faulty.times, busy.times = [0.003] * 100, [0.002] * 100
    faulty.p99s, busy.p99s = [3.0, 3.0, 9.0], [2.0, 2.0, 2.0]
    assert module.over(faulty, busy) == {"median": 1.5, "pooled": 1.5}
    assert module.over(busy, faulty) == {"median": 0.667, "pooled": 0.667}
