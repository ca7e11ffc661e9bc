"""From an MCP server to its authorization server (RFC 9728, then RFC 8414 or OpenID Connect Discovery).

    where                                                     what is found there
    ``resource_metadata`` of the challenge, else the two      the resource that tokens are for, the authorization servers, the
    well-known URLs of the server                             scopes; without it (revisions before 2025-06-18) the server's own
                                                              origin is its authorization server
    the well-known URLs of the issuer                         endpoints; the issuer in it must be that very one (RFC 8414, 3.3)
    nothing, and no resource metadata either                  ``/authorize``, ``/token`` and ``/register`` of that origin

What a server says is judged before it is used: a resource that is not the server's, an URL that is neither https nor (for a
server on this machine) on this machine, another issuer, no PKCE: each ends the login, with the reason.
"""

from __future__ import annotations

from urllib.parse import urljoin

from attrs import frozen
from mcp.client.auth.utils import (
    build_oauth_authorization_server_metadata_discovery_urls,
    build_protected_resource_metadata_discovery_urls,
    get_client_metadata_scopes,
    issuers_match,
)
from mcp.shared.auth import OAuthMetadata, ProtectedResourceMetadata
from mcp.shared.auth_utils import check_resource_allowed
from pydantic import ValidationError

from ...model.oauth import OAuth
from .challenge import Challenge
from .record import union
from .refused import LoginRefused
from .urls import bare, base_of, origin, refusal, resource_of, shown
from .web import LoginUnavailable, Web

__all__ = ["Found", "discover"]


@frozen
class Found:
    """Where to log in.

    Args:
        issuer: the authorization server, or None when it has no metadata.
        authorize, token, register, revoke: its endpoints; the latter two or None.
        resource: that tokens are for; None where nobody says that resources are known there.
        scope: to ask for, or None.
        metadata: of the authorization server, or None.
    """

    issuer: str | None
    authorize: str
    token: str
    register: str | None
    revoke: str | None
    resource: str | None
    scope: str | None
    metadata: OAuthMetadata | None


async def discover(web: Web, server: str, settings: OAuth, challenge: Challenge) -> Found:
    """Find out where and for what to log in.

    Args:
        web: sends requests.
        server: URL of the MCP server.
        settings: of the login, expanded.
        challenge: of its refusal.

    Raises:
        LoginRefused: what the server says cannot be used.
        LoginUnavailable: somebody does not answer now.
    """
    resource = await _resource(web, server, challenge)
    metadata: OAuthMetadata | None
    if settings.metadata_url is not None:
        metadata = await _configured(web, server, settings.metadata_url)
    else:
        issuer = _issuer_of(server, settings, resource)
        metadata = await _metadata(web, server, issuer, resource is None)
    if challenge.none and resource is None and metadata is None:
        raise LoginRefused("it wants no login: it answers without one, and names no authorization server")
    if settings.issuer is not None and (metadata is None or not issuers_match(str(metadata.issuer), settings.issuer)):
        is_ = "has no metadata" if metadata is None else f"is {bare(str(metadata.issuer))}"
        raise LoginRefused(f"its authorization server {is_}, and oauth.issuer is {bare(settings.issuer)}")
    base = base_of(server)
    found = Found(
        issuer=None if metadata is None else str(metadata.issuer),
        authorize=str(metadata.authorization_endpoint) if metadata else urljoin(base, "/authorize"),
        token=str(metadata.token_endpoint) if metadata else urljoin(base, "/token"),
        register=(
            urljoin(base, "/register")
            if metadata is None
            else None
            if metadata.registration_endpoint is None
            else str(metadata.registration_endpoint)
        ),
        revoke=None if metadata is None or metadata.revocation_endpoint is None else str(metadata.revocation_endpoint),
        resource=_indicator(server, resource),
        scope=_scope(settings, challenge, resource, metadata),
        metadata=metadata,
    )
    _check(found, server, settings)
    return found


async def _resource(web: Web, server: str, challenge: Challenge) -> ProtectedResourceMetadata | None:
    failed: int | None = None
    for url in build_protected_resource_metadata_discovery_urls(challenge.resource_metadata, bare(server)):
        if (why := refusal(url, server)) is not None:
            if url == challenge.resource_metadata:
                raise LoginRefused(f"it names metadata that is not asked for: {why}")
            return None  # its own well-known URLs: a server over plain http has no login
        answer = await web.get(url)
        failed = answer.status if answer.for_now else failed
        if answer.status != 200:
            continue
        try:
            found = ProtectedResourceMetadata.model_validate_json(answer.body)
        except ValidationError:
            continue
        said = str(found.resource)
        if not check_resource_allowed(requested_resource=resource_of(server), configured_resource=said):
            raise LoginRefused(f"its metadata is of another resource: {bare(said)}")
        return found
    if failed is not None:
        raise LoginUnavailable(f"{shown(server)} does not tell where to log in: HTTP {failed}")
    return None


def _issuer_of(server: str, settings: OAuth, resource: ProtectedResourceMetadata | None) -> str | None:
    """The authorization server to use; None: the server's own origin, as in revisions before 2025-06-18."""
    if resource is None:
        return None
    named = [str(each) for each in resource.authorization_servers]
    if settings.issuer is not None:
        wanted = settings.issuer
        return next((each for each in named if issuers_match(each, wanted)), wanted)
    return named[0]


async def _metadata(web: Web, server: str, issuer: str | None, legacy: bool) -> OAuthMetadata | None:
    expected = issuer or base_of(server)
    for url in build_oauth_authorization_server_metadata_discovery_urls(issuer, server):
        if (why := refusal(url, server)) is not None:
            raise LoginRefused(f"its authorization server is not asked: {why}")
        answer = await web.get(url)
        if answer.for_now:
            raise LoginUnavailable(f"{shown(url)} does not tell how to log in: HTTP {answer.status}")
        found = _read(answer.body) if answer.status == 200 else None
        if found is None:
            continue
        said = str(found.issuer)
        same = issuers_match(said, expected) if issuer is not None else origin(said) == origin(server)
        if not same:
            raise LoginRefused(f"the metadata of {bare(expected)} is of another authorization server: {bare(said)}")
        return found
    if legacy:
        return None
    raise LoginRefused(f"its authorization server {bare(expected)} publishes no metadata")


async def _configured(web: Web, server: str, url: str) -> OAuthMetadata:
    if (why := refusal(url, server)) is not None:
        raise LoginRefused(f"oauth.authServerMetadataUrl is not asked: {why}")
    answer = await web.get(url)
    if answer.for_now:
        raise LoginUnavailable(f"{shown(url)} does not tell how to log in: HTTP {answer.status}")
    found = _read(answer.body) if answer.status == 200 else None
    if found is None:
        raise LoginRefused("there is no metadata of an authorization server at oauth.authServerMetadataUrl")
    if origin(str(found.issuer)) != origin(url):
        raise LoginRefused(f"what is at oauth.authServerMetadataUrl is of another origin: {bare(str(found.issuer))}")
    return found


def _read(body: bytes) -> OAuthMetadata | None:
    try:
        return OAuthMetadata.model_validate_json(body)
    except ValidationError:
        return None


def _scope(
    settings: OAuth,
    challenge: Challenge,
    resource: ProtectedResourceMetadata | None,
    metadata: OAuthMetadata | None,
) -> str | None:
    """What to ask for (authorization, Scope Selection Strategy); all that an authorization server knows is never asked for."""
    if settings.scopes:
        return " ".join(settings.scopes)
    if challenge.scope is None and (resource is None or resource.scopes_supported is None):
        return None
    grants = ["client_credentials"] if settings.by_itself else ["authorization_code", "refresh_token"]
    return union(get_client_metadata_scopes(challenge.scope, resource, metadata, grants))


def _indicator(server: str, resource: ProtectedResourceMetadata | None) -> str:
    """The resource that tokens are asked for (RFC 8707): always said, so that none is good elsewhere."""
    return resource_of(server) if resource is None else str(resource.resource)


def _check(found: Found, server: str, settings: OAuth) -> None:
    """Refuse endpoints that may not be gone to, and authorization servers without PKCE (authorization, Code Protection)."""
    for what, url in (
        ("authorization", found.authorize),
        ("token", found.token),
        ("registration", found.register),
        ("revocation", found.revoke),
    ):
        if url is not None and (why := refusal(url, server)) is not None:
            raise LoginRefused(f"the {what} endpoint is not gone to: {why}")
    if found.metadata is not None and not settings.by_itself:
        methods = found.metadata.code_challenge_methods_supported or []
        if "S256" not in methods:
            raise LoginRefused(f"its authorization server {bare(str(found.issuer))} does not do PKCE with S256")
