"""`Conversation`: what both HTTP transports have in common, as the ``mcp`` SDK's `Dispatcher` protocol, native to trio.

Theory of operation. Above is a `ClientSession`; below, each message is a request of HTTP, with a task of its own in the
nursery of `run`. A caller waits on a one-shot cell (`Call`), so it is freed in the step in which its scope is cancelled,
whatever the network does; its task is cancelled too, which closes the response and gives the connection back. So a call that is
cancelled or out of time holds no connection, and a message that hangs holds up no other one.

    an exchange is  begun      cancelling its caller cancels its task; in the eras before 2026-07-28 the server is told as well
                    settled    by a response on any stream, a refusal, or the loss of the connection: whatever is first

What goes out without a caller (notices that a call was cancelled, answers to the server's requests) is carried by a few
couriers, each message within `NOTE_SECONDS`, from a queue that drops its oldest.

The connection is lost (`lose`) by a refused, reset or broken request, by a 401, and by the end of the session; then all that is
pending is settled in the same step.
"""

from __future__ import annotations

from abc import abstractmethod
from collections import deque
from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import trio
from attrs import define, field
from mcp.shared.dispatcher import (
    CallOptions,
    OnNotify,
    OnNotifyIntercept,
    OnRequest,
    as_request_id,
    coerce_request_id,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.transport_context import TransportContext
from mcp_types import INTERNAL_ERROR, REQUEST_TIMEOUT, ErrorData
from opentelemetry.propagate import inject
from opentelemetry.trace import INVALID_SPAN, get_current_span

from ....telemetry.names import REQUEST_ID
from ....telemetry.notes import current
from ..hearing import Hearing
from ..inbound import InboundContext
from ..rpc import CLOSED, LOG, Call, ConnectionClosed, decode, encode, error_data

__all__ = ["Conversation", "Exchange"]

COURIERS = 4
NOTE_SECONDS = 5.0
"""Within which a server takes a message that nobody waits for."""

MAX_NOTES = 1024
MAX_INBOUND = 64

IN_VAIN_SECONDS = 10.0
"""A caller that gives up sooner has changed its mind, which says nothing of the server."""

_OF_OURS = frozenset({"subscriptions/listen", "ping"})
"""Requests that no caller waits for."""

_FAILED = ErrorData(code=INTERNAL_ERROR, message="see Exchange.failure")


class _Context(InboundContext):
    transport = TransportContext(kind="streamable-http", can_send_request=True)


@define(eq=False)
class Exchange:
    """One request on its way.

    Args:
        id: as the server sees it.
        method: of JSON-RPC.
        body: the message.
        headers: of this message alone.
        call: what its caller waits on.
        scope: of its task.
        failure: why there will be no response.
    """

    id: Any
    method: str
    body: bytes
    headers: Mapping[str, str]
    call: Call
    scope: trio.CancelScope = field(factory=trio.CancelScope)
    failure: MCPError | None = None

    @property
    def settled(self) -> bool:
        """Whether its caller has what it waits for."""
        return self.call.outcome is not None

    def fail(self, failure: MCPError) -> None:
        """There will be no response; the first outcome stays."""
        if not self.settled:
            self.failure = failure
            self.call.settle(_FAILED)


class Conversation(Hearing):
    """The base of a dispatcher over HTTP.

    Args:
        on_list_changed: called, never waiting, for each tools/list_changed that no subscription took.
        on_lost: called once, when it ended by itself.

    Attributes:
        heard: trio clock time at which the server was heard last.
        worked: methods that this connection's login got a result for, and ``GET`` if it got a stream.
        closed: everything pending is settled, and nothing more can be sent.
    """

    def __init__(self, on_list_changed: Callable[[], None], on_lost: Callable[[], None]) -> None:
        super().__init__(_Context, MAX_INBOUND, on_list_changed)
        self.heard = trio.current_time()
        self.worked: set[str] = set()
        self.closed = trio.Event()
        self._on_lost = on_lost
        self._asked = self._in_vain = self.heard
        self._next_id = 0
        self._pending: dict[Any, Exchange] = {}
        self._notes: deque[bytes] = deque(maxlen=MAX_NOTES)
        self._noted = trio.lowlevel.ParkingLot()

    # ── what a transport fills in ────────────────────────────────────────────────────────────────────────────────────

    @abstractmethod
    async def _carry(self, exchange: Exchange) -> None:
        """Send a request, and take what comes back with it. Runs in its own task, which its scope cancels."""

    @abstractmethod
    async def _deliver(self, body: bytes, headers: Mapping[str, str]) -> None:
        """Send a message that has no response. Raises nothing."""

    @abstractmethod
    async def _background(self) -> None:
        """What runs beside; returns when there is nothing to do."""

    @abstractmethod
    def _stamp(self, method: str, headers: Mapping[str, str]) -> None:
        """A message of this method is about to be sent."""

    def _tells_of_cancelling(self) -> bool:
        """Whether the server is told that a call was cancelled; else the end of its stream says so."""
        return True

    # ── what the session asks ────────────────────────────────────────────────────────────────────────────────────────

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Send a request and wait for its result, in the caller's task.

        Args:
            method, params: as in JSON-RPC.
            opts: ``request_id``, ``timeout`` (seconds), ``cancel_on_abandon``, ``on_progress``, ``headers``.

        Returns:
            The result object, as received.

        Raises:
            ConnectionClosed: the connection is lost, or was before.
            HttpFailed: it got no answer of JSON-RPC, and the connection is well.
            MCPError: the server's error; ``REQUEST_TIMEOUT``; or a response that is none.
            ValueError: the ``request_id`` is in flight, or the parameters cannot be written as JSON.
        """
        await trio.lowlevel.checkpoint()
        if self.closed.is_set() or self._nursery is None:
            raise ConnectionClosed
        opts = opts or {}
        timeout = opts.get("timeout")
        if timeout is None:
            return await self._request(method, params, opts)
        with trio.move_on_after(timeout):
            return await self._request(method, params, opts)
        raise MCPError(code=REQUEST_TIMEOUT, message=f"Request {method!r} timed out")

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Send a notification; dropped when the connection is lost. A checkpoint."""
        await trio.lowlevel.checkpoint()
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        headers = (opts or {}).get("headers") or {}
        self._stamp(method, headers)
        await self._notify(method, encode(message), headers)

    async def _notify(self, method: str, body: bytes, headers: Mapping[str, str]) -> None:
        self._note(body)

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: Any = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Converse until it is lost; settles everything pending before it returns. Once only."""
        self._on_request = on_request
        self._intercept = on_notify_intercept
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                for _ in range(COURIERS):
                    nursery.start_soon(self._courier)
                nursery.start_soon(self._notify_loop, on_notify)
                nursery.start_soon(self._background)
                task_status.started()
                await self.closed.wait()
                nursery.cancel_scope.cancel()
        finally:
            self.shut()

    def shut(self) -> None:
        """End it from outside: settle everything pending, in this step, and let `run` return. Idempotent."""
        if self.closed.is_set():
            return
        self.closed.set()
        for exchange in self._pending.values():
            exchange.call.settle(CLOSED)
        self._pending.clear()
        if self._nursery is not None:
            self._nursery.cancel_scope.cancel()

    def lose(self) -> None:
        """It ended by itself."""
        if not self.closed.is_set():
            self._on_lost()
            self.shut()

    @property
    def session_id(self) -> str | None:
        """The id that the server gave this session, or None."""
        return None

    @property
    def silent_since(self) -> float:
        """The trio clock time since which nothing was heard; once something was asked since, that of the first such request.

        As long as all that asked since are waiting, it is now: a tool that blocks its whole server may take as long as its
        callers allow. Once one has waited in vain, callers that come and go do not hide that nobody gets an answer.
        """
        if self._in_vain <= self.heard and any(each.method not in _OF_OURS for each in self._pending.values()):
            return trio.current_time()
        return max(self.heard, self._asked)

    # ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _request(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions) -> dict[str, Any]:
        wire_id, key = self._identify(opts)
        if (note := current()) is not None:
            note.put(REQUEST_ID, str(wire_id))
        call = Call(opts.get("on_progress"))
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": wire_id, "method": method}
        if params := _with_meta(params, None if call.on_progress is None else wire_id):
            message["params"] = params
        headers = opts.get("headers") or {}
        exchange = Exchange(wire_id, method, encode(message), headers, call)
        self._stamp(method, headers)
        began = trio.current_time()
        if self._asked < self.heard and method not in _OF_OURS:
            self._asked = began
        self._pending[key] = exchange
        assert self._nursery is not None
        self._nursery.start_soon(self._exchange, exchange)
        try:
            outcome = await call.wait()
        except trio.Cancelled:
            exchange.scope.cancel()
            if method not in _OF_OURS and trio.current_time() - began >= IN_VAIN_SECONDS:
                self._in_vain = trio.current_time()
            if call.outcome is None and opts.get("cancel_on_abandon", True) and self._tells_of_cancelling():
                cancel = {"requestId": wire_id, "reason": "the caller gave up"}
                self._note(encode({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel}))
            raise
        finally:
            if self._pending.get(key) is exchange:
                del self._pending[key]
        if isinstance(outcome, dict):
            return outcome
        if outcome is CLOSED:
            raise ConnectionClosed
        if outcome is _FAILED:
            assert exchange.failure is not None
            raise exchange.failure
        raise MCPError(code=outcome.code, message=outcome.message, data=outcome.data)

    async def _exchange(self, exchange: Exchange) -> None:
        with exchange.scope:
            await self._guarded(lambda: self._carry(exchange))

    async def _guarded(self, work: Callable[[], Awaitable[None]]) -> None:
        """A defect in one message must not end the others."""
        try:
            await work()
        except Exception:
            LOG.exception("a message over HTTP could not be handled")

    def _identify(self, opts: CallOptions) -> tuple[Any, Any]:
        supplied = opts.get("request_id")
        if supplied is not None:
            key = coerce_request_id(supplied)
            if key in self._pending:
                raise ValueError(f"request id {supplied!r} is already in flight")
            return supplied, key
        self._next_id += 1
        while self._next_id in self._pending:
            self._next_id += 1
        return self._next_id, self._next_id

    # ── messages nobody waits for ────────────────────────────────────────────────────────────────────────────────────

    def _note(self, body: bytes) -> None:
        self._notes.append(body)
        self._noted.unpark()

    async def _courier(self) -> None:
        while True:
            if not self._notes:
                await self._noted.park()
                continue
            body = self._notes.popleft()
            with trio.move_on_after(NOTE_SECONDS):
                await self._guarded(lambda body=body: self._deliver(body, {}))  # type: ignore[misc]

    # ── what comes in ────────────────────────────────────────────────────────────────────────────────────────────────

    def _take(self, text: bytes, exchange: Exchange | None) -> None:
        """Take one message, or a list of them, whatever it is: nothing in it ends a stream.

        Args:
            text: as received.
            exchange: the request whose response carried it, or None.
        """
        self.heard = trio.current_time()
        try:
            message = decode(text)
        except ValueError as error:
            if exchange is not None:
                exchange.fail(_invalid(f"its response is not valid JSON ({error})"))
            return
        for each in message if isinstance(message, list) else (message,):
            try:
                self._take_one(each, exchange)
            except Exception:
                # Not what it says: it may be the result of a call.
                LOG.exception("a message of %d bytes could not be taken and is dropped", len(text))

    def _take_one(self, message: Any, exchange: Exchange | None) -> None:
        if type(message) is not dict or message.get("jsonrpc") != "2.0":
            return
        method, params = message.get("method"), message.get("params")
        if isinstance(method, str) and (params is None or type(params) is dict):
            request_id = as_request_id(message.get("id"))
            if request_id is None:
                self._on_notification(method, params)
            else:
                self._on_inbound(request_id, method, params)
        elif "result" in message or "error" in message:
            self._on_response(message, exchange)

    def _on_response(self, message: dict[str, Any], exchange: Exchange | None) -> None:
        request_id = as_request_id(message.get("id"))
        if request_id is not None:
            exchange = self._pending.get(coerce_request_id(request_id))
        elif "error" not in message:
            return  # an error without an id is of the request that it answers
        if exchange is None:
            return  # unknown, or late: its caller gave up
        result = message.get("result")
        if type(result) is dict:
            self.worked.add(exchange.method)
            exchange.call.settle(result)
        elif "error" in message:
            exchange.call.settle(error_data(message["error"]))
        else:
            what = "null" if result is None else f"a {type(result).__name__}"
            exchange.fail(_invalid(f"its result is {what}, not an object"))

    # ── for `Hearing` ────────────────────────────────────────────────────────────────────────────────────────────────

    def _call_of(self, key: Any) -> Call | None:
        exchange = self._pending.get(key)
        return None if exchange is None else exchange.call

    def _post(self, body: bytes) -> None:
        self._note(body)

    def _takes_requests(self) -> bool:
        return not self.closed.is_set()


def _invalid(why: str) -> MCPError:
    return MCPError(code=INTERNAL_ERROR, message=f"invalid response: {why}")


def _with_meta(params: Mapping[str, Any] | None, token: Any) -> Mapping[str, Any] | None:
    """The parameters with the progress token and the caller's trace context (SEP-414) in ``_meta``, where there are any."""
    traced = get_current_span() is not INVALID_SPAN
    if token is None and not traced:
        return params
    params = dict(params or {})
    meta = dict(params.get("_meta") or {})
    if token is not None:
        meta["progressToken"] = token
    if traced:
        inject(meta)
    if meta:
        params["_meta"] = meta
    return params
