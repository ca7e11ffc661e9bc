"""An ordinary call takes a way that was found before and waits in no scope; whoever calls must not be able to tell.

Each scene is played twice, in virtual time and over real pipes: by the short way, and with every route forgotten, by the long
one. What callers saw, when, and what the server read must be the same.
"""

from __future__ import annotations

import json
from collections.abc import Awaitable, Callable
from types import SimpleNamespace
from typing import Any

import pytest
import trio
import trio.abc
import trio.testing
from mcp_types import CreateMessageResult, ElicitResult, TextContent
from playbill.actors import ClientHandlers, Config, ServerEntry, calls
from playbill.actors.deadline import Deadline, Timer
from playbill.actors.line import Line
from playbill.actors.ports import Expired
from playbill.actors.routes import Route, Routes

from .by_hand import SCHEMA, TEXT, Stage, staged

ROOM = 1024 * 1024
"""Bytes that wait for a server before its callers do."""


Scene = Callable[[Stage], Awaitable[None]]


async def together(stage: Stage, *tasks: Callable[[], Awaitable[None]]) -> None:
    async with trio.open_nursery() as nursery:
        for task in tasks:
            nursery.start_soon(task)


# ── scenes ───────────────────────────────────────────────────────────────────────────────────────────────────────────────


async def answers_of_all_kinds(stage: Stage) -> None:
    for result in (
        TEXT,
        {**TEXT, "isError": True},
        {**TEXT, "structuredContent": {"n": 1}},
        {**TEXT, "_meta": {"playbill/retryAfter": 3, "mine": 1}},
        {"content": "nonsense"},
        {"content": [{"type": "text", "text": "x", "annotations": {"priority": 7}}]},
        {},
    ):
        for tool in ("t", "typed"):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(lambda tool=tool: stage.call(tool))
                await stage.answer(**result)


async def errors_and_nonsense(stage: Stage) -> None:
    for said in (
        b'"error":{"code":-32602,"message":"bad","data":[1]}',
        b'"error":{"code":-32000,"message":"Connection closed"}',
        b'"error":7',
        b'"result":null',
        b'"result":{"content":[}',
    ):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stage.call)
            message = await stage.next()
            await stage.peer.raw(b'{"jsonrpc":"2.0","id":%d,%s}\n' % (message["id"], said))


async def no_answer_by_a_timeout(stage: Stage) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: stage.call(timeout=3))
        message = await stage.next()
        await stage.next()  # cancelled
        await stage.peer.reply(message, **TEXT)  # too late
    await answers_of_all_kinds(stage)


async def no_answer_at_all(stage: Stage) -> None:
    await together(stage, stage.call, lambda: ignore(stage, 2))


async def ignore(stage: Stage, messages: int) -> None:
    for _ in range(messages):
        await stage.next()


async def progress(stage: Stage, message: dict[str, Any], times: int) -> None:
    token = message["params"].get("_meta", {}).get("progressToken")
    for number in range(times):
        await trio.sleep(1.5)
        await stage.peer.send(method="notifications/progress", params={"progressToken": token, "progress": number})


async def progress_extends_an_idle_limit(stage: Stage) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stage.call)
        message = await stage.next()
        await progress(stage, message, 3)
        await stage.next()


async def progress_does_not_extend_the_total(stage: Stage) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stage.call)
        message = await stage.next()
        nursery.start_soon(progress, stage, message, 30)
        await stage.next()


async def progress_does_not_extend_a_timeout(stage: Stage) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: stage.call(timeout=3))
        message = await stage.next()
        nursery.start_soon(progress, stage, message, 3)
        await stage.next()


async def later_ones_that_are_due_earlier(stage: Stage) -> None:
    async with trio.open_nursery() as nursery:
        for number, timeout in enumerate((9, 1, 5, 1, None, 0.25)):
            nursery.start_soon(lambda n=number, t=timeout: stage.call(n=n, name=str(n), timeout=t))
            await stage.next()
        await ignore(stage, 6)


async def a_caller_that_gives_up(stage: Stage) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stage.call)
        await stage.next()
        nursery.cancel_scope.cancel()
    await stage.next()
    with trio.CancelScope() as scope:
        scope.cancel()
        await stage.call(n=2)  # before it begins: the server hears nothing
    stage.note("cancelled", scope.cancelled_caught)
    with trio.move_on_after(0.5):
        await stage.call(n=3)
    await ignore(stage, 2)


async def a_total_of_nothing(stage: Stage) -> None:
    await stage.call(timeout=0)
    await stage.once()


async def meta_and_catalogs(stage: Stage) -> None:
    for options in (
        {"meta": {"example.com/a": 1, "progressToken": "mine", "none": None}},
        {"catalog": stage.host.snapshot().catalog},
        {"catalog": stage.host.snapshot().catalog},
        {"timeout": 5, "meta": {"io.modelcontextprotocol/logLevel": "debug", "progressToken": "mine"}},
    ):
        for _ in range(2):
            await stage.once(**options)


async def a_death_with_calls_in_flight(stage: Stage) -> None:
    async with trio.open_nursery() as nursery:
        for number in range(3):
            nursery.start_soon(lambda n=number: stage.call(n=n, name=str(n)))
            await stage.next()
        await stage.peer.stop_writing()
    await stage.call(name="after it")


async def a_server_that_reads_no_more(stage: Stage) -> None:
    """Two calls fill the queue; a third one waits for room, by its own deadline."""
    stage.deaf.set()
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: stage.call(name="a", timeout=20))
        await trio.testing.wait_all_tasks_blocked()
        for name in "bc":
            nursery.start_soon(lambda name=name: stage.call(name=name, text="x" * ROOM, timeout=20))
            await trio.testing.wait_all_tasks_blocked()
        for name, timeout in (("d", 4), ("e", None)):
            nursery.start_soon(lambda name=name, timeout=timeout: stage.call(name=name, timeout=timeout))


async def a_close_with_a_call_in_flight(stage: Stage) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(lambda: stage.call(timeout=100))
        await stage.next()
        nursery.start_soon(lambda: stage.host.restart("s"))
        await trio.sleep(8)
    for _ in range(2):
        await stage.once(name="the new one")


async def what_is_excluded_or_removed_is_not_called(stage: Stage) -> None:
    await stage.host.apply(Config((ServerEntry("s", command="s", timeout=2.0, exclude=("t",)),)))
    await stage.call(name="excluded")
    await stage.host.apply(Config((ServerEntry("s", command="s", timeout=2.0),)))
    for _ in range(2):
        await stage.once()
    await stage.host.apply(Config((ServerEntry("s", command="s", timeout=1.0),)))
    await together(stage, stage.call, lambda: ignore(stage, 2))  # by the new limit
    await stage.host.apply(Config())
    await stage.call(name="removed")


async def what_is_listed_otherwise_is_not_called_by_a_held_catalog(stage: Stage) -> None:
    held = stage.host.snapshot().catalog
    for _ in range(2):
        await stage.once(catalog=held)
    other = {"type": "object", "properties": {"path": {"type": "string"}}}
    stage.tools = [{"name": "t", "inputSchema": other}]
    before = stage.host.snapshot().version
    await stage.peer.send(method="notifications/tools/list_changed")
    async for snapshot in stage.host.changes():
        if snapshot.version > before and len(snapshot.catalog.tools) == 1:
            break
    await stage.call(catalog=held, name="held")
    await stage.call("typed", name="gone")
    await stage.once()


async def of_a_view(stage: Stage) -> None:
    view = stage.host.view(profile="openai-strict", exclude=("s/typed",))
    for given in ({"n": 1}, {"n": None}):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(view.call, "mcp__s__t", given)
            await stage.answer(**TEXT)
    for name in ("mcp__s__typed", "mcp__s__other"):
        try:
            await view.call(name)
        except Exception as error:
            stage.note(type(error).__name__, str(error))


async def by_origin(stage: Stage) -> None:
    for _ in range(2):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stage.host.call_tool, "s", "t", {"n": 1})
            await stage.answer(**TEXT)
    for name in ("t", "other"):
        try:
            await stage.host.call_tool("s", name, {}, timeout=1)
        except Exception as error:
            stage.note(type(error).__name__, str(error))


async def slow_sampling(*_: Any) -> Any:
    await trio.sleep(5)
    return CreateMessageResult(role="assistant", content=TextContent(text="x"), model="m")


async def slow_visit(*_: Any) -> Any:
    await trio.sleep(10)
    return ElicitResult(action="accept")


HANDLERS = ClientHandlers(sampling=slow_sampling, elicitation=slow_visit)


async def a_question_holds_the_idle_limit(stage: Stage) -> None:
    ask = {"messages": [], "maxTokens": 1}
    async with trio.open_nursery() as nursery:
        nursery.start_soon(stage.call)
        await stage.next()
        nursery.start_soon(lambda: stage.call(name="by its own", timeout=3))
        await stage.next()
        await trio.sleep(1.5)
        await stage.peer.send(id="q", method="sampling/createMessage", params=ask)
        await ignore(stage, 2)  # the answer; and one is cancelled
        await progress(stage, {"params": {}}, 1)
        await stage.next()


async def a_url_that_is_to_be_visited_first(stage: Stage) -> None:
    data = {"elicitations": [{"mode": "url", "message": "m", "url": "https://x.example/", "elicitationId": "e"}]}
    for timeout in (3, 30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda timeout=timeout: stage.call(timeout=timeout))
            message = await stage.next()
            await stage.peer.send(id=message["id"], error={"code": -32042, "message": "visit", "data": data})


async def rounds_of_input(stage: Stage) -> None:
    asks = {"resultType": "input_required", "requestState": "s"}
    for last in (TEXT, None):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: stage.call(timeout=9))
            for _ in range(3):
                await stage.answer(**asks)
            if last is None:
                await ignore(stage, 2)
            else:
                await stage.answer(**last)
    question = {"method": "sampling/createMessage", "params": {"messages": [], "maxTokens": 1}}
    for timeout in (30, 4):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda timeout=timeout: stage.call(timeout=timeout))
            await stage.answer(**asks, inputRequests={"q": question})
            if timeout == 30:
                await stage.answer(**TEXT)


SCENES: list[tuple[Scene, str, float | None]] = [
    (answers_of_all_kinds, "both", None),
    (errors_and_nonsense, "both", None),
    (no_answer_by_a_timeout, "both", None),
    (no_answer_at_all, "both", None),
    (progress_extends_an_idle_limit, "legacy", 2.0),
    (progress_does_not_extend_the_total, "legacy", 2.0),
    (progress_does_not_extend_a_timeout, "legacy", 2.0),
    (later_ones_that_are_due_earlier, "legacy", 2.0),
    (a_caller_that_gives_up, "both", None),
    (a_total_of_nothing, "legacy", None),
    (meta_and_catalogs, "both", None),
    (a_death_with_calls_in_flight, "legacy", None),
    (a_server_that_reads_no_more, "legacy", 7.0),
    (a_close_with_a_call_in_flight, "legacy", None),
    (what_is_excluded_or_removed_is_not_called, "legacy", 2.0),
    (what_is_listed_otherwise_is_not_called_by_a_held_catalog, "legacy", None),
    (of_a_view, "legacy", None),
    (by_origin, "legacy", None),
    (a_question_holds_the_idle_limit, "legacy", 2.0),
    (a_url_that_is_to_be_visited_first, "legacy", None),
    (rounds_of_input, "modern", None),
]


async def play(scene: Scene, era: str, timeout: float | None, handlers: ClientHandlers | None) -> list[Any]:
    async with staged(era, timeout, handlers) as stage:
        await scene(stage)
    # What happens in one instant is in no order.
    seen: list[Any] = json.loads(json.dumps(stage.seen))
    return sorted(seen, key=lambda each: (each[0], json.dumps(each)))


@pytest.fixture
def direct(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The calls that took the short way. Nobody watches, whatever another test left behind."""
    monkeypatch.setattr(calls, "watched", lambda: False)
    taken: list[str] = []
    call_directly = Line.call_directly

    async def counted(self: Line, bare: str, *given: Any) -> Any:
        taken.append(bare)
        return await call_directly(self, bare, *given)

    monkeypatch.setattr(Line, "call_directly", counted)
    return taken


async def both_ways(
    monkeypatch: pytest.MonkeyPatch, direct: list[str], play_it: Callable[[], Awaitable[list[Any]]]
) -> list[Any]:
    short = await play_it()
    assert direct  # the first one was to find the way
    direct.clear()
    with monkeypatch.context() as patch:
        patch.setattr(Routes, "find", lambda *_: None)
        long = await play_it()
    assert not direct
    assert short == long
    return short


PLAYED = [
    (scene, era, timeout) for scene, eras, timeout in SCENES for era in ("legacy", "modern") if eras in (era, "both")
]


@pytest.mark.parametrize(("scene", "era", "timeout"), PLAYED, ids=[f"{s.__name__}-{e}" for s, e, _ in PLAYED])
async def test_the_short_way_is_not_to_be_told_from_the_long_one(
    monkeypatch: pytest.MonkeyPatch, direct: list[str], scene: Scene, era: str, timeout: float | None
) -> None:
    await both_ways(monkeypatch, direct, lambda: play(scene, era, timeout, HANDLERS))


async def test_a_call_of_a_cancelled_program_that_is_shielded_ends_by_its_deadline(direct: list[str]) -> None:
    with trio.CancelScope() as program:
        async with staged("legacy", None, None) as stage:
            program.cancel()
            direct.clear()
            with trio.CancelScope(shield=True):
                await together(stage, lambda: stage.call(timeout=3), lambda: ignore(stage, 2))
    assert direct == ["t"]
    assert stage.seen[-1][0] == 3.0
    assert (3.0, "", "CallTimeout", "tool 'mcp__s__t' did not answer within 3 s") in stage.seen


async def test_a_call_that_is_late_and_takes_its_time_to_end_costs_the_timer_nothing() -> None:
    steps = 0

    class Steps(trio.abc.Instrument):
        def before_task_step(self, task: trio.lowlevel.Task) -> None:
            nonlocal steps
            steps += 1

    async def reluctant() -> None:
        with trio.CancelScope(shield=True):
            await trio.sleep(5)
        await trio.lowlevel.checkpoint()

    async with trio.open_nursery() as nursery:
        timer = Timer()
        nursery.start_soon(timer.run)
        deadline = Deadline(1, 60, trio.current_time(), timer)
        timer.add(deadline)
        trio.lowlevel.add_instrument(instrument := Steps())
        with pytest.raises(Expired):
            await deadline.within(reluctant)
        trio.lowlevel.remove_instrument(instrument)
        assert steps < 10
        assert trio.current_time() == 5
        timer.end()


async def test_a_call_that_nobody_waits_for_any_more_wakes_the_timer_once() -> None:
    settled: list[float] = []
    async with trio.open_nursery() as nursery:
        timer = Timer()
        nursery.start_soon(timer.run)
        deadline = Deadline(1, 60, trio.current_time(), timer)
        deadline.settle = lambda: settled.append(trio.current_time())
        timer.add(deadline)
        await trio.sleep(10)
        assert settled == [1]
        assert not timer.waiting
        timer.end()


def test_a_route_is_forgotten_as_soon_as_anything_that_it_was_found_by_is_another() -> None:
    line: Any = SimpleNamespace(direct=True)
    tool: Any = SimpleNamespace(bare="t", input_schema=SCHEMA)
    before: Any = SimpleNamespace()
    after: Any = SimpleNamespace()
    catalog: Any = SimpleNamespace()
    routes, route = Routes(), Route(line, tool, None, catalog=catalog)
    routes.keep("n", route, 1, before)
    assert routes.find("n", catalog, 1, before) is route
    assert routes.find("other", catalog, 1, before) is None
    assert routes.find("n", None, 1, before) is None
    assert routes.find("n", catalog, 2, before) is None
    assert routes.find("n", catalog, 1, after) is None
    line.direct = False
    assert routes.find("n", catalog, 1, before) is None
    line.direct = True
    routes.keep("other", route, 2, before)
    assert routes.find("n", catalog, 2, before) is None
