"""Real files, the real watch: what is told and what is not.

Determinism: each test waits for what it expects; that something is not told is shown behind a later change that is.
"""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import trio
import watchfiles
from playbill.actors.edge.config import watch as watch_module
from playbill.actors.edge.config.watch import watch
from playbill.supervision import Cell

from .told import PATIENCE, SAVES, in_place, rename_over, watching


@pytest.fixture(autouse=True)
def quick(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(watch_module, "STEP", 0.02)


@pytest.mark.parametrize("save", SAVES)
async def test_a_change_is_told_however_it_is_saved_and_so_is_the_next_one(
    tmp_path: Path, save: Callable[[Path, str], None]
) -> None:
    path = tmp_path / "folder" / "mcp.json"
    path.parent.mkdir()
    path.write_text("0")
    async with watching(path) as told:
        for text in ("1", "2", "3"):
            save(path, text)
            await told.last(text)


@pytest.mark.parametrize("save", SAVES)
async def test_the_target_of_a_chain_of_links_may_be_saved_so_too(
    tmp_path: Path, save: Callable[[Path, str], None]
) -> None:
    real = tmp_path / "dotfiles" / "folder" / "real.json"
    real.parent.mkdir(parents=True)
    real.write_text("0")
    middle = tmp_path / "middle"
    middle.symlink_to("dotfiles")
    path = tmp_path / "home" / "mcp.json"
    path.parent.mkdir()
    path.symlink_to(Path("..", "middle", "folder", "real.json"))
    async with watching(path) as told:
        for text in ("1", "2", "3"):
            save(real, text)
            await told.last(text)


async def test_a_link_that_is_pointed_elsewhere_is_told_and_the_new_target_is_watched(tmp_path: Path) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mcp.json").write_text(name)
    home = tmp_path / "home"
    home.mkdir()
    (home / "conf").symlink_to(tmp_path / "one")
    path = home / "mcp.json"
    path.symlink_to("conf/mcp.json")
    async with watching(path) as told:
        (home / "conf.new").symlink_to(tmp_path / "two")
        (home / "conf.new").replace(home / "conf")
        await told.last("two")
        in_place(tmp_path / "two" / "mcp.json", "two again")
        await told.last("two again")
        path.unlink()
        path.symlink_to(tmp_path / "one" / "mcp.json")
        await told.last("one")
        rename_over(tmp_path / "one" / "mcp.json", "one again")
        await told.last("one again")


async def test_a_file_in_folders_that_are_not_there_yet_is_told_when_it_is_made(tmp_path: Path) -> None:
    path = tmp_path / "a" / "b" / "mcp.json"
    async with watching(path) as told:
        assert told.calls == [None]
        path.parent.parent.mkdir()
        path.parent.mkdir()
        path.write_text("made")
        await told.last("made")
        shutil.rmtree(tmp_path / "a")
        await told.last(None)
        path.parent.mkdir(parents=True)
        rename_over(path, "made again")
        await told.last("made again")


async def test_one_watch_tells_of_several_files(tmp_path: Path) -> None:
    one, two = tmp_path / "one" / "mcp.json", tmp_path / "two" / ".mcp.json"
    for path in (one, two):
        path.parent.mkdir()
        path.write_text("0")
    async with watching(one, two) as told:
        count = told.count.value
        rename_over(two, "1")
        await told.more(count)
        in_place(one, "1")
        await told.last("1")


async def test_backup_swap_lock_and_temporary_files_beside_it_are_not_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_module, "RETURN", 0.01)
    path = tmp_path / "mcp.json"
    path.write_text("0")
    beside = [
        tmp_path / name
        for name in ("mcp.json~", ".mcp.json.swp", "4913", "mcp.json.lock", ".mcp.json.playbill.tmp", "#mcp.json#")
    ]
    async with watching(path) as told, watching(*beside) as others:
        assert told.calls == ["0"]
        for other in beside:
            count = others.count.value
            other.write_text("beside")
            await others.more(count)
            count = others.count.value
            other.unlink()
            await others.more(count)
        assert told.calls == ["0"]
        in_place(path, "1")
        await told.last("1")
        assert set(told.calls[1:]) <= {"1", ""}


async def test_reading_the_file_is_not_told(tmp_path: Path) -> None:
    path, other = tmp_path / "mcp.json", tmp_path / "other"
    path.write_text("0")
    async with watching(path) as told, watching(other) as others:
        path.read_text()
        other.write_text("later")
        await others.last("later")
        assert told.calls == ["0"]


async def test_a_file_that_is_gone_for_a_moment_is_not_told_as_missing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watch_module, "RETURN", PATIENCE)
    path, aside = tmp_path / "mcp.json", tmp_path / "mcp.json~"
    path.write_text("0")
    async with watching(path) as told, watching(aside) as others:
        path.replace(aside)
        await others.last("0")
        path.write_text("1")
        await told.last("1")
        assert None not in told.calls


async def test_a_file_that_stays_away_is_told_as_missing(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text("0")
    async with watching(path) as told:
        path.unlink()
        await told.last(None)


def gone(path: Path, text: str) -> None:
    shutil.rmtree(path.parent)


@pytest.mark.parametrize("meddle", [*SAVES, gone])
@pytest.mark.parametrize("late", [False, True])
async def test_what_happens_while_the_watch_is_about_to_begin_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, meddle: Callable[[Path, str], None], late: bool
) -> None:
    """After the files were looked at and before they are watched, or just then."""
    path = tmp_path / "folder" / "mcp.json"
    path.parent.mkdir()
    path.write_text("0")
    begin = watchfiles.watch
    meddled: list[None] = []

    def meddled_with(*folders: str, **options: Any) -> Any:
        if meddled:
            return begin(*folders, **options)
        meddled.append(None)
        if not late:
            meddle(path, "1")
            return begin(*folders, **options)
        event = options["stop_event"]

        class Asked:
            def is_set(self) -> bool:
                if len(meddled) == 1:
                    meddled.append(None)
                    meddle(path, "1")
                return bool(event.is_set())

        return begin(*folders, **{**options, "stop_event": Asked()})

    monkeypatch.setattr(watchfiles, "watch", meddled_with)
    async with watching(path) as told:
        await told.last(None if meddle is gone else "1")
        path.parent.mkdir(exist_ok=True)
        path.write_text("2")
        await told.last("2")


async def test_a_link_that_is_pointed_elsewhere_while_the_watch_is_about_to_begin_is_followed(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for name in ("one", "two"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "mcp.json").write_text(name)
    path = tmp_path / "mcp.json"
    path.symlink_to("one/mcp.json")
    begin = watchfiles.watch

    def late(*folders: str, **options: Any) -> Any:
        if path.readlink() == Path("one/mcp.json"):
            path.unlink()
            path.symlink_to("two/mcp.json")
        return begin(*folders, **options)

    monkeypatch.setattr(watchfiles, "watch", late)
    async with watching(path) as told:
        assert told.calls == ["two"]
        in_place(tmp_path / "two" / "mcp.json", "two again")
        await told.last("two again")


async def test_changes_during_a_slow_answer_are_answered_together_once_more(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text("0")
    calls: list[str] = []
    begun, go_on = trio.Event(), trio.Event()
    done = Cell("")

    async def slow() -> None:
        calls.append(path.read_text())
        if len(calls) == 2:
            begun.set()
            await go_on.wait()
        done.set(calls[-1])

    async with trio.open_nursery() as nursery, watching(path) as told:

        async def run() -> None:
            await watch(lambda: [path], slow)

        nursery.start_soon(run)
        with trio.fail_after(PATIENCE):
            await done.wait(lambda text: text == "0")
            in_place(path, "1")
            await begun.wait()
            for text in ("2", "3", "4"):
                rename_over(path, text)
                await told.last(text)
            assert len(calls) == 2
            go_on.set()
            await done.wait(lambda text: text == "4")
        nursery.cancel_scope.cancel()
    assert len(calls) <= 4
