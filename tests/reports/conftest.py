"""One test for each problem report of other hosts that this project read: `test_b001_…` is about report B001.

Most run real processes in real time, under deadlines that only a failure reaches; those marked `virtual_time` run scripted
servers in memory on a clock that jumps. No test asserts a time, and each ends what it started.
"""

from __future__ import annotations

import json
import os
import random
import sys
import textwrap
import uuid
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from playbill.actors import Config, Host, Snapshot, open_host
from playbill.actors.edge.wire import process
from playbill.actors.testing import ScriptedServers

from ..processes import marked, start_of

FAKE = str(Path(__file__).parents[1] / "edge_connection" / "fake_server.py")
PATIENCE = 30.0
TOOLS = ("echo", "pid", "sleep", "fault")

SMALL = textwrap.dedent("""
    import json, sys

    def write(text):
        sys.stdout.write(text)
        sys.stdout.flush()

    def line(**message):
        return json.dumps({"jsonrpc": "2.0", **message}) + "\\n"

    def text(value):
        return {"content": [{"type": "text", "text": value}]}

    def listed(*names):
        return {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}

    def serve(tools, call=None, unknown=None):
        for raw in sys.stdin:
            message = json.loads(raw)
            method, id_, params = message.get("method"), message.get("id"), message.get("params") or {}
            if method == "initialize":
                capabilities = {"tools": {"listChanged": True}}
                info = {"name": "small", "version": "1"}
                result = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}
                write(line(id=id_, result=result))
            elif method == "tools/list":
                write(line(id=id_, result=tools(params.get("cursor"))))
            elif method == "tools/call":
                call(id_, params["name"])
            else:
                if unknown is not None:
                    unknown(message)
                if id_ is not None:
                    write(line(id=id_, error={"code": -32601, "message": "Method not found"}))
""")


def fake(**options: Any) -> dict[str, Any]:
    """The config entry of a fake server with these options (see fake_server.py)."""
    options.setdefault("tools", [[{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]])
    return {"command": sys.executable, "args": ["-I", "-S", FAKE, json.dumps(options)], "env": {}}


def small(code: str) -> dict[str, Any]:
    """The config entry of a server of a few lines, written on top of `SMALL`; they end with a call of ``serve``."""
    return {"command": sys.executable, "args": ["-I", "-S", "-c", SMALL + textwrap.dedent(code)]}


def wrapped(script: str, server: dict[str, Any]) -> dict[str, Any]:
    """The entry of a shell script whose positional parameters are the command line of a server."""
    return {"command": "/bin/sh", "args": ["-c", script, "wrapper", server["command"], *server["args"]]}


class Project:
    """A folder with an ``mcp.json`` whose servers, and all that they start, carry one mark in their environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "mcp.json"
        self.mark = uuid.uuid4().hex

    def text(self, **servers: dict[str, Any]) -> str:
        for entry in servers.values():
            if "command" in entry:
                entry.setdefault("env", {})["PLAYBILL_TEST_MARK"] = self.mark
        return json.dumps({"mcpServers": servers}, indent=2)

    def write(self, **servers: dict[str, Any]) -> None:
        self.path.write_text(self.text(**servers))

    def processes(self) -> list[int]:
        """The living ones (zombies have no environment)."""
        return marked(self.mark)

    async def gone(self) -> None:
        """Wait until none of them lives."""
        with trio.fail_after(PATIENCE):
            while self.processes():
                await trio.sleep(0.02)


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """After the test no process of it lives."""
    project = Project(tmp_path)
    yield project
    left = project.processes()
    for pid in left:
        os.kill(pid, 9)
    assert not left, "processes were left"


@pytest.fixture
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Servers that are stopped are given next to no time to go by themselves."""
    monkeypatch.setattr(process, "EOF_GRACE", 0.05)
    monkeypatch.setattr(process, "TERM_GRACE", 0.05)


async def vanished(processes: dict[int, str | None], *, zombies: bool = True) -> None:
    """Wait until none of them is there; unless told otherwise, not even as a zombie: each was reaped."""
    with trio.fail_after(PATIENCE):
        while any(start is not None and start_of(pid, zombies=zombies) == start for pid, start in processes.items()):
            await trio.sleep(0.01)


async def until(host: Host, condition: Callable[[Snapshot], Any]) -> Snapshot:
    """The first snapshot from now on that fulfils a condition; a failure after `PATIENCE` seconds."""
    with trio.fail_after(PATIENCE):
        async for snapshot in host.changes():
            if condition(snapshot):
                return snapshot
    raise AssertionError("the host closed")


def said(result: Any) -> str:
    """The text of a tool's answer."""
    return str(result.content[0].text)


def _run_in_virtual_time(main: Any, *, clock: object = None, instruments: Any = ()) -> Any:
    return trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0), instruments=instruments)


virtual_time = pytest.mark.trio(run=_run_in_virtual_time)
"""No thread and no process in such a test: a store is given as ``store``, and is then used inline."""


@asynccontextmanager
async def opened(servers: ScriptedServers, config: Config | None = None, **options: Any) -> AsyncIterator[Host]:
    """A host over scripted servers, with the jitter of one seed."""
    if "store" not in options:
        options["config"] = Config(servers.entries()) if config is None else config
    manager: AbstractAsyncContextManager[Host] = open_host(connect=servers, rng=random.Random(7), **options)
    async with manager as host:
        yield host
