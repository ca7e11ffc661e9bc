"""Messages of a scripted server as bytes, and the garbage that may come instead or in between. Pure.

A line whose length depends on a subscription's id is padded: the SDK counts those ids for the whole process, and the number
of bytes of a run must not depend on the runs before it.
"""

from __future__ import annotations

import json
from typing import Any

from ..model.status import ToolDef
from .faults import NOISE

__all__ = ["CHANGED", "advertised", "announcement", "encode", "garbled", "half", "noise", "overlong", "padded"]

CHANGED = "notifications/tools/list_changed"

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"
"""The key of ``_meta`` that says which subscription a notification is for (2026-07-28)."""

_ID_WIDTH = 24


def encode(message: dict[str, Any]) -> bytes:
    """A JSON-RPC message as a line, its newline included."""
    return json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n"


def padded(message: dict[str, Any], subscription: Any) -> bytes:
    """The same for a message in which a subscription's id stands once: as long for every id."""
    line = encode(message)
    return line[:-1] + b" " * max(0, _ID_WIDTH - len(json.dumps(subscription))) + b"\n"


def announcement(subscription: Any = None) -> bytes:
    """A tools/list_changed, for one subscription or (None) for whoever hears it."""
    if subscription is None:
        return encode({"method": CHANGED})
    return padded({"method": CHANGED, "params": {"_meta": {SUBSCRIPTION: subscription}}}, subscription)


def advertised(tool: ToolDef) -> dict[str, Any]:
    """A tool as ``tools/list`` tells it."""
    told: dict[str, Any] = {"name": tool.bare, "inputSchema": dict(tool.input_schema)}
    optional = {
        "title": tool.title,
        "description": tool.description,
        "outputSchema": tool.output_schema,
        "annotations": tool.annotations,
    }
    return told | {key: value for key, value in optional.items() if value is not None}


def half(line: bytes) -> bytes:
    """The first half of a line."""
    return line[: len(line) // 2]


def garbled(line: bytes) -> bytes:
    """An answer that cannot be read: it begins as one, and is no JSON."""
    return line[: len(line) * 2 // 3] + b"\xff\x00}{\n"


def overlong(line: bytes, max_line: int) -> bytes:
    """The same answer, with more spaces in it than a line may be long."""
    return line[:-2] + b" " * max_line + line[-2:]


def noise(kind: str, max_line: int) -> bytes:
    """Garbage that is no answer to anything.

    Args:
        kind: one of `faults.NOISE`.
        max_line: the longest line that is accepted.

    Returns:
        One or more lines; of ``glued_line``, the beginning of one.
    """
    match kind:
        case "not_json":
            return b'Listening on stdio...\nnode:internal {"jsonrpc": \n\n}\r\n'
        case "no_message":
            lines = (
                b"null",
                b"[1,2]",
                b'"ready"',
                b'{"jsonrpc":"2.0"}',
                b'{"jsonrpc":"1.0","id":1,"result":{}}',
                b'{"jsonrpc":"2.0","id":true,"result":{}}',
                b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"?"}}',
                b'{"jsonrpc":"2.0","id":987654321,"result":{"tools":[],"content":[]}}',
                b'{"jsonrpc":"2.0","method":7,"params":[]}',
            )
            return b"\n".join(lines) + b"\n"
        case "bad_utf8":
            return b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"caf\xe9 \xff\xc0\xaf"}}\n\xfe\xff\n'
        case "nul_bytes":
            return b"\0\0\0\0\n\0" + b'{"jsonrpc":"2.0","method":"notifications/mess\0age"}' + b"\n\0\n"
        case "long_line":
            return b"x" * (max_line + 1) + b"\n"
        case "glued_line":
            return b'{"level":"info","text":"a line that is never fini'
        case _:
            raise ValueError(f"no such garbage: {kind!r}; there are {', '.join(NOISE)}")
