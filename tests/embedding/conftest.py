"""Real files, real processes, real time: a whole host as an agent embeds it.

Determinism: a test waits for what it expects under a deadline that only a failure reaches; no time is asserted.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from ..processes import marked

FAKE = str(Path(__file__).parents[1] / "edge_connection" / "fake_server.py")
PATIENCE = 30.0
TOOLS = ("echo", "pid", "sleep", "fault")


def fake(**options: Any) -> dict[str, Any]:
    """The config entry of a fake server with these options (see fake_server.py)."""
    options.setdefault("tools", [[{"name": name, "inputSchema": {"type": "object"}} for name in TOOLS]])
    return {"command": sys.executable, "args": ["-I", "-S", FAKE, json.dumps(options)], "env": {}}


class Project:
    """A folder with an ``mcp.json`` whose servers all carry one mark in their environment."""

    def __init__(self, folder: Path) -> None:
        self.path = folder / "mcp.json"
        self.mark = uuid.uuid4().hex

    def write(self, **servers: dict[str, Any]) -> None:
        for entry in servers.values():
            entry.setdefault("env", {})["PLAYBILL_TEST_MARK"] = self.mark
        self.path.write_text(json.dumps({"mcpServers": servers}, indent=2))

    def processes(self) -> list[int]:
        return marked(f"PLAYBILL_TEST_MARK={self.mark}")


@pytest.fixture
def project(tmp_path: Path) -> Iterator[Project]:
    """After the test no process of it lives."""
    project = Project(tmp_path)
    yield project
    left = project.processes()
    for pid in left:
        os.kill(pid, 9)
    assert not left, "processes were left"
