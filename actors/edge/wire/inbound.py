"""The context of one message that came from the server: the ``mcp`` SDK's `DispatchContext` for `PipeDispatcher`."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import anyio
import trio
from mcp.shared.dispatcher import CallOptions
from mcp.shared.exceptions import NoBackChannelError
from mcp.shared.transport_context import TransportContext

if TYPE_CHECKING:
    from mcp.shared.dispatcher import Outbound

__all__ = ["InboundContext"]

_TRANSPORT = TransportContext(kind="stdio", can_send_request=True)


class InboundContext:
    """What a handler may know of, and do about, the message it handles.

    Args:
        dispatcher: answers and further messages go through it.
        request_id: of the request, or None for a notification.
        token: the progress token the server gave, or None.
    """

    transport = _TRANSPORT
    message_metadata = None

    def __init__(self, dispatcher: Outbound, request_id: Any, token: Any) -> None:
        self._dispatcher = dispatcher
        self._token = token
        self._closed = False
        self._cancel_event: anyio.Event | None = None
        self.request_id = request_id
        self.cancelled = False
        self.scope = trio.CancelScope()

    @property
    def can_send_request(self) -> bool:
        """Whether the server can still be asked something in the course of this request."""
        return not self._closed

    @property
    def cancel_requested(self) -> anyio.Event:
        """Set when the server cancels its request."""
        if self._cancel_event is None:
            self._cancel_event = anyio.Event()
            if self.cancelled:
                self._cancel_event.set()
        return self._cancel_event

    def cancel(self) -> None:
        """The server cancelled its request: stop handling it, and do not answer."""
        self.cancelled = True
        self.cancel_requested.set()
        self.scope.cancel()

    def close(self) -> None:
        """The request is handled; nothing more may be sent in its course."""
        self._closed = True

    async def send_raw_request(
        self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None
    ) -> dict[str, Any]:
        """As `PipeDispatcher.send_raw_request`; raises ``NoBackChannelError`` once the request is handled."""
        if self._closed:
            raise NoBackChannelError(method)
        return await self._dispatcher.send_raw_request(method, params, opts)

    async def notify(self, method: str, params: Mapping[str, Any] | None, opts: CallOptions | None = None) -> None:
        """As `PipeDispatcher.notify`; dropped once the request is handled (then it is no checkpoint)."""
        if not self._closed:
            await self._dispatcher.notify(method, params, opts)

    async def progress(self, progress: float, total: float | None = None, message: str | None = None) -> None:
        """Report progress; dropped when the server asked for none (then it is no checkpoint)."""
        if self._token is None:
            return
        params: dict[str, Any] = {"progressToken": self._token, "progress": progress}
        if total is not None:
            params["total"] = total
        if message is not None:
            params["message"] = message
        await self.notify("notifications/progress", params)
