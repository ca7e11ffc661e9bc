"""Reading the config for a verb, and saying what is wrong with an entry."""

from __future__ import annotations

from pathlib import Path

from ..model.config import Config, ServerEntry
from ..sources import find_store

__all__ = ["load", "place", "problem"]


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


def problem(entry: ServerEntry) -> str:
    """One line on what is wrong with an invalid entry: file, line, path in the document, and why."""
    error = entry.error or ""
    parts = [part for part in (place(entry), f"mcpServers.{entry.name}") if part and part not in error]
    return ": ".join([*parts, error])
