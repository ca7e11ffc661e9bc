"""The versions of the protocol that a host speaks, by their names; known here so that a file is read without the SDK."""

from __future__ import annotations

import re

from .nearest import nearest

__all__ = ["MODERN", "NEWEST_OLDER", "VERSIONS", "older", "version_wrong"]

MODERN = "2026-07-28"
"""The first version in which servers ask nothing by themselves, and that is met by ``server/discover``."""

VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25", MODERN)
"""All of them, the oldest first."""

NEWEST_OLDER = VERSIONS[VERSIONS.index(MODERN) - 1]
"""The newest one that is met by ``initialize``."""


def older(version: str | None) -> str | None:
    """The version, if it is one of before 2026-07-28; else None."""
    return version if version in VERSIONS[: VERSIONS.index(MODERN)] else None


def version_wrong(version: str) -> str | None:
    """Why a text is no version that a host speaks, with the nearest that is one, in one line; None when it is one."""
    if version in VERSIONS:
        return None
    if (day := _day(version)) is not None:
        near: str | None = min(VERSIONS, key=lambda each: abs((_day(each) or 0) - day))
    else:
        near = nearest(version, VERSIONS)
    hint = f" (did you mean {near!r}?)" if near is not None else ""
    return f"expected a version of the protocol ({', '.join(VERSIONS)}), found {version[:40]!r}{hint}"


def _day(version: str) -> int | None:
    """Roughly which day a date is, without its day or month too; None when it is none."""
    date = re.fullmatch(r"(\d{4})(?:-(\d\d?))?(?:-(\d\d?))?", version, re.ASCII)
    if date is None:
        return None
    year, month, day = (int(part or 1) for part in date.groups())
    return (year * 12 + month) * 31 + day
