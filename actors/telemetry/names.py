"""What spans, metrics and attributes are called, and what they say: pure, from plain values.

The names are those of the OpenTelemetry semantic conventions for MCP and for generative AI (both in development: repository
``open-telemetry/semantic-conventions-genai``, docs/gen-ai/mcp.md); what they have no name for begins with ``playbill.``.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlsplit

import trio

from ..model.errors import (
    CallTimeout,
    ConfigError,
    HostClosed,
    OperationTimeout,
    PlaybillError,
    ServerDied,
    ServerExists,
    ServerUnavailable,
    ToolNotOffered,
    UnknownServer,
    UnknownTool,
    WriteFailed,
)
from ..model.mask import mask_text
from ..model.plain import flat, label
from ..ports import ConnectionFailed, ConnectionLost, ListFailed, Loss

__all__ = [
    "call_attributes",
    "error_type",
    "error_words",
    "for_metric",
    "native_attributes",
    "peer_of",
    "request_attributes",
    "safe_words",
    "session_digest",
    "span_name",
]

Value = str | int | float | bool
"""What an attribute may be."""

SCOPE = "playbill"
"""The name of the tracer, of the meter, and of the logger above all of ours."""

METHOD = "mcp.method.name"
PROTOCOL = "mcp.protocol.version"
SESSION = "mcp.session.id"
TOOL = "gen_ai.tool.name"
TOOL_TYPE = "gen_ai.tool.type"
OPERATION = "gen_ai.operation.name"
RESOURCE = "mcp.resource.uri"
PROMPT = "gen_ai.prompt.name"
REQUEST_ID = "jsonrpc.request.id"
STATUS = "rpc.response.status_code"
ERROR = "error.type"
TRANSPORT = "network.transport"
NETWORK_PROTOCOL = "network.protocol.name"
ADDRESS, PORT = "server.address", "server.port"

SERVER = "playbill.server"
GENERATION = "playbill.generation"
ATTEMPTS = "playbill.call.attempts"
CONFIG_REV = "playbill.config.rev"
TOOLS = "playbill.tools"
PHASE = "playbill.server.phase"
VERDICT = "playbill.tool.verdict"

OPERATION_DURATION = "mcp.client.operation.duration"
SESSION_DURATION = "mcp.client.session.duration"
RESTARTS = "playbill.server.restarts"
SERVERS = "playbill.servers"
CATALOG_TOOLS = "playbill.catalog.tools"
CATALOG_BUDGET = "playbill.catalog.budget"
CATALOG_TOKENS = "playbill.catalog.tokens"
CATALOG_TOKEN_BUDGET = "playbill.catalog.token_budget"

BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1.0, 2.0, 5.0, 10.0, 30.0, 60.0, 120.0, 300.0)
"""Seconds: the boundaries that the conventions ask for, for both durations."""

_OF_METRICS = frozenset(
    {METHOD, PROTOCOL, TOOL, OPERATION, STATUS, ERROR, TRANSPORT, NETWORK_PROTOCOL, ADDRESS, PORT, SERVER}
)
"""Only these go with a metric: of each there are few values."""

_UNKNOWN: dict[Value | None, tuple[str, ...]] = {"unknown_tool": (TOOL,), "unknown_server": (TOOL, SERVER)}

_TYPES: dict[type[BaseException], str] = {
    CallTimeout: "timeout",
    OperationTimeout: "timeout",
    ServerDied: "server_died",
    ServerUnavailable: "server_unavailable",
    ToolNotOffered: "tool_not_offered",
    UnknownTool: "unknown_tool",
    UnknownServer: "unknown_server",
    ServerExists: "server_exists",
    ConfigError: "config_error",
    WriteFailed: "write_failed",
    HostClosed: "host_closed",
    ConnectionFailed: "connection_failed",
    ConnectionLost: "connection_lost",
    ListFailed: "list_failed",
    trio.Cancelled: "cancelled",
}


def span_name(what: str, target: str | None = None) -> str:
    """The name of a span: what is done, and to which tool or server, if that is one of few; on one line, not too long."""
    return what if target is None else f"{what} {label(target)}"


def call_attributes(server: str | None, tool: str) -> dict[str, Value]:
    """Of the call of a tool.

    Args:
        server: whose it is, or None when no server is known to have it.
        tool: its bare name; without a server, what was asked for.
    """
    made: dict[str, Value] = {METHOD: "tools/call", OPERATION: "execute_tool", TOOL: label(tool)}
    if server is not None:
        made[SERVER] = label(server)
    return made


def request_attributes(method: str, server: str | None, params: Mapping[str, Any] | None) -> dict[str, Value]:
    """Of a request that is no call of a tool.

    Args:
        method: of MCP.
        server: whom it is sent to, or None when that is not known.
        params: of the request; what is read, or which prompt is had, is told, and never the arguments.
    """
    made: dict[str, Value] = {METHOD: method}
    if server is not None:
        made[SERVER] = label(server)
    given = params or {}
    if method == "resources/read":
        made[RESOURCE] = safe_words(str(given.get("uri")))
    elif method == "prompts/get":
        made[PROMPT] = label(str(given.get("name")))
    return made


def native_attributes(tool: str) -> dict[str, Value]:
    """Of the call of one of the program's own tools; no MCP is spoken."""
    return {OPERATION: "execute_tool", TOOL: label(tool), TOOL_TYPE: "function"}


def peer_of(kind: str, url: str | None) -> dict[str, Value]:
    """How a server is reached, and where it is: of a URL its host and port, and nothing else.

    Args:
        kind: as `diff.transport_kind`.
        url: with its variables expanded, or None.
    """
    if kind == "stdio":
        return {TRANSPORT: "pipe"}
    if url is None:
        return {}
    made: dict[str, Value] = {TRANSPORT: "tcp", NETWORK_PROTOCOL: "http"}
    try:
        parts = urlsplit(url)
        host, port = parts.hostname, parts.port or {"http": 80, "https": 443}.get(parts.scheme)
    except ValueError:
        return made
    if host:
        made[ADDRESS] = host
        if port is not None:
            made[PORT] = port
    return made


def session_digest(id: str) -> str:
    """What stands for the id of a session: whoever has that one may speak in the session, whoever has this one may not."""
    return "sha256:" + hashlib.sha256(id.encode("utf-8", "surrogatepass")).hexdigest()[:16]


def error_type(error: BaseException) -> str:
    """The ``error.type`` of an exception: a word of ours, or the full name of its class.

    A group is what all in it are, if they are all of one type.
    """
    if isinstance(error, BaseExceptionGroup):
        types = {error_type(each) for each in error.exceptions}
        if len(types) == 1:
            return types.pop()
    loss = _loss_of(error)
    if (isinstance(error, ConnectionFailed) and error.needs_auth) or (loss is not None and loss.needs_auth):
        return "needs_auth"
    if loss is not None:
        return "session_ended" if loss.renew else "connection_lost"
    kind = type(error)
    for each in kind.__mro__:
        if each in _TYPES:
            return _TYPES[each]
    return kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"


def error_words(error: BaseException) -> str | None:
    """What an exception says, for the description of a status: of ours only, which carry no secret; else None.

    What looks like a secret is masked all the same: a server's last words may be in it.
    """
    if isinstance(error, PlaybillError | ConnectionFailed | ConnectionLost) or _loss_of(error) is not None:
        return safe_words(str(error))
    return None


def safe_words(text: str) -> str:
    """A text of ours on one line, not too long, and what looks like a secret in it masked."""
    return flat(mask_text(flat(text)))


def _loss_of(error: BaseException) -> Loss | None:
    """How a connection was lost, of an exception that says so."""
    loss = getattr(error, "loss", None)
    return loss if isinstance(loss, Loss) else None


def for_metric(attributes: Mapping[str, Value]) -> dict[str, Value]:
    """Those attributes that go with a metric. A name that nobody has, such as a model makes up, is not among them."""
    unknown = _UNKNOWN.get(attributes.get(ERROR), ())
    return {name: value for name, value in attributes.items() if name in _OF_METRICS and name not in unknown}
