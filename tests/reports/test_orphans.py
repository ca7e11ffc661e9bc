"""Processes that outlive their host, and copies nobody asked for."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from contextlib import contextmanager

import pytest
import trio
from playbill.actors import ServerDied, open_host

from .conftest import PATIENCE, Project, children, fake, said, until, wrapped

HOST = textwrap.dedent("""
    import signal, sys, trio
    from playbill.actors import open_host

    async def main():
        async with open_host(sys.argv[1]) as host:
            assert await host.ready(timeout=30)
            async with trio.open_nursery() as nursery:
                with trio.open_signal_receiver(signal.SIGTERM) as signals:
                    if sys.argv[2:]:
                        nursery.start_soon(host.call, "mcp__a__sleep", {"seconds": 600})
                        while not host._board.lines["a"].in_flight:
                            await trio.lowlevel.checkpoint()
                    print("up", flush=True)
                    async for _ in signals:
                        nursery.cancel_scope.cancel()

    trio.run(main)
""")


@contextmanager
def a_host(project: Project, *more: str) -> Iterator[subprocess.Popen[bytes]]:
    """A program that embeds a host, in a process of its own; its first line says that it is up."""
    command = [sys.executable, "-c", HOST, str(project.path), *more]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as host:
        try:
            yield host
        finally:
            host.kill()


async def is_up(host: subprocess.Popen[bytes]) -> None:
    assert host.stdout is not None
    assert await trio.to_thread.run_sync(host.stdout.readline) == b"up\n"


async def test_b001_a_server_that_ignores_the_end_of_its_stdin_goes_with_each_host_that_is_killed(
    project: Project,
) -> None:
    project.write(a=fake(ignore_eof=True, ignore_term=True, grandchild="stubborn"))
    for _ in range(2):
        with a_host(project) as host:
            await is_up(host)
            assert len(project.processes()) >= 2
            host.kill()
            await project.gone()


async def test_b003_reading_the_same_configuration_again_starts_nothing_and_an_ended_copy_is_reaped(
    project: Project,
) -> None:
    entry = fake()
    project.write(a=entry)
    before_any = children()
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
        os.kill(pid, signal.SIGTERM)
        await until(host, lambda snapshot: snapshot.model.server("a").error)
        again = await until(host, lambda snapshot: snapshot.model.server("a").pid not in (pid, None))
        state = again.model.server("a")
        assert state.restarts == 1
        assert pid not in children()
        assert await host.ready(timeout=PATIENCE)
        assert project.processes() == [state.pid]
    assert children() <= before_any


@pytest.mark.parametrize("end", ["normally", "SIGTERM", "SIGKILL"])
async def test_b004_each_host_runs_one_set_of_servers_and_leaves_none_however_it_ends(
    project: Project, end: str
) -> None:
    project.write(**{name: fake(grandchild="stubborn") for name in "abc"})
    if end == "normally":
        async with open_host(project.path) as inside:
            assert await inside.ready(timeout=PATIENCE)
            assert len(project.processes()) == 6
        assert project.processes() == []
        return
    with a_host(project) as host:
        await is_up(host)
        assert len(set(project.processes())) == 6
        host.send_signal(getattr(signal, end))
        await trio.to_thread.run_sync(host.wait)
        await project.gone()


async def test_b006_servers_end_with_their_host_idle_or_in_a_call(project: Project) -> None:
    project.write(a=fake(), idle=fake())
    with a_host(project, "call") as host:
        await is_up(host)
        assert len(project.processes()) == 2
        host.kill()
        await project.gone()


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
