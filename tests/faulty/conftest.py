"""Shared by the tests of servers that do everything wrong: a stage with a real host, the faulty ones, and a good neighbour.

Determinism: a test waits for what it expects under a deadline that only a failure reaches, and asserts no time tighter than
the deadline that the rule itself gives. What each test asserts without saying so, by `Stage`: the neighbour's calls all
succeeded, in the same process, and went on after the fault; and after the close nothing of any server is left.
"""

from __future__ import annotations

import json
import os
import signal
import sys
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from playbill.actors import Host, Snapshot, open_host
from playbill.actors.edge.wire import process
from playbill.actors.model.snapshot import ServerState
from playbill.actors.server import ServerSettings
from playbill.supervision import Backoff, Intensity

from ..processes import alive, below, marked, start_of

SERVER = str(Path(__file__).with_name("server.py"))
PATIENCE = 30.0
BACKOFF = Backoff(base=0.05, max=0.2, reset_after=30.0)
FOR_ONE_LIFE = Backoff(base=600.0, max=600.0, reset_after=600.0)
"""So that a server that died stays as it is."""


def faulty(**moments: Any) -> dict[str, Any]:
    """The config entry of a faulty server; each moment (see server.py) is a deed, or a list of them."""
    options = {key: [deeds] if isinstance(deeds, dict) else deeds for key, deeds in moments.items()}
    return {"command": sys.executable, "args": ["-I", "-S", SERVER, json.dumps(options)], "env": {}}


def deed(name: str, **options: Any) -> dict[str, Any]:
    """One deed, also as the arguments of the tool ``do``."""
    return {"do": name, **options}


def said(result: Any) -> str:
    """The text of a tool's answer."""
    return str(result.content[0].text)


class Project:
    """A folder with an ``mcp.json`` whose servers, and all that they start, can be found again."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "mcp.json"
        self.mark = uuid.uuid4().hex
        self.pids = folder / "pids"

    def write(self, **servers: dict[str, Any]) -> None:
        for entry in servers.values():
            entry.setdefault("env", {}).update(PLAYBILL_TEST_MARK=self.mark, PLAYBILL_TEST_PIDS=str(self.pids))
        self.path.write_text(json.dumps({"mcpServers": servers}, indent=2))

    def enrolled(self) -> list[int]:
        """The living of those that wrote themselves down, whatever their environment says now."""
        lines = self.pids.read_text().splitlines() if self.pids.exists() else []
        return [int(pid) for pid, start in (line.split() for line in lines) if start_of(int(pid)) == start]

    def processes(self) -> set[int]:
        """All living processes that its servers were, or started."""
        return {*self.enrolled(), *marked(self.mark)}

    async def gone(self, seconds: float = PATIENCE) -> None:
        """Wait until none of them lives."""
        with trio.fail_after(seconds):
            while self.processes():
                await trio.sleep(0.02)

    async def count(self, number: int) -> None:
        """Wait until at least so many have written themselves down."""
        with trio.fail_after(PATIENCE):
            while not self.pids.exists() or len(self.pids.read_text().splitlines()) < number:
                await trio.sleep(0.01)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """After the test no process of it lives."""
    project = Project(tmp_path)
    yield project
    left = project.processes()
    for pid in left:
        os.kill(pid, signal.SIGKILL)
    assert not left, "processes were left"


GRACES = {name: getattr(process, name) for name in ("EOF_GRACE", "TERM_GRACE", "KILL_GRACE")}
"""Seconds, as they are for everybody else."""


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that are stopped are given next to no time to go by themselves."""
    monkeypatch.setattr(process, "EOF_GRACE", 0.1)
    monkeypatch.setattr(process, "TERM_GRACE", 0.1)


@pytest.fixture
def patient(impatient: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """The true graces, for a test that is about them."""
    for name, seconds in GRACES.items():
        monkeypatch.setattr(process, name, seconds)


class Stage:
    """A host with faulty servers and one good neighbour, which is called without a pause."""

    def __init__(self, host: Host, project: Project) -> None:
        self.host = host
        self.project = project
        self.answered = 0
        self.pid = self.state("good").pid

    def state(self, name: str = "bad") -> ServerState:
        """A server as the snapshot shows it now."""
        state = self.host.snapshot().model.server(name)
        assert state is not None
        return state

    async def call(
        self, tool: str = "echo", timeout: float = PATIENCE, *, server: str = "bad", **arguments: Any
    ) -> str:
        """Call a tool of a server; its text."""
        return said(await self.host.call_tool(server, tool, arguments, timeout=timeout))

    async def ready(self, *names: str) -> None:
        """Wait until these servers (``bad``) are ready."""
        readiness = await self.host.ready(require=names or ("bad",), timeout=PATIENCE)
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

    async def replaced(self, pid: int | None, name: str = "bad") -> ServerState:
        """Wait until a server is ready in another process than this."""
        return await self.until(lambda state: state.phase == "ready" and state.pid != pid, name)

    async def in_flight(self, number: int = 1, name: str = "bad") -> None:
        """Wait until so many calls to a server are under way."""
        with trio.fail_after(PATIENCE):
            while self.host._board.lines[name].in_flight < number:
                await trio.lowlevel.checkpoint()

    async def has_said(self, words: str, name: str = "bad") -> None:
        """Wait until a server has written this on stderr."""
        with trio.fail_after(PATIENCE):
            while words not in self.host.stderr_tail(name):
                await trio.sleep(0.005)

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


SetUp = Callable[..., AbstractAsyncContextManager[Stage]]


@pytest.fixture
def on_stage(project: Project) -> SetUp:
    """Open a stage over these servers, by name (the only one: ``bad``); the other arguments are those of `open_host`."""

    @asynccontextmanager
    async def open_stage(
        bad: dict[str, Any] | None = None,
        *,
        backoff: Backoff = BACKOFF,
        intensity: Intensity | None = None,
        settings: ServerSettings | None = None,
        **servers: dict[str, Any],
    ) -> AsyncIterator[Stage]:
        if bad is not None:
            servers["bad"] = bad
        project.write(good=faulty(), **servers)
        before = below(os.getpid())
        ours: dict[int, str | None] = {}

        def note_ours() -> None:
            ours.update((pid, start) for pid, start in below(os.getpid()).items() if pid not in before)

        try:
            async with open_host(
                project.path,
                backoff=backoff,
                intensity=intensity or Intensity(restarts=5, window=60.0, then="park", park_retry=None),
                settings=settings or ServerSettings(drain=0.2),
            ) as host:
                assert await host.ready(require=["good"], timeout=PATIENCE)
                stage = Stage(host, project)
                try:
                    async with trio.open_nursery() as nursery:
                        nursery.start_soon(stage.keep_calling)
                        await stage.goes_on(1)
                        note_ours()
                        yield stage
                        await stage.goes_on()
                        nursery.cancel_scope.cancel()
                finally:
                    note_ours()
                good = stage.state("good")
                assert (good.restarts, good.pid, good.error) == (0, stage.pid, None)
            assert project.processes() == set(), "of a server"
            assert below(os.getpid()).keys() <= before.keys(), "below the host"
            with trio.fail_after(PATIENCE):
                while alive(ours):  # one whose parent was killed is not below the host any more
                    await trio.sleep(0.01)
        finally:
            for pid in alive(ours):
                os.kill(pid, signal.SIGKILL)

    return open_stage
