"""Children that die together are not started together."""

from __future__ import annotations

import math

import pytest
import trio
from hypothesis import given
from hypothesis import strategies as st
from playbill.supervision import Backoff, ChildSpec, Context, Intensity, Supervisor
from playbill.supervision.pace import Pace

MOMENTS = st.lists(st.integers(0, 40).map(lambda tenths: tenths / 8), max_size=30)


async def dies(ctx: Context) -> None:
    ctx.started()
    raise RuntimeError("on purpose")


async def lives(ctx: Context) -> None:
    ctx.started()
    await ctx.wait_stop()


def dying(name: str, *, base: float = 1.0, **more: object) -> ChildSpec:
    return ChildSpec(name, dies, backoff=Backoff(base=base, jitter=0.0), **more)  # type: ignore[arg-type]


@given(MOMENTS)
def test_no_two_moments_are_nearer_than_the_spacing_and_none_is_early_or_later_than_it_must_be(
    asked: list[float],
) -> None:
    pace, taken = Pace(0.25), list[float]()
    for when in asked:
        got = pace.book(when, 0.0)
        assert got >= when
        assert all(abs(got - other) >= 0.25 for other in taken)
        # What is earlier was not free.
        free = sorted([when, *(other + 0.25 for other in taken if when <= other + 0.25 < got)])
        assert all(any(abs(each - other) < 0.25 for other in taken) for each in free if each < got)
        taken.append(got)


def test_what_is_over_takes_no_moment_any_more() -> None:
    pace = Pace(1.0)
    assert pace.book(5.0, 0.0) == 5.0
    assert pace.book(5.5, 5.5) == 6.0
    assert pace.book(7.5, 7.5) == 7.5
    assert len(pace._taken) == 1


async def test_children_that_die_together_are_started_again_one_after_the_other(autojump_clock: trio.abc.Clock) -> None:
    starts: list[float] = []

    async def once(ctx: Context) -> None:
        starts.append(trio.current_time())
        ctx.started()
        if trio.current_time() == begun:
            raise RuntimeError("on purpose")
        await ctx.wait_stop()

    sup = Supervisor(spacing=0.25)
    async with trio.open_nursery() as nursery:
        await nursery.start(sup.run)
        begun = trio.current_time()
        for number in range(5):
            sup.start_soon(ChildSpec(f"c{number}", once, backoff=Backoff(base=1.0, jitter=0.0)))
        await trio.sleep(10)
        await sup.stop()
    assert [start - begun for start in starts] == [0.0] * 5 + [1.0, 1.25, 1.5, 1.75, 2.0]


async def test_the_moment_is_shown_and_one_that_waits_long_keeps_nobody(autojump_clock: trio.abc.Clock) -> None:
    sup = Supervisor(spacing=0.5)
    async with trio.open_nursery() as nursery:
        await nursery.start(sup.run)
        begun = trio.current_time()
        for name, base in (("late", 20.0), ("soon", 1.0), ("too", 1.0)):
            sup.start_soon(dying(name, base=base))
            await trio.testing.wait_all_tasks_blocked()
        shown = {name: state.next_retry_at for name, state in sup.states().items()}
        assert shown == {"late": begun + 20.0, "soon": begun + 1.0, "too": begun + 1.5}
        await sup.stop()


async def test_a_slow_retry_of_a_parked_child_is_spaced_too(autojump_clock: trio.abc.Clock) -> None:
    parks = Intensity(restarts=0, then="park", park_retry=3.0)
    sup = Supervisor(spacing=0.5)
    async with trio.open_nursery() as nursery:
        await nursery.start(sup.run)
        begun = trio.current_time()
        for name in ("one", "two"):
            sup.start_soon(dying(name, intensity=parks))
            await trio.testing.wait_all_tasks_blocked()
        assert [state.next_retry_at for state in sup.states().values()] == [begun + 3.0, begun + 3.5]
        await sup.stop()


async def test_first_starts_and_what_is_asked_for_wait_for_no_moment(autojump_clock: trio.abc.Clock) -> None:
    sup = Supervisor(spacing=5.0)
    async with trio.open_nursery() as nursery:
        await nursery.start(sup.run)
        begun = trio.current_time()
        for number in range(3):
            sup.start_soon(dying(f"c{number}", base=1.0))
        await trio.testing.wait_all_tasks_blocked()
        for name in ("c0", "c1", "c2"):
            sup.replace_soon(ChildSpec(name, lives))
            await sup.up(name)
        assert trio.current_time() == begun
        await sup.stop()


@pytest.mark.parametrize("spacing", [-0.1, math.inf, math.nan])
def test_a_spacing_that_is_none_is_refused(spacing: float) -> None:
    with pytest.raises(ValueError, match="spacing must be a finite number of seconds"):
        Supervisor(spacing=spacing)
