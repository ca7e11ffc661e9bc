"""The picker on a terminal that the test itself is: what is read of it, and whether, is up to the test."""

from __future__ import annotations

import fcntl
import os
import pty
import signal
import struct
import termios
import time
from collections.abc import Callable, Iterator
from contextlib import suppress
from typing import Any

import pytest

from ..forked import Forked
from .conftest import CLI, Stage, fake
from .tmux import PATIENCE


class Bare:
    """A terminal of 100 × 30 and the picker on it; a thread reads it while it is to be read.

    Args:
        stage: whose config is shown.
    """

    def __init__(self, stage: Stage) -> None:
        self.ours, self.theirs = pty.openpty()
        fcntl.ioctl(self.theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 30, 100, 0, 0))
        os.set_blocking(self.ours, False)
        self.before = self.settings()
        self.seen = bytearray()
        self._said = stage.folder / "err.txt"
        state = {f"XDG_{name}_HOME": str(stage.folder / name.lower()) for name in ("STATE", "CONFIG", "CACHE", "DATA")}
        with self._said.open("wb") as err:
            self.process = Forked(
                [*CLI, "pick", "--config", str(stage.path)],
                cwd=stage.folder,
                env={**os.environ, **state, "TERM": "xterm-256color", "LC_ALL": "C.UTF-8"},
                stdin=self.theirs,
                stdout=self.theirs,
                stderr=err,
                takes_terminal=True,
            )

    def settings(self) -> list[Any]:
        """Those of the terminal."""
        return termios.tcgetattr(self.theirs)

    def until(self, so: Callable[[], object], *, read: bool = True) -> None:
        """Wait until it is so, and read what is written meanwhile, or do not."""
        deadline = time.monotonic() + PATIENCE
        while not so():
            assert time.monotonic() < deadline, (
                f"waited in vain; the end of what was written: {bytes(self.seen[-2000:])!r}"
            )
            if read:
                with suppress(BlockingIOError):
                    self.seen += os.read(self.ours, 65_536)
                    continue
            time.sleep(0.01)

    def fill(self) -> None:
        """Write to it until it takes no more, as one that nobody reads comes to be."""
        own = os.open(os.ttyname(self.theirs), os.O_WRONLY | os.O_NOCTTY | os.O_NONBLOCK)
        try:
            refused = 0
            while refused < 20:  # what it took moves on inside the system, and makes room once more
                try:
                    os.write(own, b"." * (4096 if refused == 0 else 1))
                    refused = 0
                except BlockingIOError:
                    refused += 1
                    time.sleep(0.01)
        finally:
            os.close(own)

    def keys(self, keys: bytes) -> None:
        """Press keys, and wait until all are read; nothing is read of what is written."""
        os.write(self.ours, keys)
        self.until(
            lambda: struct.unpack("i", fcntl.ioctl(self.theirs, termios.FIONREAD, b"\0" * 4)) == (0,), read=False
        )

    def end(self) -> int:
        """Wait for the picker to end, without reading; its exit code."""
        return self.process.wait(PATIENCE)

    def said(self) -> str:
        """What it said on stderr."""
        return self._said.read_text()

    def hang_up(self) -> None:
        """Close it under the picker."""
        for fd in (self.theirs, self.ours):
            os.close(fd)
        self.theirs = self.ours = -1

    def close(self) -> None:
        """End the picker, and close it."""
        if self.process.poll() is None:
            self.process.kill()
            self.process.wait()
        if self.ours >= 0:
            self.hang_up()


@pytest.fixture
def bare(stage: Stage) -> Iterator[Bare]:
    """The picker, ready, with one server of two tools."""
    stage.write(files=fake("read_file", "write_file"))
    bare = Bare(stage)
    try:
        bare.until(lambda: b"2 of 2 tools" in bare.seen)
        yield bare
    finally:
        bare.close()


@pytest.mark.parametrize(("signum", "code"), [(signal.SIGTERM, 143), (signal.SIGINT, 130)])
def test_a_signal_ends_it_on_a_terminal_that_nobody_reads(bare: Bare, stage: Stage, signum: int, code: int) -> None:
    bare.fill()
    bare.keys(b"?")
    bare.process.send_signal(signum)
    assert bare.end() == code
    assert bare.settings() == bare.before
    assert bare.said() == ""
    assert stage.servers() == []
    bare.seen.clear()
    bare.until(lambda: b"\x1b[?1049l" in bare.seen)  # once it is read again, the other screen is left


def test_a_terminal_that_nobody_reads_stops_no_work_and_shows_the_newest_when_it_is_read(
    bare: Bare, stage: Stage
) -> None:
    bare.fill()
    bare.keys(b"?\x1bOB")  # what is drawn first does not fit
    bare.keys(b"?")
    bare.keys(b"j ")
    bare.until(lambda: "write_file" in str(stage.config()) or "read_file" in str(stage.config()), read=False)
    bare.seen.clear()
    bare.until(lambda: b"[ ]" in bare.seen)
    bare.keys(b"q")
    assert bare.end() == 0


def test_closing_the_terminal_ends_it_as_a_hangup_and_says_nothing(bare: Bare, stage: Stage) -> None:
    bare.hang_up()
    assert bare.end() == 129
    assert bare.said() == ""
    assert stage.servers() == []


def test_sigquit_gives_the_terminal_back(bare: Bare, stage: Stage) -> None:
    bare.process.send_signal(signal.SIGQUIT)
    bare.until(lambda: bare.process.poll() is not None)
    bare.until(lambda: b"\x1b[?1049l" in bare.seen)
    assert bare.process.returncode == 131
    assert bare.settings() == bare.before
    assert stage.servers() == []


def test_ctrl_backslash_is_a_key_that_does_nothing(bare: Bare) -> None:
    bare.keys(b"\x1c")
    bare.keys(b"?")
    bare.until(lambda: b"this list of keys" in bare.seen)
    bare.keys(b"?q")
    bare.until(lambda: bare.process.poll() is not None)
    assert bare.process.returncode == 0
    assert bare.settings() == bare.before


def test_what_is_pasted_in_the_list_does_nothing(bare: Bare, stage: Stage) -> None:
    assert b"\x1b[?2004h" in bare.seen
    before = stage.path.read_text()
    bare.keys(b"\x1b[200~j dd\rq q\x1b[201~")
    bare.until(lambda: b"what was pasted was left alone" in bare.seen)
    assert bare.process.poll() is None
    assert stage.path.read_text() == before
    bare.keys(b"q")
    bare.until(lambda: bare.process.poll() is not None)
    bare.until(lambda: b"\x1b[?2004l" in bare.seen)
    assert bare.process.returncode == 0
