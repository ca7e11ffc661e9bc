"""Processes that outlive their host, and copies nobody asked for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from playbill.actors import ServerDied, open_host

from ..processes import below, start_of
from .conftest import PATIENCE, Project, fake, said, small, until, vanished, wrapped

ROUNDS = 20

HOSTS = textwrap.dedent("""
    import os, signal, sys, trio
    from playbill.actors import open_host
    from playbill.actors.edge.wire.sdk import import_sdk

    import_sdk()
    from playbill.actors.edge.wire import dispatcher  # what a host would import with its first server

    async def main(calls):
        async with open_host(sys.argv[1]) as host:
            assert await host.ready(timeout=30)
            async with trio.open_nursery() as nursery:
                with trio.open_signal_receiver(signal.SIGUSR1, signal.SIGTERM) as signals:
                    if calls:
                        nursery.start_soon(host.call, "mcp__a__sleep", {"seconds": 600})
                        while not host._board.lines["a"].in_flight:
                            await trio.lowlevel.checkpoint()
                    print(os.getpid(), flush=True)
                    async for number in signals:
                        if number == signal.SIGUSR1:
                            break
                        nursery.cancel_scope.cancel()

    signal.signal(signal.SIGCHLD, signal.SIG_IGN)
    for line in sys.stdin:
        if os.fork() == 0:
            signal.signal(signal.SIGCHLD, signal.SIG_DFL)
            try:
                trio.run(main, "call" in line)
            finally:
                os._exit(0)
""")

STUBBORN = """
    import os, signal, time
    if os.fork() == 0:
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        time.sleep(600)
"""
"""A server's grandchild, which holds its files; what the server does itself is added."""

GOES = "serve(lambda cursor: listed('x'))"
STAYS = f"""
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    {GOES}
    time.sleep(600)
"""


ENDS = {"normally": signal.SIGUSR1, "SIGTERM": signal.SIGTERM, "SIGKILL": signal.SIGKILL}


class Hosts:
    """Programs that embed a host over one configuration, each a process of its own."""

    def __init__(self, parent: subprocess.Popen[str]) -> None:
        self._parent = parent
        self.began: dict[int, str | None] = {}

    async def open(self, how: str = "") -> int:
        """Start one; its process id, when it is up (with a call under way, when that is said)."""
        assert self._parent.stdin is not None
        assert self._parent.stdout is not None
        self._parent.stdin.write(f"{how}\n")
        self._parent.stdin.flush()
        pid = int(await trio.to_thread.run_sync(self._parent.stdout.readline))
        self.began[pid] = start_of(pid, zombies=True)
        return pid

    async def end(self, pid: int, how: str = "SIGKILL") -> None:
        """End one, and wait until it, and all that was below it at any depth, are gone."""
        processes = below(pid, zombies=True) | {pid: start_of(pid, zombies=True)}
        os.kill(pid, ENDS[how])
        await vanished(processes, zombies=False)  # who reaps the orphans of a dead host is not ours to say


@asynccontextmanager
async def hosts_of(project: Project) -> AsyncIterator[Hosts]:
    """One process that has imported everything, and forks a program for each host."""
    command = [sys.executable, "-c", HOSTS, str(project.path)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as parent:
        hosts = Hosts(parent)
        try:
            yield hosts
        finally:
            for pid, start in hosts.began.items():
                if start_of(pid, zombies=True) == start:
                    os.kill(pid, signal.SIGKILL)
            parent.kill()


async def test_b001_a_server_that_ignores_the_end_of_its_stdin_goes_with_each_host_that_is_killed(
    project: Project,
) -> None:
    project.write(a=small(STUBBORN + STAYS))
    async with hosts_of(project) as hosts:
        for _ in range(ROUNDS):
            pid = await hosts.open()
            assert len(project.processes()) == 2
            await hosts.end(pid)
            assert project.processes() == []


async def test_b003_reading_the_same_configuration_again_starts_nothing_and_an_ended_copy_is_reaped(
    project: Project,
) -> None:
    entry = fake()
    project.write(a=entry)
    before_any = below(os.getpid(), zombies=True)
    async with open_host(project.path) as host:
        assert await host.ready(timeout=PATIENCE)
        pid = host.snapshot().model.server("a").pid
        project.path.write_bytes(project.path.read_bytes())
        await host.reload()
        reordered = {key: entry[key] for key in reversed(list(entry))}
        project.path.write_text(json.dumps({"mcpServers": {"a": {"type": "stdio", **reordered}}}))
        await host.reload()
        state = host.snapshot().model.server("a")
        assert (state.pid, state.restarts, project.processes()) == (pid, 0, [pid])
        reaper = int(Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[1])
        copy = {each: start_of(each, zombies=True) for each in (pid, reaper)}
        os.kill(pid, signal.SIGTERM)
        await until(host, lambda snapshot: snapshot.model.server("a").error)
        again = await until(host, lambda snapshot: snapshot.model.server("a").pid not in (pid, None))
        state = again.model.server("a")
        assert state.restarts == 1
        await vanished(copy)
        assert await host.ready(timeout=PATIENCE)
        assert project.processes() == [state.pid]
    assert below(os.getpid(), zombies=True).items() <= before_any.items()


async def test_b004_each_host_runs_one_set_of_servers_and_leaves_none_however_it_ends(project: Project) -> None:
    project.write(**{name: small(f"{STUBBORN}    {GOES}") for name in "abcde"})
    async with hosts_of(project) as hosts:

        def sets() -> list[int]:
            """How many processes of servers each host has below it; there are no others."""
            each = [len(set(project.processes()) & below(pid, zombies=True).keys()) for pid in up.values()]
            assert sum(each) == len(project.processes())
            return each

        up = {how: await hosts.open() for how in ENDS}
        assert sets() == [10, 10, 10]
        for how in ENDS:
            await hosts.end(up.pop(how), how)
            assert sets() == [10, 10]
            up[how] = await hosts.open()
            assert sets() == [10, 10, 10]
        for how in ENDS:
            await hosts.end(up.pop(how), how)
            assert sets() == [10] * len(up)


async def test_b006_servers_end_with_their_host_idle_or_in_a_call(project: Project) -> None:
    project.write(a=fake(), idle=fake())
    async with hosts_of(project) as hosts:
        pid = await hosts.open("call")
        assert len(project.processes()) == 2
        await hosts.end(pid)
        assert project.processes() == []


async def test_b118_a_wrapper_that_forwards_no_signal_cannot_hold_up_the_end(project: Project, impatient: None) -> None:
    server = fake(ignore_eof=True, ignore_term=True, grandchild="holds")
    project.write(a=wrapped('trap "" TERM; exec 3<&0; "$@" <&3 & wait', server), b=fake())
    async with open_host(project.path) as host:
        assert await host.ready(timeout=PATIENCE)
        assert len(project.processes()) == 4
        await host.server_set_enabled("a", False)
        await until(host, lambda snapshot: snapshot.model.server("a").phase == "disabled")
        assert int(said(await host.call("mcp__b__pid", timeout=PATIENCE))) == host.snapshot().model.server("b").pid
    assert project.processes() == []


async def test_b118_a_call_to_a_killed_wrapper_ends_though_its_server_holds_the_pipes(project: Project) -> None:
    project.write(a=wrapped('exec 3<&0; "$@" <&3 & wait', fake(ignore_eof=True, ignore_term=True)))
    async with open_host(project.path) as host:
        assert await host.ready(timeout=PATIENCE)
        wrapper = host.snapshot().model.server("a").pid
        assert int(said(await host.call("mcp__a__pid", timeout=PATIENCE))) != wrapper
        async with trio.open_nursery() as nursery:

            async def call() -> None:
                with pytest.raises(ServerDied):
                    await host.call("mcp__a__sleep", {"seconds": 600}, timeout=PATIENCE)
                nursery.cancel_scope.cancel()

            nursery.start_soon(call)
            while not host._board.lines["a"].in_flight:
                await trio.lowlevel.checkpoint()
            os.kill(wrapper, signal.SIGKILL)
