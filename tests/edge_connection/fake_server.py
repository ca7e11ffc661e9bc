"""A small MCP server of the standard library, in both eras, that can do everything wrong. Run: fake_server.py '{"…": …}'.

Options (all optional):
    era               "legacy" (default), "modern" or "both"
    die_of_probe      exit with code 7 on server/discover
    silent            no answer to unknown methods, server/discover among them
    slow              seconds before the first line is read
    exit_at_once      exit code; with "say" on stderr first
    say               a line for stderr at the start
    hang              read, and never answer anything
    half_line         answer the first message with half a line, then hang
    tools             pages: a list of lists of raw tools; the cursor of page n is "n"
    cursors           what to send as nextCursor of each page instead
    list_answer       what to answer tools/list instead: {"result": …} or {"error": …}
    no_tools          declare no tools capability
    exit_after_start  exit code; after the grandchild was started
    exit_on           exit with code 9 on this method
    ignore_eof, ignore_term
    grandchild        "holds" (a child that holds stdout) or "stubborn" (one that also ignores SIGTERM) or "escaped" (one
                      in a session of its own); its pid goes to the file "pid_file"
    list_changed      announce list changes (the capability)
    log               a file to which each received method is appended
"""

import json
import os
import signal
import subprocess
import sys
import threading
import time

OPTIONS = json.loads(sys.argv[1]) if len(sys.argv) > 1 else {}
LOCK = threading.Lock()
OUT = sys.stdout.buffer
TOOLS = OPTIONS.get("tools") or [
    [{"name": name, "inputSchema": {"type": "object"}} for name in ("echo", "pid", "fault")]
]
ERA = OPTIONS.get("era", "legacy")
CANCELLED = []
LISTENING = []


def write(text):
    with LOCK:
        OUT.write(text if isinstance(text, bytes) else text.encode())
        OUT.flush()


def send(**message):
    write(json.dumps({"jsonrpc": "2.0", **message}) + "\n")


def text(value, **more):
    result = {"content": [{"type": "text", "text": value if isinstance(value, str) else json.dumps(value)}], **more}
    if ERA != "legacy" and STATE.get("modern"):
        result["resultType"] = "complete"
    return result


STATE = {}


def spawn_grandchild(kind):
    code = "import time, signal\n"
    if kind == "stubborn":
        code += "signal.signal(signal.SIGTERM, signal.SIG_IGN)\n"
    code += "print(end='', flush=True)\ntime.sleep(120)"
    command = [sys.executable, "-I", "-S", "-c", code]
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL, start_new_session=kind == "escaped")
    if "pid_file" in OPTIONS:
        with open(OPTIONS["pid_file"] + ".new", "w") as file:
            file.write(str(child.pid))
        os.replace(OPTIONS["pid_file"] + ".new", OPTIONS["pid_file"])
    return child.pid


def fault(id_, args):
    """The tool that misbehaves: {"do": what, …}; answers unless that is the fault."""
    do = args.get("do")
    if do == "garbage":
        write('this is no JSON\n[1, 2]\n{"jsonrpc": "2.0"}\n\n')
    elif do == "bad_utf8":
        send_result = json.dumps({"jsonrpc": "2.0", "id": id_, "result": text("caf@")}).encode()
        write(send_result.replace(b"@", b"\xe9") + b"\n")
        return
    elif do == "half_line":
        write('{"jsonrpc": "2.0", "id": ' + json.dumps(id_) + ', "resu\n')
        return
    elif do == "stderr":
        sys.stderr.write("x" * 70 + "\n")
        sys.stderr.buffer.write(b"e" * args["bytes"] + b"\n\xff last words\n")
        sys.stderr.flush()
    elif do == "long":
        send(id=id_, result=text("a" * args["bytes"]))
        return
    elif do == "exit":
        sys.stderr.write(args.get("say", "") + "\n")
        sys.stderr.flush()
        os._exit(args.get("code", 1))
    elif do == "close_stdout":
        os.close(1)
        return
    elif do == "stop_reading":
        send(id=id_, result=text("stopped"))
        time.sleep(120)
    elif do == "silence":
        return
    elif do == "null":
        send(id=id_, result=None)
        return
    elif do == "nonsense":
        send(id=id_, result={"content": "not a list"})
        return
    elif do == "error":
        send(id=id_, error=args["error"])
        return
    elif do == "progress":
        for step in range(args["steps"]):
            send(method="notifications/progress", params={"progressToken": args["token"], "progress": step, "total": 9})
    elif do == "storm":
        line = json.dumps({"jsonrpc": "2.0", "method": "notifications/tools/list_changed"}) + "\n"
        for _ in range(args["count"] // 100):
            write(line * 100)
    elif do == "flood":
        line = json.dumps({"jsonrpc": "2.0", "method": "notifications/message", "params": {"level": "info", "data": 1}})
        for _ in range(args["count"] // 100):
            write((line + "\n") * 100)
    elif do == "pings":
        for n in range(args["count"]):
            send(id=f"ping-{n}", method="ping")
    elif do == "grandchild":
        send(id=id_, result=text(spawn_grandchild(args["kind"])))
        return
    elif do == "changed":
        if LISTENING:
            for subscription in LISTENING:
                meta = {"io.modelcontextprotocol/subscriptionId": subscription}
                send(method="notifications/tools/list_changed", params={"_meta": meta})
        else:
            send(method="notifications/tools/list_changed")
    elif do == "end_listening":
        while LISTENING:
            send(id=LISTENING.pop(), result={"resultType": "complete"})
    elif do == "cancelled":
        send(id=id_, result=text(CANCELLED))
        return
    send(id=id_, result=text("done"))


def answer(message):
    method, id_, params = message.get("method"), message.get("id"), message.get("params") or {}
    if "log" in OPTIONS:
        with open(OPTIONS["log"], "a") as file:
            file.write(f"{method}\n")
    if method is not None and OPTIONS.get("exit_on") == method:
        sys.stderr.write("no licence\n")
        sys.stderr.flush()
        os._exit(9)
    if OPTIONS.get("hang"):
        return
    if OPTIONS.get("half_line"):
        write('{"jsonrpc": "2.0", "id": 1, "resu')
        OPTIONS["hang"] = True
        return
    capabilities = {} if OPTIONS.get("no_tools") else {"tools": {"listChanged": bool(OPTIONS.get("list_changed"))}}
    if method == "server/discover" and ERA != "legacy":
        STATE["modern"] = True
        result = {"supportedVersions": ["2026-07-28"], "capabilities": capabilities, "resultType": "complete"}
        send(id=id_, result={**result, "ttlMs": 0, "cacheScope": "private"})
    elif method == "server/discover" and OPTIONS.get("die_of_probe"):
        sys.stderr.write("unknown method server/discover\n")
        sys.stderr.flush()
        os._exit(7)
    elif method == "initialize" and (ERA == "modern" or STATE.get("modern")):
        data = {"supported": ["2026-07-28"], "requested": params.get("protocolVersion")}
        send(id=id_, error={"code": -32022, "message": "Unsupported protocol version", "data": data})
    elif method == "initialize":
        info = {"name": "fake", "version": "1"}
        result = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}
        send(id=id_, result=result)
    elif method == "tools/list" and "list_answer" in OPTIONS:
        send(id=id_, **OPTIONS["list_answer"])
    elif method == "tools/list":
        page = int(params.get("cursor") or 0)
        result = {"tools": TOOLS[page]}
        if STATE.get("modern"):
            result |= {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
        if "cursors" in OPTIONS:
            result["nextCursor"] = OPTIONS["cursors"][page]
        elif page + 1 < len(TOOLS):
            result["nextCursor"] = str(page + 1)
        send(id=id_, result=result)
    elif method == "tools/call":
        name, args = params["name"], params.get("arguments") or {}
        if name == "echo":
            send(id=id_, result=text(args))
        elif name == "pid":
            send(id=id_, result=text(os.getpid()))
        elif name == "sleep":
            threading.Timer(args["seconds"], send, kwargs={"id": id_, "result": text("slept")}).start()
        elif name == "fault":
            if args.get("do") == "progress":
                args["token"] = params["_meta"]["progressToken"]
            fault(id_, args)
        else:
            send(id=id_, error={"code": -32602, "message": f"Unknown tool: {name}"})
    elif method == "subscriptions/listen":
        LISTENING.append(id_)
        meta = {"io.modelcontextprotocol/subscriptionId": id_}
        send(
            method="notifications/subscriptions/acknowledged",
            params={"_meta": meta, "notifications": params["notifications"]},
        )
    elif method == "notifications/cancelled":
        CANCELLED.append(params.get("requestId"))
    elif id_ is not None and method is not None and not OPTIONS.get("silent"):
        send(id=id_, error={"code": -32601, "message": "Method not found"})


def main():
    if OPTIONS.get("ignore_term"):
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
    if "say" in OPTIONS:
        sys.stderr.write(OPTIONS["say"] + "\n")
        sys.stderr.flush()
    if "exit_at_once" in OPTIONS:
        os._exit(OPTIONS["exit_at_once"])
    if "grandchild" in OPTIONS:
        spawn_grandchild(OPTIONS["grandchild"])
    if "exit_after_start" in OPTIONS:
        os._exit(OPTIONS["exit_after_start"])
    time.sleep(OPTIONS.get("slow", 0))
    for line in sys.stdin.buffer:
        answer(json.loads(line))
    while OPTIONS.get("ignore_eof"):
        time.sleep(60)


main()
