"""A server process on Windows, and everything it started: a job object owns them.

Written to Microsoft's documentation; not run by us: no machine of ours runs Windows. What it decides is tested with a played
kernel, and with real processes of another system behind it.

Theory of operation. A job object is what the watcher and its reapers are elsewhere: all that a process in it starts is in it,
nothing can leave it (no breakaway is allowed), and it is killed as one. Each server has its own. Only the host has a handle to
it, which nobody inherits. The kernel closes it when the host ends, however it ends, and kills what is in it with the last one.

    state      leader      job                                what the host does
    born       suspended   made, limited; then it is in it    assigns it, then lets it run
    running    lives       full                               watches it
    exited     dead        being killed                       `exited` is set; it counts what is left
    gone       dead        empty; its handle closed           `gone` is set

The leader is started suspended and put into the job before its first instruction, so nothing can be started outside it. Python
closes the handle of its first thread, so that thread is looked up and opened again. What remains: a host killed between start
and assignment leaves a process that never runs. The other ways: to give the job to CreateProcess itself
(PROC_THREAD_ATTRIBUTE_JOB_LIST), which Python's cannot pass on; and a job around the host, which would catch the embedder's
other children too.

A server has a console of its own without a window (it cannot write over the host's terminal, nor take its Ctrl-C). Ctrl-Break
reaches only who shares a console with its sender, so a small process, for a moment in the server's console, sends it.
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any

import trio

from .process import EOF_GRACE, KILL_GRACE, TERM_GRACE, Stuck
from .spawn import SpawnFailed
from .windows_command import environment
from .windows_system import System, Windows

__all__ = ["WindowsProcess", "start"]

_REASONS = {
    193: "is no program that this Windows can run",  # ERROR_BAD_EXE_FORMAT
    216: "is no program that this Windows can run",  # ERROR_EXE_MACHINE_TYPE_MISMATCH
    740: "has to be run as administrator",  # ERROR_ELEVATION_REQUIRED
}
"""By ``winerror``: where the system's own words would be about ``%1``, or unclear."""

FIRST_PAUSE, LONGEST_PAUSE = 0.001, 0.5  # seconds between two counts of what is left


class WindowsProcess:
    """A started server, as `process.ServerProcess`. Made by `start`; its maker runs `watch`, until `gone`.

    Attributes:
        pid: of the leader, and the id of its group.
        stdin, stdout, stderr: our ends of its pipes.
        exited: set when the leader is dead, and the rest of its job is being killed.
        gone: set when nothing that it started is left, either.
        returncode: the exit code, 0 to 2³²-1; None until `exited`.
    """

    def __init__(self, process: trio.Process, job: int, system: System) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        assert process.stderr is not None
        self._process = process
        self._job = job
        self._system = system
        self.pid = process.pid
        self.stdin: trio.abc.SendStream = process.stdin
        self.stdout: trio.abc.ReceiveStream = process.stdout
        self.stderr: trio.abc.ReceiveStream = process.stderr
        self.exited = trio.Event()
        self.gone = trio.Event()
        self.on_exited: Callable[[], None] = lambda: None
        self.returncode: int | None = None

    async def watch(self) -> None:
        """As `ServerProcess.watch`."""
        code = await self._process.wait()
        if self.gone.is_set():
            return
        self.kill()
        self.returncode = code
        self.exited.set()
        self.on_exited()
        pause = FIRST_PAUSE
        while self._left():
            await trio.sleep(pause)
            pause = min(2 * pause, LONGEST_PAUSE)
        _close_job(self._system, self._job)
        self.gone.set()

    async def bury(self) -> None:
        """As `ServerProcess.bury`; the kernel ends the job when the program does."""
        await self.watch()

    def _left(self) -> int:
        try:
            return self._system.jobs.active(self._job)
        except OSError:
            return 0  # it cannot be counted: closing the job kills it too

    def kill(self) -> None:
        """Have everything killed."""
        if not self.gone.is_set():
            with contextlib.suppress(OSError):
                self._system.jobs.terminate(self._job)

    async def stop(self, *, grace: bool = True) -> None:
        """As `ServerProcess.stop`, with Ctrl-Break for SIGTERM and the job's end for SIGKILL.

        Raises:
            Stuck: something lives on; `watch` must go on, or be run again, until it ends.
        """
        with trio.CancelScope(shield=True):
            _close(self.stdin)
            if grace:
                with trio.move_on_after(EOF_GRACE):
                    await self.gone.wait()
                with trio.move_on_after(TERM_GRACE):
                    if not self.exited.is_set():
                        with contextlib.suppress(OSError):
                            await self._system.send_break(self.pid)
                    await self.gone.wait()
            self.kill()
            with trio.move_on_after(KILL_GRACE):
                await self.gone.wait()
        if not self.gone.is_set():
            raise Stuck(
                f"process {self.pid}, or one that it started, did not end within {KILL_GRACE:g} s of its job's end"
            )

    def close_pipes(self) -> None:
        """Close our ends; whoever reads or writes them is woken."""
        for stream in (self.stdin, self.stdout, self.stderr):
            _close(stream)

    def unread_stdin(self) -> int | None:
        """None: how much of its stdin the server has not read cannot be told here."""
        return None

    def how_it_ended(self) -> str:
        """In words: ``exited with code 1``, ``exited with code 3221225477 (0xC0000005)``."""
        code = self.returncode
        if code is None:
            return "is still running"
        # Above are the system's own: NTSTATUS values of severity "error", which are known by their hexadecimal form.
        return f"exited with code {code}" + (f" (0x{code:08X})" if code >= 0xC0000000 else "")


async def start(
    command: str, args: Sequence[str], *, env: Mapping[str, str], cwd: str | None, system: System | None = None
) -> WindowsProcess:
    """Start a server with three pipes, in a job of its own. When it returns, the process runs and the caller owns it.

    Cancelled, it first ends what it has begun, which takes 2 s at most.

    Args:
        command: a path, or a name looked up in the PATH of ``env`` (see `windows_command`).
        args: without the command.
        env: the whole environment of the child.
        cwd: its working folder; None = ours.
        system: another one than `Windows`, for a test.

    Raises:
        SpawnFailed: the command is not found or not executable, the folder is missing, or the system refused.
    """
    folder = _folder(cwd)
    variables = environment(env)
    job: int | None = None
    process: trio.Process | None = None
    try:
        system = system or Windows()
        program = system.find(command, args, variables, folder)
        job = system.jobs.create_job()
        process = await system.open_process(program, variables, folder)
        system.jobs.assign(job, process.pid)
        await trio.to_thread.run_sync(system.jobs.resume, process.pid)
    except BaseException as error:
        if process is not None:
            await _undo(process)
        if system is not None and job is not None:
            _close_job(system, job)
        if isinstance(error, OSError):
            raise SpawnFailed(
                f"command: {command!r} {_reason(error)}", getattr(error, "winerror", 0) in _REASONS
            ) from error
        raise
    return WindowsProcess(process, job, system)


def _folder(cwd: str | None) -> str:
    folder = Path(cwd or "").absolute()
    if cwd is not None and not folder.is_dir():
        raise SpawnFailed(f"cwd: {cwd!r} {'is not a folder' if folder.exists() else 'does not exist'}")
    return str(folder)


def _reason(error: OSError) -> str:
    known = _REASONS.get(getattr(error, "winerror", 0))
    return known or f"could not be started: {error.strerror or error}"


async def _undo(process: trio.Process) -> None:
    """End a leader that has started nothing."""
    with contextlib.suppress(OSError):
        process.kill()
    for stream in (process.stdin, process.stdout, process.stderr):
        _close(stream)
    with trio.move_on_after(KILL_GRACE, shield=True):
        await process.wait()


def _close_job(system: System, job: int) -> None:
    with contextlib.suppress(OSError):
        system.jobs.close(job)


def _close(stream: Any) -> None:
    stream.close()  # trio's pipes have it on every system; its types do not say so
