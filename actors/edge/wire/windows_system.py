"""Starting a process on Windows: suspended, with pipes that trio can wait for; and Ctrl-Break to a console that is not ours.

Written to Microsoft's documentation ("Process Creation Flags", "Console Process Groups", ``AttachConsole``); not run by us.
"""

from __future__ import annotations

import ntpath
import os
import subprocess
import sys
from collections.abc import Mapping, Sequence
from typing import Any, Protocol

import trio

from .windows_command import Program, resolve
from .windows_jobs import kernel32

__all__ = ["Jobs", "System", "Windows"]

CREATE_SUSPENDED = 0x00000004
CREATE_NEW_PROCESS_GROUP = 0x00000200
CREATE_NO_WINDOW = 0x08000000

_BREAK = (
    "import ctypes, sys\n"
    "pid = int(sys.argv[1])\n"
    "kernel = ctypes.WinDLL('kernel32')\n"
    "kernel.FreeConsole()\n"
    "if kernel.AttachConsole(pid):\n"
    "    kernel.GenerateConsoleCtrlEvent(1, pid)\n"  # CTRL_BREAK_EVENT, to the group that the server leads
)


class Jobs(Protocol):
    """What of `Kernel32` is used."""

    def create_job(self) -> int:
        """As there, and so on."""
        ...

    def assign(self, job: int, pid: int) -> None:
        """Put a process into a job."""
        ...

    def resume(self, pid: int) -> None:
        """Let a process run that was started suspended."""
        ...

    def terminate(self, job: int) -> None:
        """Kill everything in a job."""
        ...

    def active(self, job: int) -> int:
        """How many processes live in a job."""
        ...

    def close(self, handle: int) -> None:
        """Close a handle."""
        ...


class System(Protocol):
    """What a server is started with: `Windows`, or a test's."""

    @property
    def jobs(self) -> Jobs:
        """Its job objects."""
        ...

    def find(self, command: str, args: Sequence[str], env: Mapping[str, str], cwd: str) -> Program:
        """As `resolve`."""
        ...

    async def open_process(self, program: Program, env: Mapping[str, str], cwd: str) -> trio.Process:
        """Start it suspended, with three pipes; raises `OSError`. Returns, or nothing was started."""
        ...

    async def send_break(self, pid: int) -> None:
        """Send Ctrl-Break to the group of a server; raises `OSError`."""
        ...


class Windows:
    """The real `System`."""

    def __init__(self) -> None:
        self.jobs: Jobs = kernel32()

    def find(self, command: str, args: Sequence[str], env: Mapping[str, str], cwd: str) -> Program:
        """As `resolve`."""
        root = os.environ.get("SYSTEMROOT", r"C:\Windows")
        return resolve(command, args, env=env, cwd=cwd, is_file=ntpath.isfile, system_root=root)

    async def open_process(self, program: Program, env: Mapping[str, str], cwd: str) -> trio.Process:
        """As `System.open_process`."""
        # Pipes redirected with close_fds (the default) let a child inherit its three ends and nothing else.
        return await trio.lowlevel.open_process(
            program.line,
            executable=program.file,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=dict(env),
            cwd=cwd,
            **_flags(CREATE_SUSPENDED | CREATE_NEW_PROCESS_GROUP | CREATE_NO_WINDOW),
        )

    async def send_break(self, pid: int) -> None:
        """As `System.send_break`; nothing happens when we are not run by a Python that could be started again."""
        if not ntpath.basename(sys.executable or "").lower().startswith("python"):
            await trio.lowlevel.checkpoint()
            return
        await trio.run_process(
            [sys.executable, "-I", "-S", "-c", _BREAK, str(pid)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
            check=False,
            **_flags(CREATE_NO_WINDOW),
        )


def _flags(number: int) -> dict[str, Any]:
    return {"creationflags": number}
