"""`mcp`: one `ClientSessionGroup`, which connects to one server after the other."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from adapter import Adapter, Servers, text_of
from mcp import ClientSession, ClientSessionGroup, StdioServerParameters


class Peer(Adapter):
    environment = "mcp"

    def __init__(self, group: ClientSessionGroup) -> None:
        self.group = group
        self.sessions: dict[str, ClientSession] = {}
        self.commands: dict[str, list[str]] = {}

    @classmethod
    @asynccontextmanager
    async def opened(cls, servers: Servers) -> AsyncIterator[Peer]:
        async with ClientSessionGroup(component_name_hook=lambda name, info: f"{info.name}__{name}") as group:
            peer = cls(group)
            for name, how in servers.items():
                await peer.add(name, how)
            yield peer

    async def tools(self) -> list[str]:
        return list(self.group.tools)

    async def call(self, server: str, tool: str, arguments: dict[str, Any]) -> str:
        return text_of(await self.group.call_tool(f"{server}__{tool}", arguments))

    async def together(self) -> list[str]:
        plain = ClientSessionGroup()
        for session in self.sessions.values():
            await plain.connect_with_session(session.server_info, session)  # type: ignore[arg-type]
        return list(plain.tools)

    async def add(self, name: str, command: list[str]) -> None:
        self.commands[name] = command
        parameters = StdioServerParameters(command=command[0], args=command[1:])
        self.sessions[name] = await self.group.connect_to_server(parameters)

    async def drop(self, name: str) -> None:
        await self.group.disconnect_from_server(self.sessions.pop(name))

    async def restart(self, name: str) -> None:
        await self.drop(name)
        await self.add(name, self.commands[name])
