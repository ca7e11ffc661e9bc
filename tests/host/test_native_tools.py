"""Native tools: they ship with what the servers have, and whatever a handler does costs its own call only.

Determinism contract: virtual time where handlers are async. Where threads matter the clock is real, nothing in the test is
timed, and every thread is let go at its end; a deadline that a real thread must miss is 0 seconds, or is waited for.
"""

from __future__ import annotations

import functools
import threading
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from typing import Any

import pytest
import trio
import trio.testing
from attrs import evolve
from playbill.actors import CallTimeout, Host, NativeTool, ToolNotOffered, native_tool
from playbill.actors.model.profile import PORTABLE
from playbill.actors.natives import _is_async
from playbill.actors.testing import ScriptedServers

from .conftest import Open

real_time = pytest.mark.trio(run=trio.run)
"""For tests with real threads: a clock that jumps when nothing happens would race them."""

ANY = {"type": "object", "properties": {}}


def given(handler: Callable[..., Any], name: str = "tool") -> NativeTool:
    return NativeTool(name, "For a test.", ANY, handler)


def saying(words: str, name: str = "tool") -> NativeTool:
    async def say() -> str:
        await trio.lowlevel.checkpoint()
        return words

    return given(say, name)


def text(result: Any) -> str:
    return str(result.content[0].text)


async def called(opened: Open, tool: NativeTool, arguments: dict[str, Any] | None = None, **options: Any) -> Any:
    async with opened(ScriptedServers(), native_tools=[tool]) as host:
        return await host.call(tool.name, arguments, **options)


# In the catalog.


async def test_native_tools_ship_first_as_given_and_whatever_the_budget(opened: Open) -> None:
    natives = [given(print, name) for name in ("zeta", "alpha")]
    async with opened(ScriptedServers(a=["x", "y"]), native_tools=natives, budget=2) as host:
        await host.ready(timeout=5)
        snapshot = host.snapshot()
        assert [tool.wire_name for tool in snapshot.catalog.tools] == ["zeta", "alpha"]
        assert snapshot.model.budget_warning() == (
            "4 tools over the budget of 2 — 2 MCP tools were dropped from this session; disable some to make room"
        )


async def test_the_digest_stays_when_servers_are_restarted_and_differs_with_the_order_of_natives(opened: Open) -> None:
    natives = [given(print, name) for name in ("b", "a")]
    digests = []
    for tools in (natives, natives[::-1]):
        async with opened(ScriptedServers(s=["x"]), native_tools=tools) as host:
            await host.ready(timeout=5)
            before = host.snapshot().catalog
            await host.restart("s")
            await host.ready(timeout=5)
            assert host.snapshot().catalog is before
            digests.append(before.digest)
    assert digests[0] != digests[1]


async def test_a_server_named_like_a_native_tool_takes_nothing_from_it(opened: Open) -> None:
    servers = ScriptedServers(search=["search"], mcp__x=["y"])
    async with opened(servers, native_tools=[saying("ours", "search")]) as host:
        await host.ready(timeout=5)
        names = [tool.wire_name for tool in host.snapshot().catalog.tools]
        assert names[0] == "search"
        assert len(set(names)) == 3
        assert text(await host.call("search")) == "ours"
        theirs: Any = await host.call("mcp__search__search")
        assert theirs["tool"] == "search"


def test_a_native_name_may_not_look_like_an_mcp_name() -> None:
    with pytest.raises(ValueError, match="mcp__"):
        given(print, "mcp__a__x")


@pytest.mark.parametrize(
    ("natives", "reason"),
    [
        ([given(print, "t"), given(print, "t")], "'t' is given twice"),
        ([given(print, "two words")], "'two words'.*takes names that match"),
        ([evolve(given(print), input_schema={"type": "array"})], r"'tool'.*\(root-type at inputSchema"),
        ([given(print, f"t{n}") for n in range(129)], "129 native tools are given, and profile 'portable' takes 128"),
    ],
)
async def test_native_tools_that_a_provider_would_refuse_are_refused_at_once(
    opened: Open, natives: list[NativeTool], reason: str
) -> None:
    with pytest.raises(ValueError, match=reason):
        async with opened(ScriptedServers(), native_tools=natives):
            pass


async def test_what_one_profile_refuses_another_takes(opened: Open) -> None:
    async with opened(ScriptedServers(), native_tools=[saying("ok", "two words")], profile="mcp") as host:
        assert text(await host.call("two words")) == "ok"
    refusing = PORTABLE.refusing(["bash*"], "the first-party endpoint refuses it")
    with pytest.raises(ValueError, match="'bash_run': the first-party endpoint refuses it"):
        async with opened(ScriptedServers(), native_tools=[given(print, "bash_run")], profile=refusing):
            pass


async def test_a_held_catalog_reaches_its_own_host_only(opened: Open) -> None:
    async with opened(ScriptedServers(), native_tools=[saying("one", "t")]) as host:
        held = host.snapshot().catalog
        assert text(await host.call("t", catalog=held)) == "one"
    async with opened(ScriptedServers()) as other:
        with pytest.raises(ToolNotOffered, match="another host"):
            await other.call("t", catalog=held)


# Arguments.


@native_tool
async def twice(n: int, word: str = "times") -> str:
    """Doubles a number."""
    await trio.lowlevel.checkpoint()
    return f"{2 * n} {word}"


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({"n": "many"}, "n: Input should be a valid integer"),
        ({}, "n is missing"),
        ({"n": 1, "wrod": "x"}, "wrod is unknown, did you mean word?"),
    ],
)
async def test_arguments_that_do_not_fit_are_a_tool_error_and_nothing_runs(
    opened: Open, arguments: dict[str, Any], words: str
) -> None:
    ran: list[object] = []

    async def run(**given: Any) -> None:
        await trio.lowlevel.checkpoint()
        ran.append(given)

    tool = evolve(twice, handler=run)
    result = await called(opened, tool, arguments)
    assert result.is_error
    assert words in text(result)
    assert ran == []


async def test_what_does_not_fit_is_told_in_words_for_the_model_and_not_as_an_exception(opened: Open) -> None:
    assert text(await called(opened, twice, {})).startswith("the arguments do not fit: ")


async def test_arguments_that_fit_are_what_the_signature_says(opened: Open) -> None:
    assert text(await called(opened, twice, {"n": "21"})) == "42 times"


async def test_in_strict_mode_a_null_for_what_may_be_left_out_is_left_out(opened: Open) -> None:
    async with opened(ScriptedServers(), native_tools=[twice], profile=evolve(PORTABLE, strict=True)) as host:
        assert text(await host.call("twice", {"n": 1, "word": None})) == "2 times"
    assert (await called(opened, twice, {"n": 1, "word": None})).is_error


async def test_whether_a_null_is_left_out_is_said_by_the_catalog_that_the_call_was_made_with(opened: Open) -> None:
    asked = {"n": 1, "word": None}
    async with opened(ScriptedServers(), native_tools=[twice]) as host:
        view = host.view(profile=evolve(PORTABLE, strict=True))
        assert text(await view.call("twice", asked)) == "2 times"
        assert text(await host.call("twice", asked, catalog=view.snapshot().catalog)) == "2 times"
        assert (await view.call("twice", asked, catalog=host.snapshot().catalog)).is_error


async def test_without_a_signature_the_handler_itself_refuses_arguments(opened: Open) -> None:
    async def handler(n: int) -> int:
        await trio.lowlevel.checkpoint()
        return n

    result = await called(opened, given(handler), {"wrong": 1})
    assert result.is_error
    assert "TypeError" in text(result)


# What handlers are.


class Adder:
    """Adds."""

    async def __call__(self, n: int) -> int:
        await trio.lowlevel.checkpoint()
        return n + 1

    def sync(self, n: int) -> int:
        """Adds, in a thread."""
        return n + 1


def later(n: int) -> Awaitable[int]:
    """Makes in a thread what is awaited in trio."""
    assert threading.current_thread() is not threading.main_thread()
    return Adder()(n)


async def _add(m: int, n: int) -> int:
    await trio.lowlevel.checkpoint()
    return m + n


@pytest.mark.parametrize(
    "handler",
    [Adder(), Adder().sync, later, functools.partial(_add, 1), functools.partial(_add, m=1)],
    ids=["object", "method", "awaitable", "partial", "partial_by_name"],
)
@real_time
async def test_every_kind_of_callable_is_called_as_it_should_be(opened: Open, handler: Callable[..., Any]) -> None:
    for tool in (given(handler), native_tool(handler, name="tool", description="Adds.")):
        assert text(await called(opened, tool, {"n": 1}, timeout=30)) == "2"


@real_time
async def test_an_async_handler_runs_in_a_child_of_the_callers_task_and_a_sync_one_in_a_thread(opened: Open) -> None:
    async def here() -> None:
        await trio.lowlevel.checkpoint()
        ran.append((threading.current_thread(), trio.lowlevel.current_task()))

    def there() -> None:
        ran.append((threading.current_thread(), None))

    ran: list[tuple[threading.Thread, trio.lowlevel.Task | None]] = []
    await called(opened, given(here))
    await called(opened, given(there))
    thread, task = ran[0]
    assert thread is threading.main_thread()
    assert isinstance(task, trio.lowlevel.Task)
    assert task.parent_nursery is not None
    assert task.parent_nursery.parent_task is trio.lowlevel.current_task()
    assert ran[1][0] is not threading.main_thread()


# Handlers that fail.


class Wordless(Exception):
    def __str__(self) -> str:
        raise RuntimeError("no words")

    __repr__ = __str__


def _deep(n: int = 0) -> int:
    return _deep(n + 1)


def raiser(error: BaseException) -> Callable[[], None]:
    def handler() -> None:
        raise error

    return handler


ERRORS: list[tuple[Callable[[], Any], str]] = [
    (raiser(RuntimeError("out of paper")), "RuntimeError: out of paper"),
    (raiser(Wordless()), "Wordless: (it cannot be put into words)"),
    (raiser(KeyError()), "KeyError"),
    (raiser(StopIteration("early")), "StopIteration: early"),
    (raiser(SystemExit(2)), "SystemExit: 2"),
    (raiser(GeneratorExit()), "GeneratorExit"),
    (raiser(CallTimeout("inner", 3)), "CallTimeout: tool 'inner' did not answer within 3 s"),
    (raiser(BaseExceptionGroup("g", [ValueError("a"), SystemExit(1)])), "ValueError: a; SystemExit: 1"),
    (raiser(ExceptionGroup("g", [ValueError(n) for n in range(12)])), "ValueError: 9; and 2 more"),
    (raiser(ValueError("\ud800")), "ValueError: �"),
    (_deep, "RecursionError: maximum recursion depth exceeded"),
    (lambda: (n for n in range(3)), "returned what is no result: a generator"),
    (lambda: object(), "returned what is no result"),
]


@pytest.mark.parametrize(("handler", "words"), ERRORS, ids=[words[:20] for _, words in ERRORS])
@real_time
async def test_whatever_a_handler_raises_in_its_thread_is_a_tool_error(
    opened: Open, handler: Callable[[], Any], words: str
) -> None:
    result = await called(opened, given(handler))
    assert result.is_error
    assert words in text(result)
    assert "Traceback" not in text(result)


@pytest.mark.parametrize(("handler", "words"), ERRORS, ids=[words[:20] for _, words in ERRORS])
async def test_whatever_an_async_handler_raises_is_a_tool_error(
    opened: Open, handler: Callable[[], Any], words: str
) -> None:
    async def asynchronous() -> Any:
        await trio.lowlevel.checkpoint()
        return handler()

    result = await called(opened, given(asynchronous))
    assert result.is_error
    assert words.replace("StopIteration: early", "StopIteration") in text(result)


async def test_what_is_not_awaited_is_a_tool_error_and_complains_of_nothing(opened: Open) -> None:
    async def forgetful() -> Any:
        await trio.lowlevel.checkpoint()
        return _add(1, 2)

    async def many() -> AsyncIterator[int]:
        await trio.lowlevel.checkpoint()
        yield 1

    result = await called(opened, given(forgetful))
    assert result.is_error
    assert "a coroutine that was not awaited" in text(result)

    async def returning() -> Any:
        await trio.lowlevel.checkpoint()
        return many()

    result = await called(opened, given(returning))
    assert result.is_error
    assert "async_generator" in text(result)


async def test_a_cancellation_that_nobody_asked_for_is_a_tool_error(opened: Open) -> None:
    async def confused() -> None:
        kept: BaseException | None = None
        with trio.CancelScope() as scope:
            scope.cancel()
            try:
                await trio.lowlevel.checkpoint()
            except trio.Cancelled as error:
                kept = error
        assert kept is not None
        raise kept

    result = await called(opened, given(confused))
    assert result.is_error
    assert "Cancelled" in text(result)


async def test_a_keyboard_interrupt_is_not_swallowed(opened: Open) -> None:
    async def interrupted() -> None:
        async with trio.open_nursery():
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        await called(opened, given(interrupted))


# Time.


async def test_a_handler_that_hangs_is_a_tool_error_at_the_deadline(opened: Open) -> None:
    async with opened(ScriptedServers(a=["x"]), native_tools=[given(trio.sleep_forever)]) as host:
        await host.ready(timeout=5)
        for timeout, seconds in ((2.0, 2), (None, 60)):
            start = trio.current_time()
            result = await host.call("tool", timeout=timeout)
            assert trio.current_time() - start == pytest.approx(seconds)
            assert result.is_error
            assert f"tool 'tool' did not answer within {seconds} s" in text(result)
        assert host.snapshot().model.server("a").phase == "ready"


async def test_a_handler_that_breaks_while_it_is_cancelled_costs_its_caller_nothing(opened: Open) -> None:
    async def breaking() -> None:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(trio.sleep_forever)
            try:
                await trio.sleep_forever()
            finally:
                raise ValueError("while it is cleaned up")

    async with opened(ScriptedServers(), native_tools=[given(breaking)]) as host:
        assert (await host.call("tool", timeout=1)).is_error
        with trio.move_on_after(1) as scope:
            await host.call("tool", timeout=5)
        assert scope.cancelled_caught


@pytest.fixture
def gate() -> Iterator[threading.Event]:
    """What a sync handler hangs at; it is opened at the end whatever happens."""
    event = threading.Event()
    yield event
    event.set()


async def _all_in(threads: list[threading.Thread], count: int) -> None:
    with trio.fail_after(30):
        while len(threads) < count:
            await trio.sleep(0.001)


async def _gone(threads: list[threading.Thread], done: list[object]) -> None:
    with trio.fail_after(30):
        while len(done) < len(threads):
            await trio.sleep(0.001)


@real_time
async def test_threads_that_hang_cost_their_own_tool_only(
    opened: Open, gate: threading.Event, monkeypatch: Any
) -> None:
    inside: list[threading.Thread] = []
    done: list[object] = []

    def hang() -> None:
        inside.append(threading.current_thread())
        gate.wait(60)
        done.append(None)

    natives = [given(hang, "hang"), given(lambda: "fine", "other")]
    async with opened(ScriptedServers(), native_tools=natives) as host:
        async with trio.open_nursery() as nursery:
            for _ in range(40):
                nursery.start_soon(host.call, "hang")
            await _all_in(inside, 40)
            nursery.cancel_scope.cancel()
        # All its threads hang, and their callers are gone: the next call of it ends by its own deadline and says why.
        result = await host.call("hang", timeout=0.05)
        assert result.is_error
        assert "40 calls of it have not ended yet" in text(result)
        assert len(inside) == 40
        # Nobody else notices: not another tool, not the threads that the host's files are read in.
        assert text(await host.call("other", timeout=30)) == "fine"
        assert trio.to_thread.current_default_thread_limiter().borrowed_tokens == 0
        gate.set()
        await _gone(inside, done)
        assert not (await host.call("hang", timeout=30)).is_error


@real_time
async def test_a_call_that_is_cancelled_leaves_its_thread_and_drops_what_it_comes_to(
    opened: Open, gate: threading.Event
) -> None:
    inside: list[threading.Thread] = []
    made: list[Any] = []

    async def never() -> None:
        await trio.lowlevel.checkpoint()

    def hang() -> Any:
        inside.append(threading.current_thread())
        gate.wait(60)
        made.append(never())
        return made[-1]

    async with opened(ScriptedServers(), native_tools=[given(hang)]) as host:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(host.call, "tool")
            await _all_in(inside, 1)
            nursery.cancel_scope.cancel()
        gate.set()
        with trio.fail_after(30):
            # It is closed, so that it does not complain that it was never awaited.
            while not made or made[0].cr_frame is not None:
                await trio.sleep(0.001)


@real_time
async def test_a_handler_may_call_the_host_from_its_thread(opened: Open) -> None:
    hosts: list[Host] = []

    def ask() -> Any:
        return trio.from_thread.run(hosts[0].call, "inner")

    async with opened(ScriptedServers(), native_tools=[given(ask, "outer"), given(lambda: "deep", "inner")]) as host:
        hosts.append(host)
        assert text(await host.call("outer", timeout=30)) == "deep"


@pytest.mark.parametrize("handler", [_add, Adder(), Adder().__call__, functools.partial(Adder(), 1)])
def test_what_only_makes_a_coroutine_needs_no_thread(handler: Callable[..., Any]) -> None:
    assert _is_async(handler)
    assert not _is_async(Adder().sync)
