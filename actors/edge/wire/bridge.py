"""The SDK's own `JSONRPCDispatcher` over our pipes: for SDK versions our dispatcher was not tested with, and for Windows, where
there are no descriptors for it to read.

Same process, same line splitter, same cap; only the JSON-RPC layer is the SDK's. Slower, otherwise alike.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

import anyio
import trio
from mcp.shared.dispatcher import OnNotify, OnNotifyIntercept, OnRequest
from mcp.shared.jsonrpc_dispatcher import JSONRPCDispatcher
from mcp.shared.message import SessionMessage
from mcp_types import jsonrpc_message_adapter

from .lines import LineSplitter
from .rpc import decode

__all__ = ["SdkPipes"]


class SdkPipes:
    """Feeds the SDK's dispatcher from two pipes; has the parts of `PipeDispatcher` that the stdio wire uses.

    Args:
        receive: the server's stdout.
        send: the server's stdin.
        max_line: longest message accepted, in bytes.
    """

    def __init__(self, receive: trio.abc.ReceiveStream, send: trio.abc.SendStream, *, max_line: int) -> None:
        self.failed = trio.Event()
        self.failed_on: Literal["stdin", "stdout"] = "stdin"
        self.closed = trio.Event()
        self.on_sign: Callable[[], None] = lambda: None
        self.last_garbage = ""
        self.written = 0
        self._receive = receive
        self._send = send
        self._splitter = LineSplitter(max_line)
        self._to_session, read = anyio.create_memory_object_stream[SessionMessage | Exception](64)
        write, self._from_session = anyio.create_memory_object_stream[SessionMessage](64)
        self._scope = trio.CancelScope()
        self.dispatcher = _Bridged(read, write, self)

    def shut(self) -> None:
        """End it from outside; the dispatcher settles all that is pending."""
        self.failed.set()
        self._scope.cancel()
        self._to_session.close()
        self.on_sign()

    async def pump(self) -> None:
        """Carry lines both ways until the stream ends."""
        with self._scope:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._write)
                await self._read()
                if not self.failed.is_set():
                    self.failed_on = "stdout"
                nursery.cancel_scope.cancel()
        self.shut()

    async def _read(self) -> None:
        try:
            async for data in self._receive:
                for line in self._splitter.feed(bytes(data)):
                    if line.strip():
                        await self._take(line)
        except (trio.ClosedResourceError, trio.BrokenResourceError, anyio.BrokenResourceError):
            pass

    async def _take(self, line: bytes) -> None:
        try:
            message = jsonrpc_message_adapter.validate_python(decode(line), by_name=False)
        except (ValueError, RecursionError):
            self.last_garbage = line[:200].decode("utf-8", "replace").strip()
            return
        await self._to_session.send(SessionMessage(message))

    async def _write(self) -> None:
        try:
            async for item in self._from_session:
                text = item.message.model_dump_json(by_alias=True, exclude_unset=True)
                await self._send.send_all(line := text.encode() + b"\n")
                self.written += len(line)
        except (trio.ClosedResourceError, trio.BrokenResourceError):
            self.failed.set()
            self.on_sign()


class _Bridged(JSONRPCDispatcher[Any]):
    """The SDK's dispatcher, with the pump running as long as it does."""

    def __init__(self, read: Any, write: Any, pipes: SdkPipes) -> None:
        super().__init__(read, write)
        self._pipes = pipes

    async def run(
        self,
        on_request: OnRequest,
        on_notify: OnNotify,
        on_notify_intercept: OnNotifyIntercept | None = None,
        *,
        task_status: Any = trio.TASK_STATUS_IGNORED,
    ) -> None:
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._pipes.pump)
                await super().run(on_request, on_notify, on_notify_intercept, task_status=task_status)
                nursery.cancel_scope.cancel()
        finally:
            self._pipes.failed.set()
            self._pipes.closed.set()
            self._pipes._to_session.close()
            self._pipes._from_session.close()
            self._pipes.on_sign()
