"""Writing a file whole or not at all."""

from __future__ import annotations

import contextlib
import os
import stat
from collections.abc import Callable
from pathlib import Path

__all__ = ["write_atomic"]

_ACL = "system.posix_acl_access"


def write_atomic(
    target: Path,
    data: bytes,
    *,
    fsync: bool = True,
    before: os.stat_result | None = None,
    mode: int | None = 0o600,
    still: Callable[[], bool] | None = None,
) -> bool:
    """Put ``data`` in place of a file: a reader sees the old bytes or the new ones, whole, also if we are killed.

    The bytes go to ``.NAME.playbill.tmp`` in the same folder (overwritten if one was left behind: the caller holds the file's
    lock), which then takes the file's place. A hard link to the old file keeps the old bytes.

    Args:
        target: the file itself, not a symbolic link to it; its folder exists.
        data: all of it.
        fsync: wait until the bytes and the folder are on the disk.
        before: the file's present stat: its mode and extended attributes, and its owner where we may, stay; None for a new
            file.
        mode: of a new file; None: as for any file that this process makes (its umask).
        still: asked at the last moment, when nothing is left to do but the replacement, whether it is wanted.

    Returns:
        Whether it was written; False when it was not wanted any more.

    Raises:
        OSError: it could not be written; the target is as it was, and no temporary file is left.
    """
    temp = target.with_name(f".{target.name}.playbill.tmp")
    with contextlib.suppress(FileNotFoundError):
        temp.unlink()
    # A file that stays private is private from its first byte on.
    first = 0o666 if mode is None and before is None else 0o600
    handle = os.open(temp, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_BINARY", 0), first)
    try:
        try:
            view = memoryview(data)
            while view:
                view = view[os.write(handle, view) :]
            if before is not None:
                _like(handle, temp, target, before)
            elif mode is not None:
                _chmod(handle, temp, mode)
            if fsync:
                os.fsync(handle)
        finally:
            os.close(handle)
        if still is not None and not still():
            temp.unlink()
            return False
        temp.replace(target)
    except BaseException:
        with contextlib.suppress(OSError):
            temp.unlink()
        raise
    if fsync:
        _sync_folder(target.parent)
    return True


def _like(handle: int, temp: Path, target: Path, before: os.stat_result) -> None:
    """Give the new file what the old one has; a stranger's file may become ours, but never more open."""
    bits = stat.S_IMODE(before.st_mode) & ~(stat.S_ISUID | stat.S_ISGID)
    if hasattr(os, "fchown") and not _keep_owner(handle, before):
        # Our own group is another one: it may what everybody may.
        bits = bits & ~stat.S_IRWXG | (bits & stat.S_IRWXO) << 3
        _chmod(handle, temp, bits)
        return
    _chmod(handle, temp, bits)
    if not hasattr(os, "listxattr"):
        return
    for name, value in _attributes(target):
        try:
            os.setxattr(handle, name, value)
        except OSError:
            if name == _ACL:
                # The group's bits said the most that this list grants to anybody, not what the group has.
                _chmod(handle, temp, bits & ~stat.S_IRWXG)


def _chmod(handle: int, temp: Path, bits: int) -> None:
    if hasattr(os, "fchown"):
        os.fchmod(handle, bits)
    else:  # Windows: no owners, no groups, and of the mode only whether it may be written
        temp.chmod(bits)


def _keep_owner(handle: int, before: os.stat_result) -> bool:
    """Give the file its old owner and group, else its old group; False when it has another group now."""
    now = os.fstat(handle)
    if (before.st_uid, before.st_gid) == (now.st_uid, now.st_gid):
        return True
    try:
        os.fchown(handle, before.st_uid, before.st_gid)
    except OSError:
        if before.st_gid != now.st_gid:
            try:
                os.fchown(handle, -1, before.st_gid)
            except OSError:
                return False
    return True


def _attributes(target: Path) -> list[tuple[str, bytes]]:
    """What people and programs noted on a file, and its access list; what the system keeps there is the system's."""
    try:
        names = os.listxattr(target)
        return [(name, os.getxattr(target, name)) for name in names if name == _ACL or name.startswith("user.")]
    except OSError:
        return []


def _sync_folder(folder: Path) -> None:
    # The replacement is done; a file system that cannot sync a folder does not undo it.
    with contextlib.suppress(OSError):
        handle = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(handle)
        finally:
            os.close(handle)
