"""A word on an edit that takes its time: it waits for another program's lock. Without trio, which no edit needs."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

from .configs import label
from .voice import voice

__all__ = ["PATIENCE", "editing", "who_is_awaited"]

PATIENCE = 0.5
"""Seconds of silence before a person is told what is awaited."""


@contextmanager
def editing(files: Collection[Path]) -> Iterator[None]:
    """Keep one line on the terminal current while the block edits files and takes its time, and wipe it in the end.

    It is there for who waits more than half a second, on a terminal, and not with ``--quiet``. The block blocks its thread, so
    another one tells.

    Args:
        files: which may be edited in the block.
    """
    said = voice()
    if not said.shows_progress:
        yield
        return
    over = threading.Event()

    def tell() -> None:
        while not over.wait(PATIENCE):
            said.draw(who_is_awaited(files))

    teller = threading.Thread(target=tell, name="playbill-patience", daemon=True)
    teller.start()
    try:
        yield
    finally:
        over.set()
        teller.join()
        said.draw("")


def who_is_awaited(files: Collection[Path], size: Callable[[str], int] = os.path.getsize) -> str:
    """What an edit waits for, in one line.

    Args:
        files: which it may be editing.
        size: of a file by its path; raises an `OSError` when there is none.
    """
    for file in files:
        with suppress(OSError):
            # Who waits for a lock leaves a byte in it.
            if size(f"{os.path.realpath(file)}.lock") > 0:
                return f"waiting for another program that edits {label(file)}"
    return "writing"
