"""Servers that fight those who own them, and owners that die: whatever happens, nothing is left.

What is not promised, and so not tested: a server that runs as the same user can kill its watcher and then its reaper, the
host, or its neighbours; no process can prevent that.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import Any

import pytest
import trio
from playbill.actors import Host, ServerDied, ServerUnavailable, open_host
from playbill.supervision import Backoff, Intensity

from ..processes import alive, below, parent_of
from .conftest import FOR_ONE_LIFE, GRACES, PATIENCE, Project, SetUp, deed, faulty

WITHIN = 5.0
"""Seconds in which everything is gone after the host was killed: the promise."""

CLOSE = 10.0
"""Seconds that a host may take to close, whatever its servers do: the promise."""

HOST = textwrap.dedent("""
    import sys, trio
    from playbill.actors import open_host
    from playbill.actors.edge.wire.process import ServerProcess

    gone_within = ServerProcess._gone_within

    async def told(self, seconds):
        print("stopping", flush=True)
        await gone_within(self, 600)

    async def main():
        async with open_host(sys.argv[1]) as host:
            print("open", flush=True)
            if sys.argv[2] != "starting":
                assert await host.ready(timeout=30)
                print("ready", flush=True)
            if sys.argv[2] == "stopping":
                ServerProcess._gone_within = told
            else:
                await trio.sleep_forever()

    trio.run(main)
""")


@contextmanager
def a_host(project: Project, until: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program that embeds a host, in a process of its own."""
    command = [sys.executable, "-c", HOST, str(project.path), until]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as host:
        try:
            yield host
        finally:
            host.kill()


async def says(host: subprocess.Popen[bytes], word: str) -> None:
    assert host.stdout is not None
    while (line := await trio.to_thread.run_sync(host.stdout.readline)) != f"{word}\n".encode():
        assert line


async def all_gone(project: Project, watched: dict[int, str]) -> None:
    """Wait until neither a server nor one of those is left."""
    try:
        await project.gone(WITHIN)
        with trio.fail_after(WITHIN):
            while alive(watched):
                await trio.sleep(0.02)
    finally:
        for pid in alive(watched):
            os.kill(pid, signal.SIGKILL)


async def test_one_that_kills_its_own_parent_dies_with_it(on_stage: SetUp) -> None:
    bad = faulty(start=[deed("children", count=2, session=True), deed("chain", depth=3)])
    async with on_stage(bad, backoff=FOR_ONE_LIFE) as stage:
        await stage.ready()
        await stage.project.count(7)
        async with trio.open_nursery() as nursery:

            async def call() -> None:
                with pytest.raises(ServerDied, match="the server was lost with the process that watched it"):
                    await stage.call("silence", timeout=600)

            nursery.start_soon(call)
            await stage.in_flight()
            with suppress(ServerDied):  # it may, or may not, live long enough to answer
                await stage.call("do", do="strike", whom="parent", number="SIGKILL")
        state = await stage.until(lambda state: state.phase == "backing_off")
        assert state.error == "the server was lost with the process that watched it"
        with trio.fail_after(PATIENCE):
            while stage.project.processes() != {stage.pid}:
                await trio.sleep(0.01)


async def test_one_that_kills_its_parent_before_it_can_say_anything_dies_with_it_each_time(on_stage: SetUp) -> None:
    bad = {"command": "/bin/sh", "args": ["-c", "kill -9 $PPID; exec sleep 600"]}
    intensity = Intensity(restarts=8, window=600.0, then="park", park_retry=None)
    async with on_stage(bad, backoff=Backoff(base=0.0, max=0.01, jitter=0.0), intensity=intensity) as stage:
        watcher = parent_of(parent_of(stage.pid))
        state = await stage.until(lambda state: state.phase == "parked")
        assert state.error is not None
        assert "the process that" in state.error
        with trio.fail_after(PATIENCE):
            while stage.project.processes() != {stage.pid}:
                await trio.sleep(0.01)
        assert parent_of(parent_of(stage.pid)) == watcher


async def test_one_that_stops_its_own_parent_is_ended_all_the_same(on_stage: SetUp) -> None:
    async with on_stage(faulty(start=deed("ignore"), eof=deed("hang"))) as stage:
        await stage.ready()
        await stage.call("do", do="strike", whom="parent", number="SIGSTOP")
        await stage.host.server_set_enabled("bad", False)
        await stage.until(lambda state: state.phase == "disabled")
        assert stage.project.processes() == {stage.pid}


@pytest.mark.parametrize("number", ["SIGKILL", "SIGSTOP"])
async def test_the_watcher_may_be_killed_or_stopped_and_servers_go_on_and_start(
    on_stage: SetUp, number: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from playbill.actors.edge.wire import spawn, warden

    monkeypatch.setattr(warden, "HANGS_AFTER", 0.5)
    monkeypatch.setattr(spawn, "KILL_GRACE", 0.1)
    bad = faulty(start=[deed("children", count=2, session=True), deed("ignore")])
    async with on_stage(bad, other=faulty()) as stage:
        await stage.ready("bad", "other")
        pids = {name: stage.state(name).pid for name in ("bad", "other")}
        watcher = parent_of(parent_of(pids["bad"]))
        await stage.call("do", do="strike", whom="grandparent", number=number)
        with trio.fail_after(PATIENCE):
            while Path(f"/proc/{watcher}/stat").read_text().rpartition(")")[2].split()[0] not in "TZ":
                await trio.sleep(0.01)
        await stage.call(server="other")
        await stage.goes_on()
        await stage.host.restart("bad")
        await stage.replaced(pids["bad"])
        assert stage.state("other").pid == pids["other"]
        assert stage.state("other").restarts == 0


async def test_ten_servers_start_though_their_watcher_is_killed_meanwhile(on_stage: SetUp) -> None:
    names = [f"s{number}" for number in range(10)]
    async with on_stage(**{name: faulty() for name in names}) as stage:
        watcher = parent_of(parent_of(stage.pid))
        await stage.project.count(4)
        with suppress(ProcessLookupError):
            os.kill(watcher, signal.SIGKILL)
        await stage.ready(*names)
        pids = [stage.state(name).pid for name in names]
        assert stage.project.processes() == {stage.pid, *pids}


async def test_daemons_that_never_stop_forking_are_caught(on_stage: SetUp) -> None:
    async with on_stage(faulty(), backoff=FOR_ONE_LIFE) as stage:
        await stage.ready()
        for _ in range(3):
            assert await stage.call("do", do="daemons", seconds=60) == "done"
        with pytest.raises(ServerDied):
            await stage.call("do", do="die")
        await stage.until(lambda state: state.phase == "backing_off")
        assert stage.project.processes() == {stage.pid}


@pytest.mark.parametrize("end", ["die", "stop"])
async def test_thirty_sessions_within_each_other_are_gone_with_the_first(on_stage: SetUp, end: str) -> None:
    async with on_stage(faulty(), backoff=FOR_ONE_LIFE) as stage:
        await stage.ready()
        assert await stage.call("do", do="chain", depth=30) == "done"
        await stage.project.count(32)
        if end == "die":
            with pytest.raises(ServerDied):
                await stage.call("do", do="die")
            await stage.until(lambda state: state.phase == "backing_off")
        else:
            await stage.host.server_set_enabled("bad", False)
            await stage.until(lambda state: state.phase == "disabled")
        assert stage.project.processes() == {stage.pid}


@pytest.mark.parametrize("moment", ["starting", "stopping"])
async def test_a_host_that_is_killed_leaves_none_of_twenty_servers(project: Project, moment: str) -> None:
    wild = [deed("ignore"), deed("children", count=1, session=True)]
    project.write(**{f"s{number}": faulty(start=wild, eof=deed("hang")) for number in range(20)})
    with a_host(project, moment) as host:
        if moment == "starting":
            await says(host, "open")
            await project.count(10)
        else:
            await says(host, "stopping")
            assert len(project.processes()) == 40
        watched = below(host.pid)
        host.kill()
        await all_gone(project, watched)


async def test_a_host_that_is_killed_leaves_nothing_though_servers_stopped_their_parents(project: Project) -> None:
    wild = [deed("ignore"), deed("children", count=2, session=True)]
    entry = faulty(start=wild, listed=deed("strike", whom="parent", number="SIGSTOP"), eof=deed("hang"))
    project.write(a=entry, b=entry)
    with a_host(project, "running") as host:
        await says(host, "ready")
        watched = below(host.pid)
        host.kill()
        await all_gone(project, watched)


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGSTOP], ids=["killed", "stopped"])
async def test_a_host_that_is_killed_after_its_watcher_leaves_nothing(project: Project, number: signal.Signals) -> None:
    wild = [deed("ignore"), deed("children", count=2, session=True)]
    project.write(**{f"s{index}": faulty(start=wild, eof=deed("hang")) for index in range(3)})
    with a_host(project, "running") as host:
        await says(host, "ready")
        watched = below(host.pid)
        (watcher,) = (pid for pid in watched if parent_of(pid) == host.pid)
        os.kill(watcher, number)
        host.kill()
        await all_gone(project, watched)


async def test_twenty_that_ignore_the_end_of_stdin_and_sigterm_have_their_time_and_end_within_that_of_the_close(
    project: Project, patient: None
) -> None:
    wild = [deed("ignore"), deed("children", count=1, session=True)]
    names = [f"s{number}" for number in range(20)]
    project.write(**{name: faulty(start=wild, eof=deed("hang")) for name in names})
    ends: list[str] = []

    async def call(host: Host, name: str) -> None:
        with pytest.raises((ServerUnavailable, ServerDied)):
            await host.call_tool(name, "silence", {}, timeout=600)
        ends.append(name)

    before = below(os.getpid())
    async with trio.open_nursery() as nursery:
        async with open_host(project.path) as host:
            assert await host.ready(timeout=PATIENCE)
            for name in names:
                nursery.start_soon(call, host, name)
            with trio.fail_after(PATIENCE):
                while sum(line.in_flight for line in host._board.lines.values()) < 20:
                    await trio.lowlevel.checkpoint()
            assert len(project.processes()) == 40
            began = trio.current_time()
        took = trio.current_time() - began
    assert sorted(ends) == sorted(names)
    assert GRACES["EOF_GRACE"] + GRACES["TERM_GRACE"] <= took <= CLOSE, "side by side: none was cut short, none waited"
    assert project.processes() == set()
    assert below(os.getpid()).keys() <= before.keys()


def files() -> list[str]:
    """What the open files of this process are."""
    found = []
    for name in os.listdir("/proc/self/fd"):
        try:
            found.append(os.readlink(f"/proc/self/fd/{name}").partition(":")[0])
        except OSError:
            continue
    return sorted(found)


@asynccontextmanager
async def nothing_is_left(project: Project) -> AsyncIterator[None]:
    """What follows leaves no process, no zombie and no open file of this one."""
    before: Any = below(os.getpid()), files()
    yield
    assert project.processes() == set()
    after = below(os.getpid()), files()
    assert after[0].keys() <= before[0].keys()
    assert after[1] == before[1]


async def test_a_host_that_is_cancelled_while_it_opens_leaves_nothing(project: Project) -> None:
    project.write(a=faulty(), b=faulty(start=deed("children", count=2, session=True)), c={"command": "no-such-command"})
    dice = random.Random(20)

    async def open_and_close(seconds: float) -> None:
        with trio.move_on_after(seconds):
            async with open_host(project.path) as host:
                await host.ready(require=["a", "b"], timeout=PATIENCE)
                await trio.sleep_forever()

    await open_and_close(1.0)  # what is opened once and kept (event loop, imports) is not counted
    async with nothing_is_left(project):
        for _ in range(30):
            await open_and_close(dice.uniform(0.0, 0.2))
            assert project.processes() == set()
