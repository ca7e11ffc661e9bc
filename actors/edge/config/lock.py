"""The lock that keeps two writers of one file apart.

Theory of operation. The lock is an ``flock`` (filelock) on ``NAME.lock`` beside the file itself (beside the target, for a
symbolic link). That is the one place that everybody shares who shares the file: another user, another home, another container
with the folder mounted. The system lets go of it when its holder dies, however that happens.

The lock file is there only while an edit is under way: its holder removes it just before letting go. Who was waiting then holds
the lock of a file without a name; filelock notices (since 3.21) and begins anew. One that a killed holder left is taken over by
the next, and then removed.

Who waits can only look again and again, and a holder with many edits to do would be back before anybody looked: it could keep
the others out for seconds. So who waits leaves a byte in the lock file, and a holder who finds one there rests afterwards for
as long as it takes the others to look.
"""

from __future__ import annotations

import contextlib
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

__all__ = ["LockFailed", "LockHeld", "locked"]

_LOOK = 0.005
"""Seconds between two looks whether the holder's lock file is still the same."""

_TRY = 0.05
"""Seconds after which the lock is tried though it is: a holder that was killed removes nothing."""

_REST = 3 * _LOOK


class LockHeld(Exception):
    """Somebody else holds the lock, and did not let go in time."""


class LockFailed(Exception):
    """The lock cannot be taken.

    Args:
        error: why.
    """

    def __init__(self, error: OSError) -> None:
        self.error = error
        super().__init__(str(error))


@contextmanager
def locked(target: Path, timeout: float) -> Iterator[None]:
    """Hold the lock of a file.

    Args:
        target: the file itself, not a symbolic link to it; it need not be there, its folder must.
        timeout: seconds to wait for it.

    Raises:
        LockHeld: it is held for longer.
        LockFailed: it cannot be taken.
    """
    from filelock import FileLock, Timeout  # who writes nothing does without it

    path = target.with_name(target.name + ".lock")
    # Whoever may write the folder may lock the file, whatever the maker's umask.
    lock = FileLock(path, thread_local=False, mode=0o666)
    deadline = time.monotonic() + timeout
    while True:
        try:
            lock.acquire(blocking=False)
            break
        except Timeout:
            if time.monotonic() >= deadline:
                raise LockHeld from None
        except OSError as error:
            raise LockFailed(error) from None
        _ask_and_wait(path, min(deadline, time.monotonic() + _TRY))
    asked = False
    try:
        yield
    finally:
        with contextlib.suppress(OSError):
            asked = path.stat().st_size > 0
            path.unlink()
        lock.release()
        if asked:
            time.sleep(_REST)


def _ask_and_wait(path: Path, until: float) -> None:
    """Let the holder know that somebody waits, and wait until its lock file is gone or another one, or until that time."""
    try:
        if path.stat().st_size == 0:
            handle = os.open(path, os.O_WRONLY | getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0))
            try:
                os.write(handle, b"?")
            finally:
                os.close(handle)
        seen = _identity(path.stat())
        while _identity(path.stat()) == seen and time.monotonic() < until:
            time.sleep(_LOOK)
    except OSError:
        time.sleep(_LOOK / 5)  # it has just gone


def _identity(there: os.stat_result) -> tuple[int, int]:
    return (there.st_ino, there.st_mtime_ns)
