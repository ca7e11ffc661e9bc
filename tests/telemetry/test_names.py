"""Names and attributes from plain values."""

from __future__ import annotations

import pytest
import trio
from playbill.actors import (
    CallTimeout,
    ConfigError,
    HostClosed,
    OperationTimeout,
    ServerDied,
    ServerUnavailable,
    ToolNotOffered,
    UnknownServer,
    UnknownTool,
    WriteFailed,
)
from playbill.actors.ports import ConnectionFailed, ConnectionLost, Loss
from playbill.actors.server import ServerLost
from playbill.actors.telemetry import names


@pytest.mark.parametrize(
    ("kind", "url", "expected"),
    [
        ("stdio", None, {"network.transport": "pipe"}),
        ("memory", None, {}),
        ("http", "https://mcp.example.com/mcp", ("mcp.example.com", 443)),
        ("sse", "http://127.0.0.1:8000/sse", ("127.0.0.1", 8000)),
        ("http", "https://user:hunter2@mcp.example.com:8443/t/hunter2?key=hunter2#hunter2", ("mcp.example.com", 8443)),
        ("http", "http://[::1]:80/", ("::1", 80)),
        ("http", "http://[broken", None),
        ("http", "http://host:notaport/", None),
    ],
)
def test_of_a_url_only_host_and_port_are_told(kind: str, url: str | None, expected: object) -> None:
    if not isinstance(expected, dict):
        place = {} if expected is None else {"server.address": expected[0], "server.port": expected[1]}
        expected = {"network.transport": "tcp", "network.protocol.name": "http", **place}
    assert names.peer_of(kind, url) == expected


def test_a_call_is_described_as_the_conventions_say() -> None:
    assert names.span_name("tools/call", "get-weather") == "tools/call get-weather"
    assert names.span_name("tools/call") == "tools/call"
    assert names.call_attributes("weather", "get-weather") == {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get-weather",
        "playbill.server": "weather",
    }
    assert "playbill.server" not in names.call_attributes(None, "made-up")


def test_other_peoples_names_are_one_short_line() -> None:
    name = names.span_name("tools/call", "a\nb\x1b[31m" + "x" * 10_000)
    assert name.isprintable()
    assert len(name) < 120


@pytest.mark.parametrize(
    ("error", "type"),
    [
        (CallTimeout("a", 1.0), "timeout"),
        (OperationTimeout("reload", 1.0, None), "timeout"),
        (ServerDied("a", "b"), "server_died"),
        (ServerUnavailable("a", "b"), "server_unavailable"),
        (ToolNotOffered("a", "b"), "tool_not_offered"),
        (UnknownTool("a"), "unknown_tool"),
        (UnknownServer("a"), "unknown_server"),
        (ConfigError("a"), "config_error"),
        (WriteFailed("a", "b"), "write_failed"),
        (HostClosed(), "host_closed"),
        (ConnectionFailed("a"), "connection_failed"),
        (ConnectionFailed("a", needs_auth=True), "needs_auth"),
        (ConnectionLost("a"), "connection_lost"),
        (ServerLost(Loss("a")), "connection_lost"),
        (ServerLost(Loss("a", renew=True)), "session_ended"),
        (ServerLost(Loss("a", needs_auth=True)), "needs_auth"),
        (KeyError("a"), "KeyError"),
        (trio.ClosedResourceError(), "trio.ClosedResourceError"),
        (ExceptionGroup("", [KeyError("a"), KeyError("b")]), "KeyError"),
        (ExceptionGroup("", [KeyError("a"), ValueError("b")]), "ExceptionGroup"),
    ],
)
def test_each_error_has_a_type(error: BaseException, type: str) -> None:
    assert names.error_type(error) == type


def test_words_are_told_of_our_own_errors_only_and_masked() -> None:
    said = names.error_words(ServerDied("a", "last words: password=hunter2hunter2\nand more"))
    assert said is not None
    assert "hunter2" not in said
    assert "\n" not in said
    assert names.error_words(ValueError("hunter2")) is None


def test_a_session_id_is_told_apart_and_not_told() -> None:
    one, other = names.session_digest("1868a90c"), names.session_digest("1868a90d")
    assert one != other
    assert "1868" not in one
    assert one == names.session_digest("1868a90c")


def test_a_metric_has_no_attribute_of_many_values() -> None:
    every: dict[str, names.Value] = {
        names.METHOD: "tools/call",
        names.SESSION: "a",
        names.REQUEST_ID: "1",
        names.GENERATION: 3,
        names.ATTEMPTS: 2,
        names.SERVER: "weather",
    }
    assert names.for_metric(every) == {"mcp.method.name": "tools/call", "playbill.server": "weather"}
    every[names.ERROR] = "unknown_server"
    assert names.for_metric(every) == {"mcp.method.name": "tools/call", "error.type": "unknown_server"}
