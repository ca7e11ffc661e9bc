"""openai-agents: `MCPServerManager(connect_in_parallel=True)` over `MCPServerStdio`s; its `reconnect` restarts all."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from adapter import Adapter, Servers, text_of
from agents import Agent, RunContextWrapper
from agents.mcp import MCPServerManager, MCPServerStdio, MCPUtil


class Peer(Adapter):
    environment = "openai-agents"
    asks_anew = True

    def __init__(self, manager: MCPServerManager) -> None:
        self.manager = manager
        self.by_name = {server.name: server for server in manager.all_servers}

    @classmethod
    @asynccontextmanager
    async def opened(cls, servers: Servers) -> AsyncIterator[Peer]:
        each = [
            MCPServerStdio({"command": how[0], "args": how[1:]}, name=name, client_session_timeout_seconds=60)
            for name, how in servers.items()
        ]
        async with MCPServerManager(each, connect_in_parallel=True) as manager:
            peer = cls(manager)
            await peer.tools()
            yield peer

    async def tools(self) -> list[str]:
        found: dict[str, list[str]] = {}

        async def one(server: Any) -> None:
            found[server.name] = [f"{server.name}__{tool.name}" for tool in await server.list_tools()]

        async with anyio.create_task_group() as group:
            for server in self.manager.active_servers:
                group.start_soon(one, server)
        return [tool for tools in found.values() for tool in tools]

    async def call(self, server: str, tool: str, arguments: dict[str, Any]) -> str:
        return text_of(await self.by_name[server].call_tool(tool, arguments))

    async def together(self) -> list[str]:
        active, context = self.manager.active_servers, RunContextWrapper(None)
        tools = await MCPUtil.get_all_function_tools(active, False, context, Agent(name="a"))
        return [tool.name for tool in tools]

    async def restart(self, name: str) -> None:
        await self.manager.reconnect(failed_only=False)
