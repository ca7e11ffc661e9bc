"""`PipeDispatcher`: the ``mcp`` SDK's `Dispatcher` protocol over two pipes, native to trio.

Theory of operation. A `ClientSession` above knows MCP; this knows JSON-RPC 2.0, one message a line. Three tasks at most:

* the reader takes bytes, splits lines, parses, and settles: a response wakes exactly the caller that waits for it. A caller
  waits on a one-shot cell, not on a stream, so a round trip costs two task steps.
* the writer joins all that was queued since it last ran into one write. A lone caller writes by itself, without it.
* the notifier hands notifications to the session one after the other, in the order received. A storm of them costs no tasks:
  the queue is bounded and drops its oldest.

An inbound request (a ping) gets a task of its own, up to a limit.

    a request is   queued    cancelling it takes it back (`outbox`), and the server never hears of it
                   written   cancelling it sends ``notifications/cancelled`` (unless it may not be cancelled)
                   settled   by its response, an error, or the loss of the connection: whatever is first

What waits: a caller whose message does not fit in the queue any more, under its own scope. What never waits: settling,
cancelling, answering, closing. Once `failed` is set (end of stream, or nobody reads our pipe any more), the connection is of
no use; `shut` settles all that is pending with `ConnectionClosed`, in the same step.

The differences to the SDK's own dispatcher are deliberate: progress callbacks run in the caller's task, in order and before the
result; a response that cannot be read fails its call instead of leaving it to its deadline.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Callable, Mapping
from typing import Any, Literal

import trio
from mcp.shared.dispatcher import (
    CallOptions,
    OnNotify,
    OnNotifyIntercept,
    OnRequest,
    as_request_id,
    coerce_request_id,
    run_notify_intercept,
)
from mcp.shared.exceptions import MCPError
from mcp.shared.jsonrpc_dispatcher import (
    cancelled_request_id_from_params,
    handler_exception_to_error_data,
    progress_token_from_params,
)
from mcp_types import INTERNAL_ERROR, REQUEST_TIMEOUT, ErrorData
from opentelemetry.propagate import inject
from opentelemetry.trace import INVALID_SPAN, get_current_span

from ...telemetry.names import REQUEST_ID
from ...telemetry.notes import current
from .inbound import InboundContext
from .lines import DEFAULT_MAX_LINE, LineSplitter
from .outbox import MAX_OUTBOX, Outbox
from .rpc import CLOSED, LOG, Call, ConnectionClosed, decode, encode, error_data, finite, meant_for

__all__ = ["PipeDispatcher"]

MAX_INBOUND = 256
"""Requests of the server handled at a time; those beyond are refused."""

MAX_NOTICES = 1024
"""Notifications waiting for the session; beyond, the oldest is dropped."""

_CHUNK = 64 * 1024
_LINES_A_STEP = 128
_LIST_CHANGED = "notifications/tools/list_changed"


class PipeDispatcher:
    """An ``mcp`` `Dispatcher` over a pipe to and a pipe from a server.

    Args:
        receive: the server's stdout.
        send: the server's stdin.
        on_list_changed: called, never waiting, for each tools/list_changed that no subscription took; the session then does
            not see it. None hands it to the session like any other.
        forward: False hands no notification to the session (subscriptions still get theirs): for one that nobody listens to.
        max_line: longest message accepted, in bytes.
        max_outbox: bytes queued before callers wait.

    Attributes:
        failed: set when the connection is of no use any more; `failed_on` is then the pipe that the server closed.
        closed: set by `shut`: everything pending is settled.
        garbage, overlong, dropped: how many lines were no messages, too long, or notifications nobody had time for.
        last_garbage: the last line that was no message (its beginning), or empty.
    """

    def __init__(
        self,
        receive: trio.lowlevel.FdStream,
        send: trio.lowlevel.FdStream,
        *,
        on_list_changed: Callable[[], None] | None = None,
        forward: bool = True,
        max_line: int = DEFAULT_MAX_LINE,
        max_outbox: int = MAX_OUTBOX,
    ) -> None:
        self.on_list_changed = on_list_changed
        self._forward = forward
        self.failed = trio.Event()
        self.failed_on: Literal["stdin", "stdout"] = "stdin"
        self.closed = trio.Event()
        self.garbage = self.overlong = self.dropped = 0
        self.last_garbage = ""
        self._receive = receive
        self._splitter = LineSplitter(max_line, self._on_overlong)
        self._max_line = max_line
        self._max_outbox = max_outbox
        self._next_id = 0
        self._pending: dict[Any, Call] = {}
        self._inbound: dict[Any, InboundContext] = {}
        self._outbox = Outbox(send, max_outbox, self.failed.set)
        self._notices: deque[tuple[str, dict[str, Any] | None]] = deque()
        self._noticed = trio.lowlevel.ParkingLot()
        self._on_request: OnRequest | None = None
        self._intercept: OnNotifyIntercept | None = None
        self._nursery: trio.Nursery | None = None

    @property
    def written(self) -> int:
        """How many bytes the server's stdin took."""
        return self._outbox.written

    # ── what the session asks ────────────────────────────────────────────────────────────────────────────────────────

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """Send a request and wait for its result, in the caller's task.

        Args:
            method, params: as in JSON-RPC.
            opts: ``request_id``, ``timeout`` (seconds, from now to the answer, a blocked write included),
                ``cancel_on_abandon``, ``on_progress``; what only HTTP understands is ignored.

        Returns:
            The result object, as received.

        Raises:
            ConnectionClosed: the connection is lost, or was before.
            MCPError: the server's error; ``REQUEST_TIMEOUT``; or a response that is none.
            ValueError: the ``request_id`` is in flight, or the parameters cannot be written as JSON.
            RuntimeError: `run` was never started.
        """
        if self._nursery is None and not self.closed.is_set():
            raise RuntimeError("send_raw_request before run()")
        await trio.lowlevel.checkpoint_if_cancelled()
        if self.failed.is_set():
            await trio.lowlevel.checkpoint()
            raise ConnectionClosed
        opts = opts or {}
        timeout = opts.get("timeout")
        if timeout is None:
            return await self._request(method, params, opts)
        with trio.move_on_after(timeout):
            return await self._request(method, params, opts)
        raise MCPError(code=REQUEST_TIMEOUT, message=f"Request {method!r} timed out")

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Send a notification; waits only for room in the queue. Dropped when the connection is lost."""
        await trio.lowlevel.checkpoint()
        await self._outbox.have_room()
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        self._outbox.post(encode(message))

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: Any = trio.TASK_STATUS_IGNORED,
    ) -> None:
        """Receive until the stream ends or `shut` is called; settles everything pending before it returns. Once only."""
        self._on_request = on_request
        self._intercept = on_notify_intercept
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                nursery.start_soon(self._outbox.write)
                nursery.start_soon(self._notify_loop, on_notify)
                task_status.started()
                if not self.closed.is_set():
                    await self._read_loop()
                if not self.failed.is_set():
                    self.failed_on = "stdout"
                self.shut()
        finally:
            self.shut()

    def shut(self) -> None:
        """End it from outside: settle everything pending, in this step, and let `run` return. Idempotent."""
        self.failed.set()
        if self.closed.is_set():
            return
        self.closed.set()
        for call in self._pending.values():
            call.settle(CLOSED)
        self._pending.clear()
        self._outbox.end()
        if self._nursery is not None:
            self._nursery.cancel_scope.cancel()

    # ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _request(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions) -> dict[str, Any]:
        wire_id, key = self._identify(opts)
        if (note := current()) is not None:
            note.put(REQUEST_ID, str(wire_id))
        call = Call(opts.get("on_progress"))
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": wire_id, "method": method}
        if params := self._with_meta(params, None if call.on_progress is None else wire_id):
            message["params"] = params
        line = encode(message)
        self._pending[key] = call
        ticket: int | None = None
        try:
            await self._outbox.have_room()
            ticket = self._outbox.post(line, alone=len(self._pending) == 1)
            outcome = await call.wait()
        except trio.Cancelled:
            unanswered = ticket is not None and call.outcome is None and not self._outbox.take_back(ticket)
            if unanswered and opts.get("cancel_on_abandon", True):
                reason = "the caller gave up"
                cancel = {"requestId": wire_id, "reason": reason}
                self._outbox.post(encode({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": cancel}))
            raise
        finally:
            if self._pending.get(key) is call:
                del self._pending[key]
        if isinstance(outcome, dict):
            return outcome
        if outcome is CLOSED:
            raise ConnectionClosed
        raise MCPError(code=outcome.code, message=outcome.message, data=outcome.data)

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

    def _with_meta(self, params: Mapping[str, Any] | None, token: Any) -> Mapping[str, Any] | None:
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

    # ── reading ──────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _read_loop(self) -> None:
        while True:
            try:
                data = os.read(self._receive.fileno(), _CHUNK)
            except BlockingIOError:
                data = None
            except OSError:
                return
            if data is not None:
                if not data:
                    return
                for number, line in enumerate(self._splitter.feed(data), 1):
                    self._on_line(line)
                    if number % _LINES_A_STEP == 0:
                        await trio.lowlevel.checkpoint()
                if len(data) == _CHUNK:
                    await trio.lowlevel.checkpoint()
                    continue
            try:
                await trio.lowlevel.wait_readable(self._receive.fileno())
            except (OSError, trio.ClosedResourceError):
                return

    def _on_line(self, line: bytes) -> None:
        """Take one line, whatever it is: nothing in it ends the reader."""
        try:
            message = decode(line)
        except ValueError as error:
            if line.strip():
                self._on_garbage(line)
                self._settle_unreadable(line, f"its response is not valid JSON ({error})")
            return
        try:
            self._on_message(message, line)
        except Exception:
            LOG.exception("a message could not be taken and is dropped: %r", line[:200])
            self._on_garbage(line)
            self._settle_unreadable(line, "its response cannot be read")

    def _on_message(self, message: Any, line: bytes) -> None:
        if type(message) is not dict or message.get("jsonrpc") != "2.0":
            self._on_garbage(line)
            return
        method = message.get("method")
        params = message.get("params")
        if isinstance(method, str) and (params is None or type(params) is dict):
            request_id = as_request_id(message.get("id"))
            if request_id is None:
                self._on_notification(method, params)
            else:
                self._on_inbound(request_id, method, params)
        elif "id" in message and ("result" in message or "error" in message):
            self._on_response(message)
        else:
            self._on_garbage(line)

    def _on_response(self, message: dict[str, Any]) -> None:
        request_id = as_request_id(message["id"])
        call = None if request_id is None else self._pending.get(coerce_request_id(request_id))
        if call is None:
            return  # unknown, or late: its caller gave up
        result = message.get("result")
        if type(result) is dict:
            call.settle(result)
        elif "error" in message:
            call.settle(error_data(message["error"]))
        else:
            what = "null" if result is None else f"a {type(result).__name__}"
            call.settle(
                ErrorData(code=INTERNAL_ERROR, message=f"invalid response: its result is {what}, not an object")
            )

    def _on_notification(self, method: str, params: dict[str, Any] | None) -> None:
        if method == "notifications/progress":
            self._on_progress(params or {})
        elif method == "notifications/cancelled":
            cancelled = cancelled_request_id_from_params(params)
            if cancelled is not None and (inbound := self._inbound.get(coerce_request_id(cancelled))) is not None:
                inbound.cancel()
        if run_notify_intercept(self._intercept, method, params):
            return
        if method == _LIST_CHANGED and self.on_list_changed is not None:
            self.on_list_changed()
            return
        if not self._forward:
            return
        if len(self._notices) >= MAX_NOTICES:
            self._notices.popleft()
            self.dropped += 1
        self._notices.append((method, params))
        self._noticed.unpark()

    def _on_progress(self, params: dict[str, Any]) -> None:
        token = as_request_id(params.get("progressToken"))
        call = None if token is None else self._pending.get(coerce_request_id(token))
        progress = finite(params.get("progress"))
        if call is not None and progress is not None:
            message = params.get("message")
            call.tell(progress, finite(params.get("total")), message if isinstance(message, str) else None)

    async def _notify_loop(self, on_notify: OnNotify) -> None:
        while True:
            if not self._notices:
                await self._noticed.park()
                continue
            method, params = self._notices.popleft()
            try:
                await on_notify(InboundContext(self, None, None), method, params)
            except Exception:
                LOG.exception("the handler of notification %r raised", method)
            await trio.lowlevel.checkpoint()

    def _on_garbage(self, line: bytes) -> None:
        self.garbage += 1
        self.last_garbage = line[:200].decode("utf-8", "replace").strip()

    def _on_overlong(self, head: bytes) -> None:
        self.overlong += 1
        self._settle_unreadable(head, f"its response is longer than {self._max_line} bytes")

    def _settle_unreadable(self, head: bytes, why: str) -> None:
        """Fail the call whose response a line was meant to be, if its head says so: it would else wait for its deadline."""
        call = self._pending.get(meant_for(head))
        if call is not None:
            call.settle(ErrorData(code=INTERNAL_ERROR, message=f"invalid response: {why}"))

    # ── requests of the server ───────────────────────────────────────────────────────────────────────────────────────

    def _on_inbound(self, request_id: Any, method: str, params: dict[str, Any] | None) -> None:
        if len(self._inbound) >= MAX_INBOUND or self._outbox.size >= self._max_outbox:
            if (
                self._outbox.size < 2 * self._max_outbox
            ):  # it neither reads nor stops asking: nothing more is owed to it
                self._answer(request_id, "error", {"code": INTERNAL_ERROR, "message": "too many requests at once"})
            return
        context = InboundContext(self, request_id, progress_token_from_params(params))
        self._inbound[coerce_request_id(request_id)] = context
        assert self._nursery is not None
        self._nursery.start_soon(self._handle, context, method, params)

    async def _handle(self, context: InboundContext, method: str, params: dict[str, Any] | None) -> None:
        assert self._on_request is not None
        kind = "error"
        answer: Any
        with context.scope:
            try:
                answer = await self._on_request(context, method, params)
                kind = "result"
            except Exception as error:
                data = handler_exception_to_error_data(error)
                if data is None:
                    LOG.exception("the handler of request %r raised", method)
                    data = ErrorData(code=0, message=str(error))
                answer = data.model_dump(mode="json", exclude_none=True)
            finally:
                context.close()
                key = coerce_request_id(context.request_id)
                if self._inbound.get(key) is context:
                    del self._inbound[key]
            if not context.cancelled:
                self._answer(context.request_id, kind, answer)

    def _answer(self, request_id: Any, kind: str, answer: Any) -> None:
        try:
            line = encode({"jsonrpc": "2.0", "id": request_id, kind: answer})
        except ValueError as error:
            failure = {"code": INTERNAL_ERROR, "message": str(error)}
            line = encode({"jsonrpc": "2.0", "id": request_id, "error": failure})
        self._outbox.post(line)
