"""Where logins are kept: for us alone, whole at any moment, and not lost to another process."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
from pathlib import Path

import pytest
import trio
from playbill.actors.edge.auth.record import Client, Record
from playbill.actors.edge.auth.store import LoginStore, StoreFailed

from ..forked import Forked

KEY = "k" * 32

WRITER = """
import sys
from pathlib import Path
from playbill.actors.edge.auth.record import Record
from playbill.actors.edge.auth.store import LoginStore
store = LoginStore(Path(sys.argv[1]))
print("ready", flush=True)
n = 0
while True:
    n += 1
    store.write("k" * 32, Record(access_token=f"{n}-" + "x" * 50_000, refresh_token=f"{n}"))
"""

COUNTER = """
import sys, trio
from pathlib import Path
from attrs import evolve
from playbill.actors.edge.auth.store import LoginStore
store = LoginStore(Path(sys.argv[1]))
async def main():
    for _ in range(int(sys.argv[2])):
        async with store.locked("k" * 32):
            record = store.read("k" * 32)
            await trio.sleep(0.002)
            store.write("k" * 32, evolve(record, scope=str(int(record.scope) + 1)))
trio.run(main)
"""


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_a_login_is_for_us_alone_whatever_the_umask(folder: Path) -> None:
    store = LoginStore(folder)
    old = os.umask(0)
    try:
        store.write(KEY, Record(access_token="a", client=Client(id="c", secret="s")))
    finally:
        os.umask(old)
    assert (mode(folder), mode(store.path(KEY))) == (0o700, 0o600)
    store.path(KEY).chmod(0o644)
    folder.chmod(0o755)
    store.write(KEY, Record(access_token="b"))
    assert (mode(folder), mode(store.path(KEY))) == (0o700, 0o600)
    assert [each.name for each in folder.iterdir()] == [f"{KEY}.json"]
    assert store.read(KEY) == Record(access_token="b")
    assert store.forget(KEY)
    assert not store.forget(KEY)
    assert store.read(KEY) is None


@pytest.mark.parametrize("text", ["", "{", "[]", '{"version": 1, "access_token": 3}', "\x00" * 9, "[" * 100_000])
def test_a_file_that_is_spoilt_is_no_login(folder: Path, text: str) -> None:
    folder.mkdir(parents=True)
    LoginStore(folder).path(KEY).write_text(text)
    assert LoginStore(folder).read(KEY) is None


def test_a_writer_that_is_killed_leaves_a_whole_login(folder: Path) -> None:
    store = LoginStore(folder)
    for _ in range(5):
        process = Forked([sys.executable, "-c", WRITER, str(folder)], stdout=subprocess.PIPE)
        assert process.stdout is not None
        assert process.stdout.readline() == b"ready\n"
        while store.read(KEY) is None:
            pass
        seen = store.read(KEY)
        while store.read(KEY) == seen:
            pass
        process.send_signal(signal.SIGKILL)
        process.wait()
        process.stdout.close()
        record = store.read(KEY)
        assert record is not None
        assert record.access_token == f"{record.refresh_token}-" + "x" * 50_000
        assert mode(store.path(KEY)) == 0o600
        for left in folder.glob(".*"):  # what it was writing is as private
            assert mode(left) == 0o600


def test_two_processes_and_many_tasks_renew_one_after_the_other(folder: Path) -> None:
    store = LoginStore(folder)
    store.write(KEY, Record(scope="0"))
    processes = [Forked([sys.executable, "-c", COUNTER, str(folder), "15"]) for _ in range(2)]

    async def ours() -> None:
        async def count() -> None:
            async with store.locked(KEY):
                record = store.read(KEY)
                assert record is not None
                await trio.sleep(0.002)
                store.write(KEY, Record(scope=str(int(record.scope or "") + 1)))

        async with trio.open_nursery() as nursery:
            for _ in range(10):
                nursery.start_soon(count)

    trio.run(ours)
    assert [process.wait() for process in processes] == [0, 0]
    assert store.read(KEY) == Record(scope="40")


async def test_a_lock_that_is_not_let_go_of_is_told_and_costs_nobody_else(folder: Path) -> None:
    store = LoginStore(folder)
    async with store.locked(KEY):
        with pytest.raises(StoreFailed, match="another process is renewing this login"):
            async with store.locked(KEY, patience=0.3):
                raise AssertionError
        async with store.locked("o" * 32):
            pass
        with trio.move_on_after(0.1) as scope:
            async with store.locked(KEY):
                raise AssertionError
        assert scope.cancelled_caught
    async with store.locked(KEY):
        pass


def test_a_folder_that_cannot_be_made_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    with pytest.raises(StoreFailed, match=r"Not a directory|File exists"):
        LoginStore(tmp_path / "file" / "logins").write(KEY, Record())
