"""A scripted server that speaks MCP over HTTP, in memory: what `peer.Peer` is to pipes, this is to requests.

Theory of operation
    An `HttpPeer` is somebody else's server: it is there before a session and after it. A request comes to `handle`, in the task
    of the client that sends it, and becomes a response as its `Script` says. At each site it asks its delivery whether a fault
    is due. It knows both eras: one whose script is ``modern`` answers ``server/discover`` and announces changes to subscribers,
    knows no sessions and no GET; every other one gives sessions at ``initialize`` and announces changes on GET streams.

    what happens to it   requests in it          its open responses    its sessions    until then
    reset                fail                    break off             stay            –
    crash, flaky         fail                    break off             are forgotten   –
    down                 fail                    break off             are forgotten   connections are refused
    the heal             –                       –                     are remembered  –
"""

from __future__ import annotations

import json
import math
from collections.abc import Mapping
from typing import Any

import httpx2
import trio

from ..model.status import ToolDef
from .faults import Fault
from .frames import SUBSCRIPTION, advertised, announcement, encode, padded
from .http_body import Body
from .outlet import BEAT, PACE
from .scripted import Script
from .strikes import Delivery, late

__all__ = ["HttpPeer"]

MODERN, LEGACY = "2026-07-28", "2025-11-25"
NO_METHOD, INTERNAL = -32601, -32603

_SITES = {"initialize": "handshake", "server/discover": "handshake", "tools/list": "list", "tools/call": "call_reply"}
_JSON, _EVENTS = "application/json", "text/event-stream"


class HttpPeer:
    """A scripted server.

    Args:
        owner: has the faults, and is told what happens.
        server: its name.
        max_message: the longest message that a session accepts, in bytes.

    Attributes:
        up: whether a session with it is connected and nobody is leaving.
        number: of the newest connection.
        responses: those that are open, each with the number of its connection.
    """

    def __init__(self, owner: Delivery, server: str, max_message: int) -> None:
        self.owner = owner
        self.server = server
        self.up = False
        self.number = 0
        self.responses: dict[Body, int] = {}
        self._max_message = max_message
        self._sessions: set[str] = set()
        self._forgotten: set[str] = set()
        self._count = 0
        self._down_until = -math.inf
        self._requests: dict[trio.CancelScope, None] = {}
        self._listening: dict[Body, Any] = {}
        self._extra: tuple[ToolDef, ...] = ()

    @property
    def script(self) -> Script:
        """What it does."""
        return self.owner.servers.scripts[self.server]

    # ── what happens to it ───────────────────────────────────────────────────────────────────────────────────────────

    def end(self, fault: Fault) -> None:
        """Make of it what a fault that ends connections makes of it. Never waits."""
        if fault.kind != "reset":
            self.forget()
        if fault.kind == "down":
            self._down_until = trio.current_time() + fault.arg
        self.break_all("connection reset by peer")

    def break_all(self, why: str) -> None:
        """Break off all that is open. Never waits."""
        for scope in tuple(self._requests):
            scope.cancel()
        for body in tuple(self.responses):
            body.break_off(why)

    def forget(self) -> None:
        """Forget the sessions. Never waits."""
        self._forgotten |= self._sessions
        self._sessions.clear()

    def heal(self) -> None:
        """As `Acting.heal`; sessions that it forgot are known again, so that no later request is refused."""
        self._down_until = -math.inf
        self._sessions |= self._forgotten
        self._forgotten.clear()
        self._extra = ()
        self.announce()

    def announce(self) -> None:
        """Announce a change of the list to all that listen. Never waits."""
        for body, subscription in self._listening.items():
            body.put(_event(announcement(subscription)))

    async def act(self, fault: Fault) -> None:
        """As `Acting.act`."""
        self.owner.note(self.server, self.number, "fault", f"{fault.site} {fault.kind}")
        match fault.kind:
            case "session_lost":
                self.forget()
                self._end_streams()
            case "end_stream":
                self._end_streams()
            case "cut_stream":
                for body in tuple(self._listening):
                    body.break_off("connection reset by peer")
            case "flaky":
                for _ in range(100 * int(fault.arg)):
                    self.announce()
                    await trio.sleep(0.001)
            case "duplicate_frame" | "huge_listing":
                self._extra = _many(fault) if fault.kind == "huge_listing" else ()
                self.announce()
                self.announce()
            case _:
                self.end(fault)

    def _end_streams(self) -> None:
        for body in tuple(self._listening):
            body.end()

    # ── what it is asked ─────────────────────────────────────────────────────────────────────────────────────────────

    async def handle(
        self, number: int, verb: str, headers: Mapping[str, str], message: dict[str, Any]
    ) -> httpx2.Response:
        """Answer one request.

        Args:
            number: of the connection that it belongs to.
            verb: of HTTP.
            headers: with names in lower case.
            message: of a POST, else empty.

        Raises:
            httpx2.TransportError: what a client sees of a connection that fails.
        """
        await trio.lowlevel.checkpoint()
        with trio.CancelScope() as scope:
            self._requests[scope] = None
            try:
                return await self._handle(number, verb, headers, message)
            finally:
                del self._requests[scope]
        raise httpx2.ReadError("connection reset by peer")

    async def _handle(
        self, number: int, verb: str, headers: Mapping[str, str], message: dict[str, Any]
    ) -> httpx2.Response:
        await self._connect(number)
        session = headers.get("mcp-session-id")
        known = self.script.modern or session in self._sessions
        if verb == "GET":
            if self.script.modern or session is None:
                return self._say(number, 405)
            return self._listen(number, None) if known else self._say(number, 404)
        if verb == "DELETE":
            return await self._part(number, session, known)
        method, request = message.get("method"), message.get("id")
        if not known and method not in ("initialize", "server/discover"):
            return self._say(number, 404)
        if method is None or request is None:
            return self._say(number, 202)
        return await self._answer(number, method, request, message.get("params") or {}, session)

    async def _connect(self, number: int) -> None:
        fault = self.owner.due(self.server, number, "connect")
        if fault is not None and not await self._wait(fault):
            if fault.kind == "reset":
                raise httpx2.ReadError("connection reset by peer")
            raise httpx2.ConnectError("connection refused")
        if trio.current_time() < self._down_until:
            self.owner.note(self.server, number, "fault", "connect down")
            raise httpx2.ConnectError("connection refused")

    async def _part(self, number: int, session: str | None, known: bool) -> httpx2.Response:
        fault = self.owner.due(self.server, number, "close")
        if fault is not None and not await self._wait(fault):
            if fault.kind == "status":
                return self._say(number, int(fault.arg))
            raise httpx2.ReadError("connection reset by peer")
        if session is not None:
            self._sessions.discard(session)
        return self._say(number, 200 if known else 404)

    async def _wait(self, fault: Fault) -> bool:
        """Carry out a fault that is a delay; else it is the caller's to carry out."""
        if fault.kind == "hang":
            await trio.sleep_forever()
        if fault.kind not in ("latency", "jitter"):
            return False
        await trio.sleep(late(fault, 1) or 0.0)
        return True

    async def _answer(
        self, number: int, method: str, request: Any, params: dict[str, Any], session: str | None
    ) -> httpx2.Response:
        script, token = self.script, ""
        said: dict[str, Any]
        match method:
            case "server/discover" if script.modern:
                said = self._done({**_CAPABLE, "supportedVersions": [MODERN]}, method)
            case "initialize" if not script.modern:
                await trio.sleep(script.connect_delay)
                self._count += 1
                session = f"{self.server}-{self._count}"
                self._sessions.add(session)
                info = {"name": self.server, "version": "1"}
                said = {"result": {**_CAPABLE, "protocolVersion": LEGACY, "serverInfo": info}}
            case "tools/list":
                await trio.sleep(script.list_delay)
                said = self._listing(script)
            case "tools/call":
                token = str((params.get("arguments") or {}).get("token", ""))
                said = await self._call(number, params, token)
            case "ping" if not script.modern:
                said = {"result": {}}
            case "subscriptions/listen" if script.modern:
                return self._listen(number, request, params.get("notifications") or {})
            case _:
                said = _error(NO_METHOD, "Method not found")
        if method == "server/discover":
            await trio.sleep(script.connect_delay if script.modern else 0.0)
        fault = self.owner.due(self.server, number, _SITES.get(method, ""))
        if fault is not None and token:
            self.owner.note(self.server, number, "struck", f"{token} {fault.kind}")
        if fault is not None and fault.kind == "huge_listing":
            said["result"]["tools"] += [advertised(tool) for tool in _many(fault)]
            fault = None
        if fault is not None and await self._wait(fault):
            fault = None
        line = encode({"id": request, **said})
        more = {"mcp-session-id": session} if method == "initialize" and session is not None else {}
        response = (
            self._say(number, 200, line, more, token)
            if fault is None
            else self._spoil(number, fault, line, more, token)
        )
        if token:
            self.owner.note(self.server, number, "replied", token)
        return response

    def _listing(self, script: Script) -> dict[str, Any]:
        if script.list_error is not None:
            return _error(INTERNAL, script.list_error)
        extra, self._extra = self._extra, ()
        return self._done({"tools": [advertised(tool) for tool in (*script.tools, *extra)]}, "tools/list")

    async def _call(self, number: int, params: dict[str, Any], token: str) -> dict[str, Any]:
        arguments, bare, script = params.get("arguments") or {}, params.get("name", ""), self.script
        self.owner.note(self.server, number, "sent", token)
        try:
            fault = self.owner.due(self.server, number, "call_after")
            if fault is not None:
                self.owner.note(self.server, number, "struck", f"{token} {fault.kind}")
                if not await self._wait(fault):
                    self._break(fault)
            await trio.sleep(script.call_delay)
            value: Any = {"tool": bare, "arguments": arguments}
            if script.handler is not None:
                value = await script.handler(bare, arguments)
        except trio.Cancelled:
            self.owner.note(self.server, number, "left", token)
            raise
        result: dict[str, Any] = {"content": [{"type": "text", "text": json.dumps(value)}]}
        if isinstance(value, dict):
            result["structuredContent"] = value
        return self._done(result, "tools/call")

    def _done(self, result: dict[str, Any], method: str) -> dict[str, Any]:
        if self.script.modern:
            result = {**result, "resultType": "complete"}
            if method != "tools/call":
                result |= {"ttlMs": 0, "cacheScope": "private"}
        return {"result": result}

    # ── what it says ─────────────────────────────────────────────────────────────────────────────────────────────────

    def _say(
        self,
        number: int,
        status: int,
        body: bytes = b"",
        headers: Mapping[str, str] | None = None,
        token: str = "",
        kind: str = _JSON,
        **how: Any,
    ) -> httpx2.Response:
        """A response, whose body is as `Body` takes it in ``how``, or ``body`` at once."""

        def left(body: Body) -> None:
            del self.responses[body]
            self._listening.pop(body, None)
            if token:
                self.owner.note(self.server, number, "left", token)

        stream = Body(left, **{"pieces": [(0.0, body)] if body else [], **how})
        self.responses[stream] = number
        return httpx2.Response(status, headers={"content-type": kind, **(headers or {})}, stream=stream)

    def _listen(self, number: int, subscription: Any, wanted: Any = None) -> httpx2.Response:
        """A stream of what it says by itself."""
        response = self._say(number, 200, kind=_EVENTS, ends=False)
        body = response.stream
        assert isinstance(body, Body)
        self._listening[body] = subscription
        if subscription is not None:
            told = {"_meta": {SUBSCRIPTION: subscription}, "notifications": wanted}
            message = {"method": "notifications/subscriptions/acknowledged", "params": told}
            body.put(_event(padded(message, subscription)))
        return response

    def _break(self, fault: Fault) -> None:
        """Carry out a fault that leaves no response.

        Raises:
            httpx2.TransportError: always.
        """
        if fault.kind == "closed":
            raise httpx2.RemoteProtocolError("Server disconnected without sending a response.")
        if fault.kind != "reset":
            self.end(fault)
        raise httpx2.ReadError("connection reset by peer")

    def _spoil(self, number: int, fault: Fault, line: bytes, more: Mapping[str, str], token: str) -> httpx2.Response:
        """The response that a fault makes of an answer."""

        def say(
            status: int, body: bytes = b"", headers: Mapping[str, str] | None = None, **how: Any
        ) -> httpx2.Response:
            return self._say(number, status, body, {**more, **(headers or {})}, token, **how)

        arg, half, cut = int(fault.arg), line[: len(line) // 2], "peer closed connection without sending complete body"
        match fault.kind:
            case "status":
                return say(arg)
            case "throttled":
                return say(503, headers={"retry-after": str(arg)})
            case "unauthorized":
                return say(401, headers={"www-authenticate": "Bearer"})
            case "forbidden":
                return say(403, headers={"www-authenticate": 'Bearer error="insufficient_scope"'})
            case "session_lost":
                self.forget()
                return say(404)
            case "redirect":
                return say(307, headers={"location": "https://elsewhere.example/mcp"})
            case "accepted":
                return say(202)
            case "html":
                return say(200, b"<html>Sign in</html>", kind="text/html")
            case "garbage_frame":
                return say(200, half)
            case "long_frame":
                return say(200, line[:-2] + b" " * self._max_message + line[-2:])
            case "duplicate_frame":
                return say(200, 2 * _event(line), kind=_EVENTS)
            case "slice":
                return say(200, pieces=_paced(line, arg, PACE))
            case "bandwidth":
                size = max(1, int(fault.arg * BEAT))
                return say(200, pieces=_paced(line, size, size / fault.arg))
            case "cut":
                return say(200, half, breaks=cut)
            case "stall":
                return say(200, b": wait\n\n", kind=_EVENTS, ends=False)
            case "cut_stream":
                return say(200, b": wait\n\n", kind=_EVENTS, breaks=cut)
            case "end_stream":
                return say(200, b": wait\n\n", kind=_EVENTS)
            case _:
                self._break(fault)
                raise AssertionError(fault.kind)


_CAPABLE = {"capabilities": {"tools": {"listChanged": True}}}


def _error(code: int, text: str) -> dict[str, Any]:
    return {"error": {"code": code, "message": text}}


def _event(line: bytes) -> bytes:
    return b"data: " + line.strip() + b"\n\n"


def _paced(data: bytes, size: int, seconds: float) -> list[tuple[float, bytes]]:
    return [(seconds if at else 0.0, data[at : at + size]) for at in range(0, len(data), size)]


def _many(fault: Fault) -> tuple[ToolDef, ...]:
    return tuple(ToolDef(f"extra{n}") for n in range(int(fault.arg)))
