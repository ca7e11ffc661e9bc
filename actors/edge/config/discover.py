"""Which configuration files apply where no path is given."""

from __future__ import annotations

from pathlib import Path
from typing import Literal

from attrs import frozen
from platformdirs import user_config_path

__all__ = ["Found", "Scope", "discover", "user_file"]

Scope = Literal["project", "user"]


@frozen
class Found:
    """A configuration file found.

    Args:
        path: of the file.
        scope: ``project`` (it comes with a project: what it starts needs approval) or ``user``.
    """

    path: Path
    scope: Scope


def user_file() -> Path:
    """The user's own configuration file, whether or not it is there."""
    return user_config_path("playbill") / "mcp.json"


def discover(start: Path, *, user: Path | None = None) -> list[Found]:
    """The configuration files that apply in a folder, the nearest first.

    The ``.mcp.json`` of the folder or of its nearest parent that has one, then the user's file.

    Args:
        start: the folder.
        user: the user's file; None for `user_file`.

    Returns:
        Those that are there; the first one counts.
    """
    found: list[Found] = []
    here = start.absolute()
    for folder in (here, *here.parents):
        if (folder / ".mcp.json").is_file():
            found.append(Found(folder / ".mcp.json", "project"))
            break
    mine = user if user is not None else user_file()
    if mine.is_file():
        found.append(Found(mine, "user"))
    return found
