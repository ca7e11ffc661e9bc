"""What the workload asks of each peer. An adapter subclasses `Adapter`; what a peer has no call for stays as it is here.

The first line of an adapter's docstring stands in the table, and says how the peer is used.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any, ClassVar

Servers = Mapping[str, list[str]]
"""Name → command and arguments."""


class Cannot(Exception):
    """The peer has no such operation; the text, in a few words, says so and stands in the table."""


class Adapter:
    """Servers held open by one peer, in the way its documentation shows first.

    Attributes:
        backend: of anyio, which the workload runs on.
        environment: a key of `environments.REQUIREMENTS`.
        heals: a server that died is started again without being asked, at the latest by the next call of it.
        asks_anew: each look at `tools` asks every server, so that whoever looks sees a change without being told of it.
    """

    backend: ClassVar[str] = "asyncio"
    environment: ClassVar[str]
    heals: ClassVar[bool] = False
    asks_anew: ClassVar[bool] = False

    @classmethod
    @asynccontextmanager
    async def opened(cls, servers: Servers) -> AsyncIterator[Adapter]:
        """Connect to all, as fast as the peer can; leaving closes all.

        It need not wait for any of them, but `tools` then waits for those that can still come.
        """
        raise Cannot("no adapter")
        yield cls()

    async def tools(self) -> list[str]:
        """The names of all tools as a model would be given them now, those of all servers."""
        raise Cannot("it gives no list")

    async def call(self, server: str, tool: str, arguments: dict[str, Any]) -> str:
        """Call a tool; the text of its answer."""
        raise Cannot("it calls nothing")

    async def together(self) -> list[str]:
        """The names of all tools when nothing is done about names that are there twice: the peer's own default."""
        return await self.tools()

    async def add(self, name: str, command: list[str]) -> None:
        """Start one more server; its tools can be called when this returns."""
        raise Cannot("servers are given once, when it is opened")

    async def drop(self, name: str) -> None:
        """End one server, and no other."""
        raise Cannot("servers end together, when it is closed")

    async def disable(self, server: str, tool: str) -> None:
        """Take one tool out of the list, and leave the server as it is."""
        raise Cannot("no such operation: filter the list yourself")

    async def restart(self, name: str) -> None:
        """Have a server that died started again: the peer's own call for that."""
        raise Cannot("no such operation")


def text_of(result: Any) -> str:
    """The text of an SDK's ``CallToolResult``."""
    return str(result.content[0].text)
