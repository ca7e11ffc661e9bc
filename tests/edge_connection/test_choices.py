"""What is chosen: which dispatcher with which SDK, and that the SDK is not imported before it is needed."""

from __future__ import annotations

import importlib.metadata
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import pytest
from playbill.actors.edge.wire import transports
from playbill.actors.edge.wire.bridge import SdkPipes
from playbill.actors.edge.wire.dispatcher import PipeDispatcher
from playbill.actors.edge.wire.stdio import StdioWire
from playbill.actors.model.config import ServerEntry

from .conftest import Connector


def test_the_edge_is_imported_without_the_sdk() -> None:
    code = (
        "import sys\n"
        "import playbill.actors, playbill.actors.edge.wire.connecting, playbill.actors.edge.wire.transports\n"
        "found = [name for name in ('mcp', 'mcp_types', 'pydantic', 'httpx2') if name in sys.modules]\n"
        "assert not found, found\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize(
    ("version", "choice", "kind"),
    [
        ("2.3.0", "auto", PipeDispatcher),
        ("2.3.7", "auto", PipeDispatcher),
        ("2.4.0", "auto", SdkPipes),
        ("2.30.0", "auto", SdkPipes),
        ("2.4.0", "native", PipeDispatcher),
        ("2.3.0", "sdk", SdkPipes),
    ],
)
async def test_our_dispatcher_is_used_only_with_the_sdk_it_was_tested_with(
    fake: Callable[..., ServerEntry],
    connect: Connector,
    patience: Callable[[], Any],
    monkeypatch: pytest.MonkeyPatch,
    version: str,
    choice: str,
    kind: type,
) -> None:
    used: list[Any] = []
    use = StdioWire._use

    def note(self: StdioWire, pipes: Any) -> None:
        used.append(type(pipes))
        use(self, pipes)

    monkeypatch.setattr(StdioWire, "_use", note)
    real = importlib.metadata.version
    monkeypatch.setattr(importlib.metadata, "version", lambda name: version if name == "mcp" else real(name))
    transports.native_is_tested.cache_clear()
    try:
        with patience():
            async with connect(fake(), dispatcher=choice) as connection:
                assert (await connection.list_tools()).tools
    finally:
        transports.native_is_tested.cache_clear()
    assert used == [kind]


def test_the_installed_sdk_is_the_tested_one() -> None:
    """Fails when the SDK is upgraded: run the differential tests against it, then raise `TESTED_SDK`."""
    assert transports.native_is_tested()
