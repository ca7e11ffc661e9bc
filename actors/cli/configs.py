"""The config of a verb: reading it, the store that edits it, and where an entry of it is written."""

from __future__ import annotations

from pathlib import Path

from ..edge.config.discover import Scope, user_file
from ..model.config import Config, ServerEntry
from ..ports import Store
from ..sources import find_store
from .errors import CliError, Exit

__all__ = ["label", "load", "near", "open_store", "place"]


def open_store(path: str | None, scope: Scope | None = None) -> Store:
    """The store of a verb. Nothing is read yet.

    Args:
        path: of the file; None = where `open_host` would look.
        scope: of the files found there, only this one, which need not be there.

    Raises:
        CliError: both are given, or the path is none.
    """
    if path is not None and "\0" in path:
        raise CliError(Exit.USAGE, "--config: a path cannot hold a NUL character")
    if path is not None and scope is not None:
        raise CliError(Exit.USAGE, "--scope chooses among the files that are found, --config names one: not both")
    return find_store(None if path is None else Path(path), scope)


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
