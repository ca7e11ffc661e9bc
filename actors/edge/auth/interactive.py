"""A login by a person: from the refusal of a server to tokens (authorization code with PKCE; RFC 6749, 4.1; RFC 7636).

discover ─▶ redirect ─▶ who we are ─▶ the person's browser ─▶ the answer, judged ─▶ the code for tokens
"""

from __future__ import annotations

import inspect
import secrets
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import urlencode, urlsplit, urlunsplit

import trio
from mcp.client.auth.oauth2 import PKCEParameters

from ...model.oauth import OAuth
from .answer import Asked, code_in, has_state, says_no
from .callback import Callback, open_callback
from .challenge import Challenge
from .client import configured, known, register
from .discovery import Found, discover
from .grant import proof_of, tokens
from .handlers import Handlers, Note, WaitForCallback
from .record import Client, Record, server_of, union, with_tokens
from .refused import LoginRefused
from .web import Web

__all__ = ["log_in", "record_of"]


async def log_in(
    web: Web,
    server: str,
    settings: OAuth,
    handlers: Handlers,
    *,
    challenge: Challenge,
    before: Record | None,
    scopes: tuple[str, ...],
    seconds: float,
    now: Callable[[], float],
) -> tuple[Record, str | None]:
    """Have a person log in.

    Args:
        web: sends requests.
        server: URL of the MCP server.
        settings: expanded.
        handlers: how the person is reached.
        challenge: of the server's refusal.
        before: what is kept of a login there, or None.
        scopes: to ask for instead of what the server says it takes.
        seconds: for the person, from when the URL is shown.
        now: seconds since the epoch.

    Returns:
        The login, and the scope that was asked for.

    Raises:
        LoginRefused: it is not to be had, or nobody logged in.
        LoginUnavailable: somebody does not answer now.
        Exception: what a handler raises.
    """
    found = await discover(web, server, settings, challenge)
    _same_as_before(before, found, settings)
    scope = union(" ".join(scopes) or found.scope)
    # What was granted stays so, and what was missing comes to it; but somebody who says what to ask for means that.
    said_so = bool(scopes or settings.scopes)
    if before is not None and (before.wanted is not None or (not said_so and before.issuer == found.issuer)):
        scope = union(scope, before.scope, before.wanted)
    async with _redirect(settings, handlers, before) as (redirect_uri, callback):
        client = configured(settings, found) or known(before, found, redirect_uri)
        remembered = client is not None and client.registered
        if client is None:
            client = await register(web, found, redirect_uri, scope)
        pkce = PKCEParameters.generate()
        says_issuer = _says_issuer(found)
        plain = found.metadata is not None and not says_issuer
        asked = Asked(secrets.token_urlsafe(32), found.issuer, says_issuer, plain)
        if callback is not None:
            callback.fits = lambda path: has_state(path, asked.state)
            callback.denies = says_no
            callback.stranger = lambda: _tell(handlers, "another state")
        url = _request(found, client, redirect_uri, asked.state, pkce.code_challenge, scope)
        answer: str | None = None
        with trio.move_on_after(seconds):
            await _called(handlers.open_url(url))
            if remembered:
                _tell(handlers, "known client")
            answer = await _answer(callback, handlers.wait_for_callback)
        if answer is None:
            raise LoginRefused(f"nobody logged in within {seconds:g} s")
        code = code_in(answer, asked)
    said = await tokens(
        web,
        found.token,
        client,
        proof_of(settings, client, found.issuer),
        {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect_uri,
            "code_verifier": pkce.code_verifier,
            "resource": found.resource,
        },
    )
    return with_tokens(record_of(server, found, client), said, scope, now()), scope


def _tell(handlers: Handlers, note: Note) -> None:
    if handlers.tell is not None:
        handlers.tell(note)


def record_of(server: str, found: Found, client: Client) -> Record:
    """What is known of a login before there are tokens."""
    return Record(
        server=server_of(server),
        issuer=found.issuer,
        token_endpoint=found.token,
        revocation_endpoint=found.revoke,
        resource=found.resource,
        client=client,
    )


def _same_as_before(before: Record | None, found: Found, settings: OAuth) -> None:
    """A secret that was registered with one authorization server goes to no other one that a server names later."""
    if settings.client_secret is None or settings.issuer is not None or before is None:
        return
    if before.issuer is not None and before.issuer != found.issuer:
        raise LoginRefused(
            f"its authorization server is {found.issuer} now and was {before.issuer}; if that is right, "
            "write oauth.issuer"
        )


def _says_issuer(found: Found) -> bool:
    return bool(found.metadata is not None and found.metadata.authorization_response_iss_parameter_supported)


@asynccontextmanager
async def _redirect(
    settings: OAuth, handlers: Handlers, before: Record | None
) -> AsyncIterator[tuple[str, Callback | None]]:
    """The redirect of this login, and the open port that takes it, if it is ours."""
    if handlers.redirect_uri is not None and handlers.wait_for_callback is not None:
        yield handlers.redirect_uri, None
        return
    written = settings.redirect_uri
    if written is None and settings.callback_port is not None:
        written = f"http://localhost:{settings.callback_port}/callback"  # as the hosts that have this key mean it
    client = None if before is None else before.client
    usual = client.redirect_uri if client is not None and client.registered else None
    if usual is not None and not usual.startswith("http://127.0.0.1:"):
        usual = None
    async with open_callback(written, usual=usual) as callback:
        yield callback.redirect_uri, callback


def _request(found: Found, client: Client, redirect_uri: str, state: str, challenge: str, scope: str | None) -> str:
    """The URL that the browser is to go to (RFC 6749, 4.1.1; RFC 7636, 4.3; RFC 8707, 2)."""
    asked = {
        "response_type": "code",
        "client_id": client.id,
        "redirect_uri": redirect_uri,
        "state": state,
        "code_challenge": challenge,
        "code_challenge_method": "S256",
    }
    if found.resource is not None:
        asked["resource"] = found.resource
    if scope:
        asked["scope"] = scope
        if "offline_access" in scope.split():
            asked["prompt"] = "consent"  # OpenID Connect Core, 11
    parts = urlsplit(found.authorize)
    query = "&".join(each for each in (parts.query, urlencode(asked)) if each)
    return urlunsplit((parts.scheme, parts.netloc, parts.path, query, ""))


async def _called(value: Any) -> Any:
    return await value if inspect.isawaitable(value) else value


async def _answer(callback: Callback | None, wait: WaitForCallback | None) -> str:
    """The first answer: of the open port, or of the handler."""
    if wait is None:
        assert callback is not None
        return await callback.wait()
    if callback is None:
        return _text(await _called(wait()))
    found: list[str] = []
    failed: list[Exception] = []
    async with trio.open_nursery() as nursery:

        async def first(how: Callable[[], Awaitable[Any]]) -> None:
            try:
                found.append(_text(await how()))
            except Exception as error:
                failed.append(error)  # raised below, not in a group
            nursery.cancel_scope.cancel()

        async def asked() -> Any:
            return await _called(wait())

        nursery.start_soon(first, callback.wait)
        nursery.start_soon(first, asked)
    if not found:
        raise failed[0]
    return found[0]


def _text(value: Any) -> str:
    if not isinstance(value, str):
        raise LoginRefused(f"wait_for_callback gave {type(value).__name__}, and not the URL of the redirect")
    return value
