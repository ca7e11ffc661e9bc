"""Shared by the tests of logins: the authorisation server in its process, and a browser that a test plays.

Each test finds the authorisation server as it is at first. Logins are kept in a folder of the test's own.
"""

from __future__ import annotations

import json
import socket
import subprocess
import sys
import time
import urllib.request
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio
from playbill.actors import Config, Host, OAuth, ServerEntry, Snapshot, open_host
from playbill.actors.model.snapshot import ServerState
from playbill.actors.server import ServerSettings
from playbill.supervision import Backoff, Intensity

PATIENCE = 60.0
STATIC, STATIC_SECRET = "static-client", "static-secret-4711"


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port: int = taken.getsockname()[1]
        return port


class Authority:
    """The running authorisation server, and the MCP server behind it.

    Attributes:
        issuer: of it.
        url: of the MCP server.
    """

    def __init__(self, ports: tuple[int, int]) -> None:
        self.issuer = f"http://127.0.0.1:{ports[0]}"
        self.url = f"http://127.0.0.1:{ports[1]}/mcp"

    def set(self, **options: Any) -> None:
        """Set options, or ``do`` something: see `authority`."""
        body = json.dumps(options).encode()
        request = urllib.request.Request(
            f"{self.issuer}/control", body, {"content-type": "application/json"}, method="POST"
        )
        urllib.request.urlopen(request, timeout=PATIENCE).close()

    def stats(self) -> dict[str, Any]:
        """What it has seen."""
        with urllib.request.urlopen(f"{self.issuer}/stats", timeout=PATIENCE) as answer:
            found: dict[str, Any] = json.loads(answer.read())
            return found

    def seen(self, what: str) -> int:
        count: int = self.stats()["seen"].get(what, 0)
        return count


@pytest.fixture(scope="session")
def _running() -> Iterator[Authority]:
    ports = free_port(), free_port()
    program = Path(__file__).with_name("authority.py")
    process = subprocess.Popen([sys.executable, str(program), *map(str, ports)])
    found = Authority(ports)
    until = time.monotonic() + PATIENCE
    try:
        for port in ports:
            while True:
                try:
                    socket.create_connection(("127.0.0.1", port), timeout=1).close()
                    break
                except OSError:
                    assert process.poll() is None
                    assert time.monotonic() < until
                    time.sleep(0.05)
        yield found
    finally:
        process.kill()
        process.wait()


@pytest.fixture
def authority(_running: Authority) -> Authority:
    """The authorisation server, as it is at first."""
    _running.set(reset=True)
    return _running


async def browse(url: str) -> str:
    """Go to a URL as a browser does, up to the page that is shown in the end; its URL."""
    async with httpx2.AsyncClient(follow_redirects=True, timeout=PATIENCE, trust_env=False) as client:
        return str((await client.get(url)).url)


async def browse_to_redirect(url: str) -> str:
    """Go to a URL, and not to where it redirects: that URL."""
    async with httpx2.AsyncClient(timeout=PATIENCE, trust_env=False) as client:
        return str((await client.get(url)).headers["location"])


class Person:
    """Somebody with a browser: `open_url` for `Host.login`.

    Attributes:
        urls: that the browser was sent to.
    """

    def __init__(self) -> None:
        self.urls: list[str] = []
        self.saw: list[int] = []

    async def __call__(self, url: str) -> None:
        self.urls.append(url)
        async with httpx2.AsyncClient(follow_redirects=True, timeout=PATIENCE, trust_env=False) as client:
            self.saw.append((await client.get(url)).status_code)


class Stage:
    """A host with one server behind a login, ``web``."""

    def __init__(self, host: Host) -> None:
        self.host = host
        self.phases: list[str] = []

    def state(self, name: str = "web") -> ServerState:
        state = self.host.snapshot().model.server(name)
        assert state is not None
        return state

    async def until(self, phase: str, name: str = "web") -> ServerState:
        """The first state from now on in a phase."""
        return await self.until_that(lambda state: state.phase == phase, name)

    async def settled(self, name: str = "web") -> ServerState:
        """Ready, and all that it offers is listed: no request of ours is on its way any more."""
        return await self.until_that(
            lambda state: state.phase == "ready" and state.resources_state == state.prompts_state == "current", name
        )

    async def until_that(self, holds: Callable[[ServerState], bool], name: str = "web") -> ServerState:
        def state_in(snapshot: Snapshot) -> ServerState:
            state = snapshot.model.server(name)
            assert state is not None
            return state

        with trio.fail_after(PATIENCE):
            async for snapshot in self.host.changes():
                if holds(state_in(snapshot)):
                    return state_in(snapshot)
        raise AssertionError("the host closed")

    async def call(self, tool: str = "echo", **arguments: Any) -> Any:
        result = await self.host.call_tool("web", tool, arguments, timeout=PATIENCE)
        text = str(result.content[0].text)
        assert not result.is_error, text
        return json.loads(text) if text.isdigit() else text

    async def login(self, **more: Any) -> Snapshot:
        return await self.host.login("web", open_url=more.pop("open_url", browse), timeout=PATIENCE, **more)

    async def note(self) -> None:
        async for snapshot in self.host.changes():
            state = snapshot.model.server("web")
            if state is not None and (not self.phases or self.phases[-1] != state.phase):
                self.phases.append(state.phase)


OnStage = Callable[..., AbstractAsyncContextManager[Stage]]


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Where logins are kept."""
    return tmp_path / "state" / "logins"


@pytest.fixture
def on_stage(authority: Authority, folder: Path) -> OnStage:
    """Open a host; arguments are those of `ServerEntry`."""

    @asynccontextmanager
    async def open_stage(logins: Path = folder, oauth: OAuth | None = None, **entry: Any) -> AsyncIterator[Stage]:
        web = ServerEntry("web", **{"url": authority.url, "oauth": oauth, **entry})
        async with open_host(
            Config((web,)),
            login_folder=logins,
            backoff=Backoff(base=0.05, max=0.2, reset_after=30.0),
            intensity=Intensity(restarts=5, window=60.0, then="park", park_retry=None),
            settings=ServerSettings(drain=0.2),
        ) as host:
            stage = Stage(host)
            async with trio.open_nursery() as nursery:
                nursery.start_soon(stage.note)
                yield stage
                nursery.cancel_scope.cancel()

    return open_stage


def only_file(folder: Path) -> Path:
    """The file of the only login."""
    (found,) = folder.glob("*.json")
    return found


def kept(folder: Path) -> dict[str, Any]:
    """What is kept of the only login."""
    found: dict[str, Any] = json.loads(only_file(folder).read_text())
    return found
