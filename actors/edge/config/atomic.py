"""Writing a file whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
from pathlib import Path

__all__ = ["write_atomic"]


def write_atomic(
    target: Path, data: bytes, *, fsync: bool = True, before: os.stat_result | None = None, mode: int = 0o600
) -> None:
    """Put ``data`` in place of a file: a reader sees the old bytes or the new ones, whole, also if we are killed.

    The bytes go to ``.NAME.playbill.tmp`` in the same folder (overwritten if one was left behind: the caller holds the file's
    lock), which then takes the file's place. A hard link to the old file keeps the old bytes.

    Args:
        target: the file itself, not a symbolic link to it; its folder exists.
        data: all of it.
        fsync: wait until the bytes and the folder are on the disk.
        before: the file's present stat: its mode, and its owner where we may, stay; None for a new file.
        mode: of a new file.

    Raises:
        OSError: it could not be written; the target is as it was, and no temporary file is left.
    """
    temp = target.with_name(f".{target.name}.playbill.tmp")
    with contextlib.suppress(FileNotFoundError):
        temp.unlink()
    handle = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), 0o600)
    try:
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(handle, view) :]
            _like(handle, temp, before, mode)
            if fsync:
                os.fsync(handle)
        finally:
            os.close(handle)
        temp.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            temp.unlink()
        raise
    if fsync:
        _sync_folder(target.parent)


def _like(handle: int, temp: Path, before: os.stat_result | None, mode: int) -> None:
    """Give the new file the old one's owner and mode; a stranger's file may become ours, but never more open."""
    bits = mode if before is None else stat.S_IMODE(before.st_mode)
    if not hasattr(os, "fchmod"):
        temp.chmod(bits)
        return
    if before is not None and (before.st_uid, before.st_gid) != (os.geteuid(), os.getegid()):
        try:
            os.fchown(handle, before.st_uid, before.st_gid)
        except OSError:
            with contextlib.suppress(OSError):
                os.fchown(handle, -1, before.st_gid)
    os.fchmod(handle, bits & ~(stat.S_ISUID | stat.S_ISGID))


def _sync_folder(folder: Path) -> None:
    # The replacement is done; a file system that cannot sync a folder does not undo it.
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
