"""A plan: what a child is to run next, and who waits for its start."""

from __future__ import annotations

import trio
from attrs import frozen

from .ref import Ref
from .spec import ChildSpec

__all__ = ["Plan", "Ticket"]


class Ticket:
    """The wait of one `Supervisor.start` for its child's first acknowledgement; settled once."""

    def __init__(self) -> None:
        self.ref: Ref | None = None
        self.failure: str | None = None
        self._settled = trio.Event()

    @property
    def open(self) -> bool:
        """Not settled yet."""
        return not self._settled.is_set()

    def settle(self, ref: Ref | None, failure: str | None) -> None:
        """It started (``ref``) or not (``failure``, one line); the first word counts."""
        if self.open:
            self.ref, self.failure = ref, failure
            self._settled.set()

    async def wait(self) -> None:
        """Wait until it is settled."""
        await self._settled.wait()


@frozen
class Plan:
    """What to run next, and who waits for its start."""

    spec: ChildSpec
    ticket: Ticket | None = None

    def drop(self, why: str) -> None:
        """It will not be run."""
        if self.ticket is not None:
            self.ticket.settle(None, why)
