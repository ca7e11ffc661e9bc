"""A real watch of real files, and what it has told; and the ways of editors to save a file."""

from __future__ import annotations

import shutil
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import trio
from playbill.actors.edge.config.watch import watch
from playbill.supervision import Cell

PATIENCE = 30.0


class Told:
    """What a watch has told: at each call, the text of the file then (None: it was missing)."""

    def __init__(self, *paths: Path) -> None:
        self.paths = paths
        self.calls: list[str | None] = []
        self.count = Cell(0)
        self.watches = Cell(0)

    async def changed(self) -> None:
        await trio.lowlevel.checkpoint()
        path = self.paths[0]
        self.calls.append(path.read_text() if path.is_file() else None)
        self.count.set(len(self.calls))

    async def last(self, text: str | None) -> None:
        """Wait until the last thing told is this."""
        with trio.fail_after(PATIENCE):
            await self.count.wait(lambda _: bool(self.calls) and self.calls[-1] == text)

    async def more(self, than: int) -> None:
        with trio.fail_after(PATIENCE):
            await self.count.wait(lambda count: count > than)


@asynccontextmanager
async def watching(*paths: Path) -> AsyncIterator[Told]:
    told = Told(*paths)

    def begun() -> None:
        told.watches.set(told.watches.value + 1)

    async with trio.open_nursery() as nursery:

        async def run() -> None:
            await watch(lambda: paths, told.changed, watching=begun)

        nursery.start_soon(run)
        await told.more(0)
        yield told
        nursery.cancel_scope.cancel()


def in_place(path: Path, text: str) -> None:
    path.write_text(text)


def rename_over(path: Path, text: str) -> None:
    new = path.with_name(path.name + ".new")
    new.write_text(text)
    new.replace(path)


def move_away_and_make_anew(path: Path, text: str) -> None:
    path.replace(path.with_name(path.name + "~"))
    path.write_text(text)


def delete_and_make_anew(path: Path, text: str) -> None:
    path.unlink()
    path.write_text(text)


def with_its_folder(path: Path, text: str) -> None:
    shutil.rmtree(path.parent)
    path.parent.mkdir()
    path.write_text(text)


def with_its_folder_moved_away(path: Path, text: str) -> None:
    path.parent.rename(path.parent.with_name(f"old-{text}"))
    path.parent.mkdir()
    path.write_text(text)


SAVES = [
    in_place,
    rename_over,
    move_away_and_make_anew,
    delete_and_make_anew,
    with_its_folder,
    with_its_folder_moved_away,
]
