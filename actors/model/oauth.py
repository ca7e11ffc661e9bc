"""How a remote server is logged in to, as its entry says: what an ``oauth`` in a config means. No token is ever part of it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal

from attrs import field, frozen

__all__ = ["Grant", "OAuth"]

Grant = Literal["authorization_code", "client_credentials"]


def _strings(value: Iterable[str]) -> tuple[str, ...]:
    return tuple(value.split()) if isinstance(value, str) else tuple(value)


def _fits(settings: OAuth) -> None:
    texts = (settings.client_id, settings.client_secret, settings.private_key, settings.signing_algorithm)
    places = (settings.redirect_uri, settings.issuer, settings.metadata_url, settings.client_metadata_url)
    for each in (*texts, *places, *settings.scopes):
        if each is not None and type(each) is not str:
            raise TypeError(f"an OAuth setting is a string, not a {type(each).__name__}")
    if settings.grant not in ("authorization_code", "client_credentials"):
        raise TypeError(f"a grant is authorization_code or client_credentials, not {settings.grant!r}")
    proof = settings.client_secret or settings.private_key
    if settings.client_secret and settings.private_key:
        raise TypeError("a client has a client_secret or a private_key, not both")
    if settings.private_key and not settings.client_id:
        raise TypeError("a private_key needs its client_id")
    if settings.grant == "client_credentials" and not (settings.client_id and proof):
        raise TypeError("the grant client_credentials needs a client_id, and a client_secret or private_key")


@frozen(kw_only=True)
class OAuth:
    """What a login takes that cannot be found out by asking the server. Nothing of it has to be given.

    Args:
        enabled: False: there is no OAuth at this server, whatever it answers.
        client_id: of a client that is registered there already; ``${VAR}`` is unexpanded in it and in all below.
        client_secret: its secret.
        private_key: instead of a secret: the key that it signs with (RFC 7523), in PEM, or the path of a file that holds it.
        signing_algorithm: that it signs with, such as ``ES256``; None: one that fits the key.
        client_metadata_url: an https URL of a client id metadata document, for authorisation servers that read those.
        scopes: what is asked for; empty: what the server says it needs.
        callback_port: the port of the redirect ``http://localhost:PORT/callback`` of a registered client.
        redirect_uri: that redirect in full, on loopback; wins over ``callback_port``.
        issuer: the authorisation server that the client is registered with; no other one is used.
        metadata_url: where its metadata is, when the server does not say.
        grant: ``authorization_code`` (a person logs in) or ``client_credentials`` (nobody does).

    Raises:
        TypeError: something is not a string; there is a key and a secret, or a key of no client; or client credentials lack a
            part.
    """

    enabled: bool = True
    client_id: str | None = None
    client_secret: str | None = field(default=None, repr=False)
    private_key: str | None = field(default=None, repr=False)
    signing_algorithm: str | None = None
    client_metadata_url: str | None = None
    scopes: tuple[str, ...] = field(default=(), converter=_strings)
    callback_port: int | None = None
    redirect_uri: str | None = None
    issuer: str | None = None
    metadata_url: str | None = None
    grant: Grant = "authorization_code"

    def __attrs_post_init__(self) -> None:
        _fits(self)

    @property
    def by_itself(self) -> bool:
        """Whether a login needs nobody."""
        return self.grant == "client_credentials"
