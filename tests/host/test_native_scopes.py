"""Native handlers cost their caller nothing of its own: not its cancel scopes, nor the time of a call for an import."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
from playbill.actors import NativeTool
from playbill.actors.testing import ScriptedServers

from .conftest import Open

real_time = pytest.mark.trio(run=trio.run)
"""For tests with real threads: a clock that jumps when nothing happens would race them."""


def given(handler: Callable[..., Any]) -> NativeTool:
    return NativeTool("tool", "For a test.", {"type": "object", "properties": {}}, handler)


def text(result: Any) -> str:
    return str(result.content[0].text)


async def _leave_a_scope() -> str:
    trio.CancelScope().__enter__()
    await trio.lowlevel.checkpoint()
    return "done"


async def _leave_a_cancelled_scope() -> None:
    trio.CancelScope().__enter__().cancel()
    await trio.lowlevel.checkpoint()


async def _leave_a_nursery() -> None:
    nursery = await trio.open_nursery().__aenter__()
    nursery.start_soon(trio.sleep_forever)


async def _leave_a_nursery_and_raise() -> None:
    await _leave_a_nursery()
    raise ValueError("no")


def _return_what_leaves_a_scope() -> Awaitable[str]:
    return _leave_a_scope()


@pytest.mark.parametrize(
    ("handler", "before"),
    [
        (_leave_a_scope, ""),
        (_leave_a_cancelled_scope, "Cancelled: "),
        (_leave_a_nursery, ""),
        (_leave_a_nursery_and_raise, "ValueError: no; "),
        pytest.param(_return_what_leaves_a_scope, "", marks=real_time),
    ],
)
async def test_a_scope_that_a_handler_leaves_open_is_a_tool_error_and_not_its_callers(
    opened: Open, handler: Callable[..., Any], before: str
) -> None:
    async with opened(ScriptedServers(), native_tools=[given(handler)]) as host:
        for _ in range(2):
            with trio.CancelScope() as mine:
                result = await host.call("tool", timeout=30)
            assert result.is_error
            assert text(result).startswith(before)
            assert text(result).endswith("RuntimeError: it left a cancel scope or a nursery open")
            assert not mine.cancelled_caught
            await trio.lowlevel.checkpoint()


async def test_a_cancelled_caller_is_cancelled_though_its_handler_leaves_a_scope_open(opened: Open) -> None:
    async def lasting() -> None:
        trio.CancelScope().__enter__()
        await trio.sleep_forever()

    async with opened(ScriptedServers(), native_tools=[given(lasting)]) as host:
        with trio.move_on_after(1) as scope:
            await host.call("tool", timeout=5)
        assert scope.cancelled_caught
        assert (await host.call("tool", timeout=1)).is_error


async def test_what_a_handler_comes_to_behind_a_shield_counts_though_it_is_late(opened: Open) -> None:
    async def thorough() -> str:
        with trio.CancelScope(shield=True):
            await trio.sleep(3)
        return "all of it"

    async with opened(ScriptedServers(), native_tools=[given(thorough)]) as host:
        assert text(await host.call("tool", timeout=2)) == "all of it"


@pytest.mark.parametrize("kind", ["async", "sync"])
def test_what_the_first_call_must_import_does_not_count_against_its_deadline(kind: str) -> None:
    """In a process of its own, where nothing is imported yet, and an import is made to last as long as the call may."""
    code = f"""
import sys, trio
from playbill.actors import Config, NativeTool, open_host

class Slow:
    def find_spec(self, name, path=None, target=None):
        if name == "mcp_types":
            seen.append(name)
            clock.jump(50)  # virtual: nothing waits

def handler():
    return "at once"

async def awaited():
    return "at once"

async def main():
    works = awaited if {kind!r} == "async" else handler
    tool = NativeTool("tool", "For a test.", {{"type": "object", "properties": {{}}}}, works)
    async with open_host(Config(), native_tools=[tool]) as host:
        assert "mcp_types" not in sys.modules
        print((await host.call("tool", timeout=40)).content[0].text, seen)

seen = []
from trio.testing import MockClock
clock = MockClock()
sys.meta_path.insert(0, Slow())
trio.run(main, clock=clock)
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=False)
    assert (done.stdout, done.stderr) == ("at once ['mcp_types']\n", "")
