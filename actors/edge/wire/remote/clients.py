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
from http.cookiejar import Cookie, CookieJar
from pathlib import Path
from typing import TYPE_CHECKING

import trio
from attrs import frozen

if TYPE_CHECKING:
    import httpx2

__all__ = ["CALLS_AT_ONCE", "CONNECT_SECONDS", "Clients", "lone_client", "open_clients", "ours"]

CONNECT_SECONDS = 30.0
"""To reach a server. Nothing else of a request is limited here: its caller's deadline is the limit."""

CALLS_AT_ONCE = 100
"""Connections for calls; calls beyond wait for one, by their own deadlines."""

_CONTROL_AT_ONCE = 16
_KEPT = 8
_KEPT_SECONDS = 3.0
"""Below the 5 s after which common servers close an idle connection: one that is used just then looks like a lost server."""

_CLOSE_SECONDS = 1.0

_MOST_COOKIES = 50
_MOST_COOKIE_BYTES = 16 * 1024


ours: ContextVar[bool] = ContextVar("a request of ours is being sent", default=False)
"""Set while it is: the HTTP client logs each request with its whole URL, and the headers of each response; a URL may hold a
secret, and headers hold session ids and cookies. Of a body it logs nothing."""

_WRITERS = (
    *("httpx2", "httpcore2.connection", "httpcore2.http11", "httpcore2.http2", "httpcore2.proxy", "httpcore2.socks"),
    *("mcp.client.streamable_http", "mcp.client.sse"),
)
"""The loggers of the HTTP client, and of the transports that use it for us (`sdk_streams`)."""


class _Unspoken(logging.Filter):
    """Keeps back what the HTTP client says of our requests, and of nobody else's."""

    def filter(self, record: logging.LogRecord) -> bool:
        return not ours.get()


_UNSPOKEN = _Unspoken()


_CALLS = frozenset({"tools/call", "resources/read", "prompts/get", "completion/complete"})


@frozen
class Clients:
    """Args:
    calls: for what a caller waits for, and may hang (`_CALLS`).
    control: for everything else.
    """

    calls: httpx2.AsyncClient
    control: httpx2.AsyncClient

    def of(self, method: str) -> httpx2.AsyncClient:
        """The one for requests of a method."""
        return self.calls if method in _CALLS else self.control


@asynccontextmanager
async def open_clients(
    headers: Mapping[str, str],
    transport: Callable[[], httpx2.AsyncBaseTransport] | None = None,
    auth: httpx2.Auth | None = None,
) -> AsyncIterator[Clients]:
    """Make the clients of one server; leaving closes their connections, within a second.

    Args:
        headers: sent with each request.
        transport: makes what stands in for the network, for each of the two; None: the network, as the environment has it.
        auth: gives each request its login.

    Raises:
        OSError: the certificates that the environment names cannot be read.
        ValueError: a proxy that it names is none.
    """
    if "httpx2" not in sys.modules:
        await trio.to_thread.run_sync(_import_httpx)
    import httpx2

    from .pieces import ACCEPTED

    _hush()
    file, folder = os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")
    verify = _certificates(file, folder, _state_of(file), _state_of(folder))
    cookies = _Jar()
    coding = {} if any(name.lower() == "accept-encoding" for name in headers) else {"Accept-Encoding": ACCEPTED}

    def client(most: int) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            headers={**coding, **headers},
            cookies=cookies,
            verify=verify,
            timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
            limits=httpx2.Limits(max_connections=most, max_keepalive_connections=_KEPT, keepalive_expiry=_KEPT_SECONDS),
            follow_redirects=False,
            transport=None if transport is None else transport(),
            auth=auth,
        )

    clients = Clients(client(CALLS_AT_ONCE), client(_CONTROL_AT_ONCE))
    try:
        yield clients
    finally:
        for each in (clients.calls, clients.control):
            with trio.move_on_after(_CLOSE_SECONDS, shield=True):
                await each.aclose()


def lone_client() -> httpx2.AsyncClient:
    """A client for one request to somebody else, such as an authorization server: in the same environment, and with nothing
    of ours in it.

    Raises:
        OSError, ValueError: as `open_clients`.
    """
    import httpx2

    from .pieces import ACCEPTED

    _hush()
    return httpx2.AsyncClient(
        headers={"Accept-Encoding": ACCEPTED},
        verify=_certificates(os.environ.get("SSL_CERT_FILE"), os.environ.get("SSL_CERT_DIR")),
        timeout=httpx2.Timeout(None, connect=CONNECT_SECONDS),
        follow_redirects=False,
    )


def _hush() -> None:
    for writer in _WRITERS:
        logging.getLogger(writer).addFilter(_UNSPOKEN)  # once only, whoever asks again


def _import_httpx() -> None:
    import httpcore2  # noqa: F401
    import httpx2  # noqa: F401


@functools.lru_cache(maxsize=4)
def _certificates(file: str | None, folder: str | None, *states: object) -> ssl.SSLContext:
    """Made once for each state of the environment and of the files that it names: it takes tens of milliseconds."""
    import httpx2

    return httpx2.create_ssl_context()


def _state_of(path: str | None) -> tuple[object, ...]:
    """What of a file, or of each file of a folder, is different once it was written anew. Raises nothing."""
    if not path:
        return ()
    try:
        places = sorted(Path(path).iterdir()) if Path(path).is_dir() else [Path(path)]
    except OSError:
        return ()
    return tuple(_written(place) for place in places)


def _written(path: Path) -> tuple[object, ...]:
    try:
        found = path.stat()
    except OSError:
        return (path,)
    return path, found.st_ino, found.st_mtime_ns, found.st_size


class _Jar(CookieJar):
    """A cookie jar that forgets the oldest beyond `_MOST_COOKIES` or `_MOST_COOKIE_BYTES`: all are sent with each request."""

    def __init__(self) -> None:
        super().__init__()
        self._by_age: dict[tuple[str, str, str], int] = {}

    def set_cookie(self, cookie: Cookie) -> None:
        """As `CookieJar.set_cookie`; one that is set again is new."""
        super().set_cookie(cookie)
        key = (cookie.domain, cookie.path, cookie.name)
        self._by_age.pop(key, None)
        self._by_age[key] = len(cookie.name) + len(cookie.value or "")
        alive = {(each.domain, each.path, each.name) for each in self}  # others have expired
        self._by_age = {key: size for key, size in self._by_age.items() if key in alive}
        while len(self._by_age) > _MOST_COOKIES or sum(self._by_age.values()) > _MOST_COOKIE_BYTES:
            oldest = next(iter(self._by_age))
            del self._by_age[oldest]
            self.clear(*oldest)
