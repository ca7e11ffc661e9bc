"""Calls as spans and durations, over scripted servers in virtual time."""

from __future__ import annotations

import json
from contextlib import suppress
from types import SimpleNamespace
from typing import Any

import pytest
import trio
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode
from playbill.actors import (
    CallTimeout,
    HostClosed,
    NativeTool,
    ServerDied,
    ServerUnavailable,
    ToolNotOffered,
    UnknownServer,
    UnknownTool,
)
from playbill.actors.model.status import ToolDef
from playbill.actors.testing import Script
from playbill.actors.testing.kit import ServerKit

from .conftest import USER, Watch, attributes, id_of, parent_of


async def wrong(bare: str, arguments: Any) -> Any:
    await trio.lowlevel.checkpoint()
    return SimpleNamespace(is_error=True)


async def test_a_call_is_a_client_span_below_what_its_caller_does(watch: Watch) -> None:
    kit = ServerKit(weather=["get"])
    async with kit.open() as host:
        await host.ready(timeout=5)
        with USER.start_as_current_span("agent") as agent:
            await host.call("mcp__weather__get", {"place": "hunter2"}, timeout=5)
            assert trace.get_current_span() is agent
    span = watch.span("tools/call get")
    assert span.kind is SpanKind.CLIENT
    assert parent_of(span) == id_of(agent)
    assert attributes(span) == {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get",
        "playbill.server": "weather",
    }
    assert span.status.status_code is StatusCode.UNSET
    assert "hunter2" not in watch.everything()


async def test_calls_side_by_side_keep_their_own_parents(watch: Watch) -> None:
    kit = ServerKit(a=Script(("slow", "quick"), call_delay=1.0))
    async with kit.open() as host:
        await host.ready(timeout=5)

        async def agent(name: str, tool: str) -> None:
            with USER.start_as_current_span(name):
                await host.call_tool("a", tool, timeout=5)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(agent, "one", "slow")
            nursery.start_soon(agent, "two", "quick")
    assert parent_of(watch.span("tools/call slow")) == id_of(watch.span("one"))
    assert parent_of(watch.span("tools/call quick")) == id_of(watch.span("two"))


async def test_an_error_of_the_tool_is_one(watch: Watch) -> None:
    kit = ServerKit(a=Script(("t",), handler=wrong))
    async with kit.open() as host:
        await host.ready(timeout=5)
        await host.call("mcp__a__t", timeout=5)
    span = watch.span("tools/call t")
    assert attributes(span)["error.type"] == "tool_error"
    assert span.status.status_code is StatusCode.ERROR
    (point,) = watch.points("mcp.client.operation.duration")
    assert point.attributes["error.type"] == "tool_error"


async def test_every_refusal_has_its_type(watch: Watch) -> None:
    kit = ServerKit(a=Script(("slow", "hidden"), call_delay=60.0), down=Script(refuse="no"))
    async with kit.open(kit.config(exclude=("hidden",))) as host:
        await host.ready(require=["a"], timeout=5)
        for error, call in (
            (UnknownTool, lambda: host.call("made_up", timeout=5)),
            (UnknownServer, lambda: host.call_tool("nobody", "t", timeout=5)),
            (ToolNotOffered, lambda: host.call_tool("a", "hidden", timeout=5)),
            (ServerUnavailable, lambda: host.call_tool("down", "t", timeout=5)),
            (CallTimeout, lambda: host.call_tool("a", "slow", timeout=5)),
        ):
            with pytest.raises(error):
                await call()
        with trio.move_on_after(1) as scope:
            await host.call_tool("a", "slow", timeout=5)
        assert scope.cancelled_caught
        async with trio.open_nursery() as nursery:

            async def dying() -> None:
                with suppress(ServerDied):
                    await host.call_tool("a", "slow", timeout=5)

            nursery.start_soon(dying)
            await trio.testing.wait_all_tasks_blocked()
            kit.kill("a")
    with pytest.raises(HostClosed):
        await host.call_tool("a", "slow", timeout=5)
    calls = [span for span in watch.spans() if span.name.startswith("tools/call")]
    assert [(span.name, attributes(span)["error.type"]) for span in calls] == [
        ("tools/call", "unknown_tool"),
        ("tools/call t", "unknown_server"),
        ("tools/call hidden", "tool_not_offered"),
        ("tools/call t", "server_unavailable"),
        ("tools/call slow", "timeout"),
        ("tools/call slow", "cancelled"),
        ("tools/call slow", "server_died"),
        ("tools/call slow", "host_closed"),
    ]
    assert all(span.status.status_code is StatusCode.ERROR for span in calls)
    assert all(span.events == () for span in calls)
    assert calls[0].status.description == "no tool is named 'made_up'"


async def test_a_tool_that_nobody_has_is_no_name_of_a_metric(watch: Watch) -> None:
    async with ServerKit(a=["t"]).open() as host:
        await host.ready(timeout=5)
        with pytest.raises(UnknownTool):
            await host.call("made_up_by_a_model", timeout=5)
    (point,) = watch.points("mcp.client.operation.duration")
    assert dict(point.attributes) == {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "error.type": "unknown_tool",
    }


async def test_a_duration_is_what_the_caller_waited(watch: Watch) -> None:
    kit = ServerKit(a=Script(("t",), connect_delay=3.0, call_delay=4.0))
    async with kit.open() as host:
        await host.call("mcp__a__t", timeout=20)
    (point,) = watch.points("mcp.client.operation.duration")
    assert (point.count, point.sum) == (1, pytest.approx(7.0))
    assert point.explicit_bounds == (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
    span = watch.span("tools/call t")  # its name came with the first list
    assert attributes(span)["playbill.server"] == "a"


async def test_a_call_that_is_made_again_is_one_span(watch: Watch) -> None:
    tool = ToolDef("t", annotations={"readOnlyHint": True})
    kit = ServerKit(a=Script((tool,)))
    kit.fail("a", "call", "crash")
    async with kit.open() as host:
        await host.ready(timeout=5)
        await host.call_tool("a", "t", timeout=50, retry=2)
    span = watch.span("tools/call t")
    assert attributes(span)["playbill.call.attempts"] == 2
    assert "error.type" not in attributes(span)


async def test_a_native_tool_is_a_step_of_the_program(watch: Watch) -> None:
    inner: list[Any] = []

    async def handler(word: str) -> str:
        await trio.lowlevel.checkpoint()
        inner.append(trace.get_current_span().get_span_context().span_id)
        return word

    schema = {"type": "object", "properties": {"word": {"type": "string"}}}
    echo = NativeTool(name="echo", description="", input_schema=schema, handler=handler)
    failing = NativeTool(name="failing", description="", input_schema={"type": "object"}, handler=lambda: 1 / 0)
    async with ServerKit(a=["t"]).open(native_tools=[echo, failing]) as host:
        await host.call("echo", {"word": "hunter2"}, timeout=5)
        await host.call("failing", timeout=5)
        with pytest.raises(ToolNotOffered):
            await host.view(exclude=["echo"]).call("echo", {"word": "x"}, timeout=5)
    first, second = watch.span("execute_tool echo"), watch.span("tools/call")
    assert first.kind is SpanKind.INTERNAL
    assert attributes(first) == {
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "echo",
        "gen_ai.tool.type": "function",
    }
    assert inner == [id_of(first)]
    assert attributes(watch.span("execute_tool failing"))["error.type"] == "tool_error"
    assert attributes(second)["error.type"] == "tool_not_offered"
    (point,) = watch.points("mcp.client.operation.duration")  # no MCP was spoken, but by who took it for a server's
    assert point.attributes["error.type"] == "tool_not_offered"
    assert "hunter2" not in watch.everything()


async def test_a_call_is_a_record_for_who_looks_closely(watch: Watch) -> None:
    kit = ServerKit(a=Script(("t",), call_delay=2.0, handler=wrong))
    async with kit.open() as host:
        await host.ready(timeout=5)
        await host.call("mcp__a__t", timeout=5)
    (record,) = watch.events("call")
    said = {name: getattr(record, name) for name in ("server", "tool", "seconds", "error_type")}
    assert said == {"server": "a", "tool": "t", "seconds": 2.0, "error_type": "tool_error"}
    assert (record.levelname, record.name) == ("DEBUG", "playbill.calls")
    json.dumps(said)
