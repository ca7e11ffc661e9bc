"""Servers over HTTP as the picker shows them: ready, in want of a login, and busy until the time that it said."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest

from .conftest import Stage

TOOLS = [{"name": "find", "description": "Finds", "inputSchema": {"type": "object"}}]
RESULTS: dict[str, dict[str, Any]] = {
    "initialize": {
        "protocolVersion": "2025-11-25",
        "capabilities": {"tools": {}},
        "serverInfo": {"name": "web", "version": "1"},
    },
    "tools/list": {"tools": TOOLS},
}
NOT_FOUND = {"code": -32601, "message": "Method not found"}


class Handler(BaseHTTPRequestHandler):
    """Each path is a server; ``open`` has those that want a login no more."""

    open: set[str]
    protocol_version = "HTTP/1.1"

    def do_POST(self) -> None:
        message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        if self.path == "/login" and self.path not in self.open:
            self.say(401, **{"WWW-Authenticate": "Bearer"})
        elif self.path == "/busy":
            self.say(503, **{"Retry-After": "600"})
        elif "id" not in message:
            self.say(202)
        else:
            result = RESULTS.get(message["method"])
            answer = {"error": NOT_FOUND} if result is None else {"result": result}
            self.say(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer}))

    def do_GET(self) -> None:
        self.say(405)

    do_DELETE = do_GET

    def say(self, status: int, body: str = "", **headers: str) -> None:
        self.send_response(status)
        for name, value in {"Content-Type": "application/json", "Content-Length": str(len(body)), **headers}.items():
            self.send_header(name, value)
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        """Nothing: the terminal is the test's."""


@pytest.fixture
def web() -> Iterator[tuple[str, set[str]]]:
    """The URL that all servers are below, and the paths that need no login any more."""
    opened: set[str] = set()
    handler = type("Known", (Handler,), {"open": opened})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}", opened
        server.shutdown()
        thread.join()


def test_remote_servers_show_whether_they_want_a_login_or_when_they_are_tried_again(
    stage: Stage, web: tuple[str, set[str]]
) -> None:
    url, opened = web
    paths = ("good", "login", "busy")
    stage.path.write_text(json.dumps({"mcpServers": {name: {"url": f"{url}/{name}"} for name in paths}}))
    stage.open()
    terminal = stage.terminal
    terminal.until("1 of 3 servers ready", "HTTP 401 Unauthorized", "HTTP 503 Service Unavailable")
    lines = {name: line for line in terminal.at_rest().split("\n") for name in paths if f"[x] {name} " in line}
    assert "ready · 1 of 1 tool on the wire" in lines["good"]
    assert "needs login" in lines["login"]
    assert "as the server asks" in lines["busy"]
    opened.add("/login")
    terminal.keys("Down", "Down", "R")
    terminal.until("2 of 3 servers ready", gone="HTTP 401")
