"""Looking in from outside, without waiting: states, the tree, counts, and the events with their bounded memory.

Theory of operation. Every happening becomes one `Event` with the next number. It goes into the ring of its child and into
one ring for the whole supervisor, both bounded. A reader of the stream only remembers the number it wants next: if the ring
has dropped that one meanwhile, it gets a `Gap` and goes on with the oldest there is. So a slow reader costs nothing.
"""

from __future__ import annotations

from collections import deque
from collections.abc import AsyncIterator
from typing import Literal

import trio
from attrs import frozen

from .cell import Cell
from .errors import Stuck
from .mailbox import MailboxStatistics

__all__ = ["STAGES", "ChildStage", "ChildState", "Counts", "Event", "EventKind", "EventLog", "Gap", "TreeNode", "count"]

ChildStage = Literal["starting", "running", "backing_off", "parked", "stopping", "removed"]
"""Start pending, or not acknowledged yet · acknowledged · waiting to restart · over the limit · being stopped · gone."""

STAGES: dict[ChildStage, frozenset[ChildStage]] = {
    "starting": frozenset({"running", "backing_off", "parked", "stopping", "removed"}),
    "running": frozenset({"backing_off", "parked", "stopping", "removed"}),
    "backing_off": frozenset({"starting", "stopping", "removed"}),
    "parked": frozenset({"starting", "stopping", "removed"}),
    "stopping": frozenset({"starting", "removed"}),
    "removed": frozenset(),
}
"""Which stage may follow which. An incarnation lives in ``starting``, ``running`` and ``stopping`` only."""

EventKind = Literal[
    "spawned",
    "started",
    "healthy",
    "unhealthy",
    "stop_asked",
    "cancelled",
    "stuck",
    "down",
    "backing_off",
    "parked",
    "revived",
    "replaced",
    "escalated",
    "removed",
]
"""What can happen to a child; ``down`` and what follows from it carry the reason in their detail."""


@frozen(kw_only=True)
class ChildState:
    """One child at one moment.

    Args:
        name: of the child.
        stage: where it is (`ChildStage`).
        since: when it came there, in trio clock seconds.
        generation: of the incarnation that runs, or of the last one that ran; 0 before the first.
        restarts: how often it was started anew since its history was last cleared.
        first: no death in this history yet.
        next_retry_at: trio clock time of the next start (``backing_off``; ``parked`` with a slow retry), else None.
        asked: that time is so late because its last death asked for it (`Exit.retry_after`).
        attempt: which restart of how many within the window is next or under way, or None.
        reason: its last death in this history, in one line, or None.
        pending: a replacement waits for this incarnation's end.
    """

    name: str
    stage: ChildStage
    since: float
    generation: int = 0
    restarts: int = 0
    first: bool = True
    next_retry_at: float | None = None
    asked: bool = False
    attempt: tuple[int, int] | None = None
    reason: str | None = None
    pending: bool = False


@frozen
class TreeNode:
    """A supervisor, or one of its children.

    Args:
        name: its name.
        kind: which of the two.
        state: of a child, else None.
        children: of a supervisor, in the order they were added.
        mailbox: of the incarnation that runs, else None.
        asks: how many asks of that incarnation are not settled.
        stuck: it was cancelled and will not end.
    """

    name: str
    kind: Literal["supervisor", "actor"]
    state: ChildState | None = None
    children: tuple[TreeNode, ...] = ()
    mailbox: MailboxStatistics | None = None
    asks: int = 0
    stuck: Stuck | None = None


@frozen(kw_only=True)
class Counts:
    """How many children there are, and in which stage.

    Args:
        children: all of them.
        starting, running, backing_off, parked, stopping: of them, in that stage.
        stuck: of them, cancelled and not ending.
        restarts_total: restarts in the supervisor's whole life, removed children included.
    """

    children: int
    starting: int
    running: int
    backing_off: int
    parked: int
    stopping: int
    stuck: int
    restarts_total: int


@frozen
class Event:
    """Something happened to a child.

    Args:
        seq: number within the supervisor, growing by 1.
        at: trio clock seconds.
        name: of the child.
        generation: of the incarnation, or of the last one.
        kind: what happened.
        detail: one line, or empty.
        stuck: with kind ``stuck``, else None.
    """

    seq: int
    at: float
    name: str
    generation: int
    kind: EventKind
    detail: str = ""
    stuck: Stuck | None = None


@frozen
class Gap:
    """The reader fell behind: ``missed`` events are gone from the ring."""

    missed: int


def count(tree: TreeNode, restarts_total: int) -> Counts:
    """Count the children of a supervisor's tree."""
    stages = [node.state.stage for node in tree.children if node.state is not None]
    return Counts(
        children=len(stages),
        starting=stages.count("starting"),
        running=stages.count("running"),
        backing_off=stages.count("backing_off"),
        parked=stages.count("parked"),
        stopping=stages.count("stopping"),
        stuck=sum(node.stuck is not None for node in tree.children),
        restarts_total=restarts_total,
    )


class EventLog:
    """The rings of one supervisor.

    Args:
        per_child: events kept of each child, 1 or more.
        stream: events kept for the readers of the stream, 1 or more.
    """

    def __init__(self, per_child: int, stream: int) -> None:
        if per_child < 1 or stream < 1:
            raise ValueError("an event ring must hold 1 event or more")
        self._per_child = per_child
        self._rings: dict[str, deque[Event]] = {}
        self.stream: deque[Event] = deque(maxlen=stream)
        self.next_seq: Cell[int] = Cell(1)

    def record(self, name: str, generation: int, kind: EventKind, detail: str = "", stuck: Stuck | None = None) -> None:
        """Number and keep an event of now. Never waits."""
        event = Event(self.next_seq.value, trio.current_time(), name, generation, kind, detail, stuck)
        self._rings.setdefault(name, deque(maxlen=self._per_child)).append(event)
        self.stream.append(event)
        self.next_seq.set(event.seq + 1)

    def recent(self, name: str) -> tuple[Event, ...]:
        """The last events of a child, oldest first; empty when it is unknown."""
        return tuple(self._rings.get(name, ()))

    def forget(self, name: str) -> None:
        """Drop the ring of a child that is gone; the stream keeps its events."""
        self._rings.pop(name, None)

    def close(self) -> None:
        """End the readers, once they have read what there is."""
        self.next_seq.close()

    def follow(self) -> AsyncIterator[Event | Gap]:
        """Iterate over the events from now on; ends after `close`. For one task; needs no closing."""
        return _Reader(self)


class _Reader(AsyncIterator[Event | Gap]):
    __slots__ = ("_log", "_next")

    def __init__(self, log: EventLog) -> None:
        self._log = log
        self._next = log.next_seq.value

    async def __anext__(self) -> Event | Gap:
        try:
            await self._log.next_seq.wait(lambda seq: seq > self._next)
        except trio.ClosedResourceError:
            raise StopAsyncIteration from None
        ring = self._log.stream
        missed = ring[0].seq - self._next
        if missed > 0:
            self._next += missed
            return Gap(missed)
        event = ring[-1 - (ring[-1].seq - self._next)]
        self._next += 1
        return event
