"""Waiting for servers, in virtual time: who is waited for, how long, and what a person is told meanwhile."""

from __future__ import annotations

import io
from collections.abc import AsyncIterator
from typing import Any, cast

import pytest
import trio
import trio.testing
from playbill.actors import Catalog, Host, PluginModel, ServerState, Snapshot
from playbill.actors.cli.waiting import awaited, settle
from playbill.supervision import Cell


def server(phase: Any, name: str = "a", **more: Any) -> ServerState:
    return ServerState(name=name, phase=phase, **more)


def snapshot(version: int, *servers: ServerState) -> Snapshot:
    return Snapshot(version, 1, PluginModel(servers=servers), Catalog(version, (), (), ""))


class Scripted:
    """The part of a host that waiting reads."""

    def __init__(self, *servers: ServerState) -> None:
        self.cell = Cell(snapshot(1, *servers))

    def snapshot(self) -> Snapshot:
        return self.cell.value

    def changes(self) -> AsyncIterator[Snapshot]:
        return self.cell.changes()

    def become(self, *servers: ServerState) -> None:
        self.cell.set(snapshot(self.cell.value.version + 1, *servers))


@pytest.mark.parametrize(
    ("state", "wait"),
    [
        (server("starting"), True),
        (server("starting", connected=True), True),
        (server("backing_off", attempt=(1, 5)), True),
        (server("starting", attempt=(1, 5)), True),
        (server("backing_off", attempt=(2, 5)), False),
        (server("starting", attempt=(3, 5)), False),
        (server("backing_off"), False),
        (server("ready"), False),
        (server("parked"), False),
        (server("needs_auth"), False),
        (server("untrusted"), False),
        (server("invalid"), False),
        (server("disabled"), False),
        (server("stopping"), False),
    ],
)
def test_a_server_is_waited_for_until_it_is_ready_or_failed_twice(state: ServerState, wait: bool) -> None:
    assert awaited(state) is wait


async def test_the_wait_ends_when_the_last_one_is_ready(autojump_clock: trio.testing.MockClock) -> None:
    host = Scripted(server("ready", "a"), server("starting", "b"))

    async def later() -> None:
        await trio.sleep(3)
        host.become(server("ready", "a"), server("ready", "b"))

    async with trio.open_nursery() as nursery:
        nursery.start_soon(later)
        seen = await settle(cast(Host, host), 10)
    assert trio.current_time() == 3
    assert seen.version == 2


async def test_the_wait_ends_at_its_deadline_with_what_there_is(autojump_clock: trio.testing.MockClock) -> None:
    seen = await settle(cast(Host, Scripted(server("starting"))), 7)
    assert trio.current_time() == 7
    assert seen.version == 1


async def test_only_the_named_are_waited_for(autojump_clock: trio.testing.MockClock) -> None:
    host = Scripted(server("ready", "a"), server("starting", "b"))
    await settle(cast(Host, host), 7, ["a"])
    assert trio.current_time() == 0


class Terminal(io.StringIO):
    """A stderr that a person reads."""

    def isatty(self) -> bool:
        return True


async def test_a_person_is_told_after_half_a_second_who_is_awaited(
    autojump_clock: trio.testing.MockClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    told = Terminal()
    monkeypatch.setattr("sys.stderr", told)
    await settle(cast(Host, Scripted(server("starting", "slow\x1b[2J"), server("ready", "quick"))), 0.4)
    assert told.getvalue() == ""
    await settle(cast(Host, Scripted(server("starting", "slow\x1b[2J"), server("ready", "quick"))), 0.6)
    assert told.getvalue() == "\rwaiting for slow [2J (1 of 2 ready)\x1b[K\r\x1b[K"


async def test_a_pipe_is_told_nothing(
    autojump_clock: trio.testing.MockClock, capsys: pytest.CaptureFixture[str]
) -> None:
    await settle(cast(Host, Scripted(server("starting"))), 5)
    assert capsys.readouterr().err == ""
