"""The server that all peers run: `../tiny_server.py`, which also says that it was started, and can change its list.

    server.py NAME FOLDER [hang|stubborn|faulty]

It writes a line ``NAME pid`` to FOLDER/spawns each time it is started, is called NAME, and has one tool more: ``grow`` adds a
tool ``grown`` and announces it. ``hang`` says nothing at all; ``stubborn`` has a child in a session of its own, and both ignore
SIGTERM and the end of stdin. ``faulty`` has a tool ``misbehave``, whose argument ``how`` is one of `DEEDS`, and hangs when it
is started for as long as there is a file FOLDER/hang. Every process of it has FOLDER in its command line.
"""

import os
import signal
import sys
import threading
import time

NAME, FOLDER, *MODE = sys.argv[1:]
sys.path.insert(0, os.path.dirname(os.path.dirname(os.path.abspath(__file__))))  # noqa: PTH100, PTH120
import tiny_server as tiny  # noqa: E402

GROW = {"name": "grow", "description": "Adds a tool.", "inputSchema": {"type": "object", "properties": {}}}
HOW = {"type": "object", "properties": {"how": {"type": "string"}}, "required": ["how"]}
plain = tiny.result_of


def leave():
    os._exit(1)


def flood(fd, line, size=256 * 1024):
    """So many bytes of lines, at once."""
    block = line * (size // len(line))
    while block:
        block = block[os.write(fd, block) :]


def storm(count=500, seconds=0.5):
    """Announce changes that are none, evenly, and answer meanwhile."""

    def run():
        began = time.monotonic()
        for step in range(1, count + 1):
            os.write(1, b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n')
            time.sleep(max(0.0, began + seconds * step / count - time.monotonic()))

    threading.Thread(target=run, daemon=True).start()


def ignore():
    """Neither SIGTERM nor the end of stdin ends it from now on."""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    MODE[:] = ["ignoring"]


DEEDS = {
    "exit": leave,
    "stdout": lambda: flood(1, b"no message at all, and there are many of them\n"),
    "stderr": lambda: flood(2, b"complaints, and there are many of them\n"),
    "storm": storm,
    "stubborn": ignore,
}


def result_of(method, params):
    """As `tiny_server.result_of`, with the name, the capability and the tool."""
    if method == "tools/call" and params["name"] == "grow":
        tiny.TOOLS.append({**GROW, "name": "grown"})
        os.write(1, b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}\n')
        return {"content": [{"type": "text", "text": "done"}], "isError": False}
    if method == "tools/call" and params["name"] == "misbehave":
        DEEDS[params["arguments"]["how"]]()
        return {"content": [{"type": "text", "text": "done"}], "isError": False}
    result = plain(method, params)
    if method == "initialize":
        result["serverInfo"]["name"] = NAME
        result["capabilities"]["tools"]["listChanged"] = True
    return result


def main():
    with open(os.path.join(FOLDER, "spawns"), "a") as file:  # noqa: PTH118, PTH123
        file.write(f"{NAME} {os.getpid()}\n")
    if MODE == ["hang"]:
        time.sleep(3600)
    if MODE == ["stubborn"]:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if os.fork() == 0:
            os.setsid()
            time.sleep(3600)
    while MODE == ["faulty"] and os.path.exists(os.path.join(FOLDER, "hang")):  # noqa: PTH110, PTH118
        time.sleep(0.02)
    tiny.TOOLS.append(GROW)
    if MODE == ["faulty"]:
        tiny.TOOLS.append({"name": "misbehave", "description": "Does something wrong.", "inputSchema": HOW})
    tiny.result_of = result_of
    tiny.main()
    if MODE in (["stubborn"], ["ignoring"]):
        time.sleep(3600)


main()
