"""One server process and everything it started.

Theory of operation. A server's parent is not the host but a reaper of its own (see `watcher`), which starts it as leader of its
own session and process group, kills whatever it leaves, and lives until nothing is left. All that the host holds of it are
three pipes and the control socket:

    state     leader     what it started    how the host knows
    running   lives      lives              –
    exited    reaped     being killed       ``exited`` on the control socket: `exited` is set
    gone      reaped     gone               the end of the control socket: `gone` is set

The end of the host's side of the control socket, on purpose or by the host's death, is the order to kill everything.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from typing import Protocol

import trio

from .control import Control

__all__ = ["OwnedProcess", "ServerProcess", "Stuck"]

EOF_GRACE = 2.0
"""Seconds a server has to leave after its stdin was closed (MCP, lifecycle, shutdown over stdio)."""

TERM_GRACE = 2.0
"""Seconds it then has after SIGTERM."""

KILL_GRACE = 2.0
"""Seconds the kernel has to end everything after SIGKILL; only what is stuck in the kernel needs more."""


class Stuck(Exception):
    """Something of a server survived SIGKILL for longer than its time (it hangs in the kernel, or runs as somebody else)."""


class OwnedProcess(Protocol):
    """What a started server looks like on every system: `ServerProcess`, or `windows.WindowsProcess`."""

    pid: int
    exited: trio.Event
    gone: trio.Event
    returncode: int | None
    on_exited: Callable[[], None]

    @property
    def stdin(self) -> trio.abc.SendStream:
        """Our end; the server reads the other one."""
        ...

    @property
    def stdout(self) -> trio.abc.ReceiveStream:
        """Our end of what it answers on."""
        ...

    @property
    def stderr(self) -> trio.abc.ReceiveStream:
        """Our end of what it complains on."""
        ...

    async def watch(self) -> None:
        """As `ServerProcess.watch`; so are the others."""
        ...

    async def bury(self) -> None:
        """The last `watch`: cancelled, as at the end of the program, it lets go."""
        ...

    def kill(self) -> None:
        """Have everything killed."""
        ...

    async def stop(self, *, grace: bool = True) -> None:
        """End all of it; cannot be cancelled and ends within 6 s. Raises `Stuck` when something lives on."""
        ...

    def close_pipes(self) -> None:
        """Close our ends."""
        ...

    def unread_stdin(self) -> int | None:
        """How many bytes the server has not read, or None when that cannot be told."""
        ...

    def how_it_ended(self) -> str:
        """In words."""
        ...


class ServerProcess:
    """A started server. Made by `spawn.spawn`; its maker runs `watch` beside whatever uses it, until `gone`.

    Attributes:
        pid: of the leader, and the id of its group.
        stdin, stdout, stderr: our ends of its pipes, non-blocking.
        exited: set when the leader is dead and its group was killed.
        gone: set when nothing that it started is left, either.
        on_exited: called, never waiting, when `exited` was set.
        returncode: as in `subprocess`: the exit code, or minus the signal; None until `exited`, and when it was never told.
    """

    def __init__(
        self,
        pid: int,
        stdin: trio.lowlevel.FdStream,
        stdout: trio.lowlevel.FdStream,
        stderr: trio.lowlevel.FdStream,
        control: Control,
    ) -> None:
        self._control = control
        self.pid = pid
        self.stdin = stdin
        self.stdout = stdout
        self.stderr = stderr
        self.exited = trio.Event()
        self.gone = trio.Event()
        self.on_exited: Callable[[], None] = lambda: None
        self.returncode: int | None = None

    def __repr__(self) -> str:
        state = "gone" if self.gone.is_set() else "exited" if self.exited.is_set() else "running"
        return f"<ServerProcess {self.pid} {state}>"

    async def watch(self) -> None:
        """Wait until nothing of it is left. To be run by one task at a time; `trio.Cancelled` does no harm."""
        while line := await self._control.line():
            word, _, rest = line.partition(" ")
            if word == "exited":
                self.returncode = os.waitstatus_to_exitcode(int(rest))
                self.exited.set()
                self.on_exited()
        self.gone.set()
        if not self.exited.is_set():
            self.exited.set()
            self.on_exited()

    async def bury(self) -> None:
        """The last `watch`: cancelled, as at the end of the program, it lets go of the reaper, which goes on alone."""
        try:
            await self.watch()
        finally:
            self._control.close()

    def terminate(self) -> None:
        """Send SIGTERM to the whole group; nothing happens when it is gone."""
        self._control.say(b"T")

    def kill(self) -> None:
        """Have everything killed."""
        self._control.end()

    async def stop(self, *, grace: bool = True) -> None:
        """End all of it: close stdin, wait, SIGTERM, wait, SIGKILL; cannot be cancelled and ends within 6 s.

        Args:
            grace: False kills at once.

        Raises:
            Stuck: something lives on; `watch` must go on, or be run again, until it ends.
        """
        with trio.CancelScope(shield=True):
            self.stdin.close()
            if grace:
                await self._gone_within(EOF_GRACE)
                if not self.exited.is_set():
                    self.terminate()
                await self._gone_within(TERM_GRACE)
            self.kill()
            await self._gone_within(KILL_GRACE)
        if not self.gone.is_set():
            raise Stuck(f"process {self.pid}, or one that it started, did not end within {KILL_GRACE:g} s of SIGKILL")

    def close_pipes(self) -> None:
        """Close our ends; whoever reads or writes them is woken."""
        for stream in (self.stdin, self.stdout, self.stderr):
            stream.close()

    def unread_stdin(self) -> int | None:
        """How many bytes of what we wrote the server has not read, or None when that cannot be told."""
        if sys.platform == "win32":
            return None
        import fcntl
        import termios

        buffer = bytearray(4)
        try:
            fcntl.ioctl(self.stdin.fileno(), termios.FIONREAD, buffer)
        except OSError:
            return None
        return int.from_bytes(buffer, sys.byteorder)

    def how_it_ended(self) -> str:
        """In words: ``exited with code 1``, ``was killed by SIGKILL``."""
        code = self.returncode
        if code is None:
            return "was lost with the process that watched it" if self.exited.is_set() else "is still running"
        if code >= 0:
            return f"exited with code {code}"
        try:
            return f"was killed by {signal.Signals(-code).name}"
        except ValueError:
            return f"was killed by signal {-code}"

    async def _gone_within(self, seconds: float) -> None:
        if not self.gone.is_set():
            with trio.move_on_after(seconds):
                await self.gone.wait()
