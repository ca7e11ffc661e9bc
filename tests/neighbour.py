"""A good server over stdio beside the ones that a test is about: its calls go on in the same process, whatever happens."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import trio
from attrs import define
from playbill.actors import Host, PlaybillError, ServerEntry
from playbill.actors.model.snapshot import ServerState

from .faulty.conftest import faulty

PATIENCE = 60.0
_GOOD = faulty()

NEIGHBOUR = ServerEntry("neighbour", command=_GOOD["command"], args=tuple(_GOOD["args"]))
"""Its entry."""


@define
class Heard:
    """What became of the neighbour's calls so far.

    Args:
        answered, failed: how many were.
        worst: seconds of the slowest that was answered.
    """

    answered: int = 0
    failed: int = 0
    worst: float = 0.0


@asynccontextmanager
async def beside(host: Host) -> AsyncIterator[Heard]:
    """Call the neighbour without a pause while the block runs; at its end five more calls are waited for.

    Raises:
        AssertionError: a call failed, or the neighbour is not the process that it was.
    """
    assert await host.ready(require=["neighbour"], timeout=PATIENCE)
    before, heard = _state(host), Heard()

    async def keep_calling() -> None:
        while True:
            begun = trio.current_time()
            try:
                result = await host.call_tool("neighbour", "echo", {"n": heard.answered}, timeout=PATIENCE)
            except PlaybillError:
                heard.failed += 1
                raise
            heard.failed += result.is_error
            assert not result.is_error
            heard.answered += 1
            heard.worst = max(heard.worst, trio.current_time() - begun)
            await trio.sleep(0.001)

    async with trio.open_nursery() as nursery:
        nursery.start_soon(keep_calling)
        yield heard
        goal = heard.answered + 5
        with trio.fail_after(PATIENCE):
            while heard.answered < goal:
                await trio.sleep(0.001)
        nursery.cancel_scope.cancel()
    after = _state(host)
    assert (after.restarts, after.pid, after.error) == (0, before.pid, None)


def _state(host: Host) -> ServerState:
    state = host.snapshot().model.server("neighbour")
    assert state is not None
    return state
