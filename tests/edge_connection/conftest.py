"""Shared by the tests of the connection edge: fake servers as entries, and the proof that nothing is left of them.

Determinism: what must be exact runs in memory or in virtual time; what must be real runs real processes, and waits for what
it expects under a deadline that only a failure reaches.
"""

from __future__ import annotations

import json
import os
import sys
import uuid
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio
from playbill.actors.edge.wire.session import make_connect
from playbill.actors.model.config import ServerEntry

from ..processes import marked

PATIENCE = 20.0
FAKE = str(Path(__file__).with_name("fake_server.py"))


def expand_as_written(entry: ServerEntry) -> Any:
    return SimpleNamespace(
        command=entry.command,
        args=entry.args,
        env={**os.environ, **entry.env},
        cwd=entry.cwd,
        url=entry.url,
        headers=dict(entry.headers),
        secrets={value for key, value in entry.env.items() if key.startswith("SECRET")},
    )


def zombies() -> list[int]:
    """Our own children that nobody waited for."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            state, parent = (folder / "stat").read_text().rpartition(")")[2].split()[:2]
        except OSError:
            continue
        if state == "Z" and int(parent) == os.getpid():
            found.append(int(folder.name))
    return found


@pytest.fixture
def mark() -> Iterator[str]:
    """A mark in the environment of all servers of a test; afterwards none of them, and nothing they started, lives."""
    mark = f"PLAYBILL_TEST_MARK={uuid.uuid4().hex}"
    yield mark
    left = marked(mark)
    for pid in left:
        os.kill(pid, 9)
    assert not left, "processes were left"
    assert not zombies()


@pytest.fixture
def fake(mark: str) -> Callable[..., ServerEntry]:
    """Make the entry of a fake server with these options (see fake_server.py)."""

    def entry(name: str = "fake", *, env: dict[str, str] | None = None, **options: Any) -> ServerEntry:
        key, _, value = mark.partition("=")
        args = ("-I", "-S", FAKE, json.dumps(options))
        return ServerEntry(name, command=sys.executable, args=args, env={**(env or {}), key: value})

    return entry


class Connector:
    """Connects with defaults, and counts list changes."""

    def __init__(self) -> None:
        self.eras: dict[str, str] = {}
        self.changes = 0
        self.changed = trio.Event()
        self.connect = make_connect(expand=expand_as_written)

    def on_list_changed(self) -> None:
        self.changes += 1
        self.changed.set()

    def __call__(self, entry: ServerEntry, **settings: Any) -> Any:
        connect = make_connect(expand=expand_as_written, **settings) if settings else self.connect
        return connect(entry, eras=self.eras, on_list_changed=self.on_list_changed)


@pytest.fixture
def connect() -> Connector:
    return Connector()


@pytest.fixture
def patience() -> Iterator[Callable[[], Any]]:
    """A deadline for what must happen: it turns a hang into a failure."""
    return lambda: trio.fail_after(PATIENCE)
