"""Real servers, over stdio and over HTTP: what the wire adds to a span, and the trace that goes on in the server."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from opentelemetry import trace
from opentelemetry.trace import SpanKind, format_span_id, format_trace_id
from playbill.actors import Config, ServerEntry, open_host
from playbill.actors.telemetry.notes import current

from ..faulty_http.server import Web, deed, serving
from .conftest import USER, Watch, attributes, id_of, parent_of

SERVER = str(Path(__file__).with_name("server.py"))
PATIENCE = 60.0


def stdio(name: str = "local", **keys: Any) -> ServerEntry:
    return ServerEntry(name, command=sys.executable, args=("-I", SERVER), **keys)


def said(result: Any) -> str:
    return str(result.content[0].text)


async def test_a_call_over_stdio_carries_its_span_to_the_server_once(watch: Watch) -> None:
    with USER.start_as_current_span("opening"):
        async with open_host(Config((stdio(),))) as host:
            await host.ready(timeout=PATIENCE)
            with USER.start_as_current_span("agent"):
                told = json.loads(said(await host.call_tool("local", "meta", timeout=PATIENCE)))
            await host.call_tool("local", "refuse", timeout=PATIENCE)
    good, refused = watch.span("tools/call meta"), watch.span("tools/call refuse")
    context = good.get_span_context()
    assert told["call"]["traceparent"].split("-")[1:3] == [
        format_trace_id(context.trace_id),
        format_span_id(context.span_id),
    ]
    assert parent_of(good) == id_of(watch.span("agent"))
    assert attributes(good) == {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "meta",
        "playbill.server": "local",
        "network.transport": "pipe",
        "mcp.protocol.version": "2025-11-25",
        "jsonrpc.request.id": attributes(good)["jsonrpc.request.id"],
    }
    assert int(attributes(refused)["jsonrpc.request.id"]) == int(attributes(good)["jsonrpc.request.id"]) + 1
    assert attributes(refused)["error.type"] == attributes(refused)["rpc.response.status_code"] == "-32050"
    assert refused.status.description is None  # what a server says may quote what it was sent

    connect = watch.span("playbill.connect local")
    assert parent_of(connect) is None
    assert attributes(connect)["network.transport"] == "pipe"
    assert attributes(connect)["mcp.protocol.version"] == "2025-11-25"
    steps = {span.name: span for span in watch.spans() if parent_of(span) == id_of(connect)}
    assert list(steps) == ["server/discover", "initialize", "tools/list"]
    assert all(span.kind is SpanKind.CLIENT for span in steps.values())
    assert attributes(steps["server/discover"])["error.type"] == "-32601"
    sent = {method: meta["traceparent"] for method, meta in told["before"] if meta and "traceparent" in meta}
    for name, span in steps.items():
        assert sent[name].split("-")[2] == format_span_id(id_of(span))
    methods = {point.attributes["mcp.method.name"] for point in watch.points("mcp.client.operation.duration")}
    assert methods == {"server/discover", "initialize", "tools/list", "tools/call"}
    (session,) = watch.points("mcp.client.session.duration")
    assert session.attributes["network.transport"] == "pipe"


@pytest.mark.parametrize("kind", ["legacy", "modern", "sse"])
async def test_a_call_over_http_says_where_to(watch: Watch, kind: str) -> None:
    web = Web(kind)
    async with serving(web), open_host(Config((ServerEntry("web", url=web.url),))) as host:
        await host.ready(timeout=PATIENCE)
        with USER.start_as_current_span("agent"):
            await host.call_tool("web", "echo", {"a": 1}, timeout=PATIENCE)
        if kind != "sse":
            web.deeds["tools/call"] = [deed(status=503, headers={"Retry-After": "7"})]
            await host.call_tool("web", "echo", {"a": 1}, timeout=PATIENCE)
    port = int(web.url.rpartition(":")[2].split("/")[0])
    calls = watch.spans("tools/call echo")
    made = attributes(calls[0])
    assert (made["network.transport"], made["network.protocol.name"]) == ("tcp", "http")
    assert (made["server.address"], made["server.port"]) == ("127.0.0.1", port)
    assert made["jsonrpc.request.id"]
    assert made["mcp.protocol.version"]
    assert parent_of(calls[0]) == id_of(watch.span("agent"))
    assert made.get("mcp.session.id", "sha256:").startswith("sha256:")
    assert ("mcp.session.id" in made) == (kind == "legacy")
    if kind != "sse":
        assert attributes(calls[1])["error.type"] == "503"
    connect = watch.span("playbill.connect web")
    assert (attributes(connect)["server.address"], attributes(connect)["server.port"]) == ("127.0.0.1", port)
    assert "tools/list" in {span.name for span in watch.spans() if parent_of(span) == id_of(connect)}
    assert all(
        parent_of(span) is not None or span.name.startswith(("playbill", "agent", "tools")) for span in watch.spans()
    )


async def test_a_server_that_traces_too_continues_the_callers_trace(watch: Watch) -> None:
    """The SDK's own server, in memory: its dispatcher makes a span of its own below ours, and injects that one."""
    from mcp.server.mcpserver import MCPServer

    server = MCPServer("traced")

    @server.tool()
    def add(a: int, b: int) -> int:
        return a + b

    async with open_host(Config((ServerEntry("memory", server=server),))) as host:
        await host.ready(timeout=PATIENCE)
        with USER.start_as_current_span("agent"):
            result = await host.call_tool("memory", "add", {"a": 1, "b": 2}, timeout=PATIENCE)
            assert result.structured_content == {"result": 3}
    ours, servers = [
        next(span for span in watch.spans("tools/call add") if span.kind is kind)
        for kind in (SpanKind.CLIENT, SpanKind.SERVER)
    ]
    by_id = {id_of(span): span for span in watch.spans()}
    chain = [servers]
    while (parent := parent_of(chain[-1])) is not None:
        chain.append(by_id[parent])
    assert ours in chain
    assert chain[-1] is watch.span("agent")


async def test_what_a_connection_asks_later_is_no_part_of_its_connect(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    from playbill.actors.edge.wire.link import Link
    from playbill.actors.edge.wire.sdk import import_sdk

    import_sdk()
    hold, seen = Link.hold, []

    async def looking(self: Any, closing: Any) -> None:
        seen.append((trace.get_current_span(), current()))
        await hold(self, closing)

    monkeypatch.setattr(Link, "hold", looking)
    async with open_host(Config((stdio(),))) as host:
        await host.ready(timeout=PATIENCE)
    assert seen == [(trace.INVALID_SPAN, None)]
