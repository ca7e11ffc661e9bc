"""The terminal the picker draws on: found even behind a redirection, put back as it was whatever happens.

Theory of operation
    A screen is switched to the alternate buffer and to character-wise input when it starts, and back when it stops. Stopping
    is in a ``finally`` of whoever started it, so an exception, a cancellation and a signal that cancels all restore it. What
    is changed beyond what urwid does: flow control is off while the screen runs, or Ctrl-S would freeze it for good, and so is
    the key of SIGQUIT, Ctrl and the backslash: whoever mounts us may not expect that signal, and would leave the terminal as
    it is. Ctrl-Z, and coming back from it, are urwid's: the screen is left before the process stops, and taken again after.

    Nothing is waited for. A terminal that nobody reads gets no new frame until it has taken the last one (`outlet`), and is
    given `_PATIENCE` when it is to be put back. Input is read in small pieces, with a checkpoint between them, so that a
    signal is heeded during a paste, however long that is.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from typing import Any, Literal, TextIO

import trio
import urwid
from attrs import frozen
from urwid.display import raw
from urwid.display.common import InputClosedError

from .outlet import Outlet

__all__ = ["NoTerminal", "Screen", "Terminal", "colours", "open_terminal", "speaks_unicode"]

_DEVICE = "CONOUT$" if sys.platform == "win32" else "/dev/tty"
_NO_COLOUR = frozenset({"", "dumb", "unknown", "vt52", "vt100", "vt102", "vt220"})
_MANY = ("256color", "direct", "kitty", "alacritty", "ghostty", "wezterm", "foot")

_PIECE = 128
"""Bytes of input that are handled at once."""

_PATIENCE = 0.5
"""Seconds that a terminal has to take what is left, and then to be put back."""


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

    screen: Screen
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
        outlet = None if sys.platform == "win32" else Outlet(stdout)
        if outlet is not None:
            stack.callback(outlet.close)
        screen = Screen(stdin, stdout, outlet)
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


class Screen(raw.Screen):
    """urwid's screen, without flow control, with bracketed paste, and never waiting for the terminal.

    Args:
        stdin, stdout: the terminal.
        outlet: what to write through; None: straight to the terminal.
    """

    def __init__(self, stdin: Any, stdout: Any, outlet: Outlet | None = None) -> None:
        super().__init__(stdin, stdout, bracketed_paste_mode=True, focus_reporting=False)
        self._outlet = outlet

    @property
    def behind(self) -> bool:
        """Whether the terminal has not taken the last frame yet; then there is no new one."""
        if self._outlet is None:
            return False
        self._outlet.push()  # what was only kept is not what it did not take
        return self._outlet.pending

    async def drain(self) -> None:
        """Hand over what the terminal did not take, whenever it has room. A checkpoint; it does not return.

        Raises:
            InputClosedError: the terminal is gone.
        """
        if self._outlet is None:
            await trio.sleep_forever()
        else:
            await self._outlet.drain()

    def write(self, data: str) -> None:
        """Keep it for the next `flush`."""
        if self._outlet is None:
            super().write(data)
        else:
            self._outlet.write(data)

    def flush(self) -> None:
        """Hand over what the terminal takes now."""
        if self._outlet is None:
            super().flush()
        else:
            self._outlet.push()

    def draw_screen(self, size: tuple[int, int], canvas: urwid.Canvas) -> None:
        """Draw a frame, unless the last one is still under way."""
        if not self.behind:
            super().draw_screen(size, canvas)

    def get_cols_rows(self) -> tuple[int, int]:
        """How large it is; 80 × 24 where it does not say, as a terminal that a program made may not."""
        columns, rows = super().get_cols_rows()
        return (columns, rows) if columns > 0 and rows > 0 else (80, 24)

    def _start(self, *args: Any, **more: Any) -> None:
        if self._outlet is not None:
            self._outlet.quiet = False
        super()._start(*args, **more)
        if sys.platform != "win32":
            import termios

            with suppress(termios.error):
                fd = self._term_input_file.fileno()
                # What urwid kept before is what it restores: only the running screen is changed.
                mode = termios.tcgetattr(fd)
                mode[0] &= ~(termios.IXON | termios.IXOFF | termios.IXANY)
                mode[6][termios.VQUIT] = os.fpathconf(fd, "PC_VDISABLE").to_bytes(1, "little")
                termios.tcsetattr(fd, termios.TCSANOW, mode)

    def _stop(self) -> None:
        outlet = self._outlet
        if outlet is None:
            super()._stop()
            return
        outlet.quiet = True  # a terminal that is gone cannot be put back
        if outlet.settle(_PATIENCE):
            super()._stop()
        else:
            outlet.forget()
            self._stop_at_once()
        if not outlet.settle(_PATIENCE):
            outlet.forget()

    def _stop_at_once(self) -> None:
        """Put back the settings without waiting for what was written, as urwid does."""
        if sys.platform == "win32":
            return
        import termios

        kept, self._old_termios_settings, self._old_signal_keys = self._old_termios_settings, None, None
        try:
            super()._stop()
        finally:
            if kept is not None:
                with suppress(termios.error):
                    termios.tcsetattr(self._term_input_file.fileno(), termios.TCSANOW, kept)

    def _read_raw_input(self, timeout: float) -> Any:
        fd = self._input_fileno()
        if sys.platform == "win32":
            return super()._read_raw_input(timeout)
        if fd is None or fd not in self._wait_for_input_ready(timeout):
            return bytearray()
        try:
            piece = os.read(fd, _PIECE)
        except BlockingIOError:
            return bytearray()
        except OSError as error:
            raise InputClosedError("the terminal is gone") from error
        if not piece:
            raise InputClosedError("the terminal is gone")
        return bytearray(piece)
