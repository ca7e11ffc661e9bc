"""A small MCP server of the standard library whose tools meet, hang, die and change the list. Run: server.py [FOLDER].

``hang`` writes its process id to FOLDER/hangs.ID and never answers. The list has ``extra`` while it is switched on.
"""

import json
import os
import signal
import sys
import threading
from pathlib import Path

FOLDER = Path(sys.argv[1]) if len(sys.argv) > 1 else None
TEXT = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
NONE = {"type": "object", "properties": {}}
TOOLS = {
    "echo": (TEXT, "Says a text again."),
    "fail": (NONE, "Fails."),
    "meet": (NONE, "Answers when two are waiting."),
    "hang": (NONE, "Never answers."),
    "die": (NONE, "Kills its server."),
    "change": (NONE, "Switches another tool on or off."),
    "reshape": (NONE, "Has the tool that fails take an argument."),
    "cancelled": (NONE, "Which calls were cancelled."),
}
LOCK, CANCELLED, CALLS, MEETING = threading.Lock(), [], {}, threading.Barrier(2)


def send(**message):
    with LOCK:
        sys.stdout.write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")
        sys.stdout.flush()


def run(name, arguments):
    if name == "echo":
        return arguments["text"]
    if name == "meet":
        MEETING.wait()
        return "met"
    if name == "die":
        os.kill(os.getpid(), signal.SIGKILL)
    if name == "change":
        if TOOLS.pop("extra", None) is None:
            TOOLS["extra"] = (NONE, "One more.")
        send(method="notifications/tools/list_changed")
        return "changed"
    if name == "reshape":
        TOOLS["fail"] = (TEXT, "Fails.")
        send(method="notifications/tools/list_changed")
        return "reshaped"
    if name == "cancelled":
        return " ".join(CANCELLED)
    if name == "hang":
        if FOLDER is not None:
            new = FOLDER / f"new.{os.getpid()}"
            new.write_text(str(os.getpid()))
            new.rename(FOLDER / f"hangs.{os.getpid()}")
        threading.Event().wait()
    raise ValueError(f"{name} does not work")


def call(id_, name, arguments):
    try:
        text, error = run(name, arguments), False
    except Exception as problem:
        text, error = str(problem), True
    send(id=id_, result={"content": [{"type": "text", "text": text}], "isError": error})


def answer(method, id_, params):
    if method == "initialize":
        capabilities, info = {"tools": {"listChanged": True}}, {"name": "tests", "version": "1"}
        send(id=id_, result={"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info})
    elif method == "tools/list":
        listed = [
            {"name": name, "description": about, "inputSchema": schema} for name, (schema, about) in TOOLS.items()
        ]
        send(id=id_, result={"tools": listed})
    elif method == "tools/call":
        CALLS[id_] = params["name"]
        threading.Thread(target=call, args=(id_, params["name"], params.get("arguments") or {}), daemon=True).start()
    elif method == "notifications/cancelled":
        CANCELLED.append(CALLS[params["requestId"]])
    elif id_ is not None:
        send(id=id_, error={"code": -32601, "message": "Method not found"})


for line in sys.stdin:
    message = json.loads(line)
    answer(message.get("method"), message.get("id"), message.get("params") or {})
os._exit(0)
