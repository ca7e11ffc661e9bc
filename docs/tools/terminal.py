"""A program in a terminal of fixed size.

Theory of operation. The program runs in a pseudo-terminal, in a session of its own; what it writes goes through a terminal
emulator, and nothing is waited for but text on the screen or the program's end.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable, Mapping, Sequence
from types import TracebackType

import pyte
from rich.style import Style
from rich.text import Text

from .picture import Screen, text_of

__all__ = ["Terminal"]

# The pseudo-terminal becomes the one of the program's session, `/dev/tty`.
_IN_IT = "import fcntl, os, sys, termios; fcntl.ioctl(0, termios.TIOCSCTTY, 0); os.execvp(sys.argv[1], sys.argv[1:])"
_NAMES = {"brown": "yellow", "brightbrown": "bright_yellow", "default": None}


def _colour(name: str) -> str | None:
    if name in _NAMES:
        return _NAMES[name]
    if re.fullmatch(r"[0-9a-f]{6}", name):
        return f"#{name}"
    return re.sub(r"^bright(?=[a-z])", "bright_", name)


class Terminal:
    """A program that runs in a pseudo-terminal.

    Args:
        command: what to run.
        columns, rows: the size in characters.
        cwd: where.
        env: its whole environment, less `TERM` and the size.

    Raises:
        OSError: there is no pseudo-terminal, or no such program.
    """

    def __init__(
        self, command: Sequence[str], *, columns: int, rows: int, cwd: str | None = None, env: Mapping[str, str]
    ) -> None:
        self.columns, self.rows = columns, rows
        self._screen = pyte.Screen(columns, rows)
        self._stream = pyte.ByteStream(self._screen)
        self._master, slave = os.openpty()
        fcntl.ioctl(slave, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))
        own = {"TERM": "xterm-256color", "COLUMNS": str(columns), "LINES": str(rows)}
        try:
            self._process = subprocess.Popen(
                [sys.executable, "-ISc", _IN_IT, *command],
                stdin=slave,
                stdout=slave,
                stderr=slave,
                cwd=cwd,
                env={**env, **own},
                start_new_session=True,
            )
        finally:
            os.close(slave)

    def __enter__(self) -> Terminal:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._process.poll() is None:
            self._process.send_signal(signal.SIGTERM)
            try:
                self._process.wait(20)
            except subprocess.TimeoutExpired:
                self._process.kill()
                self._process.wait()
        os.close(self._master)

    def press(self, keys: str) -> None:
        """Type something.

        Args:
            keys: as a keyboard sends them.
        """
        os.write(self._master, keys.encode())

    def wait_for(self, seen: Callable[[str], bool], what: str, *, timeout: float = 180) -> None:
        """Read on until the screen is as it should be.

        Args:
            seen: whether the text of the screen is.
            what: in words, for the error.
            timeout: seconds.

        Raises:
            TimeoutError: it did not come; with what there was on the screen.
        """
        end = time.monotonic() + timeout
        while not seen(self.text()):
            if not self._read(end - time.monotonic()):
                raise TimeoutError(f"{what} did not appear; the screen was:\n{self.text()}")

    def settle(self, quiet: float = 0.5) -> None:
        """Read on until nothing more comes: what was waited for may be the first half of a picture.

        Args:
            quiet: seconds without output.
        """
        while self._read(quiet):
            pass

    def finish(self, *, timeout: float = 300) -> int:
        """Read on until the program ends.

        Args:
            timeout: seconds.

        Returns:
            Its exit code.

        Raises:
            TimeoutError: it did not end.
        """
        end = time.monotonic() + timeout
        while self._read(end - time.monotonic()):
            pass
        try:
            return self._process.wait(max(1.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise TimeoutError(f"the program did not end; its screen was:\n{self.text()}") from None

    def text(self) -> str:
        """The letters on the screen."""
        return text_of(self.screen())

    def screen(self) -> Screen:
        """The screen as it is now."""
        lines = []
        for row in range(self.rows):
            cells = [self._screen.buffer[row][column] for column in range(self.columns)]
            line = Text()
            # An empty cell is behind a character of two columns. Runs of one style are one piece of the picture.
            for style, run in itertools.groupby((cell for cell in cells if cell.data), key=_style):
                line.append("".join(cell.data for cell in run), style)
            lines.append(line)
        return lines

    def _read(self, seconds: float) -> bool:
        """One more piece of output; False when the program is gone or the time is over."""
        if seconds <= 0 or not select.select([self._master], [], [], seconds)[0]:
            return False
        try:
            data = os.read(self._master, 65536)
        except OSError:  # Linux says EIO when the last one has closed the terminal
            return False
        # pyte knows no faint text: SGR 2 is read as a grey that nothing here uses otherwise.
        self._stream.feed(re.sub(rb"\x1b\[2m", b"\x1b[38;5;244m", data))
        return bool(data)


def _style(cell: pyte.screens.Char) -> Style:
    return Style(
        color=_colour(cell.fg),
        bgcolor=_colour(cell.bg),
        bold=cell.bold,
        italic=cell.italics,
        underline=cell.underscore,
        reverse=cell.reverse,
    )
