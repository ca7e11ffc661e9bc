"""`Hearing`: what a server says by itself, whatever it comes over: its notifications and its requests.

    it says          then
    progress         it goes to the call that waits for it, and to the session
    cancelled        the request of its own that it names is given up, and not answered
    a notification   the session has it, one after the other in the order received. A storm of them costs no tasks: the queue is
                     bounded and drops its oldest
    a request        gets a task of its own, up to a limit; those beyond it are refused

Nothing here waits for the server.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import deque
from collections.abc import Callable
from typing import Any

import trio
from mcp.shared.dispatcher import (
    OnNotify,
    OnNotifyIntercept,
    OnRequest,
    as_request_id,
    coerce_request_id,
    run_notify_intercept,
)
from mcp.shared.jsonrpc_dispatcher import (
    cancelled_request_id_from_params,
    handler_exception_to_error_data,
    progress_token_from_params,
)
from mcp_types import INTERNAL_ERROR, ErrorData

from .inbound import InboundContext
from .rpc import LOG, Call, encode, finite

__all__ = ["Hearing"]

MAX_NOTICES = 1024
"""Notifications waiting for the session; beyond, the oldest is dropped."""

_LIST_CHANGED = "notifications/tools/list_changed"


class Hearing(ABC):
    """The half of a dispatcher that listens.

    Args:
        context: makes the context of a message, from the dispatcher, the request's id and the progress token.
        max_inbound: requests of the server handled at a time; those beyond are refused.
        on_list_changed: called, never waiting, for each tools/list_changed that no subscription took; the session then does
            not see it. None hands it to the session like any other.
        forward: False hands no notification to the session (subscriptions still get theirs): for one that nobody listens to.

    Attributes:
        dropped: how many notifications nobody had time for.
    """

    def __init__(
        self,
        context: Callable[[Any, Any, Any], InboundContext],
        max_inbound: int,
        on_list_changed: Callable[[], None] | None,
        *,
        forward: bool = True,
    ) -> None:
        self.on_list_changed = on_list_changed
        self.dropped = 0
        self._context = context
        self._max_inbound = max_inbound
        self._forward = forward
        self._inbound: dict[Any, InboundContext] = {}
        self._notices: deque[tuple[str, dict[str, Any] | None]] = deque()
        self._noticed = trio.lowlevel.ParkingLot()
        self._on_request: OnRequest | None = None
        self._intercept: OnNotifyIntercept | None = None
        self._nursery: trio.Nursery | None = None

    # ── what a dispatcher fills in ───────────────────────────────────────────────────────────────────────────────────

    @abstractmethod
    def _call_of(self, key: Any) -> Call | None:
        """The call in flight of that request id, or None."""

    @abstractmethod
    def _post(self, body: bytes) -> None:
        """Send a message that nobody waits for. Never waits."""

    def _takes_requests(self) -> bool:
        """Whether the server is owed an answer, even a refusal."""
        return True

    def _is_full(self) -> bool:
        """Whether there is no room for more answers."""
        return False

    # ── notifications ────────────────────────────────────────────────────────────────────────────────────────────────

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
        call = None if token is None else self._call_of(coerce_request_id(token))
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
                await on_notify(self._context(self, None, None), method, params)
            except Exception:
                LOG.exception("the handler of notification %r raised", method)
            await trio.lowlevel.checkpoint()

    # ── requests of the server ───────────────────────────────────────────────────────────────────────────────────────

    def _on_inbound(self, request_id: Any, method: str, params: dict[str, Any] | None) -> None:
        if self._nursery is None or not self._takes_requests():
            return
        if len(self._inbound) >= self._max_inbound or self._is_full():
            self._answer(request_id, "error", {"code": INTERNAL_ERROR, "message": "too many requests at once"})
            return
        context = self._context(self, request_id, progress_token_from_params(params))
        self._inbound[coerce_request_id(request_id)] = context
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
                answer = {"code": data.code, "message": data.message}
                if data.data is not None:
                    answer["data"] = data.data  # whatever it is: `_answer` minds what cannot be written
            finally:
                context.close()
                key = coerce_request_id(context.request_id)
                if self._inbound.get(key) is context:
                    del self._inbound[key]
            if not context.cancelled:
                self._answer(context.request_id, kind, answer)

    def _answer(self, request_id: Any, kind: str, answer: Any) -> None:
        try:
            body = encode({"jsonrpc": "2.0", "id": request_id, kind: answer})
        except ValueError as error:
            failure = {"code": INTERNAL_ERROR, "message": str(error)}
            body = encode({"jsonrpc": "2.0", "id": request_id, "error": failure})
        self._post(body)
