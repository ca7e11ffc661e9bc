"""A small, fast MCP server over stdio, of the standard library only: both arms of a benchmark run this one.

It speaks the handshake up to 2025-11-25 and has two tools, `echo` and `add`. One thread; whatever lines have come in
one read are answered in one write.
"""

from __future__ import annotations

import json
import os
from typing import Any

TEXT = {"type": "string"}
NUMBER = {"type": "number"}
TOOLS = [
    {
        "name": "echo",
        "description": "Says it again.",
        "inputSchema": {"type": "object", "properties": {"text": TEXT}, "required": ["text"]},
    },
    {
        "name": "add",
        "description": "The sum of two numbers.",
        "inputSchema": {"type": "object", "properties": {"a": NUMBER, "b": NUMBER}, "required": ["a", "b"]},
    },
]


def result_of(method: str, params: dict[str, Any]) -> dict[str, Any] | None:
    """The result of one request, or None when there is no such method."""
    if method == "tools/call":
        given = params.get("arguments", {})
        text = given.get("text", "") if params["name"] == "echo" else str(given["a"] + given["b"])
        return {"content": [{"type": "text", "text": text}], "isError": False}
    if method == "tools/list":
        return {"tools": TOOLS}
    if method == "initialize":
        return {
            "protocolVersion": params["protocolVersion"],
            "capabilities": {"tools": {}},
            "serverInfo": {"name": "tiny", "version": "1"},
        }
    return {} if method == "ping" else None


def answer(line: bytes) -> bytes:
    """The answer to one line; empty for a notification."""
    message = json.loads(line)
    if "id" not in message or "method" not in message:
        return b""
    reply: dict[str, Any] = {"jsonrpc": "2.0", "id": message["id"]}
    result = result_of(message["method"], message.get("params") or {})
    if result is None:
        reply["error"] = {"code": -32601, "message": "Method not found"}
    else:
        reply["result"] = result
    return json.dumps(reply, separators=(",", ":")).encode() + b"\n"


def main() -> None:
    """Answer until the input ends."""
    kept = b""
    while data := os.read(0, 1 << 16):
        *lines, kept = (kept + data).split(b"\n")
        out = b"".join(answer(line) for line in lines if line.strip())
        while out:
            out = out[os.write(1, out) :]


if __name__ == "__main__":
    main()
