"""Wires over the SDK's own message streams: servers in memory, and servers over HTTP.

The streams tell little of a failure: the SDK logs what happened and closes them. So each wire here has a place of its own that
sees the cause: for a server in memory the task that runs it, for HTTP the transport under the client, which sees every status
and every network error before the SDK makes one and the same error of them all.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio

from .wire import HttpRefused, Launch, Wire

if TYPE_CHECKING:
    import httpx2
    from mcp.shared.dispatcher import Dispatcher

__all__ = ["StreamWire", "open_http", "open_memory"]

MEMORY_GRACE = 2.0
"""Seconds an in-memory server has to leave after its streams ended."""

HTTP_TIMEOUT = 30.0
"""Seconds to connect and to send a request over HTTP."""

HTTP_READ_TIMEOUT = 300.0
"""Seconds between two pieces of an answer over HTTP; a call's own deadline is its caller's."""


class StreamWire(Wire):
    """A pair of the SDK's message streams under the SDK's own dispatcher."""

    def __init__(self, scrub: Callable[[str], str], read: Any, write: Any) -> None:
        super().__init__(scrub)
        self._streams = (read, write)
        self.cause = ""
        """What is known of a failure that the streams themselves do not tell."""

    def dispatcher(self, on_list_changed: Callable[[], None]) -> Dispatcher[Any]:
        from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher

        return JSONRPCDispatcher(*self._streams)

    def dispatcher_ended(self) -> None:
        self.lose(self.cause or "the server closed the connection")

    def last_words(self) -> str:
        return self.scrub(self.cause)


@asynccontextmanager
async def open_memory(server: Any, scrub: Callable[[str], str]) -> AsyncIterator[Wire]:
    """Run a server object in a task of its own; what it raises ends the connection and nothing else."""
    from mcp.shared.memory import create_client_server_memory_streams

    actual = getattr(server, "_lowlevel_server", server)  # MCPServer wraps a low-level Server
    async with create_client_server_memory_streams() as (ours, theirs):
        wire = StreamWire(scrub, *ours)
        done = trio.Event()

        async def serve() -> None:
            try:
                await actual.run(*theirs, actual.create_initialization_options())
            except Exception as error:
                wire.cause = f"the in-memory server raised {_leaf(error)}"
            finally:
                done.set()
                await _close_quietly(*theirs)

        async with trio.open_nursery() as nursery:
            nursery.start_soon(serve)
            try:
                yield wire
            finally:
                with trio.move_on_after(MEMORY_GRACE, shield=True):
                    await _close_quietly(ours[1], theirs[1])
                    await done.wait()
                nursery.cancel_scope.cancel()


async def _close_quietly(*streams: Any) -> None:
    for stream in streams:
        with contextlib.suppress(Exception):
            await stream.aclose()


def _leaf(error: BaseException) -> str:
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {error}" if str(error) else type(error).__name__


@asynccontextmanager
async def open_http(launch: Launch, scrub: Callable[[str], str], *, sse: bool) -> AsyncIterator[Wire]:
    """Connect over streamable HTTP, or the older SSE transport, with the SDK's clients.

    Args:
        launch: with a ``url``.
        scrub: removes secrets from a text.
        sse: whether to use the older transport.

    Raises:
        HttpRefused: on entering: the first request failed (SSE; streamable HTTP fails in the handshake).
        Exception: what the SDK raises, possibly in groups.
    """
    import httpx2
    from mcp.client.sse import sse_client
    from mcp.client.streamable_http import streamable_http_client

    assert launch.url is not None
    causes = _Causes()

    class Watched(httpx2.AsyncBaseTransport):
        def __init__(self) -> None:
            self._inner = httpx2.AsyncHTTPTransport()

        async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
            try:
                response = await self._inner.handle_async_request(request)
            except httpx2.TransportError as error:
                causes.failed(error)
                raise
            causes.answered(request.method, response.status_code)
            return response

        async def aclose(self) -> None:
            await self._inner.aclose()

    def client(headers: Any = None, timeout: Any = None, auth: Any = None) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(
            transport=Watched(),
            headers=dict(launch.headers),
            timeout=timeout or httpx2.Timeout(HTTP_TIMEOUT, read=HTTP_READ_TIMEOUT),
            auth=auth,
        )

    async with contextlib.AsyncExitStack() as stack:
        try:
            if sse:
                streams = await stack.enter_async_context(sse_client(launch.url, httpx_client_factory=client))
            else:
                http = await stack.enter_async_context(client())
                streams = await stack.enter_async_context(streamable_http_client(launch.url, http_client=http))
        except Exception as error:
            if not causes.text:
                raise
            raise HttpRefused(scrub(causes.text), causes.needs_auth) from error
        wire = StreamWire(scrub, *streams)
        causes.tell(wire)
        yield wire


class _Causes:
    """The last thing that went wrong over HTTP, in words."""

    def __init__(self) -> None:
        self.text = ""
        self.needs_auth = False
        self._wire: StreamWire | None = None

    def tell(self, wire: StreamWire) -> None:
        self._wire = wire

    def failed(self, error: httpx2.TransportError) -> None:
        kind = type(error).__name__
        self._set(f"the request failed: {kind}: {error}" if str(error) else f"the request failed: {kind}")

    def answered(self, method: str, status: int) -> None:
        if status < 400:
            self._set("")
        elif not (method in ("GET", "DELETE") and status == 405):  # it just has no such stream, or no sessions
            self.needs_auth = status == 401
            self._set(f"HTTP {status} {_phrase(status)}".strip() + (": it wants a login" if self.needs_auth else ""))

    def _set(self, text: str) -> None:
        self.text = text
        if self._wire is not None:
            self._wire.cause = text
            self._wire.needs_auth = self.needs_auth


def _phrase(status: int) -> str:
    from http import HTTPStatus

    try:
        return HTTPStatus(status).phrase
    except ValueError:
        return ""
