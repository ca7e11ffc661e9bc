"""Asks: a message with a caller who waits for the answer. Every ask ends exactly once, by its deadline.

Theory of operation. An ask is settled by the first of: the actor's reply or failure, the death of its incarnation, or the
caller's going away (deadline, cancellation). The incarnation keeps all its unsettled asks in a pending table, wherever they
are (in flight, in either lane of the mailbox, in the hands of a busy body); the table is settled in the ``finally`` around
the body, so that a caller learns of the death at its instant, and not from a deadline.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import outcome
import trio

__all__ = ["Ask", "Pending", "Result"]

Result = outcome.Value[Any] | outcome.Error
"""What an ask ended with."""


class Ask:
    """One question in an actor's mailbox; made by `Ref.ask`.

    Args:
        message: what is asked.
    """

    __slots__ = ("_abandoned", "_settled", "message", "result")

    def __init__(self, message: Any) -> None:
        self.message = message
        self.result: Result | None = None
        self._abandoned = False
        self._settled = trio.Event()

    @property
    def abandoned(self) -> bool:
        """The caller is gone without an answer: nobody will read one."""
        return self._abandoned

    @property
    def settled(self) -> bool:
        """It was answered, failed or abandoned."""
        return self._abandoned or self.result is not None

    def reply(self, value: Any) -> bool:
        """Answer. Never waits; returns whether the caller gets it (False: settled before)."""
        return self._settle(outcome.Value(value))

    def fail(self, error: BaseException) -> bool:
        """Make the caller's ask raise ``error`` (an object for this ask alone). Never waits; returns as `reply` does."""
        return self._settle(outcome.Error(error))

    def abandon(self) -> None:
        """The caller goes away; nothing happens when it was answered."""
        self._abandoned = self.result is None

    def _settle(self, result: Result) -> bool:
        if self.settled:
            return False
        self.result = result
        self._settled.set()
        return True

    async def wait(self) -> None:
        """Wait until it is answered or failed."""
        await self._settled.wait()

    def __repr__(self) -> str:
        return f"Ask({self.message!r})"


class Pending:
    """The unsettled asks of one incarnation."""

    __slots__ = ("_asks",)

    def __init__(self) -> None:
        self._asks: dict[Ask, None] = {}

    def __len__(self) -> int:
        return len(self._asks)

    def add(self, ask: Ask) -> None:
        """Take care of it until `discard`."""
        self._asks[ask] = None

    def discard(self, ask: Ask) -> None:
        """Its caller has what it waited for, or is gone."""
        self._asks.pop(ask, None)

    def settle(self, error: Callable[[], Exception]) -> None:
        """Fail them all, each with an error of its own."""
        asks, self._asks = self._asks, {}
        for ask in asks:
            ask.fail(error())
