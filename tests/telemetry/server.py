"""A small MCP server over stdio, from the standard library alone, that shows what it was sent and betrays what it knows.

Tools: ``meta`` answers with the ``_meta`` of the request; ``refuse`` with a JSON-RPC error, ``fail`` with an error of the tool,
``die`` not at all. These three say all values of its environment named like a secret. It speaks 2025-11-25.
"""

from __future__ import annotations

import json
import os
import sys


def main() -> None:
    """Serve until stdin ends."""
    known = " ".join(value for name, value in sorted(os.environ.items()) if name.startswith("SECRET"))
    metas: list[object] = []
    for line in sys.stdin:
        message = json.loads(line)
        method, id, params = message.get("method"), message.get("id"), message.get("params") or {}
        if method != "tools/call":
            metas.append([method, params.get("_meta")])
        answer: dict[str, object]
        if method == "initialize":
            about = {"name": "small", "version": "1"}
            answer = {"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": about}}
        elif method == "tools/list":
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in ("meta", "refuse", "fail", "die")]
            answer = {"result": {"tools": tools}}
        elif method != "tools/call":
            answer = {"error": {"code": -32601, "message": f"no {method}: {known}"}}
        elif params["name"] == "die":
            print(f"panic: {known}", file=sys.stderr, flush=True)
            sys.exit(3)
        elif params["name"] == "refuse":
            answer = {"error": {"code": -32050, "message": f"refused: {known} {params['arguments']}"}}
        else:
            told = known if params["name"] == "fail" else json.dumps({"call": params.get("_meta"), "before": metas})
            answer = {"result": {"content": [{"type": "text", "text": told}], "isError": params["name"] == "fail"}}
        if id is not None:
            print(json.dumps({"jsonrpc": "2.0", "id": id, **answer}), flush=True)


main()
