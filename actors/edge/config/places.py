"""Where in the file an entry and its lists say what they say, so that a person who looks for a tool is led to its line.

Nothing is looked for before somebody asks: the text is kept, and parsed where it is asked about.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from ...model.config import Config, Places
from .entry import EXCLUDES, INCLUDES, allow_list
from .jsonc import Source, scan
from .jsonc_walk import Member, items, locate, members

__all__ = ["FilePlaces", "JoinedPlaces", "join_places"]

_Lists = tuple[Mapping[str, int], int | None]


class FilePlaces:
    """The places of one file's entries.

    Args:
        source: the text.
        entries: the members of its server map.
    """

    def __init__(self, source: Source, entries: Sequence[Member]) -> None:
        self.source = source
        self._entries = entries
        self._starts: dict[str, tuple[int, int]] | None = None
        self._lists: dict[str, _Lists] = {}

    def line(self, server: str, bare: str | None = None) -> int | None:
        """As `Places.line`."""
        if self._starts is None:
            self._starts = {each.key: (each.start, each.end) for each in reversed(self._entries)}
        if server not in self._starts:
            return None
        start, end = self._starts[server]
        line = self.source.place(start)[0]
        if bare is None:
            return line
        if server not in self._lists:
            self._lists[server] = _lists(self.source.text[start:end])
        excluded, include = self._lists[server]
        return line + excluded.get(bare, include or 0)


class JoinedPlaces:
    """The places of what several files say together: of each name, those of the file whose entry is in force."""

    def __init__(self, parts: Sequence[Config]) -> None:
        self.parts = [each.places for each in parts]
        self._of = {entry.name: each for each in reversed(parts) for entry in each.servers}

    def line(self, server: str, bare: str | None = None) -> int | None:
        """As `Places.line`."""
        return self._of[server].line(server, bare) if server in self._of else None


def join_places(parts: Sequence[Config], previous: Places | None) -> JoinedPlaces:
    """The places of several files, the nearest first; ``previous`` itself when those of no part are others."""
    joined = JoinedPlaces(parts)
    if (
        isinstance(previous, JoinedPlaces)
        and len(previous.parts) == len(joined.parts)
        and all(old is new for old, new in zip(previous.parts, joined.parts, strict=True))
    ):
        return previous
    return joined


def _lists(text: str) -> _Lists:
    """Of an entry as it stands in the file: how many lines below its own each excluded name is, and the include list."""
    source = scan("{" + text + "}")
    entry = members(source, 0)[0][0]
    excluded: dict[str, int] = {}
    for path in EXCLUDES:
        there = locate(source, path, entry.at)
        if there is not None and isinstance(there.value, list):
            for item in items(source, there.at)[0]:
                if isinstance(item.value, str):
                    excluded.setdefault(item.value, source.place(item.at)[0] - 1)
    include: int | None = None
    for path in INCLUDES:
        there = locate(source, path, entry.at)
        if there is None or not isinstance(there.value, list):
            continue
        if path != ("tools",) or allow_list(there.value) is not None:
            include = source.place(there.start)[0] - 1
            break
    return excluded, include
