"""Tests of the agent loop against servers that die, hang and come back: in memory, in virtual time, within milliseconds.

All that is needed is ``pip install . pytest pytest-trio`` in a clone of Playbill; the fixtures come with it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import pytest
import trio
from agent_loop import Message, ToolResult, ToolUse, Turn, run_agent
from playbill.actors import Host, WireTool
from playbill.actors.testing import Script, ServerKit


async def answer(tool: str, arguments: Mapping[str, Any]) -> Any:
    """What a scripted server answers: the SDK's own type, as a real one does."""
    from mcp_types import CallToolResult, TextContent

    return CallToolResult(content=[TextContent(type="text", text=f"{tool}: {arguments['q']}")])


pytestmark = [
    pytest.mark.trio,
    pytest.mark.playbill_servers(
        search=Script(("find",), call_delay=2, handler=answer), notes=Script(("read",), call_delay=2, handler=answer)
    ),
]


class ScriptedModel:
    """A model that asks for what it is told to, then answers; it remembers what it was shown."""

    def __init__(self, *turns: tuple[ToolUse, ...]) -> None:
        self.turns = list(turns)
        self.results: list[tuple[ToolResult, ...]] = []
        self.tools: list[list[str]] = []

    async def __call__(self, messages: Sequence[Message], tools: Sequence[WireTool]) -> Turn:
        await trio.lowlevel.checkpoint()
        self.tools.append([tool.wire_name for tool in tools])
        if isinstance(messages[-1], tuple):
            self.results.append(messages[-1])
        return Turn(tool_uses=self.turns.pop(0)) if self.turns else Turn("done")


FIND = ToolUse("1", "mcp__search__find", {"q": "trio"})
READ = ToolUse("2", "mcp__notes__read", {"q": "today"})


async def test_a_server_that_dies_during_a_call_is_a_result_and_its_neighbour_goes_on(
    playbill_servers: ServerKit, playbill_host: Host, autojump_clock: trio.testing.MockClock
) -> None:
    await playbill_host.ready(timeout=10)
    playbill_servers.fail("search", "call", "crash")
    model = ScriptedModel((FIND, READ), (READ,))

    assert await run_agent(playbill_host, model, "What is new?") == "done"

    (died, read), (again,) = model.results
    assert died.is_error
    assert "died during the call: killed by signal 9. It may have taken effect" in died.text
    assert read == again == ToolResult("2", "read: today")
    # The crash took no tool off the model's list, and no time of the neighbour's.
    assert model.tools == [["mcp__notes__read", "mcp__search__find"]] * 3
    assert trio.current_time() == pytest.approx(4)
    assert playbill_servers.waiting == ()


async def test_a_server_that_is_back_is_called_again(
    playbill_servers: ServerKit, playbill_host: Host, autojump_clock: trio.testing.MockClock, nursery: trio.Nursery
) -> None:
    await playbill_host.ready(timeout=10)

    async def trip() -> None:
        await trio.sleep(1)  # in the middle of the first call
        playbill_servers.kill("search")

    nursery.start_soon(trip)
    model = ScriptedModel((FIND,), (READ,), (FIND,))
    assert await run_agent(playbill_host, model, "What is new?") == "done"
    assert [results[0].is_error for results in model.results] == [True, False, False]
    assert playbill_servers.scripted.spawns == {"search": 2, "notes": 1}


async def test_a_server_that_does_not_answer_or_does_not_start_is_a_result(
    playbill_servers: ServerKit, playbill_host: Host, autojump_clock: trio.testing.MockClock
) -> None:
    await playbill_host.ready(timeout=10)
    playbill_servers.fail("search", "call", "hang")
    playbill_servers.fail("notes", "idle", "crash", after=1)
    playbill_servers.fail("notes", "connect", "flaky", arg=100)
    model = ScriptedModel((FIND,), (READ,))
    assert await run_agent(playbill_host, model, "What is new?", patience=5) == "done"
    assert [result.text.partition(":")[0] for (result,) in model.results] == [
        "tool 'mcp__search__find' did not answer within 5 s",
        "server 'notes' is unavailable",
    ]
