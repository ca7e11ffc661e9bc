"""A host over one server that a test plays by hand, over real pipes; what callers and the server saw is noted."""

from __future__ import annotations

import math
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from types import SimpleNamespace
from typing import Any

import trio
from playbill.actors import ClientHandlers, Config, Host, ServerEntry, open_host
from playbill.actors.edge.wire.sdk import import_sdk
from playbill.actors.edge.wire.session import make_connect
from playbill.actors.testing.wires import PipeWire, ScriptedLaunch

from ..edge_connection.peer import Peer

__all__ = ["SCHEMA", "TEXT", "Stage", "staged"]

TEXT = {"content": [{"type": "text", "text": "x"}]}
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}}
OUT = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}


class Stage:
    """A host, the server's side by hand, and what was seen."""

    def __init__(self, era: str) -> None:
        self.era = era
        self.host: Host
        self.peers: list[Peer] = []
        self.seen: list[Any] = []
        self.tools: list[dict[str, Any]] = [
            {"name": "t", "inputSchema": SCHEMA},
            {"name": "typed", "inputSchema": SCHEMA, "outputSchema": OUT},
        ]
        self.asked = trio.open_memory_channel[dict[str, Any]](math.inf)
        self.deaf = trio.Event()
        self.began = 0.0

    @property
    def peer(self) -> Peer:
        return self.peers[-1]

    async def serve(self, peer: Peer) -> None:
        """Answer what every server is asked; a call, and what is said, is for the scene."""
        while not self.deaf.is_set():
            try:
                message = await peer.next()
            except (AssertionError, trio.ClosedResourceError, trio.BrokenResourceError):
                return
            method = message.get("method")
            if method == "initialize":
                result: dict[str, Any] = {
                    "protocolVersion": "2025-11-25",
                    "capabilities": {"tools": {"listChanged": True}},
                    "serverInfo": {"name": "s", "version": "1"},
                }
                await peer.reply(message, **result)
            elif method == "server/discover":
                if self.era == "legacy":
                    await peer.send(id=message["id"], error={"code": -32601, "message": "no"})
                else:
                    await peer.reply(
                        message,
                        supportedVersions=["2026-07-28"],
                        capabilities={"tools": {}},
                        serverInfo={"name": "s", "version": "1"},
                        resultType="complete",
                        ttlMs=0,
                        cacheScope="private",
                    )
            elif method == "tools/list":
                more = {} if self.era == "legacy" else {"resultType": "complete", "ttlMs": 0, "cacheScope": "private"}
                await peer.reply(message, tools=self.tools, **more)
            elif method != "notifications/initialized":
                self.asked[0].send_nowait(message)

    async def next(self) -> dict[str, Any]:
        """The next that the server was asked or told, which is noted."""
        message = await self.asked[1].receive()
        self.note("read", {key: value for key, value in message.items() if key != "jsonrpc"})
        return message

    def note(self, *what: Any) -> None:
        self.seen.append((round(trio.current_time() - self.began, 6), *what))

    async def call(self, tool: str = "t", n: int = 1, *, name: str = "", **options: Any) -> None:
        """A call whose end is noted."""
        if "text" in options:
            arguments: dict[str, Any] = {"text": options.pop("text")}
        else:
            arguments = {"n": n}
        try:
            result = await self.host.call(f"mcp__s__{tool}", arguments, **options)
        except Exception as error:
            self.note(name, type(error).__name__, str(error))
        else:
            self.note(name, result.model_dump(mode="json", by_alias=True))

    async def answer(self, **result: Any) -> None:
        """Answer the next call."""
        message = await self.next()
        assert message["method"] == "tools/call"
        more = {} if self.era == "legacy" else {"resultType": "complete"}
        await self.peer.reply(message, **{**more, **result})

    async def once(self, tool: str = "t", **options: Any) -> None:
        """A call that is answered."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(lambda: self.call(tool, **options))
            await self.answer(**TEXT)


@asynccontextmanager
async def staged(era: str, timeout: float | None, handlers: ClientHandlers | None) -> AsyncIterator[Stage]:
    stage = Stage(era)

    @asynccontextmanager
    async def open_wire(
        entry: ServerEntry, launch: Any, scrub: Callable[[str], str], *, warden: Any, native: bool, max_line: int
    ) -> AsyncIterator[PipeWire]:
        peer = Peer()
        stage.peers.append(peer)
        script: Any = SimpleNamespace(
            script=SimpleNamespace(says=""), read=1, gone=trio.Event(), how="died", lost=lambda how: None
        )
        wire = PipeWire(script, peer.client_receive, peer.client_send, scrub, native=native, max_line=max_line)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stage.serve, peer)
            nursery.start_soon(wire.attend)
            try:
                yield wire
            finally:
                nursery.cancel_scope.cancel()
                with trio.CancelScope(shield=True):
                    await peer.aclose()

    import_sdk()  # at once: a virtual clock does not wait for a thread
    connect = make_connect(expand=lambda entry: ScriptedLaunch("s"), open_wire=open_wire, max_line=10**7)
    entry = ServerEntry("s", command="s", timeout=timeout)
    with trio.fail_after(10_000):
        async with open_host(Config((entry,)), connect=connect, handlers=handlers) as host:
            stage.host = host
            readiness = await host.ready(timeout=60)
            assert not readiness.missing
            await trio.sleep(100)  # nothing changes on the board any more
            await stage.once()
            stage.seen.clear()
            stage.began = trio.current_time()
            yield stage
