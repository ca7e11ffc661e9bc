"""What is said beside the answer: on stderr, a line each, as loud as was asked for; and the one line that shows progress.

The answer itself goes to stdout and is not looked at here. One `Voice` belongs to one command line; the verbs find it by
`voice`, so that none has to hand it on.

The progress line is there on a terminal only. It is drawn over itself, and wiped before anything else is said, so that no two
things share a line. While a screen of its own covers the terminal nothing is said there; it is said afterwards.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextvars import ContextVar
from typing import TextIO

from attrs import define, field

from ..model.cells import columns, steady

__all__ = ["Voice", "cells", "cut", "detail", "diagnose", "one_line", "speak", "voice"]

_PATIENCE = 2.0
"""Seconds that a terminal which takes nothing is waited for."""

_PAUSE = 0.02
"""Seconds until it is asked again."""

_HELD = 10_000
"""Lines that are kept while a screen covers the terminal; of more, the last."""


@define
class Voice:
    """How loud a command line is, and what it has shown.

    Args:
        json: what is asked for is printed as JSON.
        quiet: nothing is said but what is wrong; no progress either.
        verbose: what happens is told as it happens.
        lines: where JSON goes line by line, for the verb that does so.
        answered: what was asked for is printed, as far as there is any.
    """

    json: bool = False
    quiet: bool = False
    verbose: bool = False
    lines: TextIO | None = None
    answered: bool = False
    _started: float = field(factory=time.monotonic, init=False)
    _drawn: str = field(default="", init=False)
    _held: deque[str] | None = field(default=None, init=False)
    _missed: int = field(default=0, init=False)
    _stuck: bool = field(default=False, init=False)

    @property
    def elapsed(self) -> float:
        """Seconds since the command line began."""
        return time.monotonic() - self._started

    @property
    def shows_progress(self) -> bool:
        """Whether there is a terminal that can wipe a line, and a person who wants to see it."""
        return not self.quiet and _on_terminal() and os.environ.get("TERM") != "dumb"

    def draw(self, text: str) -> None:
        """Show progress on one line, over the one before; an empty text only wipes that."""
        if text == self._drawn or self._held is not None:
            return
        width = _width()
        self._write(f"\r{cut(one_line(text), width - 1)}\x1b[K" if text else "\r\x1b[K")
        self._drawn = text

    def say(self, text: str) -> None:
        """Say a line on stderr; a stderr that is gone is no reason to fail."""
        if self._held is not None:
            self._missed += len(self._held) == _HELD
            self._held.append(text)
            return
        self.draw("")
        self._write(f"{text}\n")

    @contextlib.contextmanager
    def held(self) -> Iterator[None]:
        """Keep what is said while the block runs, and say it afterwards: a screen covers the terminal meanwhile.

        A stderr that is no terminal is covered by nothing: there it is said at once.
        """
        if not _on_terminal():
            yield
            return
        self.draw("")
        self._held, self._missed = deque(maxlen=_HELD), 0
        try:
            yield
        finally:
            kept, self._held = self._held, None
            if self._missed:
                self.say(f"playbill: {self._missed} lines before these are not kept")
            for line in kept:
                self.say(line)

    def _write(self, text: str) -> None:
        with contextlib.suppress(AttributeError, OSError, ValueError):
            fd = _own_terminal()
            if fd is None:
                sys.stderr.write(text)
                sys.stderr.flush()
            else:
                self._hand_over(fd, text.encode(sys.stderr.encoding or "utf-8", "backslashreplace"))

    def _hand_over(self, fd: int, data: bytes) -> None:
        """Write to a terminal that may be read by nobody: what it does not take in `_PATIENCE` seconds is dropped.

        After that it is waited for no more, until it takes something: or whoever ends us would wait with each line.
        """
        deadline = time.monotonic() + (0.0 if self._stuck else _PATIENCE)
        while data:
            try:
                data = data[os.write(fd, data) :]
                self._stuck = False
            except BlockingIOError:
                if time.monotonic() >= deadline:
                    self._stuck = True
                    return
                time.sleep(_PAUSE)


_TERMINALS: dict[str, int] = {}
"""The terminals that were opened for writing without waiting, by name."""


def _own_terminal() -> int | None:
    """The terminal that stderr is, as a description of our own that never waits; None where it is none, or cannot be had."""
    if os.name != "posix" or not _on_terminal():
        return None
    try:
        name = os.ttyname(sys.stderr.fileno())
        if name not in _TERMINALS:
            _TERMINALS[name] = os.open(name, os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
    except (OSError, ValueError):
        return None
    return _TERMINALS[name]


def _width() -> int:
    """The columns of the terminal that stderr is; stdout may be another, or none."""
    if not os.environ.get("COLUMNS"):
        with contextlib.suppress(AttributeError, OSError, ValueError):
            return os.get_terminal_size(sys.stderr.fileno()).columns or shutil.get_terminal_size().columns
    return shutil.get_terminal_size().columns


def _on_terminal() -> bool:
    try:
        return sys.stderr.isatty()
    except (AttributeError, ValueError):  # there is none, or it is closed
        return False


_VOICE: ContextVar[Voice | None] = ContextVar("voice", default=None)


def voice() -> Voice:
    """The voice of this command line; outside of one, a new one with the defaults."""
    return _VOICE.get() or Voice()


def speak(new: Voice) -> None:
    """Make this the voice of what runs from here on."""
    _VOICE.set(new)


def diagnose(message: str) -> None:
    """Tell a person on stderr, in one line."""
    voice().say(f"playbill: {one_line(message)}")


def detail(message: str) -> None:
    """Tell what happens, with the seconds since the start, to a person who wants to know all (``--verbose``)."""
    now = voice()
    if now.verbose:
        now.say(f"playbill: {now.elapsed:7.3f} s  {one_line(message)}")


def one_line(text: str) -> str:
    """A text on one line, without control characters (no server's words can drive the terminal), as wide on each terminal."""
    return steady("".join(char if char.isprintable() else " " for char in " ".join(text.split())))


def cells(text: str) -> int:
    """How many columns of a terminal a text takes: wide characters two, those that join the one before none."""
    return columns(text)


def cut(text: str, width: int) -> str:
    """A text of at most so many columns; three dots stand for what is left out."""
    if cells(text) <= width:
        return text
    room, kept = max(width - 3, 0), []
    for char in text:
        room -= columns(char)
        if room < 0:
            break
        kept.append(char)
    return "".join(kept) + "..."[: max(width, 0)]
