"""The deadline of one call: an idle limit that signs of life extend, within a total that nothing does.

Theory of operation. A call may run by a cancel scope, which ends it wherever it waits. Entering and leaving one costs as much
as all the rest of an ordinary call does in the host, so an ordinary call goes without: it waits in one place only, for its
answer, and the host's one `Timer` ends it there. As soon as it has to wait anywhere else it goes on `within` a scope.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Any

import trio

from .model.errors import CallTimeout
from .ports import Expired, Progress

__all__ = ["IDLE", "PATIENCE", "Deadline", "Timer", "by_deadline"]

IDLE = 60.0
"""Seconds a call may stay without an answer or progress, unless the argument or the entry says otherwise."""

PATIENCE = 10
"""A call without an argument of its own may take this many times its idle limit, however much progress it reports."""


class Timer:
    """One sleep for all calls that wait without a scope of their own.

    Theory of operation. It sleeps until the earliest of the times that it knew when it fell asleep. A call that is over does
    not wake it, nor does one that is due later; so an ordinary call costs it nothing, and the last of many calls one waking,
    much later.
    """

    def __init__(self) -> None:
        self.waiting: set[Deadline] = set()
        self._wakes = math.inf
        self._nap = trio.CancelScope()
        self._ended = False

    async def run(self) -> None:
        """End what is due, until `end`. Shielded: a cancelled program still closes in order, and so do its calls."""
        with trio.CancelScope(shield=True):
            while not self._ended:
                self._wakes = min((each.until for each in self.waiting), default=math.inf)
                with trio.CancelScope(deadline=self._wakes) as self._nap:
                    await trio.sleep_forever()
                now = trio.current_time()
                for deadline in [each for each in self.waiting if each.until <= now]:
                    # Once: one that is late may take its time to unwind, and is in a scope by then or settled now.
                    self.waiting.discard(deadline)
                    deadline.expire()

    def add(self, deadline: Deadline) -> None:
        """End it when it is due, for as long as it is in `waiting`. Never waits."""
        self.waiting.add(deadline)
        self.not_later(deadline.until)

    def not_later(self, until: float) -> None:
        """Wake at that trio clock time, or before. Never waits."""
        if until < self._wakes:
            self._wakes = self._nap.deadline = until

    def end(self) -> None:
        """Let `run` return: nothing is timed any more."""
        self._ended = True
        self._nap.cancel()


class Deadline:
    """The times of one call; fulfils `ports.Patience` and `ports.Expiry`.

    Args:
        timeout: seconds in all, or None.
        idle: seconds it may be idle, when there is no ``timeout``.
        start: trio clock time from which it counts.
        timer: ends it while it is in no scope; None: it always is.

    Attributes:
        until: trio clock time at which it ends, unless there is a sign of life.
        listens: whether progress is a sign of life: only the idle limit is extended by it.
        settle: gives the call that waits for its answer that there is none.
    """

    __slots__ = ("_held", "_quiet", "_scope", "_start", "_timer", "_total", "listens", "settle", "until")

    def __init__(self, timeout: float | None, idle: float, start: float, timer: Timer | None = None) -> None:
        self._start = start
        self._total = start + (timeout if timeout is not None else PATIENCE * idle)
        self._quiet = math.inf if timeout is not None else idle
        self._held = False
        self._scope: trio.CancelScope | None = None
        self._timer = timer
        self.listens = timeout is None
        self.settle: Callable[[], None] | None = None
        self.until = min(self._total, start + self._quiet)

    @property
    def seconds(self) -> float:
        """How long it is, from where it counts."""
        return self.until - self._start

    def heard(self) -> None:
        """There was a sign of life: the idle limit counts from now, and no longer stands still."""
        self._held = False
        self.progressed()

    def progressed(self) -> None:
        """There was a sign of life; an idle limit that stands still goes on doing so."""
        if not self._held:
            self._move(min(self._total, trio.current_time() + self._quiet))

    def pauses(self, seconds: float) -> bool:
        """So long nothing can be heard, as is known before; says whether the total has time for it."""
        self._held = False
        until = trio.current_time() + seconds
        self._move(min(self._total, until + self._quiet))
        return until < self._total

    def hold(self) -> None:
        """The idle limit stands still until something is `heard`."""
        self._held = True
        self._move(self._total)

    def _move(self, until: float) -> None:
        self.until = until
        if self._scope is not None:
            self._scope.deadline = until
        elif self._timer is not None:
            self._timer.not_later(until)

    async def within(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """Go on with the call in a scope, which ends it from now on; one after the other, never one within another.

        Raises:
            Expired: it did not end in time.
        """
        with trio.CancelScope(deadline=self.until) as self._scope:
            return await work()
        raise Expired

    def expire(self) -> None:
        """It is past (the timer)."""
        if self.settle is not None:
            self.settle()

    def told(self, progress: Progress | None) -> Progress | None:
        """What a call in a scope is to be told of progress with; None where nobody need be told of it."""
        return self.note(progress) if progress is not None or self.listens else None

    def note(self, progress: Progress | None) -> Progress:
        """Told of progress, it extends this, and tells the caller's own."""

        async def note(done: float, total: float | None, message: str | None) -> None:
            self.progressed()
            if progress is None:
                await trio.lowlevel.checkpoint()
            else:
                await progress(done, total, message)

        return note


async def by_deadline(
    name: str,
    timeout: float | None,
    idle: float,
    work: Callable[[Deadline], Awaitable[Any]],
    began: float | None = None,
    *,
    what: str = "tool",
) -> Any:
    """Run one call by its deadline. An argument is the total; without one the idle limit counts.

    Args:
        name: of what is called, for the error.
        timeout: seconds in all, or None.
        idle: seconds it may be idle, when there is no ``timeout``.
        work: the call.
        began: trio clock time from which it counts; None for now.
        what: of what kind it is, for the error.

    Raises:
        CallTimeout: it did not end in time.
    """
    deadline = Deadline(timeout, idle, trio.current_time() if began is None else began)
    try:
        return await deadline.within(lambda: work(deadline))
    except Expired:
        raise CallTimeout(name, deadline.seconds, what) from None
