"""Who we are at an authorization server: in the order of the specification (Client Registration).

1. the client of the config (``oauth.clientId``)
2. its client id metadata document, where such ones are read
3. what was registered there before, with the same redirect
4. dynamic registration (RFC 7591), where there is any
"""

from __future__ import annotations

import time

from mcp.client.auth.exceptions import OAuthRegistrationError
from mcp.client.auth.oauth2 import check_registration_usable
from mcp.client.auth.utils import is_valid_client_metadata_url
from mcp.shared.auth import OAuthClientInformationFull, OAuthClientMetadata
from pydantic import ValidationError

from ...model.oauth import OAuth
from .discovery import Found
from .grant import method_of
from .record import Client, Record
from .refused import LoginRefused
from .urls import shown
from .web import LoginUnavailable, Web

__all__ = ["configured", "known", "register"]

NAME = "Playbill"


def configured(settings: OAuth, found: Found) -> Client | None:
    """The client that the config names, or its document; None when it names neither that can be used there."""
    supported = None if found.metadata is None else found.metadata.token_endpoint_auth_methods_supported
    if settings.client_id is not None:
        return Client(id=settings.client_id, method=_method(settings, supported))
    document = settings.client_metadata_url
    if document is None or found.metadata is None or not found.metadata.client_id_metadata_document_supported:
        return None
    if not is_valid_client_metadata_url(document):
        raise LoginRefused("oauth.clientMetadataUrl is no https URL with a path")
    return Client(id=document)


def _method(settings: OAuth, supported: list[str] | None) -> str:
    return method_of(settings.client_secret, supported, key=settings.private_key is not None)


def known(record: Record | None, found: Found, redirect_uri: str) -> Client | None:
    """What was registered before, if it is good for this login: same issuer and redirect, secret not ended."""
    client = None if record is None else record.client
    if record is None or client is None or not client.registered:
        return None
    if record.issuer != found.issuer or client.redirect_uri != redirect_uri:
        return None
    return None if client.secret_ends is not None and client.secret_ends <= time.time() else client


async def register(web: Web, found: Found, redirect_uri: str, scope: str | None) -> Client:
    """Register a client.

    Args:
        web: sends it.
        found: where.
        redirect_uri: the client's only one.
        scope: that it will ask for.

    Raises:
        LoginRefused: there is no registration, or it says no; a client has to be registered by hand then.
        LoginUnavailable: it says nothing now.
    """
    by_hand = "register a client there, and write its id into oauth.clientId"
    if found.register is None:
        raise LoginRefused(f"its authorization server registers no clients by itself: {by_hand}")
    supported = None if found.metadata is None else found.metadata.token_endpoint_auth_methods_supported
    method = "none" if supported is None or "none" in supported else method_of("there will be one", supported)
    asked = OAuthClientMetadata.model_validate(
        {
            "redirect_uris": [redirect_uri],
            "token_endpoint_auth_method": method,
            "client_name": NAME,
            "scope": scope,
            # OpenID Connect Registration, 2: a page of somebody's is no redirect of a native application.
            "application_type": "web" if redirect_uri.startswith("https:") else "native",
        }
    )
    where = shown(found.register)
    answer = await web.send(
        "POST",
        found.register,
        {"accept": "application/json"},
        json=asked.model_dump(by_alias=True, mode="json", exclude_none=True),
    )
    if answer.for_now:
        raise LoginUnavailable(f"{where} registers no client now: HTTP {answer.status}")
    if answer.status not in (200, 201):
        raise LoginRefused(f"{where} registers no client (HTTP {answer.status}): {by_hand}")
    try:
        said = OAuthClientInformationFull.model_validate(answer.json())
        check_registration_usable(said)
        f"{said.client_id}{said.client_secret}".encode()  # JSON can hold what no request can
    except (ValidationError, OAuthRegistrationError, UnicodeEncodeError):
        raise LoginRefused(f"{where} registers a client that cannot be used: {by_hand}") from None
    default = "none" if said.client_secret is None else method_of(said.client_secret, supported)
    return Client(
        id=said.client_id,
        secret=said.client_secret,
        method=said.token_endpoint_auth_method or default,
        redirect_uri=redirect_uri,
        secret_ends=float(min(said.client_secret_expires_at, 10**12)) if said.client_secret_expires_at else None,
        registered=True,
    )
