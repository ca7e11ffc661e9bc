"""A real authorisation server and a real MCP server behind it, the SDK's own, on two ports of loopback: a program of its own.

    python authority.py AUTHORITY_PORT RESOURCE_PORT

The person at the browser always says yes at once. ``POST /control`` of the authority sets the options below, or revokes
what was given out; ``GET /stats`` tells what was seen. A refresh token is good for one use: used again, all is
revoked.
"""

from __future__ import annotations

import asyncio
import base64
import json
import logging
import secrets
import sys
import time
from collections import Counter
from typing import Any

import jwt
import uvicorn
from mcp.server.auth.provider import (
    AccessToken,
    AuthorizationCode,
    AuthorizationParams,
    RefreshToken,
    TokenError,
    construct_redirect_uri,
)
from mcp.server.auth.routes import create_auth_routes
from mcp.server.auth.settings import AuthSettings, ClientRegistrationOptions, RevocationOptions
from mcp.server.mcpserver import MCPServer
from mcp.shared.auth import OAuthClientInformationFull, OAuthToken
from pydantic import AnyHttpUrl
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

AUTHORITY, RESOURCE = (f"http://127.0.0.1:{port}" for port in sys.argv[1:3])
SERVER = f"{RESOURCE}/mcp"
STATIC, STATIC_SECRET = "static-client", "static-secret-4711"
SIGNER = "signing-client"
DOCUMENT = "https://client.example/playbill.json"

OPTIONS: dict[str, Any] = {
    "lifetime": 3600,  # of access tokens, in seconds
    "refreshes": True,  # whether refresh tokens are given
    "metadata": {},  # what the authority's metadata says otherwise; null: does not say
    "resource": {},  # the same of the resource's
    "iss": None,  # what its redirects say of it
    "state": None,  # what they say instead of the state
    "deny": False,  # the person says no
    "token_status": None,  # what the token endpoint answers instead
    "token_delay": 0.0,  # before it answers, in seconds
    "openid": False,  # its metadata is where OpenID Connect has it, and nowhere else
    "challenge": True,  # whether the MCP server's refusal says anything
    "repeat": False,  # the MCP server refuses each list, and repeats the token
    "public_key": None,  # what the signing client's assertions are checked with, in PEM
    "scopes": ["use"],  # granted instead of those asked for; null: those
}


class Authority:
    """As `OAuthAuthorizationServerProvider`."""

    def __init__(self) -> None:
        self.clients: dict[str, OAuthClientInformationFull] = {}
        self.reset()

    def reset(self) -> None:
        self.options = dict(OPTIONS)
        self.seen: Counter[str] = Counter()
        self.resources: set[str | None] = set()
        self.asked_scopes: list[str] = []
        self.codes: dict[str, AuthorizationCode] = {}
        self.access: dict[str, AccessToken] = {}
        self.refresh: dict[str, RefreshToken] = {}
        self.used: set[str] = set()
        self.running = self.most = 0
        self.bearers: list[str] = []
        self.sent: list[tuple[str, str]] = []
        self.clients = {
            STATIC: OAuthClientInformationFull(
                client_id=STATIC,
                client_secret=STATIC_SECRET,
                token_endpoint_auth_method="client_secret_basic",
                redirect_uris=["http://localhost:38199/callback"],
                scope="use admin",
            ),
            # To the SDK's server a public one; what it signs is checked before.
            SIGNER: OAuthClientInformationFull(
                client_id=SIGNER,
                token_endpoint_auth_method="none",
                redirect_uris=["http://localhost:38199/callback"],
                scope="use admin",
            ),
        }
        self.asked_tokens: list[list[Any]] = []
        self.verifiers: list[str] = []
        self.assertions: list[dict[str, Any]] = []

    async def get_client(self, client_id: str) -> OAuthClientInformationFull | None:
        if client_id == DOCUMENT:
            self.seen["document"] += 1
            return OAuthClientInformationFull(
                client_id=DOCUMENT, token_endpoint_auth_method="none", redirect_uris=[self.redirect], scope="use admin"
            )
        return self.clients.get(client_id)

    redirect: Any = "http://127.0.0.1/callback"

    async def register_client(self, client_info: OAuthClientInformationFull) -> None:
        self.seen["register"] += 1
        client_info.scope = "use admin"
        self.clients[client_info.client_id] = client_info

    async def authorize(self, client: OAuthClientInformationFull, params: AuthorizationParams) -> str:
        self.seen["authorize"] += 1
        self.resources.add(params.resource)
        self.asked_scopes.append(" ".join(params.scopes or []))
        options = self.options
        state = params.state if options["state"] is None else options["state"]
        if options["deny"]:
            return construct_redirect_uri(str(params.redirect_uri), error="access_denied", state=state)
        code = secrets.token_urlsafe(24)
        self.codes[code] = AuthorizationCode(
            code=code,
            scopes=params.scopes if options["scopes"] is None else options["scopes"],
            expires_at=time.time() + 60,
            client_id=client.client_id or "",
            code_challenge=params.code_challenge,
            redirect_uri=params.redirect_uri,
            redirect_uri_provided_explicitly=params.redirect_uri_provided_explicitly,
            resource=params.resource,
        )
        return construct_redirect_uri(str(params.redirect_uri), code=code, state=state, iss=options["iss"])

    async def load_authorization_code(self, client: Any, authorization_code: str) -> AuthorizationCode | None:
        return self.codes.get(authorization_code)

    async def exchange_authorization_code(self, client: Any, authorization_code: AuthorizationCode) -> OAuthToken:
        self.seen["code"] += 1
        del self.codes[authorization_code.code]
        return self.give(authorization_code.client_id, authorization_code.scopes, authorization_code.resource)

    async def load_refresh_token(self, client: Any, refresh_token: str) -> RefreshToken | None:
        if refresh_token in self.used:
            self.seen["reused"] += 1
            self.revoke_all()
        return self.refresh.get(refresh_token)

    async def exchange_refresh_token(self, client: Any, refresh_token: RefreshToken, scopes: list[str]) -> OAuthToken:
        if self.refresh.pop(refresh_token.token, None) is None:
            raise TokenError("invalid_grant")
        self.seen["refresh"] += 1
        self.used.add(refresh_token.token)
        return self.give(refresh_token.client_id, scopes, refresh_token.resource)

    async def load_access_token(self, token: str) -> AccessToken | None:
        return self.access.get(token)

    async def revoke_token(self, token: Any) -> None:
        self.seen["revoke"] += 1
        self.access.pop(token.token, None)
        self.refresh.pop(token.token, None)

    def revoke_all(self) -> None:
        self.access.clear()
        self.refresh.clear()

    def give(self, client: str, scopes: list[str], resource: str | None, refreshes: bool = True) -> OAuthToken:
        access, refresh = f"access-{secrets.token_hex(16)}", f"refresh-{secrets.token_hex(16)}"
        lasts = self.options["lifetime"]
        self.access[access] = AccessToken(
            token=access, client_id=client, scopes=scopes, expires_at=int(time.time() + lasts) + 1, resource=resource
        )
        refreshes = refreshes and self.options["refreshes"]
        if refreshes:
            self.refresh[refresh] = RefreshToken(token=refresh, client_id=client, scopes=scopes, resource=resource)
        return OAuthToken(
            access_token=access,
            expires_in=lasts,
            scope=" ".join(scopes),
            refresh_token=refresh if refreshes else None,
        )

    async def verify_token(self, token: str) -> AccessToken | None:
        """As `TokenVerifier`."""
        found = self.access.get(token)
        if found is None:
            self.seen["refused"] += 1
        return found


authority = Authority()


def changed(said: dict[str, Any], how: dict[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in {**said, **how}.items() if value is not None}


class Front:
    """Before the authority's own routes: its metadata as the options have it, client credentials, and faults."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        path = scope["path"]
        if path == "/token":
            authority.seen["token"] += 1
            await asyncio.sleep(authority.options["token_delay"])
            status = authority.options["token_status"]
            if status is not None:
                await JSONResponse({"error": "server_error"}, status)(scope, receive, send)
                return
            body = await _body(receive)
            form = await Request(scope, _again(body)).form()
            authority.asked_tokens.append([form.get("grant_type"), form.get("resource")])
            authority.verifiers.append(str(form.get("code_verifier", "")))
            if form.get("client_id") == SIGNER and not _signed(form):
                await JSONResponse({"error": "invalid_client"}, 401)(scope, receive, send)
                return
            if form.get("grant_type") == "client_credentials":
                await _credentials(scope, form)(scope, receive, send)
                return
            receive = _again(body)
        elif path == "/.well-known/oauth-authorization-server" and authority.options["openid"]:
            await Response(status_code=404)(scope, receive, send)
            return
        elif path in ("/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"):
            authority.seen["metadata"] += 1
            said = {
                "issuer": AUTHORITY,
                "authorization_endpoint": f"{AUTHORITY}/authorize",
                "token_endpoint": f"{AUTHORITY}/token",
                "registration_endpoint": f"{AUTHORITY}/register",
                "revocation_endpoint": f"{AUTHORITY}/revoke",
                "code_challenge_methods_supported": ["S256"],
                "token_endpoint_auth_methods_supported": ["client_secret_basic", "client_secret_post", "none"],
                "scopes_supported": ["use", "admin", "everything"],
            }
            await JSONResponse(changed(said, authority.options["metadata"]))(scope, receive, send)
            return
        elif path == "/authorize":
            query = Request(scope).query_params
            authority.redirect = query.get("redirect_uri", authority.redirect)
        await self.app(scope, receive, send)


def _signed(form: Any) -> bool:
    """Whether the client shows who it is by what it signed for us (RFC 7523, 3), for the first time."""
    if form.get("client_assertion_type") != "urn:ietf:params:oauth:client-assertion-type:jwt-bearer":
        return False
    try:
        said = jwt.decode(
            form["client_assertion"],
            authority.options["public_key"],
            algorithms=["RS256", "RS512", "ES256", "ES384", "EdDSA"],
            audience=AUTHORITY,
            issuer=SIGNER,
            subject=SIGNER,
            options={"require": ["exp", "iat", "jti", "aud", "iss", "sub"]},
        )
    except jwt.PyJWTError:
        return False
    fresh = said["jti"] not in {each["jti"] for each in authority.assertions}
    authority.assertions.append(said | {"grant": form["grant_type"], "raw": form["client_assertion"]})
    return fresh and said["exp"] - time.time() < 600


def _credentials(scope: Any, form: Any) -> Response:
    authority.seen["credentials"] += 1
    authority.resources.add(form.get("resource"))
    shown = Request(scope).headers.get("authorization", "").removeprefix("Basic ")
    client = form.get("client_id")
    if client != SIGNER and base64.b64decode(shown).decode() != f"{STATIC}:{STATIC_SECRET}":
        return JSONResponse({"error": "invalid_client"}, 401)
    scopes = (form.get("scope") or "use").split()
    return JSONResponse(authority.give(client, scopes, form.get("resource"), refreshes=False).model_dump(mode="json"))


async def _body(receive: Any) -> bytes:
    body, more = b"", True
    while more:
        message = await receive()
        body += message.get("body", b"")
        more = message.get("more_body", False)
    return body


def _again(body: bytes) -> Any:
    async def receive() -> dict[str, Any]:
        return {"type": "http.request", "body": body, "more_body": False}

    return receive


class Gate:
    """Before the MCP server: the metadata as the options have it, and a tool that takes a scope of its own."""

    def __init__(self, app: Any) -> None:
        self.app = app

    async def __call__(self, scope: Any, receive: Any, send: Any) -> None:
        if scope["type"] != "http":
            await self.app(scope, receive, send)
            return
        if scope["path"].startswith("/.well-known/oauth-protected-resource"):
            authority.seen["resource"] += 1
            said = {"resource": SERVER, "authorization_servers": [AUTHORITY], "scopes_supported": ["use"]}
            await JSONResponse(changed(said, authority.options["resource"]))(scope, receive, send)
            return
        if scope["path"].startswith("/.well-known"):
            await Response(status_code=404)(scope, receive, send)
            return
        request = Request(scope)
        token = request.headers.get("authorization", "").removeprefix("Bearer ")
        authority.bearers.append(token)
        body = b""
        if scope["method"] == "POST":
            body = await _body(receive)
            receive = _once_and_wait(body, receive)
            said = json.loads(body)
            authority.sent.append((token, str(said.get("method")) if isinstance(said, dict) else ""))
        if token not in authority.access and not authority.options["challenge"]:
            await Response(status_code=401)(scope, receive, send)
            return
        if body:
            if authority.options["repeat"] and b'"tools/list"' in body:
                error = {"code": -5, "message": f"you sent {token}"}
                reply = {"jsonrpc": "2.0", "id": 1, "error": error}
                await JSONResponse(reply, 400)(scope, receive, send)
                return
            found = authority.access.get(token)
            if b'"name":"admin"' in body and found is not None and "admin" not in found.scopes:
                authority.seen["insufficient"] += 1
                header = 'Bearer error="insufficient_scope", scope="admin"'
                await Response(status_code=403, headers={"WWW-Authenticate": header})(scope, receive, send)
                return
        await self.app(scope, receive, send)


def _once_and_wait(body: bytes, receive: Any) -> Any:
    given = False

    async def again() -> Any:
        nonlocal given
        if given:
            return await receive()
        given = True
        return {"type": "http.request", "body": body, "more_body": False}

    return again


server = MCPServer(
    "behind a login",
    token_verifier=authority,
    auth=AuthSettings(
        issuer_url=AnyHttpUrl(AUTHORITY),
        resource_server_url=AnyHttpUrl(SERVER),
        required_scopes=["use"],
        validate_token_resource=True,
    ),
)


@server.tool()
async def slow(seconds: float) -> int:
    """Takes its time; tells how many of it ran at once so far."""
    authority.seen["slow"] += 1
    authority.running += 1
    authority.most = max(authority.most, authority.running)
    try:
        await asyncio.sleep(seconds)
    finally:
        authority.running -= 1
    return authority.most


@server.tool()
async def echo(n: int) -> int:
    authority.seen["echo"] += 1
    return n


@server.tool()
async def admin() -> str:
    return "done"


async def control(request: Request) -> Response:
    said = await request.json()
    if said.pop("reset", False):
        authority.reset()
    for what in said.pop("do", []):
        if what == "revoke_all":
            authority.revoke_all()
        elif what == "revoke_access":
            authority.access.clear()
        elif what == "forget_clients":
            authority.clients.clear()
    authority.options.update(said)
    return JSONResponse({})


async def stats(request: Request) -> Response:
    return JSONResponse(
        {
            "seen": authority.seen,
            "resources": sorted(map(str, authority.resources)),
            "asked_scopes": authority.asked_scopes,
            "most": authority.most,
            "tokens": [*authority.access, *authority.refresh],
            "bearers": authority.bearers,
            "sent": authority.sent,
            "assertions": authority.assertions,
            "asked_tokens": authority.asked_tokens,
            "verifiers": authority.verifiers,
            "clients": {name: each.client_secret for name, each in authority.clients.items()},
        }
    )


async def main() -> None:
    logging.disable(logging.CRITICAL)
    routes = create_auth_routes(
        authority,
        AnyHttpUrl(AUTHORITY),
        client_registration_options=ClientRegistrationOptions(enabled=True),
        revocation_options=RevocationOptions(enabled=True),
    )
    own = [Route("/control", control, methods=["POST"]), Route("/stats", stats)]
    front = Front(Starlette(routes=[*own, *routes]))
    gate = Gate(server.streamable_http_app())
    apps = zip((front, gate), sys.argv[1:3], strict=True)
    servers = [
        uvicorn.Server(uvicorn.Config(app, host="127.0.0.1", port=int(port), log_level="critical"))
        for app, port in apps
    ]
    await asyncio.gather(*(each.serve() for each in servers))


if __name__ == "__main__":
    asyncio.run(main())
