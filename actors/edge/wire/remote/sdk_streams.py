"""The SDK's own HTTP transports under its own dispatcher: for SDK versions that our conversations were not tested with.

Simpler, and worse: one network error ends the connection, a call that is cancelled keeps its connection until its server
answers, and of a status only what the response hook here sees is known.
"""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager
from typing import Any

import httpx2
import trio
from mcp.client.sse import sse_client
from mcp.client.streamable_http import streamable_http_client

from ..stream_wire import StreamWire
from ..wire import HttpRefused, Launch, Wire
from .clients import Clients, ours
from .failures import words_of
from .meaning import read_status

__all__ = ["open_sdk_streams"]

HEARD_SECONDS = 1.0
"""How long an answer that loses the connection is held back, so that its caller hears of that and not of "an error"."""


@asynccontextmanager
async def open_sdk_streams(
    launch: Launch, scrub: Callable[[str], str], clients: Clients, *, older: bool
) -> AsyncIterator[Wire]:
    """Connect with the SDK's transports; leaving them leaves the clients open.

    Args:
        launch: with a ``url``.
        scrub: removes secrets from a text.
        clients: the one for calls is used for everything.
        older: over HTTP+SSE.

    Raises:
        HttpRefused: on entering: there is no event stream (HTTP+SSE).
    """
    assert launch.url is not None
    wire: StreamWire | None = None
    cause, needs_auth = "", False

    async def look(response: httpx2.Response) -> None:
        nonlocal cause, needs_auth
        if response.status_code < 400 or (response.status_code == 405 and response.request.method != "POST"):
            cause = ""
        else:
            meaning = read_status(response.status_code, response.headers, time.time())
            cause, needs_auth = str(meaning), meaning.status == 401
        if wire is None:
            return
        wire.cause, wire.needs_auth = cause, needs_auth
        if needs_auth:  # it is the connection's, whatever the request was: none is answered otherwise
            wire.lose(cause)
            if response.request.method == "POST":
                await trio.sleep(HEARD_SECONDS)

    async def hush(request: httpx2.Request) -> None:
        # Of the task that sends it, which is the transport's own, and runs in the context of whoever it sends for.
        ours.set(True)

    client = clients.calls
    client.event_hooks = {"request": [hush], "response": [look]}

    def factory(headers: Any = None, timeout: Any = None, auth: Any = None) -> Any:
        return _Lent(client)

    async with AsyncExitStack() as stack:
        try:
            if older:
                entering = sse_client(launch.url, httpx_client_factory=factory)
            else:
                entering = streamable_http_client(launch.url, http_client=client)
            streams = await stack.enter_async_context(_Unspoken(entering))
        except httpx2.RequestError as error:
            raise HttpRefused(scrub(words_of(error, launch.url)), False) from None
        except Exception as error:
            if not cause:
                raise
            raise HttpRefused(scrub(cause), needs_auth) from error
        wire = StreamWire(scrub, *streams)
        yield wire


class _Unspoken:
    """A transport of which nothing is logged while it is entered and left, nor by tasks it starts then: they inherit `ours`."""

    def __init__(self, transport: AbstractAsyncContextManager[Any]) -> None:
        self._transport = transport

    async def __aenter__(self) -> Any:
        token = ours.set(True)
        try:
            return await self._transport.__aenter__()
        finally:
            ours.reset(token)

    async def __aexit__(self, *raised: Any) -> bool | None:
        token = ours.set(True)
        try:
            return await self._transport.__aexit__(*raised)
        finally:
            ours.reset(token)


class _Lent:
    """A client in a context manager that does not close it."""

    def __init__(self, client: httpx2.AsyncClient) -> None:
        self._client = client

    async def __aenter__(self) -> httpx2.AsyncClient:
        return self._client

    async def __aexit__(self, *_: object) -> None:
        """It is closed by whom it belongs to."""
