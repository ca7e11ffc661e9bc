"""google-adk: one `McpToolset` for each server, connected when it is first asked for its tools."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from adapter import Adapter, Servers
from google.adk.agents import LlmAgent
from google.adk.agents.invocation_context import InvocationContext
from google.adk.sessions import InMemorySessionService
from google.adk.tools.mcp_tool import McpToolset, StdioConnectionParams
from google.adk.tools.tool_context import ToolContext
from mcp import StdioServerParameters


class Peer(Adapter):
    environment = "google-adk"
    heals = True
    asks_anew = True

    def __init__(self, context: Any) -> None:
        self.context = context
        self.sets: dict[str, McpToolset] = {}
        self.by_name: dict[tuple[str, str], Any] = {}

    @classmethod
    @asynccontextmanager
    async def opened(cls, servers: Servers) -> AsyncIterator[Peer]:
        sessions = InMemorySessionService()
        session = await sessions.create_session(app_name="bench", user_id="bench")
        invocation = InvocationContext(
            session_service=sessions, invocation_id="1", agent=LlmAgent(name="bench"), session=session
        )
        peer = cls(ToolContext(invocation))
        try:
            for name, how in servers.items():
                peer.make(name, how)  # each connects when its tools are first asked for
            yield peer
        finally:
            for name in [*peer.sets]:
                await peer.drop(name)

    async def _list(self, name: str) -> list[Any]:
        tools = await self.sets[name].get_tools()
        self.by_name |= {(name, tool.name): tool for tool in tools}
        return tools

    async def tools(self) -> list[str]:
        found: dict[str, list[str]] = {}

        async def one(name: str) -> None:
            found[name] = [f"{name}_{tool.name}" for tool in await self._list(name)]

        async with anyio.create_task_group() as group:
            for name in self.sets:
                group.start_soon(one, name)
        return [tool for tools in found.values() for tool in tools]

    async def call(self, server: str, tool: str, arguments: dict[str, Any]) -> str:
        if (server, tool) not in self.by_name:
            await self._list(server)
        result = await self.by_name[server, tool].run_async(args=arguments, tool_context=self.context)
        if "content" not in result:
            raise RuntimeError(str(result))
        return str(result["content"][0]["text"])

    async def together(self) -> list[str]:
        return [tool.name for name in self.sets for tool in await self._list(name)]

    def make(self, name: str, command: list[str]) -> None:
        parameters = StdioServerParameters(command=command[0], args=command[1:])
        self.sets[name] = McpToolset(connection_params=StdioConnectionParams(server_params=parameters, timeout=60))

    async def add(self, name: str, command: list[str]) -> None:
        self.make(name, command)
        await self._list(name)

    async def drop(self, name: str) -> None:
        await self.sets.pop(name).close()
