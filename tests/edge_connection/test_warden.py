"""The watcher: what it kills when the host is killed, and that it neither lingers nor holds on to anything."""

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
from typing import Any

import pytest
import trio
from playbill.actors.edge.wire import warden as warden_module
from playbill.actors.edge.wire.process import ServerProcess
from playbill.actors.edge.wire.spawn import SpawnFailed, spawn
from playbill.actors.edge.wire.warden import Warden, open_warden

from ..processes import marked, parent_of
from .conftest import FAKE

HOST = textwrap.dedent("""
    import json, os, sys
    import trio
    from types import SimpleNamespace
    from playbill.actors.edge.wire.session import make_connect
    from playbill.actors.edge.wire.warden import open_warden
    from playbill.actors.model.config import ServerEntry

    def expand(entry):
        return SimpleNamespace(command=entry.command, args=entry.args, env=dict(os.environ), cwd=None, url=None, headers={},
                               secrets=set())

    async def main():
        async with open_warden() as warden, trio.open_nursery() as nursery:
            connect = make_connect(warden=warden, expand=expand)
            async def hold(options, task_status):
                entry = ServerEntry("s", command=sys.executable, args=("-I", "-S", sys.argv[1], json.dumps(options)))
                async with connect(entry, eras={}, on_list_changed=lambda: None):
                    task_status.started()
                    await trio.sleep_forever()
            for options in json.loads(sys.argv[2]):
                await nursery.start(hold, options)
            print(warden.pid, flush=True)
            await trio.sleep_forever()

    trio.run(main)
""")


async def gone(mark: str) -> None:
    with trio.fail_after(5):
        while marked(mark):
            await trio.sleep(0.02)


async def watcher_of(warden: Warden) -> int:
    """Have a watcher started, and wait until it has set itself up."""
    await warden.hand_over([])  # it takes what comes without descriptors for nothing
    assert warden.pid is not None
    with trio.fail_after(10):
        while int(_status(warden.pid)["SigIgn"], 16) & 0x4007 != 0x4007 or _state(warden.pid) != "S":
            await trio.sleep(0.01)
    return warden.pid


@asynccontextmanager
async def sleeper(warden: Warden, mark: str) -> AsyncIterator[ServerProcess]:
    """A server that has to be killed."""
    key, _, value = mark.partition("=")
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); print(1, flush=True); time.sleep(99)"
    env = {**os.environ, key: value}
    process = await spawn(sys.executable, ["-I", "-S", "-c", code], env=env, cwd=None, warden=warden)
    async with trio.open_nursery() as nursery:
        nursery.start_soon(process.watch)
        assert await process.stdout.receive_some(10)
        try:
            yield process
        finally:
            await process.stop(grace=False)
            process.close_pipes()


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_when_the_host_is_killed_nothing_of_it_is_left(mark: str, number: signal.Signals) -> None:
    key, _, value = mark.partition("=")
    servers: list[dict[str, Any]] = [
        {"ignore_eof": True, "ignore_term": True},
        {"ignore_eof": True, "grandchild": "stubborn"},
        {"grandchild": "stubborn"},
        {"grandchild": "escaped"},
        {"ignore_eof": True, "ignore_term": True, "grandchild": "escaped"},
        {},
    ]
    with subprocess.Popen(
        [sys.executable, "-c", HOST, FAKE, json.dumps(servers)],
        env={**os.environ, key: value},
        stdout=subprocess.PIPE,
        start_new_session=True,
    ) as host:
        assert host.stdout is not None
        line = await trio.to_thread.run_sync(host.stdout.readline)
        watcher = int(line)
        assert {watcher, host.pid} < set(marked(mark))
        os.kill(host.pid, number)
        await trio.to_thread.run_sync(host.wait)
        await gone(mark)


async def test_it_is_started_only_when_needed_and_ends_with_the_host() -> None:
    async with open_warden() as warden:
        assert warden.pid is None
        pid = await watcher_of(warden)
        os.kill(pid, 0)
    with pytest.raises(ProcessLookupError):
        os.kill(pid, 0)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
async def test_it_survives_what_a_terminal_or_an_init_sends(mark: str, number: signal.Signals) -> None:
    async with open_warden() as warden:
        pid = await watcher_of(warden)
        async with sleeper(warden, mark) as process:
            for each in (pid, parent_of(process.pid)):
                os.kill(each, number)
                assert os.getsid(each) == each
            async with sleeper(warden, mark) as other:
                assert parent_of(parent_of(other.pid)) == warden.pid == pid
                assert not process.exited.is_set()


async def test_it_holds_none_of_the_hosts_files_and_not_its_folder(tmp_path: Path) -> None:
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        async with open_warden() as warden:
            pid = await watcher_of(warden)
            held = {str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()}
            assert not any(str(tmp_path) in path for path in held)
            assert str(Path(f"/proc/{pid}/cwd").readlink()) == "/"


async def test_when_it_is_killed_its_servers_go_on_and_the_next_one_gets_another(mark: str) -> None:
    async with open_warden() as warden:
        first = await watcher_of(warden)
        async with sleeper(warden, mark) as before:
            os.kill(first, signal.SIGKILL)
            async with sleeper(warden, mark) as after:
                assert warden.pid != first
                assert not before.exited.is_set()
            assert after.gone.is_set()
        assert before.returncode == -signal.SIGKILL


async def test_one_that_hangs_is_replaced_and_looks_after_its_servers_when_it_goes_on(
    mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_warden() as warden:
        first = await watcher_of(warden)
        async with sleeper(warden, mark) as before:
            os.kill(first, signal.SIGSTOP)
            # Long enough that the next one does not seem to hang too, on a busy machine.
            monkeypatch.setattr(warden_module, "HANGS_AFTER", 3.0)
            async with sleeper(warden, mark):
                assert warden.pid not in (None, first)
            assert not before.exited.is_set()
            os.kill(first, signal.SIGCONT)
            os.kill(parent_of(before.pid), signal.SIGKILL)
            with trio.fail_after(10):
                await before.gone.wait()
                while Path(f"/proc/{before.pid}").exists():
                    await trio.sleep(0.01)
    assert not Path(f"/proc/{first}").exists()


async def test_when_a_reaper_is_killed_its_server_is_killed_by_the_watcher_and_the_host_knows(mark: str) -> None:
    async with open_warden() as warden, sleeper(warden, mark) as process, sleeper(warden, mark) as other:
        os.kill(parent_of(process.pid), signal.SIGKILL)
        with trio.fail_after(10):
            await process.gone.wait()
            while Path(f"/proc/{process.pid}").exists():
                await trio.sleep(0.01)
        assert process.returncode is None
        assert process.how_it_ended() == "was lost with the process that watched it"
        assert not other.exited.is_set()


async def test_without_a_watcher_nothing_is_started_and_the_reason_is_one_line(
    mark: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_warden() as warden:
        monkeypatch.setattr(sys, "executable", "/no/such/python")
        with pytest.raises(SpawnFailed, match=r"^command: 'true': no process to watch it: No such file or directory$"):
            await spawn("true", [], env={}, cwd=None, warden=warden)


def _status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


def _state(pid: int) -> str:
    return _status(pid)["State"][0]
