"""langchain-mcp-adapters: sessions kept open, opened one after the other, as its documentation shows second."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from typing import Any

from adapter import Adapter, Servers
from langchain_mcp_adapters.client import MultiServerMCPClient
from langchain_mcp_adapters.tools import load_mcp_tools
from peer_langchain import connections


class Peer(Adapter):
    environment = "langchain-mcp-adapters"
    asks_anew = True

    def __init__(self, sessions: dict[str, Any]) -> None:
        self.sessions = sessions
        self.by_name: dict[tuple[str, str], Any] = {}

    @classmethod
    @asynccontextmanager
    async def opened(cls, servers: Servers) -> AsyncIterator[Peer]:
        client = MultiServerMCPClient(connections(servers))
        async with AsyncExitStack() as stack:
            peer = cls({name: await stack.enter_async_context(client.session(name)) for name in servers})
            await peer.tools()
            yield peer

    async def tools(self) -> list[str]:
        for name, session in self.sessions.items():
            self.by_name |= {(name, tool.name): tool for tool in await load_mcp_tools(session)}
        return [f"{server}_{tool}" for server, tool in self.by_name]

    async def together(self) -> list[str]:
        return [tool.name for session in self.sessions.values() for tool in await load_mcp_tools(session)]

    async def call(self, server: str, tool: str, arguments: dict[str, Any]) -> str:
        (content,) = await self.by_name[server, tool].ainvoke(arguments)
        return str(content["text"])
