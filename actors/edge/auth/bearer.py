"""The login in each request: an ``httpx2.Auth`` that holds up nothing.

Requests go out side by side; only a renewal is waited for, by all that need it at once (`keeper`). A token goes to the origin
of its server and nowhere else, whatever is redirected where.
"""

from __future__ import annotations

from collections.abc import AsyncGenerator
from typing import Any

import httpx2

from ..wire.remote.wire import LOGIN
from .challenge import read_challenge
from .keeper import Keeper
from .urls import origin

__all__ = ["Bearer"]

_MOST_READ = 64 * 1024


class Bearer(httpx2.Auth):
    """Gives requests their token.

    Args:
        keeper: of the login.
    """

    def __init__(self, keeper: Keeper) -> None:
        self._keeper = keeper
        self._origin = origin(keeper.server)

    async def async_auth_flow(self, request: httpx2.Request) -> AsyncGenerator[httpx2.Request, httpx2.Response]:
        """As `httpx2.Auth`.

        Raises:
            LoginUnavailable: the login has ended, and cannot be renewed now.
        """
        if origin(str(request.url)) != self._origin:
            # Who follows a redirect from http to https brings along what we put in.
            if request.headers.get("authorization", "").removeprefix("Bearer ") in self._keeper.secrets:
                del request.headers["authorization"]
            yield request
            return
        token = await self._keeper.token()
        _carry(request, token)
        response = yield request
        for last in (False, True):
            if response.status_code not in (401, 403):
                return
            challenge = read_challenge(response.headers.get_list("www-authenticate"))
            if response.status_code == 401:
                other = await self._keeper.another(token, challenge)
            elif challenge.wants_more:
                other = await self._keeper.more(token, challenge)
            else:
                return
            if other is None:
                self._keeper.refused = token
                if self._keeper.reason is not None:
                    response.extensions[LOGIN] = self._keeper.reason
                return
            await _leave(response)
            _carry(request, other)
            token = other
            response = yield request
            # What another process had got may have ended too, for all we know: only a new one that is refused is the end.
            if last or response.status_code != 401 or token == self._keeper.brought:
                break
        if response.status_code in (401, 403):
            self._keeper.refused = token


def _carry(request: httpx2.Request, token: str | None) -> None:
    if token is None:
        request.headers.pop("authorization", None)
    else:
        request.headers["authorization"] = f"Bearer {token}"


async def _leave(response: httpx2.Response) -> None:
    """Be done with a response that the client would else read to its end, however long that is."""
    length: Any = response.headers.get("content-length", "")
    if length.isdigit() and int(length) <= _MOST_READ:
        return
    stream = response.stream
    response.stream = httpx2.ByteStream(b"")
    if isinstance(stream, httpx2.AsyncByteStream):
        await stream.aclose()
