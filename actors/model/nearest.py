"""Which valid name a mistyped one was meant to be."""

from __future__ import annotations

from collections.abc import Iterable
from difflib import get_close_matches

__all__ = ["nearest"]


def nearest(name: str, valid: Iterable[str]) -> str | None:
    """The valid name most like ``name`` (case does not count), or None when none is near."""
    folded = {each.casefold(): each for each in valid}
    found = get_close_matches(name.casefold(), folded, n=1, cutoff=0.6)
    return folded[found[0]] if found else None
