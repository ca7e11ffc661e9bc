"""Which configuration files apply where no path is given."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from attrs import frozen
from platformdirs import user_config_path

__all__ = ["PROJECT_FILE", "Found", "Scope", "candidates", "discover", "is_there", "user_file"]

PROJECT_FILE = ".mcp.json"

Scope = Literal["project", "user"]


@frozen
class Found:
    """A configuration file found.

    Args:
        path: of the file.
        scope: ``project`` (it comes with a project: what it starts needs approval) or ``user`` (a person's own).
    """

    path: Path
    scope: Scope


def user_file() -> Path:
    """The user's own configuration file, whether or not it is there."""
    return user_config_path("playbill") / "mcp.json"


def is_there(path: Path) -> bool:
    """Whether there is a file at a path. Never raises: a folder on the way that may not be looked into has none."""
    try:
        return path.is_file()
    except OSError:
        return False


def candidates(start: Path) -> list[Path]:
    """Where a project's file may be, the nearest first: in a folder and in every folder above it."""
    here = start.absolute()
    return [folder / PROJECT_FILE for folder in (here, *here.parents)]


def discover(start: Path, *, user: Path | None = None) -> list[Found]:
    """The configuration files that apply in a folder, the nearest first.

    The ``.mcp.json`` of the folder or of its nearest parent that has one, then the user's file.

    Args:
        start: the folder.
        user: the user's file; None for `user_file`.

    Returns:
        Those that are there; a name that is in both means the first one's.
    """
    there = next((path for path in candidates(start) if is_there(path)), None)
    found = [] if there is None else [Found(there, "project")]
    mine = user if user is not None else user_file()
    if is_there(mine):
        found.append(Found(mine, "user"))
    return found
