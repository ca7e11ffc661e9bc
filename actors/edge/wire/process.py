"""One server process and everything it started.

Theory of operation. The server is started as leader of its own session, hence of its own process group, whose id is its pid.
That id stays its own as long as the leader is not reaped: an exited leader that nobody waited for (a zombie) still holds it.
So the order at every end is fixed, whoever ended it:

    the leader has exited  →  SIGKILL to the group  →  the watcher forgets it  →  reap

``Popen.poll`` reaps, and so do `trio.Process.returncode`, its ``repr`` and ``send_signal``. None of them is used before the
group was killed; exit is seen through a pidfd of our own, or by ``waitid(WNOWAIT)``, which leave the zombie alone.

    state     leader   group     next
    running   lives    lives     stop() or its own exit
    exited    zombie   unknown   watch(), in the same step as the exit was seen
    gone      reaped   killed    –
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import signal
import subprocess
import sys
import termios
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Protocol, cast

import trio

__all__ = ["GroupWatch", "ServerProcess", "SpawnFailed", "Stuck", "spawn"]

EOF_GRACE = 2.0
"""Seconds a server has to leave after its stdin was closed (MCP, lifecycle, shutdown over stdio)."""

TERM_GRACE = 2.0
"""Seconds it then has after SIGTERM."""

KILL_GRACE = 2.0
"""Seconds the kernel has to end a process after SIGKILL; only one stuck in the kernel needs more."""


class GroupWatch(Protocol):
    """Who kills the groups when the host is killed; neither method waits or raises."""

    def watch(self, group: int) -> None: ...

    def forget(self, group: int) -> None: ...


class SpawnFailed(Exception):
    """The process could not be started; the message is one line and names the key of the configuration that is wrong."""


class Stuck(Exception):
    """A process survived SIGKILL for longer than its time (it hangs in the kernel)."""


class ServerProcess:
    """A started server. Made by `spawn`; its maker runs `watch` beside whatever uses it, until `gone`.

    Attributes:
        pid: of the leader, and the id of its group.
        stdin, stdout, stderr: our ends of its pipes, non-blocking.
        gone: set when the leader is reaped and the group was killed.
        returncode: as in `subprocess`: the exit code, or minus the signal; None until `gone`.
    """

    def __init__(self, process: trio.Process, warden: GroupWatch | None) -> None:
        self._process = process
        self._warden = warden
        self.pid: int = process.pid
        self.stdin = cast(trio.lowlevel.FdStream, process.stdin)
        self.stdout = cast(trio.lowlevel.FdStream, process.stdout)
        self.stderr = cast(trio.lowlevel.FdStream, process.stderr)
        self.gone = trio.Event()
        self.returncode: int | None = None

    def __repr__(self) -> str:
        return f"<ServerProcess {self.pid} {'gone' if self.gone.is_set() else 'running'}>"

    async def watch(self) -> None:
        """Wait for the leader's exit, then kill the group and reap. To be run once, by one task."""
        await _wait_exit(self._process)
        self.signal_group(signal.SIGKILL)
        if self._warden is not None:
            self._warden.forget(self.pid)
        with trio.CancelScope(shield=True):
            self.returncode = await self._process.wait()  # the leader is a zombie: at once
        self.gone.set()

    def signal_group(self, number: signal.Signals) -> None:
        """Send a signal to the whole group; nothing happens when it is gone."""
        if self.gone.is_set():
            return
        # PermissionError: macOS for a group of zombies only, or a server that runs as somebody else.
        with contextlib.suppress(ProcessLookupError, PermissionError):
            os.killpg(self.pid, number)

    async def stop(self, *, grace: bool = True) -> None:
        """End the whole group: close stdin, wait, SIGTERM, wait, SIGKILL; cannot be cancelled and ends within 6 s.

        Args:
            grace: False kills at once.

        Raises:
            Stuck: the leader lives on; `watch` must go on, or be run again, to bury it when it ends.
        """
        with trio.CancelScope(shield=True):
            self.stdin.close()
            if grace:
                await self._gone_within(EOF_GRACE)
                self.signal_group(signal.SIGTERM)
                await self._gone_within(TERM_GRACE)
            self.signal_group(signal.SIGKILL)
            await self._gone_within(KILL_GRACE)
        if not self.gone.is_set():
            raise Stuck(f"process {self.pid} did not end within {KILL_GRACE:g} s of SIGKILL")

    def close_pipes(self) -> None:
        """Close our ends; whoever reads or writes them is woken."""
        for stream in (self.stdin, self.stdout, self.stderr):
            stream.close()

    def unread_stdin(self) -> int | None:
        """How many bytes of what we wrote the server has not read, or None when that cannot be told."""
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
            return "is still running"
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


async def spawn(
    command: str,
    args: Sequence[str],
    *,
    env: Mapping[str, str],
    cwd: str | None,
    warden: GroupWatch | None = None,
) -> ServerProcess:
    """Start a server with three pipes, in its own session. When it returns, the process exists and the caller owns it.

    Args:
        command: a path, or a name looked up in the PATH of ``env``.
        args: without the command.
        env: the whole environment of the child.
        cwd: its working folder; None = ours.
        warden: is told of the group at once.

    Raises:
        SpawnFailed: the command is not found or not executable, the folder is missing, or the system refused.
    """
    try:
        process = await trio.lowlevel.open_process(
            [command, *args],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            cwd=cwd,
            start_new_session=True,
        )
    except (OSError, ValueError) as error:
        raise SpawnFailed(_spawn_reason(error, command, cwd)) from error
    if warden is not None:
        warden.watch(process.pid)
    return ServerProcess(process, warden)


def _spawn_reason(error: OSError | ValueError, command: str, cwd: str | None) -> str:
    if isinstance(error, ValueError):
        return f"command, args or env: {error} (in {command!r})"
    if cwd is not None and not Path(cwd).is_dir():
        what = "is not a folder" if Path(cwd).exists() else "does not exist"
        return f"cwd: {cwd!r} {what}"
    if error.errno == errno.ENOENT:
        if Path(command).is_file():
            return f"command: {command!r} cannot run: the interpreter named in its first line does not exist"
        where = "does not exist" if os.sep in command else "is not found in PATH"
        return f"command: {command!r} {where}"
    if error.errno == errno.EACCES:
        if cwd is not None and not os.access(cwd, os.X_OK):
            return f"cwd: {cwd!r} may not be entered"
        return f"command: {command!r} is not executable"
    if error.errno == errno.ENOEXEC:
        return f"command: {command!r} is no program (a script needs a #! line)"
    return f"command: {command!r} could not be started: {error.strerror or error}"


async def _wait_exit(process: trio.Process) -> None:
    """Wait until the leader is a zombie, without reaping it."""
    if hasattr(os, "pidfd_open"):
        try:
            pidfd = os.pidfd_open(process.pid)
        except OSError:
            pass  # an old kernel or a sandbox
        else:
            try:
                await trio.lowlevel.wait_readable(pidfd)
            finally:
                trio.lowlevel.notify_closing(pidfd)
                os.close(pidfd)
            return
    if hasattr(os, "waitid"):
        # Cancelled: the thread is abandoned; it ends when the process does, without an effect.
        await trio.to_thread.run_sync(
            os.waitid, os.P_PID, process.pid, os.WEXITED | os.WNOWAIT, abandon_on_cancel=True, limiter=_waiters()
        )
        return
    # macOS before Python 3.13; trio has it, and no public name for it.
    from trio._subprocess_platform import wait_child_exiting  # pyright: ignore[reportPrivateImportUsage]

    await wait_child_exiting(process)


_limiter: trio.lowlevel.RunVar[trio.CapacityLimiter] = trio.lowlevel.RunVar("exit waiters")


def _waiters() -> trio.CapacityLimiter:
    """An own limiter: one waiting thread per server must not use up the threads that others need."""
    try:
        return _limiter.get()
    except LookupError:
        limiter = trio.CapacityLimiter(1_000_000)
        _limiter.set(limiter)
        return limiter
