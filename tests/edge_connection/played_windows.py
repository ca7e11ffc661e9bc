"""A Windows that is played, for tests on other systems: real processes behind the calls of a `windows_system.System`.

A job is the set of what lives in the sessions of its processes; a suspended process is one that stopped itself before it
executed the server; Ctrl-Break is SIGTERM to the group. Everything that is called is written down.
"""

from __future__ import annotations

import os
import shlex
import shutil
import signal
import subprocess
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path

import trio
from playbill.actors.edge.wire.windows_command import Program

_STOPPED_FIRST = 'kill -STOP $$; exec "$@"'


def session_of(pid: int) -> list[int]:
    """What lives in the session that a process leads (or led)."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            state, _, _, session = (folder / "stat").read_text().rpartition(")")[2].split()[:4]
            if int(session) == pid and state != "Z":
                found.append(int(folder.name))
    return found


class PlayedJobs:
    """As `windows_system.Jobs`.

    Args:
        fails: names of calls that the system refuses.
    """

    def __init__(self, fails: Sequence[str] = ()) -> None:
        self.fails = set(fails)
        self.said: list[str] = []
        self.jobs: dict[int, list[int]] = {}
        self.before_it_runs: list[bool] = []
        """For each process put into a job: whether it was still suspended."""

    def create_job(self) -> int:
        self._say("create_job")
        job = 100 + len(self.said)
        self.jobs[job] = []
        return job

    def assign(self, job: int, pid: int) -> None:
        self._say("assign")
        ended = os.waitid(os.P_PID, pid, os.WSTOPPED | os.WNOWAIT | os.WEXITED)
        self.before_it_runs.append(ended is not None and ended.si_status == signal.SIGSTOP)
        self.jobs[job].append(pid)

    def resume(self, pid: int) -> None:
        self._say("resume")
        os.kill(pid, signal.SIGCONT)

    def terminate(self, job: int) -> None:
        self._say("terminate")
        self._kill(job)

    def active(self, job: int) -> int:
        self._say("active")
        return sum(len(session_of(pid)) for pid in self.jobs[job])

    def close(self, handle: int) -> None:
        self._say("close")
        self._kill(handle)
        del self.jobs[handle]

    def order(self) -> list[str]:
        """What was called, one word for the same call again and again."""
        return [word for at, word in enumerate(self.said) if at == 0 or self.said[at - 1] != word]

    def _kill(self, job: int) -> None:
        for leader in self.jobs[job]:
            for pid in session_of(leader):
                with suppress(ProcessLookupError):
                    os.kill(pid, signal.SIGKILL)

    def _say(self, word: str) -> None:
        self.said.append(word)
        if word in self.fails:
            raise PermissionError(13, f"{word} is refused")


class PlayedWindows:
    """As `windows.System`."""

    def __init__(self, fails: Sequence[str] = ()) -> None:
        self.jobs = PlayedJobs(fails)
        self.processes: list[trio.Process] = []

    def find(self, command: str, args: Sequence[str], env: Mapping[str, str], cwd: str) -> Program:
        return Program(shutil.which(command, path=env.get("PATH")) or command, shlex.join([command, *args]))

    async def open_process(self, program: Program, env: Mapping[str, str], cwd: str) -> trio.Process:
        self.jobs._say("open_process")
        process = await trio.lowlevel.open_process(
            ["/bin/sh", "-c", _STOPPED_FIRST, "sh", program.file, *shlex.split(program.line)[1:]],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            cwd=cwd,
            start_new_session=True,
        )
        self.processes.append(process)
        return process

    async def send_break(self, pid: int) -> None:
        self.jobs._say("send_break")
        os.killpg(pid, signal.SIGTERM)
        await trio.lowlevel.checkpoint()
