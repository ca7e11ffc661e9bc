"""Where a host's configuration comes from: a file that was named, a value, or what is found beside the program."""

from __future__ import annotations

from pathlib import Path

from .edge.config.discover import Scope
from .edge.config.file import FileStore, MemoryStore
from .edge.config.scopes import ScopedStore
from .model.config import Config
from .model.errors import ConfigError
from .ports import Store

__all__ = ["find_scopes", "find_store"]

LOCK_PATIENCE = 5.0
"""Seconds to wait for another program's lock: less than the time a host gives one access to the store."""


def find_scopes() -> ScopedStore:
    """The files that apply in the current folder: the nearest project file and the user's, whether or not they are there.

    Raises:
        ConfigError: there is no current folder.
    """
    try:
        here = Path.cwd()
    except OSError as error:
        raise ConfigError(f"the current folder is gone ({error.strerror}): name the file") from None
    return ScopedStore(here, lock_timeout=LOCK_PATIENCE / 2)  # one edit may want both locks


def find_store(config: Path | str | Config | None, scope: Scope | None = None) -> Store:
    """The store of what `open_host` was asked for.

    Args:
        config: a path, trusted as it is; a value, which lives in memory; or None for the nearest project file (whose local
            servers need approval) and the user's, together.
        scope: with None: only the file of this scope.

    Raises:
        ConfigError: None was given and there is no current folder.
    """
    if isinstance(config, Config):
        return MemoryStore(config)
    if config is not None:
        return FileStore(config, lock_timeout=LOCK_PATIENCE)
    found = find_scopes()
    return found if scope is None else found.store(scope)
