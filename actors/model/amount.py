"""How large a JSON value is, roughly and without recursion: for bounds on what servers send."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

__all__ = ["amount"]

EACH = 16
"""Characters that a value stands for by itself, whatever it is."""


def amount(value: Any) -> int:
    """The characters of all its strings and keys, and some for each value at any depth."""
    left: list[Any] = [value]
    size = 0
    while left:
        each = left.pop()
        size += EACH
        if isinstance(each, str):
            size += len(each)
        elif isinstance(each, Mapping):
            size += sum(len(key) for key in each if isinstance(key, str))
            left.extend(each.values())
        elif isinstance(each, (list, tuple)):
            left.extend(each)
    return size
