"""What a server writes on stderr: always drained, so that it never blocks the server, and kept only as a bounded tail.

The tail is where the reason of a death is. It is bytes until somebody asks: decoding per read would cost a flooding server's
neighbours time.
"""

from __future__ import annotations

from collections.abc import Callable

import trio

from ...model.telling import telling_line

__all__ = ["TAIL_BYTES", "StderrTail"]

TAIL_BYTES = 64 * 1024
"""How much of stderr is kept, in bytes."""

_CHUNK = 64 * 1024


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

    async def drain(self) -> None:
        """Read until the end of the stream; never raises but `trio.Cancelled`."""
        try:
            while data := await self._pipe.receive_some(_CHUNK):
                self._keep(data)
        except (OSError, trio.ClosedResourceError, trio.BrokenResourceError):
            pass  # the pipe is gone, as at its end
        finally:
            self.ended.set()

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
        self._tail += data
        if len(self._tail) > 2 * self._limit:  # cut seldom, so that keeping is linear
            del self._tail[: -self._limit]
            self._cut = True
