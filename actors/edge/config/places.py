"""Where in the file the lists of an entry say what they say, so that a person who looks for a tool is led to its line."""

from __future__ import annotations

from ...model.config import ListPlaces
from .entry import EXCLUDES, INCLUDES, allow_list
from .jsonc import Source
from .jsonc_walk import Member, items, locate

__all__ = ["list_places"]


def list_places(source: Source, entry: Member) -> ListPlaces:
    """The lines of what an entry's lists exclude, counted from the line on which the entry stands.

    Args:
        source: the text of the file.
        entry: the entry in it; one that was read without an error.
    """
    first = source.place(entry.start)[0]
    excluded: dict[str, int] = {}
    for path in EXCLUDES:
        there = locate(source, path, entry.at)
        if there is not None and isinstance(there.value, list):
            for item in items(source, there.at)[0]:
                if isinstance(item.value, str):
                    excluded.setdefault(item.value, source.place(item.at)[0] - first)
    include: int | None = None
    for path in INCLUDES:
        there = locate(source, path, entry.at)
        if there is None or not isinstance(there.value, list):
            continue
        if path != ("tools",) or allow_list(there.value) is not None:
            include = source.place(there.start)[0] - first
            break
    return ListPlaces(excluded, include)
