"""Reading the config for a verb, and where an entry of it is written."""

from __future__ import annotations

from pathlib import Path

from ..model.config import Config, ServerEntry
from ..sources import find_store

__all__ = ["load", "place"]


def load(path: str | None) -> Config:
    """Read the config; nothing is started and nothing is written.

    Args:
        path: of the file; None = where `open_host` would look.

    Raises:
        ConfigError: it is missing or cannot be read.
    """
    return find_store(None if path is None else Path(path)).load()


def place(entry: ServerEntry) -> str:
    """Where an entry is written: ``file:line``, or what is known of it."""
    return f"{entry.source or ''}{f':{entry.line}' if entry.line is not None else ''}"
