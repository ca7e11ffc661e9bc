"""The config of a verb: reading it, the store that edits it, and where an entry of it is written."""

from __future__ import annotations

import os
from pathlib import Path

from ..edge.config.discover import Scope, user_file
from ..edge.config.file import FileStore
from ..edge.config.scopes import ScopedStore
from ..model.config import Config, ServerEntry
from ..ports import Store
from ..sources import find_scopes, find_store
from .errors import CliError, Exit

__all__ = ["label", "load", "near", "open_store", "openable", "place"]


def open_store(path: str | None, scope: Scope | None = None, timeout: float | None = None) -> Store:
    """The store of a verb. Nothing is read yet.

    Args:
        path: of the file; None = where `open_host` would look.
        scope: of the files found there, only this one, which need not be there.
        timeout: seconds that an edit waits for another program's lock; None = as a host does.

    Raises:
        CliError: both are given, or the path is none.
        ConfigError: no path is given, and there is no current folder to look from.
    """
    if path is not None and "\0" in path:
        raise CliError(Exit.USAGE, "--config: a path cannot hold a NUL character")
    path = None if path is None else openable(path)
    if path is not None and scope is not None:
        raise CliError(Exit.USAGE, "--scope chooses among the files that are found, --config names one: not both")
    if timeout is None:
        return find_store(None if path is None else Path(path), scope)
    if path is not None:
        return FileStore(path, lock_timeout=timeout)
    found = ScopedStore(find_scopes().start, lock_timeout=timeout / 2)  # one edit may want both locks
    return found if scope is None else found.store(scope)


def openable(path: str) -> str:
    """A path that this locale can hand to the system: where it is not UTF-8, the same bytes as they came in."""
    try:
        os.fsencode(path)
    except UnicodeError:
        return os.fsdecode(path.encode("utf-8", "surrogateescape"))
    return path


def load(path: str | None, scope: Scope | None = None) -> Config:
    """Read the config; nothing is started and nothing is written.

    Args:
        path, scope: as in `open_store`.

    Raises:
        CliError: both are given.
        ConfigError: it is missing or cannot be read. When one of two files cannot be, `Config.error` says so instead.
    """
    return open_store(path, scope).load()


def place(entry: ServerEntry) -> str:
    """Where an entry is written: ``file:line``, or what is known of it."""
    return f"{entry.source or ''}{f':{entry.line}' if entry.line is not None else ''}"


def near(where: str | Path) -> str:
    """A place as seen from the folder we are in, where that is shorter; as it is when that folder is gone."""
    try:
        return str(where).removeprefix(f"{Path.cwd()}/")
    except OSError:
        return str(where)


def label(file: str | Path) -> str:
    """A file as a person is told of it: its path, and whose it is when it was found. Needs no current folder."""
    scope = "your own" if Path(file) == user_file() else "project" if Path(file).name == ".mcp.json" else ""
    return f"{near(file)} ({scope})" if scope else near(file)
