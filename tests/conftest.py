"""Collecting makes half a million objects that stay: the garbage collector need not look through them, then or in any test.
And it compiles all tests: of the processes that share them, one does, and the others read what it kept."""

from __future__ import annotations

import gc
import sys
import tempfile
from collections.abc import Generator
from contextlib import ExitStack
from pathlib import Path

import pytest


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """No collection of garbage while tests are collected; what is there then is looked at no more."""
    gc.disable()
    try:
        with ExitStack() as turn:
            _take_turn(session.config, turn)
            return (yield)
    finally:
        gc.collect()
        gc.freeze()
        gc.enable()


def _take_turn(config: pytest.Config, turn: ExitStack) -> None:
    """Wait for the first of the processes of this run, unless this is it, or nothing is kept anyway."""
    run = getattr(config, "workerinput", {}).get("testrunuid")
    if run is None or sys.dont_write_bytecode or sys.platform == "win32":
        return
    import fcntl

    path = Path(tempfile.gettempdir(), f"playbill-collected-{run}")
    # The last one out removes it; who comes later still is the first again, and finds everything compiled.
    file = turn.enter_context(path.open("w"))
    try:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        fcntl.flock(file, fcntl.LOCK_SH)
    turn.callback(path.unlink, missing_ok=True)
