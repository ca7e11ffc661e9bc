"""What to watch so that no change of a file is missed, and which change of the file system concerns us. Pure.

Theory of operation. A path is walked from the root as the system walks it. Each step that could come to mean something
else is a point: every symbolic link on the way, the file itself, or the first name that is not there. A point is watched
in the folder it lies in, because a file that is watched itself is lost as soon as another one takes its name. So a link is
seen when it is pointed elsewhere, its target when it is edited or replaced, and a missing folder when it is made.

Backup, swap, lock and temporary files lie in the same folders; they are no points and concern nobody.
"""

from __future__ import annotations

import os
import unicodedata
from collections.abc import Callable, Collection, Iterable
from pathlib import Path, PurePath
from typing import Literal

from attrs import frozen

__all__ = ["Look", "Plan", "Seen", "Trace", "plan", "trace"]

_MOST_LINKS = 40
"""Links on one way: as many as Linux follows; a circle of links has more."""


@frozen
class Seen:
    """What is at a path, not following a link.

    Args:
        kind: what it is.
        target: of a link: where it points, as written.
        identity: of a folder: changes when another folder takes its name.
    """

    kind: Literal["missing", "file", "folder", "link"]
    target: str = ""
    identity: object = None


Look = Callable[[str], Seen]
"""Tells what is at an absolute path; never raises."""


@frozen
class Trace:
    """The way to one file.

    Args:
        points: (folder, name) of each step that could come to mean something else, in order; the last is where the way ends.
        whole: whether the file is there.
    """

    points: tuple[tuple[str, str], ...]
    whole: bool


def trace(path: str | PurePath, look: Look) -> Trace:
    """Walk a path.

    Args:
        path: absolute; it may hold links and ``..`` anywhere, and need not exist.
        look: at the file system.
    """
    anchor, *todo = PurePath(path).parts
    here = anchor
    points: list[tuple[str, str]] = []
    links = 0
    while todo:
        name = todo.pop(0)
        if name == "..":
            here = str(PurePath(here).parent)
            continue
        full = str(PurePath(here, name))
        seen = look(full)
        if seen.kind == "folder" and todo:
            here = full
            continue
        points.append((here, name))
        if seen.kind != "link":
            # A folder in the file's place is as little the file as nothing is; a file on the way leads nowhere.
            return Trace(tuple(points), whole=seen.kind == "file" and not todo)
        links += 1
        if links > _MOST_LINKS:
            break
        target = PurePath(seen.target)
        if target.is_absolute():
            here, *parts = target.parts
            todo = parts + todo
        else:
            todo = [*target.parts, *todo]
    return Trace(tuple(points), whole=False)


def _key(path: str) -> str:
    """A path as it is compared.

    The system may tell a name in another case or another form of the same letters than it was asked for; that a stranger
    is taken for ours costs one look at the file, and no more.
    """
    return unicodedata.normalize("NFC", os.fsencode(path).decode("utf-8", "replace")).casefold()


@frozen
class Plan:
    """What to watch for a number of files.

    Args:
        folders: (path, identity) of each folder to watch, not what is below it.
        names: the paths that concern us, and the folders themselves, as `_key`.
        own: of those, the folders.
        missing: the files that are not there.
    """

    folders: frozenset[tuple[str, object]]
    names: frozenset[str]
    own: frozenset[str]
    missing: frozenset[str]

    def concerns(self, path: str) -> bool:
        """Whether a change at this path can change what one of the files says."""
        return _key(path) in self.names

    def outdated_by(self, changed: Iterable[str]) -> bool:
        """Whether a watched folder itself changed: who watches it may be watching what is not there any more."""
        return any(_key(path) in self.own for path in changed)


def plan(paths: Collection[str | Path], look: Look, readable: Callable[[str], bool]) -> Plan:
    """Plan the watch of these files.

    Args:
        paths: absolute.
        look: at the file system.
        readable: whether a folder can be watched. One on the way that cannot is left out; the one a way ends in never is.
    """
    folders: set[str] = set()
    names: set[str] = set()
    missing: set[str] = set()
    for path in paths:
        way = trace(path, look)
        if not way.whole:
            missing.add(str(path))
        folders.update(folder for folder, _ in way.points[:-1] if readable(folder))
        folders.update(folder for folder, _ in way.points[-1:])
        names.update(str(PurePath(folder, name)) for folder, name in way.points)
    own = frozenset(map(_key, folders))
    return Plan(
        folders=frozenset((folder, look(folder).identity) for folder in folders),
        names=own.union(map(_key, names)),
        own=own,
        missing=frozenset(missing),
    )
