"""Which valid name a mistyped one was meant to be.

Bounded, because both the names and the question may come from a server or a model: of a name only the beginning counts, and
only the most promising names are compared in full, whose number does not grow with the number of names.
"""

from __future__ import annotations

from collections.abc import Iterable
from difflib import SequenceMatcher
from heapq import nlargest

__all__ = ["nearest"]

_LONGEST = 64
"""Characters of a name that count; comparing two names takes up to the product of their lengths."""

_COMPARED = 100
"""Names that are compared in full: those that share most characters with the one sought, in whatever order."""

_NEAR = 0.6
"""How much of both names must be alike, from 0 to 1."""


def _folded(name: str) -> str:
    return name[:_LONGEST].casefold()[:_LONGEST]


def nearest(name: str, valid: Iterable[str]) -> str | None:
    """The valid name most like ``name`` (case does not count), or None when none is near.

    Args:
        name: what was asked for; of it, as of each valid name, the first 64 characters count.
        valid: any number of names.
    """
    wanted = _folded(name)
    counts = [(char, wanted.count(char)) for char in sorted(set(wanted))]
    promising: list[tuple[float, str, int, str]] = []  # the number, so that no two huge names are compared
    for each in valid:
        folded = _folded(each)
        size = len(wanted) + len(folded)
        if not size or 2 * min(len(wanted), len(folded)) < _NEAR * size:
            continue
        shared = sum(min(count, folded.count(char)) for char, count in counts)
        if 2 * shared >= _NEAR * size:
            promising.append((2 * shared / size, folded, len(promising), each))
    matcher = SequenceMatcher(b=wanted, autojunk=False)
    best, near = (_NEAR, ""), None
    for _, folded, _, each in nlargest(_COMPARED, promising):
        matcher.set_seq1(folded)
        if (found := (matcher.ratio(), folded)) > best:
            best, near = found, each
    return near
