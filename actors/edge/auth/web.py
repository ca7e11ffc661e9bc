"""Requests to authorization servers: bounded, without what our requests to the MCP server carry, and never redirected.

Each is a request of its own client: no headers of the entry, no cookies, no token. Its answer is read up to `MOST` bytes within
`SECONDS`. Neither what is sent nor what comes back is in any message.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import httpx2
import trio
from attrs import field, frozen

from ..wire.remote.clients import lone_client, ours
from ..wire.remote.pieces import in_pieces
from .urls import shown

__all__ = ["Answer", "LoginUnavailable", "Web"]

SECONDS = 20.0
MOST = 256 * 1024


class LoginUnavailable(httpx2.RequestError):
    """A request cannot be made for want of a login that may be had later: its authorization server does not answer, or not now.

    Args:
        in_words: why, in one line.
    """

    def __init__(self, in_words: str) -> None:
        super().__init__(in_words)
        self.in_words = in_words


@frozen
class Answer:
    """What came back.

    Args:
        status: three digits.
        headers: of it.
        body: its beginning.
    """

    status: int
    headers: httpx2.Headers = field(repr=False)
    body: bytes = field(repr=False)

    def json(self) -> dict[str, Any] | None:
        """The JSON object in the body, or None."""
        try:
            value = json.loads(self.body)
        except (ValueError, RecursionError):
            return None
        return value if isinstance(value, dict) else None

    @property
    def for_now(self) -> bool:
        """Whether it says nothing but that it cannot be had now."""
        return self.status >= 500 or self.status in (408, 425, 429)


class Web:
    """Sends requests; holds nothing open."""

    async def get(self, url: str, accept: str = "application/json") -> Answer:
        """Get what is at a URL; errors as `send`."""
        from mcp_types import LATEST_PROTOCOL_VERSION

        return await self.send("GET", url, {"accept": accept, "mcp-protocol-version": LATEST_PROTOCOL_VERSION})

    async def form(self, url: str, data: Mapping[str, str], headers: Mapping[str, str]) -> Answer:
        """Post a form; errors as `send`."""
        return await self.send("POST", url, {"accept": "application/json", **headers}, data=dict(data))

    async def probe(self, method: str, url: str, headers: Mapping[str, str], content: bytes | None) -> Answer:
        """As `send`, but nothing is read of what comes back: it may be a stream that does not end."""
        return await self.send(method, url, headers, content=content, most=0)

    async def send(self, method: str, url: str, headers: Mapping[str, str], most: int = MOST, **body: Any) -> Answer:
        """Send one request, and read what comes back.

        Args:
            method, url, headers: of it.
            most: bytes to read; 0: none.
            body: as httpx2 takes it.

        Raises:
            LoginUnavailable: the network failed, or nothing came in time.
        """
        where = shown(url)
        with trio.move_on_after(SECONDS):
            token = ours.set(True)
            try:
                async with (
                    lone_client() as client,
                    client.stream(method, url, headers=dict(headers), **body) as response,
                ):
                    read = bytearray()
                    if most:
                        in_pieces(response)
                        async for part in response.aiter_bytes():
                            read += part
                            if len(read) > most:
                                raise LoginUnavailable(f"{where} answers with more than {most} bytes")
                    return Answer(response.status_code, response.headers, bytes(read))
            except httpx2.InvalidURL:
                raise LoginUnavailable(f"{where} cannot be asked: no URL") from None
            except LoginUnavailable:
                raise
            except (httpx2.RequestError, httpx2.StreamError, OSError, ValueError) as error:
                refused = isinstance(error, httpx2.ConnectError)
                why = "the connection is refused, or there is no such host" if refused else type(error).__name__
                raise LoginUnavailable(f"{where} cannot be asked: {why}") from None
            finally:
                ours.reset(token)
        raise LoginUnavailable(f"{where} gave no answer within {SECONDS:g} s")
