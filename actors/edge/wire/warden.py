"""The host's side of the watcher: who kills the servers when the host is killed with SIGKILL.

Theory of operation. A dead process can do nothing, so another one must. The watcher (`watcher`) is started before the first
server and holds the read end of a pipe; the host holds the write end, close-on-exec, and says ``+group`` after each spawn and
``-group`` before each reap. When the host is gone, the pipe ends, and the watcher kills what is registered.

A parent-death signal cannot do this: it fires when the spawning thread ends, and trio spawns from cached threads.

    state     watcher            next
    unused    none               open() starts it, before the first spawn
    watching  runs, groups known  write fails → the next open() starts another one and tells it all groups
    closed    ended by EOF       –
"""

from __future__ import annotations

import contextlib
import logging
import os
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio

__all__ = ["Warden", "open_warden"]

_LOG = logging.getLogger("playbill.edge")

_END_GRACE = 3.0  # seconds; at its end it may have groups to kill, and on a busy machine it may only just be starting


class Warden:
    """Registers process groups with the watcher. Made by `open_warden`."""

    def __init__(self) -> None:
        self._groups: dict[int, None] = {}
        self._process: trio.Process | None = None
        self._starting = trio.Lock()
        self.failure: str | None = None
        """Why there is no watcher though one was wanted, or None."""

    @property
    def pid(self) -> int | None:
        """The watcher's process id, or None while none was needed."""
        return None if self._process is None else self._process.pid

    async def ready(self) -> None:
        """Have a watcher running; to be awaited before a spawn, so that registering afterwards never waits.

        Never raises for want of a watcher: the servers run without one then, and `failure` says why.
        """
        async with self._starting:
            if self._process is not None:
                return
            try:
                self._process = await trio.lowlevel.open_process(
                    [sys.executable, "-I", "-S", str(Path(__file__).with_name("watcher.py")), str(os.getpid())],
                    stdin=subprocess.PIPE,
                    stdout=subprocess.DEVNULL,
                    stderr=subprocess.DEVNULL,
                    cwd="/",
                    start_new_session=True,
                )
            except OSError as error:
                self.failure = f"no watcher process: {error}"
                _LOG.warning("%s: servers would outlive a host that is killed", self.failure)
                return
            self.failure = None
            for group in self._groups:
                self._tell(f"+{group}\n")

    def watch(self, group: int) -> None:
        """Register a group; never waits."""
        self._groups[group] = None
        self._tell(f"+{group}\n")

    def forget(self, group: int) -> None:
        """Remove a group, before its leader is reaped; never waits."""
        self._groups.pop(group, None)
        self._tell(f"-{group}\n")

    async def close(self) -> None:
        """End the watcher; cannot be cancelled, ends within 6 s."""
        process, self._process = self._process, None
        if process is None:
            await trio.lowlevel.checkpoint()
            return
        await _end(process)

    def _tell(self, line: str) -> None:
        if self._process is None:
            return
        stream = self._process.stdin
        assert isinstance(stream, trio.lowlevel.FdStream)
        try:
            os.write(stream.fileno(), line.encode())
        except OSError as error:
            # It was killed, or hangs so that its pipe is full. The groups are remembered for the next one.
            self.failure = f"the watcher process is lost: {error}"
            process, self._process = self._process, None
            _LOG.warning("%s", self.failure)
            # Killed before its pipe is closed: one that only hung would take the end of the pipe for our death.
            process.kill()
            trio.lowlevel.spawn_system_task(_end, process)


async def _end(process: trio.Process) -> None:
    with trio.CancelScope(shield=True):
        assert process.stdin is not None
        await process.stdin.aclose()
        with trio.move_on_after(_END_GRACE):
            await process.wait()
        if process.returncode is None:
            process.kill()
            with trio.move_on_after(_END_GRACE):
                await process.wait()


@asynccontextmanager
async def open_warden() -> AsyncIterator[Warden]:
    """A `Warden` for as long as servers may be started; its watcher ends when this is left."""
    warden = Warden()
    try:
        yield warden
    finally:
        with contextlib.suppress(OSError):
            await warden.close()
