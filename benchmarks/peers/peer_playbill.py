"""Playbill: one host."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from adapter import Adapter, Servers, text_of
from playbill.actors import Config, Host, ServerEntry, open_host


class Peer(Adapter):
    backend = "trio"
    environment = "playbill"
    heals = True

    def __init__(self, host: Host) -> None:
        self.host = host

    @classmethod
    @asynccontextmanager
    async def opened(cls, servers: Servers) -> AsyncIterator[Peer]:
        config = Config(tuple(ServerEntry(name, command=how[0], args=tuple(how[1:])) for name, how in servers.items()))
        async with open_host(config, budget=1000) as host:
            yield cls(host)

    async def tools(self) -> list[str]:
        await self.host.ready(timeout=60)
        return [tool.wire_name for tool in self.host.snapshot().catalog.tools]

    async def call(self, server: str, tool: str, arguments: dict[str, Any]) -> str:
        return text_of(await self.host.call_tool(server, tool, arguments, timeout=60))

    async def add(self, name: str, command: list[str]) -> None:
        await self.host.plugin_add(name, command[0], command[1:])
        await self.host.ready(require=[name], timeout=60)

    async def drop(self, name: str) -> None:
        await self.host.plugin_remove(name)

    async def disable(self, server: str, tool: str) -> None:
        await self.host.tool_set_enabled(server, tool, False)

    async def restart(self, name: str) -> None:
        await self.host.restart(name)
        await self.host.ready(require=[name], timeout=60)
