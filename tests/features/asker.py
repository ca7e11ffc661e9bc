"""A server in memory that asks, tells and dies as it is told; on the SDK's low-level server, before 2026-07-28."""

from __future__ import annotations

import json
from collections import Counter
from typing import Any

import anyio
import trio
from playbill.actors import Host

__all__ = ["Asking", "said"]


async def said(host: Host, server: str, tool: str, arg: Any = None) -> str:
    """The text that a tool answers."""
    result = await host.call_tool(server, tool, {} if arg is None else {"arg": arg}, timeout=1000)
    return str(result.content[0].text)


class Asking:
    """What it was told is in ``told``.

    Its tools: echo, ask (``arg`` times), ask_and_hang, elicit (a schema), log (as ask, or these), roots.

    ``lists``: by method, from the parameters to a result, or to an error in words, or to None: never an answer. ``asked``: how
    often each method was called; ``meta``: of the last call of a tool.
    """

    def __init__(self) -> None:
        self.told: list[str] = []
        self.lists: dict[str, Any] = {}
        self.capabilities: dict[str, Any] = {"tools": {}, "logging": {}}
        self.asked: Counter[str] = Counter()
        self.meta: dict[str, Any] | None = None
        self._death = trio.Event()

    async def die(self) -> None:
        """End it as a crash does."""
        await trio.lowlevel.checkpoint()
        self._death.set()

    def create_initialization_options(self) -> Any:
        """As the SDK's servers."""
        return None

    async def run(self, read: Any, write: Any, options: Any) -> None:
        """As the SDK's servers: one session."""
        self._death = trio.Event()
        self._answers: dict[int, trio.Event] = {}
        self._got: dict[int, str] = {}
        self._next = 0
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._end, nursery.cancel_scope)
            async for item in read:
                message = item.message.model_dump(by_alias=True, exclude_none=True, mode="json")
                if "method" in message and "id" in message:
                    nursery.start_soon(self._handle, write, message)
                elif "method" not in message:
                    self._got[message["id"]] = json.dumps(message.get("result") or message.get("error"))
                    self._answers[message["id"]].set()
            nursery.cancel_scope.cancel()
        if self._death.is_set():
            raise RuntimeError("it died")

    async def _end(self, scope: trio.CancelScope) -> None:
        await self._death.wait()
        scope.cancel()

    async def _send(self, write: Any, **message: Any) -> None:
        from mcp.shared.message import SessionMessage
        from mcp.types import jsonrpc_message_adapter

        parsed = jsonrpc_message_adapter.validate_python({"jsonrpc": "2.0", **message}, by_name=False)
        await write.send(SessionMessage(parsed))

    async def _ask(self, write: Any, method: str, params: Any) -> None:
        self._next += 1
        number = self._next
        self._answers[number] = trio.Event()
        await self._send(write, id=number, method=method, params=params)
        await self._answers[number].wait()
        self.told.append(self._got[number])

    async def _handle(self, write: Any, message: dict[str, Any]) -> None:
        method, params = message["method"], message.get("params") or {}
        self.asked[method] += 1
        with anyio.CancelScope():
            if method == "initialize":
                result: Any = {
                    "protocolVersion": "2025-11-25",
                    "capabilities": self.capabilities,
                    "serverInfo": {"name": "asking", "version": "1"},
                }
            elif method == "tools/list":
                names = ("echo", "ask", "ask_and_hang", "elicit", "log", "update", "change", "roots")
                result = {"tools": [{"name": name, "inputSchema": {"type": "object"}} for name in names]}
            elif method == "tools/call":
                self.meta = params.get("_meta")
                text = await self._act(write, params["name"], params.get("arguments", {}).get("arg"))
                result = {"content": [{"type": "text", "text": text}]}
            elif method in self.lists:
                if method in ("resources/read", "prompts/get"):
                    token = params["_meta"]["progressToken"]
                    half = {"progressToken": token, "progress": 1, "total": 2, "message": "half"}
                    await self._send(write, method="notifications/progress", params=half)
                result = self.lists[method](params)
                if result is None:
                    await trio.sleep_forever()
                if isinstance(result, str):
                    await self._send(write, id=message["id"], error={"code": -32000, "message": result})
                    return
            elif method in ("ping", "logging/setLevel", "resources/subscribe", "resources/unsubscribe"):
                result = {}
            else:
                await self._send(write, id=message["id"], error={"code": -32601, "message": "no such method"})
                return
            await self._send(write, id=message["id"], result=result)

    async def _act(self, write: Any, name: str, arg: Any) -> str:
        prompt = {"messages": [{"role": "user", "content": {"type": "text", "text": "?"}}], "maxTokens": 1}
        if name in ("ask", "ask_and_hang"):
            async with trio.open_nursery() as nursery:
                for _ in range(int(arg or 1)):
                    nursery.start_soon(self._ask, write, "sampling/createMessage", prompt)
            if name == "ask_and_hang":
                await trio.sleep_forever()
            return "asked"
        if name == "elicit":
            form = {"message": "?", "requestedSchema": json.loads(arg)}
            await self._ask(write, "elicitation/create", form)
        if name == "roots":
            await self._ask(write, "roots/list", {})
        if name == "log":
            for data in range(arg) if isinstance(arg, int) else arg:
                note = {"level": "info", "data": data}
                await self._send(write, method="notifications/message", params=note)
        if name == "update":
            uris = [arg] if isinstance(arg, str) else ["stage://notes"] * arg
            for uri in uris:
                await self._send(write, method="notifications/resources/updated", params={"uri": uri})
        if name == "change":
            for _ in range(arg):
                await self._send(write, method="notifications/resources/list_changed")
        return name
