"""Requests to a token endpoint (RFC 6749, 4.1.3, 4.4, 6; RFC 7009), and how a client shows who it is (2.3.1)."""

from __future__ import annotations

import base64
from collections.abc import Mapping
from typing import Any
from urllib.parse import quote

from attrs import field, frozen

from ...model.oauth import OAuth
from .assertion import signed
from .record import Client, lasting, sendable, union
from .refused import LoginRefused
from .urls import shown
from .web import LoginUnavailable, Web

__all__ = ["GrantRefused", "Proof", "method_of", "proof_of", "revoke", "tokens"]

KEY_METHOD = "private_key_jwt"

_METHODS = ("client_secret_basic", "client_secret_post")
_LONGEST = 64 * 1024
_VERDICTS = (400, 401)
"""Of a token endpoint (RFC 6749, 5.2). With others, and no error code, somebody else may have answered, such as a gateway."""


class GrantRefused(LoginRefused):
    """The token endpoint does not give a token.

    Args:
        error: its code (RFC 6749, 5.2), such as ``invalid_grant``.
        where: it is.
    """

    def __init__(self, error: str, where: str) -> None:
        self.error = error
        super().__init__(f"{where} gives no token: {error}")

    @property
    def of_client(self) -> bool:
        """Whether it does not know us any more, whatever is asked."""
        return self.error in ("invalid_client", "unauthorized_client")


@frozen
class Proof:
    """What a client shows who it is by.

    Args:
        secret: or None.
        key: that it signs with, in PEM; or None.
        algorithm: that it signs with; None: one that fits the key.
        issuer: whom it shows that to, or None when nobody knows.
    """

    secret: str | None = field(default=None, repr=False)
    key: str | None = field(default=None, repr=False)
    algorithm: str | None = None
    issuer: str | None = None


def proof_of(settings: OAuth, client: Client, issuer: str | None) -> Proof:
    """Of a client of the config, or of one that registered itself.

    Args:
        settings: expanded.
        client: who.
        issuer: of the authorization server.
    """
    if client.method == KEY_METHOD:
        return Proof(key=settings.private_key, algorithm=settings.signing_algorithm, issuer=issuer)
    return Proof(settings.client_secret or client.secret)


@frozen
class _Shown:
    data: Mapping[str, str] = field(repr=False)
    headers: Mapping[str, str] = field(repr=False)


def method_of(secret: str | None, supported: list[str] | None, *, key: bool = False) -> str:
    """How a client of the config shows who it is at the token endpoint.

    Args:
        secret: of the client.
        key: it has a key to sign with.
        supported: what the authorization server says it takes; None: ``client_secret_basic`` (RFC 8414, 2).
    """
    if key:
        return KEY_METHOD
    if secret is None:
        return "none"
    return next((each for each in _METHODS if supported is None or each in supported), "client_secret_post")


async def _show(client: Client, proof: Proof) -> _Shown:
    secret = proof.secret
    if client.method == KEY_METHOD:
        return _Shown({"client_id": client.id, **await signed(client.id, proof.key, proof.algorithm, proof.issuer)}, {})
    if client.method == "client_secret_basic" and secret is not None:
        pair = f"{quote(client.id, safe='')}:{quote(secret, safe='')}"
        return _Shown({"client_id": client.id}, {"authorization": f"Basic {base64.b64encode(pair.encode()).decode()}"})
    if client.method == "client_secret_post" and secret is not None:
        return _Shown({"client_id": client.id, "client_secret": secret}, {})
    return _Shown({"client_id": client.id}, {})


async def tokens(
    web: Web, endpoint: str, client: Client, proof: Proof, asked: Mapping[str, str | None]
) -> dict[str, Any]:
    """Ask for tokens.

    Args:
        web: sends it.
        endpoint: the token endpoint.
        client: who asks.
        proof: that it is.
        asked: ``grant_type`` and what belongs to it; what is None is left out.

    Returns:
        The response: ``access_token`` is a string that can be sent; ``refresh_token`` and ``scope`` are strings or not there,
        ``expires_in`` a number above 0 or not there.

    Raises:
        GrantRefused: it says no.
        LoginRefused: it says something else than a token.
        LoginUnavailable: it says nothing now.
    """
    who = await _show(client, proof)
    data = {name: value for name, value in asked.items() if value is not None}
    answer = await web.form(endpoint, {**data, **who.data}, who.headers)
    where = shown(endpoint)
    if answer.for_now:
        raise LoginUnavailable(f"{where} gives no token now: HTTP {answer.status}")
    said = answer.json()
    if answer.status not in (200, 201):
        error = _error_of(said)
        if error is None and answer.status not in _VERDICTS:
            raise LoginUnavailable(f"{where} gives no token now: HTTP {answer.status}")
        raise GrantRefused(error or f"HTTP {answer.status}", where)
    if said is None:  # a page about maintenance, or of a network that wants a login of its own
        raise LoginUnavailable(f"{where} answers with something else than a token")
    return _checked(said, where)


def _error_of(said: Mapping[str, Any] | None) -> str | None:
    """The error code, as far as it is one: what else it says may hold what we sent."""
    error = None if said is None else said.get("error")
    if isinstance(error, str) and error.isascii() and len(error) <= 60 and error.replace("_", "").isalnum():
        return error
    return None


def _checked(said: dict[str, Any], where: str) -> dict[str, Any]:
    token = said.get("access_token")
    if not sendable(token):
        raise LoginRefused(f"{where} answers with something else than a token")
    if str(said.get("token_type") or "Bearer").lower() != "bearer":
        raise LoginRefused(f"{where} gives a token of a kind that is not known: only Bearer is")
    found: dict[str, Any] = {"access_token": token}
    for name in ("refresh_token", "scope"):
        if isinstance(said.get(name), str) and 0 < len(said[name]) <= _LONGEST:
            found[name] = said[name]
    found["scope"] = union(found.get("scope"))
    found["expires_in"] = lasting(said.get("expires_in"))
    return {name: each for name, each in found.items() if each is not None}


async def revoke(web: Web, endpoint: str, client: Client, proof: Proof, token: str, kind: str) -> bool:
    """Tell the authorization server that a token is not used any more (RFC 7009); whether it took that."""
    try:
        who = await _show(client, proof)
        answer = await web.form(endpoint, {"token": token, "token_type_hint": kind, **who.data}, who.headers)
    except (LoginUnavailable, LoginRefused):
        return False
    return answer.status < 300
