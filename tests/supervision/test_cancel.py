"""Cancellation from outside: ordinary, for everyone at once, and no exit to react to; or shielded, for an ordered stop."""

from __future__ import annotations

from functools import partial
from typing import Any

import pytest
import trio
import trio.testing
from playbill.supervision import ActorDown, Backoff, Context, Escalated, Intensity, Shutdown


async def test_outside_cancellation_reaches_every_child_and_restarts_none(
    autojump_clock: Any, make_troupe: Any, bodies: Any
) -> None:
    troupe = make_troupe()
    asks: list[str] = []
    begin = trio.current_time()

    async def ask(ref: Any) -> None:
        with pytest.raises(ActorDown) as caught:
            await ref.ask("anything", timeout=100)
        asks.append(caught.value.reason)

    async with trio.open_nursery() as outside, trio.open_nursery() as nursery:
        await nursery.start(troupe.sup.run)
        for name in "abc":
            outside.start_soon(ask, await troupe.sup.start(troupe.spec(name, bodies.stubborn)))
        ref = await troupe.sup.start(troupe.spec("dead", bodies.dies_after(0), backoff=Backoff(20)))
        await ref.down.wait()
        await trio.testing.wait_all_tasks_blocked()
        nursery.cancel_scope.cancel()
    assert trio.current_time() == begin
    assert asks == ["cancelled from outside"] * 3
    assert troupe.bodies == 4
    assert troupe.sup.states() == {}
    assert [troupe.stages(name)[-1] for name in ("a", "b", "c", "dead")] == ["removed"] * 4
    with pytest.raises(trio.ClosedResourceError):
        await troupe.sup.up("a")


async def test_a_death_by_outside_cancellation_is_told_like_any_other(
    autojump_clock: Any, make_troupe: Any, bodies: Any
) -> None:
    troupe = make_troupe()
    async with trio.open_nursery() as nursery:
        await nursery.start(troupe.sup.run)
        await troupe.sup.start(troupe.spec("a", bodies.stubborn))
        events = troupe.sup.events()
        nursery.cancel_scope.cancel()
    told = [(event.kind, event.detail) async for event in events]
    assert told == [("down", "cancelled from outside"), ("removed", "")]


async def test_a_body_that_makes_an_error_of_the_cancellation_causes_no_restart_and_no_escalation(
    autojump_clock: Any, make_troupe: Any
) -> None:
    troupe = make_troupe()

    async def converts(ctx: Context) -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise OSError("the library wrapped it")

    async def swallows(ctx: Context) -> None:
        with trio.move_on_after(1):
            await trio.sleep_forever()
        try:
            await trio.sleep_forever()
        except trio.Cancelled:
            return

    async with trio.open_nursery() as nursery:
        await nursery.start(troupe.sup.run)
        intensity = Intensity(restarts=0, then="escalate")
        first = await troupe.sup.start(troupe.spec("converts", converts, intensity=intensity))
        second = await troupe.sup.start(troupe.spec("swallows", swallows, intensity=intensity))
        await trio.sleep(5)
        nursery.cancel_scope.cancel()
    assert first.down.reason == "OSError: the library wrapped it"
    assert second.down.reason == "cancelled from outside"
    assert troupe.stages("converts") == ["starting", "running", "removed"]
    assert troupe.stages("swallows") == ["starting", "running", "removed"]


async def test_cancelling_a_stop_and_calling_it_again_does_not_disturb_it(
    autojump_clock: Any, make_troupe: Any, bodies: Any
) -> None:
    troupe = make_troupe()
    async with trio.open_nursery() as nursery:
        await nursery.start(troupe.sup.run)
        await troupe.sup.start(troupe.spec("a", bodies.stubborn))
        begin = trio.current_time()
        with trio.move_on_after(1):
            await troupe.sup.stop()
        await troupe.sup.stop()
        assert trio.current_time() == begin + 5


async def test_a_shielded_supervisor_is_stopped_in_order_although_all_around_it_is_cancelled(
    autojump_clock: Any, make_troupe: Any
) -> None:
    """The way a host does it: the caller's scope is cancelled, its ``finally`` stops the supervisor shielded."""
    troupe = make_troupe()
    gone: list[tuple[str, float]] = []

    async def closes(ctx: Context) -> None:
        await ctx.wait_stop()
        await trio.sleep(2)
        gone.append((ctx.name, trio.current_time() - begin))

    with trio.move_on_after(1) as scope:
        async with trio.open_nursery() as nursery:
            await nursery.start(partial(troupe.sup.run, shielded=True))
            await troupe.sup.start(troupe.spec("server", closes))
            await troupe.sup.start(troupe.spec("projector", closes))
            try:
                await trio.sleep_forever()
            finally:
                begin = trio.current_time()
                with trio.CancelScope(shield=True):
                    await troupe.sup.stop([["server"], ["projector"]])
    assert scope.cancelled_caught
    assert gone == [("server", 2), ("projector", 4)]


async def test_a_stop_that_has_begun_is_not_cut_short_by_a_later_cancellation(
    autojump_clock: Any, make_troupe: Any
) -> None:
    troupe = make_troupe()
    gone: list[float] = []

    async def closes(ctx: Context) -> None:
        await ctx.wait_stop()
        await trio.sleep(4)
        gone.append(trio.current_time() - begin)

    async with trio.open_nursery() as nursery:
        await nursery.start(troupe.sup.run)
        await troupe.sup.start(troupe.spec("a", closes))
        begin = trio.current_time()
        nursery.start_soon(troupe.sup.stop)
        await trio.sleep(1)
        nursery.cancel_scope.cancel()
    assert gone == [4]


async def test_abort_ends_everything_now(autojump_clock: Any, make_troupe: Any, bodies: Any) -> None:
    troupe = make_troupe()
    async with trio.open_nursery() as nursery:
        await nursery.start(partial(troupe.sup.run, shielded=True))
        rules = {"shutdown": Shutdown(grace=100)}
        ref = await troupe.sup.start(troupe.spec("a", bodies.stubborn, **rules))
        nursery.start_soon(troupe.sup.stop)
        await trio.sleep(1)
        begin = trio.current_time()
        troupe.sup.abort()
    assert trio.current_time() == begin
    assert ref.down.is_set()
    assert troupe.sup.states() == {}


async def test_the_ordered_stop_of_an_escalation_survives_a_later_cancellation(
    autojump_clock: Any, make_troupe: Any, bodies: Any
) -> None:
    troupe = make_troupe()
    closed: list[bool] = []

    async def closes(ctx: Context) -> None:
        await ctx.wait_stop()
        await trio.sleep(4)
        closed.append(True)

    escalated: list[str] = []

    async def conduct(task_status: Any) -> None:
        try:
            await troupe.sup.run(task_status=task_status)
        except Escalated as error:
            escalated.append(error.name)

    async with trio.open_nursery() as nursery:
        await nursery.start(conduct)
        await troupe.sup.start(troupe.spec("other", closes))
        core = await troupe.sup.start(troupe.spec("core", bodies.dies_after(1), intensity=Intensity(restarts=0)))
        await core.down.wait()
        await trio.sleep(1)
        nursery.cancel_scope.cancel()
    assert (closed, escalated) == ([True], ["core"])
