"""Announced changes of a tool list, in both eras, up to `on_list_changed`."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from mcp_types import CallToolResult
from playbill.actors.model.config import ServerEntry

from .conftest import Connector

Fake = Callable[..., ServerEntry]
Patience = Callable[[], Any]
ERAS = [("legacy", "2025-11-25"), ("modern", "2026-07-28"), ("both", "2026-07-28")]


def text(result: Any) -> str:
    assert isinstance(result, CallToolResult)
    return str(result.content[0].text)  # type: ignore[union-attr]


async def until(condition: Callable[[], bool], event: Callable[[], trio.Event]) -> None:
    while not condition():
        await event().wait()


class Changes:
    """Waits for the n-th change."""

    def __init__(self, connect: Connector) -> None:
        self.connect = connect

    async def reach(self, count: int) -> None:
        while self.connect.changes < count:
            self.connect.changed = trio.Event()
            await self.connect.changed.wait()


@pytest.mark.parametrize("dispatcher", ["native", "sdk"])
async def test_a_legacy_server_announces_changes(
    fake: Fake, connect: Connector, patience: Patience, dispatcher: str
) -> None:
    with patience():
        async with connect(fake(list_changed=True), dispatcher=dispatcher) as connection:
            assert connect.changes == 0
            await connection.call_tool("fault", {"do": "changed"}, None)
            await Changes(connect).reach(1)
    assert connect.changes == 1


@pytest.mark.parametrize("dispatcher", ["native", "sdk"])
async def test_a_modern_server_announces_changes_to_its_subscriber(
    fake: Fake, connect: Connector, patience: Patience, dispatcher: str
) -> None:
    with patience():
        async with connect(fake(era="modern", list_changed=True), dispatcher=dispatcher) as connection:
            steps: list[tuple[str | None, int]] = [
                (None, 1),  # the acknowledgement: nothing from before it is replayed
                ("changed", 2),
                ("end_listening", 3),  # opened again, acknowledged again
                ("changed", 4),
            ]
            await connection.list_tools()
            for do, count in steps:
                if do is not None:
                    await connection.call_tool("fault", {"do": do}, None)
                await Changes(connect).reach(count)
                await connection.call_tool("pid", {}, None)  # whatever else came, came before this
                assert connect.changes == count


async def test_what_a_modern_server_announces_to_nobody_does_not_count(
    fake: Fake, connect: Connector, patience: Patience
) -> None:
    with patience():
        async with connect(fake(era="modern")) as connection:
            await connection.call_tool("fault", {"do": "changed"}, None)
            await connection.call_tool("pid", {}, None)
    assert connect.changes == 0


async def test_a_modern_server_without_the_capability_is_not_subscribed_to(
    fake: Fake, connect: Connector, patience: Patience, tmp_path: Path
) -> None:
    log = tmp_path / "log"
    with patience():
        async with connect(fake(era="modern", log=str(log))) as connection:
            await connection.list_tools()
    assert "subscriptions/listen" not in log.read_text().split()


async def test_a_storm_of_changes_leaves_calls_alone(fake: Fake, connect: Connector, patience: Patience) -> None:
    with patience():
        async with connect(fake(list_changed=True)) as connection, trio.open_nursery() as nursery:
            nursery.start_soon(connection.call_tool, "fault", {"do": "storm", "count": 20_000}, None)
            await Changes(connect).reach(1)
            assert trio.lowlevel.current_statistics().tasks_living < 60
            await connection.call_tool("pid", {}, None)
    assert connect.changes == 20_000


# ── answers that are none ────────────────────────────────────────────────────────────────────────────────────────────────
