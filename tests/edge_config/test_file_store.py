"""The file: real files, real processes, and everything that may go wrong between them.

No sleep synchronises anything: processes answer on their pipes, and what must happen in between is put there by hand.
"""

from __future__ import annotations

import errno
import json
import os
import stat
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import filelock
import pytest
from filelock import FileLock
from playbill.actors.edge.config import atomic
from playbill.actors.edge.config import file as config_file
from playbill.actors.edge.config import lock as lock_module
from playbill.actors.edge.config.edit import Draft
from playbill.actors.edge.config.env_file import read_env_file
from playbill.actors.edge.config.file import FileStore, MemoryStore
from playbill.actors.edge.config.read import read_config
from playbill.actors.model.config import Config, ServerEntry
from playbill.actors.model.edits import AddServer, RemoveServer, SetEnabled, SetTool
from playbill.actors.model.errors import ConfigError, ServerExists, UnknownServer, WriteFailed

TEXT = '{\n  "mcpServers": {\n    "a": {"command": "c"}, // mine\n    "b": {"command": "d"}\n  }\n}\n'
OFF = SetTool("a", "t", False)
HIDDEN = TEXT.replace('"c"}', '"c", "tools": {"exclude": ["t"]}}')


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "mcp.json"
    path.write_text(TEXT, "utf-8")
    return path


def beside(file: Path) -> set[str]:
    """What is in the folder besides the file."""
    return {each.name for each in file.parent.iterdir()} - {file.name}


def test_an_edit_is_written_and_read_back(file: Path) -> None:
    store = FileStore(file)
    before = store.load()
    done = store.edit([OFF], before)
    assert (done.wrote, done.refused) == (True, (None,))
    assert file.read_text("utf-8") == HIDDEN
    assert done.config == store.load() == read_config(HIDDEN, str(file))
    assert done.config.path == str(file)
    assert done.config.servers[1] is before.servers[1]
    assert beside(file) == set()


def test_a_batch_is_one_write_and_refusals_stop_nothing(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    writes: list[bytes] = []
    real = config_file.write_atomic
    monkeypatch.setattr(config_file, "write_atomic", lambda *a, **k: writes.append(a[1]) or real(*a, **k))
    batch = [SetTool("nope", "t", False), OFF, AddServer(ServerEntry("a", command="x")), SetEnabled("b", False)]
    done = FileStore(file).edit([*batch, AddServer(ServerEntry("n", command="x")), RemoveServer("n")])
    assert [type(each) for each in done.refused] == [UnknownServer, type(None), ServerExists, *[type(None)] * 3]
    assert writes == [file.read_bytes()]
    assert file.read_text("utf-8") == HIDDEN.replace('"d"}', '"d", "disabled": true}')


def test_edits_that_change_nothing_write_nothing(file: Path) -> None:
    before = file.stat()
    store = FileStore(file)
    batch = [SetTool("a", "t", True), OFF, SetTool("a", "t", True), SetTool("nope", "t", True)]
    done = store.edit(batch)
    assert (done.wrote, done.config) == (False, store.load())
    after = file.stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_file_that_cannot_be_read_is_refused_and_left_alone(file: Path) -> None:
    file.write_text("{ x", "utf-8")
    store = FileStore(file)
    add = AddServer(ServerEntry("new", command="c"))
    for act in (store.load, lambda: store.edit([OFF]), lambda: store.edit([add])):
        with pytest.raises(ConfigError, match=r"mcp\.json:1:3: keys? .*|expected a key"):
            act()
    assert file.read_text("utf-8") == "{ x"
    assert beside(file) == set()


def test_a_mended_file_gets_both_changes(file: Path) -> None:
    store = FileStore(file)
    first = store.load()
    file.write_text(TEXT[:-4], "utf-8")
    with pytest.raises(ConfigError):
        store.edit([OFF], first)
    file.write_text(TEXT.replace('"d"', '"e"'), "utf-8")
    done = store.edit([OFF], first)
    assert file.read_text("utf-8") == HIDDEN.replace('"d"', '"e"')
    assert [e.command for e in done.config.servers] == ["c", "e"]


@pytest.mark.parametrize("kind", ["missing", "folder", "fifo", "unreadable"])
def test_what_is_not_a_readable_file_is_one_clear_line(tmp_path: Path, kind: str) -> None:
    path = tmp_path / "mcp.json"
    if kind == "folder":
        path.mkdir()
    elif kind == "fifo":
        os.mkfifo(path)
    elif kind == "unreadable":
        path.symlink_to("/proc/self/mem" if Path("/proc/self/mem").exists() else tmp_path)
    words = {"missing": "there is no such file", "folder": "this is a folder", "fifo": "not a regular file"}
    with unblocked(path), pytest.raises(ConfigError, match=words.get(kind, "cannot be read|folder")) as caught:
        FileStore(path).load()
    assert str(path) in str(caught.value)
    assert type(caught.value) is ConfigError


@contextmanager
def unblocked(path: Path) -> Iterator[None]:
    """Proof that nothing waits for a writer of a named pipe: one that does is freed after a while, and fails."""
    done = threading.Event()
    waited = []

    def free() -> None:
        if not done.wait(5) and path.is_fifo():
            waited.append(path)
            os.close(os.open(path, os.O_RDWR))

    watch = threading.Thread(target=free)
    watch.start()
    try:
        yield
    finally:
        done.set()
        watch.join()
    assert not waited


def test_an_env_file_that_is_a_named_pipe_is_not_waited_for(tmp_path: Path) -> None:
    os.mkfifo(path := tmp_path / "env")
    with unblocked(path), pytest.raises(ValueError, match="not a regular file"):
        read_env_file(path)


def test_adding_to_a_missing_file_makes_it(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    store = FileStore(path)
    with pytest.raises(ConfigError, match="there is no such file"):
        store.edit([OFF])
    assert not path.exists()
    done = store.edit([SetTool("x", "t", False), AddServer(ServerEntry("n", command="c", env={"A": "b"}))])
    assert (done.wrote, type(done.refused[0]), done.refused[1]) == (True, UnknownServer, None)
    assert json.loads(path.read_text("utf-8")) == {"mcpServers": {"n": {"command": "c", "env": {"A": "b"}}}}
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert done.config == store.load()
    assert done.config.servers[0].source == str(path)


def test_a_missing_folder_is_a_failed_write(tmp_path: Path) -> None:
    with pytest.raises(WriteFailed, match="there is no folder"):
        FileStore(tmp_path / "no" / "mcp.json").edit([AddServer(ServerEntry("n", command="c"))])


def test_mode_and_owner_stay(file: Path) -> None:
    file.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(file, 12345, 23456)
    before = file.stat()
    FileStore(file).edit([OFF])
    after = file.stat()
    assert stat.S_IMODE(after.st_mode) == 0o640
    assert (after.st_uid, after.st_gid) == (before.st_uid, before.st_gid)
    assert after.st_ino != before.st_ino


def test_a_symbolic_link_stays_one_and_its_target_is_written(file: Path, tmp_path: Path) -> None:
    links = tmp_path / "links"
    links.mkdir()
    link = links / "config.json"
    link.symlink_to(Path("..") / "mcp.json")
    done = FileStore(link).edit([OFF])
    assert link.is_symlink()
    assert file.read_text("utf-8") == HIDDEN
    assert done.config.path == str(link)
    assert sorted(each.name for each in links.iterdir()) == ["config.json"]
    # Who knows the file by another name waits for the same lock.
    with FileLock(tmp_path / "mcp.json.lock", thread_local=False), pytest.raises(WriteFailed, match="held its lock"):
        in_thread(lambda: FileStore(link, lock_timeout=0.02).edit([SetTool("a", "t", True)]))


def test_a_reader_that_has_the_file_open_keeps_the_old_text_whole(file: Path) -> None:
    with file.open(encoding="utf-8") as reader:
        FileStore(file).edit([OFF])
        assert reader.read() == TEXT


def test_a_read_only_file_is_not_written(file: Path) -> None:
    file.chmod(0o444)
    with pytest.raises(WriteFailed, match="the file is read-only"):
        FileStore(file).edit([OFF])
    assert file.read_text("utf-8") == TEXT
    assert beside(file) == set()


@pytest.mark.parametrize("where", ["write", "fsync", "open", "replace"])
def test_a_full_disk_leaves_the_old_file_and_no_other(file: Path, monkeypatch: pytest.MonkeyPatch, where: str) -> None:
    store = FileStore(file)
    before = store.load()

    def full(*args: Any, **_: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    real, open_ = os.write, os.open

    def full_when_new(path: Any, flags: int, *rest: Any) -> int:
        return full() if flags & os.O_CREAT else open_(path, flags, *rest)

    def half(handle: int, data: Any) -> int:
        if monkeypatch is not None and len(data) > 10:
            return real(handle, data[:10])
        return full()

    with monkeypatch.context() as patch:
        if where == "replace":
            patch.setattr(Path, "replace", full)
        elif where == "open":
            patch.setattr(atomic.os, "open", full_when_new)
        else:
            patch.setattr(atomic.os, where, half if where == "write" else full)
        with pytest.raises(WriteFailed, match=r"(?i)no space left on device"):
            store.edit([OFF], before)
    assert file.read_text("utf-8") == TEXT
    assert beside(file) == set()
    # Memory and disk agree: the failed edit is nowhere, and works when there is room.
    assert store.load(before) is before
    assert store.edit([OFF], before).wrote
    assert file.read_text("utf-8") == HIDDEN


def test_the_disk_is_waited_for_unless_told_otherwise(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    synced: list[str] = []
    real = os.fsync

    def fsync(handle: int) -> None:
        synced.append("folder" if stat.S_ISDIR(os.fstat(handle).st_mode) else file.read_text("utf-8"))
        real(handle)

    monkeypatch.setattr(atomic.os, "fsync", fsync)
    FileStore(file, fsync=False).edit([OFF])
    assert synced == []
    FileStore(file).edit([SetTool("a", "t", True)])
    # The bytes before the replacement, the folder after it.
    assert synced == [HIDDEN, "folder"]
    assert file.read_text("utf-8") == TEXT


def test_a_temporary_file_left_by_a_killed_writer_is_no_trouble(file: Path) -> None:
    (file.parent / ".mcp.json.playbill.tmp").write_text("half", "utf-8")
    assert FileStore(file).edit([OFF]).wrote
    assert beside(file) == set()


@pytest.mark.parametrize("times", [1, 3])
def test_who_writes_without_the_lock_meanwhile_loses_nothing(
    file: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    real = Draft.finish
    rounds: list[int] = []

    def finish(draft: Draft) -> Any:
        done = real(draft)
        if len(rounds) < times:
            rounds.append(1)
            file.write_text(
                file.read_text("utf-8").replace('"b": {', f'"n{len(rounds)}": {{"command": "x"}},\n    "b": {{')
            )
        return done

    monkeypatch.setattr(Draft, "finish", finish)
    done = FileStore(file).edit([OFF])
    names = ["a", *(f"n{i + 1}" for i in range(times)), "b"]
    assert [e.name for e in done.config.servers] == names
    assert [e.exclude for e in done.config.servers] == [e.exclude for e in read_config(file.read_text("utf-8")).servers]
    assert done.config.servers[0].exclude == ("t",)


def test_a_file_that_is_spoilt_meanwhile_is_refused_and_left_alone(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    real = Draft.finish

    def finish(draft: Draft) -> Any:
        file.write_text("{", "utf-8")
        return real(draft)

    monkeypatch.setattr(Draft, "finish", finish)
    with pytest.raises(ConfigError, match="the file ends before"):
        FileStore(file).edit([OFF])
    assert file.read_text("utf-8") == "{"


def test_a_file_that_is_empty_while_it_is_saved_is_given_a_moment(file: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file.write_bytes(b"")
    naps: list[float] = []

    def nap(seconds: float) -> None:
        naps.append(seconds)
        if len(naps) == 2:
            file.write_text(TEXT, "utf-8")

    monkeypatch.setattr(config_file.time, "sleep", nap)
    assert len(FileStore(file).load().servers) == 2
    file.write_bytes(b"")
    with pytest.raises(ConfigError, match="the file is empty"):
        FileStore(file).load()
    assert sum(naps) < 0.3


def test_a_lock_that_is_held_is_waited_for_only_so_long(file: Path) -> None:
    lock = FileLock(str(file) + ".lock", thread_local=False)
    store = FileStore(file, lock_timeout=0.05)
    with lock, pytest.raises(WriteFailed, match=r"held its lock for more than 0\.05 s"):
        in_thread(lambda: store.edit([OFF]))
    assert file.read_text("utf-8") == TEXT
    assert store.edit([OFF]).wrote


def test_the_lock_file_goes_before_the_lock_does_or_it_might_be_the_next_ones(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there: list[bool] = []

    class Watched(FileLock):
        def release(self, *args: Any, **keys: Any) -> None:
            if self.is_locked:
                there.append(Path(self.lock_file).exists())
            super().release(*args, **keys)

    monkeypatch.setattr(filelock, "FileLock", Watched)
    assert FileStore(file).edit([OFF]).wrote
    assert there == [False]


def test_a_holder_rests_after_its_edit_when_somebody_waits_and_only_then(
    file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rests: list[float] = []
    sleep = time.sleep

    def nap(seconds: float) -> None:
        if seconds == lock_module._REST:
            rests.append(seconds)
        sleep(seconds)

    monkeypatch.setattr(lock_module.time, "sleep", nap)
    store = FileStore(file)
    assert store.edit([OFF]).wrote
    assert rests == []
    with lock_module.locked(file, 0):
        other = threading.Thread(target=lambda: FileStore(file, lock_timeout=60).edit([SetTool("a", "t", True)]))
        other.start()
        while not file.with_name("mcp.json.lock").stat().st_size:  # until it says that it waits
            sleep(0.001)
    assert len(rests) == 1
    other.join()
    assert file.read_text("utf-8") == TEXT
    assert beside(file) == set()


def in_thread(work: Any) -> Any:
    """What the work returns or raises in another thread (as the host calls a store)."""
    out: list[Any] = []

    def run() -> None:
        try:
            out.append(work())
        except BaseException as error:
            out.append(error)

    thread = threading.Thread(target=run)
    thread.start()
    thread.join()
    if isinstance(out[0], BaseException):
        raise out[0]
    return out[0]


def start(code: str, *args: Any) -> subprocess.Popen[str]:
    """A Python process that runs the code; its first output line says that it got so far."""
    head = "import sys\nfrom playbill.actors.edge.config.file import *\nfrom playbill.actors.model.edits import *\n"
    command = [sys.executable, "-c", head + code, *map(str, args)]
    return subprocess.Popen(command, stdout=subprocess.PIPE, stdin=subprocess.PIPE, text=True)


@pytest.fixture
def processes() -> Iterator[list[subprocess.Popen[str]]]:
    started: list[subprocess.Popen[str]] = []
    yield started
    for process in started:
        process.kill()
        process.wait()
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.close()
        process.stdout.close()


def test_a_lock_dies_with_its_holder(file: Path, processes: list[subprocess.Popen[str]]) -> None:
    code = "from filelock import FileLock\nlock = FileLock(sys.argv[1])\nlock.acquire()\n"
    code += "print('held', flush=True)\nsys.stdin.read()"
    holder = start(code, str(file) + ".lock")
    processes.append(holder)
    assert holder.stdout is not None
    assert holder.stdout.readline() == "held\n"
    with pytest.raises(WriteFailed, match="another process"):
        FileStore(file, lock_timeout=0.02).edit([OFF])
    holder.kill()
    holder.wait()
    assert FileStore(file, lock_timeout=0.02).edit([OFF]).wrote


TOGGLES = """
store = FileStore(sys.argv[1], fsync=False, lock_timeout=60)
print("ready", flush=True); sys.stdin.readline()
for i in range(int(sys.argv[3])):
    assert store.edit([SetTool("a", f"{sys.argv[2]}{i}", False)]).refused == (None,)
"""


def test_processes_that_edit_one_file_lose_no_edit(file: Path, processes: list[subprocess.Popen[str]]) -> None:
    count = 60
    processes += [start(TOGGLES, file, each, count) for each in "xy"]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    store = FileStore(file, fsync=False, lock_timeout=60)
    for i in range(count):
        store.edit([SetEnabled("b", i % 2 == 1)])
        read_config(file.read_text("utf-8"))
    assert [process.wait(60) for process in processes] == [0, 0]
    (a, b) = store.load().servers
    assert sorted(a.exclude) == sorted(f"{each}{i}" for each in "xy" for i in range(count))
    assert not b.disabled
    assert file.read_text("utf-8").count("// mine") == 1


def test_a_value_in_memory_is_edited_in_memory() -> None:
    a = ServerEntry("a", server=object())
    store = MemoryStore(Config((a,)))
    done = store.edit([OFF, SetTool("nope", "t", False), AddServer(ServerEntry("b", command="c"))])
    assert [type(each) for each in done.refused] == [type(None), UnknownServer, type(None)]
    assert not done.wrote
    assert store.load() is done.config
    assert [(e.name, e.exclude) for e in done.config.servers] == [("a", ("t",)), ("b", ())]


def test_an_edit_that_is_refused_leaves_nothing_beside_the_file(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text('{"mcpServers": {"a": {"command": "a"}}}')
    done = FileStore(path).edit([RemoveServer("b"), SetEnabled("a", True)])
    assert isinstance(done.refused[0], UnknownServer)
    assert [each.name for each in tmp_path.iterdir()] == ["mcp.json"]
