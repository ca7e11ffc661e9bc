"""References that need no more than a walk from the root: ``#`` and ``#/$defs/…``."""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

__all__ = ["is_dangling", "points_at", "refs_alone"]

_BEFORE_2019 = re.compile(r"https?://json-schema\.org/draft-0[3-7]/schema#?")


def refs_alone(root: dict[str, Any]) -> bool:
    """Whether the ``$schema`` of a root names a draft (before 2019) that ignores whatever stands beside a ``$ref``."""
    uri = root.get("$schema")
    return isinstance(uri, str) and _BEFORE_2019.fullmatch(uri) is not None


def points_at(root: dict[str, Any], reference: str) -> Any:
    """What a reference by JSON pointer (``#``, ``#/$defs/a``) points at, or None when it is of another kind or dangles."""
    if reference == "#":
        return root
    if not reference.startswith("#/"):
        return None
    found: Any = root
    for part in (unquote(reference) if "%" in reference else reference)[2:].split("/"):
        part = part.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict):
            found = found.get(part)
        elif (
            isinstance(found, list) and part.isdecimal() and part.isascii() and len(part) < 8 and int(part) < len(found)
        ):
            found = found[int(part)]
        else:
            return None
    return found


def is_dangling(root: dict[str, Any], reference: Any) -> bool:
    """Whether a reference is none that every provider with references follows: to the root, or into the definitions."""
    if not isinstance(reference, str):
        return True
    if reference != "#" and (not reference.startswith(("#/$defs/", "#/definitions/")) or "%" in reference):
        return True
    return not isinstance(points_at(root, reference), (dict, bool))
