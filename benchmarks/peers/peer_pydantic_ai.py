"""pydantic-ai: one `MCPToolset` for each server, prefixed and combined as an agent does."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from adapter import Adapter, Servers
from fastmcp.client.transports import StdioTransport
from pydantic_ai import CombinedToolset, RunContext
from pydantic_ai.mcp import MCPToolset
from pydantic_ai.models.test import TestModel
from pydantic_ai.usage import RunUsage

CONTEXT: RunContext[Any] = RunContext(deps=None, model=TestModel(), usage=RunUsage())


class Peer(Adapter):
    environment = "pydantic-ai"

    def __init__(self, sets: dict[str, MCPToolset[Any]], combined: CombinedToolset[Any]) -> None:
        self.sets = sets
        self.combined = combined

    @classmethod
    @asynccontextmanager
    async def opened(cls, servers: Servers) -> AsyncIterator[Peer]:
        sets = {name: MCPToolset(StdioTransport(how[0], how[1:]), id=name) for name, how in servers.items()}
        async with CombinedToolset([toolset.prefixed(name) for name, toolset in sets.items()]) as combined:
            peer = cls(sets, combined)
            await peer.tools()
            yield peer

    async def tools(self) -> list[str]:
        return list(await self.combined.get_tools(CONTEXT))

    async def call(self, server: str, tool: str, arguments: dict[str, Any]) -> str:
        return str(await self.sets[server].direct_call_tool(tool, arguments))

    async def together(self) -> list[str]:
        return list(await CombinedToolset(list(self.sets.values())).get_tools(CONTEXT))
