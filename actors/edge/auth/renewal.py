"""How a login goes on without a person: refreshed (RFC 6749, 6), or fetched with a client's own credentials (4.4)."""

from __future__ import annotations

from attrs import evolve

from ...model.oauth import OAuth
from .challenge import Challenge
from .client import configured
from .discovery import discover
from .grant import GrantRefused, proof_of, tokens
from .interactive import record_of
from .record import Record, union, with_tokens
from .refused import LoginRefused
from .urls import bare, origin
from .web import Web

__all__ = ["fetch", "refresh"]


async def refresh(web: Web, record: Record, settings: OAuth, refused: str | None, now: float) -> Record:
    """The login after a refresh; without what is no longer good, when the authorization server says so.

    Args:
        web: sends it.
        record: with a refresh token.
        settings: expanded.
        refused: the token that the server did not take, or None.
        now: seconds since the epoch.

    Raises:
        LoginRefused: it says something else.
        LoginUnavailable: it says nothing now.
    """
    client, endpoint = record.client, record.token_endpoint
    if client is None or endpoint is None:
        return evolve(record, refresh_token=None)
    asked = {"grant_type": "refresh_token", "refresh_token": record.refresh_token, "resource": record.resource}
    try:
        said = await tokens(web, endpoint, client, proof_of(settings, client, record.issuer), asked)
    except GrantRefused as error:
        if error.error != "invalid_grant" and not (error.of_client and client.registered):
            raise  # what a config says of a client is mended there, and the login is good again
        over = record.access_token == refused or (record.expires_at is not None and record.expires_at <= now)
        return evolve(
            record,
            refresh_token=None,
            access_token=None if over else record.access_token,
            client=None if error.of_client else client,
        )
    return with_tokens(record, said, record.scope, now)


async def fetch(
    web: Web, server: str, settings: OAuth, record: Record | None, challenge: Challenge, now: float
) -> Record:
    """A login with the client's own credentials.

    Nobody sees where they go. So they go to the authorization server that the config names, else to the server's own origin.

    Args:
        web: sends requests.
        server: URL of the MCP server.
        settings: expanded.
        record: what is kept, or None.
        challenge: of the refusal.
        now: seconds since the epoch.

    Raises:
        LoginRefused, LoginUnavailable: as `refresh`.
    """
    found = await discover(web, server, settings, challenge)
    if settings.issuer is None and settings.metadata_url is None and origin(found.token) != origin(server):
        named = bare(found.issuer or found.token)
        raise LoginRefused(
            f"the client secret is sent to another origin only if the config names it: write oauth.issuer, if it is {named}"
        )
    client = configured(settings, found)
    assert client is not None  # or its settings would not be
    scope = union(None if record is None else record.scope, found.scope) if challenge.wants_more else found.scope
    asked = {"grant_type": "client_credentials", "scope": scope, "resource": found.resource}
    said = await tokens(web, found.token, client, proof_of(settings, client, found.issuer), asked)
    return with_tokens(record_of(server, found, client), said, scope, now)
