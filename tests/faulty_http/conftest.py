"""Shared by the tests of servers over HTTP that do everything wrong: a real host, the faulty server, and a good neighbour.

The faulty server is in this program, over real sockets; the neighbour is a real process over stdio, which is called without a
pause. What each test asserts without saying so: the neighbour's calls all succeeded and went on, in the same process.
Determinism: a test waits for what it expects under a deadline that only a failure reaches, and asserts no time.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from playbill.actors import Config, Host, ServerEntry, Snapshot, open_host
from playbill.actors.model.snapshot import ServerState
from playbill.actors.server import ServerSettings
from playbill.supervision import Backoff, Intensity

from ..faulty.conftest import faulty
from .server import Web

PATIENCE = 30.0
BACKOFF = Backoff(base=0.05, max=0.2, reset_after=30.0)
FOR_ONE_LIFE = Backoff(base=600.0, max=600.0, reset_after=600.0)
"""So that a server that was lost stays as it is."""


def said(result: Any) -> str:
    """The text of a tool's answer."""
    return str(result.content[0].text)


class Stage:
    """A host with a faulty server over HTTP and one good neighbour over stdio."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.answered = 0
        self.pid = self.state("good").pid
        self.phases: list[str] = []

    def state(self, name: str = "bad") -> ServerState:
        """A server as the snapshot shows it now."""
        state = self.host.snapshot().model.server(name)
        assert state is not None
        return state

    async def call(self, tool: str = "echo", timeout: float = PATIENCE, **arguments: Any) -> Any:
        """Call a tool of the faulty server."""
        return await self.host.call_tool("bad", tool, arguments, timeout=timeout)

    async def ready(self) -> None:
        """Wait until the faulty server is ready."""
        readiness = await self.host.ready(require=["bad"], timeout=PATIENCE)
        assert readiness, readiness.missing

    async def until(self, condition: Callable[[ServerState], Any], name: str = "bad") -> ServerState:
        """The first state of a server from now on that fulfils a condition."""

        def state_in(snapshot: Snapshot) -> ServerState:
            state = snapshot.model.server(name)
            assert state is not None
            return state

        with trio.fail_after(PATIENCE):
            async for snapshot in self.host.changes():
                if condition(state_in(snapshot)):
                    return state_in(snapshot)
        raise AssertionError("the host closed")

    async def goes_on(self, times: int = 5) -> None:
        """Wait until the neighbour has answered so many calls more."""
        goal = self.answered + times
        with trio.fail_after(PATIENCE):
            while self.answered < goal:
                await trio.sleep(0.001)

    async def keep_calling(self) -> None:
        """The neighbour's caller."""
        while True:
            result = await self.host.call_tool("good", "echo", {"n": self.answered}, timeout=PATIENCE)
            assert json.loads(said(result)) == {"n": self.answered}
            self.answered += 1
            await trio.sleep(0.001)

    async def note_phases(self) -> None:
        """Note each phase of the faulty server as it is shown."""
        async for snapshot in self.host.changes():
            state = snapshot.model.server("bad")
            if state is not None and (not self.phases or self.phases[-1] != state.phase):
                self.phases.append(state.phase)


OnStage = Callable[..., AbstractAsyncContextManager[Stage]]


@pytest.fixture
def on_stage(tmp_path: Path) -> OnStage:
    """Open a stage with this server as ``bad``; the other arguments are those of its entry, and of `open_host`."""

    @asynccontextmanager
    async def open_stage(
        web: Web, *, backoff: Backoff = BACKOFF, settings: ServerSettings | None = None, **entry: Any
    ) -> AsyncIterator[Stage]:
        good = faulty()
        servers = (
            ServerEntry("good", command=good["command"], args=good["args"]),
            ServerEntry("bad", **{"url": web.url, **entry}),
        )
        async with open_host(
            Config(servers),
            backoff=backoff,
            intensity=Intensity(restarts=5, window=60.0, then="park", park_retry=None),
            settings=settings or ServerSettings(drain=0.2),
        ) as host:
            assert await host.ready(require=["good"], timeout=PATIENCE)
            stage = Stage(host)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(stage.keep_calling)
                nursery.start_soon(stage.note_phases)
                await stage.goes_on(1)
                yield stage
                await stage.goes_on()
                nursery.cancel_scope.cancel()
            good_now = stage.state("good")
            assert (good_now.restarts, good_now.pid, good_now.error) == (0, stage.pid, None)

    return open_stage
