"""An agent on trio with Anthropic's SDK: the tools of MCP servers and one of its own, side by side.

    pip install . anthropic                # in a clone of Playbill
    ANTHROPIC_API_KEY=… python anthropic_agent.py "Roll 3d6 and flip a coin." "And again?"

Each argument is a turn of one conversation. The servers are those of the ``mcp.json`` beside this file, or of ``$MCP_CONFIG``.
Ctrl-C ends it in order: calls are cancelled and servers stopped.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import playbill.actors as playbill
import trio
from attrs import define, field

try:
    from anthropic import AnthropicError, AsyncAnthropic
    from anthropic.types import Message, ToolUseBlock
except ImportError:
    sys.exit("anthropic_agent.py needs Anthropic's SDK: pip install anthropic")

CONFIG = os.environ.get("MCP_CONFIG") or Path(__file__).with_name("mcp.json")
MODEL = os.environ.get("ANTHROPIC_MODEL") or "claude-sonnet-5"


@playbill.native_tool
def list_files(folder: str = ".") -> list[str]:
    """The names of what is in a folder of the user's machine."""
    return sorted(path.name for path in Path(folder).iterdir())


@define
class Agent:
    """One conversation.

    Args:
        client: the SDK's; it tries again by itself what may be tried again (429, 5xx, lost connections).
        host: whose tools; or a `View`, for an agent that is to have some of them only.
        call_timeout, rounds: seconds for one call; how often the model may ask for tools in a turn.
        messages, shown: what was said so far; the catalog of the last turn.
    """

    client: AsyncAnthropic
    host: playbill.Host | playbill.View
    call_timeout: float = 60.0
    rounds: int = 20
    messages: list[Any] = field(factory=list)
    shown: playbill.Catalog | None = None

    async def turn(self, question: str) -> str:
        """From a question to the model's answer. Cancelled at any point, or after an error of the API, it can go on."""
        # One catalog for the whole turn: what the model is shown is what its calls are looked up in, whatever servers do.
        catalog = self.host.snapshot().catalog
        tools = catalog.for_provider("anthropic")
        if tools:
            tools[-1]["cache_control"] = {"type": "ephemeral"}  # it holds, since the bytes of the tools do
        if self.shown is not None and (changes := self.shown.diff(catalog)):
            question = f"{question}\n\n[Tools since the last turn: {changes}.]"
        self.shown = catalog
        self.messages.append({"role": "user", "content": question})

        for left in reversed(range(self.rounds + 1)):
            # Without tools neither field: an empty list is refused, and so is a choice among none.
            choice: dict[str, Any] = (
                {"tools": tools, "tool_choice": {"type": "auto" if left else "none"}} if tools else {}
            )
            request = {"model": MODEL, "max_tokens": 8_192, "messages": self.messages, **choice}
            reply: Message = await self.client.messages.create(**request)
            uses = [block for block in reply.content if isinstance(block, ToolUseBlock)]
            if reply.stop_reason != "tool_use":  # "max_tokens" too: a call that was cut off is not made
                break
            results = await self.call_all(catalog, uses)
            # Both or none: a call without its result would make the API refuse all that follows.
            self.messages += [{"role": "assistant", "content": reply.content}, {"role": "user", "content": results}]
        if text := "".join(block.text for block in reply.content if block.type == "text").strip():
            self.messages.append({"role": "assistant", "content": text})
        return text or f"(no answer: {reply.stop_reason})"

    async def call_all(self, catalog: playbill.Catalog, uses: Sequence[ToolUseBlock]) -> list[dict[str, Any]]:
        """Make calls side by side; their results in the order of the calls."""
        results: list[dict[str, Any]] = [{} for _ in uses]

        async def run(place: int, use: ToolUseBlock) -> None:
            results[place] = await self.call(catalog, use)

        async with trio.open_nursery() as nursery:
            for place, use in enumerate(uses):
                nursery.start_soon(run, place, use)
        return results

    async def call(self, catalog: playbill.Catalog, use: ToolUseBlock) -> dict[str, Any]:
        """Make one call. What goes wrong is a result that the model can read, and no matter of the other calls."""
        try:
            result = await self.host.call(use.name, use.input, catalog=catalog, timeout=self.call_timeout)
        except playbill.HostClosed:
            raise
        except (playbill.ServerDied, playbill.CallTimeout) as error:
            problem = f"{error}. It may have taken effect all the same: look before you repeat it."
        except playbill.PlaybillError as error:  # ToolNotOffered, UnknownTool, ServerUnavailable, …
            problem = str(error)
        else:
            return playbill.result_for_provider(result, "anthropic", call_id=use.id)
        told = [{"type": "text", "text": problem}]
        return {"type": "tool_result", "tool_use_id": use.id, "content": told, "is_error": True}


async def converse(questions: Sequence[str], *, turn_timeout: float = 300.0) -> None:
    """Open servers and client, ask each question, print each answer."""
    budget = playbill.Budget(tools=80, tokens=20_000)
    async with (
        playbill.open_host(CONFIG, native_tools=[list_files], profile="anthropic", budget=budget) as host,
        AsyncAnthropic() as client,
    ):
        for name, reason in (await host.ready(timeout=30)).missing.items():
            print(f"{name}: {reason}", file=sys.stderr)
        agent = Agent(client, host)
        for question in questions:
            with trio.move_on_after(turn_timeout) as limit:
                print(await agent.turn(question), flush=True)
            if limit.cancelled_caught:
                print(f"(no answer within {turn_timeout:g} s)", flush=True)


def main() -> int:
    if not sys.argv[1:]:
        sys.exit('usage: anthropic_agent.py "QUESTION" …')
    if not os.environ.get("ANTHROPIC_API_KEY"):
        sys.exit("anthropic_agent.py needs a key: set ANTHROPIC_API_KEY (https://platform.claude.com/settings/keys)")
    code = 0
    try:
        trio.run(converse, sys.argv[1:])
    except* KeyboardInterrupt:
        code = 130
    except* (AnthropicError, playbill.PlaybillError) as errors:
        print(f"anthropic_agent.py: {errors.exceptions[0]}", file=sys.stderr)
        code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
