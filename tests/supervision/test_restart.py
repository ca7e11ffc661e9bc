"""Deaths: restarts by type, backoff, proven health, parking, revival, escalation."""

from __future__ import annotations

import itertools
import random
from typing import Any

import pytest
import trio
from playbill.supervision import Backoff, Context, Escalated, Intensity, Restart, Supervisor


@pytest.mark.parametrize(
    ("restart", "raises", "restarted"),
    [
        (Restart.PERMANENT, True, True),
        (Restart.PERMANENT, False, True),
        (Restart.TRANSIENT, True, True),
        (Restart.TRANSIENT, False, False),
        (Restart.TEMPORARY, True, False),
        (Restart.TEMPORARY, False, False),
    ],
)
async def test_a_child_is_restarted_by_its_type(
    autojump_clock: Any, troupe: Any, restart: Restart, raises: bool, restarted: bool
) -> None:
    async def end_once(ctx: Context) -> None:
        if troupe.bodies > 1:
            await trio.sleep_forever()
        if raises:
            raise RuntimeError("boom")

    troupe.sup.start_soon(troupe.spec("a", end_once, restart=restart))
    await trio.sleep(5)
    assert troupe.bodies == (2 if restarted else 1)
    assert ("a" in troupe.sup.states()) is restarted
    if not restarted:
        with pytest.raises(KeyError):
            await troupe.sup.up("a")


async def test_deaths_in_a_row_are_answered_later_and_later(autojump_clock: Any, troupe: Any) -> None:
    starts: list[float] = []

    async def die(ctx: Context) -> None:
        starts.append(trio.current_time())
        raise RuntimeError("boom")

    limits = Intensity(restarts=100, window=1000)
    troupe.sup.start_soon(troupe.spec("a", die, backoff=Backoff(0.5, 8, 0), intensity=limits))
    await trio.sleep(35)
    waits = [round(after - before, 6) for before, after in itertools.pairwise(starts)]
    assert waits == [0.5, 1, 2, 4, 8, 8, 8]


async def test_jitter_is_drawn_from_the_injected_random(autojump_clock: Any, bodies: Any, make_troupe: Any) -> None:
    troupe = make_troupe()
    async with trio.open_nursery() as nursery:
        await nursery.start(troupe.sup.run)
        ref = await troupe.sup.start(troupe.spec("a", bodies.dies_after(1), backoff=Backoff(jitter=0.5)))
        await ref.down.wait()
        state = troupe.sup.states()["a"]
        expected = Backoff(jitter=0.5).delay(0, random.Random(7))
        assert state.next_retry_at == pytest.approx(trio.current_time() + expected)
        await troupe.sup.stop()


async def test_a_child_that_starts_and_dies_is_not_healthy_and_backs_off(
    autojump_clock: Any, troupe: Any, bodies: Any
) -> None:
    limits = Intensity(restarts=1000, window=1e6)
    rules = {"backoff": Backoff(1, 64, 0, reset_after=30), "intensity": limits}
    troupe.sup.start_soon(troupe.spec("a", bodies.dies_after(40), **rules))
    troupe.sup.start_soon(troupe.spec("b", bodies.dies_after(29, healthy=True), **rules))
    troupe.sup.start_soon(troupe.spec("c", bodies.dies_after(31, healthy=True), **rules))
    await trio.sleep(400)
    restarts = {name: state.restarts for name, state in troupe.sup.states().items()}
    waits: dict[str, float] = {}
    for state in troupe.states:
        if state.stage == "backing_off":
            waits[state.name] = state.next_retry_at - state.since
    assert waits == {"a": 64, "b": 64, "c": 1}
    assert restarts["c"] == 1 < restarts["a"] < restarts["b"]


async def test_health_that_was_proven_is_not_undone_by_the_trouble_before_the_death(
    autojump_clock: Any, troupe: Any
) -> None:
    async def ill_then_dead(ctx: Context) -> None:
        ctx.healthy()
        await trio.sleep(31)
        ctx.unhealthy()
        await trio.sleep(5)
        raise RuntimeError("boom")

    troupe.sup.start_soon(troupe.spec("a", ill_then_dead))
    await trio.sleep(36 + 0.5 + 36 + 0.1)
    state = troupe.sup.states()["a"]
    assert (state.stage, state.restarts, state.next_retry_at - state.since) == ("backing_off", 0, 0.5)


async def test_saying_healthy_again_does_not_prolong_the_proof(autojump_clock: Any, troupe: Any) -> None:
    async def repeats_itself(ctx: Context) -> None:
        for _ in range(31):
            ctx.healthy()
            await trio.sleep(1)
        raise RuntimeError("boom")

    troupe.sup.start_soon(troupe.spec("a", repeats_itself))
    await trio.sleep(31 + 0.5 + 31 + 0.1)
    assert troupe.sup.states()["a"].attempt == (1, 5)


async def test_one_flapping_child_takes_no_other_over_its_limit(autojump_clock: Any, troupe: Any, bodies: Any) -> None:
    park = Intensity(restarts=2, window=60, then="park", park_retry=None)
    troupe.sup.start_soon(troupe.spec("flaps", bodies.dies_after(0.1), intensity=park))
    for number in range(3):
        troupe.sup.start_soon(troupe.spec(f"ill{number}", bodies.dies_after(10), intensity=park))
    quiet = await troupe.sup.start(troupe.spec("quiet", bodies.until_stopped, intensity=park))
    await trio.sleep(15)
    states = troupe.sup.states()
    assert states["flaps"].stage == "parked"
    assert [states[f"ill{number}"].restarts for number in range(3)] == [1, 1, 1]
    assert not quiet.down.is_set()


async def test_a_parked_child_is_visible_and_retried_slowly_one_try_at_a_time(autojump_clock: Any, troupe: Any) -> None:
    starts: list[float] = []

    async def die(ctx: Context) -> None:
        starts.append(trio.current_time())
        raise RuntimeError(f"death {len(starts)}")

    park = Intensity(restarts=2, window=60, then="park", park_retry=300)
    troupe.sup.start_soon(troupe.spec("a", die, intensity=park))
    await trio.sleep(10)
    state = troupe.sup.states()["a"]
    assert (state.stage, state.reason, state.attempt) == ("parked", "RuntimeError: death 3", None)
    assert state.next_retry_at == starts[-1] + 300
    assert troupe.sup.counts().parked == 1
    await trio.sleep(1000)
    assert [round(at - starts[2], 6) for at in starts[3:]] == [300, 600, 900]
    assert troupe.sup.states()["a"].restarts == 5


async def test_a_parked_child_whose_retry_proves_healthy_starts_afresh(autojump_clock: Any, troupe: Any) -> None:
    async def recovers(ctx: Context) -> None:
        if troupe.bodies < 3:
            raise RuntimeError("boom")
        ctx.healthy()
        await trio.sleep(100)
        raise RuntimeError("much later")

    park = Intensity(restarts=1, window=60, then="park", park_retry=300)
    troupe.sup.start_soon(troupe.spec("a", recovers, intensity=park))
    await trio.sleep(350)
    assert troupe.sup.states()["a"].stage == "running"
    await troupe.stage("a", "backing_off")
    assert troupe.sup.states()["a"].attempt == (1, 1)


@pytest.mark.parametrize("stage", ["parked", "backing_off"])
async def test_revive_starts_now_with_a_cleared_history(
    autojump_clock: Any, troupe: Any, bodies: Any, stage: str
) -> None:
    park = Intensity(restarts=0 if stage == "parked" else 3, window=60, then="park", park_retry=None)
    troupe.sup.start_soon(troupe.spec("a", bodies.dies_after(1), intensity=park, backoff=Backoff(20, jitter=0)))
    await troupe.stage("a", stage)
    before = trio.current_time()
    troupe.sup.revive("a")
    assert troupe.sup.states()["a"].stage == "starting"
    await troupe.sup.up("a")
    state = troupe.sup.states()["a"]
    assert trio.current_time() == before
    assert (state.stage, state.restarts, state.first, state.reason) == ("running", 0, True, None)


async def test_revive_leaves_a_running_child_alone_and_knows_no_strangers(
    autojump_clock: Any, troupe: Any, bodies: Any
) -> None:
    ref = await troupe.sup.start(troupe.spec("a", bodies.until_stopped))
    troupe.sup.revive("a")
    await trio.sleep(10)
    assert await ref.ask(1, timeout=1) == 1
    for unknown in (troupe.sup.revive, troupe.sup.restart_soon):
        with pytest.raises(KeyError):
            unknown("nobody")


async def test_a_parked_child_can_be_stopped_and_replaced_at_once(
    autojump_clock: Any, troupe: Any, bodies: Any
) -> None:
    park = Intensity(restarts=0, then="park", park_retry=None)
    for name in ("a", "b"):
        troupe.sup.start_soon(troupe.spec(name, bodies.dies_after(1), intensity=park))
    await troupe.stage("b", "parked")
    now = trio.current_time()
    await troupe.sup.stop_child("a")
    troupe.sup.replace_soon(troupe.spec("b", bodies.until_stopped))
    await troupe.sup.up("b")
    assert trio.current_time() == now
    state = troupe.sup.states()
    assert set(state) == {"b"}
    assert (state["b"].first, state["b"].restarts) == (True, 0)


async def test_a_core_child_over_its_limit_escalates_alone_after_the_others_were_stopped(
    autojump_clock: Any, make_troupe: Any, bodies: Any
) -> None:
    troupe = make_troupe()
    told: list[Any] = []

    async def closes_in_order(ctx: Context) -> None:
        told.append(await ctx.wait_stop())
        await trio.sleep(1)
        told.append("closed")

    troupe.sup.start_soon(troupe.spec("other", closes_in_order))
    troupe.sup.start_soon(
        troupe.spec("core", bodies.dies_after(1), intensity=Intensity(restarts=2, window=60, then="escalate"))
    )
    with pytest.raises(Escalated, match="'core' died too often: RuntimeError: boom") as caught:
        await troupe.sup.run()
    assert (caught.value.name, caught.value.reason) == ("core", "RuntimeError: boom")
    assert told == [caught.value, "closed"]
    assert troupe.bodies == 4
    assert troupe.alive == {"core": 0, "other": 0}


async def test_restarts_in_total_outlive_the_children(autojump_clock: Any, troupe: Any, bodies: Any) -> None:
    troupe.sup.start_soon(troupe.spec("a", bodies.dies_after(1), intensity=Intensity(restarts=1000)))
    await troupe.stage("a", "running")
    await trio.sleep(5)
    restarts = troupe.sup.states()["a"].restarts
    assert restarts == troupe.bodies - 1 > 0
    await troupe.sup.stop_child("a")
    assert troupe.sup.counts().restarts_total == restarts


async def test_generations_grow_and_are_unique_in_the_process(autojump_clock: Any, troupe: Any, bodies: Any) -> None:
    other = Supervisor()
    seen: list[int] = []
    async with trio.open_nursery() as nursery:
        await nursery.start(other.run)
        for turn in range(6):
            sup = (troupe.sup, other)[turn % 2]
            seen.append((await sup.start(troupe.spec(str(turn), bodies.until_stopped))).generation)
        await other.stop()
    assert seen == sorted(set(seen))
