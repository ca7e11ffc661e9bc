"""The terminal the picker draws on: found even behind a redirection, put back as it was whatever happens.

Theory of operation
    A screen is switched to the alternate buffer and to character-wise input when it starts, and back when it stops. Stopping
    is in a ``finally`` of whoever started it, so an exception, a cancellation and a signal that cancels all restore it. What
    is changed beyond what urwid does: flow control is off while the screen runs, or Ctrl-S would freeze it for good.
    Ctrl-Z, and coming back from it, are urwid's: the screen is left before the process stops, and taken again afterwards.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Literal, TextIO

import urwid
from attrs import frozen
from urwid.display import raw

__all__ = ["NoTerminal", "Terminal", "colours", "open_terminal", "speaks_unicode"]

_DEVICE = "CONOUT$" if sys.platform == "win32" else "/dev/tty"
_NO_COLOUR = frozenset({"", "dumb", "unknown", "vt52", "vt100", "vt102", "vt220"})
_MANY = ("256color", "direct", "kitty", "alacritty", "ghostty", "wezterm", "foot")


class NoTerminal(Exception):
    """There is no terminal to draw on; the message says so in one line."""


@frozen
class Terminal:
    """A terminal that is ready to be drawn on.

    Args:
        screen: not started yet.
        ascii: whether only ASCII characters can be drawn.
        colours: how many it has: 1, 16 or 256.
    """

    screen: raw.Screen
    ascii: bool
    colours: Literal[1, 16, 256]


def colours(environ: Mapping[str, str]) -> Literal[1, 16, 256]:
    """How many colours to use: 1, 16 or 256. ``NO_COLOR`` (any text but an empty one: no-color.org) wins over all else."""
    term = environ.get("TERM", "").lower()
    if environ.get("NO_COLOR") or term in _NO_COLOUR:
        return 1
    if environ.get("COLORTERM") or any(each in term for each in _MANY):
        return 256
    return 16


def speaks_unicode(environ: Mapping[str, str], encoding: str | None) -> bool:
    """Whether more than ASCII can be drawn: the locale asked for says UTF-8, and what we write with can.

    The first of ``LC_ALL``, ``LC_CTYPE`` and ``LANG`` that is set counts (POSIX, 8.2). Python itself takes the C locale for
    UTF-8 (PEP 538, PEP 540), so that its own encoding alone does not tell.
    """
    if "utf" not in (encoding or "").lower():
        return False
    if sys.platform == "win32":
        return True
    asked = next((value for name in ("LC_ALL", "LC_CTYPE", "LANG") if (value := environ.get(name))), "utf-8")
    return "utf" in asked.lower()


@contextmanager
def open_terminal(environ: Mapping[str, str] | None = None) -> Iterator[Terminal]:
    """A terminal to draw on: stdin and stdout, or in place of one that is redirected the controlling terminal.

    Leaving it closes what was opened; it stops the screen, should it still run.

    Args:
        environ: what tells of colours and locale; None: the process's own.

    Raises:
        NoTerminal: stdin or stdout is redirected, and the process has no controlling terminal.
    """
    environ = os.environ if environ is None else environ
    with ExitStack() as stack:
        stdin, stdout = _keyboard(stack), _display(stack)
        unicode = speaks_unicode(environ, getattr(stdout, "encoding", None))
        urwid.set_encoding("utf-8" if unicode else "ascii")
        screen = _Screen(stdin, stdout, focus_reporting=False)
        count = colours(environ)
        screen.set_terminal_properties(colors=count, bright_is_bold=False if count == 256 else None)
        try:
            yield Terminal(screen, not unicode, count)
        finally:
            # A terminal that is gone cannot be put back.
            with suppress(OSError):
                screen.stop()


def _keyboard(stack: ExitStack) -> Any:
    """Where keys come from."""
    if _is_tty(sys.stdin):
        return sys.stdin
    try:
        return stack.enter_context(open("/dev/tty" if sys.platform != "win32" else "CONIN$", "rb", buffering=0))  # noqa: PTH123
    except OSError:
        raise NoTerminal(_nowhere("stdin")) from None


def _display(stack: ExitStack) -> Any:
    """Where it is drawn. Text that the encoding lacks becomes a question mark, and ends nothing."""
    if _is_tty(sys.stdout):
        return sys.stdout
    try:
        return stack.enter_context(open(_DEVICE, "w", encoding=sys.getfilesystemencoding(), errors="replace"))  # noqa: PTH123
    except OSError:
        raise NoTerminal(_nowhere("stdout")) from None


def _nowhere(name: str) -> str:
    return f"the picker needs a terminal: {name} is none, and there is no other to draw on"


def _is_tty(file: TextIO | None) -> bool:
    try:
        return file is not None and file.isatty()
    except ValueError:  # it is closed
        return False


class _Screen(raw.Screen):
    """urwid's screen, without flow control."""

    def _start(self, *args: Any, **more: Any) -> None:
        super()._start(*args, **more)
        if sys.platform == "win32":
            return
        import termios

        with suppress(termios.error):
            fd = self._term_input_file.fileno()
            # What urwid kept before is what it restores: only the running screen is changed.
            mode = termios.tcgetattr(fd)
            mode[0] &= ~(termios.IXON | termios.IXOFF | termios.IXANY)
            termios.tcsetattr(fd, termios.TCSANOW, mode)
