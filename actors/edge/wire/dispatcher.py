"""`PipeDispatcher`: the ``mcp`` SDK's `Dispatcher` protocol over two pipes, native to trio.

Theory of operation. A `ClientSession` above knows MCP; this knows JSON-RPC 2.0, one message a line. Three tasks at most:

* the reader takes bytes, splits lines, parses, and settles: a response wakes exactly the caller that waits for it. A caller
  waits on a one-shot cell, not on a stream, so a round trip costs two task steps.
* the writer joins all that was queued since it last ran into one write. A lone caller writes by itself, without it; it is
  started when somebody cannot.
* the notifier hands notifications to the session (`hearing`).

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
from collections.abc import Callable, Mapping
from contextvars import copy_context
from typing import Any, Literal, cast

import trio
from mcp.shared.dispatcher import (
    CallOptions,
    OnNotify,
    OnNotifyIntercept,
    OnRequest,
    as_request_id,
    coerce_request_id,
)
from mcp.shared.exceptions import MCPError
from mcp_types import INTERNAL_ERROR, REQUEST_TIMEOUT, ErrorData
from opentelemetry.propagate import inject
from opentelemetry.trace import INVALID_SPAN, get_current_span

from ...ports import Expired, Expiry
from ...telemetry.names import REQUEST_ID
from ...telemetry.notes import current
from .hearing import Hearing
from .inbound import InboundContext
from .lines import DEFAULT_MAX_LINE, LineSplitter
from .outbox import MAX_OUTBOX, Outbox
from .rpc import CLOSED, LATE, LOG, Call, ConnectionClosed, decode, encode, error_data, meant_for

__all__ = ["PipeDispatcher"]

MAX_INBOUND = 256
"""Requests of the server handled at a time; those beyond are refused."""

_NO_OPTIONS: CallOptions = {}

_CHUNK = 64 * 1024
_LINES_A_STEP = 128


class PipeDispatcher(Hearing):
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
        on_sign: called, never waiting, when either was set.
        garbage, overlong, dropped: how many lines were no messages, too long, or notifications nobody had time for.
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
        super().__init__(InboundContext, MAX_INBOUND, on_list_changed, forward=forward)
        self.failed = trio.Event()
        self.failed_on: Literal["stdin", "stdout"] = "stdin"
        self.closed = trio.Event()
        self.on_sign: Callable[[], None] = lambda: None
        self.garbage = self.overlong = 0
        self._last_garbage = b""
        self._receive = receive
        self._splitter = LineSplitter(max_line, self._on_overlong)
        self._max_line = max_line
        self._max_outbox = max_outbox
        self._next_id = 0
        self._pending: dict[Any, Call] = {}
        self._outbox = Outbox(send, max_outbox, self._fail)

    @property
    def last_garbage(self) -> str:
        """The last line that was no message (its beginning), or empty."""
        return self._last_garbage.decode("utf-8", "replace").strip()

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
        await self._refuse_when_failed()
        opts = opts or {}
        call, timeout = Call(opts.get("on_progress")), opts.get("timeout")
        if timeout is None:
            return await self._request(method, params, opts, call)
        with trio.move_on_after(timeout):
            return await self._request(method, params, opts, call)
        raise MCPError(code=REQUEST_TIMEOUT, message=f"Request {method!r} timed out")

    async def send_directly(self, method: str, params: Mapping[str, Any], expiry: Expiry) -> dict[str, Any]:
        """As `send_raw_request`, by a deadline that is no scope; the server's progress extends it.

        Args:
            method, params: as in JSON-RPC.
            expiry: the deadline; it is not waited in, but for room in a full queue.

        Raises:
            Expired: it is past; the server was told.
            ConnectionClosed, MCPError, ValueError, RuntimeError: as there.
        """
        await self._refuse_when_failed()
        call = Call(None, expiry.progressed if expiry.listens else None)
        if self._outbox.size >= self._max_outbox:
            return cast("dict[str, Any]", await expiry.within(lambda: self._request(method, params, _NO_OPTIONS, call)))
        expiry.settle = call.expire
        return await self._request(method, params, _NO_OPTIONS, call)

    async def _refuse_when_failed(self) -> None:
        if self._nursery is None and not self.closed.is_set():
            raise RuntimeError("a request before run()")
        await trio.lowlevel.checkpoint_if_cancelled()
        if self.failed.is_set():
            await trio.lowlevel.checkpoint()
            raise ConnectionClosed

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """Send a notification; waits only for room in the queue. Dropped when the connection is lost."""
        await trio.lowlevel.checkpoint()
        await self._outbox.have_room()
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if params is not None:
            message["params"] = params
        self._outbox.post(encode(message), alone=not self._pending)

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
                context = copy_context()  # not that of whoever is the first who cannot write by himself
                self._outbox.ready(lambda: context.run(nursery.start_soon, self._outbox.write))
                if self._forward:
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
        self.on_sign()

    def _fail(self) -> None:
        self.failed.set()
        self.on_sign()

    # ── requests ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions, call: Call
    ) -> dict[str, Any]:
        wire_id, key = self._identify(opts)
        if (note := current()) is not None:
            note.put(REQUEST_ID, str(wire_id))
        message: dict[str, Any] = {"jsonrpc": "2.0", "id": wire_id, "method": method}
        if params := self._with_meta(params, wire_id if call.on_progress or call.heard else None):
            message["params"] = params
        line = encode(message)
        self._pending[key] = call
        ticket: int | None = None
        try:
            await self._outbox.have_room()
            ticket = self._outbox.post(line, alone=len(self._pending) == 1)
            outcome = await call.wait()
            if outcome is LATE:
                raise Expired
        except (trio.Cancelled, Expired):
            unanswered = call.outcome is None or call.outcome is LATE
            written = unanswered and ticket is not None and not self._outbox.take_back(ticket)
            if written and opts.get("cancel_on_abandon", True):
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
                noise = self._splitter.noise(data)
                if noise is not None:
                    self.garbage += noise[0]
                    self._last_garbage = noise[1][:200] or self._last_garbage
                for number, line in enumerate(self._splitter.feed(data) if noise is None else (), 1):
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
        # No object is no message, whatever else it is: most of what servers print by mistake, sometimes megabytes a second.
        if not line.startswith(b"{") and not line.lstrip().startswith(b"{"):
            if line.strip():
                self._on_garbage(line)
            return
        try:
            message = decode(line)
        except ValueError as error:
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

    def _on_garbage(self, line: bytes) -> None:
        self.garbage += 1
        self._last_garbage = line[:200]

    def _on_overlong(self, head: bytes) -> None:
        self.overlong += 1
        self._settle_unreadable(head, f"its response is longer than {self._max_line} bytes")

    def _settle_unreadable(self, head: bytes, why: str) -> None:
        """Fail the call whose response a line was meant to be, if its head says so: it would else wait for its deadline."""
        call = self._pending.get(meant_for(head))
        if call is not None:
            call.settle(ErrorData(code=INTERNAL_ERROR, message=f"invalid response: {why}"))

    # ── for `Hearing` ────────────────────────────────────────────────────────────────────────────────────────────────

    def _call_of(self, key: Any) -> Call | None:
        return self._pending.get(key)

    def _post(self, body: bytes) -> None:
        self._outbox.post(body)

    def _is_full(self) -> bool:
        return self._outbox.size >= self._max_outbox

    def _takes_requests(self) -> bool:
        # One that neither reads nor stops asking is owed nothing more.
        return self._outbox.size < 2 * self._max_outbox
