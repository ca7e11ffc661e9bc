"""What is said beside the answer: on stderr, a line each, as loud as was asked for; and the one line that shows progress.

The answer itself goes to stdout and is not looked at here. One `Voice` belongs to one command line; the verbs find it by
`voice`, so that none has to hand it on.

The progress line is there on a terminal only. It is drawn over itself, and wiped before anything else is said, so that no two
things share a line.
"""

from __future__ import annotations

import contextlib
import os
import shutil
import sys
import time
import unicodedata
from contextvars import ContextVar
from typing import TextIO

from attrs import define, field

__all__ = ["Voice", "cells", "cut", "detail", "diagnose", "one_line", "speak", "voice"]


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

    @property
    def elapsed(self) -> float:
        """Seconds since the command line began."""
        return time.monotonic() - self._started

    @property
    def shows_progress(self) -> bool:
        """Whether there is a terminal that can wipe a line, and a person who wants to see it."""
        return not self.quiet and sys.stderr.isatty() and os.environ.get("TERM") != "dumb"

    def draw(self, text: str) -> None:
        """Show progress on one line, over the one before; an empty text only wipes that."""
        if text == self._drawn:
            return
        width = shutil.get_terminal_size().columns
        self._write(f"\r{cut(one_line(text), width - 1)}\x1b[K" if text else "\r\x1b[K")
        self._drawn = text

    def say(self, text: str) -> None:
        """Say a line on stderr; a stderr that is gone is no reason to fail."""
        self.draw("")
        self._write(f"{text}\n")

    def _write(self, text: str) -> None:
        with contextlib.suppress(OSError, ValueError):
            sys.stderr.write(text)
            sys.stderr.flush()


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
    """A text on one line and without control characters, so that no server's words can drive the terminal."""
    return "".join(char if char.isprintable() else " " for char in " ".join(text.split()))


def cells(text: str) -> int:
    """How many columns of a terminal a text takes: wide characters two, those that join the one before none."""
    if text.isascii():
        return len(text)
    return sum(_cells(char) for char in text)


def _cells(char: str) -> int:
    if unicodedata.combining(char) or unicodedata.category(char) in ("Mn", "Me", "Cf"):
        return 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1


def cut(text: str, width: int) -> str:
    """A text of at most so many columns; three dots stand for what is left out."""
    if cells(text) <= width:
        return text
    room, kept = max(width - 3, 0), []
    for char in text:
        room -= _cells(char)
        if room < 0:
            break
        kept.append(char)
    return "".join(kept) + "..."[: max(width, 0)]
