"""What is wrong with a tool, as a value; and where, as a path that a person can follow."""

from __future__ import annotations

import re
from typing import Any

from attrs import frozen

__all__ = ["ROOT", "Flaw", "Link", "Unfit", "path_text"]

Link = tuple[Any, Any] | None
"""Where something is: (link of what holds it, key or index), None for the root. Made for every value, put in words for few."""

ROOT = "inputSchema"
"""How every path into an input schema begins: its name in the protocol."""

_PLAIN = re.compile(r"[\w$-]{1,64}", re.ASCII)
_LONGEST_KEY = 64  # characters of one key that are shown
_LONGEST_PATH = 300  # characters of a whole path


@frozen
class Flaw:
    """Why a tool is quarantined; its ``str`` is one line for a person.

    Args:
        rule: the rule it breaks, in one word with dashes (``ref-cycle``).
        path: where, as a JSON path into its definition (``inputSchema.properties.a``), or empty.
        message: what is wrong.
    """

    rule: str
    path: str
    message: str

    def __str__(self) -> str:
        return self.message


class Unfit(Exception):
    """A schema cannot be mended. It never leaves `fit`.

    Args:
        rule, link, message: as in `Flaw`, the place not yet in words.
    """

    def __init__(self, rule: str, link: Link, message: str) -> None:
        super().__init__(message)
        self.flaw = Flaw(rule, path_text(link), message)

    @classmethod
    def of(cls, flaw: Flaw) -> Unfit:
        """The same as a value says."""
        made = cls(flaw.rule, None, flaw.message)
        made.flaw = flaw
        return made


def path_text(link: Link) -> str:
    """A place in words: ``inputSchema.properties.a.anyOf[0]``; a key that is no plain word in quotes, what is long cut."""
    parts: list[str] = []
    while link is not None:
        link, key = link
        if isinstance(key, int):
            parts.append(f"[{key}]")
        elif _PLAIN.fullmatch(key):
            parts.append(f".{key}")
        else:
            shown = key if len(key) <= _LONGEST_KEY else key[:_LONGEST_KEY] + "…"
            parts.append(f"[{shown!a}]")
    text = ROOT + "".join(reversed(parts))
    return text if len(text) <= _LONGEST_PATH else text[:_LONGEST_PATH] + "…"
