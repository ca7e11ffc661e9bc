"""Wire names: what a tool of an MCP server is called towards a provider.

A wire name depends on (server, bare) ALONE, so that neither the order in which servers arrive nor what other servers
advertise can change it. It is resolved through the catalog's table and never parsed.

Why two tools cannot get one name: a *plain* name is used only when both parts are legal and short, neither contains
``__``, and the join touches no ``_``; then the body after ``mcp__`` holds ``__`` exactly once, so it can be read back in
one way only. Every other pair gets a *suffixed* name, whose body holds ``__`` at least twice (so it equals no plain
name) and ends in 60 bits of a hash of the whole pair.
"""

from __future__ import annotations

import re
from base64 import b32encode
from functools import lru_cache
from hashlib import sha256

__all__ = ["MAX_WIRE_NAME", "PREFIX", "wire_name"]

PREFIX = "mcp__"
"""How every wire name of an MCP tool begins; no native tool's name may."""

MAX_WIRE_NAME = 63
"""The longest wire name, in characters: the strictest of the providers' limits (64), less one."""

_HASH_CHARS = 12  # base32: 5 bits each, 60 bits in all
_ROOM = MAX_WIRE_NAME - len(PREFIX) - 2 - 2 - _HASH_CHARS  # for both parts of a suffixed name
_SERVER_ROOM = 18  # of it for the server's part, when the tool's part needs the rest
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")


def _is_plain(server: str, bare: str) -> bool:
    return (
        len(PREFIX) + len(server) + 2 + len(bare) <= MAX_WIRE_NAME
        and _PLAIN.fullmatch(server) is not None
        and _PLAIN.fullmatch(bare) is not None
        and "__" not in server
        and "__" not in bare
        and not server.endswith("_")
        and not bare.startswith("_")
    )


def _suffix(server: str, bare: str) -> str:
    # The length goes first, so that no other pair feeds the hash the same bytes. Names may hold lone surrogates.
    key = f"{len(server)}:{server}{bare}".encode("utf-8", "surrogatepass")
    return b32encode(sha256(key).digest())[:_HASH_CHARS].decode("ascii").lower()


@lru_cache(maxsize=1 << 16)
def wire_name(server: str, bare: str) -> str:
    """The name a server's tool has on the wire: ``mcp__<server>__<tool>``, with ``__<hash>`` where that is not enough.

    Args:
        server: the key of the server in the configuration; any characters, also none.
        bare: the server's own name of the tool; any characters, also none.

    Returns:
        At most ``MAX_WIRE_NAME`` characters of ``[A-Za-z0-9_-]``; other pairs get other names (case counts).
    """
    if _is_plain(server, bare):
        return f"{PREFIX}{server}__{bare}"
    left = _ILLEGAL.sub("-", server)
    right = _ILLEGAL.sub("-", bare)
    left = left[: max(_SERVER_ROOM, _ROOM - len(right))]
    right = right[: _ROOM - len(left)]
    return f"{PREFIX}{left}__{right}__{_suffix(server, bare)}"
