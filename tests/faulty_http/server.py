"""An MCP server over HTTP that does wrong whatever it is told to: in this program, over real sockets.

It speaks the older streamable HTTP with sessions (2025-11-25), or, with ``kind="modern"``, 2026-07-28 as far as a client of
tools needs it, or, with ``kind="sse"``, HTTP+SSE. What it does wrong is a *deed* for a moment: a method of JSON-RPC, or
``GET``, ``DELETE``, or ``*``.

    status=503, headers={…}, body=…   answer that
    reset                             reset the connection
    close                             close it without an answer
    cut                               say that more comes, and close it
    truncate                          answer with half the JSON, as if it were all
    hang                              never answer; the connection stays
    break_off                         begin a stream of events, and break it
    end                               begin a stream of events, and end it without a response
    stall                             begin a stream of events, and say nothing more
    large=n                           answer with a text of n bytes
    html                              answer with a page
    result=…                          answer with that result
"""

from __future__ import annotations

import contextlib
import json
import socket
import struct
from collections import Counter
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import trio

__all__ = ["Web", "deed", "serving"]


def deed(what: str = "", **how: Any) -> dict[str, Any]:
    """One deed."""
    return {"do": what, **how}


class Gone(Exception):
    """The connection is done with."""


class Web:
    """One server; `serving` runs it.

    Attributes:
        deeds: moment → what it does wrong, once per item of a list, or always.
        seen: how many requests of each method, or HTTP method, came.
        headers: of every request.
        sessions: those that are alive; `forget` empties it.
        sessionless: it gives none.
        knows_gets: a GET of a session that is unknown is answered 404, else 405.
        open: how many connections are open now.
        waiting: how many requests hang now.
        cancelled: ids that were said to be cancelled.
        tools: what it lists.
        capabilities: what it says that it has.
        answers: method → result, of what it knows besides.
    """

    def __init__(self, kind: str = "legacy") -> None:
        self.kind = kind
        self.deeds: dict[str, Any] = {}
        self.seen: Counter[str] = Counter()
        self.headers: list[dict[str, str]] = []
        self.sessions: set[str] = set()
        self.sessionless = False
        self.knows_gets = True
        self.open = 0
        self.most_open = 0
        self.waiting = 0
        self.cancelled: list[Any] = []
        self.tools = ["echo", "do"]
        self.annotations: dict[str, Any] = {}
        self.capabilities: dict[str, Any] = {"tools": {"listChanged": True}}
        self.answers: dict[str, dict[str, Any]] = {}
        self.port = 0
        self.path = "/mcp"
        self.streams: list[_Stream] = []
        self._count = 0
        self._changed = trio.lowlevel.ParkingLot()
        self._scope: trio.CancelScope | None = None
        self._resumable: dict[str, Any] = {}

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}{self.path}"

    def forget(self) -> None:
        """Lose all sessions, as a server that was restarted."""
        self.sessions.clear()

    async def until(self, condition: Any) -> None:
        """Wait until something about it holds."""
        with trio.fail_after(30):
            while not condition(self):
                await self._changed.park()

    def note(self) -> None:
        self._changed.unpark_all()

    def stop(self) -> None:
        """Close the port and all connections."""
        assert self._scope is not None
        self._scope.cancel()

    async def run(self, task_status: Any = trio.TASK_STATUS_IGNORED) -> None:
        """Serve on `port` (0: any) until it is stopped."""
        with trio.CancelScope() as self._scope:
            listeners = await trio.open_tcp_listeners(self.port, host="127.0.0.1")
            self.port = listeners[0].socket.getsockname()[1]
            await trio.serve_listeners(self._connection, listeners, task_status=task_status)

    # ── HTTP ─────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _connection(self, stream: trio.SocketStream) -> None:
        self.open += 1
        self.most_open = max(self.open, self.most_open)
        rest = b""
        try:
            while True:
                while b"\r\n\r\n" not in rest:
                    if not (data := await stream.receive_some()):
                        return
                    rest += data
                head, _, rest = rest.partition(b"\r\n\r\n")
                first, *lines = head.decode("latin-1").split("\r\n")
                headers = {name.lower(): value for name, _, value in (line.partition(": ") for line in lines)}
                length = int(headers.get("content-length", 0))
                while len(rest) < length:
                    if not (data := await stream.receive_some()):
                        return
                    rest += data
                body, rest = rest[:length], rest[length:]
                self.headers.append(headers)
                await self._request(_Stream(stream), first.split()[0], headers, json.loads(body) if body else None)
                self.note()
        except (Gone, trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        finally:
            self.open -= 1
            self.note()
            await trio.aclose_forcefully(stream)

    async def _request(self, out: _Stream, verb: str, headers: dict[str, str], message: Any) -> None:
        moment = message.get("method", "response") if isinstance(message, dict) else verb
        self.seen[moment] += 1
        self.note()
        if moment == "notifications/cancelled":
            self.cancelled.append(message["params"]["requestId"])
        wrong = self._deed(moment)
        if wrong is None and moment == "tools/call" and message["params"]["name"] == "do":
            wrong = message["params"]["arguments"]
        if wrong is not None:
            await self._do(wrong, out, message)
            return
        if self.kind == "sse":
            await self._sse(out, verb, message)
        elif verb == "POST":
            await self._post(out, headers, message)
        elif verb == "GET" and self.kind == "legacy" and headers.get("mcp-session-id") in self.sessions:
            await self._get(out, headers)
        elif verb == "GET" and "mcp-session-id" in headers and self.knows_gets:
            await out.answer(404)
        elif verb == "DELETE" and headers.get("mcp-session-id") in self.sessions:
            self.sessions.discard(headers["mcp-session-id"])
            await out.answer(200)
        else:
            await out.answer(405)

    def _deed(self, moment: str) -> dict[str, Any] | None:
        for key in (moment, "*"):
            wrong = self.deeds.get(key)
            if isinstance(wrong, list):
                if not wrong:
                    continue
                wrong = wrong.pop(0)
            if wrong is not None:
                return wrong  # type: ignore[no-any-return]
        return None

    async def _do(self, wrong: dict[str, Any], out: _Stream, message: Any) -> None:
        id_ = message.get("id") if isinstance(message, dict) else None
        what = wrong.get("do")
        if what == "reset":
            out.reset()
            raise Gone
        if what == "close":
            raise Gone
        if what == "hang":
            await self._wait(out)
        elif what == "cut":
            text = _message(id_, result=_text("x" * 100))
            await out.send(f"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: {len(text)}\r\n\r\n")
            await out.send(text[:50])
            raise Gone
        elif what == "truncate":
            await out.answer(200, _message(id_, result=_text("x" * 100))[:60])
        elif what in ("break_off", "end", "stall"):
            await out.events()
            await out.event(wrong.get("said", ": here it comes"))
            if what == "stall":
                await self._wait(out)
            if what == "break_off":
                raise Gone
            await out.end()
        elif what == "large":
            await out.answer(200, _message(id_, result=_text("x" * wrong["size"])))
        elif what == "html":
            await out.answer(200, "<html>Welcome</html>", {"Content-Type": "text/html"})
        elif what == "result":
            await out.answer(200, _message(id_, result=wrong["result"]))
        else:
            await out.answer(wrong["status"], wrong.get("body", ""), wrong.get("headers"))

    async def _wait(self, out: _Stream) -> None:
        self.waiting += 1
        self.note()
        try:
            await out.left()
            raise Gone
        finally:
            self.waiting -= 1
            self.note()

    # ── streamable HTTP ──────────────────────────────────────────────────────────────────────────────────────────────

    async def _post(self, out: _Stream, headers: dict[str, str], message: dict[str, Any]) -> None:
        method, id_ = message.get("method"), message.get("id")
        sessions = self.kind == "legacy" and not self.sessionless
        known = headers.get("mcp-session-id") in self.sessions
        if sessions and not known and method not in ("initialize", "server/discover"):
            await out.answer(404, _message(id_, error={"code": -32001, "message": "Session not found"}))
            return
        if method == "subscriptions/listen":
            await self._listen(out, id_)
            return
        if id_ is None or method is None:
            await out.answer(202)
            return
        more: dict[str, str] = {}
        if method == "initialize" and sessions:
            self._count += 1
            session = f"session-{self._count}"
            self.sessions.add(session)
            more["Mcp-Session-Id"] = session
        answer = self._answer(message)
        status = 404 if self.kind == "modern" and answer.get("error", {}).get("code") == -32601 else 200
        await out.answer(status, _message(id_, **answer), more)

    def _answer(self, message: dict[str, Any]) -> dict[str, Any]:
        method, params = message["method"], message.get("params") or {}
        capabilities = self.capabilities
        result: dict[str, Any]
        if method == "initialize" and self.kind != "modern":
            info = {"name": "web", "version": "1"}
            result = {"protocolVersion": "2025-11-25", "capabilities": capabilities, "serverInfo": info}
        elif method == "server/discover" and self.kind == "modern":
            result = {
                "supportedVersions": ["2026-07-28"],
                "capabilities": capabilities,
                "ttlMs": 0,
                "cacheScope": "private",
            }
        elif method == "tools/list":
            tools = [{"name": name, "inputSchema": {"type": "object"}} for name in self.tools]
            for tool in tools:
                if tool["name"] in self.annotations:
                    tool["annotations"] = self.annotations[tool["name"]]  # type: ignore[index]
            result = (
                {"tools": tools, "ttlMs": 0, "cacheScope": "private"} if self.kind == "modern" else {"tools": tools}
            )
        elif method == "tools/call":
            result = _text(json.dumps(params.get("arguments") or {}))
        elif method == "ping" and self.kind != "modern":
            result = {}
        elif method in self.answers:
            result = dict(self.answers[method])
        else:
            return {"error": {"code": -32601, "message": "Method not found"}}
        if self.kind == "modern":
            result["resultType"] = "complete"
        return {"result": result}

    async def _get(self, out: _Stream, headers: dict[str, str]) -> None:
        await out.events()
        await self._kept(out)

    async def _listen(self, out: _Stream, id_: Any) -> None:
        await out.events()
        meta = {"io.modelcontextprotocol/subscriptionId": id_}
        acknowledged = {"_meta": meta, "notifications": {"toolsListChanged": True}}
        await out.message(method="notifications/subscriptions/acknowledged", params=acknowledged)
        out.meta = meta
        await self._kept(out)

    async def _kept(self, out: _Stream) -> None:
        self.streams.append(out)
        self.note()
        try:
            await out.left()
        finally:
            self.streams.remove(out)
            self.note()
        raise Gone

    async def announce(self) -> None:
        """Tell everybody who listens that the list of tools has changed."""
        for out in list(self.streams):
            params = {} if out.meta is None else {"_meta": out.meta}
            await out.message(method="notifications/tools/list_changed", params=params)

    # ── HTTP+SSE ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def _sse(self, out: _Stream, verb: str, message: Any) -> None:
        if verb == "GET":
            await out.events()
            await out.event("event: endpoint\ndata: /mcp?session=1")
            await self._kept(out)
        elif not self.streams:
            await out.answer(405)
        else:
            await out.answer(202, "Accepted", {"Content-Type": "text/plain"})
            if message.get("id") is not None and message.get("method") is not None:
                await self.streams[-1].message(id=message["id"], **self._answer(message))


class _Stream:
    def __init__(self, stream: trio.SocketStream) -> None:
        self._stream = stream
        self._one_by_one = trio.Lock()
        self.ended = trio.Event()
        self.meta: Any = None

    def reset(self) -> None:
        self._stream.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))

    async def left(self) -> None:
        """Wait until the client goes away, or `ended` is set."""
        async with trio.open_nursery() as nursery:

            async def watch() -> None:
                with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError):
                    while await self._stream.receive_some():
                        pass
                self.ended.set()

            nursery.start_soon(watch)
            await self.ended.wait()
            nursery.cancel_scope.cancel()

    async def send(self, text: str) -> None:
        async with self._one_by_one:
            await self._stream.send_all(text.encode())

    async def answer(self, status: int, body: str = "", headers: dict[str, str] | None = None) -> None:
        fields = {"Content-Type": "application/json", "Content-Length": str(len(body.encode())), **(headers or {})}
        lines = "".join(f"{name}: {value}\r\n" for name, value in fields.items())
        await self.send(f"HTTP/1.1 {status} Whatever\r\n{lines}\r\n{body}")

    async def events(self) -> None:
        head = "Content-Type: text/event-stream\r\nTransfer-Encoding: chunked"
        await self.send(f"HTTP/1.1 200 OK\r\n{head}\r\n\r\n")

    async def event(self, text: str) -> None:
        data = f"{text}\n\n"
        await self.send(f"{len(data.encode()):x}\r\n{data}\r\n")

    async def message(self, **message: Any) -> None:
        await self.event(f"data: {json.dumps({'jsonrpc': '2.0', **message})}")

    async def end(self) -> None:
        await self.send("0\r\n\r\n")


def _text(text: str) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}]}


def _message(id_: Any, **content: Any) -> str:
    return json.dumps({"jsonrpc": "2.0", "id": id_, **content})


@asynccontextmanager
async def serving(web: Web) -> AsyncIterator[Web]:
    """Run a server for as long as the block."""
    async with trio.open_nursery() as nursery:
        await nursery.start(web.run)
        yield web
        nursery.cancel_scope.cancel()
