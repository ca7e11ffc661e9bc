"""langchain-mcp-adapters: `MultiServerMCPClient.get_tools()`, whose tools start the server anew for each call."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from adapter import Adapter, Servers
from langchain_mcp_adapters.client import MultiServerMCPClient


def connections(servers: Servers) -> dict[str, Any]:
    """As the client takes them."""
    return {name: {"transport": "stdio", "command": how[0], "args": how[1:]} for name, how in servers.items()}


class Peer(Adapter):
    environment = "langchain-mcp-adapters"
    heals = True
    asks_anew = True

    def __init__(self, client: MultiServerMCPClient, tools: list[Any]) -> None:
        self.client = client
        self.by_name = {tool.name: tool for tool in tools}

    @classmethod
    @asynccontextmanager
    async def opened(cls, servers: Servers) -> AsyncIterator[Peer]:
        client = MultiServerMCPClient(connections(servers), tool_name_prefix=True)
        yield cls(client, await client.get_tools())

    async def tools(self) -> list[str]:
        return [tool.name for tool in await self.client.get_tools()]

    async def call(self, server: str, tool: str, arguments: dict[str, Any]) -> str:
        (content,) = await self.by_name[f"{server}_{tool}"].ainvoke(arguments)
        return str(content["text"])

    async def together(self) -> list[str]:
        client = MultiServerMCPClient(self.client.connections)
        return [tool.name for tool in await client.get_tools()]
