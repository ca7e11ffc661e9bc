"""`StreamableHttp`: streamable HTTP, in the revision of 2026-07-28 and in those before it (2025-03-26 to 2025-11-25).

Theory of operation. Each request is a POST; its response is JSON, or a stream of events that ends with the response.

    what comes of a POST                       then
    JSON, or the response in the stream        its caller has it
    a refusal (see `meaning`)                  the caller's, or the loss of the connection
    refused, reset, closed, cut off            the connection is lost: nobody knows what the server did
    the stream ends before the response        it is resumed after its last event, where events have ids (not in 2026-07-28)
                                               else the caller is told; whether the server is well is asked at once, so that the
                                               end of a server is not taken for the failure of a call

In the older revisions, when the server gave a session, a GET stream brings what it says by itself. It is opened again whenever
it ends; nothing is replayed then, so the list of tools may have changed. If nobody listens at that address any more, the server
is gone: so the end of an idle server is noticed. In 2026-07-28 ``subscriptions/listen`` does all this.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import httpx2
import trio
from attrs import define
from mcp.shared.exceptions import MCPError

from ..rpc import LOG, decode, encode
from . import bodies
from .clients import Clients
from .conversation import Conversation, Exchange
from .endpoint import Endpoint, redirects_to
from .failures import HttpFailed, not_followed, words_of
from .meaning import Meaning, ends_session
from .wire import RemoteWire

__all__ = ["StreamableHttp"]

INITIALIZED_SECONDS = 3.0
"""How long the others wait for ``notifications/initialized`` to be taken; some servers never do."""

INITIALIZED_MOST = 30.0

RESUME_FIRST, RESUME_MOST = 0.5, 30.0
"""Seconds before a stream is opened again, unless the server says how long."""

RESUMES = 5
"""Attempts in a row that bring nothing before a response is given up."""

END_SECONDS = 0.5
"""A stream of events may last on after its response."""

PROBE_SECONDS = 5.0
"""Within which a server whose stream broke off shows that it is well."""

_OLDER = frozenset({400, 404, 405})
"""A first POST answered so may have met a server of the older transport (Backward Compatibility, HTTP+SSE)."""


class StreamableHttp(Conversation):
    """A dispatcher over streamable HTTP.

    Args:
        wire: told of the loss.
        endpoint: where to.
        clients: to use.
        on_list_changed: called, never waiting, when the tool list may have changed.
        max_message: longest message accepted, in bytes.
    """

    def __init__(
        self,
        wire: RemoteWire,
        endpoint: Endpoint,
        clients: Clients,
        on_list_changed: Callable[[], None],
        *,
        max_message: int,
    ) -> None:
        super().__init__(on_list_changed, lambda: wire.lose("the connection was lost"))
        self._on_list_changed = on_list_changed
        self._wire = wire
        self._endpoint = endpoint
        self._clients = clients
        self._max_message = max_message
        self._initialized = trio.Event()
        self._probed: trio.Event | None = None

    def _stamp(self, method: str, headers: Mapping[str, str]) -> None:
        self._endpoint.stamp(method, headers)

    @property
    def session_id(self) -> str | None:
        """As `Conversation.session_id`."""
        return self._endpoint.session

    def _tells_of_cancelling(self) -> bool:
        return not self._endpoint.modern

    # ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _carry(self, exchange: Exchange) -> None:
        client = self._clients.of(exchange.method)
        try:
            async with self._endpoint.post(client, exchange.body, exchange.headers) as response:
                await self._answered(exchange, response, client)
        except bodies.TooLarge:
            exchange.fail(self._too_long())
        except (httpx2.TransportError, httpx2.InvalidURL) as error:
            self._broke(error)
        except (httpx2.RequestError, httpx2.StreamError) as error:
            exchange.fail(HttpFailed(words_of(error, self._endpoint.url)))  # type: ignore[arg-type]
        except Exception:
            exchange.fail(HttpFailed("the request got no answer"))
            raise
        # Not when it is cancelled: its caller has gone, or whoever closes the connection settles all that is pending.
        if not exchange.settled:
            exchange.fail(HttpFailed("the request got no answer"))

    def _broke(self, error: httpx2.RequestError | httpx2.InvalidURL) -> None:
        self._wire.lose(words_of(error, self._endpoint.url))

    def _too_long(self) -> MCPError:
        return HttpFailed(f"invalid response: it is longer than {self._max_message} bytes")

    async def _answered(self, exchange: Exchange, response: httpx2.Response, client: httpx2.AsyncClient) -> None:
        self.heard = trio.current_time()
        if not 200 <= response.status_code < 300:
            await self._refused(exchange, response)
            return
        if exchange.method == "initialize":
            self._endpoint.session = response.headers.get("mcp-session-id") or None
        if response.status_code == 202:
            exchange.fail(HttpFailed("HTTP 202: the server takes it for a message that has no response"))
        elif bodies.is_json(response):
            self._take(await bodies.read_whole(response, self._max_message), exchange)
            if not exchange.settled:
                exchange.fail(HttpFailed("invalid response: it is no response to this request"))
        elif bodies.is_events(response):
            await self._read_answer(exchange, response, client)
        else:
            kind = response.headers.get("content-type") or "no content"
            exchange.fail(HttpFailed(f"invalid response: HTTP {response.status_code} with {kind[:80]}"))

    async def _refused(self, exchange: Exchange, response: httpx2.Response) -> None:
        if (elsewhere := redirects_to(response)) is not None:
            exchange.fail(not_followed(response, elsewhere))
            return
        body = await bodies.excerpt(response)
        error = _error_in(body)
        if self._lost_by(response, body, error):
            return
        meaning = self._wire.refuse(response, exchange.method)
        if self._wire.lost.is_set():
            return
        if error is not None:
            self._take(encode({"jsonrpc": "2.0", "id": exchange.id, "error": error}), exchange)
        elif exchange.method == "initialize" and response.status_code in _OLDER:
            self._wire.not_streamable = True
        exchange.fail(HttpFailed(str(meaning), meaning))

    def _lost_by(self, response: httpx2.Response, body: bytes, error: dict[str, Any] | None) -> bool:
        """Whether a refusal says that the session has ended; then it is lost."""
        if "mcp-session-id" not in response.request.headers or self._endpoint.session is None:
            return False
        if not ends_session(response.status_code, error, body.decode("utf-8", "replace")):
            return False
        self._endpoint.session = None  # there is none to end
        self._wire.lose(f"the session has ended: HTTP {response.status_code}", renew=True)
        return True

    # ── a response in a stream of events ─────────────────────────────────────────────────────────────────────────────

    async def _read_answer(self, exchange: Exchange, response: httpx2.Response, client: httpx2.AsyncClient) -> None:
        place, later = _Place(), 0.0
        await self._read_events(response, exchange, place)
        fruitless = 0
        while not exchange.settled:
            if place.last is None or self._endpoint.modern or fruitless == RESUMES:
                await self._ask_if_well()
                exchange.fail(HttpFailed(place.why))
                return
            before = place.last
            await trio.sleep(max(later, RESUME_FIRST if place.pause is None else place.pause))
            later = 0.0
            try:
                async with self._endpoint.get(client, place.last) as again:
                    if again.status_code >= 400:
                        meaning = await self._no_stream(again)
                        if meaning is None or self._wire.lost.is_set():
                            return
                        if again.status_code not in _FOR_A_WHILE:
                            # Without the meaning: the call was begun, so that it must not look like one to be made again.
                            exchange.fail(HttpFailed(f"{place.why}, and it cannot be resumed: {meaning}"))
                            return
                        later = meaning.retry_after or 0.0
                    elif not bodies.is_events(again):
                        exchange.fail(HttpFailed(f"{place.why}, and it cannot be resumed: HTTP {again.status_code}"))
                        return
                    else:
                        await self._read_events(again, exchange, place)
            except (ValueError, httpx2.LocalProtocolError):
                exchange.fail(HttpFailed(f"{place.why}, and it cannot be resumed: its event id fits no header"))
                return
            fruitless = fruitless + 1 if place.last == before else 0

    async def _no_stream(self, response: httpx2.Response) -> Meaning | None:
        """Read the refusal of a stream; None when it says that the session has ended."""
        said = await bodies.excerpt(response)
        if self._lost_by(response, said, _error_in(said)):
            return None
        return self._wire.refuse(response, "GET")

    async def _read_events(self, response: httpx2.Response, exchange: Exchange | None, place: _Place) -> None:
        """Take what a stream brings, to its end, or just past the response; raises nothing of the network's."""
        place.why = "its event stream ended without a response"
        try:
            with trio.CancelScope() as enough:
                async for event in httpx2.EventSource(response, max_event_size=self._max_message):
                    place.last = event.id or place.last
                    if event.retry is not None:
                        # In whole milliseconds first: one of any length is no number that can be divided.
                        place.pause = min(max(event.retry, 0), int(RESUME_MOST * 1000)) / 1000
                    if event.event == "message" and event.data:
                        self._take(event.data.encode(), exchange)
                    if exchange is not None and exchange.settled:
                        # On to its end, so that the connection can be used again, if that is near. See `bodies` for the scope.
                        enough.deadline = min(enough.deadline, trio.current_time() + END_SECONDS)
        except httpx2.SSEError as error:
            if exchange is not None:
                exchange.fail(HttpFailed(f"invalid response: {' '.join(str(error).split())}"))
        except httpx2.RequestError as error:
            place.why += f" ({words_of(error, self._endpoint.url)})"

    async def _ask_if_well(self) -> None:
        """Find out whether the server is still there; if not, the connection is lost. Once at a time for all that ask."""
        if self._probed is not None:
            await self._probed.wait()
            return
        self._probed = trio.Event()
        try:
            # Any answer does, also a refusal, so it need not be one that this revision knows.
            body = encode({"jsonrpc": "2.0", "id": "are-you-well", "method": "ping"})
            with trio.move_on_after(PROBE_SECONDS):
                async with self._endpoint.post(self._clients.control, body) as response:
                    said = await bodies.excerpt(response) if response.status_code >= 400 else b""
                    if not self._lost_by(response, said, _error_in(said)):
                        self._wire.refuse(response)
        except httpx2.TransportError as error:
            self._broke(error)
        except httpx2.RequestError as error:
            LOG.info("nobody knows whether it is well: %s", words_of(error, self._endpoint.url))
        finally:
            self._probed.set()
            self._probed = None

    # ── messages without a response ──────────────────────────────────────────────────────────────────────────────────

    async def _notify(self, method: str, body: bytes, headers: Mapping[str, str]) -> None:
        if method != "notifications/initialized":
            self._note(body)
            return
        assert self._nursery is not None
        taken = trio.Event()

        async def tell() -> None:
            with trio.move_on_after(INITIALIZED_MOST):
                await self._guarded(lambda: self._deliver(body, headers))
            taken.set()

        self._nursery.start_soon(tell)
        with trio.move_on_after(INITIALIZED_SECONDS):
            await taken.wait()
        self._initialized.set()

    async def _deliver(self, body: bytes, headers: Mapping[str, str]) -> None:
        try:
            async with self._endpoint.post(self._clients.control, body, headers) as response:
                if response.status_code >= 400:
                    said = await bodies.excerpt(response)
                    if not self._lost_by(response, said, _error_in(said)):
                        LOG.info("a message was not taken: %s", self._wire.refuse(response))
                else:
                    await bodies.drain(response)
        except httpx2.TransportError as error:
            self._broke(error)
        except httpx2.RequestError as error:
            LOG.info("a message was not sent: %s", words_of(error, self._endpoint.url))

    # ── what the server says by itself, before 2026-07-28 ────────────────────────────────────────────────────────────

    async def _background(self) -> None:
        await self._initialized.wait()
        if self._endpoint.session is not None and not self._endpoint.modern:
            await self._guarded(self._follow)

    async def _follow(self) -> None:
        """Keep a GET stream open, for as long as the server has one to offer."""
        delay, place, before = RESUME_FIRST, _Place(), False
        while True:
            try:
                async with self._endpoint.get(self._clients.control, place.last) as response:
                    if response.status_code >= 400:
                        meaning = await self._no_stream(response)
                        if meaning is None:
                            return
                        if response.status_code not in _FOR_A_WHILE:
                            if before:  # it offered one: is it the one that it was?
                                await self._ask_if_well()
                            return  # 405: it offers none
                        delay = max(delay, meaning.retry_after or 0)
                    elif not bodies.is_events(response):
                        return
                    else:
                        if before:
                            self._on_list_changed()
                            self._wire.on_missed()
                        self.worked.add("GET")
                        before, opened, known = True, trio.current_time(), place.last
                        await self._read_events(response, None, place)
                        if place.last != known or trio.current_time() - opened > RESUME_MOST:
                            delay = RESUME_FIRST
            except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.ProxyError) as error:
                self._broke(error)
                return
            except (ValueError, httpx2.LocalProtocolError):
                LOG.info("the event stream goes on without its last event: its id fits no header")
                place.last = None
            except httpx2.RequestError as error:
                LOG.info("the event stream could not be opened: %s", words_of(error, self._endpoint.url))
            await trio.sleep(max(delay, place.pause or 0.0))
            delay = min(2 * delay, RESUME_MOST)


_FOR_A_WHILE = frozenset({429, 500, 502, 503, 504})
"""A stream that is refused so is asked for again."""


@define
class _Place:
    """Where a stream is to go on.

    Args:
        last: id of the last event, or None.
        pause: seconds the server asks us to wait before that, or None.
        why: it ended.
    """

    last: str | None = None
    pause: float | None = None
    why: str = ""


def _error_in(body: bytes) -> dict[str, Any] | None:
    """The JSON-RPC error in the body of a refusal, or None."""
    try:
        message = decode(body)
    except ValueError:
        return None
    error = message.get("error") if isinstance(message, dict) and message.get("jsonrpc") == "2.0" else None
    return error if isinstance(error, dict) and isinstance(error.get("code"), int) else None
