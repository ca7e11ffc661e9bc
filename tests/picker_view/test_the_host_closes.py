"""A picker that is mounted in another program outlives its host: it says so, and asks it for nothing more."""

from __future__ import annotations

import pytest
import trio
import urwid
from playbill.actors.picker.view import Picker

from .scripted import ScriptedHost, server, snapshot, tool


@pytest.fixture(autouse=True)
def unicode() -> None:
    """As on a terminal of UTF-8."""
    urwid.set_encoding("utf-8")


def seen(picker: Picker) -> str:
    """What the widget draws."""
    return "\n".join(line.decode().rstrip() for line in picker.render((80, 10), focus=True).text)


async def test_when_the_host_closes_what_was_under_way_goes_back_and_it_is_said(
    autojump_clock: trio.testing.MockClock,
) -> None:
    host = ScriptedHost(snapshot(server("a", tool("x"))))
    host.gate = trio.Event()
    picker = Picker(host)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(picker.run)
        await trio.testing.wait_all_tasks_blocked()
        for key in ("down", " "):
            picker.keypress((80, 10), key)
        assert "[-]" in seen(picker)
        host.cell.close()
    assert picker.state.flights == ()
    assert "[-]" not in seen(picker)
    assert "under way" not in seen(picker)
    assert "the host is closed: q leaves" in seen(picker)
    for key in (" ", "r", "l", "down", "p"):
        picker.keypress((80, 10), key)
        assert "the host is closed: q leaves" in seen(picker)
    assert picker._asked == []
    picker.keypress((80, 10), "q")
    assert picker.state.ended


async def test_it_also_says_so_when_it_is_run_only_afterwards(autojump_clock: trio.testing.MockClock) -> None:
    host = ScriptedHost(snapshot(server("a", tool("x"))))
    picker = Picker(host)
    picker.keypress((80, 10), " ")
    host.cell.close()
    await picker.run()
    assert picker.state.closed
    assert "the host is closed" in seen(picker)
