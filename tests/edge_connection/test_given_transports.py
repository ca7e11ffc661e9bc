"""Servers given as values: any transport of the SDK is supervised like a process, and opened again when it is lost."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
from mcp import StdioServerParameters, stdio_client
from mcp.shared.memory import create_client_server_memory_streams
from playbill.actors import Config, ServerDied, ServerEntry, ServerUnavailable, open_host
from playbill.actors.ports import ConnectionFailed
from playbill.supervision import Backoff

from .conftest import Connector
from .test_connection import text


def server() -> Any:
    from mcp.server.mcpserver import MCPServer

    made = MCPServer("given")

    @made.tool()
    def add(a: int, b: int) -> int:
        return a + b

    return made._lowlevel_server


class Given:
    """Makes transports to a server in memory; `breaks` ends the newest one."""

    def __init__(self, error: Exception | None = None) -> None:
        self.made = 0
        self.breaks = trio.Event()
        self._error = error

    @asynccontextmanager
    async def __call__(self) -> AsyncIterator[Any]:
        self.made += 1
        self.breaks = trio.Event()
        actual = server()
        async with create_client_server_memory_streams() as (ours, theirs), trio.open_nursery() as nursery:
            nursery.start_soon(actual.run, *theirs, actual.create_initialization_options())
            nursery.start_soon(self._break, theirs)
            yield ours
            nursery.cancel_scope.cancel()

    async def _break(self, theirs: Any) -> None:
        await self.breaks.wait()
        if self._error is not None:
            raise self._error
        for stream in theirs:
            await stream.aclose()


async def test_an_sdk_transport_over_stdio_lists_and_answers(
    connect: Connector, fake: Callable[..., ServerEntry], patience: Callable[[], Any]
) -> None:
    entry = fake()
    assert entry.command is not None
    parameters = StdioServerParameters(command=entry.command, args=list(entry.args), env=dict(entry.env))
    with patience():
        async with connect(ServerEntry("given", server=lambda: stdio_client(parameters))) as connection:
            assert "echo" in [tool.bare for tool in (await connection.list_tools()).tools]
            assert text(await connection.call_tool("echo", {"a": 1}, None))


@pytest.mark.parametrize("error", [None, ConnectionResetError("the cable was pulled")])
async def test_a_transport_that_ends_or_raises_is_lost_told_and_opened_again(error: Exception | None) -> None:
    given = Given(error)
    with trio.fail_after(20):
        async with open_host(Config((ServerEntry("given", server=given),)), backoff=Backoff(base=0.01)) as host:
            assert await host.ready(timeout=20)
            assert (await host.call_tool("given", "add", {"a": 1, "b": 2})).structured_content == {"result": 3}
            given.breaks.set()
            async for snapshot in host.changes():
                state = snapshot.model.server("given")
                assert state is not None
                if state.phase == "ready" and state.restarts == 1:
                    break
                if state.error is not None and error is not None:
                    assert "the transport raised ConnectionResetError: the cable was pulled" in state.error
            assert (await host.call_tool("given", "add", {"a": 1, "b": 2})).structured_content == {"result": 3}
            assert given.made == 2


async def test_a_transport_that_can_be_entered_only_once_says_so_the_second_time(connect: Connector) -> None:
    given = Given()
    entry = ServerEntry("given", server=given())
    async with connect(entry) as connection:
        assert (await connection.list_tools()).tools
    with pytest.raises(ConnectionFailed, match="can be entered only once: give a function that makes it"):
        async with connect(entry):
            pytest.fail("it cannot be entered again")


async def test_a_transport_that_cannot_be_made_is_told(connect: Connector) -> None:
    def no() -> Any:
        raise LookupError("no such thing")

    with pytest.raises(ConnectionFailed, match="LookupError: no such thing"):
        async with connect(ServerEntry("given", server=no)):
            pytest.fail("there is none")
    with pytest.raises(ConnectionFailed, match="gave no transport but int"):
        async with connect(ServerEntry("given", server=lambda: 3)):
            pytest.fail("there is none")


async def test_calls_end_when_their_transport_does(connect: Connector) -> None:
    given = Given()
    with trio.fail_after(20):
        async with open_host(Config((ServerEntry("given", server=given),)), backoff=Backoff(base=600)) as host:
            assert await host.ready(timeout=20)
            given.breaks.set()
            with pytest.raises((ServerDied, ServerUnavailable)):
                while True:
                    await host.call_tool("given", "add", {"a": 1, "b": 2}, timeout=10)
