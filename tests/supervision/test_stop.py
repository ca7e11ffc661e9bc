"""Stops: message, grace, cancellation, join; in order, side by side, and never cut short by what is cancelled around."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing
from playbill.supervision import ActorDown, Backoff, Context, Intensity, Shutdown, StartFailed, Stuck


async def test_a_body_that_heeds_the_stop_message_is_not_cancelled(autojump_clock: Any, troupe: Any) -> None:
    ended: list[Any] = []

    async def drains(ctx: Context) -> None:
        ended.append(await ctx.wait_stop())
        await trio.sleep(4)
        ended.append("drained")

    await troupe.sup.start(troupe.spec("a", drains))
    begin = trio.current_time()
    await troupe.sup.stop_child("a", stop_reason="enough")
    assert ended == ["enough", "drained"]
    assert trio.current_time() == begin + 4


async def test_a_body_that_does_not_is_cancelled_when_its_grace_is_over(
    autojump_clock: Any, troupe: Any, bodies: Any
) -> None:
    await troupe.sup.start(troupe.spec("a", bodies.stubborn, shutdown=Shutdown(grace=3)))
    begin = trio.current_time()
    await troupe.sup.stop_child("a")
    assert trio.current_time() == begin + 3
    assert troupe.alive == {"a": 0}


async def test_without_grace_it_is_cancelled_at_once(autojump_clock: Any, troupe: Any, bodies: Any) -> None:
    await troupe.sup.start(troupe.spec("a", bodies.stubborn))
    begin = trio.current_time()
    await troupe.sup.stop_child("a", grace=0)
    assert trio.current_time() == begin


async def test_of_two_stops_the_shorter_grace_and_the_newer_reason_count(
    autojump_clock: Any, troupe: Any, bodies: Any
) -> None:
    reasons: list[Any] = []

    async def listens(ctx: Context) -> None:
        try:
            await trio.sleep_forever()
        finally:
            reasons.append(ctx.stop_reason)

    for name in ("longer", "shorter", "none"):
        await troupe.sup.start(troupe.spec(name, listens, shutdown=Shutdown(grace=10)))
        troupe.sup.stop_soon(name, stop_reason="first")
    begin = trio.current_time()
    troupe.sup.stop_soon("longer", grace=100, stop_reason="second")
    await trio.sleep(1)
    troupe.sup.stop_soon("shorter", grace=2)
    troupe.sup.stop_soon("none", grace=0)
    await troupe.sup.stop_child("none")
    assert trio.current_time() == begin + 1
    await troupe.sup.stop_child("shorter")
    assert trio.current_time() == begin + 3
    await troupe.sup.stop_child("longer")
    assert trio.current_time() == begin + 10
    assert reasons == ["first", "first", "second"]


async def test_a_child_that_will_not_die_is_reported_stuck_and_joined_on(
    autojump_clock: Any, troupe: Any, bodies: Any
) -> None:
    rules = {"shutdown": Shutdown(grace=1, join=2)}
    ref = await troupe.sup.start(troupe.spec("a", bodies.refuses_to_die(100), **rules))
    events = troupe.sup.events()
    begin = trio.current_time()
    troupe.sup.stop_soon("a")
    await trio.sleep(2.9)
    assert troupe.sup.counts().stuck == 0
    await trio.sleep(0.2)
    stuck = Stuck("a", ref.generation, "stopping", 2)
    assert troupe.sup.tree().children[0].stuck == stuck
    assert troupe.sup.counts().stuck == 1
    assert str(stuck) == f"'a' (generation {ref.generation}) still runs 2 s after it was cancelled"
    await troupe.sup.stop_child("a")
    assert trio.current_time() == begin + 101
    kinds = []
    async for event in events:
        kinds.append(event.kind)
        if event.kind == "stuck":
            assert event.stuck == stuck
        if event.kind == "removed":
            break
    assert kinds == ["stop_asked", "cancelled", "stuck", "down", "removed"]


async def test_a_start_that_is_too_late_and_will_not_die_is_reported_stuck(
    autojump_clock: Any, troupe: Any, bodies: Any
) -> None:
    rules: dict[str, Any] = {"start_timeout": 1, "shutdown": Shutdown(join=2), "started": False}
    troupe.sup.start_soon(troupe.spec("a", bodies.refuses_to_die(100), **rules))
    await trio.sleep(3.1)
    stuck = troupe.sup.tree().children[0].stuck
    assert (stuck.stage, stuck.seconds) == ("starting", 2)
    assert troupe.most_alive == 1


async def test_a_stuck_child_holds_up_nobody_elses_stop(autojump_clock: Any, troupe: Any, bodies: Any) -> None:
    await troupe.sup.start(troupe.spec("stuck", bodies.refuses_to_die(1000)))
    for number in range(5):
        await troupe.sup.start(troupe.spec(str(number), bodies.stubborn, shutdown=Shutdown(grace=3)))
    begin = trio.current_time()
    troupe.sup.stop_soon("stuck", grace=0)
    async with trio.open_nursery() as nursery:
        for number in range(5):
            nursery.start_soon(troupe.sup.stop_child, str(number))
    assert trio.current_time() == begin + 3


async def test_stopping_all_goes_side_by_side(autojump_clock: Any, make_troupe: Any, bodies: Any) -> None:
    troupe = make_troupe()
    async with trio.open_nursery() as nursery:
        await nursery.start(troupe.sup.run)
        for number in range(10):
            await troupe.sup.start(troupe.spec(str(number), bodies.stubborn, shutdown=Shutdown(grace=3)))
        begin = trio.current_time()
        await troupe.sup.stop()
        assert trio.current_time() == begin + 3
    assert trio.current_time() == begin + 3


async def test_stopping_all_in_order_ends_one_group_before_the_next(
    autojump_clock: Any, make_troupe: Any, bodies: Any
) -> None:
    troupe = make_troupe()
    gone: list[tuple[str, float]] = []

    async def slow(ctx: Context) -> None:
        assert await ctx.wait_stop() == "closing"
        await trio.sleep(2)
        gone.append((ctx.name, trio.current_time() - begin))

    async with trio.open_nursery() as nursery:
        await nursery.start(troupe.sup.run)
        for name in ("last", "middle", "first1", "first2", "unnamed"):
            await troupe.sup.start(troupe.spec(name, slow))
        begin = trio.current_time()
        await troupe.sup.stop([["first1", "first2", "unknown"], ["middle"], ["last"]], stop_reason="closing")
    assert sorted(gone) == [("first1", 2), ("first2", 2), ("last", 6), ("middle", 4), ("unnamed", 2)]


async def test_a_child_of_a_later_group_that_dies_during_the_stop_is_not_restarted(
    autojump_clock: Any, make_troupe: Any, bodies: Any
) -> None:
    troupe = make_troupe()
    async with trio.open_nursery() as nursery:
        await nursery.start(troupe.sup.run)
        await troupe.sup.start(troupe.spec("first", bodies.stubborn))
        await troupe.sup.start(troupe.spec("later", bodies.dies_after(1)))
        await troupe.sup.stop([["first"], ["later"]])
    assert troupe.bodies == 2
    assert troupe.stages("later") == ["starting", "running", "removed"]


async def test_a_child_still_starting_is_stopped_before_it_has_started(
    autojump_clock: Any, troupe: Any, bodies: Any
) -> None:
    failures: list[str] = []

    async def start() -> None:
        with pytest.raises(StartFailed) as caught:
            await troupe.sup.start(troupe.spec("a", bodies.stubborn, started=False, start_timeout=100))
        failures.append(caught.value.reason)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(start)
        await trio.testing.wait_all_tasks_blocked()
        assert troupe.sup.states()["a"].stage == "starting"
        begin = trio.current_time()
        await troupe.sup.stop_child("a", grace=0)
        assert trio.current_time() == begin
    assert failures == ["stopped before it had started"]
    assert troupe.alive == {"a": 0}


async def test_an_acknowledgement_after_the_stop_message_does_not_make_it_running_again(
    autojump_clock: Any, troupe: Any
) -> None:
    async def late(ctx: Context) -> None:
        await ctx.wait_stop()
        ctx.started()
        await trio.sleep(1)

    troupe.sup.start_soon(troupe.spec("a", late, started=False))
    await trio.testing.wait_all_tasks_blocked()
    await troupe.sup.stop_child("a")
    assert troupe.stages("a") == ["starting", "stopping", "removed"]


async def test_a_start_that_was_not_spawned_yet_is_simply_dropped(
    autojump_clock: Any, troupe: Any, bodies: Any
) -> None:
    troupe.sup.start_soon(troupe.spec("a", bodies.until_stopped))
    troupe.sup.stop_soon("a")
    await trio.testing.wait_all_tasks_blocked()
    assert troupe.bodies == 0
    assert troupe.sup.states() == {}
    assert troupe.stages("a") == ["starting", "stopping", "removed"]


async def test_stopping_a_child_that_backs_off_removes_it_at_once(
    autojump_clock: Any, troupe: Any, bodies: Any
) -> None:
    ref = await troupe.sup.start(troupe.spec("a", bodies.dies_after(1), backoff=Backoff(20, jitter=0)))
    await ref.down.wait()
    begin = trio.current_time()
    await troupe.sup.stop_child("a")
    assert trio.current_time() == begin
    await trio.sleep(100)
    assert troupe.bodies == 1


async def test_stopping_a_stranger_is_nothing(autojump_clock: Any, troupe: Any) -> None:
    troupe.sup.stop_soon("nobody")
    with trio.testing.assert_checkpoints():
        await troupe.sup.stop_child("nobody")


async def test_after_the_stop_nothing_is_started_and_asks_end(
    autojump_clock: Any, make_troupe: Any, bodies: Any
) -> None:
    troupe = make_troupe()
    sup = troupe.sup
    refused = 0
    async with trio.open_nursery() as nursery:
        await nursery.start(sup.run)
        ref = await sup.start(troupe.spec("a", bodies.stubborn))
        nursery.start_soon(sup.stop)
        await trio.testing.wait_all_tasks_blocked()
        spec = troupe.spec("b", bodies.until_stopped)
        for refuse in (
            lambda: sup.start_soon(spec),
            lambda: sup.replace_soon(spec),
            lambda: sup.restart_soon("a"),
            lambda: sup.revive("a"),
        ):
            with pytest.raises(trio.ClosedResourceError):
                refuse()
            refused += 1
        with pytest.raises(ActorDown, match="stopped"):
            await ref.ask("anything", timeout=100)
    assert refused == 4
    with pytest.raises(trio.ClosedResourceError):
        await sup.start(spec)
    with pytest.raises(trio.ClosedResourceError):
        await sup.up("a")
    sup.stop_soon("a")
    await sup.stop()
    assert (sup.states(), sup.keys(), sup.ref("a")) == ({}, {}, None)


async def test_up_ends_when_the_supervisor_does(autojump_clock: Any, make_troupe: Any, bodies: Any) -> None:
    troupe = make_troupe()
    ended: list[bool] = []

    async def wait_up() -> None:
        with pytest.raises((trio.ClosedResourceError, KeyError)):
            await troupe.sup.up("a")
        ended.append(True)

    async with trio.open_nursery() as nursery:
        await nursery.start(troupe.sup.run)
        park = Intensity(restarts=0, then="park", park_retry=None)
        ref = await troupe.sup.start(troupe.spec("a", bodies.dies_after(1), intensity=park))
        await ref.down.wait()
        nursery.start_soon(wait_up)
        await trio.testing.wait_all_tasks_blocked()
        await troupe.sup.stop()
    assert ended == [True]


async def test_a_supervisor_stopped_before_it_ran_runs_nothing(
    autojump_clock: Any, make_troupe: Any, bodies: Any
) -> None:
    troupe = make_troupe()
    troupe.sup.start_soon(troupe.spec("a", bodies.until_stopped))
    await troupe.sup.stop()
    with pytest.raises(trio.ClosedResourceError):
        await troupe.sup.run()
    assert troupe.bodies == 0
    assert troupe.stages("a") == ["starting", "removed"]


async def test_a_supervisor_aborted_before_it_ran_runs_nothing(
    autojump_clock: Any, make_troupe: Any, bodies: Any
) -> None:
    troupe = make_troupe()
    troupe.sup.start_soon(troupe.spec("a", bodies.until_stopped))
    troupe.sup.abort()
    await troupe.sup.stop()
    assert (troupe.bodies, troupe.sup.states()) == (0, {})


async def test_a_supervisor_runs_only_once(autojump_clock: Any, troupe: Any) -> None:
    with pytest.raises(RuntimeError, match="only once"):
        await troupe.sup.run()
