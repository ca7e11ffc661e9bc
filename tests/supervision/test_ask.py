"""Asks: every one ends exactly once, by its deadline, and at the death instant when its actor dies."""

from __future__ import annotations

import math
from typing import Any

import pytest
import trio
import trio.testing
from playbill.supervision import ActorDown, Ask, Context, MailboxFull, Ref


async def test_an_ask_gets_its_reply(autojump_clock: Any, troupe: Any, bodies: Any) -> None:
    ref = await troupe.sup.start(troupe.spec("a", bodies.until_stopped))
    assert await ref.ask("hello", timeout=1) == "hello"


async def test_an_ask_raises_what_the_actor_failed_it_with(autojump_clock: Any, troupe: Any) -> None:
    async def refuse(ctx: Context) -> None:
        async for item in ctx.mail():
            assert item.fail(LookupError("no such thing"))

    ref = await troupe.sup.start(troupe.spec("a", refuse))
    with pytest.raises(LookupError, match="no such thing"):
        await ref.ask("hello", timeout=1)


async def test_asks_in_flight_buffered_and_in_the_control_lane_all_end_at_the_death_instant(
    autojump_clock: Any, troupe: Any
) -> None:
    """The actor takes one ask, then is busy elsewhere for 10 s and dies; nobody waits for a deadline, or longer."""

    async def busy(ctx: Context) -> None:
        await ctx.mailbox.receive()
        await trio.sleep(10)
        raise RuntimeError("boom")

    ref: Ref = await troupe.sup.start(troupe.spec("a", busy))
    ended: list[tuple[str, float, str]] = []

    async def ask(what: str, control: bool) -> None:
        with pytest.raises(ActorDown) as caught:
            await ref.ask(what, timeout=1000, control=control)
        ended.append((what, trio.current_time(), str(caught.value)))

    start = trio.current_time()
    async with trio.open_nursery() as nursery:
        for what in ("in flight", "buffered", "control"):
            nursery.start_soon(ask, what, what == "control")
            await trio.testing.wait_all_tasks_blocked()
    line = f"actor 'a' (generation {ref.generation}) is down: RuntimeError: boom"
    assert sorted(ended) == [(what, start + 10, line) for what in ("buffered", "control", "in flight")]
    assert ref.down.is_set()
    assert ref.down.reason == "RuntimeError: boom"


async def test_when_an_ask_ends_with_actor_down_the_supervisor_already_knows_of_the_death(
    autojump_clock: Any, troupe: Any, bodies: Any
) -> None:
    """So a caller that asks again through `up` waits for the successor, and does not meet the dead one again."""
    ref = await troupe.sup.start(troupe.spec("a", bodies.dies_after(1)))
    with pytest.raises(ActorDown):
        await ref.ask("hello", timeout=5)
    assert troupe.sup.states()["a"].stage == "backing_off"
    assert troupe.sup.ref("a") is None
    assert (await troupe.sup.up("a")).generation > ref.generation


async def test_a_message_to_the_dead_is_an_error_at_once(autojump_clock: Any, troupe: Any, bodies: Any) -> None:
    ref = await troupe.sup.start(troupe.spec("a", bodies.until_stopped))
    await troupe.sup.stop_child("a")
    for say in (ref.tell, ref.control):
        with pytest.raises(ActorDown, match="is down: stopped"):
            say("hello")
    with pytest.raises(ActorDown):
        await ref.ask("hello", timeout=1)


async def test_a_reference_never_reaches_a_successor(autojump_clock: Any, troupe: Any, bodies: Any) -> None:
    first = await troupe.sup.start(troupe.spec("a", bodies.until_stopped))
    troupe.sup.restart_soon("a")
    second = await troupe.sup.up("a")
    assert await second.ask(1, timeout=1) == 1
    with pytest.raises(ActorDown):
        await first.ask(1, timeout=1)


async def test_an_ask_ends_at_its_deadline_and_is_abandoned(autojump_clock: Any, troupe: Any) -> None:
    taken: list[Ask] = []

    async def silent(ctx: Context) -> None:
        async for item in ctx.mail():
            taken.append(item)

    ref = await troupe.sup.start(troupe.spec("a", silent))
    start = trio.current_time()
    with pytest.raises(trio.TooSlowError, match="'a' did not answer within 3 s"):
        await ref.ask("hello", timeout=3)
    assert trio.current_time() == start + 3
    assert taken[0].abandoned
    assert not taken[0].reply("late")
    assert troupe.sup.tree().children[0].asks == 0


async def test_a_cancelled_caller_abandons_its_ask(autojump_clock: Any, troupe: Any) -> None:
    taken: list[Ask] = []

    async def silent(ctx: Context) -> None:
        async for item in ctx.mail():
            taken.append(item)

    ref = await troupe.sup.start(troupe.spec("a", silent))
    with trio.move_on_after(1):
        await ref.ask("hello", timeout=100)
    assert taken[0].abandoned
    assert not taken[0].fail(ValueError())


async def test_a_reply_at_the_very_deadline_that_was_accepted_is_delivered(autojump_clock: Any, troupe: Any) -> None:
    accepted: list[bool] = []

    async def late(ctx: Context) -> None:
        async for item in ctx.mail():
            await trio.sleep(5)
            accepted.append(item.reply("just"))

    ref = await troupe.sup.start(troupe.spec("a", late))
    got: Any = None
    try:
        got = await ref.ask("hello", timeout=5)
    except trio.TooSlowError:
        await trio.testing.wait_all_tasks_blocked()
    assert accepted == [got == "just"]


async def test_only_the_first_answer_counts(autojump_clock: Any, troupe: Any) -> None:
    async def twice(ctx: Context) -> None:
        async for item in ctx.mail():
            assert item.reply(1)
            assert not item.reply(2)
            assert not item.fail(ValueError())

    ref = await troupe.sup.start(troupe.spec("a", twice))
    assert await ref.ask("hello", timeout=1) == 1


@pytest.mark.parametrize("timeout", [math.inf, math.nan, -1])
async def test_an_ask_without_a_finite_deadline_is_refused(
    autojump_clock: Any, troupe: Any, bodies: Any, timeout: float
) -> None:
    ref = await troupe.sup.start(troupe.spec("a", bodies.until_stopped))
    with pytest.raises(ValueError, match="finite"):
        await ref.ask("hello", timeout=timeout)


async def test_a_full_mailbox_refuses_tells_and_asks_but_not_control(
    autojump_clock: Any, troupe: Any, bodies: Any
) -> None:
    ref = await troupe.sup.start(troupe.spec("a", bodies.stubborn, mailbox=1))
    ref.tell("one")
    with pytest.raises(MailboxFull):
        ref.tell("two")
    with pytest.raises(MailboxFull):
        await ref.ask("two", timeout=1)
    ref.control("three")
    node = troupe.sup.tree().children[0]
    assert (node.mailbox.waiting, node.mailbox.control, node.mailbox.refused, node.asks) == (1, 1, 2, 0)


async def test_asking_is_a_checkpoint(autojump_clock: Any, troupe: Any, bodies: Any) -> None:
    ref = await troupe.sup.start(troupe.spec("a", bodies.until_stopped))
    with trio.testing.assert_checkpoints():
        await ref.ask("hello", timeout=1)
    with trio.CancelScope() as scope:
        scope.cancel()
        await ref.ask("hello", timeout=1)
    assert scope.cancelled_caught
    assert troupe.sup.tree().children[0].mailbox.waiting == 0
