"""The store of a configuration that was not named: the project's file and the user's, both in force.

Theory of operation. Each look discovers the files anew (`discover`), so that one that is made, or goes, comes in force or out
of it. What they say is joined: the nearer file's servers, then those of the farther one whose names the nearer one does not
have; an entry that is nearer wins whole. Each file has a `FileStore` of its own, which does all reading and writing:

    edit ─▶ which file? (that of its entry; a new one: the nearer) ─▶ that file's store ─▶ joined again

A file that cannot be read hides only itself: what its scope said last stands in for it, and `Config.error` says why. Only
when no file can be read is the whole refused. Edits that go to different files are separate writes: one may be refused and the
others done.

The text of such a configuration is the files that apply, what is in them, and the approvals of the project's file: a change of
any of these makes another `fingerprint`.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from pathlib import Path

from attrs import define, evolve, field

from ...model.config import Config, ServerEntry
from ...model.edits import AddServer, Edit, RemoveServer
from ...model.errors import ConfigError, PlaybillError, ServerExists, UnknownServer
from ...model.nearest import nearest
from ...ports import Edited
from .discover import PROJECT_FILE, Found, Scope, candidates, discover, is_there, user_file
from .file import FileStore
from .places import join_places
from .trust import TrustStore

__all__ = ["ScopedStore"]


@define
class _Part:
    """One file that applies, as it was read.

    Args:
        scope: whose it is.
        store: its store.
        config: what it says; None when it was never read.
        error: why it is not read as it is now.
    """

    scope: Scope
    store: FileStore
    config: Config | None = None
    error: ConfigError | None = None


@define
class _View:
    """All files that apply, the nearest first, and the approvals that they were read with."""

    parts: list[_Part] = field(factory=list)
    approvals: str = ""

    def part_of(self, name: str) -> _Part | None:
        """The file whose entry of that name is in force."""
        return next(
            (each for each in self.parts if each.config is not None and each.config.get(name) is not None), None
        )

    def nearer_error(self, part: _Part) -> ConfigError | None:
        """Why it is unknown whether a file that is nearer has an entry that hides one of this part; None when it is known."""
        before = self.parts[: self.parts.index(part)]
        return next((each.error for each in before if each.error is not None and each.config is None), None)

    def names(self) -> list[str]:
        """All servers, those that are behind others once."""
        return list(dict.fromkeys(entry.name for each in self.parts if each.config for entry in each.config.servers))

    def broken(self) -> bool:
        """Whether nothing of it can be read, or there is nothing."""
        return all(each.error is not None for each in self.parts)

    def error(self) -> ConfigError | None:
        """Why not all of it is read; of several reasons the first, with the others behind it."""
        errors = [each.error for each in self.parts if each.error is not None]
        if len(errors) < 2:
            return errors[0] if errors else None
        first = errors[0]
        message = "; ".join([first.message, *map(str, errors[1:])])
        return ConfigError(message, file=first.file, line=first.line, column=first.column, path=first.path)

    def joined(self, previous: Config | None) -> Config:
        """What all of it says together; ``previous`` itself if that is the same."""
        read = [each.config for each in self.parts if each.config is not None]
        error = self.error()
        if len(read) == 1 and error is None and len(self.parts) == 1:
            return read[0]
        servers: dict[str, ServerEntry] = {}
        for config in read:
            for entry in config.servers:
                servers.setdefault(entry.name, entry)
        path = str(self.parts[0].store.path) if self.parts else None
        warnings = tuple(f"{config.path}: {each}" for config in read for each in config.warnings)
        was = None if previous is None else previous.places
        places = join_places(read, was) if any(each.places for each in read) else None
        config = Config(tuple(servers.values()), path, warnings, error, places)
        same = previous is not None and previous == config and previous.places is places
        return previous if previous is not None and same else config


class ScopedStore:
    """The configuration that applies in a folder.

    Args:
        start: the folder.
        user: the user's own file; None for `user_file`.
        trust: the approvals of project files; None for the person's own.
        fsync, lock_timeout: of each file, as in `FileStore`.
    """

    def __init__(
        self,
        start: Path,
        *,
        user: Path | None = None,
        trust: TrustStore | None = None,
        fsync: bool = True,
        lock_timeout: float = 10.0,
    ) -> None:
        self.start = start.absolute()
        self.user = (user if user is not None else user_file()).absolute()
        self.trust = trust if trust is not None else TrustStore(lock_timeout=lock_timeout)
        self._fsync = fsync
        self._lock_timeout = lock_timeout
        self._stores: dict[Path, FileStore] = {}
        self._good: dict[Scope, Config] = {}
        self._answered: str | None = None

    # As `Store`.

    def load(self, previous: Config | None = None) -> Config:
        """As `Store.load`: what the files say together, with `Config.error` when one of several cannot be read.

        Raises:
            ConfigError: there is no file, or none can be read.
        """
        view = self._look(previous)
        if view.broken():
            raise self._failed(view)
        self._note(view)
        return view.joined(previous)

    def edit(self, edits: Sequence[Edit], previous: Config | None = None) -> Edited:
        """As `Store.edit`, in the file that each edit is for; a file that is written is written once.

        An entry is edited and removed where it is in force, and nowhere while a nearer file, of which nothing was ever read,
        cannot be read: it may have an entry of that name. A new one goes to the project's file if there is one, else to the
        user's, which is made. What cannot be done in one file is refused alone.

        Raises:
            ConfigError: there are files, and none can be read.
        """
        view = self._look(previous)
        adds = any(isinstance(edit, AddServer) for edit in edits)
        if view.broken() if view.parts else not adds:
            raise self._failed(view)
        refused: list[PlaybillError | None] = [None] * len(edits)
        waiting: dict[Scope, list[int]] = {}
        moved: set[str] = set()
        wrote = False
        for index, edit in enumerate(edits):
            if edit.server in moved:
                # Where this one goes depends on what became of an earlier one.
                wrote |= self._write(view, waiting, edits, refused, previous)
                waiting, moved = {}, set()
            where = self._where(view, edit)
            if isinstance(where, PlaybillError):
                refused[index] = where
                continue
            waiting.setdefault(where, []).append(index)
            if isinstance(edit, AddServer | RemoveServer):
                moved.add(edit.server)
        wrote |= self._write(view, waiting, edits, refused, previous)
        if self._approvals(view) != view.approvals:
            view = self._look(previous)  # ours, for a server that was added: the others are read with it too
        self._note(view)
        if not view.parts:  # the file that was to be made is not there
            raise next(why for why in refused if why is not None)
        return Edited(view.joined(previous), tuple(refused), wrote)

    def put(self, config: Config) -> None:
        """As `Store.put`.

        Raises:
            ConfigError: always: files are only ever edited.
        """
        raise ConfigError("this host reads its configuration from files: edit those and reload", file=str(self.user))

    def approve(self, name: str, shown: ServerEntry | None) -> bool:
        """As `Store.approve`: the entry of that name that is in force.

        Raises:
            ConfigError: its file, or any when no entry is found, cannot be read; or the entry has changed.
            WriteFailed: the approval cannot be kept.
        """
        view = self._look(None)
        part = view.part_of(name)
        if part is not None:
            return part.store.approve(name, shown)
        if (error := view.error()) is not None:
            raise error
        return False

    def fingerprint(self) -> str | None:
        """As `Store.fingerprint`; None when there is no file."""
        view = _View([_Part(each.scope, self.store(each.scope, each.path)) for each in self._found()])
        view.approvals = self._approvals(view)
        return _hash(view, [each.store.fingerprint() for each in view.parts])

    def answered(self) -> str | None:
        """As `Store.answered`."""
        return self._answered

    def watched(self) -> tuple[Path, ...]:
        """As `Store.watched`: where the project's file is, or may come to be; the user's file; the approvals."""
        around: list[Path] = []
        for path in candidates(self.start):
            if os.access(path.parent, os.R_OK):
                around.append(path)
            if is_there(path):
                break
        return (*around, self.user, self.trust.path)

    # Beyond it.

    def store(self, scope: Scope, path: Path | None = None) -> FileStore:
        """The store of one scope's file alone, which need not be there.

        Args:
            scope: whose.
            path: of the file; None for the one that applies, else where it would be made.
        """
        if path is None:
            there = next((each.path for each in self._found() if each.scope == scope), None)
            path = there or (self.user if scope == "user" else self.start / PROJECT_FILE)
        if path not in self._stores:
            mine = scope == "user"
            self._stores[path] = FileStore(
                path,
                trust=None if mine else self.trust,
                fsync=self._fsync,
                lock_timeout=self._lock_timeout,
                # The user's own may hold secrets; a project's is made as its other files are.
                mode=0o600 if mine else None,
                make_folder=mine,
                nor=", nor one in a parent folder" if path == self.start / PROJECT_FILE else "",
            )
        return self._stores[path]

    def files(self) -> list[Found]:
        """The files that apply, the nearest first."""
        return self._found()

    def _found(self) -> list[Found]:
        return discover(self.start, user=self.user)

    def _look(self, previous: Config | None) -> _View:
        """Read all files that apply. What a scope said last stays known as long as it has a file."""
        view = _View([_Part(each.scope, self.store(each.scope, each.path)) for each in self._found()])
        for scope in self._good.keys() - {each.scope for each in view.parts}:
            del self._good[scope]
        view.approvals = self._approvals(view)  # before the files: one that comes meanwhile is seen by the next look
        for each in view.parts:
            self._read(each, previous)
        return view

    def _read(self, part: _Part, previous: Config | None) -> None:
        last = self._good.get(part.scope)
        if previous is not None and previous.error is not None:
            previous = evolve(previous, error=None)  # another file's, perhaps
        part.error = None
        try:
            part.config = part.store.load(previous if last is None else last)
        except ConfigError as error:
            part.config, part.error = last, error
        else:
            self._good[part.scope] = part.config

    def _approvals(self, view: _View) -> str:
        project = next((each.store.path for each in view.parts if each.scope == "project"), None)
        return "" if project is None else self.trust.fingerprint(project)

    def _note(self, view: _View) -> None:
        """Note which text was answered from."""
        self._answered = _hash(view, [each.store.answered() for each in view.parts])

    def _failed(self, view: _View) -> ConfigError:
        self._note(view)
        if (error := view.error()) is not None:
            return error
        here = self.start / "mcp.json"
        hint = f" (there is {here}: name it)" if here.is_file() else ""
        error = ConfigError(f"no {PROJECT_FILE} in {self.start} or its parents, and no {self.user}{hint}")
        error.nothing = True
        return error

    def _where(self, view: _View, edit: Edit) -> Scope | PlaybillError:
        """Whose file an edit is for, or why it can be done in none."""
        part = view.part_of(edit.server)
        unread = None if part is None else view.nearer_error(part)
        if part is not None and unread is not None:
            # It may well have the entry that is meant: what a person is half way through saving is no reason to edit another.
            why = f"it may have a server {edit.server!r}, so that of {part.store.path} was not edited"
            what = f"{unread.message}; {why}"
            return ConfigError(what, file=unread.file, line=unread.line, column=unread.column, path=unread.path)
        if isinstance(edit, AddServer):
            if part is None:
                return view.parts[0].scope if view.parts else "user"
            return part.scope if edit.replace else ServerExists(edit.server, str(part.store.path))
        if part is not None:
            return part.scope
        unread = view.error()
        if unread is not None:
            return unread  # it may well be in there
        path = str(view.parts[0].store.path) if len(view.parts) == 1 else None
        return UnknownServer(edit.server, nearest(edit.server, view.names()), path)

    def _write(
        self,
        view: _View,
        waiting: dict[Scope, list[int]],
        edits: Sequence[Edit],
        refused: list[PlaybillError | None],
        previous: Config | None,
    ) -> bool:
        """Do the edits that wait, file by file; the view is then of what was written.

        A part is removed from the view only when its file is not there.
        """
        wrote = False
        for scope, indices in waiting.items():
            part = next((each for each in view.parts if each.scope == scope), None)
            if part is None:
                part = _Part(scope, self.store(scope))
                view.parts.append(part)
                view.parts.sort(key=lambda each: each.scope != "project")
            try:
                done = part.store.edit([edits[index] for index in indices], part.config or previous)
            except PlaybillError as error:
                for index in indices:
                    refused[index] = error
                if is_there(part.store.path):
                    self._read(part, previous)
                else:
                    view.parts.remove(part)
                continue
            part.config, part.error = done.config, None
            self._good[scope] = done.config
            for index, why in zip(indices, done.refused, strict=True):
                refused[index] = why
            wrote |= done.wrote
        return wrote


def _hash(view: _View, texts: Sequence[str | None]) -> str | None:
    """One fingerprint of the files that apply, their texts, and the approvals."""
    if not view.parts:
        return None
    said = [(each.scope, str(each.store.path), text) for each, text in zip(view.parts, texts, strict=True)]
    return hashlib.sha256(repr((said, view.approvals)).encode("utf-8", "surrogatepass")).hexdigest()
