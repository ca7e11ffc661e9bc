"""Requests to one MCP endpoint: what goes into their headers, and which redirects are followed.

A redirect is followed when it keeps the method and stays within the origin (or is its upgrade from http to https on the default
ports): headers, credentials and body were meant for that endpoint. Any other is a refusal that names where it leads.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager

import httpx2
from mcp_types.version import MODERN_PROTOCOL_VERSIONS

from ....model.mask import mask_url
from .clients import ours
from .pieces import in_pieces

__all__ = ["Endpoint"]

_MOST_REDIRECTS = 5
_VERSION = "mcp-protocol-version"


class Endpoint:
    """Args:
        url: of the MCP endpoint.

    Attributes:
        session: the id that the server gave this session, or None.
        version: the protocol version that was stamped on the newest request, or None before there was one.
    """

    def __init__(self, url: str) -> None:
        self.url = url
        self.session: str | None = None
        self.version: str | None = None

    @property
    def modern(self) -> bool:
        """Whether requests are those of 2026-07-28 or later, which know no sessions and no GET stream."""
        return self.version in MODERN_PROTOCOL_VERSIONS

    def stamp(self, method: str, headers: Mapping[str, str]) -> None:
        """Note the version of a message that is to be sent; ``initialize`` begins anew, whatever a probe was stamped with."""
        if method == "initialize":
            self.version = None
        else:
            stamped = {name.lower(): value for name, value in headers.items()}.get(_VERSION)
            self.version = stamped or self.version

    def headers(self, accept: str, more: Mapping[str, str] | None = None) -> dict[str, str]:
        """The headers of one request.

        Args:
            accept: media types.
            more: of this message; they win.
        """
        made = {"accept": accept}
        if self.session is not None:
            made["mcp-session-id"] = self.session
        if self.version is not None:
            made[_VERSION] = self.version
        return made | {name.lower(): value for name, value in (more or {}).items()}

    @asynccontextmanager
    async def post(
        self, client: httpx2.AsyncClient, body: bytes, more: Mapping[str, str] | None = None
    ) -> AsyncIterator[httpx2.Response]:
        """Send one message; yields the response before its body is read.

        Raises:
            httpx2.RequestError: the network, or HTTP itself, failed.
        """
        headers = self.headers("application/json, text/event-stream", more)
        async with send(client, "POST", self.url, {**headers, "content-type": "application/json"}, body) as response:
            yield response

    @asynccontextmanager
    async def get(self, client: httpx2.AsyncClient, last_event_id: str | None = None) -> AsyncIterator[httpx2.Response]:
        """Open an event stream; errors as `post`, `httpx2.LocalProtocolError` for an id that no header can hold.

        Args:
            client: to use.
            last_event_id: of the event after which to go on, or None.
        """
        headers: dict[str, str | bytes] = dict(self.headers("text/event-stream", {"cache-control": "no-store"}))
        if last_event_id is not None:
            headers["last-event-id"] = last_event_id.strip(
                " \t"
            ).encode()  # HTML, 9.2: in UTF-8; HTTP: without blanks around it
        async with send(client, "GET", self.url, headers) as response:
            yield response

    async def delete(self, client: httpx2.AsyncClient) -> None:
        """End the session, if there is one; whatever the server answers. Errors as `post`."""
        if self.session is not None:
            async with send(client, "DELETE", self.url, self.headers("application/json")):
                pass


@asynccontextmanager
async def send(
    client: httpx2.AsyncClient, method: str, url: str, headers: Mapping[str, str | bytes], body: bytes | None = None
) -> AsyncIterator[httpx2.Response]:
    """Send a request, and follow the redirects that may be followed; yields the response before its body is read."""
    fields = [
        (name.encode("ascii"), each.encode() if isinstance(each, str) else each) for name, each in headers.items()
    ]
    request = client.build_request(method, url, headers=fields, content=body)
    for _ in range(_MOST_REDIRECTS):
        response = await _sent(client, request)
        try:
            follow = _follow(response)
            if follow is None:
                yield response
                return
        finally:
            await response.aclose()
        request = follow
    response = await _sent(client, request)
    try:
        yield response
    finally:
        await response.aclose()


async def _sent(client: httpx2.AsyncClient, request: httpx2.Request) -> httpx2.Response:
    token = ours.set(True)
    try:
        response = await client.send(request, stream=True)
    except UnicodeError:  # of the look-up, which says more than a person can use
        raise httpx2.ConnectError("its host is no name that can be looked up", request=request) from None
    finally:
        ours.reset(token)
    in_pieces(response)
    return response


def _follow(response: httpx2.Response) -> httpx2.Request | None:
    following, sent = response.next_request, response.request
    if following is None or following.method != sent.method:
        return None
    here, there = sent.url, following.url
    same = (here.scheme, here.host, here.port) == (there.scheme, there.host, there.port)
    upgrade = here.host == there.host and (here.scheme, there.scheme) == ("http", "https")
    if not same and not (upgrade and here.port is None and there.port is None):
        return None
    if there.userinfo and there.userinfo != here.userinfo:
        return None
    return following


def redirects_to(response: httpx2.Response) -> str | None:
    """Where a response leads that was not followed, masked as a URL is that we show. None when it is no redirect."""
    if response.next_request is None:
        return None
    return mask_url(str(response.next_request.url.copy_with(userinfo=b"", query=None, fragment=None)))
