"""What only real threads, files and processes show: a store that hangs, an end cut short, a subscription that breaks off."""

from __future__ import annotations

import subprocess
import sys
import textwrap
import threading
from typing import Any

import playbill.actors.opening
import pytest
import trio
from playbill.actors import OperationTimeout, ServerEntry, open_host
from playbill.actors.edge.config.file import FileStore
from playbill.actors.edge.wire import session
from playbill.actors.edge.wire.link import Link

from ..forked import Forked
from .conftest import PATIENCE, Project, fake


def opening_of(project: Project) -> Any:
    entry = fake()
    env = {"PLAYBILL_TEST_MARK": project.mark}
    server = ServerEntry("a", command=entry["command"], args=entry["args"], env=env)
    return session.make_connect()(server, eras={}, on_list_changed=lambda: None)


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
        from playbill.actors.edge.wire.process import ServerProcess

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
    host = Forked([sys.executable, "-c", program, str(project.path)], stdout=subprocess.PIPE)
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


BREAKS_OFF = textwrap.dedent("""
    import json, sys

    def send(**message):
        print(json.dumps({"jsonrpc": "2.0", **message}), flush=True)

    complete = {"resultType": "complete"}
    fresh = {**complete, "ttlMs": 0, "cacheScope": "private"}
    names, listening = ["break_off"], None
    for line in sys.stdin:
        message = json.loads(line)
        method, id_ = message.get("method"), message.get("id")
        if method == "server/discover":
            capabilities = {"tools": {"listChanged": True}}
            send(id=id_, result={**fresh, "supportedVersions": ["2026-07-28"], "capabilities": capabilities})
        elif method == "tools/list":
            send(id=id_, result={**fresh, "tools": [{"name": n, "inputSchema": {"type": "object"}} for n in names]})
        elif method == "subscriptions/listen":
            if listening is not None:
                names.append("late")  # nobody is told, but who listens anew has to ask
            listening = id_
            meta = {"io.modelcontextprotocol/subscriptionId": id_}
            wanted = message["params"]["notifications"]
            send(method="notifications/subscriptions/acknowledged", params={"_meta": meta, "notifications": wanted})
        elif method == "tools/call":
            send(id=listening, error={"code": -32603, "message": "out of subscriptions"})
            send(id=id_, result={**complete, "content": [{"type": "text", "text": "done"}]})
        elif id_ is not None:
            send(id=id_, error={"code": -32601, "message": "Method not found"})
""")


async def test_a_subscription_that_breaks_off_is_opened_again_and_what_was_missed_is_listed(project: Project) -> None:
    project.write(a={"command": sys.executable, "args": ["-I", "-S", "-c", BREAKS_OFF]})
    async with open_host(project.path) as host:
        assert await host.ready(timeout=PATIENCE)
        pid = host.snapshot().model.server("a").pid
        await host.call("mcp__a__break_off", {}, timeout=PATIENCE)
        with trio.fail_after(PATIENCE):
            async for snapshot in host.changes():
                if snapshot.model.tool("a", "late") is not None:
                    break
        assert host.snapshot().model.server("a").pid == pid


async def test_a_defect_below_a_connection_is_a_loss_with_its_reason_and_hangs_nobody(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    broken = trio.Event()

    async def breaks(self: Link, closing: trio.Event) -> None:
        await broken.wait()
        raise RuntimeError("a defect")

    monkeypatch.setattr(Link, "hold", breaks)
    with trio.fail_after(PATIENCE):
        async with opening_of(project) as connection:
            await connection.list_tools()
            broken.set()
            assert "a defect" in await connection.wait_lost()


async def test_a_transport_that_does_not_end_is_left_when_its_time_is_over(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    waited_out = False

    async def holds_on(self: Link, closing: trio.Event) -> None:
        nonlocal waited_out
        await trio.sleep(PATIENCE)
        waited_out = True

    monkeypatch.setattr(Link, "hold", holds_on)
    monkeypatch.setattr(session, "CLOSE_SECONDS", 0.1)
    async with opening_of(project) as connection:
        await connection.list_tools()
    assert not waited_out


async def test_what_a_cancelled_user_of_a_connection_raises_is_not_lost(project: Project) -> None:
    with pytest.raises(KeyError, match="mine"), trio.CancelScope() as scope:
        async with opening_of(project):
            scope.cancel()
            raise KeyError("mine")
    assert project.processes() == []
