"""The examples as they are, against stubs of the providers and real servers.

Determinism: a test waits for what it expects under a deadline that only a failure reaches; no time is asserted.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest
import trio

from ..processes import marked

if TYPE_CHECKING:
    from .providers import Provider

EXAMPLES = Path(__file__).parents[2] / "examples"
SERVER = str(Path(__file__).with_name("server.py"))
PATIENCE = 120.0  # an SDK takes seconds to import


class Project:
    """A folder with an ``mcp.json`` of two servers, whose processes all carry one mark in their environment."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.path = folder / "mcp.json"
        self.mark = uuid.uuid4().hex
        self.write(one=self.server(), two=self.server())

    def server(self) -> dict[str, Any]:
        mark = {"PLAYBILL_TEST_MARK": self.mark}
        return {"command": sys.executable, "args": ["-I", "-S", SERVER, str(self.folder)], "env": mark}

    def write(self, **servers: dict[str, Any]) -> None:
        self.path.write_text(json.dumps({"mcpServers": servers}))

    def processes(self) -> list[int]:
        return marked(f"PLAYBILL_TEST_MARK={self.mark}")

    async def hangs(self, program: trio.Process | None = None) -> int:
        """Wait until a call of ``hang`` has reached its server: its process id. It polls, as another process writes it."""
        with trio.fail_after(PATIENCE):
            while not (found := sorted(self.folder.glob("hangs.*"))):
                assert program is None or program.poll() is None, "the program has ended"
                await trio.sleep(0.01)
        path = found[0]
        pid = int(path.read_text())
        path.unlink()
        return pid

    def environment(self, **more: str) -> dict[str, str]:
        """Of an example that runs as a program."""
        return {**os.environ, "MCP_CONFIG": str(self.path), "PYTHONUNBUFFERED": "1", **more}


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """After the test no process of it lives."""
    project = Project(tmp_path)
    yield project
    left = project.processes()
    for pid in left:
        os.kill(pid, 9)
    assert not left, "processes were left"


VARIABLES = ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "ANTHROPIC_BASE_URL", "OPENAI_API_KEY", "OPENAI_BASE_URL")


@pytest.fixture(autouse=True)
def no_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    """No key, proxy or address of this machine is used."""
    proxies = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")
    for name in (*VARIABLES, *proxies, *map(str.lower, proxies)):
        monkeypatch.delenv(name, raising=False)


@pytest.fixture(params=["ANTHROPIC", "OPENAI"])
def provider(request: pytest.FixtureRequest) -> Provider:
    """Each of the agents."""
    from . import providers  # the SDKs take seconds to import

    found: Provider = getattr(providers, request.param)
    return found
