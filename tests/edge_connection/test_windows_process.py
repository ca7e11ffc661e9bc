"""A server process on Windows, on a played one: in its job before it runs, and nothing of it is left however it ends.

The processes are real, and end for real; what is played is the part of Windows that owns them (see `played_windows`).
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
import trio
import trio.testing
from playbill.actors.edge.wire import stdio, windows
from playbill.actors.edge.wire.bridge import SdkPipes
from playbill.actors.edge.wire.process import Stuck
from playbill.actors.edge.wire.spawn import SpawnFailed
from playbill.actors.edge.wire.windows import WindowsProcess, start
from playbill.actors.model.config import ServerEntry
from playbill.actors.ports import ConnectionFailed, ConnectionLost

from .conftest import Connector
from .played_windows import PlayedWindows, session_of

Fake = Callable[..., ServerEntry]
Patience = Callable[[], Any]


def environment(mark: str) -> dict[str, str]:
    key, _, value = mark.partition("=")
    return {**os.environ, key: value}


@asynccontextmanager
async def running(code: str, mark: str, system: PlayedWindows) -> AsyncIterator[WindowsProcess]:
    async with trio.open_nursery() as nursery:
        args = ["-I", "-S", "-c", code]
        process = await start(sys.executable, args, env=environment(mark), cwd=None, system=system)
        nursery.start_soon(process.watch)
        try:
            yield process
        finally:
            await process.stop(grace=False)
            process.close_pipes()


async def line_of(process: WindowsProcess) -> str:
    data = b""
    while not data.endswith(b"\n"):
        more = await process.stdout.receive_some(1000)
        assert more, "it ended without a line"
        data += more
    return data.decode().strip()


DEAF = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); "
WAIT = "import time; print(1, flush=True); time.sleep(99)"
GRANDCHILD = (
    "import subprocess, sys\n"
    f"code = {DEAF + WAIT!r}\n"
    "child = subprocess.Popen([sys.executable, '-I', '-S', '-c', code], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)\n"
    "child.stdout.readline()\n"
    "print(child.pid, flush=True)\n"
)


async def test_it_is_in_its_job_before_it_runs_and_the_job_is_closed_last(mark: str) -> None:
    system = PlayedWindows()
    async with running("import sys; print(1, flush=True); sys.stdin.read(); sys.exit(3)", mark, system) as process:
        assert system.jobs.said == ["create_job", "open_process", "assign", "resume"]
        assert system.jobs.before_it_runs == [True]
        await line_of(process)
        await process.stop()
        assert process.returncode == 3
        assert process.how_it_ended() == "exited with code 3"
    assert system.jobs.order()[4:] == ["terminate", "active", "close"]
    assert system.jobs.jobs == {}


async def test_stop_goes_on_to_ctrl_break(mark: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "EOF_GRACE", 0.05)
    system = PlayedWindows()
    async with running(WAIT, mark, system) as process:
        await line_of(process)
        await process.stop()
    assert system.jobs.order()[4:] == ["send_break", "terminate", "active", "close"]


async def test_stop_goes_on_to_the_end_of_the_job(mark: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "EOF_GRACE", 0.05)
    monkeypatch.setattr(windows, "TERM_GRACE", 0.05)
    system = PlayedWindows()
    async with running(DEAF + WAIT, mark, system) as process:
        await line_of(process)
        await process.stop()
        assert process.gone.is_set()
    assert system.jobs.order()[4:6] == ["send_break", "terminate"]
    assert system.jobs.said[-1] == "close"


async def test_a_ctrl_break_that_cannot_be_sent_changes_nothing(mark: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(windows, "EOF_GRACE", 0.05)
    monkeypatch.setattr(windows, "TERM_GRACE", 0.05)
    system = PlayedWindows(fails=["send_break"])
    async with running(WAIT, mark, system) as process:
        await line_of(process)
        await process.stop()
        assert process.gone.is_set()


async def test_stop_without_grace_kills_at_once(mark: str) -> None:
    system = PlayedWindows()
    async with running(WAIT, mark, system) as process:
        await line_of(process)
        await process.stop(grace=False)
        assert process.gone.is_set()
    assert "send_break" not in system.jobs.said


async def test_stop_cannot_be_cancelled(mark: str) -> None:
    async with running("import sys; sys.stdin.read(); sys.exit(4)", mark, PlayedWindows()) as process:
        with trio.CancelScope() as scope:
            scope.cancel()
            await process.stop()
        assert process.returncode == 4


async def test_what_it_started_ends_with_it(mark: str, patience: Patience) -> None:
    async with running(GRANDCHILD, mark, PlayedWindows()) as process:
        with patience():
            assert int(await line_of(process)) in session_of(process.pid)
            await process.gone.wait()
        assert session_of(process.pid) == []


@pytest.mark.parametrize("call", ["create_job", "open_process", "assign", "resume"])
async def test_what_the_system_refuses_is_one_line_and_nothing_is_left(mark: str, call: str, tmp_path: Path) -> None:
    system = PlayedWindows(fails=[call])
    trace = tmp_path / "it ran"
    before = os.listdir("/proc/self/fd")
    args = ["-I", "-S", "-c", f"open({str(trace)!r}, 'w')"]
    with pytest.raises(SpawnFailed) as caught:
        await start(sys.executable, args, env=environment(mark), cwd=None, system=system)
    assert str(caught.value) == f"command: {sys.executable!r} could not be started: {call} is refused"
    assert system.jobs.jobs == {}
    assert system.jobs.said[-1] == ("create_job" if call == "create_job" else "close")
    assert [process.returncode for process in system.processes] == [-9] * len(system.processes)
    assert os.listdir("/proc/self/fd") == before
    assert not trace.exists()


async def test_a_cancelled_start_leaves_nothing(mark: str) -> None:
    with trio.CancelScope() as scope:

        class Cancelling(PlayedWindows):
            async def open_process(self, *args: Any) -> trio.Process:
                process = await super().open_process(*args)
                scope.cancel()
                return process

        system = Cancelling()
        await start(sys.executable, ["-c", ""], env=environment(mark), cwd=None, system=system)
    assert scope.cancelled_caught
    assert system.jobs.said == ["create_job", "open_process", "assign", "close"]
    assert system.processes[0].returncode == -9


@pytest.mark.parametrize(
    ("number", "line"),
    [(193, "is no program that this Windows can run"), (740, "has to be run as administrator")],
)
async def test_a_refusal_that_windows_words_badly_is_said_clearly(mark: str, number: int, line: str) -> None:
    class Refusing(PlayedWindows):
        async def open_process(self, *_: Any) -> trio.Process:
            error = OSError(8, "%1 is not a valid Win32 application")
            error.winerror = number  # type: ignore[attr-defined, unused-ignore]
            raise error

    with pytest.raises(SpawnFailed) as caught:
        await start("x", [], env=environment(mark), cwd=None, system=Refusing())
    assert str(caught.value) == f"command: 'x' {line}"


async def test_a_wrong_folder_or_variable_is_named_before_anything_is_made(tmp_path: Path) -> None:
    file = tmp_path / "file"
    file.touch()
    system = PlayedWindows()
    for env, cwd, line in [
        ({}, str(tmp_path / "none"), f"cwd: {str(tmp_path / 'none')!r} does not exist"),
        ({}, str(file), f"cwd: {str(file)!r} is not a folder"),
        ({"A=B": "x"}, None, "env: a variable cannot be named 'A=B'"),
    ]:
        with pytest.raises(SpawnFailed) as caught:
            await start("x", [], env=env, cwd=cwd, system=system)
        assert str(caught.value) == line
    assert system.jobs.said == []


# What must be exact: the counting, without processes and in virtual time.


class Told:
    """A process that ends when it is told, and a job that counts down."""

    def __init__(self, counts: list[int], code: int = 1) -> None:
        self.counts = counts
        self.code = code
        self.ended = trio.Event()
        self.said: list[str] = []
        self.jobs: Any = self
        self.pid = 7
        self.stdin = self.stdout = self.stderr = SimpleNamespace(close=lambda: None)

    async def wait(self) -> int:
        await self.ended.wait()
        return self.code

    async def send_break(self, pid: int) -> None:
        self.said.append("send_break")
        await trio.sleep_forever()

    def terminate(self, job: int) -> None:
        self.said.append("terminate")
        self.ended.set()

    def active(self, job: int) -> int:
        self.said.append("active")
        if not self.counts:
            raise OSError(6, "no such handle")
        return self.counts.pop(0) if len(self.counts) > 1 else self.counts[0]

    def close(self, handle: int) -> None:
        self.said.append("close")


def told(system: Told) -> WindowsProcess:
    process: Any = system
    return WindowsProcess(process, 1, process)


async def test_it_is_gone_when_its_job_is_empty_and_not_before(autojump_clock: trio.testing.MockClock) -> None:
    system = Told([3, 3, 1, 0])
    process = told(system)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(process.watch)
        system.ended.set()
        await process.exited.wait()
        assert not process.gone.is_set()
    assert system.said == ["terminate", "active", "active", "active", "active", "close"]
    assert process.gone.is_set()
    await process.watch()  # again, which does nothing
    process.kill()
    assert system.said[-1] == "close"


async def test_what_does_not_end_is_told_and_watched_on(autojump_clock: trio.testing.MockClock) -> None:
    system = Told([2])
    process = told(system)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(process.watch)
        begun = trio.current_time()
        with pytest.raises(Stuck, match="process 7, or one that it started, did not end within 2 s"):
            await process.stop()
        # Virtual: also a Ctrl-Break that hangs is given up.
        assert trio.current_time() - begun == pytest.approx(windows.EOF_GRACE + windows.TERM_GRACE + windows.KILL_GRACE)
        assert process.exited.is_set()
        assert len(system.said) < 30  # counted ever more seldom
        system.counts[:] = [0]
    assert process.gone.is_set()
    assert system.said[-1] == "close"


async def test_a_job_that_cannot_be_counted_is_closed(autojump_clock: trio.testing.MockClock) -> None:
    system = Told([])
    process = told(system)
    system.ended.set()
    with trio.fail_after(60):
        await process.watch()
    assert system.said == ["terminate", "active", "close"]
    assert process.gone.is_set()


@pytest.mark.parametrize(
    ("code", "words"),
    [
        (0, "exited with code 0"),
        (0xC0000005, "exited with code 3221225477 (0xC0000005)"),
        (0xC000013A, "exited with code 3221225786 (0xC000013A)"),
    ],
)
async def test_how_it_ended_in_words(code: int, words: str, autojump_clock: trio.testing.MockClock) -> None:
    system = Told([0], code)
    process = told(system)
    assert process.how_it_ended() == "is still running"
    system.ended.set()
    await process.watch()
    assert process.how_it_ended() == words
    assert process.unread_stdin() is None


# The whole path, from entry to nothing.


@pytest.fixture
def played(monkeypatch: pytest.MonkeyPatch) -> PlayedWindows:
    system = PlayedWindows()
    monkeypatch.setattr(stdio, "sys", SimpleNamespace(platform="win32"))
    monkeypatch.setattr(windows, "Windows", lambda: system)
    return system


@pytest.mark.parametrize(("era", "version"), [("legacy", "2025-11-25"), ("modern", "2026-07-28")])
async def test_a_server_lists_and_answers_over_the_sdk_dispatcher(
    fake: Fake,
    connect: Connector,
    patience: Patience,
    played: PlayedWindows,
    monkeypatch: pytest.MonkeyPatch,
    era: str,
    version: str,
) -> None:
    made = []
    monkeypatch.setattr(SdkPipes, "__init__", _noting(SdkPipes.__init__, made))
    with patience():
        async with connect(fake(era=era), dispatcher="native") as connection:
            assert connection.protocol_version == version
            assert [tool.bare for tool in (await connection.list_tools()).tools] == ["echo", "pid", "fault"]
            result = await connection.call_tool("echo", {"a": [1, "é"]}, None)
            assert json.loads(result.content[0].text) == {"a": [1, "é"]}
    assert len(made) == 1
    assert played.jobs.order()[:4] == ["create_job", "open_process", "assign", "resume"]
    assert played.jobs.said[-1] == "close"


def _noting(init: Callable[..., None], made: list[Any]) -> Callable[..., None]:
    def noting(self: Any, *args: Any, **settings: Any) -> None:
        made.append(self)
        init(self, *args, **settings)

    return noting


async def test_a_death_is_told_with_its_last_words(
    fake: Fake, connect: Connector, patience: Patience, played: PlayedWindows
) -> None:
    with patience(), pytest.raises(ConnectionFailed, match="exited with code 3: no licence") as caught:
        async with connect(fake(say="no licence", exit_at_once=3)):
            raise AssertionError("it is dead")
    assert caught.value.stderr_tail == "no licence\n"
    assert played.jobs.jobs == {}


async def test_a_call_ends_when_its_server_is_killed(
    fake: Fake, connect: Connector, patience: Patience, played: PlayedWindows
) -> None:
    with patience():
        async with connect(fake()) as connection:
            played.jobs.terminate(next(iter(played.jobs.jobs)))
            with pytest.raises(ConnectionLost):
                await connection.call_tool("echo", {}, None)
