"""References: how the rest of the program speaks to one incarnation, and learns of its death."""

from __future__ import annotations

import math
from typing import Any

import trio

from .errors import ActorDown
from .mailbox import Mailbox
from .reply import Ask, Pending

__all__ = ["Latch", "Ref"]


class Latch:
    """A one-way switch with a reason: the death of an incarnation, for any number of watchers."""

    __slots__ = ("_event", "reason")

    def __init__(self) -> None:
        self._event = trio.Event()
        self.reason: str | None = None
        """Why, in one line; None while it is not set."""

    def is_set(self) -> bool:
        """Whether it happened. Never waits."""
        return self._event.is_set()

    def set(self, reason: str) -> None:
        """It happened; the first reason stays."""
        if not self._event.is_set():
            self.reason = reason
            self._event.set()

    async def wait(self) -> str:
        """Wait until it happened; returns the reason."""
        await self._event.wait()
        return self.reason or ""


class Ref:
    """A stable name and one incarnation: what is said to it never reaches a successor.

    Made by the supervisor. ``name`` and ``generation`` say who it is, ``down`` is its death.
    """

    __slots__ = ("_mailbox", "_pending", "down", "generation", "name")

    def __init__(self, name: str, generation: int, mailbox: Mailbox, pending: Pending) -> None:
        self.name = name
        self.generation = generation
        self.down = Latch()
        self._mailbox = mailbox
        self._pending = pending

    def tell(self, message: object) -> None:
        """Put a message in its mailbox. Never waits.

        Raises:
            ActorDown: the incarnation is dead.
            MailboxFull: there is no room.
        """
        self._alive()
        self._mailbox.put_nowait(message)

    def control(self, message: object) -> None:
        """Put a message in its control lane, which is never full and delivered first. Never waits.

        Raises:
            ActorDown: the incarnation is dead.
        """
        self._alive()
        self._mailbox.control_nowait(message)

    async def ask(self, message: object, *, timeout: float, control: bool = False) -> Any:
        """Put an `Ask` in its mailbox and wait for the answer. Cancelled: the ask is abandoned.

        Args:
            message: becomes ``ask.message``.
            timeout: seconds, finite: covers the wait in the mailbox and the answer.
            control: use the control lane.

        Returns:
            What the actor replied.

        Raises:
            ActorDown: the incarnation is dead, or died before it answered.
            MailboxFull: there is no room.
            trio.TooSlowError: no answer by the deadline; the ask is abandoned.
            ValueError: ``timeout`` is negative or not finite.
            Exception: whatever the actor failed the ask with.
        """
        if not 0 <= timeout < math.inf:
            raise ValueError(f"timeout must be a finite number of seconds, 0 or more, not {timeout!r}")
        await trio.lowlevel.checkpoint_if_cancelled()
        ask = Ask(message)
        if control:
            self.control(ask)
        else:
            self.tell(ask)
        self._pending.add(ask)
        try:
            with trio.move_on_after(timeout):
                await ask.wait()
        finally:
            self._pending.discard(ask)
            ask.abandon()
        # Looked at after the scope: an answer that came at the very deadline was promised to the actor as delivered.
        if ask.result is None:
            raise trio.TooSlowError(f"actor {self.name!r} did not answer within {timeout:g} s")
        return ask.result.unwrap()

    def _alive(self) -> None:
        if self.down.is_set():
            raise ActorDown(self.name, self.generation, self.down.reason or "")

    def __repr__(self) -> str:
        state = f"down: {self.down.reason}" if self.down.is_set() else "live"
        return f"<Ref {self.name!r} generation {self.generation}, {state}>"
