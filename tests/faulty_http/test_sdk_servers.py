"""The SDK's own server on uvicorn, in another process: both eras, with and without sessions, JSON and streams; killed."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.lowlevel
from playbill.actors import Config, Host, ServerDied, ServerEntry, ServerUnavailable, open_host
from playbill.actors.server import ServerSettings
from playbill.supervision import Backoff, Intensity

from ..forked import Forked
from ..neighbour import NEIGHBOUR, beside

PATIENCE = 60.0

SERVER = """
import anyio, json, sys, uvicorn
from mcp.server.mcpserver import Context, MCPServer
port, options = int(sys.argv[1]), json.loads(sys.argv[2])
server = MCPServer("real")
opened = 0

class Config(uvicorn.Config):
    def __init__(self, app, **more):
        async def counting(scope, receive, send):
            async def sent(message):
                global opened
                known = b"mcp-session-id" in dict(scope.get("headers", ()))
                opened += not known and b"mcp-session-id" in dict(message.get("headers", ()))
                await send(message)
            await app(scope, receive, sent)
        super().__init__(counting, **more)

uvicorn.Config = Config

@server.tool()
def sessions() -> int:
    return opened

@server.tool()
def add(a: int, b: int) -> int:
    return a + b

@server.tool()
async def slow() -> str:
    await anyio.sleep(3600)
    return "at last"

@server.tool()
async def steps(ctx: Context) -> str:
    for step in range(3):
        await ctx.report_progress(step, 3, f"step {step}")
    return "done"

server.run(port=port, **options)
"""


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


@asynccontextmanager
async def running(port: int, **options: Any) -> AsyncIterator[Forked]:
    """The server, in its process; killed afterwards."""
    import json

    process = Forked(
        [sys.executable, "-c", SERVER, str(port), json.dumps(options)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        yield process
    finally:
        if process.poll() is None:
            os.kill(process.pid, signal.SIGKILL)
        process.wait()


@asynccontextmanager
async def hosted(url: str, era: str | None = None, **entry: Any) -> AsyncIterator[Host]:
    """A host that keeps trying; beside the server, a neighbour over stdio is called all the time."""
    many = Intensity(restarts=10_000, window=60.0, then="park", park_retry=None)
    config = Config((ServerEntry("web", url=url, **entry), NEIGHBOUR))
    async with (
        open_host(
            config, backoff=Backoff(base=0.05, max=0.2), intensity=many, settings=ServerSettings(drain=0.2)
        ) as host,
        beside(host),
    ):
        yield host


async def answers(host: Host) -> None:
    assert await host.ready(timeout=PATIENCE)
    result = await host.call_tool("web", "add", {"a": 1, "b": 2}, timeout=PATIENCE)
    assert result.structured_content == {"result": 3}


STREAMABLE = "streamable-http"


@pytest.mark.parametrize("stateless", [True, False])
@pytest.mark.parametrize("json_response", [True, False])
async def test_the_modern_era_over_streamable_http(stateless: bool, json_response: bool) -> None:
    port = free_port()
    options = {"stateless_http": stateless, "json_response": json_response}
    async with running(port, transport=STREAMABLE, **options), hosted(f"http://127.0.0.1:{port}/mcp") as host:
        await answers(host)
        state = host.snapshot().model.server("web")
        assert state is not None
        assert state.protocol_version == "2026-07-28"
        assert {tool.bare for tool in state.tools} == {"add", "sessions", "slow", "steps"}


@pytest.fixture
def legacy(monkeypatch: pytest.MonkeyPatch) -> None:
    """The older era is spoken, which nobody would choose with such a server."""
    from playbill.actors.edge.wire import meeting, negotiate

    async def older(session: Any, known: Any, seconds: float) -> str:
        return await negotiate.negotiate(session, "legacy", seconds)

    monkeypatch.setattr(meeting, "negotiate", older)


@pytest.mark.usefixtures("legacy")
@pytest.mark.parametrize("stateless", [True, False])
@pytest.mark.parametrize("json_response", [True, False])
async def test_the_legacy_era_over_streamable_http(stateless: bool, json_response: bool) -> None:
    port = free_port()
    options = {"stateless_http": stateless, "json_response": json_response}
    async with running(port, transport=STREAMABLE, **options), hosted(f"http://127.0.0.1:{port}/mcp") as host:
        await answers(host)
        state = host.snapshot().model.server("web")
        assert state is not None
        assert state.protocol_version == "2025-11-25"
        heard: list[tuple[float, str | None]] = []

        async def progress(done: float, total: float | None, message: str | None) -> None:
            await trio.lowlevel.checkpoint()
            heard.append((done, message))

        await host.call_tool("web", "steps", timeout=PATIENCE, progress=progress)
        if not json_response:
            assert heard == [(0.0, "step 0"), (1.0, "step 1"), (2.0, "step 2")]


async def test_the_older_transport_is_found_by_itself() -> None:
    port = free_port()
    async with running(port, transport="sse"), hosted(f"http://127.0.0.1:{port}/sse") as host:
        await answers(host)


@pytest.mark.parametrize("transport", [STREAMABLE, "sse"])
async def test_a_process_that_is_killed_and_started_on_the_same_port_is_ready_again_by_itself(transport: str) -> None:
    await killed_and_started_again(transport)


@pytest.mark.usefixtures("legacy")
async def test_a_process_that_is_killed_and_started_on_the_same_port_is_asked_for_one_session() -> None:
    await killed_and_started_again(STREAMABLE, sessions=1)


async def killed_and_started_again(transport: str, sessions: int = 0) -> None:
    """All calls of the one that was killed end; the other one answers, and was asked for so many sessions."""
    port = free_port()
    async with hosted(f"http://127.0.0.1:{port}/{'sse' if transport == 'sse' else 'mcp'}") as host:

        async def opened() -> int:
            result = await host.call_tool("web", "sessions", timeout=PATIENCE)
            return int(result.structured_content["result"])

        async with running(port, transport=transport) as process:
            await answers(host)
            assert await opened() == sessions
            ended = []

            async def call() -> None:
                with pytest.raises((ServerDied, ServerUnavailable)):
                    await host.call_tool("web", "slow", timeout=PATIENCE)
                ended.append(1)

            async with trio.open_nursery() as nursery:
                for _ in range(20):
                    nursery.start_soon(call)
                with trio.fail_after(PATIENCE):
                    while host._board.lines["web"].in_flight < 20:
                        await trio.lowlevel.checkpoint()
                os.kill(process.pid, signal.SIGKILL)
            assert len(ended) == 20
        async with running(port, transport=transport):
            with trio.fail_after(PATIENCE):
                async for snapshot in host.changes():
                    state = snapshot.model.server("web")
                    if state is not None and state.phase == "ready" and state.restarts:
                        break
            await answers(host)
            assert await opened() == sessions


async def test_a_thousand_cancelled_calls_leave_a_real_server_usable() -> None:
    port = free_port()
    async with running(port, transport=STREAMABLE), hosted(f"http://127.0.0.1:{port}/mcp") as host:
        await answers(host)
        for _ in range(10):
            async with trio.open_nursery() as nursery:
                for _ in range(100):
                    nursery.start_soon(host.call_tool, "web", "slow")
                with trio.fail_after(PATIENCE):
                    while host._board.lines["web"].in_flight < 100:
                        await trio.lowlevel.checkpoint()
                nursery.cancel_scope.cancel()
        await answers(host)
        state = host.snapshot().model.server("web")
        assert state is not None
        assert state.error is None
