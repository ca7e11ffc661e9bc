"""`OlderSse`: the HTTP+SSE transport of 2024-11-05. One GET stream brings all that the server says, responses too; what is said
to it is POSTed to the endpoint that the stream names first.

The end of the stream is the end of the connection. A POST that is refused fails its request; one that hangs holds up no other,
and its request is answered all the same if the response comes over the stream.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any
from urllib.parse import SplitResult, urljoin, urlsplit

import httpx2
import trio

from ..rpc import LOG
from ..wire import HttpRefused
from . import bodies
from .clients import Clients
from .conversation import Conversation, Exchange
from .endpoint import Endpoint, redirects_to
from .failures import HttpFailed, not_followed, words_of
from .wire import RemoteWire

__all__ = ["OlderSse", "endpoint_at", "open_stream"]

ENDPOINT_SECONDS = 15.0
"""Within which the stream names its endpoint."""

_PORTS = {"http": 80, "https": 443}


@asynccontextmanager
async def open_stream(
    wire: RemoteWire, url: str, clients: Clients, *, max_message: int
) -> AsyncIterator[tuple[AsyncIterator[Any], str]]:
    """Open the stream; yields its events and the URL to POST to.

    Raises:
        HttpRefused: there is no such stream at that URL, or it names no endpoint, or one elsewhere.
    """
    endpoint = Endpoint(url)
    refused: HttpRefused | None = None
    try:
        async with endpoint.get(clients.control) as response:
            if response.status_code >= 300 or not bodies.is_events(response):
                refused = _no_stream(wire, response)
            else:
                events = _events(response, max_message)
                try:
                    to = await _endpoint_of(events, url)
                    if to is None:
                        refused = HttpRefused("the event stream names no endpoint", False)
                    else:
                        yield events, to
                finally:
                    with trio.CancelScope(shield=True) as enough:  # see `bodies`
                        enough.cancel()
                        async for _ in events:
                            pass
    except (httpx2.RequestError, httpx2.InvalidURL) as error:
        refused = HttpRefused(words_of(error, url), False)
    if refused is not None:
        raise refused


def _no_stream(wire: RemoteWire, response: httpx2.Response) -> HttpRefused:
    if response.status_code < 300:
        return HttpRefused(f"HTTP {response.status_code} without an event stream", False)
    if (elsewhere := redirects_to(response)) is not None:
        return HttpRefused(not_followed(response, elsewhere).reason, False)
    meaning = wire.refuse(response)
    refused = HttpRefused(str(meaning), meaning.wants_login(handshake=True))
    refused.retry_after = meaning.retry_after
    return refused


async def _events(response: httpx2.Response, most: int) -> AsyncGenerator[Any, None]:
    async for event in httpx2.EventSource(response, max_event_size=most):
        yield event


async def _endpoint_of(events: AsyncIterator[Any], url: str) -> str | None:
    """The endpoint that the stream names; None when it ends or takes too long. Raises as `endpoint_at`."""
    with trio.move_on_after(ENDPOINT_SECONDS):
        async for event in events:
            if event.event == "endpoint":
                return endpoint_at(url, event.data.strip())
    return None


def endpoint_at(url: str, named: str) -> str:
    """The URL of an endpoint; with the user of the stream's own URL, whatever user it is named with.

    Args:
        url: of the stream.
        named: what that says, absolute or relative to it.

    Raises:
        HttpRefused: it is of another origin than the stream (RFC 6454, 4): what we send is meant for that one only.
    """
    try:
        here, there = urlsplit(url), urlsplit(urljoin(url, named))
        if _origin(here) == _origin(there):
            return there._replace(netloc=here.netloc).geturl()
    except ValueError:
        raise HttpRefused("the event stream names an endpoint elsewhere: it is no URL", False) from None
    where = f"{there.scheme}://{there.netloc.rpartition('@')[2]}"
    raise HttpRefused(f"the event stream names an endpoint elsewhere: {where}", False)


def _origin(of: SplitResult) -> tuple[str, str | None, int | None]:
    return of.scheme, of.hostname, of.port or _PORTS.get(of.scheme)


class OlderSse(Conversation):
    """A dispatcher over HTTP+SSE.

    Args:
        wire: told of the loss.
        events: of the open stream, past its endpoint.
        url: to POST to.
        clients: to use.
        on_list_changed: called, never waiting, when the tool list may have changed.
    """

    def __init__(
        self,
        wire: RemoteWire,
        events: AsyncIterator[Any],
        url: str,
        clients: Clients,
        on_list_changed: Callable[[], None],
    ) -> None:
        super().__init__(on_list_changed, lambda: wire.lose("the connection was lost"))
        self._wire = wire
        self._events = events
        self._url = url
        self._endpoint = Endpoint(url)
        self._clients = clients

    def _stamp(self, method: str, headers: Mapping[str, str]) -> None:
        self._endpoint.stamp(method, headers)

    async def _background(self) -> None:
        try:
            async for event in self._events:
                if event.event == "message" and event.data:
                    self._take(event.data.encode(), None)
                self.heard = trio.current_time()
            self._wire.lose("the server closed the event stream")
        except httpx2.RequestError as error:
            self._wire.lose(words_of(error, self._url))

    async def _carry(self, exchange: Exchange) -> None:
        client = self._clients.of(exchange.method)
        try:
            async with self._endpoint.post(client, exchange.body, exchange.headers) as response:
                if response.status_code < 300:
                    await bodies.drain(response)
                else:
                    exchange.fail(self._refused(response, exchange.method))
        except (httpx2.RequestError, httpx2.InvalidURL) as error:
            self._wire.lose(words_of(error, self._url))

    def _refused(self, response: httpx2.Response, method: str = "") -> HttpFailed:
        if (elsewhere := redirects_to(response)) is not None:
            return not_followed(response, elsewhere)
        meaning = self._wire.refuse(response, method)
        if response.status_code == 404:
            self._wire.lose("the session has ended: HTTP 404", renew=True)
        return HttpFailed(str(meaning), meaning)

    async def _notify(self, method: str, body: bytes, headers: Mapping[str, str]) -> None:
        self._note(body)

    async def _deliver(self, body: bytes, headers: Mapping[str, str]) -> None:
        try:
            async with self._endpoint.post(self._clients.control, body, headers) as response:
                if response.status_code < 300:
                    await bodies.drain(response)
                else:
                    LOG.info("a message was not taken: %s", self._refused(response).reason)
        except httpx2.RequestError as error:
            self._wire.lose(words_of(error, self._url))
