"""The spine on real processes: start, call, crash, toggle, reload, close."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import textwrap
from pathlib import Path
from typing import Any

import pytest
import trio
import trio.testing
from playbill.actors import Config, ConfigError, Host, ServerDied, ServerEntry, open_host

from ..forked import Forked
from .conftest import PATIENCE, Project, fake


async def until(host: Host, condition: Any) -> Any:
    with trio.fail_after(PATIENCE):
        async for snapshot in host.changes():
            if condition(snapshot):
                return snapshot
    raise AssertionError("the host closed")


def text(result: Any) -> str:
    return str(result.content[0].text)


async def test_servers_of_both_eras_run_together_and_what_fails_fails_alone(project: Project) -> None:
    project.write(
        old=fake(era="legacy"),
        new=fake(era="modern"),
        both=fake(era="both", list_changed=True),
        shy=fake(die_of_probe=True),
        missing={"command": "no-such-command"},
        dies=fake(exit_at_once=3, say="ModuleNotFoundError: no module named 'x'"),
        hangs=fake(hang=True),
    )
    async with open_host(project.path) as host:
        good = ["old", "new", "both", "shy"]
        assert await host.ready(require=good, timeout=PATIENCE)
        readiness = await host.ready(timeout=0)
        assert set(readiness.missing) == {"missing", "dies", "hangs"}
        assert "no-such-command" in readiness.missing["missing"]
        model = host.snapshot().model
        assert {model.server(name).protocol_version for name in ("old", "shy")} == {"2025-11-25"}
        assert model.server("new").protocol_version == "2026-07-28"
        assert model.server("shy").restarts == 0
        await until(host, lambda snapshot: snapshot.model.server("dies").error)
        dead = host.snapshot().model.server("dies")
        assert "no module named 'x'" in dead.error
        assert "no module named 'x'" in dead.stderr_tail
        for name in good:
            result = await host.call(f"mcp__{name}__pid", timeout=PATIENCE)
            assert int(text(result)) == model.server(name).pid


async def test_a_killed_server_comes_back_while_its_neighbours_calls_go_on(project: Project) -> None:
    project.write(victim=fake(), neighbour=fake())
    async with open_host(project.path) as host:
        assert await host.ready(timeout=PATIENCE)
        catalog = host.snapshot().catalog
        old = host.snapshot().model.server("victim")
        answered = 0

        async def keep_calling() -> None:
            nonlocal answered
            while True:
                await host.call("mcp__neighbour__echo", {"n": answered}, timeout=PATIENCE)
                answered += 1

        async with trio.open_nursery() as nursery:
            nursery.start_soon(keep_calling)
            died = trio.Event()

            async def call_the_victim() -> None:
                with pytest.raises(ServerDied, match=r"SIGKILL|signal 9"):
                    await host.call("mcp__victim__sleep", {"seconds": 60}, timeout=120)
                died.set()

            nursery.start_soon(call_the_victim)
            while host._board.lines["victim"].in_flight == 0:
                await trio.lowlevel.checkpoint()
            os.kill(old.pid, signal.SIGKILL)
            with trio.fail_after(PATIENCE):
                await died.wait()
            assert host.snapshot().catalog is catalog
            await until(host, lambda snapshot: snapshot.model.server("victim").pid not in (old.pid, None))
            assert await host.ready(timeout=PATIENCE)
            before = answered
            while answered < before + 10:
                await trio.lowlevel.checkpoint()
            nursery.cancel_scope.cancel()
        new = host.snapshot().model.server("victim")
        assert new.pid != old.pid
        assert new.restarts == 1
        assert host.snapshot().catalog is catalog


async def test_a_toggle_and_a_reload_touch_no_other_process(project: Project) -> None:
    project.write(a=fake(), b=fake(), c=fake())
    async with open_host(project.path) as host:
        assert await host.ready(timeout=PATIENCE)
        pids = {server.name: server.pid for server in host.snapshot().model.servers}
        snapshot = await host.tool_set_enabled("a", "echo", False)
        assert snapshot.model.tool("a", "echo").verdict == "excluded"
        assert {server.name: server.pid for server in snapshot.model.servers} == pids
        written = json.loads(project.path.read_text())
        assert written["mcpServers"]["a"]["tools"] == {"exclude": ["echo"]}
        del written["mcpServers"]["b"]
        written["mcpServers"]["d"] = fake()
        project.write(**written["mcpServers"])
        await host.reload()
        assert await host.ready(timeout=PATIENCE)
        now = {server.name: server.pid for server in host.snapshot().model.servers}
        assert now.keys() == {"a", "c", "d"}
        assert (now["a"], now["c"]) == (pids["a"], pids["c"])


async def test_a_server_that_does_everything_wrong_hurts_nobody_else(project: Project) -> None:
    project.write(bad=fake(list_changed=True), good=fake())
    async with open_host(project.path) as host:
        assert await host.ready(timeout=PATIENCE)
        wrongs: list[dict[str, Any]] = [
            {"do": "garbage"},
            {"do": "bad_utf8"},
            {"do": "half_line"},
            {"do": "stderr", "bytes": 5_000_000},
            {"do": "long", "bytes": 5_000_000},
            {"do": "storm", "count": 20_000},
            {"do": "flood", "count": 20_000},
            {"do": "null"},
            {"do": "nonsense"},
            {"do": "silence"},
            {"do": "stop_reading"},
        ]
        errors: list[BaseException] = []

        async def wrong(arguments: dict[str, Any]) -> None:
            try:
                await host.call("mcp__bad__fault", arguments, timeout=1)
            except Exception as error:
                errors.append(error)

        async with trio.open_nursery() as nursery:
            for arguments in wrongs:
                nursery.start_soon(wrong, arguments)
            for n in range(200):
                result = await host.call("mcp__good__echo", {"n": n}, timeout=PATIENCE)
                assert json.loads(text(result)) == {"n": n}
        assert host.snapshot().model.server("good").restarts == 0
        assert all(type(error).__module__.startswith("playbill.") for error in errors), errors


async def test_ten_thousand_cancelled_calls_leave_the_server_running_and_usable(project: Project) -> None:
    project.write(a=fake())
    async with open_host(project.path) as host:
        assert await host.ready(timeout=PATIENCE)
        pid = host.snapshot().model.server("a").pid
        for _ in range(20):
            async with trio.open_nursery() as nursery:
                for _ in range(500):
                    nursery.start_soon(host.call, "mcp__a__sleep", {"seconds": 3600})
                await trio.testing.wait_all_tasks_blocked()
                nursery.cancel_scope.cancel()
        assert int(text(await host.call("mcp__a__pid", timeout=PATIENCE))) == pid
        assert host.snapshot().model.server("a").restarts == 0
        assert [event.kind for event in host.journal("a")] == ["spawned", "started", "healthy"]


async def test_nothing_is_left_after_close_though_servers_refuse_to_end(project: Project) -> None:
    project.write(
        deaf=fake(ignore_eof=True, ignore_term=True),
        parent=fake(grandchild="stubborn"),
        leaver=fake(grandchild="holds", leave_on_eof=True),
    )
    async with open_host(project.path) as host:
        await host.ready(timeout=PATIENCE)
        assert len(project.processes()) >= 5
    assert project.processes() == []


async def test_nothing_is_left_after_the_host_was_killed(project: Project) -> None:
    project.write(deaf=fake(ignore_eof=True, ignore_term=True), parent=fake(grandchild="stubborn", ignore_eof=True))
    program = textwrap.dedent("""
        import sys, trio
        from playbill.actors import open_host

        async def main():
            async with open_host(sys.argv[1]) as host:
                await host.ready(timeout=30)
                print("up", flush=True)
                await trio.sleep_forever()

        trio.run(main)
    """)
    host = Forked([sys.executable, "-c", program, str(project.path)], stdout=subprocess.PIPE)
    try:
        assert host.stdout is not None
        assert await trio.to_thread.run_sync(host.stdout.readline) == b"up\n"
        assert len(project.processes()) >= 3
        host.kill()
        with trio.fail_after(PATIENCE):
            while project.processes():
                await trio.sleep(0.05)
    finally:
        host.kill()
        host.wait()
        host.stdout.close()


async def test_a_server_object_runs_in_memory_beside_a_process(project: Project) -> None:
    from mcp.server import MCPServer

    server = MCPServer("in-memory")

    @server.tool()
    def add(a: int, b: int) -> int:
        """Add two numbers."""
        return a + b

    entry = fake()
    config = Config(
        (
            ServerEntry("memory", server=server),
            ServerEntry(
                "process", command=entry["command"], args=entry["args"], env={"PLAYBILL_TEST_MARK": project.mark}
            ),
        )
    )
    async with open_host(config) as host:
        assert await host.ready(timeout=PATIENCE)
        assert "3" in text(await host.call("mcp__memory__add", {"a": 1, "b": 2}, timeout=PATIENCE))
        assert host.snapshot().model.server("memory").pid is None
        snapshot = await host.tool_set_enabled("memory", "add", False)
        assert snapshot.catalog.tool("mcp__memory__add") is None
        await host.restart("memory")
        assert await host.ready(timeout=PATIENCE)


async def test_a_missing_config_is_one_clear_error(tmp_path: Path) -> None:
    path = tmp_path / "nowhere.json"
    with pytest.raises(ConfigError) as missing:
        async with open_host(path):
            pass
    assert str(path) in str(missing.value)
    assert "\n" not in str(missing.value)
