"""The actor boundary: every way of ending becomes one line, and what is not ours to catch passes through."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing
from playbill.supervision import Context, Restart, Supervisor
from playbill.supervision.errors import reason_of


class Reasoned(Exception):
    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__("something much longer")


class Unprintable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no")


@pytest.mark.parametrize(
    ("error", "line"),
    [
        (ValueError("bad"), "ValueError: bad"),
        (ValueError(), "ValueError"),
        (ValueError("two\n  lines"), "ValueError: two lines"),
        (Reasoned("the server left"), "the server left"),
        (UnicodeDecodeError("utf-8", b"\xff", 0, 1, "bad"), "UnicodeDecodeError: 'utf-8' codec can't decode byte"),
        (Unprintable(), "Unprintable: (its message cannot be printed)"),
        (ValueError("x" * 10_000), "ValueError: xxxxx"),
    ],
)
def test_a_reason_is_one_short_line(error: Exception, line: str) -> None:
    reason = reason_of(error)
    assert reason.startswith(line)
    assert "\n" not in reason
    assert len(reason) <= 500


async def reason_of_a_body(troupe: Any, then: Any) -> str | None:
    ref = await troupe.sup.start(troupe.spec("a", then, restart=Restart.TEMPORARY))
    return await ref.down.wait()


async def test_groups_are_flattened_to_their_leaves(autojump_clock: Any, troupe: Any) -> None:
    async def fail(kind: type[Exception]) -> None:
        raise kind("boom")

    async def nested(ctx: Context) -> None:
        async with trio.open_nursery() as outer:
            outer.start_soon(fail, ValueError)
            async with trio.open_nursery() as inner:
                inner.start_soon(fail, KeyError)
                inner.start_soon(fail, KeyError)

    reason = await reason_of_a_body(troupe, nested)
    assert reason is not None
    assert sorted(reason.split("; ")) == ["KeyError: 'boom'", "ValueError: boom"]


async def test_a_return_is_a_reason_too(autojump_clock: Any, troupe: Any) -> None:
    async def leave(ctx: Context) -> None:
        await trio.sleep(1)

    assert await reason_of_a_body(troupe, leave) == "returned"


async def test_an_error_during_a_stop_is_a_stop_but_its_reason_is_kept(autojump_clock: Any, troupe: Any) -> None:
    async def fails_to_close(ctx: Context) -> None:
        await ctx.wait_stop()
        raise OSError("the pipe broke")

    ref = await troupe.sup.start(troupe.spec("a", fails_to_close))
    await troupe.sup.stop_child("a")
    assert ref.down.reason == "OSError: the pipe broke"
    assert troupe.stages("a") == ["starting", "running", "stopping", "removed"]


async def test_an_error_next_to_a_cancellation_is_not_lost_in_it(autojump_clock: Any, troupe: Any) -> None:
    """A body with a nursery: cancelled by the stop, one task raises, the others are cancelled."""

    async def fail_when_cancelled() -> None:
        try:
            await trio.sleep_forever()
        finally:
            raise ValueError("while closing")

    async def both(ctx: Context) -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(fail_when_cancelled)
            nursery.start_soon(trio.sleep_forever)

    ref = await troupe.sup.start(troupe.spec("a", both))
    await troupe.sup.stop_child("a", grace=0)
    assert ref.down.reason == "ValueError: while closing"


@pytest.mark.parametrize("kind", [KeyboardInterrupt, SystemExit])
async def test_what_is_not_an_exception_leaves_the_supervisor_alone(
    autojump_clock: Any, kind: type[BaseException], make_troupe: Any, bodies: Any
) -> None:
    troupe = make_troupe()
    sup: Supervisor = troupe.sup
    asked: list[str] = []

    async def interrupted(ctx: Context) -> None:
        await ctx.mailbox.receive()
        raise kind

    async def conduct() -> None:
        with pytest.raises(kind):
            await sup.run()

    async with trio.open_nursery() as nursery:
        sup.start_soon(troupe.spec("other", bodies.stubborn))
        sup.start_soon(troupe.spec("a", interrupted))
        nursery.start_soon(conduct)
        ref = await sup.up("a")
        ref.tell("now")
        asked.append(await ref.down.wait())
    assert asked == [kind.__name__]
    assert troupe.alive == {"a": 0, "other": 0}
    assert sup.states() == {}


async def test_mail_ends_at_the_stop_message_although_more_is_waiting(autojump_clock: Any, troupe: Any) -> None:
    got: list[Any] = []

    async def reader(ctx: Context) -> None:
        async for item in ctx.mail():
            got.append(item)
            await trio.sleep(1)

    ref = await troupe.sup.start(troupe.spec("a", reader))
    for number in range(10):
        ref.tell(number)
    await trio.sleep(2.5)
    await troupe.sup.stop_child("a")
    assert got == [0, 1, 2]


async def test_an_idle_actor_that_reads_its_mail_stops_at_once(autojump_clock: Any, troupe: Any, bodies: Any) -> None:
    await troupe.sup.start(troupe.spec("a", bodies.until_stopped))
    await trio.testing.wait_all_tasks_blocked()
    start = trio.current_time()
    await troupe.sup.stop_child("a")
    assert trio.current_time() == start


async def test_a_context_says_who_it_is(autojump_clock: Any, troupe: Any) -> None:
    said: dict[str, Any] = {}

    async def tell(ctx: Context) -> None:
        said.update(name=ctx.name, generation=ctx.generation, ref=ctx.ref, before=ctx.stop_reason)
        said["stop"] = await ctx.wait_stop()
        said["after"] = ctx.stop_reason
        assert ctx.stopping.is_set()

    ref = await troupe.sup.start(troupe.spec("a", tell))
    await troupe.sup.stop_child("a", stop_reason=("replaced", 10))
    assert said == {
        "name": "a",
        "generation": ref.generation,
        "ref": ref,
        "before": None,
        "stop": ("replaced", 10),
        "after": ("replaced", 10),
    }
