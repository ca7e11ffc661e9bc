"""What a refusal says about logging in: the ``WWW-Authenticate`` header (RFC 9110, 11.6.1; RFC 6750; RFC 9728). Pure."""

from __future__ import annotations

import re
from collections.abc import Iterable

from attrs import frozen

from .record import union

__all__ = ["Challenge", "read_challenge"]

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_PARAMETER = re.compile(rf"\s*({_TOKEN})\s*=\s*(?:\"((?:[^\"\\]|\\.)*)\"|({_TOKEN}|[^\s,\"]+))\s*(?:,|$)")
_SCHEME = re.compile(rf"\s*({_TOKEN})(?:\s+|\s*$|\s*,)")
_LONGEST = 16 * 1024


@frozen
class Challenge:
    """The first challenge of the scheme Bearer.

    Args:
        resource_metadata: URL of the metadata of the protected resource, or None.
        scope: what the request takes, or None.
        error: of RFC 6750, such as ``invalid_token`` or ``insufficient_scope``; or None.
        none: there was none, as the server took the request.
    """

    resource_metadata: str | None = None
    scope: str | None = None
    error: str | None = None
    none: bool = False

    @property
    def wants_more(self) -> bool:
        """Whether the token is good, and its scope is not enough."""
        return self.error == "insufficient_scope"


def read_challenge(values: Iterable[str]) -> Challenge:
    """Read the headers of one response; an empty challenge when none is of Bearer.

    Args:
        values: of each ``WWW-Authenticate``.
    """
    for value in values:
        text = value[:_LONGEST]
        at, scheme = 0, ""
        found: dict[str, str] = {}
        while at < len(text):
            parameter = _PARAMETER.match(text, at)
            if parameter is not None:
                name, quoted, plain = parameter.groups()
                if scheme == "bearer":
                    found.setdefault(name.lower(), plain if quoted is None else re.sub(r"\\(.)", r"\1", quoted))
                at = parameter.end()
                continue
            begins = _SCHEME.match(text, at)
            if begins is None or scheme == "bearer":
                break
            scheme, at = begins[1].lower(), begins.end()
        if scheme == "bearer":
            return Challenge(found.get("resource_metadata"), union(found.get("scope")), found.get("error"))
    return Challenge()
