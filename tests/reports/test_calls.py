"""Calls that get no answer."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import pytest
import trio
from playbill.actors import CallTimeout, Config, ServerDied, ServerEntry, open_host
from playbill.actors.edge.config.file import FileStore
from playbill.actors.testing import Script, ScriptedServers
from playbill.supervision import Backoff

from .conftest import PATIENCE, Project, fake, opened, said, until, virtual_time


class Web:
    """A server over HTTP in this very program, which can lose a call in several ways."""

    def __init__(self) -> None:
        self.ended = trio.Event()

    async def __call__(self, stream: trio.SocketStream) -> None:
        rest = b""
        try:
            while True:
                while b"\r\n\r\n" not in rest:
                    if not (data := await stream.receive_some()):
                        return
                    rest += data
                head, _, rest = rest.partition(b"\r\n\r\n")
                fields = dict(line.lower().split(b": ", 1) for line in head.split(b"\r\n")[1:])
                length = int(fields.get(b"content-length", 0))
                while len(rest) < length:
                    rest += await stream.receive_some()
                body, rest = rest[:length], rest[length:]
                if not await self._answer(stream, json.loads(body) if body else {}):
                    return
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            await trio.aclose_forcefully(stream)

    async def _answer(self, stream: trio.SocketStream, message: dict[str, Any]) -> bool:
        method, id_ = message.get("method"), message.get("id")
        how = message["params"]["name"] if method == "tools/call" else None
        if how == "close":
            return False
        if how == "exit":
            self.ended.set()
            return False
        if how in ("stall", "break off"):
            head = "HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nTransfer-Encoding: chunked\r\n\r\n"
            await stream.send_all(f'{head}1b\r\ndata: {{"jsonrpc": "2.0", "i\r\n'.encode())
            if how == "stall":
                await trio.sleep_forever()
            return False
        if id_ is None:
            status = "202 Accepted" if method else "405 Method Not Allowed"
            await stream.send_all(f"HTTP/1.1 {status}\r\nContent-Length: 0\r\n\r\n".encode())
            return True
        answer: dict[str, Any] = {"error": {"code": -32601, "message": "Method not found"}}
        if method == "initialize":
            info = {"name": "web", "version": "1"}
            answer = {"result": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}}, "serverInfo": info}}
        elif method == "tools/list":
            ways = ("close", "exit", "stall", "break off", "answer")
            answer = {"result": {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in ways]}}
        elif method == "tools/call":
            answer = {"result": {"content": [{"type": "text", "text": how}]}}
        text = json.dumps({"jsonrpc": "2.0", "id": id_, **answer})
        head = f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n"
        await stream.send_all((head + text).encode())
        return True


@pytest.mark.parametrize("how", ["close", "exit", "break off", "stall"])
async def test_b051_a_call_ends_when_its_server_over_http_is_lost_or_at_its_time_limit(how: str) -> None:
    web = Web()
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        nursery.start_soon(_serve, web, listeners)
        url = f"http://127.0.0.1:{listeners[0].socket.getsockname()[1]}/mcp"
        # The time limit of the calls is far beyond the patience of the test, but for the one that needs it.
        async with open_host(Config((ServerEntry("web", url=url),)), backoff=Backoff(base=0.01)) as host:
            assert await host.ready(timeout=PATIENCE)
            with trio.fail_after(PATIENCE):
                if how == "break off":
                    result = await host.call_tool("web", how, timeout=2 * PATIENCE)
                    assert result.is_error
                    assert "ended without a response" in said(result)
                elif how == "stall":
                    with pytest.raises(CallTimeout):
                        await host.call_tool("web", how, timeout=0.3)
                else:
                    with pytest.raises(ServerDied):
                        await host.call_tool("web", how, timeout=2 * PATIENCE)
                    await until(host, lambda snapshot: snapshot.model.server("web").restarts)
            if how == "exit":
                assert not await host.ready(timeout=0)
            else:
                assert await host.ready(timeout=PATIENCE)
                assert said(await host.call_tool("web", "answer", timeout=PATIENCE)) == "answer"
        nursery.cancel_scope.cancel()


async def _serve(web: Web, listeners: list[trio.SocketListener]) -> None:
    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, web, listeners)
        await web.ended.wait()
        nursery.cancel_scope.cancel()


async def test_b053_a_call_that_is_swallowed_can_be_cancelled_and_the_session_goes_on(project: Project) -> None:
    project.write(a=fake())
    async with open_host(project.path) as host:
        assert await host.ready(timeout=PATIENCE)
        pid = host.snapshot().model.server("a").pid
        async with trio.open_nursery() as nursery:
            nursery.start_soon(host.call, "mcp__a__fault", {"do": "silence"})
            while not host._board.lines["a"].in_flight:
                await trio.lowlevel.checkpoint()
            await host.call("mcp__a__echo", timeout=PATIENCE)
            nursery.cancel_scope.cancel()
        cancelled = json.loads(said(await host.call("mcp__a__fault", {"do": "cancelled"}, timeout=PATIENCE)))
        assert len(cancelled) == 1
        assert int(said(await host.call("mcp__a__pid", timeout=PATIENCE))) == pid
        assert host.snapshot().model.server("a").restarts == 0


@virtual_time
async def test_b055_calls_have_a_limit_of_their_own_in_seconds_and_reaching_it_costs_no_restart(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text('{"mcpServers": {"a": {"command": "a", "timeout": 5, "connectTimeout": 20}}}')
    servers = ScriptedServers(a=Script(("x",), connect_delay=15))
    async with opened(servers, store=FileStore(path)) as host:
        assert await host.ready(timeout=30), "the limit for calls is none for the start"
        servers.scripts["a"].call_delay = 4.9
        await host.call("mcp__a__x")
        servers.scripts["a"].call_delay = math.inf
        with trio.fail_after(PATIENCE), pytest.raises(CallTimeout, match="within 5 s"):
            await host.call("mcp__a__x")
        servers.scripts["a"].call_delay = 0
        await host.call("mcp__a__x")
        state = host.snapshot().model.server("a")
        assert (state.phase, state.restarts) == ("ready", 0)
        assert servers.spawns == {"a": 1}
