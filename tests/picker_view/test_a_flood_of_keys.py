"""A flood of keys on a terminal does not keep the others from running: a signal is heeded in the middle of it."""

from __future__ import annotations

import os
import pty
from collections.abc import Iterator

import pytest
import trio
from playbill.actors.picker.outlet import Outlet
from playbill.actors.picker.terminal import Screen, Terminal
from playbill.actors.picker.values import Event, Key
from playbill.actors.picker.view import Picker, run_picker

from .test_view import host_of


@pytest.fixture
def terminal() -> Iterator[tuple[Terminal, int]]:
    """A terminal, and the end where its keys are pressed."""
    ours, theirs = pty.openpty()
    with open(theirs, "rb", buffering=0, closefd=False) as stdin, open(theirs, "w", closefd=False) as stdout:
        outlet = Outlet(stdout)
        yield Terminal(Screen(stdin, stdout, outlet), True, 1), ours
        outlet.close()
    os.close(theirs)
    os.close(ours)


async def test_others_run_in_the_middle_of_a_flood_of_keys(
    terminal: tuple[Terminal, int], monkeypatch: pytest.MonkeyPatch
) -> None:
    keys, most = 0, 0
    tell = Picker.tell

    def count(self: Picker, event: Event) -> None:
        nonlocal keys
        keys += event == Key("z")
        tell(self, event)

    monkeypatch.setattr(Picker, "tell", count)
    with trio.fail_after(30):
        async with trio.open_nursery() as nursery:
            nursery.start_soon(run_picker, host_of(), terminal[0])
            while not terminal[0].screen.started:
                await trio.lowlevel.checkpoint()
            os.write(terminal[1], b"z" * 2000)
            while keys < 2000:
                before = keys
                await trio.lowlevel.checkpoint()
                most = max(most, keys - before)
            nursery.cancel_scope.cancel()
    assert 0 < most <= 256
