"""`mcp`: one `Client` for each server, in its own task; tasks, failures and restarts are the caller's work, done here."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import anyio
from adapter import Adapter, Servers, text_of
from mcp import Client, StdioServerParameters


class Held:
    """One client, in its task."""

    def __init__(self, command: list[str]) -> None:
        self.command = command
        self.client: Client | None = None
        self.error: Exception | None = None
        self.settled, self.over, self.end = anyio.Event(), anyio.Event(), anyio.CancelScope()

    async def run(self) -> None:
        try:
            with self.end:
                parameters = StdioServerParameters(command=self.command[0], args=self.command[1:])
                async with Client(parameters) as self.client:
                    self.settled.set()
                    await anyio.sleep_forever()
        except Exception as error:
            self.error = error
        finally:
            self.settled.set()
            self.over.set()

    async def ready(self) -> Client:
        await self.settled.wait()
        if self.error is not None or self.client is None:
            raise self.error or RuntimeError("it was ended")
        return self.client


class Peer(Adapter):
    environment = "mcp"
    asks_anew = True

    def __init__(self, group: Any) -> None:
        self.group = group
        self.held: dict[str, Held] = {}

    @classmethod
    @asynccontextmanager
    async def opened(cls, servers: Servers) -> AsyncIterator[Peer]:
        async with anyio.create_task_group() as group:
            peer = cls(group)
            for name, how in servers.items():
                peer.start(name, how)
            yield peer
            for held in peer.held.values():
                held.end.cancel()

    def start(self, name: str, command: list[str]) -> None:
        self.held[name] = Held(command)
        self.group.start_soon(self.held[name].run)

    async def tools(self) -> list[str]:
        found: dict[str, list[str]] = {}

        async def one(name: str, held: Held) -> None:
            client = await held.ready()
            found[name] = [f"{name}__{tool.name}" for tool in (await client.list_tools()).tools]

        async with anyio.create_task_group() as group:
            for name, held in self.held.items():
                group.start_soon(one, name, held)
        return [tool for tools in found.values() for tool in tools]

    async def call(self, server: str, tool: str, arguments: dict[str, Any]) -> str:
        client = await self.held[server].ready()
        return text_of(await client.call_tool(tool, arguments))

    async def together(self) -> list[str]:
        return [name.partition("__")[2] for name in await self.tools()]

    async def add(self, name: str, command: list[str]) -> None:
        self.start(name, command)
        await self.held[name].ready()

    async def drop(self, name: str) -> None:
        held = self.held.pop(name)
        held.end.cancel()
        await held.over.wait()

    async def restart(self, name: str) -> None:
        command = self.held[name].command
        await self.drop(name)
        await self.add(name, command)
