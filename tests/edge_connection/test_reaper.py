"""What a reaper signals, in which order, and what is left to it on lesser systems. Real processes; the watcher is watched."""

from __future__ import annotations

import functools
import os
import signal
import socket
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import pytest
import trio
import trio.testing
from playbill.actors.edge.wire import warden as warden_module
from playbill.actors.edge.wire import watcher
from playbill.actors.edge.wire.control import Control
from playbill.actors.edge.wire.process import ServerProcess
from playbill.actors.edge.wire.spawn import SpawnFailed, _ask, spawn
from playbill.actors.edge.wire.warden import HANGS_AFTER, Warden, Watcher, open_warden

from ..processes import marked

ODD = str(Path(__file__).with_name("odd_watcher.py"))

DAEMON = textwrap.dedent("""
    import os, signal, subprocess, sys, time
    read, write = os.pipe()
    if not os.fork():
        os.setsid()
        if not os.fork():
            if os.fork():
                time.sleep(99)
            os.setsid()
            os.write(write, b"%d %d" % (os.getppid(), os.getpid()))
            time.sleep(99)
        os._exit(0)
    os.wait()
    stubborn = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(99)"
    child = subprocess.Popen([sys.executable, "-I", "-S", "-c", stubborn], stdin=subprocess.DEVNULL, stdout=subprocess.PIPE)
    child.stdout.readline()
    print(os.read(read, 30).decode(), child.pid, flush=True)
""")
"""A server with a daemon that left its session and has a child in another one, and a child that ignores SIGTERM."""

CHAIN = textwrap.dedent("""
    import os, sys, time
    for _ in range(3):
        if not os.fork():
            while True:  # each goes on in a child, in a session of its own
                os.setsid()
                if os.fork():
                    os._exit(0)
    print(1, 1, flush=True)
    sys.stdin.read()
""")


class Odd:
    """Opens wardens whose watcher is odd."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, log: Path) -> None:
        self._monkeypatch = monkeypatch
        self._log = log

    def use(self, *options: str) -> None:
        [path] = warden_module._program()
        self._monkeypatch.setattr(warden_module, "_program", lambda: [ODD, path, str(self._log), ",".join(options)])

    def has(self, what: str) -> bool:
        return self._log.exists() and what in self._log.read_text()

    def let_go(self) -> None:
        self._log.with_name(self._log.name + ".go").touch()

    def log(self) -> list[tuple[str, int]]:
        return [(what, int(pid)) for what, pid in map(str.split, self._log.read_text().splitlines())]


@pytest.fixture
def odd(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Odd:
    return Odd(monkeypatch, tmp_path / "log")


@asynccontextmanager
async def running(warden: Warden, code: str, mark: str) -> AsyncIterator[tuple[ServerProcess, list[int]]]:
    key, _, value = mark.partition("=")
    env = {**os.environ, key: value}
    process = await spawn(sys.executable, ["-I", "-S", "-c", code], env=env, cwd=None, warden=warden)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(process.watch)
        try:
            yield process, [int(each) for each in (await process.stdout.receive_some(100)).split()]
        finally:
            await process.stop(grace=False)
            process.close_pipes()


async def ended(process: ServerProcess) -> None:
    with trio.fail_after(10):
        await process.gone.wait()


@pytest.mark.parametrize("how", ["exits", "is killed", "is stopped"])
async def test_no_group_is_signalled_once_its_leader_is_reaped(mark: str, odd: Odd, how: str) -> None:
    odd.use()
    code = DAEMON + ("" if how == "exits" else "sys.stdin.read()")
    async with open_warden() as warden:
        async with running(warden, code, mark) as (process, _):
            if how == "is killed":
                os.kill(process.pid, signal.SIGKILL)
            if how == "is stopped":
                await process.stop()
            await ended(process)
        log = odd.log()
    reaped: set[int] = set()
    groups = 0
    for what, pid in log:
        if what == "reaped":
            reaped.add(pid)
        else:
            assert pid not in reaped, f"{what} {pid} was signalled after it was reaped"
            groups += what == "group"
    assert process.pid in reaped
    assert groups


@pytest.mark.parametrize("options", [("no_pidfd",), ("old_kernel",), ("no_lists",), ("no_lists", "no_pidfd")])
async def test_all_that_descends_from_a_server_ends_also_on_lesser_systems(
    mark: str, odd: Odd, options: tuple[str, ...]
) -> None:
    odd.use(*options)
    async with open_warden() as warden:
        async with running(warden, DAEMON, mark) as (process, pids):
            await ended(process)
            assert not [pid for pid in pids if Path(f"/proc/{pid}").exists()]
            assert process.returncode == 0
        if "no_lists" not in options:  # searching all of /proc, it is outrun
            async with running(warden, CHAIN, mark) as (process, _):
                os.kill(process.pid, signal.SIGKILL)
                await ended(process)
                assert not marked(mark)


async def test_without_subreapers_the_group_still_ends(mark: str, odd: Odd) -> None:
    odd.use("no_subreaper")
    async with open_warden() as warden, running(warden, DAEMON, mark) as (process, [*daemons, child]):
        await ended(process)
        with trio.fail_after(10):
            while Path(f"/proc/{child}").exists() and Path(f"/proc/{child}/stat").read_text().split()[2] != "Z":
                await trio.sleep(0.01)
        for daemon in daemons:  # they are nobody's there
            os.kill(daemon, signal.SIGKILL)
        with trio.fail_after(10):
            while marked(mark):
                await trio.sleep(0.01)


async def given_up_at(what: str, odd: Odd, warden: Warden, command: list[str], env: dict[str, str]) -> list[str]:
    """Begin a start, cancel it when its reaper has come to that, let it go on; the log when the caller goes on."""
    log: list[str] = []
    async with trio.open_nursery() as nursery:
        scope = trio.CancelScope()

        async def start() -> None:
            with scope:
                await spawn(command[0], command[1:], env=env, cwd=None, warden=warden)
            log.extend(word for word, _ in odd.log())

        nursery.start_soon(start)
        with trio.fail_after(10):
            while not odd.has(what):
                await trio.sleep(0.005)
        scope.cancel()
        await trio.testing.wait_all_tasks_blocked()  # it has told its reaper
        odd.let_go()
    return log


async def test_a_start_that_is_cancelled_while_it_executes_is_waited_for_and_leaves_nothing(
    mark: str, odd: Odd
) -> None:
    odd.use("slow_exec")
    key, _, value = mark.partition("=")
    async with open_warden() as warden:
        log = await given_up_at("executes", odd, warden, ["sleep", "99"], {**os.environ, key: value})
        assert "reaped" in log  # it was executed, and was over when the caller went on
        assert not marked(mark)


async def test_a_start_that_is_given_up_before_it_executes_never_runs(mark: str, odd: Odd, tmp_path: Path) -> None:
    odd.use("slow_chdir")
    async with open_warden() as warden:
        log = await given_up_at("enters", odd, warden, ["touch", str(tmp_path / "ran")], dict(os.environ))
    assert "group" not in log
    assert not (tmp_path / "ran").exists()


async def test_a_system_that_cannot_start_sessions_is_told(odd: Odd) -> None:
    odd.use("no_setsid")
    async with open_warden() as warden:
        with pytest.raises(SpawnFailed, match=r"^command: 'true' could not be started: Function not implemented$"):
            await spawn("true", [], env=dict(os.environ), cwd=None, warden=warden)


async def test_the_end_of_a_control_socket_is_seen_though_a_fork_has_it_open() -> None:
    end, far_end = socket.socketpair()
    fork = end.dup()
    with far_end, fork:
        Control(end).close()
        far_end.setblocking(False)
        assert far_end.recv(1) == b""


async def test_only_the_watcher_that_is_asked_can_be_retired() -> None:
    async with open_warden() as warden:
        first = await warden.hand_over([])
        warden.retire(first)
        second = await warden.hand_over([])
        warden.retire(first)
        assert await warden.hand_over([]) is second


class SlowControl(Control):
    """Its reaper says that it begins, and at long last that it is done."""

    def __init__(self) -> None:
        self._words = iter([("starting", 0), ("started 7", 9 * HANGS_AFTER)])

    async def send(self, data: bytes) -> None:
        await trio.lowlevel.checkpoint()

    async def line(self) -> str:
        word, seconds = next(self._words)
        await trio.sleep(seconds)
        return word


async def test_a_server_that_takes_long_to_execute_is_waited_for(autojump_clock: object) -> None:
    watcher = Watcher(cast(Any, None), cast(Any, None))
    assert await _ask(SlowControl(), b"", watcher) == "started 7"


async def test_a_busy_watcher_is_not_taken_for_hung_while_any_of_its_reapers_speaks(autojump_clock: object) -> None:
    start = trio.current_time()

    async def after(seconds: float) -> str:
        await trio.sleep_until(start + seconds)
        return "starting"

    watcher = Watcher(cast(Any, None), cast(Any, None))
    async with trio.open_nursery() as nursery:
        for number in range(1, 4):
            nursery.start_soon(watcher.heard, functools.partial(after, number * 0.9 * HANGS_AFTER))
        assert await watcher.heard(functools.partial(after, 3 * HANGS_AFTER)) == "starting"
    hung = functools.partial(after, 99 * HANGS_AFTER)
    assert await watcher.heard(hung) == ""


HOST = textwrap.dedent("""
    import os, sys, time
    import trio
    from playbill.actors.edge.wire.spawn import spawn
    from playbill.actors.edge.wire.warden import open_warden

    async def main():
        async with open_warden() as warden:
            process = await spawn("sleep", ["98"], env=dict(os.environ), cwd=None, warden=warden)
            fork = os.fork()
            if not fork:
                time.sleep(99)
                os._exit(0)
            print(process.pid, fork, flush=True)
            await trio.sleep_forever()

    trio.run(main)
""")


async def test_the_death_of_a_host_is_noticed_though_a_fork_of_it_holds_its_sockets_open(mark: str) -> None:
    key, _, value = mark.partition("=")
    with subprocess.Popen(
        [sys.executable, "-c", HOST], env={**os.environ, key: value}, stdout=subprocess.PIPE, start_new_session=True
    ) as host:
        assert host.stdout is not None
        server, fork = map(int, (await trio.to_thread.run_sync(host.stdout.readline)).split())
        host.kill()
        try:
            with trio.fail_after(10):
                while set(marked(mark)) != {fork}:
                    await trio.sleep(0.01)
            assert not Path(f"/proc/{server}").exists()
        finally:
            os.kill(fork, signal.SIGKILL)


async def test_a_fork_of_the_host_does_not_hold_up_the_end_of_the_watcher(mark: str) -> None:
    async with open_warden() as warden:
        await warden.hand_over([])
        assert warden._watcher is not None
        process = warden._watcher.process
        fork = os.fork()
        if not fork:
            signal.pause()
            os._exit(0)
        try:
            await warden.close()
        finally:
            os.kill(fork, signal.SIGKILL)
            await trio.to_thread.run_sync(os.waitpid, fork, 0)
    assert process.returncode == 0  # it was not killed when its time was over


def test_a_stranger_is_never_signalled_and_a_grandchild_is() -> None:
    with subprocess.Popen(["sleep", "99"]) as child:
        code = "import subprocess; c = subprocess.Popen(['sleep', '99']); print(c.pid, flush=True); c.wait()"
        with subprocess.Popen([sys.executable, "-I", "-S", "-c", code], stdout=subprocess.PIPE) as parent:
            assert parent.stdout is not None
            grandchild = int(parent.stdout.readline())
            assert {child.pid, parent.pid, grandchild} <= watcher.descendants()
            stranger = os.getppid()
            watcher.signal_below({stranger}, 0)  # nothing is sent, and nothing is wrong
            watcher.signal_below({child.pid, grandchild})
            assert child.wait() == parent.wait() - signal.SIGKILL == -signal.SIGKILL


def test_what_is_not_below_is_not_signalled_though_its_id_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    sent: list[int] = []
    monkeypatch.setattr(signal, "pidfd_send_signal", lambda pidfd, number: sent.append(number))
    monkeypatch.setattr(os, "kill", lambda pid, number: sent.append(number))
    watcher.signal_below({os.getppid(), 1})
    assert sent == []


async def test_a_program_that_is_no_python_is_told_what_to_set(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "frozen", True, raising=False)
    async with open_warden() as warden:
        with pytest.raises(SpawnFailed, match="this program is no Python: PLAYBILL_INTERPRETER has to name one"):
            await spawn("true", [], env=dict(os.environ), cwd=None, warden=warden)
        monkeypatch.setenv("PLAYBILL_INTERPRETER", sys.executable)
        process = await spawn("true", [], env=dict(os.environ), cwd=None, warden=warden)
        await process.watch()
        process.close_pipes()


async def test_from_an_archive_the_watcher_is_run_as_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(warden_module, "__file__", "/no/such/archive.zip/warden.py")
    async with open_warden() as warden:
        process = await spawn("true", [], env=dict(os.environ), cwd=None, warden=warden)
        await process.watch()
        assert process.returncode == 0
        process.close_pipes()


async def test_what_a_watcher_that_cannot_start_complains_of_is_in_the_reason(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    broken = tmp_path / "broken.py"
    broken.write_text("raise SystemExit('failed by bad luck')")
    monkeypatch.setattr(warden_module, "_program", lambda: [str(broken)])
    async with open_warden() as warden:
        with pytest.raises(SpawnFailed, match=r"^command: 'true': the process .* has ended: failed by bad luck$"):
            await spawn("true", [], env=dict(os.environ), cwd=None, warden=warden)
