"""The watcher: what it kills when the host is killed, and that it neither lingers nor holds on to anything."""

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
from playbill.actors.edge.wire.warden import Warden, open_warden

from .conftest import FAKE, marked

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
    await warden.ready()
    assert warden.pid is not None
    return warden.pid


def start_sleeper(mark: str) -> subprocess.Popen[bytes]:
    key, _, value = mark.partition("=")
    code = "import signal, time; signal.signal(signal.SIGTERM, signal.SIG_IGN); time.sleep(99)"
    return subprocess.Popen(
        [sys.executable, "-I", "-S", "-c", code], env={**os.environ, key: value}, start_new_session=True
    )


@pytest.mark.parametrize("number", [signal.SIGKILL, signal.SIGTERM])
async def test_when_the_host_is_killed_nothing_of_it_is_left(mark: str, number: signal.Signals) -> None:
    key, _, value = mark.partition("=")
    servers: list[dict[str, Any]] = [
        {"ignore_eof": True, "ignore_term": True},
        {"ignore_eof": True, "grandchild": "stubborn"},
        {"grandchild": "stubborn"},
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


async def test_what_was_forgotten_is_not_killed(mark: str) -> None:
    kept, swept = start_sleeper(mark), start_sleeper(mark)
    with kept, swept:
        async with open_warden() as warden:
            await warden.ready()
            for process in (kept, swept):
                warden.watch(process.pid)
            warden.forget(kept.pid)
        await trio.to_thread.run_sync(swept.wait)
        assert swept.returncode == -signal.SIGKILL
        assert kept.poll() is None
        kept.kill()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT])
async def test_it_survives_what_a_terminal_or_an_init_sends(mark: str, number: signal.Signals) -> None:
    sleeper = start_sleeper(mark)
    with sleeper:
        async with open_warden() as warden:
            pid = await watcher_of(warden)
            warden.watch(sleeper.pid)
            # Only once its handlers are set can it survive; its stdin is polled after that.
            with trio.fail_after(10):
                while b"poll" not in Path(f"/proc/{pid}/wchan").read_bytes() and _state(pid) != "S":
                    await trio.sleep(0.01)
                while int(_status(pid)["SigIgn"], 16) & 0x4007 != 0x4007:
                    await trio.sleep(0.01)
            os.kill(pid, number)
            assert os.getsid(pid) == pid
        await trio.to_thread.run_sync(sleeper.wait)
        assert sleeper.returncode == -signal.SIGKILL


async def test_it_holds_none_of_the_hosts_files_and_not_its_folder(tmp_path: Path) -> None:
    with (tmp_path / "open").open("w") as file:
        os.set_inheritable(file.fileno(), True)
        async with open_warden() as warden:
            pid = await watcher_of(warden)
            with trio.fail_after(10):
                while int(_status(pid)["SigIgn"], 16) & 0x4007 != 0x4007:
                    await trio.sleep(0.01)
            held = {str(link.readlink()) for link in Path(f"/proc/{pid}/fd").iterdir()}
            assert not any(str(tmp_path) in path for path in held)
            assert str(Path(f"/proc/{pid}/cwd").readlink()) == "/"


async def test_one_that_was_killed_is_replaced_and_told_everything(mark: str) -> None:
    sleepers = [start_sleeper(mark) for _ in range(2)]
    async with open_warden() as warden:
        first = await watcher_of(warden)
        warden.watch(sleepers[0].pid)
        os.kill(first, signal.SIGKILL)
        with trio.fail_after(10):
            while warden.failure is None:  # the pipe breaks when the kernel has torn the process down
                warden.watch(sleepers[1].pid)
                await trio.sleep(0.01)
        second = await watcher_of(warden)
        assert second != first
        assert warden.failure is None
    for sleeper in sleepers:
        await trio.to_thread.run_sync(sleeper.wait)
        assert sleeper.returncode == -signal.SIGKILL


def _status(pid: int) -> dict[str, str]:
    lines = Path(f"/proc/{pid}/status").read_text().splitlines()
    return {key: value.strip() for key, _, value in (line.partition(":") for line in lines)}


def _state(pid: int) -> str:
    return _status(pid)["State"][0]
