"""A mailbox: bounded ordinary mail, and a control lane that full mail cannot block. It dies with its incarnation.

Theory of operation. Two queues hold the items; putting never waits (a full mailbox is an error of the sender's, not a wait).
Who receives parks until anything was put in either lane, then looks at control first. Between looking and parking there is no
wait: no wake-up is lost; an item is taken after the last checkpoint: a cancelled receiver has taken nothing.
"""

from __future__ import annotations

from collections import deque
from typing import Any

import trio
from attrs import frozen

from .errors import MailboxFull

__all__ = ["Mailbox", "MailboxStatistics"]


@frozen
class MailboxStatistics:
    """A mailbox at one moment.

    Args:
        capacity: of the ordinary lane, in items.
        waiting: ordinary items not yet taken.
        control: control items not yet taken.
        taken: items taken so far, of both lanes.
        refused: items refused because the mailbox was full.
    """

    capacity: float
    waiting: int
    control: int
    taken: int
    refused: int


class Mailbox:
    """The mail of one incarnation.

    Args:
        capacity: of the ordinary lane, in items: 1 or more, or ``math.inf``.
        name: of its actor, for errors.
    """

    def __init__(self, capacity: float = 64, name: str = "mailbox") -> None:
        if not capacity >= 1:
            raise ValueError(f"a mailbox must hold 1 item or more, not {capacity!r}")
        self.name = name
        self.capacity = capacity
        self._mail: deque[Any] = deque()
        self._control: deque[Any] = deque()
        self._closed = False
        self._parked = trio.lowlevel.ParkingLot()
        self._taken = 0
        self._refused = 0

    def put_nowait(self, item: object) -> None:
        """Put an ordinary item. Never waits.

        Raises:
            MailboxFull: there is no room.
            trio.ClosedResourceError: the mailbox is closed.
        """
        self._check_open()
        if len(self._mail) + 1 > self.capacity:
            self._refused += 1
            raise MailboxFull(self.name, self.capacity)
        self._mail.append(item)
        self._parked.unpark()

    def control_nowait(self, item: object) -> None:
        """Put an item in the control lane, which has no bound and is delivered first. Never waits.

        Raises:
            trio.ClosedResourceError: the mailbox is closed.
        """
        self._check_open()
        self._control.append(item)
        self._parked.unpark()

    def receive_nowait(self) -> Any:
        """Take the oldest control item, else the oldest ordinary one. Never waits.

        Raises:
            trio.WouldBlock: there is none.
            trio.ClosedResourceError: the mailbox is closed.
        """
        self._check_open()
        lane = self._control or self._mail
        if not lane:
            raise trio.WouldBlock
        self._taken += 1
        return lane.popleft()

    async def receive(self) -> Any:
        """Wait for an item and take it, in the order of `receive_nowait`.

        Raises:
            trio.ClosedResourceError: the mailbox is closed.
        """
        await trio.lowlevel.checkpoint()
        while True:
            try:
                return self.receive_nowait()
            except trio.WouldBlock:
                await self.wait()

    async def receive_batch(self) -> list[Any]:
        """Wait for at least one item, then take all there are: control items first, each lane oldest first.

        Raises:
            trio.ClosedResourceError: the mailbox is closed.
        """
        batch = [await self.receive()]
        while True:
            try:
                batch.append(self.receive_nowait())
            except trio.WouldBlock:
                return batch

    async def wait(self) -> None:
        """Wait until the next item is put in, or `wake`, or `close`; look with `receive_nowait` before, and again after."""
        await self._parked.park()

    def wake(self) -> None:
        """Wake all who wait, to look again. Never waits."""
        self._parked.unpark_all()

    def statistics(self) -> MailboxStatistics:
        """What is in it now. Never waits, also when closed."""
        return MailboxStatistics(self.capacity, len(self._mail), len(self._control), self._taken, self._refused)

    def close(self) -> None:
        """Throw away what is in it and refuse what comes; wakes who waits. Again: nothing happens."""
        self._closed = True
        self._mail.clear()
        self._control.clear()
        self.wake()

    def _check_open(self) -> None:
        if self._closed:
            raise trio.ClosedResourceError
