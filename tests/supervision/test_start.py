"""Starts: acknowledged or failed, by a deadline, and never in another's way."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing
from playbill.supervision import Context, Intensity, StartFailed


async def never(ctx: Context) -> None:
    await trio.sleep_forever()


async def test_start_returns_once_the_body_acknowledges(autojump_clock: Any, troupe: Any) -> None:
    async def slow(ctx: Context) -> None:
        await trio.sleep(3)
        ctx.started()
        await trio.sleep_forever()

    begin = trio.current_time()
    ref = await troupe.sup.start(troupe.spec("a", slow, started=False))
    assert trio.current_time() == begin + 3
    assert troupe.sup.ref("a") is ref
    assert troupe.stages("a") == ["starting", "running"]


@pytest.mark.parametrize(
    ("body", "rules", "reason"),
    [
        ("raises", {}, "ValueError: no"),
        ("returns", {}, "it returned before it had started"),
        ("hangs", {"start_timeout": 2.5}, "not started within 2.5 s"),
    ],
)
async def test_a_failed_start_says_why_and_leaves_no_child(
    autojump_clock: Any, troupe: Any, body: str, rules: dict[str, Any], reason: str
) -> None:
    async def run(ctx: Context) -> None:
        if body == "raises":
            raise ValueError("no")
        if body == "hangs":
            await trio.sleep_forever()

    with pytest.raises(StartFailed) as caught:
        await troupe.sup.start(troupe.spec("a", run, started=False, **rules))
    assert (caught.value.name, caught.value.reason) == ("a", reason)
    await trio.sleep(1000)
    assert troupe.bodies == 1
    assert troupe.sup.states() == {}


async def test_starts_own_timeout_bounds_all_of_it(autojump_clock: Any, troupe: Any) -> None:
    begin = trio.current_time()
    with pytest.raises(StartFailed, match="not started within 1 s"):
        await troupe.sup.start(troupe.spec("a", never, started=False), timeout=1)
    assert trio.current_time() == begin + 1
    await trio.testing.wait_all_tasks_blocked()
    assert troupe.sup.states() == {}


async def test_a_cancelled_start_takes_its_child_with_it(autojump_clock: Any, troupe: Any) -> None:
    with trio.move_on_after(1) as scope:
        await troupe.sup.start(troupe.spec("a", never, started=False))
    assert scope.cancelled_caught
    await trio.testing.wait_all_tasks_blocked()
    assert troupe.sup.states() == {}
    assert troupe.alive == {"a": 0}


async def test_a_child_that_does_not_start_in_time_is_restarted_by_its_rules(autojump_clock: Any, troupe: Any) -> None:
    park = Intensity(restarts=1, window=60, then="park", park_retry=None)
    troupe.sup.start_soon(troupe.spec("a", never, started=False, start_timeout=5, intensity=park))
    await trio.sleep(11)
    state = troupe.sup.states()["a"]
    assert (state.stage, state.reason) == ("parked", "not started within 5 s")
    assert troupe.bodies == 2


async def test_an_acknowledgement_in_time_lifts_the_start_deadline(
    autojump_clock: Any, troupe: Any, bodies: Any
) -> None:
    ref = await troupe.sup.start(troupe.spec("a", bodies.until_stopped, start_timeout=1))
    await trio.sleep(100)
    assert not ref.down.is_set()


async def test_an_acknowledgement_after_the_deadline_comes_too_late(autojump_clock: Any, troupe: Any) -> None:
    async def late(ctx: Context) -> None:
        try:
            await trio.sleep_forever()
        finally:
            ctx.started()

    park = Intensity(restarts=0, then="park", park_retry=None)
    troupe.sup.start_soon(troupe.spec("a", late, started=False, start_timeout=1, intensity=park))
    await trio.sleep(2)
    assert troupe.stages("a") == ["starting", "parked"]


async def test_one_hanging_start_delays_no_other(autojump_clock: Any, troupe: Any, bodies: Any) -> None:
    begin = trio.current_time()
    troupe.sup.start_soon(troupe.spec("hangs", never, started=False, start_timeout=1000))
    for number in range(8):
        await troupe.sup.start(troupe.spec(str(number), bodies.until_stopped))
    assert trio.current_time() == begin
    assert troupe.sup.counts().running == 8
    assert troupe.sup.counts().starting == 1


async def test_a_name_that_is_taken_is_refused(autojump_clock: Any, troupe: Any, bodies: Any) -> None:
    troupe.sup.start_soon(troupe.spec("a", bodies.until_stopped))
    with pytest.raises(ValueError, match="a child named 'a' already"):
        troupe.sup.start_soon(troupe.spec("a", bodies.until_stopped))
    await troupe.sup.up("a")
    with pytest.raises(ValueError, match="already"):
        await troupe.sup.start(troupe.spec("a", bodies.until_stopped))


async def test_children_started_before_the_supervisor_runs_are_kept_for_it(
    autojump_clock: Any, make_troupe: Any, bodies: Any
) -> None:
    troupe = make_troupe()
    sup = troupe.sup
    sup.start_soon(troupe.spec("a", bodies.until_stopped))
    sup.start_soon(troupe.spec("b", bodies.until_stopped))
    sup.start_soon(troupe.spec("c", bodies.until_stopped))
    sup.replace_soon(troupe.spec("b", bodies.until_stopped, key="new"))
    sup.stop_soon("c")
    assert sup.keys() == {"a": None, "b": "new"}
    async with trio.open_nursery() as nursery:
        await nursery.start(sup.run)
        await sup.up("a")
        await sup.up("b")
        assert troupe.bodies == 2
        await sup.stop()


async def test_up_waits_through_a_restart_and_fails_when_the_child_is_removed(
    autojump_clock: Any, troupe: Any, bodies: Any
) -> None:
    first = await troupe.sup.start(troupe.spec("a", bodies.dies_after(1)))
    await first.down.wait()
    with trio.testing.assert_checkpoints():
        second = await troupe.sup.up("a")
    assert second is troupe.sup.ref("a") is not first
    await second.down.wait()
    failed: list[str] = []

    async def wait_up() -> None:
        with pytest.raises(KeyError):
            await troupe.sup.up("a")
        failed.append("a")

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wait_up)
        await trio.testing.wait_all_tasks_blocked()
        troupe.sup.stop_soon("a")
    assert failed == ["a"]
