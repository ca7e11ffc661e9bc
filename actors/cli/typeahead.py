"""Keys that are typed while a program is still loading: not echoed, and kept for it.

A shell hands over a terminal that echoes keys, and gives them to a program line by line. So what a person types before a screen
is there would be seen twice, or be lost. Until the screen is there the terminal neither echoes nor waits for the end of a line;
what was typed meanwhile, and what was typed before, is then handed to the screen.
"""

from __future__ import annotations

import os
import select
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress

__all__ = ["unechoed"]


@contextmanager
def unechoed() -> Iterator[Callable[[], bytes]]:
    """No echo on the terminal that stdin is, until the block ends or what it yields is called. Elsewhere it does nothing.

    Yields:
        puts the terminal back as it was, and returns what was typed until then; nothing the second time.
    """
    if sys.platform == "win32":
        yield _nothing
        return
    import termios

    try:
        fd = sys.stdin.fileno()
        before = termios.tcgetattr(fd)
        quiet = termios.tcgetattr(fd)
        quiet[3] &= ~(termios.ECHO | termios.ICANON)
        termios.tcsetattr(fd, termios.TCSANOW, quiet)
    except (OSError, ValueError, AttributeError, termios.error):  # there is no terminal there
        yield _nothing
        return
    back = False

    def put_back() -> bytes:
        nonlocal back
        typed = b""
        if not back:
            back = True
            with suppress(OSError, termios.error):  # it may be gone
                while select.select([fd], [], [], 0)[0] and (piece := os.read(fd, 4096)):
                    typed += piece
            with suppress(termios.error):
                termios.tcsetattr(fd, termios.TCSANOW, before)
        return typed

    try:
        yield put_back
    finally:
        put_back()


def _nothing() -> bytes:
    return b""
