"""What is kept of one login, as a value; and what can be done with it. Pure.

the record has                                       then
a token other than the refused one, not about to     it is used
expire
a refresh token                                      it is refreshed
a client that needs nobody                           a token is fetched
a token other than the refused one                   it is used: its server decides
else                                                 a person has to log in
"""

from __future__ import annotations

import hashlib
import json
import math
from collections.abc import Mapping
from typing import Any, Literal

from attrs import asdict, evolve, field, fields, frozen

from ...model.oauth import OAuth
from .urls import bare, canonical

__all__ = [
    "Client",
    "Record",
    "Way",
    "decide",
    "key_of",
    "lasting",
    "read_record",
    "record_json",
    "sendable",
    "server_of",
    "union",
    "with_tokens",
]

VERSION = 1
_LONGEST = 64 * 1024
_LONGEST_LIFE = 1e9
_LATEST = 1e12
_MARGIN = 10.0
"""Seconds before its end within which a token is renewed, at most a tenth of its life."""

Way = Literal["use", "refresh", "fetch", "none"]


@frozen(kw_only=True)
class Client:
    """How we are known to an authorization server.

    Args:
        id: the client id.
        secret: it was given one when it registered itself; None for one of the config.
        method: how it shows itself at the token endpoint: ``none``, ``client_secret_post``,
            ``client_secret_basic`` or ``private_key_jwt``.
        redirect_uri: that it is registered with, or None.
        secret_ends: seconds since the epoch at which the secret is no longer valid, or None.
        registered: it registered itself.
    """

    id: str
    secret: str | None = field(default=None, repr=False)
    method: str = "none"
    redirect_uri: str | None = None
    secret_ends: float | None = None
    registered: bool = False


@frozen(kw_only=True)
class Record:
    """One login.

    Args:
        server: where, without a query.
        issuer: the authorization server, or None when it has no metadata.
        token_endpoint, revocation_endpoint: of it.
        resource: that the tokens are for, or None.
        client: who we are there.
        access_token, refresh_token: or None.
        issued_at, expires_at: seconds since the epoch, or None when it does not say.
        scope: that was granted, or None.
        wanted: that a request was refused for want of, or None.
    """

    server: str = ""
    issuer: str | None = None
    token_endpoint: str | None = None
    revocation_endpoint: str | None = None
    resource: str | None = None
    client: Client | None = None
    access_token: str | None = field(default=None, repr=False)
    refresh_token: str | None = field(default=None, repr=False)
    issued_at: float = 0.0
    expires_at: float | None = None
    scope: str | None = None
    wanted: str | None = None

    @property
    def secrets(self) -> set[str]:
        """What must not be shown."""
        secret = None if self.client is None else self.client.secret
        return {each for each in (self.access_token, self.refresh_token, secret) if each}


def key_of(url: str, settings: OAuth) -> str:
    """The name that a login is kept under: of the server's whole URL, and of who logs in there. It tells neither.

    Args:
        url: of the MCP server, expanded.
        settings: expanded.
    """
    who = [canonical(url), settings.grant, settings.client_id, settings.client_metadata_url]
    who += [settings.issuer, settings.metadata_url]
    return hashlib.sha256(json.dumps(who).encode()).hexdigest()[:32]


def decide(record: Record | None, refused: str | None, now: float, *, by_itself: bool) -> Way:
    """What to do for a token; by the table at the top.

    Args:
        record: what is kept, or None.
        refused: a token that the server did not take, or None.
        now: seconds since the epoch.
        by_itself: a client needs nobody to log in.
    """
    token = None if record is None or record.access_token == refused else record.access_token
    if record is not None and token is not None and not _ends(record, now):
        return "use"
    if record is not None and record.refresh_token is not None and record.token_endpoint is not None:
        return "refresh"
    if by_itself:
        return "fetch"
    return "none" if token is None else "use"


def _ends(record: Record, now: float) -> bool:
    if record.expires_at is None:
        return False
    return now >= record.expires_at - min(_MARGIN, max(record.expires_at - record.issued_at, 0.0) / 10)


def with_tokens(record: Record, said: Mapping[str, Any], asked: str | None, now: float) -> Record:
    """The record after a token response (RFC 6749, 5.1 and 6).

    Args:
        record: before.
        said: the response: ``access_token``, ``refresh_token``, ``expires_in``, ``scope``.
        asked: the scope that was asked for; granted when the response does not say (5.1).
        now: seconds since the epoch.
    """
    lasts = said.get("expires_in")
    scope = said.get("scope") or asked or record.scope
    granted = set((scope or "").split())
    wanted = None if record.wanted is None or set(record.wanted.split()) <= granted else record.wanted
    return evolve(
        record,
        access_token=said["access_token"],
        refresh_token=said.get("refresh_token") or record.refresh_token,
        issued_at=now,
        expires_at=None if lasts is None else now + float(lasts),
        scope=scope,
        wanted=wanted,
    )


def union(*scopes: str | None) -> str | None:
    """Scopes joined, each once, in order, without what can be none (RFC 6749, 3.3, taken generously); None without any."""
    found = dict.fromkeys(each for scope in scopes if scope for each in scope.split() if _visible(each))
    return " ".join(found) or None


def sendable(token: Any) -> bool:
    """Whether a token can be in a header (RFC 6750, 2.1, taken generously)."""
    return isinstance(token, str) and 0 < len(token) <= _LONGEST and _visible(token)


def lasting(value: Any) -> float | None:
    """The seconds that an ``expires_in`` says, as a number or a text; None when no token could be used for so long."""
    try:
        seconds = math.nan if isinstance(value, bool) else float(value)
    except (TypeError, ValueError, OverflowError):
        return None
    return min(seconds, _LONGEST_LIFE) if seconds > 0 else None


def _visible(text: str) -> bool:
    return all("!" <= each <= "~" for each in text)


def record_json(record: Record) -> dict[str, Any]:
    """As it is written."""
    return {"version": VERSION, **asdict(record)}


def read_record(value: Any) -> Record | None:
    """As it was written; None when it is something else."""
    if not isinstance(value, dict) or value.get("version") != VERSION:
        return None
    names = {each.name for each in fields(Record)}
    texts = {name: each for name, each in value.items() if name in names and name != "client"}
    for name, each in texts.items():
        number = name in ("issued_at", "expires_at")
        if each is None and name not in ("server", "issued_at"):
            continue
        if type(each) is bool or not isinstance(each, (int, float) if number else str):
            return None
        if isinstance(each, (int, float)) and not abs(each) <= _LATEST:  # also what is no number at all
            return None
    token = value.get("access_token")
    if token is not None and not sendable(token):
        return None
    client = value.get("client")
    try:
        return Record(**texts, client=None if client is None else _client(client))
    except TypeError:
        return None


def _client(value: Any) -> Client:
    found = Client(**value)
    texts = (found.id, found.method, *(each for each in (found.secret, found.redirect_uri) if each is not None))
    ends = found.secret_ends
    if not all(type(each) is str for each in texts) or type(found.registered) is not bool:
        raise TypeError("of another kind")
    if ends is not None and (type(ends) not in (int, float) or not abs(ends) <= _LATEST):
        raise TypeError("of another kind")
    return found


def server_of(url: str) -> str:
    """As `Record.server`."""
    return bare(url)
