"""FastMCP: one `Client` over a configuration of many servers."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from adapter import Adapter, Servers, text_of
from fastmcp import Client


class Peer(Adapter):
    environment = "fastmcp"
    asks_anew = True

    def __init__(self, client: Any, alone: bool) -> None:
        self.client = client
        self.alone = alone

    @classmethod
    @asynccontextmanager
    async def opened(cls, servers: Servers) -> AsyncIterator[Peer]:
        config = {"mcpServers": {name: {"command": how[0], "args": how[1:]} for name, how in servers.items()}}
        async with Client(config) as client:
            await client.list_tools()
            yield cls(client, alone=len(servers) == 1)

    async def tools(self) -> list[str]:
        return [tool.name for tool in await self.client.list_tools()]

    async def call(self, server: str, tool: str, arguments: dict[str, Any]) -> str:
        # Only where there are several does it put the server's name before the tool's.
        return text_of(await self.client.call_tool(tool if self.alone else f"{server}_{tool}", arguments))
