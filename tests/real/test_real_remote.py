"""A real server from npm, over streamable HTTP and over the older SSE; killed and started on the same port."""

from __future__ import annotations

import os
import signal
import socket
import subprocess
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
import trio
import trio.lowlevel
from playbill.actors import Config, ServerEntry, open_host
from playbill.supervision import Backoff, Intensity

from ..neighbour import NEIGHBOUR, beside
from .conftest import Installed

pytestmark = pytest.mark.real

PATIENCE = 90.0
MODES = {"streamableHttp": "mcp", "sse": "sse"}


@asynccontextmanager
async def everything(installed: Installed, mode: str, port: int) -> AsyncIterator[None]:
    """The server in a process of its own."""
    process = await trio.lowlevel.open_process(
        [str(installed.node / "mcp-server-everything"), mode],
        env={**os.environ, "PORT": str(port)},
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        start_new_session=True,
    )
    try:
        yield
    finally:
        with trio.CancelScope(shield=True):
            os.killpg(process.pid, signal.SIGKILL)
            await process.wait()


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("typed", [True, False])
async def test_server_everything_over_http_is_met_used_and_met_again(
    installed: Installed, mode: str, typed: bool
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    kind = {"streamableHttp": "http", "sse": "sse"}[mode] if typed else None
    entry = ServerEntry("everything", url=f"http://127.0.0.1:{port}/{MODES[mode]}", type=kind)
    many = Intensity(restarts=10_000, window=60.0, then="park", park_retry=None)
    config, backoff = Config((entry, NEIGHBOUR)), Backoff(base=0.05, max=0.2)
    async with open_host(config, backoff=backoff, intensity=many) as host, beside(host):
        for _ in range(2):
            async with everything(installed, mode, port):
                with trio.fail_after(PATIENCE):
                    async for snapshot in host.changes():
                        state = snapshot.model.server("everything")
                        if state is not None and state.phase == "ready":
                            break
                assert len(state.tools) >= 8
                result = await host.call_tool("everything", "echo", {"message": "hear, hear"}, timeout=PATIENCE)
                assert "hear, hear" in result.content[0].text
            with trio.fail_after(PATIENCE):
                async for snapshot in host.changes():
                    state = snapshot.model.server("everything")
                    if state is not None and not state.connected:
                        break
