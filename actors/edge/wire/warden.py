"""The host's side of the watcher: a `Warden` has it fork the reapers of the servers.

Theory of operation. See `watcher` for what the watcher is for. It is started with the first server. What it is told is one byte
and four descriptors for each server; all else goes between host and reaper. So when the watcher is lost, the servers that run
go on, each with its reaper, and the next one gets another watcher. One that only seems to hang is not killed: it is asked for
no more reapers, and goes on to look after those it has.

A parent-death signal could not do this: it fires when the spawning thread ends, and trio spawns from cached threads.

    state      watcher                   next
    unused     none                      hand_over() starts it
    watching   forks reapers             retire(), when it is dead or nothing was heard of it for too long
    retired    has its reapers           close()
    closed     ended by the end of its socket
"""

from __future__ import annotations

import contextlib
import errno
import os
import signal
import socket
import subprocess
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path

import trio

from ...telemetry.log import Log
from .spawn import Watching

__all__ = ["Warden", "open_warden"]

_LOG = Log("playbill.edge")

HANGS_AFTER = 10.0
"""Seconds without a sign of a watcher after which it is taken for hung; the word of any of its reapers is one."""

_END_GRACE = 3.0  # seconds; its reapers end first, and on a busy machine it may only just be starting

INTERPRETER = "PLAYBILL_INTERPRETER"
"""The variable that names the Python to run the watcher with, for a program that is no Python itself."""


class Watcher:
    """One watcher process, as the host sees it."""

    def __init__(self, process: trio.Process, end: socket.socket) -> None:
        self.process = process
        self.end = end
        self.heard_at = trio.current_time()
        """When a reaper of it last said something, or it was started: trio clock seconds."""

    async def heard(self, word: Callable[[], Awaitable[str]]) -> str:
        """As `spawn.Watching.heard`."""
        while True:
            with trio.move_on_after(HANGS_AFTER):
                said = await word()
                self.heard_at = trio.current_time()
                return said
            if trio.current_time() - self.heard_at >= HANGS_AFTER:
                return ""

    def last_words(self) -> str:
        """The last line of what it complained of, or empty."""
        stderr = self.process.stderr
        assert isinstance(stderr, trio.lowlevel.FdStream)
        try:
            lines = os.read(stderr.fileno(), 65536).decode("utf-8", "replace").split("\n")
        except (OSError, trio.ClosedResourceError):
            return ""
        return next((line.strip() for line in reversed(lines) if line.strip()), "")

    def send_now(self, fds: Sequence[int]) -> bool:
        """As `send`, if that need not wait and does not fail; else False."""
        try:
            socket.send_fds(self.end, [b"."], fds)
        except OSError:
            return False
        return True

    async def send(self, fds: Sequence[int]) -> None:
        """Ask for a reaper; raises `ConnectionError` when the watcher is gone."""
        while True:
            try:
                socket.send_fds(self.end, [b"."], fds)
            except BlockingIOError:
                await trio.lowlevel.wait_writable(self.end)
            else:
                await trio.lowlevel.checkpoint()
                return

    async def close(self) -> None:
        """End it; cannot be cancelled, ends within 6 s."""
        with trio.CancelScope(shield=True):
            with contextlib.suppress(OSError):
                # Closing is not enough: a fork of this program may have it open too.
                self.end.shutdown(socket.SHUT_RDWR)
            self.end.close()
            self.process.send_signal(signal.SIGCONT)
            with trio.move_on_after(_END_GRACE):
                await self.process.wait()
            if self.process.returncode is None:
                self.process.kill()
                with trio.move_on_after(_END_GRACE):
                    await self.process.wait()
            assert self.process.stderr is not None
            await self.process.stderr.aclose()


class Warden:
    """Has reapers forked. Made by `open_warden`."""

    def __init__(self) -> None:
        self._watcher: Watcher | None = None
        self._retired: list[Watcher] = []
        self._turn = trio.Lock()

    @property
    def pid(self) -> int | None:
        """The process id of the watcher that is asked for reapers, or None while there is none."""
        return None if self._watcher is None else self._watcher.process.pid

    async def hand_over(self, fds: Sequence[int]) -> Watcher:
        """As `Handover.hand_over`; the descriptors stay the caller's to close."""
        if self._watcher is not None and not self._retired and not self._turn.locked() and self._watcher.send_now(fds):
            return self._watcher
        async with self._turn:
            for retired in self._retired:
                retired.process.poll()  # reaped, if it has ended
            if self._watcher is None:
                self._watcher = await _start()
            watcher = self._watcher
            with trio.move_on_after(HANGS_AFTER):
                try:
                    await watcher.send(fds)
                except ConnectionError:
                    self.retire(watcher)
                    raise
                return watcher
            self.retire(watcher)
            raise ConnectionError("it takes no requests any more")

    def retire(self, watcher: Watching) -> None:
        """As `Handover.retire`."""
        if self._watcher is watcher and self._watcher is not None:
            _LOG.warning("the watcher process %s was lost or hangs: the next server gets another", self.pid)
            self._retired.append(self._watcher)
            self._watcher = None

    async def close(self) -> None:
        """End the watchers; cannot be cancelled, ends within 6 s."""
        watchers = [*self._retired, *([self._watcher] if self._watcher is not None else [])]
        self._watcher = None
        self._retired.clear()
        with trio.CancelScope(shield=True):
            await trio.lowlevel.checkpoint()
            async with trio.open_nursery() as nursery:
                for watcher in watchers:
                    nursery.start_soon(watcher.close)


async def _start() -> Watcher:
    """Start a watcher; raises `OSError` when that is impossible."""
    end, far_end = socket.socketpair()
    end.setblocking(False)
    with far_end:
        try:
            process = await trio.lowlevel.open_process(
                [_interpreter(), "-I", "-S", *_program(), str(os.getpid())],
                stdin=far_end.fileno(),
                stdout=subprocess.DEVNULL,
                stderr=subprocess.PIPE,
                cwd="/",
                start_new_session=True,
            )
        except BaseException:
            end.close()
            raise
    assert isinstance(process.stderr, trio.lowlevel.FdStream)
    return Watcher(process, end)


def _interpreter() -> str:
    """A Python; raises `OSError` when it is not known."""
    if named := os.environ.get(INTERPRETER):
        return named
    if getattr(sys, "frozen", False) or not sys.executable:
        raise OSError(errno.ENOEXEC, f"this program is no Python: {INTERPRETER} has to name one")
    return sys.executable


def _program() -> list[str]:
    """The watcher as arguments of a Python: the file, or its text where the package is no folder."""
    path = Path(__file__).with_name("watcher.py")
    if path.is_file():
        return [str(path)]
    import pkgutil  # for archives alone

    assert __package__
    text = pkgutil.get_data(__package__, "watcher.py")
    if text is None:
        raise OSError(errno.ENOENT, "the program of the watcher is missing from this installation")
    return ["-c", text.decode()]


@asynccontextmanager
async def open_warden() -> AsyncIterator[Warden]:
    """A `Warden` for as long as servers may be started; its watchers end when this is left."""
    warden = Warden()
    try:
        yield warden
    finally:
        with contextlib.suppress(OSError):
            await warden.close()
