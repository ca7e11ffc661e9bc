"""A real terminal of a given size, and what is seen on it in the end."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import termios
from collections.abc import Callable, Sequence
from pathlib import Path

from playbill.actors.cli.voice import cells

from ..forked import Forked

__all__ = ["on_terminal", "screen", "widest"]


def on_terminal(
    command: Sequence[str],
    folder: Path,
    environ: dict[str, str],
    columns: int = 80,
    *,
    stdout: int | None = None,
    seen: Callable[[bytes], None] | None = None,
) -> tuple[int, str]:
    """Run a program on a terminal; its exit code, and all that was written there.

    Args:
        command: the program and its arguments.
        folder: where.
        environ: its environment.
        columns: how wide the terminal is.
        stdout: where its stdout goes instead; None: the terminal too.
        seen: told of all that was written so far, at each piece.
    """
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
    process = Forked(
        command, cwd=folder, env=environ, stdin=theirs, stdout=theirs if stdout is None else stdout, stderr=theirs
    )
    os.close(theirs)
    text = b""
    try:
        while True:
            try:
                piece = os.read(ours, 65536)
            except OSError:  # the other end is closed
                break
            if not piece:
                break
            text += piece
            if seen is not None:
                seen(text)
        return process.wait(60), text.decode("utf-8", "replace")
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def screen(text: str) -> list[str]:
    """The lines that are on the terminal in the end, without colours: a line that was drawn over or wiped is not."""
    lines = []
    for line in re.sub(r"\x1b\[[0-9;]*m", "", text).split("\r\n"):
        shown = ""
        for part in re.split(r"(\r|\x1b\[K)", line):
            if part == "\r":
                shown = shown and f"\0{shown}"
            elif part == "\x1b[K":
                shown = shown.partition("\0")[0] if "\0" in shown else shown
            elif part:
                shown = part if "\0" in shown else shown + part
        lines.append("" if shown.startswith("\0") else shown.rstrip())
    return lines


def widest(lines: Sequence[str]) -> int:
    """How many columns the widest line takes."""
    return max(map(cells, lines), default=0)
