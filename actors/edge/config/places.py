"""Where in the file the lists of an entry say what they say, so that a person who looks for a tool is led to its line."""

from __future__ import annotations

from collections.abc import Mapping

from ...model.config import ListPlaces
from .entry import EXCLUDES, INCLUDES, allow_list
from .jsonc import scan
from .jsonc_walk import items, locate, members

__all__ = ["list_places"]


def list_places(text: str) -> ListPlaces:
    """Where an entry's lists are; looked for when somebody asks, as few ever do.

    Args:
        text: the entry as it stands in the file, from its key to the end of its value; one that was read without an error.
    """
    return ListPlaces(text, _find)


def _find(text: str) -> tuple[Mapping[str, int], int | None]:
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
