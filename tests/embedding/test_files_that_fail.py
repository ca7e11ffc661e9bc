"""A host whose file cannot be written, or was: memory and disk say the same afterwards, and only that operation pays.

Real files, users, locks and threads; servers in memory. A thread that hangs is held by an event, and let go by the test.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
import textwrap
import threading
from collections.abc import Callable, Iterator
from contextlib import AbstractAsyncContextManager
from pathlib import Path
from typing import Any

import playbill.actors.opening
import pytest
import trio
from playbill.actors import ConfigError, Host, HostClosed, OperationTimeout, Snapshot, WriteFailed, open_host, sources
from playbill.actors.coordinator import Coordinator
from playbill.actors.edge.config import atomic
from playbill.actors.edge.config import file as config_file
from playbill.actors.testing import ScriptedServers

from .conftest import PATIENCE

NOBODY = 65534
TEXT = '{\n  "mcpServers": {\n    "a": {"command": "a"} // mine\n  }\n}\n'
HIDDEN = TEXT.replace('"a"}', '"a", "tools": {"exclude": ["x"]}}')


@pytest.fixture
def file() -> Iterator[Path]:
    """In a folder that every user gets to."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "project"
        Path(name).chmod(0o755)
        folder.mkdir()
        folder.chmod(0o777)
        (folder / "mcp.json").write_text(TEXT)
        yield folder / "mcp.json"


def opened(file: Path, connect: ScriptedServers | None = None, **options: Any) -> AbstractAsyncContextManager[Host]:
    return open_host(file, connect=connect or ScriptedServers(a=["x", "y"], b=["z"]), **options)


def shown(snapshot: Snapshot) -> bool:
    tool = snapshot.model.tool("a", "x")
    assert tool is not None
    assert tool.enabled is (snapshot.catalog.tool("mcp__a__x") is not None)
    return tool.enabled


async def until(host: Host, what: Callable[[Snapshot], bool]) -> Snapshot:
    with trio.fail_after(PATIENCE):
        async for snapshot in host.changes():
            if what(snapshot):
                return snapshot
    raise AssertionError("the host closed")


def away(file: Path) -> Callable[[], object]:
    file.rename(file.with_name("old"))
    return lambda: file.with_name("old").replace(file)


def folder_away(file: Path) -> Callable[[], object]:
    file.parent.rename(file.parent.with_name("old"))
    return lambda: file.parent.with_name("old").rename(file.parent)


def folder_instead(file: Path) -> Callable[[], object]:
    back = away(file)
    file.mkdir()

    def undo() -> None:
        file.rmdir()
        back()

    return undo


def pipe_instead(file: Path) -> Callable[[], object]:
    back = away(file)
    os.mkfifo(file)
    return back


def dangling(file: Path) -> Callable[[], object]:
    back = away(file)
    file.symlink_to("nowhere.json")
    return back


def read_only(file: Path) -> Callable[[], object]:
    file.chmod(0o444)
    return lambda: file.chmod(0o644)


def read_only_folder(file: Path) -> Callable[[], object]:
    """As another user than root, who may write everywhere."""
    root = os.geteuid() == 0
    file.parent.chmod(0o555)
    if root:
        os.chown(file, NOBODY, NOBODY)
        os.setegid(NOBODY)
        os.seteuid(NOBODY)

    def undo() -> None:
        if root:
            os.seteuid(0)
            os.setegid(0)
        file.parent.chmod(0o777)

    return undo


@pytest.mark.parametrize(
    ("spoil", "error", "words"),
    [
        (away, ConfigError, "there is no such file"),
        (folder_away, ConfigError, "there is no such file"),
        (folder_instead, ConfigError, "this is a folder, not a file"),
        (pipe_instead, ConfigError, "it is not a regular file"),
        (dangling, ConfigError, "it is a link to .*nowhere.json, which is not there"),
        (read_only, WriteFailed, "the file is read-only"),
        (read_only_folder, WriteFailed, "its lock cannot be taken: permission denied"),
    ],
)
async def test_an_edit_that_cannot_be_written_is_nowhere_and_works_when_it_can(
    file: Path, spoil: Callable[[Path], Callable[[], object]], error: type[Exception], words: str
) -> None:
    connect = ScriptedServers(a=["x", "y"])
    async with opened(file, connect) as host:
        assert await host.ready(timeout=PATIENCE)
        mend = spoil(file)
        try:
            with pytest.raises(error, match=words) as told:
                await host.tool_set_enabled("a", "x", False)
            snapshot = host.snapshot()
            assert str(file) in str(told.value)
            assert "\n" not in str(told.value)
        finally:
            mend()
        assert shown(snapshot)
        assert file.read_text() == TEXT
        assert [each.name for each in file.parent.iterdir()] == ["mcp.json"]
        assert shown(await host.reload())
        snapshot = await host.tool_set_enabled("a", "x", False)
        assert (shown(snapshot), snapshot.model.config_error) == (False, None)
        assert file.read_text() == HIDDEN
        assert connect.spawns == {"a": 1}


FULL = """
import json, os, resource, subprocess, sys, trio
from pathlib import Path
from playbill.actors import PlaybillError, open_host
from playbill.actors.testing import ScriptedServers

async def main():
    folder = Path(sys.argv[1])
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=128k", "none", folder]).returncode == 0
    path, filler = folder / "mcp.json", folder / "filler"
    text = '{"mcpServers": {"a": {"command": "a"}}} // ' + "x" * 30_000
    path.write_text(text)
    async with open_host(path, connect=ScriptedServers(a=["x", "y"])) as host:
        await host.ready(timeout=30)
        if mounted:
            try:
                with filler.open("wb", buffering=0) as stream:
                    while True:
                        stream.write(bytes(1024))
            except OSError:
                os.truncate(filler, filler.stat().st_size - 8192)
        else:
            resource.setrlimit(resource.RLIMIT_FSIZE, (8192, resource.RLIM_INFINITY))
        for roomy in (False, True):
            if roomy:
                filler.unlink(missing_ok=True)
                resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
            try:
                snapshot, why = await host.tool_set_enabled("a", "x", False), None
            except PlaybillError as error:
                snapshot, why = host.snapshot(), f"{type(error).__name__}: {error}"
            read = await host.reload()
            print(json.dumps([why, path.read_text() == text, sorted(set(os.listdir(folder)) - {"filler"}),
                              snapshot.model.tool("a", "x").enabled, read.model.tool("a", "x").enabled]))

trio.run(main)
"""


async def test_a_full_disk_costs_the_edit_and_nothing_else(tmp_path: Path) -> None:
    alone = ["unshare", "--user", "--map-root-user", "--mount"]
    may = shutil.which("unshare") and subprocess.run([*alone, "true"], capture_output=True, check=False).returncode == 0
    command = [*(alone if may else []), sys.executable, "-c", textwrap.dedent(FULL), str(tmp_path)]
    done = await trio.run_process(command, capture_stdout=True)
    full, roomy = map(json.loads, done.stdout.splitlines())
    assert full[0].startswith("WriteFailed: ")
    assert full[0].endswith(("no space left on device", "file too large"))
    assert full[1:] == [True, ["mcp.json"], True, True]
    assert roomy == [None, False, ["mcp.json"], False, False]


HOLDER = """
import sys
from filelock import FileLock
with FileLock(sys.argv[1]):
    print("held", flush=True)
    sys.stdin.read()
"""


@pytest.fixture
def holder(file: Path) -> Iterator[subprocess.Popen[str]]:
    """Another process that has the file's lock, until it is killed."""
    command = [sys.executable, "-c", HOLDER, f"{file}.lock"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process
        process.kill()


@pytest.fixture
def waits(monkeypatch: pytest.MonkeyPatch) -> threading.Event:
    """Set when a store begins to wait for its lock."""
    begun, real = threading.Event(), config_file.locked

    def locked(*args: Any) -> Any:
        begun.set()
        return real(*args)

    monkeypatch.setattr(config_file, "locked", locked)
    return begun


async def test_a_lock_that_is_not_let_go_costs_the_edit_and_nothing_else(
    file: Path, holder: subprocess.Popen[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sources, "LOCK_PATIENCE", 0.1)
    async with opened(file) as host:
        assert await host.ready(timeout=PATIENCE)
        with pytest.raises(WriteFailed, match=r"another process has held its lock for more than 0\.1 s"):
            await host.tool_set_enabled("a", "x", False)
        assert shown(host.snapshot())
        assert shown(await host.reload())  # reading takes no lock
        assert file.read_text() == TEXT
        # A dead holder holds nothing, and what it left is no trouble.
        holder.kill()
        holder.wait()
        assert not shown(await host.tool_set_enabled("a", "x", False))
        assert [each.name for each in file.parent.iterdir()] == ["mcp.json"]


async def test_calls_restarts_and_snapshots_do_not_wait_for_who_waits_for_a_lock(
    file: Path, holder: subprocess.Popen[str], waits: threading.Event
) -> None:
    async with opened(file) as host:
        assert await host.ready(timeout=PATIENCE)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(host.tool_set_enabled, "a", "x", False)
            assert await trio.to_thread.run_sync(waits.wait, PATIENCE)
            await host.call("mcp__a__x", {}, timeout=PATIENCE)
            await host.restart("a")
            assert await host.ready(timeout=PATIENCE)
            assert shown(host.snapshot())
            holder.kill()
        assert not shown(host.snapshot())


class Held:
    """A call below the store that hangs until it is let go."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, place: Any, name: str) -> None:
        self.begun, self.free = threading.Event(), threading.Event()
        real = getattr(place, name)

        def call(*args: Any) -> Any:
            if not self.begun.is_set():
                self.begun.set()
                self.free.wait(PATIENCE)
            return real(*args)

        monkeypatch.setattr(place, name, call)


@pytest.fixture
def catching_up(monkeypatch: pytest.MonkeyPatch) -> trio.Event:
    """Set when a host has looked what became of a visit that it gave up."""
    looked, load = trio.Event(), Coordinator._load

    def loading(coordinator: Coordinator, trusted: Any) -> Any:
        done = load(coordinator, trusted)
        trio.from_thread.run_sync(looked.set)
        return done

    monkeypatch.setattr(Coordinator, "_load", loading)
    return looked


async def test_a_write_that_was_given_up_before_the_file_was_replaced_never_lands(
    file: Path, monkeypatch: pytest.MonkeyPatch, catching_up: trio.Event
) -> None:
    monkeypatch.setattr(playbill.actors.opening, "STORE_PATIENCE", 0.2)
    held = Held(monkeypatch, atomic.os, "fsync")
    async with opened(file) as host:
        assert await host.ready(timeout=PATIENCE)
        try:
            with pytest.raises(OperationTimeout) as timeout:
                await host.tool_set_enabled("a", "x", False)
            assert timeout.value.applied is None
            assert shown(host.snapshot())
        finally:
            held.free.set()
        with trio.fail_after(PATIENCE):
            await catching_up.wait()
        assert shown(host.snapshot())
        assert file.read_text() == TEXT
        assert [each.name for each in file.parent.iterdir()] == ["mcp.json"]
        monkeypatch.setattr(playbill.actors.opening, "STORE_PATIENCE", PATIENCE)
        assert not shown(await host.tool_set_enabled("a", "x", False))


async def test_a_write_that_lands_after_it_was_given_up_is_taken_up_by_itself(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(playbill.actors.opening, "STORE_PATIENCE", 0.2)
    held = Held(monkeypatch, Path, "replace")
    async with opened(file) as host:
        assert await host.ready(timeout=PATIENCE)
        try:
            with pytest.raises(OperationTimeout) as timeout:
                await host.tool_set_enabled("a", "x", False)
            assert timeout.value.applied is None
            assert shown(host.snapshot())
        finally:
            held.free.set()
        await until(host, lambda snapshot: not shown(snapshot))
        assert file.read_text() == HIDDEN


async def test_a_write_that_hangs_while_the_host_closes_is_left_behind_and_never_lands(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(playbill.actors.opening, "STORE_PATIENCE", 0.2)
    held = Held(monkeypatch, atomic.os, "fsync")

    async def toggle(host: Host) -> None:
        with pytest.raises((OperationTimeout, HostClosed)):
            await host.tool_set_enabled("a", "x", False)

    try:
        async with trio.open_nursery() as nursery, opened(file) as host:
            assert await host.ready(timeout=PATIENCE)
            nursery.start_soon(toggle, host)
            assert await trio.to_thread.run_sync(held.begun.wait, PATIENCE)
    finally:
        held.free.set()
    with trio.fail_after(PATIENCE):
        while len(list(file.parent.iterdir())) > 1:
            await trio.sleep(0.01)
    assert file.read_text() == TEXT


@pytest.mark.parametrize("watch", [False, True])
async def test_an_invalid_edit_by_hand_refuses_a_toggle_and_once_it_is_mended_both_count_once(
    file: Path, watch: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    reloads: list[int] = []
    load = Coordinator._load
    monkeypatch.setattr(Coordinator, "_load", lambda self, trusted: reloads.append(1) or load(self, trusted))
    connect = ScriptedServers(a=["x", "y"], b=["z"])
    good = TEXT.replace("// mine", ', "b": {"command": "b"} // mine')
    async with opened(file, connect, watch=watch) as host:
        assert await host.ready(timeout=PATIENCE)
        broken = good.replace('"b": {', '"b": [')
        file.write_text(broken)
        with pytest.raises(ConfigError, match=r"mcp\.json:3:\d+: "):
            await host.tool_set_enabled("a", "x", False)
        snapshot = host.snapshot()
        assert shown(snapshot)
        assert snapshot.model.config_error is not None
        assert file.read_text() == broken
        file.write_text(good)
        snapshot = await host.tool_set_enabled("a", "x", False)
        assert not shown(snapshot)
        snapshot = await until(host, lambda each: [s.name for s in each.model.servers] == ["a", "b"])
        assert snapshot.model.config_error is None
        assert await host.ready(timeout=PATIENCE)
        assert file.read_text() == good.replace('"a"}', '"a", "tools": {"exclude": ["x"]}}')
        assert connect.spawns == {"a": 1, "b": 1}
        if not watch:
            assert not reloads  # the edit itself took up what was done by hand
        assert [each.name for each in file.parent.iterdir()] == ["mcp.json"]
