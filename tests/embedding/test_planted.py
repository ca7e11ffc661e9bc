"""What only real threads, files and processes show: a store that hangs, a host that is killed in the middle of an end."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from typing import Any

import playbill.actors.opening
import pytest
import trio
from playbill.actors import OperationTimeout, open_host
from playbill.actors.edge.config_file import FileStore

from .conftest import PATIENCE, Project, fake


async def test_a_file_system_that_hangs_costs_one_operation_and_neither_the_host_nor_its_end(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write(a=fake())
    hangs, released = threading.Event(), threading.Event()
    load = FileStore.load

    def hanging(self: FileStore, previous: Any = None) -> Any:
        if hangs.is_set():
            released.wait(PATIENCE)
        return load(self, previous)

    monkeypatch.setattr(FileStore, "load", hanging)
    monkeypatch.setattr(playbill.actors.opening, "STORE_PATIENCE", 0.2)
    try:
        async with open_host(project.path) as host:
            assert await host.ready(timeout=PATIENCE)
            hangs.set()
            with pytest.raises(OperationTimeout, match="reading or writing") as timeout:
                await host.reload(timeout=PATIENCE - 1)
            assert timeout.value.applied is None
            await host.call("mcp__a__echo", {}, timeout=PATIENCE)
            hangs.clear()
            assert (await host.reload(timeout=PATIENCE)).model.config_error is None
            hangs.set()
            with trio.move_on_after(0.05):
                await host.reload()
        assert not released.is_set()
    finally:
        released.set()


async def test_nothing_is_left_when_the_host_is_killed_while_it_ends_its_servers(project: Project) -> None:
    project.write(deaf=fake(ignore_eof=True, ignore_term=True), parent=fake(grandchild="stubborn", ignore_eof=True))
    program = textwrap.dedent("""
        import sys, trio
        from playbill.actors import open_host
        from playbill.actors.edge.process import ServerProcess

        gone_within = ServerProcess._gone_within

        async def told(self, seconds):
            print("ending", flush=True)
            await gone_within(self, 600)

        ServerProcess._gone_within = told

        async def main():
            async with open_host(sys.argv[1]) as host:
                await host.ready(timeout=30)

        trio.run(main)
    """)
    host = subprocess.Popen([sys.executable, "-c", program, str(project.path)], stdout=subprocess.PIPE)
    try:
        assert host.stdout is not None
        for _ in range(2):
            assert await trio.to_thread.run_sync(host.stdout.readline) == b"ending\n"
        assert len(project.processes()) >= 3
        host.kill()
        with trio.fail_after(PATIENCE):
            while project.processes():
                await trio.sleep(0.05)
    finally:
        host.kill()
        host.wait()
        host.stdout.close()
