"""What a server writes on stderr: always drained, so that it never blocks the server, and kept only as a bounded tail.

The tail is where the reason of a death is. It is bytes until somebody asks: decoding per read would cost a flooding server's
neighbours time.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable

import trio

from ...model.telling import telling_line

__all__ = ["TAIL_BYTES", "StderrTail"]

TAIL_BYTES = 64 * 1024
"""How much of stderr is kept, in bytes."""

_CHUNK = 64 * 1024

_BURST = 256 * 1024
"""Bytes read at once."""

_PAUSE = 0.005
"""Seconds in which a flood of small pieces collects: each would be a step of its own, and a pipe holds more than that."""

_PIECES = 64
"""Small pieces taken one by one, beyond one each `_PAUSE`: more are a flood."""


class StderrTail:
    """Drains one stderr pipe and remembers its end.

    Args:
        pipe: the read end.
        scrub: takes a text and returns it without secrets.
        limit: bytes kept.
    """

    def __init__(
        self, pipe: trio.abc.ReceiveStream, scrub: Callable[[str], str] = str, limit: int = TAIL_BYTES
    ) -> None:
        self._pipe = pipe
        self._scrub = scrub
        self._limit = limit
        self._tail = bytearray()
        self._cut = False
        self.ended = trio.Event()
        """Set at the end of the stream."""
        self.on_ended: Callable[[], None] = lambda: None
        """Called then, never waiting."""

    async def drain(self) -> None:
        """Read until the end of the stream; never raises but `trio.Cancelled`."""
        try:
            if sys.platform != "win32" and isinstance(self._pipe, trio.lowlevel.FdStream):
                await self._drain(self._pipe)
            else:
                while data := await self._pipe.receive_some(_CHUNK):
                    self._keep(data)
        except (OSError, trio.ClosedResourceError, trio.BrokenResourceError):
            pass  # the pipe is gone, as at its end
        finally:
            self.ended.set()
            self.on_ended()

    async def _drain(self, pipe: trio.lowlevel.FdStream) -> None:
        """As `drain`, of a descriptor: all that is there, but not more than `_BURST` before others run."""
        burst, pieces, then = 0, 0.0, trio.current_time()
        while True:
            try:
                data = os.read(pipe.fileno(), _CHUNK)
            except BlockingIOError:
                now = trio.current_time()
                pieces, then = max(0.0, pieces - (now - then) / _PAUSE), now
                small, burst = 0 < burst < _CHUNK, 0
                pieces += small
                if small and pieces > _PIECES:
                    await trio.sleep(_PAUSE)
                else:
                    await trio.lowlevel.wait_readable(pipe.fileno())
                continue
            if not data:
                return
            self._keep(data)
            burst += len(data)
            if burst >= _BURST:
                burst = 0
                await trio.lowlevel.checkpoint()

    def text(self) -> str:
        """The tail: UTF-8 with replacement, scrubbed, beginning at a line's start; empty when nothing was written."""
        tail = bytes(self._tail[-self._limit :])
        if self._cut or len(self._tail) > self._limit:
            # A first line that lost its beginning could show the end of a secret that scrubbing no longer recognises.
            tail = tail.partition(b"\n")[2] or tail[-self._limit // 2 :]
        return self._scrub(tail.decode("utf-8", "replace"))

    def telling_line(self) -> str:
        """The line that most probably says why it ended (`model.telling`), at most 300 characters of it, or empty."""
        line = telling_line(self.text())
        return line if len(line) <= 300 else line[:299] + "…"

    def _keep(self, data: bytes | bytearray) -> None:
        if len(data) >= self._limit:
            self._cut = self._cut or len(self._tail) > 0
            self._tail = bytearray(data)
            return
        self._tail += data
        if len(self._tail) > 2 * self._limit:  # cut seldom, so that keeping is linear
            del self._tail[: -self._limit]
            self._cut = True
