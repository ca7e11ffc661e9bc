"""Raw pipes on trio, by hand (`../floor.py`): nothing is checked, supervised, or ended in good order; one call at a time."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from subprocess import PIPE
from typing import Any

import trio
from adapter import Adapter, Servers

sys.path.insert(0, str(Path(__file__).parent.parent))
from floor import BareServer, stop_all


class Peer(Adapter):
    backend = "trio"
    environment = "playbill"

    def __init__(self) -> None:
        self.servers: dict[str, BareServer] = {}
        self.locks: dict[str, trio.Lock] = {}

    @classmethod
    @asynccontextmanager
    async def opened(cls, servers: Servers) -> AsyncIterator[Peer]:
        peer = cls()
        try:
            async with trio.open_nursery() as nursery:
                for name, how in servers.items():
                    nursery.start_soon(peer.add, name, how)
            yield peer
        finally:
            await stop_all(list(peer.servers.values()))

    async def tools(self) -> list[str]:
        return [f"{name}__{tool['name']}" for name, server in self.servers.items() for tool in server.tools]

    async def call(self, server: str, tool: str, arguments: dict[str, Any]) -> str:
        async with self.locks[server]:
            result = await self.servers[server]._ask(3, "tools/call", {"name": tool, "arguments": arguments})
        return str(result["content"][0]["text"])

    async def add(self, name: str, command: list[str]) -> None:
        process = await trio.lowlevel.open_process(command, stdin=PIPE, stdout=PIPE, start_new_session=True)
        server = BareServer(process)
        await server.make_ready()
        self.servers[name], self.locks[name] = server, trio.Lock()

    async def drop(self, name: str) -> None:
        await stop_all([self.servers.pop(name)])
