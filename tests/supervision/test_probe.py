"""Looking in: states as observed, the tree, the counts, and event rings with bounded memory."""

from __future__ import annotations

import logging
from typing import Any

import pytest
import trio
import trio.testing
from playbill.supervision import (
    ChildState,
    Counts,
    Event,
    Gap,
    Intensity,
    MailboxStatistics,
    Supervisor,
    TreeNode,
)
from playbill.supervision.probe import EventLog


async def test_every_transition_is_observed_with_what_belongs_to_it(
    autojump_clock: Any, troupe: Any, bodies: Any
) -> None:
    begin = trio.current_time()
    park = Intensity(restarts=1, window=60, then="park", park_retry=300)
    troupe.sup.start_soon(troupe.spec("a", bodies.dies_after(1), intensity=park))
    await trio.sleep(5)
    first = troupe.sup.recent("a")[0].generation
    boom = "RuntimeError: boom"
    expected = [
        {"stage": "starting", "since": 0},
        {"stage": "starting", "since": 0, "generation": first},
        {"stage": "running", "since": 0, "generation": first},
        {"stage": "backing_off", "since": 1, "generation": first, "next_retry_at": 1.5, "attempt": (1, 1)},
        {"stage": "starting", "since": 1.5, "generation": first + 1, "restarts": 1, "attempt": (1, 1)},
        {"stage": "running", "since": 1.5, "generation": first + 1, "restarts": 1, "attempt": (1, 1)},
        {"stage": "parked", "since": 2.5, "generation": first + 1, "restarts": 1, "next_retry_at": 302.5},
    ]
    for number, state in enumerate(expected):
        state.update(name="a", since=begin + state["since"], first=number < 3, reason=None if number < 3 else boom)  # type: ignore[operator]
        if "next_retry_at" in state:
            state["next_retry_at"] += begin  # type: ignore[operator]
    assert troupe.states == [ChildState(**state) for state in expected]  # type: ignore[arg-type]
    assert troupe.sup.states() == {"a": troupe.states[-1]}


async def test_an_observer_that_raises_is_logged_and_harms_nobody(
    autojump_clock: Any, caplog: pytest.LogCaptureFixture, bodies: Any, make_troupe: Any
) -> None:
    troupe = make_troupe()

    def fails(state: ChildState) -> None:
        raise ValueError("observer's fault")

    sup = Supervisor("s", observe=fails)
    async with trio.open_nursery() as nursery:
        await nursery.start(sup.run)
        ref = await sup.start(troupe.spec("a", bodies.until_stopped))
        assert await ref.ask(1, timeout=1) == 1
        await sup.stop()
    errors = [record.getMessage() for record in caplog.records if record.levelno == logging.ERROR]
    assert set(errors) == {"the observer of supervisor 's' raised ValueError: observer's fault"}


async def test_an_observer_may_call_operations(autojump_clock: Any, bodies: Any, make_troupe: Any) -> None:
    """Parked children are removed by the observer, in the middle of the transition it observes."""
    troupe = make_troupe()

    def removes(state: ChildState) -> None:
        if state.stage == "parked":
            sup.stop_soon(state.name)

    sup = Supervisor(observe=removes)
    async with trio.open_nursery() as nursery:
        await nursery.start(sup.run)
        park = Intensity(restarts=0, then="park", park_retry=1)
        sup.start_soon(troupe.spec("a", bodies.dies_after(1), intensity=park))
        await trio.sleep(10)
        assert (troupe.bodies, sup.states()) == (1, {})
        await sup.stop()


async def test_tree_and_counts_show_every_child(autojump_clock: Any, troupe: Any, bodies: Any) -> None:
    park = Intensity(restarts=0, then="park")
    running = await troupe.sup.start(troupe.spec("running", bodies.stubborn, mailbox=3))
    running.tell("x")
    parked = await troupe.sup.start(troupe.spec("parked", bodies.dies_after(1), intensity=park))
    backing = await troupe.sup.start(troupe.spec("backing_off", bodies.dies_after(1)))
    await troupe.sup.start(troupe.spec("stopping", bodies.stubborn))
    troupe.sup.start_soon(troupe.spec("starting", bodies.stubborn, started=False))
    await parked.down.wait()
    await backing.down.wait()
    troupe.sup.stop_soon("stopping")
    tree = troupe.sup.tree()
    assert (tree.name, tree.kind, tree.state, tree.mailbox) == ("troupe", "supervisor", None, None)
    assert [node.name for node in tree.children] == ["running", "parked", "backing_off", "stopping", "starting"]
    assert tree.children[0] == TreeNode(
        "running", "actor", troupe.sup.states()["running"], (), MailboxStatistics(3, 1, 0, 0, 0), 0, None
    )
    assert [node.mailbox is None for node in tree.children] == [False, True, True, False, False]
    assert troupe.sup.counts() == Counts(
        children=5, starting=1, running=1, backing_off=1, parked=1, stopping=1, stuck=0, restarts_total=0
    )


async def test_a_child_keeps_its_last_events_only(autojump_clock: Any, bodies: Any, make_troupe: Any) -> None:
    troupe = make_troupe(events=5)
    async with trio.open_nursery() as nursery:
        await nursery.start(troupe.sup.run)
        limits = Intensity(restarts=10**6)
        ref = await troupe.sup.start(troupe.spec("a", bodies.dies_after(0.1), intensity=limits))
        await troupe.sup.start(troupe.spec("b", bodies.until_stopped))
        await trio.sleep(1)
        kinds = [event.kind for event in troupe.sup.recent("a")]
        assert len(kinds) == 5
        assert [event.kind for event in troupe.sup.recent("b")] == ["spawned", "started"]
        down = next(event for event in troupe.sup.recent("a") if event.kind == "down")
        assert (down.name, down.detail) == ("a", "RuntimeError: boom")
        assert down.generation >= ref.generation
        await troupe.sup.stop_child("a")
        assert troupe.sup.recent("a") == ()
        await troupe.sup.stop()


async def test_events_tell_a_childs_life_from_now_on_and_end_with_the_supervisor(
    autojump_clock: Any, bodies: Any, make_troupe: Any
) -> None:
    troupe = make_troupe()
    told: list[Any] = []
    async with trio.open_nursery() as nursery:
        await nursery.start(troupe.sup.run)
        await troupe.sup.start(troupe.spec("before", bodies.until_stopped))
        events = troupe.sup.events()
        ref = await troupe.sup.start(troupe.spec("a", bodies.dies_after(1, healthy=True)))
        await ref.down.wait()
        await troupe.sup.up("a")
        await troupe.sup.stop()
        async for event in events:
            told.append(event)
    seqs = [event.seq for event in told]
    assert seqs == list(range(seqs[0], seqs[0] + len(told)))
    assert [event.kind for event in told if event.name == "a"] == [
        "spawned",
        "started",
        "healthy",
        "down",
        "backing_off",
        "spawned",
        "started",
        "healthy",
        "stop_asked",
        "down",
        "removed",
    ]


async def test_a_reader_that_falls_behind_is_told_how_much_it_missed(autojump_clock: Any) -> None:
    log = EventLog(per_child=2, stream=4)
    reader = log.follow()
    quick = log.follow()
    for number in range(3):
        log.record("a", 1, "spawned", str(number))
    got: list[Event | Gap] = [await anext(quick) for _ in range(3)]
    assert [event.seq for event in got if isinstance(event, Event)] == [1, 2, 3]
    for number in range(3, 10):
        log.record("a", 1, "spawned", str(number))
    log.close()
    rest = [item async for item in reader]
    assert rest[0] == Gap(6)
    assert [item.seq for item in rest[1:] if isinstance(item, Event)] == [7, 8, 9, 10]
    assert await anext(quick) == Gap(3)
    assert len(log.recent("a")) == 2


async def test_reading_events_is_a_checkpoint(autojump_clock: Any) -> None:
    log = EventLog(2, 4)
    reader = log.follow()
    log.record("a", 1, "spawned")
    with trio.testing.assert_checkpoints():
        await anext(reader)


def test_a_ring_without_room_is_refused() -> None:
    with pytest.raises(ValueError, match="1 event or more"):
        Supervisor(events=0)
