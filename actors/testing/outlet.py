"""The way from a scripted server to its session, byte by byte, and what goes wrong on it.

Theory of operation
    An `Outlet` stands between a server and the pipe that the session reads. Frames are queued, each with the fault that strikes
    it or none, and one task writes them in order: so what delays a frame delays those behind it, as on a real pipe. What is
    to wait for the heal waits for an event; what is paced is paced until the heal, and comes at once from then on.

    kind                                     what is written
    crash, clean_exit, flaky, reset          half of the frame, and then the end that the server makes of it
    slice                                    ``arg`` bytes a millisecond
    bandwidth                                ``arg`` bytes a second
    limit                                    ``arg`` bytes, of this frame and those after it; then the end of the stream
    half_frame                               half of it; the rest, and all else, after the heal
    duplicate_frame                          it, twice
    garbage_frame, long_frame                it, so that it cannot be read, or so that it is over the limit
    `faults.NOISE`                           garbage, and then it

    All writes of one run are at exact virtual times: a pipe that is ready is looked at before the clock moves.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable

import trio
from attrs import evolve, frozen

from .faults import NOISE, Fault
from .frames import garbled, half, noise, overlong
from .strikes import DEATHS

__all__ = ["PACE", "Outlet"]

PACE = 0.001
"""Seconds between two pieces of a frame that comes in pieces."""

BEAT = 0.05
"""Seconds between two pieces of a frame that comes at so many bytes a second."""


@frozen
class _Frame:
    data: bytes
    fault: Fault | None
    written: Callable[[], None] | None


class Outlet:
    """The queue before a server's stdout.

    Args:
        pipe: its write end.
        end: called, never waiting, when a fault ends more than a frame; it decides what that means for the server.
        max_line: the longest line that the session accepts, in bytes.
    """

    def __init__(self, pipe: trio.lowlevel.FdStream, end: Callable[[Fault], None], max_line: int) -> None:
        self._pipe = pipe
        self._end = end
        self._max_line = max_line
        self._frames: deque[_Frame] = deque()
        self._more = trio.lowlevel.ParkingLot()
        self._healed = trio.Event()
        self._limit: Fault | None = None
        self._left = 0

    def put(self, data: bytes, fault: Fault | None = None, written: Callable[[], None] | None = None) -> None:
        """Queue a frame. Never waits.

        Args:
            data: a line with its newline, or bytes that are none.
            fault: strikes it, or None.
            written: called when the pipe has taken all of it.
        """
        self._frames.append(_Frame(data, fault, written))
        self._more.unpark()

    def heal(self) -> None:
        """Whatever waits or is paced goes on at once, and neither a limit nor what was to strike holds. Never waits."""
        self._limit = None
        self._frames = deque(evolve(frame, fault=None) for frame in self._frames)
        self._healed.set()
        self._healed = trio.Event()

    async def run(self) -> None:
        """Write what is queued, until the pipe is closed or broken."""
        try:
            while True:
                while not self._frames:
                    await self._more.park()
                frame = self._frames.popleft()
                await self._write(frame.data, frame.fault)
                if frame.written is not None:
                    frame.written()
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass

    async def _write(self, data: bytes, fault: Fault | None) -> None:
        if fault is None:
            await self._send(data)
            return
        kind = fault.kind
        if kind in DEATHS:
            await self._send(half(data))
            self._end(fault)
        elif kind == "slice":
            await self._paced(data, int(fault.arg), PACE)
        elif kind == "bandwidth":
            size = max(1, int(fault.arg * BEAT))
            await self._paced(data, size, size / fault.arg)
        elif kind == "limit":
            self._limit, self._left = fault, int(fault.arg)
            await self._send(data)
        elif kind == "half_frame":
            await self._send(half(data))
            await self._healed.wait()
            await self._send(data[len(half(data)) :])
        elif kind == "duplicate_frame":
            await self._send(data + data)
        elif kind == "garbage_frame":
            await self._send(garbled(data))
        elif kind == "long_frame":
            await self._send(overlong(data, self._max_line))
        else:
            await self._send((noise(kind, self._max_line) if kind in NOISE else b"") + data)

    async def _paced(self, data: bytes, size: int, seconds: float) -> None:
        healed = self._healed
        for at in range(0, len(data), size):
            if healed.is_set():
                await self._send(data[at:])
                return
            await self._send(data[at : at + size])
            with trio.move_on_after(seconds):
                await healed.wait()

    async def _send(self, data: bytes) -> None:
        if self._limit is None:
            await self._pipe.send_all(data)
            return
        kept = data[: self._left]
        self._left -= len(kept)
        if kept:
            await self._pipe.send_all(kept)
        if not self._left and self._limit is not None:
            self._end(self._limit)
            await trio.lowlevel.checkpoint()
            raise trio.ClosedResourceError
