"""One server with every feature, met in each era, in memory and in another process, over stdio and over HTTP.

No time is asserted but in virtual time. What a server is met as, its `stage`, is a parameter of nearly every test here.
"""

from __future__ import annotations

import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.lowlevel
from playbill.actors import Asker, ClientHandlers, Config, Host, ServerEntry, open_host
from playbill.actors.edge.wire import meeting, negotiate
from playbill.actors.server import ServerSettings
from playbill.supervision import Backoff, Intensity

from . import server as made

PATIENCE = 60.0
SERVER = Path(made.__file__)
VERSIONS = {"legacy": "2025-11-25", "modern": "2026-07-28"}

Open = Callable[..., AbstractAsyncContextManager[Host]]


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


@asynccontextmanager
async def serving(port: int) -> AsyncIterator[trio.Process]:
    """The server over HTTP in its process; killed afterwards."""
    process = await trio.lowlevel.open_process(
        [sys.executable, str(SERVER), str(port)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    try:
        yield process
    finally:
        with trio.CancelScope(shield=True):
            if process.poll() is None:
                os.kill(process.pid, signal.SIGKILL)
            await process.wait()


@pytest.fixture
def era(request: pytest.FixtureRequest) -> str:
    """Of the stage."""
    return str(request.getfixturevalue("stage")).partition("-")[2]


@pytest.fixture
def opened(stage: str, era: str, monkeypatch: pytest.MonkeyPatch) -> Open:
    """``opened(handlers, **options)``: a host with the one server, ``s``, ready on the stage."""
    if era == "legacy":

        async def legacy(session: Any, known: Any, seconds: float) -> str:
            return await negotiate.negotiate(session, "legacy", seconds)

        monkeypatch.setattr(meeting, "negotiate", legacy)

    @asynccontextmanager
    async def open_it(handlers: ClientHandlers | None = None, **options: Any) -> AsyncIterator[Host]:
        where = stage.partition("-")[0]
        many = Intensity(restarts=10_000, window=60.0, then="park", park_retry=None)
        options.setdefault("backoff", Backoff(base=0.05, max=0.2))
        settings = ServerSettings(drain=0.2)
        if where == "http":
            port = free_port()
            async with serving(port):
                config = Config((ServerEntry("s", url=f"http://127.0.0.1:{port}/mcp"),))
                async with open_host(config, handlers=handlers, intensity=many, settings=settings, **options) as host:
                    await ready(host, era)
                    yield host
            return
        if where == "stdio":
            entry = ServerEntry("s", command=sys.executable, args=(str(SERVER), "stdio"))
        else:
            server = made.make()
            entry = ServerEntry("s", server=server)
        async with open_host(Config((entry,)), handlers=handlers, intensity=many, settings=settings, **options) as host:
            await ready(host, era)
            yield host

    return open_it


async def ready(host: Host, era: str) -> None:
    assert (await host.ready(timeout=PATIENCE)).missing == {}
    state = host.snapshot().model.server("s")
    assert state is not None
    assert state.protocol_version == VERSIONS[era]


async def said(host: Host, tool: str, **arguments: Any) -> str:
    """The text that a tool answers."""
    result = await host.call_tool("s", tool, arguments, timeout=PATIENCE)
    return " ".join(part.text for part in result.content if part.type == "text")


class Embedder:
    """Handlers that answer, and note who asked for what."""

    def __init__(self) -> None:
        self.asked: list[tuple[Asker, Any]] = []
        self.told: list[Any] = []
        self.news = trio.Event()
        self.roots: list[Any] = []
        self.hangs = False
        self.cancelled = trio.Event()

    async def give_roots(self, asker: Asker) -> Any:
        await trio.lowlevel.checkpoint()
        return self.roots

    async def sampling(self, asker: Asker, params: Any) -> Any:
        from mcp.types import CreateMessageResult, TextContent

        await trio.lowlevel.checkpoint()
        if self.hangs:
            try:
                await trio.sleep_forever()
            finally:
                self.cancelled.set()
        self.asked.append((asker, params))
        if params.tools:
            props = [
                {"type": "text", "text": "poor"},
                {"type": "tool_use", "id": "1", "name": "prop", "input": {"of": "Yorick"}},
            ]
            return {"role": "assistant", "model": "parrot", "content": props, "stopReason": "toolUse"}
        return CreateMessageResult(
            role="assistant", content=TextContent(text=params.messages[0].content.text.upper()), model="parrot"
        )

    async def elicitation(self, asker: Asker, params: Any) -> Any:
        from mcp.types import ElicitResult

        await trio.lowlevel.checkpoint()
        self.asked.append((asker, params))
        return ElicitResult(action="accept", content={"name": "Ophelia", "seats": 2} if params.mode == "form" else None)

    async def logging(self, asker: Asker, message: Any) -> None:
        await self.tell(asker, message)

    async def complete(self, asker: Asker, elicitation: str) -> None:
        await self.tell(asker, elicitation)

    async def tell(self, asker: Asker, message: Any) -> None:
        await trio.lowlevel.checkpoint()
        self.told.append(message)
        self.news.set()
        self.news = trio.Event()

    async def heard(self, count: int) -> list[Any]:
        """All that was told, once it is so many."""
        with trio.fail_after(PATIENCE):
            while len(self.told) < count:
                await self.news.wait()
        return self.told

    def handlers(self, **more: Any) -> ClientHandlers:
        return ClientHandlers(
            sampling=self.sampling,
            elicitation=self.elicitation,
            elicitation_complete=self.complete,
            logging=self.logging,
            **{"roots": self.give_roots, "sampling_tools": True, **more},
        )
