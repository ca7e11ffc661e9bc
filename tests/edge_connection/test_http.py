"""Servers over HTTP: they work, and what goes wrong is one line. Real sockets; a small server by hand, and the SDK's."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

import pytest
import trio
import trio.lowlevel
from playbill.actors.model.config import ServerEntry
from playbill.actors.ports import ConnectionFailed, ConnectionLost

from ..forked import Forked
from .conftest import Connector
from .test_connection import text

Patience = Callable[[], Any]


class Web:
    """A legacy MCP server over streamable HTTP, as simple as can be; each test may change how it answers."""

    def __init__(self) -> None:
        self.headers: list[dict[str, str]] = []
        self.status: dict[str, int] = {}
        self.drop: set[str] = set()
        web = self

        class Handler(BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def do_POST(self) -> None:
                message = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
                web.headers.append(dict(self.headers))
                method = message.get("method", "")
                if method in web.drop:
                    self.close_connection = True
                    return
                status = web.status.get(method, web.status.get("*", 200))
                if status != 200:
                    self.reply(status, b"")
                elif "id" not in message:
                    self.reply(202, b"")
                else:
                    self.reply(200, json.dumps({"jsonrpc": "2.0", "id": message["id"], **answer(message)}).encode())

            def do_GET(self) -> None:
                self.reply(web.status.get("GET", web.status.get("*", 405)), b"")

            do_DELETE = do_GET

            def reply(self, status: int, body: bytes) -> None:
                self.send_response(status)
                self.send_header("Content-Type", "application/json")
                self.send_header("Content-Length", str(len(body)))
                self.end_headers()
                self.wfile.write(body)

            def log_message(self, format: str, *args: Any) -> None:
                pass

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.server.daemon_threads = True
        self.url = f"http://127.0.0.1:{self.server.server_address[1]}/mcp"
        self.thread = threading.Thread(target=self.server.serve_forever, kwargs={"poll_interval": 0.01})
        self.thread.start()

    def close(self) -> None:
        self.server.shutdown()
        self.server.server_close()
        self.thread.join()


def answer(message: dict[str, Any]) -> dict[str, Any]:
    method = message["method"]
    if method == "initialize":
        info = {"name": "web", "version": "1"}
        return {"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}}
    if method == "tools/list":
        return {"result": {"tools": [{"name": "echo", "inputSchema": {"type": "object"}}]}}
    if method == "tools/call":
        return {"result": {"content": [{"type": "text", "text": json.dumps(message["params"]["arguments"])}]}}
    return {"error": {"code": -32601, "message": "Method not found"}}


@pytest.fixture
def web() -> Iterator[Web]:
    web = Web()
    yield web
    web.close()


def entry(url: str, **more: Any) -> ServerEntry:
    return ServerEntry("web", url=url, **more)


async def failure(connect: Connector, entry: ServerEntry) -> ConnectionFailed:
    with trio.fail_after(20), pytest.raises(ConnectionFailed) as caught:
        async with connect(entry):
            pytest.fail("it cannot be connected to")
    assert "\n" not in caught.value.reason
    return caught.value


async def test_it_lists_and_answers_with_the_headers_of_the_entry(
    web: Web, connect: Connector, patience: Patience
) -> None:
    with patience():
        async with connect(entry(web.url, headers={"X-Key": "abc"})) as connection:
            assert connection.pid is None
            assert [tool.bare for tool in (await connection.list_tools()).tools] == ["echo"]
            assert json.loads(text(await connection.call_tool("echo", {"a": 1}, None))) == {"a": 1}
    assert {headers.get("X-Key") for headers in web.headers} == {"abc"}


async def test_a_refused_login_is_told_apart(web: Web, connect: Connector) -> None:
    web.status["*"] = 401
    error = await failure(connect, entry(web.url))
    assert error.needs_auth
    assert error.reason == "HTTP 401 Unauthorized: it wants a login"


async def test_a_refused_login_is_told_apart_by_the_sdks_transports_too(web: Web, connect: Connector) -> None:
    web.status["*"] = 401
    with trio.fail_after(20), pytest.raises(ConnectionFailed) as caught:
        async with connect(entry(web.url), dispatcher="sdk"):
            pytest.fail("it cannot be connected to")
    assert caught.value.needs_auth
    assert "HTTP 401 Unauthorized: it wants a login" in caught.value.reason


@pytest.mark.parametrize(("status", "reason"), [(500, "HTTP 500 Internal Server Error"), (404, "HTTP 404 Not Found")])
async def test_a_status_is_the_reason(web: Web, connect: Connector, status: int, reason: str) -> None:
    web.status["*"] = status
    error = await failure(connect, entry(web.url))
    assert reason in error.reason
    assert not error.needs_auth


async def test_nobody_listening_is_the_reason(connect: Connector) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    error = await failure(connect, entry(f"http://127.0.0.1:{port}/mcp"))
    assert "ConnectError" in error.reason


async def test_a_dropped_handshake_is_the_reason(web: Web, connect: Connector) -> None:
    web.drop = {"server/discover", "initialize"}
    error = await failure(connect, entry(web.url))
    assert "RemoteProtocolError" in error.reason


@pytest.mark.parametrize("url", ["nonsense", "ftp://127.0.0.1/x", "http://"])
async def test_a_url_that_is_none_is_the_reason(connect: Connector, url: str) -> None:
    assert (await failure(connect, entry(url))).reason


async def test_a_server_that_drops_a_call_loses_the_connection_and_not_the_caller(
    web: Web, connect: Connector, patience: Patience
) -> None:
    with patience():
        async with connect(entry(web.url)) as connection:
            web.drop = {"tools/call"}
            with pytest.raises(ConnectionLost) as caught:
                await connection.call_tool("echo", {}, None)
            assert "RemoteProtocolError" in caught.value.reason
            assert await connection.wait_lost() == caught.value.reason
            await trio.lowlevel.checkpoint()  # the body was not cancelled


async def test_a_status_on_a_call_is_a_tool_error(web: Web, connect: Connector, patience: Patience) -> None:
    with patience():
        async with connect(entry(web.url)) as connection:
            web.status["tools/call"] = 503
            result = await connection.call_tool("echo", {}, None)
            assert result.is_error
            web.status.clear()
            assert not (await connection.call_tool("echo", {}, None)).is_error


SERVER = """
import sys
from mcp.server.mcpserver import MCPServer
server = MCPServer("real")
@server.tool()
def add(a: int, b: int) -> int:
    return a + b
server.run(transport=sys.argv[1], port=int(sys.argv[2]))
"""


@pytest.mark.parametrize("transport", ["streamable-http", "sse"])
@pytest.mark.parametrize("dispatcher", ["native", "sdk"])
async def test_the_sdks_own_server(connect: Connector, transport: str, dispatcher: str) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    process = Forked(
        [sys.executable, "-c", SERVER, transport, str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    one = entry(f"http://127.0.0.1:{port}/{'sse' if transport == 'sse' else 'mcp'}", type=transport)
    try:
        with trio.fail_after(60):
            while True:
                try:
                    async with connect(one, dispatcher=dispatcher) as connection:
                        assert [tool.bare for tool in (await connection.list_tools()).tools] == ["add"]
                        result = await connection.call_tool("add", {"a": 1, "b": 2}, None)
                        assert result.structured_content == {"result": 3}
                        break
                except ConnectionFailed:  # not up yet
                    await trio.sleep(0.2)
    finally:
        os.kill(process.pid, 9)
        process.wait()
