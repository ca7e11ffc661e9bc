"""The stores of a configuration: a file, or a value in memory.

Theory of operation of `FileStore.edit`, one round of it:

    lock ─▶ read ─▶ edit the text ─▶ temporary file, on the disk ─▶ read again ─same─▶ replace ─▶ unlock
                                                                        │ not the same
                                                                        ▼
                                                        unlock, and another round on what is there now

The lock (`lock`) keeps out who takes it too. A person's editor does not: so when all is ready, and only the replacement is
left, the file is looked at once more: where the path leads, all bytes, and at last its mode, owner, size and time. What an
editor saves between that and the replacement is replaced unseen: no call replaces a file on the condition that it is unchanged.
They are two calls, one behind the other: some microseconds, or a few milliseconds where other threads keep Python busy.

Nothing is ever written over a text that cannot be read. Nothing is written for a caller who has given up waiting: that is asked
in the same last moment.
"""

from __future__ import annotations

import errno
import hashlib
import os
import sys
import time
from collections.abc import Sequence
from pathlib import Path

from attrs import evolve

from ...model.config import Config, ServerEntry
from ...model.edits import AddServer, Edit, apply_edit
from ...model.errors import ConfigError, PlaybillError, WriteFailed
from ...ports import Edited
from .atomic import write_atomic
from .edit import Draft
from .jsonc import decode
from .lock import LockFailed, LockHeld, locked
from .read import Document, Reader
from .regular import read_regular
from .trust import TrustStore, check_shown

__all__ = ["FileStore", "MemoryStore"]

_NEW = '{\n  "mcpServers": {}\n}\n'
_ROUNDS = 50
_SETTLE = 0.02
_SETTLE_ROUNDS = 10
_EFFECTIVE = os.access in os.supports_effective_ids


class FileStore:
    """A configuration file.

    Args:
        path: the file; ``~`` is not expanded. It need not exist yet.
        trust: the approvals to ask for entries that start a process; None for a path that is trusted as it is.
        fsync: wait for the disk at each write.
        lock_timeout: seconds to wait for another process's lock.
        mode: of the file when it is made; None: as the umask says.
        make_folder: make the file's folder too, private, when the file is made.
        nor: where else there is none, said behind that there is no such file.

    Raises:
        ConfigError: the path is relative, and there is no current folder.
    """

    def __init__(
        self,
        path: str | Path,
        *,
        trust: TrustStore | None = None,
        fsync: bool = True,
        lock_timeout: float = 10.0,
        mode: int | None = 0o600,
        make_folder: bool = False,
        nor: str = "",
    ) -> None:
        try:
            self.path = Path(path).absolute()
        except OSError as error:
            why = f"the current folder is gone ({error.strerror}): name the file by its whole path"
            raise ConfigError(why, file=str(path)) from None
        self._trust = trust
        self._fsync = fsync
        self._lock_timeout = lock_timeout
        self._mode = mode
        self._make_folder = make_folder
        self._nor = nor
        self._reader = Reader(str(self.path), None if trust is None else self._trusted)
        self._last: tuple[bytes, Document] | None = None
        self._answered: bytes | None = None

    def load(self, previous: Config | None = None) -> Config:
        """As `Store.load`. A file that is just being saved (empty) is given 0.2 s to be whole.

        Raises:
            ConfigError: it is missing, or cannot be read.
        """
        return self._read(previous)[1].config

    def document(self) -> Document:
        """The file's text, read: what `load` answers from, with its places.

        Raises:
            ConfigError: it is missing, or cannot be read.
        """
        return self._read(None)[1]

    def edit(self, edits: Sequence[Edit], previous: Config | None = None) -> Edited:
        """As `Store.edit`. An `AddServer` among the edits makes a file that is missing.

        Raises:
            ConfigError: the file is missing, or cannot be read.
            WriteFailed: it cannot be written, or its lock is held for too long; the file is as before.
        """
        if self._make_folder and any(isinstance(edit, AddServer) for edit in edits):
            self._make(Path(os.path.realpath(self.path)).parent)
        try:
            return self._edit(edits, previous)
        except WriteFailed:
            # What changes nothing need not be able to write.
            nothing = self._nothing_to_do(edits, previous)
            if nothing is None:
                raise
            return nothing

    def _edit(self, edits: Sequence[Edit], previous: Config | None) -> Edited:
        deadline = time.monotonic() + self._lock_timeout
        for _ in range(_ROUNDS):
            target = Path(os.path.realpath(self.path))
            if not os.path.isdir(target.parent):  # noqa: PTH112 — `Path.is_dir` raises where it may not look
                raise WriteFailed(str(self.path), f"there is no folder {target.parent}")
            try:
                with locked(target, max(0.0, deadline - time.monotonic())):
                    done = self._try(target, edits, previous)
            except LockHeld:
                why = f"another process has held its lock for more than {self._lock_timeout:g} s"
                raise WriteFailed(str(self.path), why) from None
            except LockFailed as failed:
                raise WriteFailed(str(self.path), f"its lock cannot be taken: {_reason(failed.error)}") from None
            if done is not None:
                return done
        raise WriteFailed(str(self.path), "another program keeps writing it")

    def approve(self, name: str, shown: ServerEntry | None) -> bool:
        """Let an entry of a discovered file be started from now on, if it still is what was shown.

        Args:
            name: the entry's.
            shown: the entry as whoever approves it was shown it; None when no such server was.

        Returns:
            False when there is no such entry.

        Raises:
            ConfigError: the file cannot be read, or the entry has changed.
            WriteFailed: the approval cannot be kept.
        """
        entry = self.load().get(name)
        if entry is None:
            return False
        check_shown(shown, entry)
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

    def answered(self) -> str | None:
        """As `Store.answered`."""
        return None if self._answered is None else hashlib.sha256(self._answered).hexdigest()

    def watched(self) -> tuple[Path, ...]:
        """As `Store.watched`: this one file."""
        return (self.path,)

    def _trusted(self, entry: ServerEntry) -> bool:
        return self._trust is None or self._trust.approved(entry, self.path)

    def _bytes(self) -> bytes:
        file = str(self.path)
        try:
            return read_regular(self.path)
        except IsADirectoryError:
            raise ConfigError("this is a folder, not a file", file=file) from None
        except FileNotFoundError as error:  # the cause tells `_is_missing`
            if self.path.is_symlink():
                why = f"there is no such file: it is a link to {os.path.realpath(self.path)}, which is not there"
                raise ConfigError(why, file=file) from error
            missing = ConfigError(f"there is no such file{self._nor}", file=file)
            missing.nothing = True
            raise missing from error
        except OSError as error:
            raise ConfigError(f"cannot be read: {error.strerror or error}", file=file) from None

    def _read(self, previous: Config | None) -> tuple[bytes, Document]:
        for left in reversed(range(_SETTLE_ROUNDS)):
            self._answered = data = None
            try:
                self._answered = data = self._bytes()
                return data, self._document(data, previous)
            except ConfigError as error:
                # An editor that empties the file, or moves it away, before it writes it: give it a moment.
                gone = _is_missing(error) and self._last is not None
                if not left or not (gone or (data is not None and not data.strip())):
                    if gone:
                        self._last = None
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

    def _make(self, folder: Path) -> None:
        try:
            folder.mkdir(mode=0o700, parents=True, exist_ok=True)
        except OSError as error:
            raise WriteFailed(str(self.path), f"its folder cannot be made: {error.strerror or error}") from None

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
        config, refused = self._approve_added(edits, refused, document)
        return Edited(config, refused, wrote=False)

    def _draft(self, document: Document, edits: Sequence[Edit]) -> tuple[Draft, tuple[PlaybillError | None, ...]]:
        draft = Draft(self._reader, document)
        return draft, draft.edit_all(edits)

    def _try(self, target: Path, edits: Sequence[Edit], previous: Config | None) -> Edited | None:
        """One round under the lock; None when somebody else wrote meanwhile."""
        data: bytes | None
        try:
            data, document = self._read(previous)
        except ConfigError as error:
            new_file = any(isinstance(edit, AddServer) for edit in edits) and not self.path.is_symlink()
            if not _is_missing(error) or not new_file:
                raise
            data, document = None, self._reader.read(_NEW)
        draft, refused = self._draft(document, edits)
        done = draft.finish()
        new = done.source.text.encode()
        if new == data or done.source.text == document.source.text:
            config, refused = self._approve_added(edits, refused, document)
            return Edited(config, refused, wrote=False)
        if not self._replace(target, data, new):
            return None
        self._last = (new, done)
        self._answered = new
        config, refused = self._approve_added(edits, refused, done)
        return Edited(config, refused, wrote=True)

    def _replace(self, target: Path, old: bytes | None, new: bytes) -> bool:
        """Write, unless the file is not what was read any more."""
        file = str(self.path)
        try:
            before = None if old is None else target.stat()
            if before is not None and not before.st_mode & 0o222:
                raise WriteFailed(file, "the file is read-only")
            if before is not None and not os.access(target, os.W_OK, effective_ids=_EFFECTIVE):
                raise WriteFailed(file, "permission denied")

            def still() -> bool:
                _stop_if_given_up()
                return self._is_as_read(target, before, old)

            return write_atomic(target, new, fsync=self._fsync, before=before, mode=self._mode, still=still)
        except FileNotFoundError:
            return False  # it went, or its folder did: the next round says so
        except OSError as error:
            raise WriteFailed(file, _reason(error)) from None

    def _is_as_read(self, target: Path, before: os.stat_result | None, old: bytes | None) -> bool:
        if os.path.realpath(self.path) != str(target):
            return False
        try:
            if before is None:
                return not os.path.lexists(target)
            # The stamp last: it is one call, and what comes behind it is the replacement.
            return read_regular(target) == old and _stamp(target.stat()) == _stamp(before)
        except OSError:
            return False  # the next round tells what is wrong

    def _approve_added(
        self, edits: Sequence[Edit], refused: Sequence[PlaybillError | None], done: Document
    ) -> tuple[Config, tuple[PlaybillError | None, ...]]:
        """Who adds a server through us has approved it; if that cannot be kept, it is there, and says why it is not run."""
        config = done.config
        if self._trust is None:
            return config, tuple(refused)
        told = list(refused)
        for index, edit in enumerate(edits):
            entry = config.get(edit.server)
            if isinstance(edit, AddServer) and told[index] is None and entry is not None and entry.starts_something:
                try:
                    self._trust.approve(entry, self.path)
                except PlaybillError as error:
                    told[index] = error
        servers = tuple(e if e.trusted or not self._trusted(e) else evolve(e, trusted=True) for e in config.servers)
        if any(new is not old for new, old in zip(servers, config.servers, strict=True)):
            config = evolve(config, servers=servers)
        return config, tuple(told)


def _is_missing(error: ConfigError) -> bool:
    return isinstance(error.__cause__, FileNotFoundError)


def _stamp(there: os.stat_result) -> tuple[int, ...]:
    return (there.st_mode, there.st_uid, there.st_gid, there.st_size, there.st_mtime_ns)


def _reason(error: OSError) -> str:
    if error.errno == errno.EBUSY:
        return "it is mounted by itself and cannot be replaced: mount its folder instead"
    return (error.strerror or str(error)).lower()


def _stop_if_given_up() -> None:
    """End this thread's work when the task that waited for it does so no more.

    Raises:
        trio.Cancelled: it does not.
    """
    if "trio" not in sys.modules:
        return  # nor is there a task; and who only reads a file, as `playbill list` does, need not pay for the import
    import trio

    try:
        trio.from_thread.check_cancelled()
    except RuntimeError:
        return  # no thread of trio's: somebody is waiting


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

    def answered(self) -> str | None:
        """As `Store.answered`: there is no text."""
        return None

    def watched(self) -> tuple[Path, ...]:
        """As `Store.watched`: nobody changes it but who holds it."""
        return ()

    def approve(self, name: str, shown: ServerEntry | None) -> bool:
        """As `Store.approve`.

        Raises:
            ConfigError: the entry is not what was shown.
        """
        entries = self.config.servers
        if (entry := self.config.get(name)) is not None:
            check_shown(shown, entry)
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
