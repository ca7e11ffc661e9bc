"""Operations done by a host: each is the method it means, with all of its arguments; the order is that of the keys."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from playbill.actors.model.errors import UnknownServer
from playbill.actors.model.snapshot import Snapshot
from playbill.actors.picker.dispatch import Desk
from playbill.actors.picker.values import (
    Add,
    Answer,
    Done,
    Event,
    Failed,
    FetchLog,
    FetchReview,
    Operation,
    Pin,
    Reload,
    Remove,
    Restart,
    Review,
    Revive,
    SetServer,
    SetTool,
    Trust,
)

from .scripted import ScriptedHost, server, snapshot, tool

REVIEW = Review(("server a would run:", "  command  x"), "seal-of-a")


class Approver:
    """Shows the same of each server, and keeps a diary."""

    def __init__(self, host: ScriptedHost) -> None:
        self._host = host
        self.asked: list[tuple[str, ...]] = []

    async def review(self, server: str) -> Review:
        """As a `Reviewer`."""
        await trio.lowlevel.checkpoint()
        self.asked.append(("review", server))
        return REVIEW

    async def approve(self, server: str, seal: str) -> Snapshot:
        """As a `Reviewer`."""
        await trio.lowlevel.checkpoint()
        self.asked.append(("approve", server, seal))
        return self._host.snapshot()


def a_host() -> ScriptedHost:
    return ScriptedHost(snapshot(server("a", tool("x"), tool("y")), server("b")))


async def done_by(host: ScriptedHost, *operations: Operation, reviewer: Any = None) -> list[Event]:
    """What was told of these operations, when all have ended."""
    told: list[Event] = []
    async with trio.open_nursery() as nursery:
        desk = Desk(host, nursery, told.append, reviewer)
        for operation in operations:
            desk.take(operation)
    return told


@pytest.mark.parametrize(
    ("operation", "asked"),
    [
        (SetTool(1, "a", "x", False), ("tool", "a", "x", False)),
        (SetServer(1, "a", True), ("server", "a", True)),
        (Pin(1, "a", "x", True), ("pin", "a", "x", True)),
        (Add(1, "c", "uvx", ("-v",), {"KEY": "v"}), ("add", "c", "uvx", ("-v",), {"KEY": "v"}, None)),
        (Add(1, "c", "uvx"), ("add", "c", "uvx", (), None, None)),
        (Add(1, "c", None, url="https://h"), ("add", "c", None, (), None, "https://h")),
        (Remove(1, "a"), ("remove", "a")),
        (Reload(1), ("reload",)),
        (Restart(1, "a"), ("restart", "a")),
        (Revive(1, "a"), ("revive", "a")),
    ],
    ids=lambda each: type(each).__name__,
)
async def test_each_operation_is_the_hosts_own_with_all_that_was_said(
    operation: Operation, asked: tuple[Any, ...]
) -> None:
    host = a_host()
    (told,) = await done_by(host, operation)
    assert host.asked == [asked]
    assert told == Done(1, host.snapshot())


async def test_what_is_fetched_is_an_answer_and_what_was_shown_is_what_is_approved() -> None:
    host = a_host()
    reviewer = Approver(host)
    assert await done_by(host, FetchLog(1, "a")) == [Answer(1, "a said this\nand that")]
    assert await done_by(host, FetchReview(2, "a"), reviewer=reviewer) == [Answer(2, REVIEW)]
    assert await done_by(host, Trust(3, "a", REVIEW.seal), reviewer=reviewer) == [Done(3, host.snapshot())]
    assert reviewer.asked == [("review", "a"), ("approve", "a", "seal-of-a")]


async def test_without_a_reviewer_it_is_said_how_to_approve() -> None:
    host = a_host()
    for operation in (FetchReview(1, "a"), Trust(1, "a", "seal")):
        (told,) = await done_by(host, operation)
        assert isinstance(told, Failed)
        assert told.message == "what 'a' would run cannot be shown here: see `playbill trust a`"
    (told,) = await done_by(host, FetchReview(1, "my server; rm"))
    assert isinstance(told, Failed)
    assert "`playbill trust 'my server; rm'`" in told.message
    (told,) = await done_by(host, FetchReview(1, "a\x1b[0m"))
    assert isinstance(told, Failed)
    assert "`playbill trust --all`" in told.message
    assert told.message.isprintable()


async def test_what_the_host_refuses_is_told_in_its_own_words() -> None:
    host = a_host()
    host.refuse = UnknownServer("a")
    assert await done_by(host, Remove(1, "a")) == [Failed(1, str(host.refuse))]
    (told,) = await done_by(host, FetchLog(2, "gone"))
    assert told == Failed(2, str(UnknownServer("gone")))


async def test_an_error_that_cannot_be_printed_is_told_all_the_same() -> None:
    class Mute(Exception):
        def __str__(self) -> str:
            raise ValueError("even this")

    host = a_host()
    host.refuse = Mute()
    assert await done_by(host, Reload(1)) == [Failed(1, "unexpected Mute: it does not say why")]


@pytest.mark.parametrize(
    "operations",
    [
        [SetTool(1, "a", "x", False), SetTool(2, "a", "x", True)],
        [Pin(1, "a", "x", True), Pin(2, "a", "x", False)],
        [Pin(1, "a", "x", True), SetTool(2, "a", "x", False)],
        [SetServer(1, "a", False), SetServer(2, "a", True)],
        [SetServer(1, "a", False), Remove(2, "a")],
        [SetTool(1, "a", "x", False), Remove(2, "a")],
        [Remove(1, "a"), Add(2, "a", "uvx")],
        [SetServer(1, "a", True), Restart(2, "a")],
        [SetServer(1, "a", True), SetTool(2, "a", "x", False)],
    ],
    ids=[
        *("tool", "pin", "pin and tool", "server", "switch and removal", "tool and removal", "removal and addition"),
        *("switch and restart", "switch and tool"),
    ],
)
async def test_of_the_same_thing_the_second_waits_for_the_end_of_the_first(
    operations: list[Operation], autojump_clock: trio.testing.MockClock
) -> None:
    host = a_host()
    host.gate = trio.Event()
    told: list[Event] = []
    async with trio.open_nursery() as nursery:
        desk = Desk(host, nursery, told.append)
        for operation in operations:
            desk.take(operation)
        await trio.testing.wait_all_tasks_blocked()
        assert len(host.asked) == 1
        host.gate.set()
        await trio.testing.wait_all_tasks_blocked()
    assert len(host.asked) == 2
    assert [each.id for each in told if isinstance(each, Done)] == [1, 2]


async def test_of_different_things_neither_waits_for_the_other(autojump_clock: trio.testing.MockClock) -> None:
    host = a_host()
    host.gate = trio.Event()
    async with trio.open_nursery() as nursery:
        desk = Desk(host, nursery, lambda event: None)
        for operation in (
            SetTool(1, "a", "x", False),
            SetTool(2, "a", "y", False),
            Pin(3, "a", "z", True),
            SetServer(4, "b", False),
            Restart(5, "c"),
            Reload(6),
        ):
            desk.take(operation)
        await trio.testing.wait_all_tasks_blocked()
        assert len(host.asked) == 6
        host.gate.set()


async def test_what_is_asked_for_when_an_end_is_told_is_done_too() -> None:
    host = a_host()
    told: list[Event] = []
    async with trio.open_nursery() as nursery:

        def tell(event: Event) -> None:
            told.append(event)
            if len(told) == 1:
                desk.take(SetTool(2, "a", "x", True))

        desk = Desk(host, nursery, tell)
        desk.take(SetTool(1, "a", "x", False))
    assert [asked[3] for asked in host.asked] == [False, True]
    assert [each.id for each in told if isinstance(each, Done)] == [1, 2]
