"""Where logins are kept: a file for each, mode 0600, in a folder of mode 0700. Never in a config, a log or a message.

Theory of operation. A file is replaced whole (`atomic`), under a lock (`lock`) that all processes of this machine keep: whoever
renews a login holds its lock from reading it to having written what came of it. So a refresh token that another process has
used up meanwhile is never used again: what is in the file then is newer. A process that is killed leaves the old file or the
new one, whole; the system lets go of its lock.
"""

from __future__ import annotations

import contextlib
import json
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

from platformdirs import user_state_path

from ..config.atomic import write_atomic
from ..config.lock import LockFailed, LockHeld, locked
from ..config.regular import read_regular
from .record import Record, read_record, record_json

__all__ = ["LoginStore", "StoreFailed", "default_folder"]

LOCK_SECONDS = 45.0
"""How long another process may take to renew a login."""

_TRY = 0.2
"""Seconds of one try for the lock, which nothing can cut short."""


class StoreFailed(Exception):
    """A login cannot be kept, or its lock cannot be had; the message is one line."""


def default_folder() -> Path:
    """Where logins are kept when nobody says otherwise."""
    return user_state_path("playbill") / "logins"


class LoginStore:
    """The logins of one folder. What it does with files it does at once: call it in a thread.

    Args:
        folder: made when something is first written; None: `default_folder`.
    """

    def __init__(self, folder: Path | None = None) -> None:
        self.folder = default_folder() if folder is None else folder

    def path(self, key: str) -> Path:
        """The file of a login."""
        return self.folder / f"{key}.json"

    def read(self, key: str) -> Record | None:
        """What is kept of a login; None when nothing is, or it cannot be read. Never raises."""
        try:
            return read_record(json.loads(read_regular(self.path(key))))
        except (OSError, ValueError, RecursionError):
            return None

    def mark(self, key: str) -> tuple[int, int] | None:
        """Something that is another whenever the file was written; None when there is none. Never raises."""
        try:
            there = self.path(key).stat()
        except OSError:
            return None
        return there.st_ino, there.st_mtime_ns

    def write(self, key: str, record: Record) -> None:
        """Keep a login; the caller holds its lock.

        Raises:
            StoreFailed: it cannot be written.
        """
        text = json.dumps(record_json(record), indent=1)
        try:
            self._make()
            write_atomic(self.path(key), text.encode(), mode=0o600)
        except OSError as error:
            raise StoreFailed(f"{self.folder}: {error.strerror or error}") from None

    def forget(self, key: str) -> bool:
        """Keep a login no longer; whether there was one. The caller holds its lock.

        Raises:
            StoreFailed: it cannot be removed.
        """
        try:
            self.path(key).unlink()
        except FileNotFoundError:
            return False
        except OSError as error:
            raise StoreFailed(f"{self.folder}: {error.strerror or error}") from None
        return True

    def _make(self) -> None:
        """Make the folder, for us alone."""
        self.folder.mkdir(parents=True, exist_ok=True, mode=0o700)
        if os.name != "nt" and stat.S_IMODE(self.folder.stat().st_mode) & 0o077:
            with contextlib.suppress(PermissionError):
                self.folder.chmod(0o700)

    @asynccontextmanager
    async def locked(self, key: str, patience: float = LOCK_SECONDS) -> AsyncIterator[None]:
        """Hold the lock of a login. A checkpoint.

        Args:
            key: of the login.
            patience: seconds to wait for another process.

        Raises:
            StoreFailed: it is held for longer, or cannot be taken.
        """
        import trio  # here, so that reading a login needs no event loop

        until = trio.current_time() + patience
        try:
            await trio.to_thread.run_sync(self._make)
        except OSError as error:
            raise StoreFailed(f"{self.folder}: {error.strerror or error}") from None
        while True:
            holding = locked(self.path(key), _TRY)
            try:
                await trio.to_thread.run_sync(holding.__enter__)
                break
            except LockHeld:
                if trio.current_time() >= until:
                    raise StoreFailed("another process is renewing this login, and does not end") from None
            except LockFailed as failed:
                raise StoreFailed(f"{self.folder}: {failed.error.strerror or failed}") from None
        try:
            yield
        finally:
            with trio.CancelScope(shield=True):
                await trio.to_thread.run_sync(holding.__exit__, None, None, None)
