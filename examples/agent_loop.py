"""A small agent loop: a model asks for tools, the loop calls them side by side, and a server that dies is an answer.

The model is any async function, so that a test may script it; see ``test_agent_loop.py`` beside this file.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence
from typing import Any

import trio
from attrs import field, frozen
from playbill.actors import (
    CallTimeout,
    Catalog,
    Host,
    ServerDied,
    ServerUnavailable,
    ToolNotOffered,
    UnknownTool,
    WireTool,
)


@frozen
class ToolUse:
    """The model asks for one call: of a tool, by its wire name."""

    id: str
    name: str
    arguments: dict[str, Any] = field(factory=dict)


@frozen
class ToolResult:
    """What came of one call, for the model to read."""

    id: str
    text: str
    is_error: bool = False


@frozen
class Turn:
    """One turn of the model: calls to be made; or, when there are none, its answer."""

    text: str = ""
    tool_uses: tuple[ToolUse, ...] = ()


Message = str | Turn | tuple[ToolResult, ...]
Model = Callable[[Sequence[Message], Sequence[WireTool]], Awaitable[Turn]]


async def run_agent(host: Host, model: Model, prompt: str, *, patience: float = 30.0, turns: int = 10) -> str:
    """Let a model work with a host's tools until it answers.

    Args:
        host: whose tools.
        model: called with all messages so far and the tools on offer; returns its next turn.
        prompt: the first message.
        patience: seconds that each call may take.
        turns: how many the model has.

    Returns:
        The model's answer.

    Raises:
        RuntimeError: it did not answer within its turns.
    """
    messages: list[Message] = [prompt]
    for _ in range(turns):
        # One catalog for the whole turn: what the model was shown is what its calls are resolved in.
        catalog = host.snapshot().catalog
        turn = await model(messages, catalog.tools)
        if not turn.tool_uses:
            return turn.text
        messages += [turn, await run_tools(host, catalog, turn.tool_uses, patience)]
    raise RuntimeError(f"the model gave no answer within {turns} turns")


async def run_tools(
    host: Host, catalog: Catalog, tool_uses: Sequence[ToolUse], patience: float
) -> tuple[ToolResult, ...]:
    """Make calls side by side; the results are in the order of the calls. What goes wrong with a call is its result."""
    results: dict[str, ToolResult] = {}

    async def run(use: ToolUse) -> None:
        results[use.id] = await run_tool(host, catalog, use, patience)

    async with trio.open_nursery() as nursery:
        for use in tool_uses:
            nursery.start_soon(run, use)
    return tuple(results[use.id] for use in tool_uses)


async def run_tool(host: Host, catalog: Catalog, use: ToolUse, patience: float) -> ToolResult:
    """Make one call."""
    try:
        reply = await host.call(use.name, use.arguments, catalog=catalog, timeout=patience)
    except ServerDied as error:
        # It may have taken effect: whether to try again is for the model to say, not for the loop.
        return ToolResult(use.id, f"{error}. It may have taken effect; look before you repeat it.", is_error=True)
    except (ServerUnavailable, CallTimeout, ToolNotOffered, UnknownTool) as error:
        return ToolResult(use.id, str(error), is_error=True)
    text = "\n".join(part.text for part in reply.content if part.type == "text")
    return ToolResult(use.id, text, is_error=bool(reply.is_error))
