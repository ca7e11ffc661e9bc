"""The HTTP clients of one server: two, so that calls cannot take the last connection from what keeps the server in order.

Each is an ``httpx2.AsyncClient`` of its own limits. They read the environment: ``HTTP_PROXY``, ``HTTPS_PROXY``, ``ALL_PROXY``
and ``NO_PROXY``; ``SSL_CERT_FILE`` and ``SSL_CERT_DIR`` for certificates; TLS is always verified. No transport of our own is
given, as the client would then leave the proxies out. Cookies are shared: a balancer in front of a server may go by them.
"""

from __future__ import annotations

import functools
import logging
import os
import ssl
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from contextvars import ContextVar
from http.cookiejar import CookieJar
from typing import TYPE_CHECKING

import trio
from attrs import frozen

if TYPE_CHECKING:
    import httpx2

__all__ = ["CALLS_AT_ONCE", "CONNECT_SECONDS", "Clients", "open_clients"]

CONNECT_SECONDS = 30.0
"""To reach a server. Nothing else of a request is limited here: its caller's deadline is the limit."""

CALLS_AT_ONCE = 100
"""Connections for calls; calls beyond wait for one, by their own deadlines."""

_CONTROL_AT_ONCE = 16
_KEPT = 8
_KEPT_SECONDS = 3.0
"""Below the 5 s after which common servers close an idle connection: one that is used just then looks like a lost server."""

_CLOSE_SECONDS = 1.0


ours: ContextVar[bool] = ContextVar("a request of ours is being sent", default=False)
"""Set while it is: the HTTP client logs each request with its whole URL, and a URL may hold a secret."""


class _Unspoken(logging.Filter):
    """Keeps back what the HTTP client says of our requests, and of nobody else's."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not ours.get()


_UNSPOKEN = _Unspoken()


@frozen
class Clients:
    """Args:
    calls: for tools/call.
    control: for everything else.
    """

    calls: httpx2.AsyncClient
    control: httpx2.AsyncClient


@asynccontextmanager
async def open_clients(
    headers: Mapping[str, str], transport: Callable[[], httpx2.AsyncBaseTransport] | None = None
) -> AsyncIterator[Clients]:
    """Make the clients of one server; leaving closes their connections, within a second.

    Args:
        headers: sent with each request.
        transport: makes what stands in for the network, for each of the two; None: the network, as the environment has it.

    Raises:
        OSError: the certificates that the environment names cannot be read.
        ValueError: a proxy that it names is none.
    """
    if "httpx2" not in sys.modules:
        await trio.to_thread.run_sync(_import_httpx)
    import httpx2

    logging.getLogger("httpx2").addFilter(_UNSPOKEN)  # once only, whoever asks again
    verify = _certificates(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR"))
    cookies = CookieJar()

    def client(most: int) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            headers=dict(headers),
            cookies=cookies,
            verify=verify,
            timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
            limits=httpx2.Limits(max_connections=most, max_keepalive_connections=_KEPT, keepalive_expiry=_KEPT_SECONDS),
            follow_redirects=False,
            transport=None if transport is None else transport(),
        )

    clients = Clients(client(CALLS_AT_ONCE), client(_CONTROL_AT_ONCE))
    try:
        yield clients
    finally:
        for each in (clients.calls, clients.control):
            with trio.move_on_after(_CLOSE_SECONDS, shield=True):
                await each.aclose()


def _import_httpx() -> None:
    import httpcore2  # noqa: F401
    import httpx2  # noqa: F401


@functools.cache
def _certificates(file: str | None, folder: str | None) -> ssl.SSLContext:
    """Made once for each state of the environment: reading a system's certificates takes tens of milliseconds."""
    import httpx2

    return httpx2.create_ssl_context()
