"""Where a host's configuration comes from: a file that was named, a value, or what is found beside the program."""

from __future__ import annotations

from pathlib import Path

from .edge.config.discover import discover, user_file
from .edge.config.file import FileStore, MemoryStore
from .edge.config.trust import TrustStore
from .model.config import Config
from .model.errors import ConfigError
from .ports import Store

__all__ = ["find_store"]

LOCK_PATIENCE = 5.0
"""Seconds to wait for another program's lock: less than the time a host gives one access to the store."""


def find_store(config: Path | str | Config | None) -> Store:
    """The store of what `open_host` was asked for.

    Args:
        config: a path, trusted as it is; a value, which lives in memory; or None for the nearest project file (whose local
            servers need approval), else the user's.

    Raises:
        ConfigError: None was given and there is no such file.
    """
    if isinstance(config, Config):
        return MemoryStore(config)
    if config is not None:
        return FileStore(config, lock_timeout=LOCK_PATIENCE)
    found = discover(Path.cwd())
    if not found:
        here = Path.cwd() / "mcp.json"
        hint = f" (there is {here}: name it)" if here.is_file() else ""
        raise ConfigError(f"no .mcp.json in {Path.cwd()} or its parents, and no {user_file()}{hint}")
    nearest = found[0]
    trust = TrustStore() if nearest.scope == "project" else None
    return FileStore(nearest.path, trust=trust, lock_timeout=LOCK_PATIENCE)
