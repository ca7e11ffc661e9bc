"""The host's end of the socket between it and the reaper of one server (see `watcher`)."""

from __future__ import annotations

import socket
from contextlib import suppress

import trio

__all__ = ["Control"]


class Control:
    """The host's end of a control socket.

    Args:
        end: a connected stream socket, owned from now on.
    """

    def __init__(self, end: socket.socket) -> None:
        end.setblocking(False)
        self._end = end
        self._buffer = b""

    async def send(self, data: bytes) -> None:
        """Send all of it, or as much as is wanted: who has ended may have said why."""
        while data := self.push(data):
            await trio.lowlevel.wait_writable(self._end)
        await trio.lowlevel.checkpoint()

    def push(self, data: bytes) -> bytes:
        """Send what can be sent at once; returns the rest, if it is wanted."""
        while data:
            try:
                data = data[self._end.send(data) :]
            except BlockingIOError:
                break
            except OSError:
                return b""
        return data

    async def line(self) -> str:
        """The next line, without its end; empty at the end of the socket, which is closed then."""
        await trio.lowlevel.checkpoint_if_cancelled()
        while b"\n" not in self._buffer:
            try:
                more = self._end.recv(4096)
            except BlockingIOError:
                await trio.lowlevel.wait_readable(self._end)
                continue
            except OSError:
                more = b""
            if not more:
                self.close()
                return ""
            self._buffer += more
        line, _, self._buffer = self._buffer.partition(b"\n")
        return line.decode()

    def say(self, word: bytes) -> None:
        """Send a few bytes, if somebody is there."""
        with suppress(OSError):
            self._end.send(word)

    def end(self) -> None:
        """Say no more, which is the order to kill."""
        with suppress(OSError):
            self._end.shutdown(socket.SHUT_WR)

    def close(self) -> None:
        """Close it, which is the order to kill as well; harmless when it is closed."""
        self.end()  # closing is not enough: a fork of this program may have it open too
        self._end.close()
