"""An agent on trio with OpenAI's SDK (Responses): the tools of MCP servers and one of its own, side by side.

    pip install . openai                   # in a clone of Playbill
    OPENAI_API_KEY=… python openai_agent.py "Roll 3d6 and flip a coin." "And again?"

Each argument is a turn of one conversation. The servers are those of the ``mcp.json`` beside this file, or of ``$MCP_CONFIG``.
Ctrl-C ends it in order: calls are cancelled and servers stopped.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import playbill.actors as playbill
import trio
from attrs import define, field

try:
    from openai import AsyncOpenAI, OpenAIError
    from openai.types.responses import Response, ResponseFunctionToolCall
except ImportError:
    sys.exit("openai_agent.py needs OpenAI's SDK: pip install openai")

CONFIG = os.environ.get("MCP_CONFIG") or Path(__file__).with_name("mcp.json")
MODEL = os.environ.get("OPENAI_MODEL") or "gpt-5-mini"
# "openai-strict" holds the model to the schemas, and quarantines a tool whose schema cannot be said so (docs/profiles.md).
PROFILE = "openai-responses"


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
        messages, shown: what was said so far, as items of the API's ``input``; the catalog of the last turn.
    """

    client: AsyncOpenAI
    host: playbill.Host | playbill.View
    call_timeout: float = 60.0
    rounds: int = 20
    messages: list[Any] = field(factory=list)
    shown: playbill.Catalog | None = None

    async def turn(self, question: str) -> str:
        """From a question to the model's answer. Cancelled at any point, or after an error of the API, it can go on."""
        # One catalog for the whole turn: what the model is shown is what its calls are looked up in, whatever servers do.
        catalog = self.host.snapshot().catalog
        tools = catalog.for_provider("openai-responses")
        if self.shown is not None and (changes := self.shown.diff(catalog)):
            question = f"{question}\n\n[Tools since the last turn: {changes}.]"
        self.shown = catalog
        self.messages.append({"role": "user", "content": question})

        for left in reversed(range(self.rounds + 1)):
            # Without tools neither field: an empty list is refused, and so is a choice among none.
            choice: dict[str, Any] = {"tools": tools, "tool_choice": "auto" if left else "none"} if tools else {}
            reply: Response = await self.client.responses.create(model=MODEL, input=self.messages, **choice)
            calls = [item for item in reply.output if isinstance(item, ResponseFunctionToolCall)]
            if reply.status != "completed":  # a call that was cut off is not made
                why = reply.error or reply.incomplete_details or reply.status
                return f"{reply.output_text}\n(no whole answer: {why})".lstrip()
            results = await self.call_all(catalog, calls)
            # Both or none: a call without its result would make the API refuse all that follows.
            self.messages += [item.to_dict(mode="json") for item in reply.output] + results
            if not calls:
                break
        return reply.output_text

    async def call_all(
        self, catalog: playbill.Catalog, calls: Sequence[ResponseFunctionToolCall]
    ) -> list[dict[str, Any]]:
        """Make calls side by side; their results in the order of the calls."""
        results: list[dict[str, Any]] = [{} for _ in calls]

        async def run(place: int, call: ResponseFunctionToolCall) -> None:
            results[place] = await self.call(catalog, call)

        async with trio.open_nursery() as nursery:
            for place, call in enumerate(calls):
                nursery.start_soon(run, place, call)
        return results

    async def call(self, catalog: playbill.Catalog, call: ResponseFunctionToolCall) -> dict[str, Any]:
        """Make one call. What goes wrong is a result that the model can read, and no matter of the other calls."""
        try:
            arguments = json.loads(call.arguments or "{}")
            result = await self.host.call(call.name, arguments, catalog=catalog, timeout=self.call_timeout)
        except playbill.HostClosed:
            raise
        except (playbill.ServerDied, playbill.CallTimeout) as error:
            problem = f"{error}. It may have taken effect all the same: look before you repeat it."
        except playbill.PlaybillError as error:  # ToolNotOffered, UnknownTool, ServerUnavailable, …
            problem = str(error)
        except (ValueError, TypeError) as error:
            problem = f"the arguments are no JSON object: {error}"
        else:
            return playbill.result_for_provider(result, "openai-responses", call_id=call.call_id)
        return {"type": "function_call_output", "call_id": call.call_id, "output": f"[The call failed.] {problem}"}


async def converse(questions: Sequence[str], *, turn_timeout: float = 300.0) -> None:
    """Open servers and client, ask each question, print each answer."""
    async with (
        playbill.open_host(CONFIG, native_tools=[list_files], profile=PROFILE, budget=80) as host,
        AsyncOpenAI() as client,
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
        sys.exit('usage: openai_agent.py "QUESTION" …')
    if not os.environ.get("OPENAI_API_KEY"):
        sys.exit("openai_agent.py needs a key: set OPENAI_API_KEY (https://platform.openai.com/api-keys)")
    code = 0
    try:
        trio.run(converse, sys.argv[1:])
    except* KeyboardInterrupt:
        code = 130
    except* (OpenAIError, playbill.PlaybillError) as errors:
        print(f"openai_agent.py: {errors.exceptions[0]}", file=sys.stderr)
        code = 1
    return code


if __name__ == "__main__":
    sys.exit(main())
