"""Determinism contract of this folder: virtual time only, scripted servers in memory, seeded jitter, no thread.

A file store is run inline (`open_host(store=…)`), so that the autojump clock never races a worker thread.
"""

from __future__ import annotations

import inspect
import json
import random
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from playbill.actors import Config, Host, open_host
from playbill.actors.edge.config.file import FileStore
from playbill.actors.testing import ScriptedServers

Open = Callable[..., AbstractAsyncContextManager[Host]]


def run_in_virtual_time(main: Any, *, clock: object = None, instruments: Any = ()) -> Any:
    return trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0), instruments=instruments)


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    for item in items:
        if here in item.path.parents and inspect.iscoroutinefunction(getattr(item, "function", None)):
            item.add_marker(pytest.mark.trio(run=run_in_virtual_time))


@pytest.fixture
def opened() -> Open:
    """Opens a host over scripted servers: ``opened(servers, config_or_store, **options)``."""

    def open_it(servers: ScriptedServers, config: Any = None, **options: Any) -> AbstractAsyncContextManager[Host]:
        options.setdefault("rng", random.Random(7))
        if config is None:
            config = Config(servers.entries())
        if isinstance(config, Config):
            return open_host(config, connect=servers, **options)
        return open_host(store=config, connect=servers, **options)

    return open_it


class ConfigFile:
    """A real ``mcp.json`` on disk, edited as a person would."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.store = FileStore(path)

    def write(self, servers: dict[str, Any], **siblings: Any) -> None:
        self.path.write_text(json.dumps({"mcpServers": servers, **siblings}, indent=2))

    def crash_after_edit(self, times: int = 1) -> list[int]:
        """Let the coordinator die ``times`` times, each time after the file was replaced and before anybody was answered.

        Returns:
            How often it still will, in a list that is kept up to date.
        """
        edit = self.store.edit
        left = [times]

        def crashing(edits: Any, previous: Any = None) -> Any:
            done = edit(edits, previous)
            if left[0]:
                left[0] -= 1
                raise RuntimeError("a defect of ours: nothing that the code expects")
            return done

        self.store.edit = crashing  # type: ignore[method-assign]
        return left

    def read(self) -> dict[str, Any]:
        loaded: dict[str, Any] = json.loads(self.path.read_text())
        return loaded


@pytest.fixture
def config_file(tmp_path: Path) -> ConfigFile:
    return ConfigFile(tmp_path / "mcp.json")
