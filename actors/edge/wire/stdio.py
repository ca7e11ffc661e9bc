"""The stdio wire: a server process, its dispatcher, and one task that finds out how it ended.

    seen first                    then, within 0.25 s                       reason
    exit of the leader            the rest of stdout and stderr is read     exited with code 1 / was killed by SIGKILL
    end of stdout, or of stdin    the leader's exit                         the same, or: closed its stdout (or stdin)

A grandchild that holds stdout open thus cannot hide the death: it is killed with the leader, and where that is impossible it is
waited for 0.25 s. All pending calls are settled when that is over, in one step.
"""

from __future__ import annotations

import math
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio

from ...telemetry.log import Log
from .process import OwnedProcess, ServerProcess, Stuck
from .spawn import Handover, spawn
from .stderr import StderrTail
from .warden import open_warden
from .wire import Launch, Wire

if TYPE_CHECKING:
    from mcp.shared.dispatcher import Dispatcher

    from .bridge import SdkPipes
    from .dispatcher import PipeDispatcher

__all__ = ["StdioWire", "open_stdio"]

LAST_READ = 0.25
"""Seconds given to the rest of what a dead server wrote, and to the exit of one that closed its pipe."""


class StdioWire(Wire):
    """One server process. Made by `open_stdio`.

    Args:
        process: as spawned.
        native: whether to use our own dispatcher, or the SDK's behind a bridge; ours reads descriptors, so it needs a
            `ServerProcess`.
        max_line: longest message accepted, in bytes.
    """

    def __init__(self, process: OwnedProcess, scrub: Callable[[str], str], *, native: bool, max_line: int) -> None:
        super().__init__(scrub)
        self.pid = process.pid
        self.process = process
        self.tail = StderrTail(process.stderr, scrub)
        self._native = native
        self._max_line = max_line
        self._pipes: PipeDispatcher | SdkPipes | None = None
        self._over = False  # it was found out, or is no matter any more
        self._left = False
        self._last_read = trio.CancelScope(shield=True)
        process.on_exited = self.tail.on_ended = self._sign

    def dispatcher(self, on_list_changed: Callable[[], None]) -> Dispatcher[Any]:
        process = self.process
        if self._native and isinstance(process, ServerProcess):
            from .dispatcher import PipeDispatcher

            pipe = PipeDispatcher(
                process.stdout, process.stdin, on_list_changed=on_list_changed, forward=False, max_line=self._max_line
            )
            self._use(pipe)
            self.plain = True
            return pipe
        from .bridge import SdkPipes

        bridge = SdkPipes(process.stdout, process.stdin, max_line=self._max_line)
        self._use(bridge)
        return bridge.dispatcher

    def _use(self, pipes: PipeDispatcher | SdkPipes) -> None:
        self._pipes = pipes
        pipes.on_sign = self._sign
        if self.lost.is_set():  # it died before anybody could talk to it, and `attend` is over
            pipes.shut()

    def dispatcher_ended(self) -> None:
        """Nothing: `attend` sees it too, and knows more."""

    def stderr_tail(self) -> str:
        return self.tail.text()

    def last_words(self) -> str:
        line = self.tail.telling_line()
        if not line and self._pipes is not None and self._pipes.last_garbage:
            line = f"on stdout: {self.scrub(self._pipes.last_garbage)}"
        return line

    def read_something(self) -> bool:
        if self._pipes is None:
            return False
        written, unread = self._pipes.written, self.process.unread_stdin()
        return written > 0 and (unread is None or unread < written)

    @property
    def restartable(self) -> bool:
        return True

    def _sign(self) -> None:
        """Something that belongs to its end was seen: the rest has `LAST_READ` from the first on."""
        process, pipes = self.process, self._pipes
        exited = process.exited.is_set()
        if self._over or not (exited or (pipes is not None and pipes.failed.is_set())):
            return
        if exited and (pipes is None or pipes.closed.is_set()) and self.tail.ended.is_set():
            self._conclude()
        elif self._last_read.deadline == math.inf:
            self._last_read.deadline = trio.current_time() + LAST_READ

    def _conclude(self) -> None:
        """Say how it ended to everybody who waits for it."""
        self._over = True
        self._last_read.deadline = math.inf
        process, pipes, how = self.process, self._pipes, ""
        if process.exited.is_set():
            how = process.how_it_ended()
        elif pipes is not None:
            how = f"closed its {pipes.failed_on}"
        if pipes is not None:
            pipes.shut()
        words = self.last_words()
        self.lose(f"the server {how}: {words}" if words else f"the server {how}")

    async def attend(self) -> None:
        """Watch the process, and find out how it ended; until `leave` is called, or nothing of it is left."""
        while not self._left:
            with self._last_read:
                await self.process.watch()
                if self._over:
                    return
                await trio.sleep_forever()
            if not self._over:
                self._conclude()
            self._last_read = trio.CancelScope(shield=True)

    def leave(self) -> None:
        """It is attended no more."""
        self._over = self._left = True
        self._last_read.cancel()


async def _start(launch: Launch, warden: Handover) -> OwnedProcess:
    """The one place where the system decides who owns what a server starts."""
    assert launch.command is not None
    if sys.platform == "win32":
        from . import windows

        return await windows.start(launch.command, launch.args, env=launch.env, cwd=launch.cwd)
    return await spawn(launch.command, launch.args, env=launch.env, cwd=launch.cwd, warden=warden)


@asynccontextmanager
async def open_stdio(
    launch: Launch, scrub: Callable[[str], str], *, warden: Handover | None, native: bool, max_line: int
) -> AsyncIterator[StdioWire]:
    """Start the server; leaving ends all that it started, within 6 s, even when cancelled (at once unless ``wire.graceful``).

    Raises:
        SpawnFailed: it could not be started.
    """
    if warden is None:
        async with (
            open_warden() as own,
            open_stdio(launch, scrub, warden=own, native=native, max_line=max_line) as wire,
        ):
            yield wire
        return
    process = await _start(launch, warden)
    wire = StdioWire(process, scrub, native=native, max_line=max_line)
    draining = trio.CancelScope(shield=True)

    async def drain() -> None:
        with draining:
            await wire.tail.drain()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(wire.attend)  # two tasks: each one more is 4 KB for as long as the server runs
        nursery.start_soon(drain)
        try:
            yield wire
        finally:
            try:
                await process.stop(grace=wire.graceful)
            except Stuck as stuck:
                Log("playbill.edge").warning("%s", stuck, event="stuck")
            finally:
                wire.leave()
                draining.cancel()
                process.close_pipes()
    if not process.gone.is_set():
        trio.lowlevel.spawn_system_task(process.bury)  # it hangs in the kernel; whenever it ends, it is buried
