"""Handlers that hang, raise or return nonsense, and servers that ask too much: only the request that asked pays.

In virtual time (see `asker`): a server that asks what it is told to, over the real wire of a server in memory.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing
from playbill.actors import CallTimeout, ClientHandlers, Config, Host, ServerEntry, open_host
from playbill.actors.asking import MAX_ROOTS, MAX_TOLD, MAX_TOLD_CHARS
from playbill.actors.edge.wire.sdk import import_sdk

from .asker import Asking, said

Open = Callable[..., AbstractAsyncContextManager[Host]]

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")


@pytest.fixture
def autojump_clock() -> trio.testing.MockClock:
    return trio.testing.MockClock(autojump_threshold=0)


@asynccontextmanager
async def hosted(handlers: ClientHandlers | None, *names: str) -> AsyncIterator[tuple[Host, dict[str, Asking]]]:
    """A host of servers that ask, in the legacy era, beside each other."""
    import_sdk()
    servers = {name: Asking() for name in names or ("a", "neighbour")}
    entries = tuple(ServerEntry(name, server=server) for name, server in servers.items())
    async with open_host(Config(entries), handlers=handlers) as host:
        assert (await host.ready(timeout=30)).missing == {}
        yield host, servers


async def answer(*_: Any) -> Any:
    await trio.lowlevel.checkpoint()
    return {"role": "assistant", "content": {"type": "text", "text": "hear"}, "model": "parrot"}


async def hang(*_: Any) -> Any:
    await trio.sleep_forever()


async def hang_whatever(*_: Any) -> Any:
    with trio.CancelScope(shield=True):
        await trio.sleep(1000)


async def crash(*_: Any) -> Any:
    await trio.lowlevel.checkpoint()
    raise ValueError("the secret of the program")


async def leave(*_: Any) -> Any:
    await trio.lowlevel.checkpoint()
    raise SystemExit(3)


async def leave_a_scope_open(*_: Any) -> Any:
    await trio.lowlevel.checkpoint()
    trio.CancelScope().__enter__()
    return await answer()


async def nonsense(*_: Any) -> Any:
    await trio.lowlevel.checkpoint()
    return {"what": object()}


async def refuse(*_: Any) -> Any:
    from mcp.shared.exceptions import MCPError

    await trio.lowlevel.checkpoint()
    raise MCPError(code=-1, message="the user said no")


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        (hang, "no answer within 5 s"),
        (hang_whatever, "no answer within 5 s"),
        (crash, "the sampling handler failed (ValueError)"),
        (leave, "the sampling handler failed (SystemExit)"),
        (leave_a_scope_open, "left a cancel scope"),
        (nonsense, "returned no answer"),
        (refuse, "the user said no"),
    ],
)
async def test_a_handler_that_fails_costs_only_the_request_that_asked(
    autojump_clock: trio.testing.MockClock, handler: Callable[..., Awaitable[Any]], words: str
) -> None:
    async with hosted(ClientHandlers(sampling=handler, timeout=5)) as (host, servers):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(host.call_tool, "a", "ask")
            for _ in range(20):
                assert await said(host, "neighbour", "echo") == "echo"
                assert await said(host, "a", "echo") == "echo"
        (told,) = servers["a"].told
        assert words in told
        assert "secret" not in told
        model = host.snapshot().model
        assert [server.phase for server in model.servers] == ["ready", "ready"]
        assert [server.restarts for server in model.servers] == [0, 0]


async def test_a_handler_that_cannot_be_cancelled_holds_up_neither_the_end_of_its_server_nor_others(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with (
        hosted(ClientHandlers(sampling=hang_whatever, timeout=5)) as (host, _),
        trio.open_nursery() as nursery,
    ):
        nursery.start_soon(host.call_tool, "a", "ask")
        await trio.sleep(1)
        began = trio.current_time()
        await host.server_set_enabled("a", False)
        await host.server_set_enabled("a", True)
        assert (await host.ready(timeout=30)).missing == {}
        assert trio.current_time() - began < 25  # the drain, and no handler's 1000 s
        nursery.cancel_scope.cancel()


async def test_a_server_that_floods_the_embedder_is_answered_a_few_at_a_time_and_the_rest_refused(
    autojump_clock: trio.testing.MockClock,
) -> None:
    running = most = 0

    async def slow(*_: Any) -> Any:
        nonlocal running, most
        running += 1
        most = max(most, running)
        await trio.sleep(1)
        running -= 1
        return await answer()

    async with hosted(ClientHandlers(sampling=slow, at_once=4, waiting=16)) as (host, servers):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(said, host, "a", "ask", 500)
            await trio.sleep(0.5)
            # Another server is not kept waiting by it.
            began = trio.current_time()
            assert await said(host, "neighbour", "ask") == "asked"
            assert trio.current_time() - began < 1.5
        told = servers["a"].told
        assert len(told) == 500
        assert sum("hear" in each for each in told) == 20
        assert sum("too many questions" in each for each in told) == 480
        assert most == 5  # with the neighbour's


async def test_what_a_dead_incarnation_asked_is_cancelled_at_once(autojump_clock: trio.testing.MockClock) -> None:
    ended = trio.Event()

    async def watch(*_: Any) -> Any:
        try:
            await trio.sleep_forever()
        finally:
            ended.set()

    async with hosted(ClientHandlers(sampling=watch, timeout=1000)) as (host, servers), trio.open_nursery() as nursery:

        async def call() -> None:
            with pytest.raises(Exception, match="died"):
                await host.call_tool("a", "ask")

        nursery.start_soon(call)
        await trio.sleep(1)
        assert not ended.is_set()
        await servers["a"].die()
        began = trio.current_time()
        await ended.wait()
        assert trio.current_time() == began


async def test_a_log_of_a_dead_incarnation_is_heard_no_further(autojump_clock: trio.testing.MockClock) -> None:
    heard: list[Any] = []
    ended = trio.Event()

    async def note(asker: Any, message: Any) -> None:
        heard.append(message.data)
        try:
            await trio.sleep_forever()
        finally:
            ended.set()

    async with hosted(ClientHandlers(logging=note)) as (host, servers):
        await said(host, "a", "log", 3)
        await servers["a"].die()
        began = trio.current_time()
        await ended.wait()
        assert trio.current_time() == began
        await trio.sleep(30)
        assert heard == [0]


async def test_the_idle_limit_of_a_call_stands_still_while_its_server_waits_for_the_embedder(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def think(*_: Any) -> Any:
        await trio.sleep(200)
        return await answer()

    async with hosted(ClientHandlers(sampling=think, timeout=250)) as (host, _):
        assert await said(host, "a", "ask") == "asked"  # longer than the 60 s that a call may be idle
        began = trio.current_time()
        with pytest.raises(CallTimeout):  # but an answer counts as one sign of life, not as more
            await host.call_tool("a", "ask_and_hang")
        assert trio.current_time() - began == pytest.approx(260, abs=1)


async def test_a_form_that_is_too_large_is_refused_without_being_shown(autojump_clock: trio.testing.MockClock) -> None:
    shown = []

    async def show(asker: Any, params: Any) -> Any:
        await trio.lowlevel.checkpoint()
        shown.append(params)
        return {"action": "decline"}

    async with hosted(ClientHandlers(elicitation=show)) as (host, servers):
        properties = {f"field{number}": {"type": "string"} for number in range(100_000)}
        await said(host, "a", "elicit", json.dumps({"type": "object", "properties": properties}))
        assert "too large" in servers["a"].told[0]
        await said(host, "a", "elicit", json.dumps({"type": "object", "properties": {}}))
        assert "decline" in servers["a"].told[1]
        assert len(shown) == 1


async def test_what_was_not_announced_is_refused_however_often_it_is_asked(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with hosted(ClientHandlers(roots=["file:///a"])) as (host, servers):
        await said(host, "a", "ask", 500)
        assert len(servers["a"].told) == 500
        assert {told for told in servers["a"].told if "not support" not in told} == set()
        assert await said(host, "a", "echo") == "echo"


async def test_a_log_that_comes_faster_than_it_is_taken_loses_its_oldest_and_says_so(
    autojump_clock: trio.testing.MockClock,
) -> None:
    heard: list[Any] = []

    async def note(asker: Any, message: Any) -> None:
        await trio.sleep(1)
        heard.append(message)

    async with hosted(ClientHandlers(logging=note)) as (host, _):
        await said(host, "a", "log", 2000)
        assert await said(host, "neighbour", "echo") == "echo"
        await trio.sleep(MAX_TOLD + 10)
        assert heard[-1].data == 1999
        assert len(heard) <= MAX_TOLD + 2
        assert sum(message.dropped for message in heard) == 2000 - len(heard)


async def test_a_logging_handler_that_hangs_or_raises_loses_single_messages(
    autojump_clock: trio.testing.MockClock,
) -> None:
    heard: list[Any] = []

    async def note(asker: Any, message: Any) -> None:
        heard.append(message.data)
        if message.data == 0:
            await trio.sleep_forever()
        await crash()

    async with hosted(ClientHandlers(logging=note)) as (host, _):
        await said(host, "a", "log", 3)
        await trio.sleep(11)
        assert heard == [0, 1, 2]


def test_handlers_that_are_none_are_refused_where_they_are_written() -> None:
    wrongs: list[dict[str, Any]] = [
        {"sampling": "yes"},
        {"roots": "file:///a"},
        {"roots": [3]},
        {"timeout": 0},
        {"at_once": 0},
        {"waiting": -1},
        {"log_level": "loud"},
    ]
    for wrong in wrongs:
        with pytest.raises((TypeError, ValueError)):
            ClientHandlers(**wrong)


async def refuse_with_what_is_no_json(*_: Any) -> Any:
    from mcp.shared.exceptions import MCPError

    await trio.lowlevel.checkpoint()
    raise MCPError(code=-1, message="no", data=object())


async def answer_in_circles(*_: Any) -> Any:
    circle: dict[str, Any] = {}
    circle["circle"] = circle
    return {**await answer(), "_meta": circle}


@pytest.mark.parametrize("handler", [refuse_with_what_is_no_json, answer_in_circles])
async def test_what_cannot_be_made_json_of_is_no_answer_and_ends_no_connection(
    autojump_clock: trio.testing.MockClock, handler: Callable[..., Awaitable[Any]]
) -> None:
    async with hosted(ClientHandlers(sampling=handler)) as (host, servers):
        assert await said(host, "a", "ask") == "asked"
        assert "the sampling handler returned no answer" in servers["a"].told[0]
        assert await said(host, "a", "echo") == "echo"


def _raising() -> Any:
    yield "file:///a"
    raise ValueError("the secret of the program")


def _endless() -> Any:
    while True:
        yield "file:///a"


@pytest.mark.parametrize(
    ("roots", "words"), [(_raising, "no roots"), (lambda: "file:///a", "no roots"), (_endless, '"file:///a"')]
)
async def test_roots_that_are_none_are_refused_and_too_many_are_cut(
    autojump_clock: trio.testing.MockClock, roots: Callable[[], Any], words: str
) -> None:
    async def give(*_: Any) -> Any:
        await trio.lowlevel.checkpoint()
        return roots()

    async with hosted(ClientHandlers(roots=give)) as (host, servers):
        await said(host, "a", "roots")
        (told,) = servers["a"].told
        assert words in told
        assert "secret" not in told
        assert told.count("file:///a") <= MAX_ROOTS


async def test_a_log_of_large_messages_takes_no_more_room_than_one_of_small_ones(
    autojump_clock: trio.testing.MockClock,
) -> None:
    heard: list[Any] = []
    free = trio.Event()

    async def note(asker: Any, message: Any) -> None:
        await free.wait()
        heard.append((len(message.data), message.dropped))

    size = MAX_TOLD_CHARS // 10
    async with hosted(ClientHandlers(logging=note)) as (host, _):
        await said(host, "a", "log", ["x" * size] * 30)
        free.set()
        await trio.testing.wait_all_tasks_blocked()
        assert len(heard) == 10  # the one that is with the handler, and nine
        assert sum(dropped for _, dropped in heard) == 20
        await said(host, "a", "log", ["x" * (2 * MAX_TOLD_CHARS)])
        await trio.testing.wait_all_tasks_blocked()
        assert heard[-1] == (2 * MAX_TOLD_CHARS, 0)
