"""The stores of a configuration: a file, or a value in memory.

Theory of operation of `FileStore.edit`. Take the lock; read the file anew; do all edits on that text; write it at most once.
Just before the new text takes the file's place the file is read once more: if somebody without the lock (a person's editor)
wrote meanwhile, all is done again on their text. Nothing is ever written over a text that cannot be read.

The lock is an ``flock`` (filelock) on ``NAME.lock`` beside the file itself (beside the target, for a symbolic link). It is
empty, stays there, and may be removed when no host runs. The system lets go of it when its holder dies, however that happens.
"""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from attrs import evolve
from filelock import FileLock, Timeout

from ...model.config import Config, ServerEntry
from ...model.edits import AddServer, Edit, apply_edit
from ...model.errors import ConfigError, PlaybillError, WriteFailed
from ...ports import Edited
from .atomic import write_atomic
from .edit import Draft
from .jsonc import decode
from .read import Document, Reader
from .regular import read_regular
from .trust import TrustStore

__all__ = ["FileStore", "MemoryStore"]

_NEW = '{\n  "mcpServers": {}\n}\n'
_ROUNDS = 50
_SETTLE = 0.02
_SETTLE_ROUNDS = 10


class FileStore:
    """A configuration file.

    Args:
        path: the file; ``~`` is not expanded. It need not exist yet.
        trust: the approvals to ask for entries that start a process; None for a path that is trusted as it is.
        fsync: wait for the disk at each write.
        lock_timeout: seconds to wait for another process's lock.
    """

    def __init__(
        self, path: str | Path, *, trust: TrustStore | None = None, fsync: bool = True, lock_timeout: float = 10.0
    ) -> None:
        self.path = Path(path).absolute()
        self._trust = trust
        self._fsync = fsync
        self._lock_timeout = lock_timeout
        self._reader = Reader(str(self.path), None if trust is None else self._trusted)
        self._last: tuple[bytes, Document] | None = None

    def load(self, previous: Config | None = None) -> Config:
        """As `Store.load`. A file that is just being saved (empty) is given 0.2 s to be whole.

        Raises:
            ConfigError: it is missing, or cannot be read.
        """
        return self._read(previous)[1].config

    def edit(self, edits: Sequence[Edit], previous: Config | None = None) -> Edited:
        """As `Store.edit`. An `AddServer` among the edits makes a file that is missing.

        Raises:
            ConfigError: the file is missing, or cannot be read.
            WriteFailed: it cannot be written, or its lock is held for too long; the file is as before.
        """
        target = Path(os.path.realpath(self.path))
        if not self._lock_of(target).exists() and (nothing := self._nothing_to_do(edits, previous)) is not None:
            return nothing  # not even a lock file is left beside a file that is not changed
        with self._locked(target):
            for _ in range(_ROUNDS):
                done = self._try(target, edits, previous)
                if done is not None:
                    return done
        raise WriteFailed(str(self.path), "another program keeps writing it")

    def approve(self, name: str) -> bool:
        """Let an entry of a discovered file be started from now on, as it is in the file now.

        Returns:
            False when there is no such entry.

        Raises:
            ConfigError: the file cannot be read.
            WriteFailed: the approval cannot be kept.
        """
        entry = self.load().get(name)
        if entry is None:
            return False
        if self._trust is not None:
            self._trust.approve(entry, self.path)
        return True

    def put(self, config: Config) -> None:
        """As `Store.put`.

        Raises:
            ConfigError: always: a file is only ever edited.
        """
        raise ConfigError("this host reads its configuration from a file: edit that and reload", file=str(self.path))

    def fingerprint(self) -> str | None:
        """As `Store.fingerprint`: hex SHA-256 of the bytes."""
        try:
            return hashlib.sha256(self._bytes()).hexdigest()
        except ConfigError:
            return None

    def _trusted(self, entry: ServerEntry) -> bool:
        return self._trust is None or self._trust.approved(entry, self.path)

    def _bytes(self) -> bytes:
        file = str(self.path)
        try:
            return read_regular(self.path)
        except IsADirectoryError:
            raise ConfigError("this is a folder, not a file", file=file) from None
        except FileNotFoundError as error:
            raise ConfigError("there is no such file", file=file) from error  # the cause tells `_is_missing`
        except OSError as error:
            raise ConfigError(f"cannot be read: {error.strerror or error}", file=file) from None

    def _read(self, previous: Config | None) -> tuple[bytes, Document]:
        for left in reversed(range(_SETTLE_ROUNDS)):
            data = self._bytes()
            try:
                return data, self._document(data, previous)
            except ConfigError:
                # An editor that empties a file before it writes it: give it a moment.
                if not left or data.strip():
                    raise
            time.sleep(_SETTLE)
        raise AssertionError("unreachable")

    def _document(self, data: bytes, previous: Config | None) -> Document:
        last = self._last
        if last is not None and last[0] == data and self._trust is None and previous is last[1].config:
            return last[1]
        document = self._reader.read(decode(data, str(self.path)), previous)
        self._last = (data, document)
        return document

    @staticmethod
    def _lock_of(target: Path) -> Path:
        return target.with_name(target.name + ".lock")

    def _nothing_to_do(self, edits: Sequence[Edit], previous: Config | None) -> Edited | None:
        """What the edits come to when they change nothing of the text as it is now; None when they do, or may."""
        try:
            _, document = self._read(previous)
        except ConfigError as error:
            if not _is_missing(error):
                raise
            return None
        draft, refused = self._draft(document, edits)
        if draft.finish().source.text != document.source.text:
            return None
        return Edited(document.config, refused, wrote=False)

    def _draft(self, document: Document, edits: Sequence[Edit]) -> tuple[Draft, tuple[PlaybillError | None, ...]]:
        draft = Draft(self._reader, document)
        refused: list[PlaybillError | None] = []
        for edit in edits:
            try:
                draft.edit(edit)
            except PlaybillError as error:
                refused.append(error)
            else:
                refused.append(None)
        return draft, tuple(refused)

    @contextmanager
    def _locked(self, target: Path) -> Iterator[None]:
        if not target.parent.is_dir():
            raise WriteFailed(str(self.path), f"there is no folder {target.parent}")
        lock = FileLock(self._lock_of(target), timeout=self._lock_timeout, thread_local=False, mode=0o666)
        try:
            lock.acquire(poll_interval=0.005)
        except Timeout:
            why = f"another process has held its lock for more than {self._lock_timeout:g} s"
            raise WriteFailed(str(self.path), why) from None
        except OSError as error:
            raise WriteFailed(str(self.path), f"its lock cannot be taken: {error.strerror or error}") from None
        try:
            yield
        finally:
            lock.release()

    def _try(self, target: Path, edits: Sequence[Edit], previous: Config | None) -> Edited | None:
        """One round under the lock; None when somebody else wrote meanwhile."""
        try:
            data, document = self._read(previous)
        except ConfigError as error:
            if not _is_missing(error) or not any(isinstance(edit, AddServer) for edit in edits):
                raise
            data, document = b"", self._reader.read(_NEW)
        draft, refused = self._draft(document, edits)
        done = draft.finish()
        new = done.source.text.encode()
        if new == data or done.source.text == document.source.text:
            return Edited(document.config, refused, wrote=False)
        if not self._replace(target, data, new):
            return None
        config = self._approve_added(edits, refused, done)
        self._last = (new, done)
        return Edited(config, refused, wrote=True)

    def _replace(self, target: Path, old: bytes, new: bytes) -> bool:
        """Write, unless the file is not what was read any more."""
        file = str(self.path)
        try:
            before = target.stat() if old else None
            if before is not None and not before.st_mode & 0o222:
                raise WriteFailed(file, "the file is read-only")
            if before is not None and not os.access(target, os.W_OK):
                raise WriteFailed(file, "permission denied")
            if (target.read_bytes() if old or target.exists() else b"") != old:
                return False
            write_atomic(target, new, fsync=self._fsync, before=before)
        except OSError as error:
            raise WriteFailed(file, (error.strerror or str(error)).lower()) from None
        return True

    def _approve_added(self, edits: Sequence[Edit], refused: Sequence[PlaybillError | None], done: Document) -> Config:
        """Who adds a server through us has approved it."""
        config = done.config
        if self._trust is None:
            return config
        for edit, why in zip(edits, refused, strict=True):
            entry = config.get(edit.server)
            if isinstance(edit, AddServer) and why is None and entry is not None and entry.command is not None:
                self._trust.approve(entry, self.path)
        servers = tuple(e if e.trusted or not self._trusted(e) else evolve(e, trusted=True) for e in config.servers)
        return evolve(config, servers=servers)


def _is_missing(error: ConfigError) -> bool:
    return isinstance(error.__cause__, FileNotFoundError)


class MemoryStore:
    """A configuration that lives in memory only.

    Args:
        config: what it is at first.
    """

    def __init__(self, config: Config) -> None:
        self.config = config

    def load(self, previous: Config | None = None) -> Config:
        """The configuration as it is."""
        return self.config

    def put(self, config: Config) -> None:
        """As `Store.put`."""
        self.config = config

    def fingerprint(self) -> str | None:
        """As `Store.fingerprint`: there is no text."""
        return None

    def approve(self, name: str) -> bool:
        """Trust an entry; False when there is no such entry."""
        entries = self.config.servers
        servers = tuple(evolve(each, trusted=True) if each.name == name else each for each in entries)
        self.config = evolve(self.config, servers=servers)
        return self.config.get(name) is not None

    def edit(self, edits: Sequence[Edit], previous: Config | None = None) -> Edited:
        """As `Store.edit`; nothing is written anywhere."""
        refused: list[PlaybillError | None] = []
        for edit in edits:
            try:
                self.config = apply_edit(self.config, edit)
            except PlaybillError as error:
                refused.append(error)
            else:
                refused.append(None)
        return Edited(self.config, tuple(refused), wrote=False)
