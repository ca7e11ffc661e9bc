"""Wire names: what a tool of an MCP server is called towards a provider.

A wire name depends on (server, bare) ALONE, so that neither the order in which servers arrive nor what other servers
advertise can change it. It is resolved through the catalog's table and never parsed.

Why two tools cannot get one name: a *plain* name is used only when both parts are legal and short, neither contains
``__``, and the join touches no ``_``; then the body after ``mcp__`` holds ``__`` exactly once, so it can be read back in
one way only. Every other pair gets a *suffixed* name, whose body holds ``__`` at least twice (so it equals no plain
name) and ends in 60 bits of a hash of the whole pair.

What does not count: what a name looks like or means. A tool called ``github_create`` or ``mcp__github__create`` keeps all of
that name behind its server's; ``é`` as one character and as two are two names; and so are ``Log`` and ``log``, because no
provider folds case, and a hash behind every name with a capital would cost each request more than it could ever save.
"""

from __future__ import annotations

import re
from base64 import b32encode
from functools import lru_cache
from hashlib import sha256

__all__ = ["MAX_WIRE_NAME", "PREFIX", "may_be_of", "wire_name"]

PREFIX = "mcp__"
"""How every wire name of an MCP tool begins; no native tool's name may."""

MAX_WIRE_NAME = 63
"""The longest wire name, in characters: the strictest of the providers' limits (64), less one."""

_HASH_CHARS = 12  # base32: 5 bits each, 60 bits in all
_ROOM = MAX_WIRE_NAME - len(PREFIX) - 2 - 2 - _HASH_CHARS  # for both parts of a suffixed name
_SERVER_ROOM = 18  # of it for the server's part, when the tool's part needs the rest
_CACHED = 256  # characters of both parts together, of a name that is kept: a server may send names of megabytes
_PLAIN = re.compile(r"[A-Za-z0-9_-]+")
_ILLEGAL = re.compile(r"[^A-Za-z0-9_-]")
_SUFFIXED = re.compile(rf"{PREFIX}(.*)__[a-z2-7]{{{_HASH_CHARS}}}")


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


def _make(server: str, bare: str) -> str:
    if _is_plain(server, bare):
        return f"{PREFIX}{server}__{bare}"
    # Cut first: each character is replaced by one, so the result is the same, and a huge name is not copied.
    room = _ROOM - min(len(bare), _ROOM)
    left = _ILLEGAL.sub("-", server[: max(_SERVER_ROOM, room)])
    right = _ILLEGAL.sub("-", bare[: _ROOM - len(left)])
    return f"{PREFIX}{left}__{right}__{_suffix(server, bare)}"


_kept = lru_cache(maxsize=1 << 14)(_make)


def wire_name(server: str, bare: str) -> str:
    """The name a server's tool has on the wire: ``mcp__<server>__<tool>``, with ``__<hash>`` where that is not enough.

    Args:
        server: the key of the server in the configuration; any characters, also none, any number of them.
        bare: the server's own name of the tool; the same.

    Returns:
        At most ``MAX_WIRE_NAME`` characters of ``[A-Za-z0-9_-]``; other pairs get other names (case counts).
    """
    return _kept(server, bare) if len(server) + len(bare) <= _CACHED else _make(server, bare)


def may_be_of(name: str, server: str) -> bool:
    """Whether a wire name may be that of a tool of a server, going by how `wire_name` writes the server's name.

    It is not parsed: more than one server may have such a tool. False only when no name of a tool gives this wire name.

    Args:
        name: the wire name.
        server: the name of the server; any characters.
    """
    if len(name) > MAX_WIRE_NAME:
        return False
    start = f"{PREFIX}{server}__"
    if name.startswith(start) and _is_plain(server, name[len(start) :]):
        return True
    suffixed = _SUFFIXED.fullmatch(name)
    if suffixed is None:
        return False
    parts, left = suffixed[1], _ILLEGAL.sub("-", server[: _ROOM + 1])
    if len(left) <= _ROOM and parts.startswith(f"{left}__"):
        return True
    # Cut: then the two parts fill all their room.
    return len(parts) == _ROOM + 2 and any(
        parts.startswith(f"{left[:cut]}__") for cut in range(_SERVER_ROOM, min(len(left), _ROOM + 1))
    )
