"""What an HTTP status means to us: a pure reading of status and headers.

status   where                                    means
401      anywhere                                 it wants a login: `needs_auth`; not tried again without one
403      with a challenge, until it has listed     the same: the login we have is not enough (authorization, Error Handling)
         otherwise                                a refusal like any other: of one call, or of this attempt
404      to a request that names a session        the session has ended: open a new one (2025-11-25 transports, Session
                                                  Management, 3 and 4); not when its body says "method not found"
400      the same, with words about the session   the same: servers that forgot their sessions answer so, against the letter
429 503  anywhere                                 a refusal that says when to try again (RFC 9110, 10.2.3)
other    anywhere                                 a refusal of this request
"""

from __future__ import annotations

import email.utils
import math
import re
from collections.abc import Mapping
from http import HTTPStatus

from attrs import frozen

__all__ = ["FOR_NOW", "LONGEST_WAIT", "Meaning", "ends_session", "read_status", "retry_after"]

LONGEST_WAIT = 900.0
"""Seconds that a server may have us wait at most: it may be wrong, and a person may be waiting."""

_METHOD_NOT_FOUND = -32601
_OF_SESSIONS = re.compile(r"\bsession", re.IGNORECASE).search
_LACKS = re.compile(r'\bscope="([\x21\x23-\x5b\x5d-\x7e ]{1,300})"').search
FOR_NOW = frozenset({429, 503})
"""Statuses that refuse a request for now, so that it was not done."""


@frozen
class Meaning:
    """A refusal by status.

    Args:
        status: three digits.
        retry_after: seconds it asks us to wait, 0 to `LONGEST_WAIT`; None when it does not say.
        challenge: it says how to log in.
        lacks: the scope that it says the login lacks, or None.
    """

    status: int
    retry_after: float | None = None
    challenge: bool = False
    lacks: str | None = None

    def __str__(self) -> str:
        try:
            words = f"HTTP {self.status} {HTTPStatus(self.status).phrase}"
        except ValueError:
            words = f"HTTP {self.status}"
        if self.status == 401:
            return f"{words}: it wants a login"
        if self.status == 403 and self.challenge:
            return f"{words}: the login is not enough{f' (it lacks {self.lacks}): log in again' if self.lacks else ''}"
        if self.retry_after is not None:
            return f"{words}; it asks to wait {self.retry_after:.0f} s"
        return words

    def wants_login(self, *, handshake: bool) -> bool:
        """Whether there is no point in trying again without another login; by the table at the top."""
        return self.status == 401 or (self.status == 403 and self.challenge and handshake)


def read_status(status: int, headers: Mapping[str, str], now: float) -> Meaning:
    """Read a status that is no success.

    Args:
        status: three digits.
        headers: of the response, names in lower case.
        now: seconds since the epoch.
    """
    wait = retry_after(headers.get("retry-after"), now) if status in FOR_NOW else None
    said = headers.get("www-authenticate")
    lacks = _LACKS(said) if said is not None and status == 403 and "insufficient_scope" in said else None
    return Meaning(status, wait, said is not None, None if lacks is None else lacks[1])


def retry_after(value: str | None, now: float) -> float | None:
    """The seconds of a Retry-After header (RFC 9110, 10.2.3: seconds or a date), 0 to `LONGEST_WAIT`; None without any.

    Args:
        value: of the header, or None.
        now: seconds since the epoch.
    """
    if value is None:
        return None
    text = value.strip()
    if re.fullmatch(r"\d+(\.\d+)?", text):
        seconds = float(text)
    else:
        try:
            seconds = email.utils.parsedate_to_datetime(text).timestamp() - now
        except (ValueError, OverflowError):
            return None
    return min(max(seconds, 0.0), LONGEST_WAIT) if math.isfinite(seconds) else LONGEST_WAIT


def ends_session(status: int, error: Mapping[str, object] | None, body: str) -> bool:
    """Whether the answer to a request that named a session says that there is none; by the table at the top.

    Args:
        status: of the answer.
        error: the JSON-RPC error in its body, or None.
        body: its text.
    """
    if status == 404:
        return error is None or error.get("code") != _METHOD_NOT_FOUND
    return status == 400 and _OF_SESSIONS(body) is not None
