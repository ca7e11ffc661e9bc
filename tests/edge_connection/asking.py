"""What the tests of the dispatcher share: a session's handlers, a running one, requests in tasks."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import trio
import trio.testing
from mcp.shared.exceptions import MCPError
from playbill.actors.edge.wire.dispatcher import PipeDispatcher

from .peer import Peer


class Handlers:
    """What a session would be."""

    def __init__(self) -> None:
        self.notified: list[tuple[str, Any]] = []
        self.intercepted: list[str] = []
        self.gate: trio.Event | None = None
        self.handling = 0

    async def on_request(self, context: Any, method: str, params: Mapping[str, Any] | None) -> dict[str, Any]:
        self.handling += 1
        try:
            if self.gate is not None:
                await self.gate.wait()
            if method == "fail":
                raise MCPError(code=-5, message="no")
            if method == "odd":
                raise MCPError(code=-5, message="no", data=object())
            if method == "crash":
                raise LookupError("what")
            if method == "unwritable":
                return {"it": object()}
            if method == "progress":
                await context.progress(1, 2, "half")
            return {"method": method, "params": params}
        finally:
            self.handling -= 1

    async def on_notify(self, context: Any, method: str, params: Mapping[str, Any] | None) -> None:
        if method == "crash":
            raise LookupError("what")
        if self.gate is not None:
            await self.gate.wait()
        self.notified.append((method, params))

    def intercept(self, method: str, params: Mapping[str, Any] | None) -> bool:
        self.intercepted.append(method)
        return method == "eat me"


@asynccontextmanager
async def started(peer: Peer, handlers: Handlers | None = None, **settings: Any) -> AsyncIterator[PipeDispatcher]:
    handlers = handlers or Handlers()
    dispatcher = PipeDispatcher(peer.client_receive, peer.client_send, **settings)
    with trio.fail_after(20):
        async with trio.open_nursery() as nursery:
            await nursery.start(dispatcher.run, handlers.on_request, handlers.on_notify, handlers.intercept)
            yield dispatcher
            dispatcher.shut()


class Asked:
    """A request in a task of its own, and its outcome."""

    def __init__(self, nursery: trio.Nursery, dispatcher: PipeDispatcher, method: str = "m", **opts: Any) -> None:
        self.result: Any = None
        self.error: Exception | None = None
        self.done = trio.Event()
        self.scope = trio.CancelScope()
        nursery.start_soon(self._ask, dispatcher, method, opts)

    async def _ask(self, dispatcher: PipeDispatcher, method: str, opts: Any) -> None:
        with self.scope:
            try:
                self.result = await dispatcher.send_raw_request(method, None, opts)
            except Exception as error:
                self.error = error
        self.done.set()
