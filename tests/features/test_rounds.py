"""Rounds of input (2026-07-28) when handlers or servers misbehave; and the error that asks for a URL first (2025-11-25).

In virtual time, over the real wire of the SDK's server in memory.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
import trio.testing
from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.exceptions import UrlElicitationRequiredError
from mcp.types import ElicitRequest, ElicitRequestFormParams, ElicitRequestURLParams, InputRequiredResult
from playbill.actors import (
    CallTimeout,
    ClientHandlers,
    Config,
    Host,
    RequestRefused,
    ServerDied,
    ServerEntry,
    open_host,
)
from playbill.actors.edge.wire import meeting, negotiate
from playbill.actors.edge.wire.sdk import import_sdk

from .test_handlers_that_misbehave import crash, hang, hang_whatever, leave, nonsense


@pytest.fixture
def autojump_clock() -> trio.testing.MockClock:
    import_sdk()
    return trio.testing.MockClock(autojump_threshold=0)


def form(fields: int = 1) -> ElicitRequest:
    properties = {f"field{number}": {"type": "string"} for number in range(fields)}
    schema = {"type": "object", "properties": properties}
    return ElicitRequest(params=ElicitRequestFormParams(message="?", requested_schema=schema))


def made() -> Any:
    server: Any = MCPServer("rounds")
    server.made, server.states = 0, []

    @server.tool()
    async def ask(ctx: Context, questions: int = 1, fields: int = 1) -> str | InputRequiredResult:
        server.made += 1
        if ctx.input_responses is None:
            asked = {f"q{number}": form(fields) for number in range(questions)}
            return InputRequiredResult(input_requests=asked)
        return " ".join(answer.action for answer in ctx.input_responses.values())

    @server.tool()
    async def ever(ctx: Context, questions: bool, state: str) -> str | InputRequiredResult:
        server.made += 1
        server.states.append(ctx.request_state)
        return InputRequiredResult(
            input_requests={"q": form()} if questions else None,
            request_state=state.replace("N", str(server.made)),
        )

    @server.tool()
    async def visit() -> str:
        where = ElicitRequestURLParams(message="Log in", url="https://example.com/login", elicitation_id="login")
        raise UrlElicitationRequiredError([where])

    def reply(ctx: Context) -> Any:
        if ctx.input_responses is None:
            return InputRequiredResult(input_requests={"q": form()}, request_state="second")
        return f"{ctx.input_responses['q'].action} {ctx.request_state}"

    @server.prompt()
    async def cue(ctx: Context) -> Any:
        return reply(ctx)

    @server.resource("stage://asked/{part}")
    async def asked(part: str, ctx: Context) -> Any:
        return reply(ctx)

    @server.tool()
    async def echo() -> str:
        return "echo"

    return server


async def text(host: Host, tool: str, **arguments: Any) -> str:
    result = await host.call_tool("s", tool, arguments, timeout=100)
    return f"{'error: ' if result.is_error else ''}{result.content[0].text}"


async def decline(*_: Any) -> Any:
    await trio.lowlevel.checkpoint()
    return {"action": "decline"}


@pytest.mark.parametrize(
    ("handler", "words"),
    [
        (hang, "no answer within 5 s"),
        (hang_whatever, "no answer within 5 s"),
        (crash, "failed (ValueError)"),
        (leave, "failed (SystemExit)"),
        (nonsense, "returned no answer"),
    ],
)
async def test_a_handler_that_fails_in_a_round_costs_only_that_call(
    autojump_clock: trio.testing.MockClock, handler: Callable[..., Awaitable[Any]], words: str
) -> None:
    server = made()
    handlers = ClientHandlers(elicitation=handler, timeout=5)
    async with open_host(Config((ServerEntry("s", server=server),)), handlers=handlers) as host:
        assert (await host.ready(timeout=30)).missing == {}
        async with trio.open_nursery() as nursery:

            async def call() -> None:
                answer = await text(host, "ask")
                assert answer.startswith("error: The tool asks for input that it does not get")
                assert words in answer
                assert "secret" not in answer

            nursery.start_soon(call)
            for _ in range(20):
                assert await text(host, "echo") == "echo"
        assert server.made == 1
        (state,) = host.snapshot().model.servers
        assert (state.phase, state.restarts) == ("ready", 0)


async def test_questions_of_one_round_are_asked_side_by_side_and_too_many_are_refused(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async def slow(*_: Any) -> Any:
        await trio.sleep(1)
        return {"action": "accept", "content": {}}

    handlers = ClientHandlers(elicitation=slow)
    async with open_host(Config((ServerEntry("s", server=made()),)), handlers=handlers) as host:
        assert (await host.ready(timeout=30)).missing == {}
        began = trio.current_time()
        assert await text(host, "ask", questions=4) == "accept accept accept accept"
        assert trio.current_time() - began < 1.5
        assert "100 questions at once" in await text(host, "ask", questions=100)


async def test_a_form_that_is_too_large_is_no_question(autojump_clock: trio.testing.MockClock) -> None:
    handlers = ClientHandlers(elicitation=decline)
    async with open_host(Config((ServerEntry("s", server=made()),)), handlers=handlers) as host:
        assert (await host.ready(timeout=30)).missing == {}
        assert "too large" in await text(host, "ask", fields=20_000)
        assert await text(host, "ask") == "decline"


async def test_a_call_that_is_given_up_cancels_the_handler_that_was_asked_for_it(
    autojump_clock: trio.testing.MockClock,
) -> None:
    ended = trio.Event()

    async def watch(*_: Any) -> Any:
        try:
            await trio.sleep_forever()
        finally:
            ended.set()

    handlers = ClientHandlers(elicitation=watch, timeout=1000)
    async with open_host(Config((ServerEntry("s", server=made()),)), handlers=handlers) as host:
        assert (await host.ready(timeout=30)).missing == {}
        with pytest.raises(CallTimeout):
            await host.call_tool("s", "ask", timeout=3)
        began = trio.current_time()
        await ended.wait()
        assert trio.current_time() == began


async def test_the_loss_of_the_server_ends_a_round_at_once(autojump_clock: trio.testing.MockClock) -> None:
    async with open_host(
        Config((ServerEntry("s", server=made()),)), handlers=ClientHandlers(elicitation=hang, timeout=1000)
    ) as host:
        assert (await host.ready(timeout=30)).missing == {}
        async with trio.open_nursery() as nursery:

            async def call() -> None:
                with pytest.raises(ServerDied):
                    await host.call_tool("s", "ask", timeout=500)

            nursery.start_soon(call)
            await trio.sleep(1)
            connection: Any = host._board.lines["s"].connection
            connection._wire.lose("it was killed")
            began = trio.current_time()
        assert trio.current_time() - began < 5


async def test_a_call_that_needs_a_url_first_has_the_handler_asked_and_says_so(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def legacy(session: Any, known: Any, seconds: float) -> str:
        return await negotiate.negotiate(session, "legacy", seconds)

    monkeypatch.setattr(meeting, "negotiate", legacy)
    asked: list[Any] = []

    async def accept(asker: Any, params: Any) -> Any:
        await trio.lowlevel.checkpoint()
        asked.append(params.url)
        return {"action": "accept"}

    for handlers, words in ((ClientHandlers(elicitation=accept), "asked (accept)"), (None, "-32042")):
        async with open_host(Config((ServerEntry("s", server=made()),)), handlers=handlers) as host:
            assert (await host.ready(timeout=30)).missing == {}
            answer = await text(host, "visit")
            assert answer.startswith("error: ")
            assert words in answer
    assert asked == ["https://example.com/login"]


async def test_a_prompt_and_a_resource_are_asked_for_in_rounds_too() -> None:
    """By the real clock: the SDK's server reads templates in a thread, which a clock that jumps does not wait for."""
    import_sdk()
    for handlers in (ClientHandlers(elicitation=decline), None):
        async with open_host(Config((ServerEntry("s", server=made()),)), handlers=handlers) as host:
            assert (await host.ready(timeout=30)).missing == {}
            if handlers is None:
                for request in (host.get_prompt("s", "cue"), host.read_resource("s", "stage://asked/1")):
                    with pytest.raises(RequestRefused):
                        await request
                continue
            prompt = await host.get_prompt("s", "cue")
            assert prompt.messages[0].content.text == "decline second"
            read = await host.read_resource("s", "stage://asked/1")
            assert read.contents[0].text == "decline second"


@pytest.mark.parametrize("questions", [True, False])
@pytest.mark.parametrize("state", ["same", "N"])
async def test_rounds_without_end_end(autojump_clock: trio.testing.MockClock, questions: bool, state: str) -> None:
    server = made()
    config = Config((ServerEntry("s", server=server),))
    async with open_host(config, handlers=ClientHandlers(elicitation=decline)) as host:
        assert (await host.ready(timeout=30)).missing == {}
        answer = await text(host, "ever", questions=questions, state=state)
        assert answer == "error: The tool asks for input that it does not get: it asked for more input 10 times"
        states = [state.replace("N", str(number)) for number in range(1, 11)]
        assert server.states == [None, *states]  # each told what it said last
        assert await text(host, "echo") == "echo"
