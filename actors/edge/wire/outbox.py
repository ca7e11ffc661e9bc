"""What waits to be written to a server: bounded, joined, and taken back as long as it was not begun.

    a line is    queued      `take_back` removes it; the server never hears of it
                 begun       it is written to its end, whatever happens: half a message would spoil the next
                 written     –

The writer joins all that was queued since it last ran into one write. A line that is alone (nothing else in flight) is written
by the task that posts it, without the writer; so are several once they are enough to be worth it.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import trio

__all__ = ["MAX_OUTBOX", "Outbox"]

_ENOUGH = 16
"""Lines queued that are written by whoever queues the last of them, so that the server works while we still make more."""

MAX_OUTBOX = 1024 * 1024
"""Bytes queued for a server before callers wait; one message may be larger."""


class Outbox:
    """The queue before one pipe.

    Args:
        pipe: the server's stdin.
        limit: bytes queued before `have_room` waits.
        on_broken: called, once, when the server reads its stdin no more.

    Attributes:
        size: bytes queued and not begun.
        written: bytes that the pipe took.
        broken: nothing more will be written; posting is in vain, and `have_room` does not wait.
    """

    def __init__(self, pipe: trio.lowlevel.FdStream, limit: int, on_broken: Callable[[], None]) -> None:
        self.size = 0
        self.written = 0
        self.broken = False
        self._pipe = pipe
        self._limit = limit
        self._on_broken = on_broken
        self._next_ticket = 0
        self._lines: dict[int, bytes] = {}  # by ticket, in order
        self._writing = False
        self._unwritten = memoryview(b"")  # of what is begun
        self._writer: trio.lowlevel.Task | None = None
        self._start: Callable[[], object] | None = None
        self._room = trio.lowlevel.ParkingLot()

    async def have_room(self) -> None:
        """Wait until the queue is below its limit; no checkpoint when it is."""
        while self.size >= self._limit and not self.broken:
            await self._room.park()

    def post(self, line: bytes, *, alone: bool = False) -> int:
        """Queue a line and return its ticket; when nothing else is in flight, write it in this step instead."""
        self._next_ticket += 1
        if self.broken:
            return self._next_ticket
        if alone and not self._writing and not self._lines:
            sent = self._write(line)
            if sent == len(line) or self.broken:
                return self._next_ticket
            self._unwritten = memoryview(line)[sent:]
            self._writing = True
        else:
            self._lines[self._next_ticket] = line
            self.size += len(line)
            if len(self._lines) >= _ENOUGH and not self._writing:
                self._begin()
                self._push()
                if not self._writing or self.broken:
                    return self._next_ticket
        self._wake()
        return self._next_ticket

    def ready(self, start: Callable[[], object]) -> None:
        """From here on there may be a writer.

        Args:
            start: has `write` run; called once, when there is something for it to do.
        """
        self._start = start
        if self._lines or self._writing:
            self._wake()

    def _wake(self) -> None:
        writer, self._writer = self._writer, None
        start, self._start = self._start, None
        if writer is not None:
            trio.lowlevel.reschedule(writer)
        elif start is not None:
            start()

    def take_back(self, ticket: int) -> bool:
        """Remove a line that was not begun; returns whether it could be."""
        line = self._lines.pop(ticket, None)
        if line is None:
            return False
        self.size -= len(line)
        self._room.unpark_all()
        return True

    def _begin(self) -> None:
        """Take all that is queued to be written."""
        joined = b"".join(self._lines.values())
        self._lines.clear()
        self.size = 0
        self._room.unpark_all()
        self._unwritten = memoryview(joined)
        self._writing = True

    def _push(self) -> None:
        """Write as much of what is begun as the pipe takes now."""
        self._unwritten = self._unwritten[self._write(self._unwritten) :]
        self._writing = len(self._unwritten) > 0

    def _write(self, data: bytes | memoryview) -> int:
        try:
            sent = os.write(self._pipe.fileno(), data)
        except BlockingIOError:
            return 0
        except OSError:
            self._break()
            return 0
        self.written += sent
        return sent

    async def write(self) -> None:
        """The writer: runs until the pipe is broken, or it is cancelled."""
        while not self.broken:
            if not self._writing:
                if not self._lines:
                    self._writer = trio.lowlevel.current_task()
                    await trio.lowlevel.wait_task_rescheduled(self._abort)
                    continue
                self._begin()
            self._push()
            if self._writing and not self.broken:
                try:
                    await trio.lowlevel.wait_writable(self._pipe.fileno())
                except (OSError, trio.ClosedResourceError):
                    self._break()

    def _abort(self, _: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
        self._writer = None
        return trio.lowlevel.Abort.SUCCEEDED

    def end(self) -> None:
        """Give up: nothing more is written, and nobody waits for room."""
        self.broken = True
        self._room.unpark_all()

    def _break(self) -> None:
        if not self.broken:
            self.end()
            self._on_broken()
