"""Reading a small file whole, without ever waiting for it."""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path

__all__ = ["read_regular"]


def read_regular(path: Path) -> bytes:
    """All bytes of a regular file.

    Anything else is refused without waiting: to open a named pipe that nobody writes would hold the thread for ever.

    Raises:
        OSError: it cannot be read, or is something else than a regular file.
    """
    with open(path, "rb", opener=_open_at_once) as stream:
        if not stat.S_ISREG(os.fstat(stream.fileno()).st_mode):
            raise OSError(errno.EINVAL, "it is not a regular file")
        return stream.read()


def _open_at_once(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))
