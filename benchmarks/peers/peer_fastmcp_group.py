"""FastMCP: one `ClientGroup` from a configuration, a client of its own for each server."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from adapter import Adapter, Servers, text_of
from fastmcp import ClientGroup


class Peer(Adapter):
    environment = "fastmcp"
    asks_anew = True

    def __init__(self, group: ClientGroup) -> None:
        self.group = group

    @classmethod
    @asynccontextmanager
    async def opened(cls, servers: Servers) -> AsyncIterator[Peer]:
        config = {"mcpServers": {name: {"command": how[0], "args": how[1:]} for name, how in servers.items()}}
        async with ClientGroup.from_config(config) as group:
            await group.list_tools()
            yield cls(group)

    async def tools(self) -> list[str]:
        return [tool.name for tool in await self.group.list_tools()]

    async def call(self, server: str, tool: str, arguments: dict[str, Any]) -> str:
        return text_of(await self.group.call_tool(f"{server}_{tool}", arguments))
