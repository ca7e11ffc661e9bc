"""How a watch ends or cannot begin, what it asks of watchfiles, and where that has to poll."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
import trio
import watchfiles
from playbill.actors import PlaybillError
from playbill.actors.edge.config import watch as watch_module
from playbill.actors.edge.config.watch import require_watchfiles, survey, watch

from .told import PATIENCE, in_place, rename_over, watching, with_its_folder_moved_away


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "STEP", 0.02)


async def test_what_the_answer_raises_leaves_as_it_is_and_the_thread_has_ended(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    error = ZeroDivisionError("mine")

    async def failing() -> None:
        raise error

    before = inotify_files()
    with pytest.raises(ZeroDivisionError) as caught:
        await watch(lambda: [path], failing)
    assert caught.value is error
    await only_inotify_files(before)


class Panic(BaseException):
    """As the Rust code raises it: no Exception."""


@pytest.mark.parametrize(
    ("raised", "expected", "words"),
    [
        (OSError(28, "OS file watch limit reached."), OSError, "watch limit"),
        (PermissionError(13, "Permission denied"), PermissionError, "denied"),
        (FileNotFoundError("No path was found."), FileNotFoundError, "No path"),
        (Panic("index out of bounds"), RuntimeError, "Panic: index out of bounds"),
    ],
)
async def test_a_watch_that_cannot_begin_is_an_error_of_ours(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, raised: BaseException, expected: type[Exception], words: str
) -> None:
    def broken(*_: str, **__: Any) -> Any:
        raise raised

    async def changed() -> None:
        raise AssertionError("nothing is watched")

    monkeypatch.setattr(watchfiles, "watch", broken)
    with trio.fail_after(PATIENCE), pytest.raises(expected, match=words):
        await watch(lambda: [tmp_path / "mcp.json"], changed)


async def test_a_watch_that_ends_by_itself_is_an_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def ending(*_: str, stop_event: Any, **__: Any) -> Any:
        stop_event.is_set()
        return iter([])

    async def changed() -> None:
        await trio.lowlevel.checkpoint()

    monkeypatch.setattr(watchfiles, "watch", ending)
    with trio.fail_after(PATIENCE), pytest.raises(RuntimeError, match="ended by itself"):
        await watch(lambda: [tmp_path / "mcp.json"], changed)


def inotify_files() -> int:
    count = 0
    for name in os.listdir("/proc/self/fd"):
        with suppress(OSError):
            count += "inotify" in os.readlink(f"/proc/self/fd/{name}")
    return count


async def only_inotify_files(count: int) -> None:
    """Wait until there are as many again: the library's own thread closes its file a moment after its watch has ended."""
    with trio.fail_after(PATIENCE):
        while inotify_files() != count:
            await trio.sleep(0.005)


async def test_once_it_is_cancelled_nothing_of_it_is_left(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text("0")
    before = inotify_files()
    async with watching(path) as told:
        assert inotify_files() == before + 1
        for text in ("1", "2"):
            rename_over(path, text)
            await told.last(text)
    await only_inotify_files(before)


async def test_a_thread_that_hangs_is_left_behind_and_holds_nobody_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_module, "LEAVING", 0.01)
    hangs, released, waited_for = threading.Event(), threading.Event(), threading.Event()

    def hanging(*_: str, **__: Any) -> Any:
        hangs.set()
        if not released.wait(PATIENCE):
            waited_for.set()
        return iter([])

    async def changed() -> None:
        raise AssertionError("nothing is watched")

    monkeypatch.setattr(watchfiles, "watch", hanging)
    try:
        async with trio.open_nursery() as nursery:

            async def run() -> None:
                await watch(lambda: [tmp_path / "mcp.json"], changed)

            nursery.start_soon(run)
            with trio.fail_after(PATIENCE):
                await trio.to_thread.run_sync(hangs.wait, PATIENCE)
            nursery.cancel_scope.cancel()
        assert not waited_for.is_set()
    finally:
        released.set()


@pytest.mark.parametrize("polling", [True, False])
async def test_files_are_looked_at_again_and_again_only_where_changes_are_polled_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, polling: bool
) -> None:
    if polling:
        monkeypatch.setenv("WATCHFILES_FORCE_POLLING", "1")
    options: dict[str, Any] = {}
    begin = watchfiles.watch

    def noted(*folders: str, **given: Any) -> Any:
        options.update(given)
        return begin(*folders, **given)

    monkeypatch.setattr(watchfiles, "watch", noted)
    async with watching(tmp_path / "mcp.json"):
        assert options["recursive"] is False
        assert options["yield_on_timeout"] is polling
        assert (options["rust_timeout"] > 0) is polling


async def test_polling_sees_even_what_happens_within_one_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATCHFILES_FORCE_POLLING", "1")
    monkeypatch.setattr(watch_module, "POLL_LOOK", 0.2)
    path = tmp_path / "folder" / "mcp.json"
    path.parent.mkdir()
    path.write_text("0")
    time = path.stat().st_mtime_ns
    async with watching(path) as told:
        for text, save in (("1", in_place), ("2", with_its_folder_moved_away), ("3", rename_over)):
            save(path, text)
            os.utime(path, ns=(time, time))
            await told.last(text)


async def test_polling_sees_a_folder_further_up_that_is_renamed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("WATCHFILES_FORCE_POLLING", "1")
    monkeypatch.setattr(watch_module, "POLL_LOOK", 0.2)
    path = tmp_path / "up" / "folder" / "mcp.json"
    path.parent.mkdir(parents=True)
    path.write_text("0")
    async with watching(path) as told:
        path.parents[1].rename(tmp_path / "away")
        path.parent.mkdir(parents=True)
        path.write_text("1")
        await told.last("1")


def test_the_survey_follows_real_links(tmp_path: Path) -> None:
    real = tmp_path.resolve() / "real"
    real.mkdir()
    (real / "mcp.json").write_text("{}")
    link = tmp_path.resolve() / "link.json"
    link.symlink_to("real/mcp.json")
    found = survey([link])
    assert {folder for folder, _ in found.folders} == {str(tmp_path.resolve()), str(real)}
    assert not found.missing
    assert found != survey([link.with_name("other.json")])


def test_without_the_extra_one_line_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    require_watchfiles()
    monkeypatch.setitem(sys.modules, "watchfiles", None)
    with pytest.raises(PlaybillError, match=r"needs watchfiles: install playbill with its extra 'watch'") as caught:
        require_watchfiles()
    assert "\n" not in str(caught.value)


def test_the_package_is_imported_only_when_something_is_watched() -> None:
    program = (
        "import sys, playbill.actors.opening, playbill.actors.edge.config.watch; print('watchfiles' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "False\n"
