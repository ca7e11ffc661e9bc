"""A good server over stdio beside the ones that a test is about: its calls go on in the same process, whatever happens."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
from playbill.actors import Host, ServerEntry
from playbill.actors.model.snapshot import ServerState

from .faulty.conftest import faulty

PATIENCE = 60.0
_GOOD = faulty()

NEIGHBOUR = ServerEntry("neighbour", command=_GOOD["command"], args=tuple(_GOOD["args"]))
"""Its entry."""


@asynccontextmanager
async def beside(host: Host) -> AsyncIterator[None]:
    """Call the neighbour without a pause while the block runs; at its end five more calls are waited for.

    Raises:
        AssertionError: a call failed, or the neighbour is not the process that it was.
    """
    assert await host.ready(require=["neighbour"], timeout=PATIENCE)
    before, answered = _state(host), 0

    async def keep_calling() -> None:
        nonlocal answered
        while True:
            result = await host.call_tool("neighbour", "echo", {"n": answered}, timeout=PATIENCE)
            assert not result.is_error
            answered += 1
            await trio.sleep(0.001)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(keep_calling)
        yield
        goal = answered + 5
        with trio.fail_after(PATIENCE):
            while answered < goal:
                await trio.sleep(0.001)
        nursery.cancel_scope.cancel()
    after = _state(host)
    assert (after.restarts, after.pid, after.error) == (0, before.pid, None)


def _state(host: Host) -> ServerState:
    state = host.snapshot().model.server("neighbour")
    assert state is not None
    return state
