"""Ends that come from the wrong task, twice, or in the middle of a start."""

from __future__ import annotations

import os

import pytest
import trio
from playbill.actors import Host, HostClosed, Snapshot, open_host
from playbill.actors.model.snapshot import ServerState
from playbill.supervision import Backoff, Intensity

from ..processes import below
from .conftest import PATIENCE, Project, fake, until

STARTS = 50


async def test_b048_a_server_can_be_stopped_from_any_task_twice_and_under_cancellation(project: Project) -> None:
    project.write(a=fake(), b=fake(), c=fake(), d=fake())
    with trio.CancelScope() as program:
        async with open_host(project.path) as host:
            assert await host.ready(timeout=PATIENCE)
            async with trio.open_nursery() as nursery:
                for _ in range(2):
                    nursery.start_soon(host.server_set_enabled, "a", False)
                    nursery.start_soon(host.restart, "b")
            with trio.CancelScope() as asking:
                asking.cancel()
                await host.server_set_enabled("c", False)
            await host.server_set_enabled("c", False, timeout=PATIENCE)
            await until(
                host, lambda snapshot: all(snapshot.model.server(name).phase == "disabled" for name in ("a", "c"))
            )
            await until(host, lambda snapshot: snapshot.model.server("b").phase == "ready")
            assert len(project.processes()) == 2
            program.cancel()
            await trio.lowlevel.checkpoint()
    assert program.cancelled_caught
    assert project.processes() == []
    for _ in range(2):
        with pytest.raises(HostClosed):
            await host.server_set_enabled("d", False)


async def test_b049_a_start_given_up_again_and_again_leaves_nothing_and_raises_nothing(project: Project) -> None:
    names = [f"silent{number}" for number in range(5)]
    silent = fake(hang=True, grandchild="stubborn") | {"connectTimeout": 0.1}
    project.write(good=fake(), **dict.fromkeys(names, silent))

    def held() -> tuple[int, int]:
        return len(os.listdir("/proc/self/fd")), trio.lowlevel.current_statistics().tasks_living

    async def all_are(host: Host, phase: str) -> list[ServerState]:
        def phases(snapshot: Snapshot) -> set[str]:
            return {server.phase for server in snapshot.model.servers if server.name in names}

        snapshot = await until(host, lambda snapshot: phases(snapshot) == {phase})
        return [server for server in snapshot.model.servers if server.name in names]

    quick = Backoff(base=0.001, max=0.01, reset_after=30.0)
    limit = Intensity(restarts=9, window=600.0, then="park", park_retry=3600.0)
    async with open_host(project.path, backoff=quick, intensity=limit) as host:
        assert await host.ready(require=["good"], timeout=PATIENCE)
        for name in names:
            await host.server_set_enabled(name, False)
        await all_are(host, "disabled")
        before, children = held(), len(below(os.getpid()))
        for name in names:
            await host.server_set_enabled(name, True)
        parked = await all_are(host, "parked")
        assert all("no answer within 0.1 s" in server.error for server in parked)
        assert sum(1 + server.restarts for server in parked) == STARTS
        assert len(project.processes()) == 1
        assert host.snapshot().model.server("good").restarts == 0
        now = held()
        assert now[0] <= before[0]
        assert now[1] <= before[1] + len(names), "a task more for each: the one that waits for the slow retry"
        with trio.fail_after(PATIENCE):  # what swept up after the last one may be ending yet
            while len(below(os.getpid())) != children:
                await trio.sleep(0.05)
    assert project.processes() == []
