"""Definitions of tools that somebody still holds, by what they were made of.

What a server that is started anew advertises as before need be neither validated nor made again. Only what somebody else holds
is found here, and of what a server sent only a digest is kept.
"""

from __future__ import annotations

import marshal
from hashlib import sha256
from typing import Any
from weakref import WeakValueDictionary

import trio

from ...model.status import ToolDef

__all__ = ["Key", "Made", "exact", "key_of", "made_here"]

Key = tuple[str | None, str, bytes]
"""The server's name, the protocol's version, and a digest of the definition as it was sent."""

Made = WeakValueDictionary[Key, ToolDef]

_made: trio.lowlevel.RunVar[Made] = trio.lowlevel.RunVar("definitions that somebody holds")


def made_here() -> Made:
    """Those of this trio loop."""
    try:
        return _made.get()
    except LookupError:
        made = Made()
        _made.set(made)
        return made


def exact(raw: Any) -> bytes | None:
    """Bytes that are the same only for the same JSON in the same order, one or more for each value and each character.

    None: it is nested too deeply.
    """
    try:
        return marshal.dumps(raw, 2)  # the last format that does not depend on what is shared in memory
    except ValueError:
        return None


def key_of(server: str | None, version: str, raw: Any) -> Key | None:
    """What a definition is found by; None: it is not kept."""
    text = exact(raw)
    return None if text is None else (server, version, sha256(text).digest())
