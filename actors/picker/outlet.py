"""What is written to a terminal, without ever waiting for it.

Theory of operation
    A terminal that nobody reads (a stopped multiplexer, a connection that hangs) takes some thousand characters and then no
    more. Who waits for it then stands still, and with it the loop that its signals are heeded in. So what does not fit stays
    here, and goes when there is room: `Outlet.drain` sees to that. To write without waiting is a property of an open file
    description, and the one we are given is shared with the shell: we open one of our own.
"""

from __future__ import annotations

import os
import sys
import time
from contextlib import suppress
from typing import NoReturn, TextIO

import trio
from urwid.display.common import InputClosedError

__all__ = ["Outlet"]

_PIECE = 16_384
_PAUSE = 0.02
"""Seconds until a terminal that says that it has room, and takes nothing, is asked again."""


class Outlet:
    """A terminal as something to write to; what it does not take yet is kept.

    Where no description of our own can be had (it is not our controlling terminal, and may not be opened), it is waited for.

    Args:
        file: the terminal, open. What its encoding lacks becomes a question mark.
    """

    def __init__(self, file: TextIO) -> None:
        self.quiet = False
        self._file = file
        self._encoding = getattr(file, "encoding", None) or "utf-8"
        self._own = _reopened(file.fileno())
        self._fd = file.fileno() if self._own is None else self._own
        self._pending = bytearray()
        self._more = trio.Event()

    @property
    def pending(self) -> bool:
        """Whether there is something that the terminal has not taken."""
        return bool(self._pending)

    def write(self, text: str) -> None:
        """Keep a text for the next `push`."""
        self._pending += text.encode(self._encoding, "replace")

    def push(self) -> None:
        """Hand over what the terminal takes now.

        Raises:
            InputClosedError: it is gone; not while ``quiet``.
        """
        try:
            while self._pending and (taken := os.write(self._fd, self._pending[:_PIECE])):
                del self._pending[:taken]
        except BlockingIOError:
            pass
        except OSError as error:
            self._pending.clear()
            if not self.quiet:
                raise InputClosedError("the terminal is gone") from error
        if self._pending:
            self._more.set()

    async def drain(self) -> NoReturn:
        """Hand over what was left, whenever there is room. A checkpoint.

        Raises:
            InputClosedError: the terminal is gone.
        """
        while True:
            left = len(self._pending)
            if not left:
                self._more = trio.Event()
                await self._more.wait()
                continue
            with suppress(OSError):  # not every system can wait for every terminal
                await trio.lowlevel.wait_writable(self._fd)
            self.push()
            if len(self._pending) == left:
                await trio.sleep(_PAUSE)

    def settle(self, seconds: float) -> bool:
        """Wait for the terminal to take all, so many seconds at most; whether it did. Not async."""
        deadline = time.monotonic() + seconds
        self.push()
        while self._pending and time.monotonic() < deadline:
            time.sleep(_PAUSE)
            self.push()
        return not self._pending

    def forget(self) -> None:
        """Drop what the terminal has not taken, and what it took and nobody read: there is room again."""
        self._pending.clear()
        if sys.platform != "win32":
            import termios

            with suppress(termios.error):
                termios.tcflush(self._fd, termios.TCOFLUSH)

    def close(self) -> None:
        """Close what was opened."""
        if self._own is not None:
            os.close(self._own)
            self._own = None


def _reopened(fd: int) -> int | None:
    """The terminal of a descriptor, opened anew so that writing never waits; None where that cannot be."""
    if sys.platform == "win32":
        return None
    flags = os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK
    with suppress(OSError):
        return os.open(os.ttyname(fd), flags)
    with suppress(OSError):  # another user's, as after `su`: only by the name that every process has for its own
        os.tcgetpgrp(fd)
        return os.open("/dev/tty", flags)
    return None
