"""What is wrong with a configuration's files, each thing with its place: nothing is started, nothing written.

Three severities. An ``error`` makes an entry, or the file, unusable. A ``warning`` looks wrong, or depends on the machine (a
program that is not found, a variable that is not set here). A ``note`` says how something was understood, or
that it comes from the environment.
"""

from __future__ import annotations

import os
import shlex
import shutil
import stat
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path as FilePath
from typing import Literal

from attrs import frozen

from ...model.config import Config, ServerEntry
from ...model.errors import ConfigError
from .entry import EntryRead, read_entry
from .file import FileStore
from .here import look_here
from .jsonc_walk import Member, Path, locate, members, show_path
from .keys import url_wrong
from .oauth_keys import OAUTH_KEYS
from .read import Document
from .shape import lines_of, twice
from .trust import unapprovable

__all__ = ["UNTRUSTED", "Asked", "Finding", "Severity", "check_file", "check_shadows"]

UNTRUSTED = "untrusted \N{EM DASH} "
"""How a finding begins of an entry that nobody approved."""

Severity = Literal["error", "warning", "note"]

_ALIASES: Mapping[str, tuple[str, ...]] = {"url": ("url", "serverUrl", "httpUrl")}


@frozen
class Finding:
    """One thing about a file.

    Args:
        severity: see the module.
        file: its path.
        line, column: 1-based; None for the file as a whole.
        path: where in the document, such as ``mcpServers.a.args[0]``, or None.
        message: one line.
        server: the entry it is about, or None.
    """

    severity: Severity
    file: str
    line: int | None
    column: int | None
    path: str | None
    message: str
    server: str | None = None


@frozen
class _At:
    """Where findings of one entry are."""

    document: Document
    file: str
    entry: Member

    def __call__(self, severity: Severity, path: Path, message: str, *, at: int | None = None) -> Finding:
        source = self.document.source
        if at is None:
            there = locate(source, path, self.entry.at) if path else None
            at = self.entry.start if there is None else there.at
        line, column = source.place(at)
        prefix = () if self.document.key is None else (self.document.key,)
        name = self.entry.key
        return Finding(severity, self.file, line, column, show_path((*prefix, name, *path)), message, name)


Asked = Callable[[ServerEntry], str | None]
"""What else looks wrong with an entry that is to run, in one line; or None."""


def _nothing(entry: ServerEntry) -> None:
    """As `Asked`."""


def check_file(store: FileStore, environ: Mapping[str, str] | None = None, more: Asked = _nothing) -> list[Finding]:
    """All there is to say about one file, in the order of its lines.

    Args:
        store: of the file.
        environ: our environment; None for that of the process.
        more: see `Asked`.
    """
    file = str(store.path)
    try:
        document = store.document()
    except ConfigError as error:
        return [Finding("error", file, error.line, error.column, error.path, error.message)]
    found = list(_root(document, file))
    again = twice(document.entries)
    for each in document.entries:
        at = _At(document, file, each)
        if each.key in again:
            if each is again[each.key][-1]:
                lines = lines_of(document.source, again[each.key])
                message = f"this server is there {len(again[each.key])} times ({lines}); keep one"
                found.append(at("error", (), message, at=each.start))
            continue
        entry = document.config.get(each.key)
        if entry is not None:
            found += _entry(at, entry, read_entry(each.key, each.value), environ)
            if entry.runnable and (said := more(entry)) is not None:
                found.append(at("warning", (), said, at=each.start))
    return sorted(found, key=lambda each: (each.line or 0, each.column or 0))


def check_shadows(near: Config, far: FileStore) -> list[Finding]:
    """The entries of a farther file that are not used, as the nearer one has their names.

    Args:
        near: what the nearer file says.
        far: the store of the farther file; one that cannot be read has none.
    """
    try:
        document = far.document()
    except ConfigError:
        return []
    out = []
    for each in document.entries:
        hides = near.get(each.key)
        if hides is not None:
            message = f"not used: {hides.source}:{hides.line} has a server of this name, and is nearer"
            out.append(_At(document, str(far.path), each)("warning", (), message, at=each.start))
    return out


def _root(document: Document, file: str) -> Iterator[Finding]:
    """What is said of the file beside its entries."""
    source = document.source
    entries = {each.key for each in document.entries}
    prefix = () if document.key is None else (document.key,)
    of_entries = tuple(show_path((*prefix, name)) for name in entries)
    for warning in document.config.warnings:
        if document.key is not None and warning.startswith(of_entries):
            continue  # told with its own place
        where, there = None, None
        for member in document.root:
            shown = show_path((member.key,))
            if warning.startswith((f"{shown}:", f"{shown}[", f"{shown}.")) and (
                where is None or len(shown) > len(where)
            ):
                where, there = shown, member
        if document.key is None and there is not None and there.key in entries:
            continue
        line, column = source.place(there.start if there is not None else 0)
        path, message = None, warning
        if there is not None:
            path, _, message = warning.partition(": ")
        none = document.at is None and there is None  # what `no_servers` says
        yield Finding("note" if none else "warning", file, line, column, path, message)
    if not document.entries and not any("no servers" in each for each in document.config.warnings):
        top = next((each.start for each in document.root if each.key == document.key), 0)
        yield Finding("note", file, *source.place(top), document.key, "there are no servers here")


def _entry(at: _At, entry: ServerEntry, read: EntryRead, environ: Mapping[str, str] | None) -> Iterator[Finding]:
    for problem in read.problems:
        if problem.twice:
            lines = _lines(at, problem.path)
            yield at("error", problem.path, f"{problem.message} ({lines})", at=_key_at(at, problem.path))
        else:
            yield at("error", problem.path, problem.message)
    for warning in read.warnings:
        yield at("warning", warning.path, warning.message, at=_key_at(at, warning.path))
    if not entry.name.strip():
        yield at("warning", (), "the name of this server is empty: give it one", at=at.entry.start)
    yield from _times(at, entry)
    if entry.include is not None:
        for name in dict.fromkeys(entry.include):
            if name in entry.exclude:
                path = _first_there(at, (("tools", "exclude"), ("disabledTools",), ("excludeTools",)))
                yield at("warning", path, f"{name!r} is in the allow-list too; it is not enabled")
    if not entry.trusted and entry.error is None:
        how = f"run `playbill trust {shlex.quote(entry.name)}`"
        yield at("warning", (), f"{UNTRUSTED}{unapprovable(entry) or how}", at=at.entry.start)
    if entry.error is None and not entry.disabled:
        yield from _machine(at, entry, environ)


def _key_at(at: _At, path: Path) -> int | None:
    """The offset of a member's key: an unknown key is pointed at itself, not at its value."""
    there = locate(at.document.source, path, at.entry.at) if path else None
    return None if there is None else there.start


def _lines(at: _At, path: Path) -> str:
    """The lines of all members that a path may mean."""
    source = at.document.source
    parent = locate(source, path[:-1], at.entry.at) if path[:-1] else at.entry
    inner = members(source, at.entry.at if parent is None else parent.at)[0]
    return lines_of(source, [each for each in inner if each.key == path[-1]])


def _times(at: _At, entry: ServerEntry) -> Iterator[Finding]:
    for key, seconds in (("timeout", entry.timeout), ("connectTimeout", entry.connect_timeout)):
        there = locate(at.document.source, (key,), at.entry.at)
        if seconds is not None and there is not None:
            unit = "seconds" if there.value == seconds else "milliseconds"
            yield at("note", (key,), f"read as {unit}: {seconds:g} s (from 1000 on it is milliseconds)")


def _first_there(at: _At, paths: Iterable[Path]) -> Path:
    return next((path for path in paths if locate(at.document.source, path, at.entry.at) is not None), ())


def _machine(at: _At, entry: ServerEntry, environ: Mapping[str, str] | None) -> Iterator[Finding]:
    """What would keep the entry from starting on this machine, as it is now."""
    here = look_here(entry, environ)
    for lack in here.lacks:
        yield at("warning", _written(at, entry, lack.path), str(lack).removeprefix(f"{lack.path}: "))
    for where, name in here.taken:
        yield at("note", _written(at, entry, where), f"{name} is taken from the environment")
    expanded, missing = here.expanded, bool(here.lacks)
    if expanded is None:
        return
    for where, inner in expanded.kept:
        message = f"${{{inner}}} is passed on as it is (a default is written ${{NAME:-text}})"
        yield at("warning", _written(at, entry, where), message)

    def known(text: str | None) -> bool:
        """Whether what a text was expanded to is what it will be."""
        return not (missing and text is not None and "${" in text)

    if entry.command is None:
        wrong = url_wrong(expanded.url or "") if "${" in (entry.url or "") and known(entry.url) else None
        if wrong is not None:
            yield at("warning", _written(at, entry, "url"), wrong)
        return
    folder = FilePath(expanded.cwd or ".")
    if not known(entry.cwd):
        return
    kind = _kind(folder)
    if kind != stat.S_IFDIR:
        why = f"{folder} cannot be looked into" if kind is None else f"there is no folder {folder}"
        yield at("warning", ("cwd",) if entry.cwd is not None else (), why)
    elif expanded.command and known(entry.command) and known(entry.env.get("PATH")):
        unfound = _not_found(expanded.command, folder, expanded.env.get("PATH", os.defpath))
        if unfound is not None:
            yield at("warning", ("command",), unfound)


def _written(at: _At, entry: ServerEntry, shown: str) -> Path:
    """The path in the file of one that was shown."""
    paths: list[Path] = [("command",), ("cwd",), ("envFile",), ("headersHelper",)]
    paths += [("oauth", key) for key in OAUTH_KEYS]
    paths += [("args", i) for i in range(len(entry.args))]
    paths += [(key, name) for key in ("env", "headers") for name in getattr(entry, key)]
    paths += [(alias,) for alias in _ALIASES["url"]]
    wanted = "url" if shown in _ALIASES["url"] else shown
    for path in paths:
        says = "url" if path[0] in _ALIASES["url"] else show_path(path)
        if says == wanted and locate(at.document.source, path, at.entry.at) is not None:
            return path
    return ()


def _kind(path: FilePath) -> int | None:
    """What is at a path, as `stat.S_IFMT` says; 0 when nothing is, None when we may not even know."""
    try:
        return stat.S_IFMT(path.stat().st_mode)
    except PermissionError:
        return None
    except (OSError, ValueError):
        return 0


def _not_found(command: str, folder: FilePath, path: str) -> str | None:
    if os.sep in command or (os.altsep and os.altsep in command):
        there = folder / command
        kind = _kind(there)
        if kind != stat.S_IFREG:
            return f"{there} cannot be looked at" if kind is None else f"there is no program {there}"
        return None if os.access(there, os.X_OK) else f"{there} is not executable"
    return None if shutil.which(command, path=path) else f"{command!r} is not found in PATH"
