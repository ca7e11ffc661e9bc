"""The cell: synchronous to read and set, conflated to watch, and no wake-up is ever lost."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.testing
from hypothesis import given, settings
from hypothesis import strategies as st
from playbill.supervision import Cell


@asynccontextmanager
async def within(seconds: float) -> AsyncIterator[None]:
    """A lost wake-up fails the test, instead of hanging it."""
    with trio.fail_after(seconds):
        yield


async def test_setting_is_synchronous_and_counts_every_time(autojump_clock: object) -> None:
    cell = Cell("a")
    assert (cell.value, cell.version) == ("a", 0)
    cell.set("a")
    cell.set("b")
    assert (cell.value, cell.version) == ("b", 2)


async def test_wait_returns_the_current_value_if_it_suits_and_is_a_checkpoint(autojump_clock: object) -> None:
    cell = Cell(5)
    with trio.testing.assert_checkpoints():
        assert await cell.wait(lambda value: value == 5) == 5


async def test_changes_gives_the_current_value_first_and_is_a_checkpoint(autojump_clock: object) -> None:
    cell = Cell(5)
    changes = cell.changes()
    with trio.testing.assert_checkpoints():
        assert await anext(changes) == 5


async def test_a_slow_reader_gets_the_latest_value_only(autojump_clock: object) -> None:
    cell = Cell(0)
    changes = cell.changes()
    assert await anext(changes) == 0
    for value in range(1, 1000):
        cell.set(value)
    assert await anext(changes) == 999


async def test_an_equal_value_set_again_is_a_change(autojump_clock: object) -> None:
    cell = Cell(1)
    changes = cell.changes()
    await anext(changes)
    cell.set(1)
    assert await anext(changes) == 1


async def test_every_waiter_is_woken(autojump_clock: object) -> None:
    cell, woken = Cell(0), []

    async def waiter(number: int) -> None:
        woken.append((number, await cell.wait(lambda value: value >= 1)))

    async with within(10), trio.open_nursery() as nursery:
        for number in range(10):
            nursery.start_soon(waiter, number)
        await trio.testing.wait_all_tasks_blocked()
        cell.set(1)
    assert sorted(woken) == [(number, 1) for number in range(10)]


async def test_closing_ends_iterators_after_the_last_value_and_fails_waits(autojump_clock: object) -> None:
    cell, seen = Cell(0), []

    async def watch() -> None:
        async for value in cell.changes():
            seen.append(value)

    async with within(10), trio.open_nursery() as nursery:
        nursery.start_soon(watch)
        await trio.testing.wait_all_tasks_blocked()
        cell.set(7)
        cell.close()
    assert seen == [0, 7]
    with pytest.raises(trio.ClosedResourceError):
        await cell.wait(lambda value: value == 8)
    with pytest.raises(trio.ClosedResourceError):
        cell.set(8)
    assert await cell.wait(lambda value: value == 7) == 7
    assert cell.value == 7


async def test_closing_wakes_a_waiter_whose_value_never_came(autojump_clock: object) -> None:
    cell = Cell(0)

    async def waiter() -> None:
        with pytest.raises(trio.ClosedResourceError):
            await cell.wait(lambda value: value == 1)

    async with within(10), trio.open_nursery() as nursery:
        nursery.start_soon(waiter)
        await trio.testing.wait_all_tasks_blocked()
        cell.close()


async def test_a_cancelled_waiter_leaves_nothing_behind(autojump_clock: object) -> None:
    cell = Cell(0)
    async with within(10), trio.open_nursery() as nursery:
        nursery.start_soon(cell.wait, lambda value: value == 1)
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    cell.set(1)
    assert len(cell._parked) == 0


@settings(max_examples=60, deadline=None, derandomize=True)
@given(st.lists(st.lists(st.integers(0, 9), max_size=4), max_size=12), st.integers(1, 4), st.booleans())
def test_readers_see_a_growing_run_of_what_was_set_and_always_the_last(
    bursts: list[list[int]], readers: int, linger: bool
) -> None:
    """Bursts of sets with pauses between; readers of all speeds. No wake-up is lost: the last value is always seen."""

    async def main() -> None:
        cell: Cell[tuple[int, int]] = Cell((0, -1))
        history = [cell.value]
        seen: list[list[tuple[int, int]]] = [[] for _ in range(readers)]

        async def read(number: int) -> None:
            async for value in cell.changes():
                seen[number].append(value)
                for _ in range(number):
                    await trio.lowlevel.checkpoint()

        async with within(10), trio.open_nursery() as nursery:
            for number in range(readers):
                nursery.start_soon(read, number)
            for burst in bursts:
                for item in burst:
                    history.append((len(history), item))
                    cell.set(history[-1])
                await trio.lowlevel.checkpoint()
            if linger:
                await trio.testing.wait_all_tasks_blocked()
                assert all(values[-1] == history[-1] for values in seen)
            cell.close()
        for values in seen:
            assert values[-1] == history[-1]
            assert values == sorted(set(values))
            assert set(values) <= set(history)

    trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0))
