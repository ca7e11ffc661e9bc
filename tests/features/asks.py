"""A small server of the SDK that asks in the course of a call, as it does before 2026-07-28, whatever protocol is spoken.

For a test to take, or run as ``asks.py stdio`` or ``… PORT``.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

from mcp.server.mcpserver import Context, MCPServer
from mcp.shared.exceptions import MCPDeprecationWarning
from mcp.types import SamplingMessage, TextContent
from pydantic import BaseModel


class Form(BaseModel):
    """What a person is asked."""

    name: str


def make() -> MCPServer:
    """The server."""
    server: Any = MCPServer("asks")

    @server.tool()
    async def elicit(ctx: Context) -> str:
        answer = await ctx.elicit("Who comes?", Form)
        return f"{answer.action} {getattr(answer, 'data', None)}"

    @server.tool()
    async def sample(ctx: Context) -> str:
        message = SamplingMessage(role="user", content=TextContent(text="alas"))
        answer = await ctx.session.create_message([message], max_tokens=50)
        return f"{answer.model}: {answer.content.text}"

    @server.tool()
    async def refuse() -> str:
        from mcp.shared.exceptions import MCPError

        raise MCPError(code=-32600, message="no such seat")

    @server.prompt()
    async def cue(ctx: Context) -> str:
        answer = await ctx.elicit("Who comes?", Form)
        return str(answer.action)

    return server  # type: ignore[no-any-return]


def main() -> None:
    """Run it."""
    warnings.simplefilter("ignore", MCPDeprecationWarning)
    server = make()
    if sys.argv[1] == "stdio":
        server.run()
    else:
        server.run(transport="streamable-http", port=int(sys.argv[1]))


if __name__ == "__main__":
    main()
