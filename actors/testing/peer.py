"""A scripted server that speaks MCP in bytes: what `scripted.ScriptedServers` is to connections, this is to pipes.

Theory of operation
    A `Peer` is one life of a server: what would be a process. It reads JSON-RPC lines from one pipe and answers on another, as
    its `Script` says, each request in a task of its own. At each site it asks its delivery whether a fault is due. It knows
    both eras: one whose script is ``modern`` answers ``server/discover`` and announces changes to subscribers; every one
    answers ``initialize``, unless it was discovered before.

    state      entered by                        its stdin, its stdout        left by
    alive      `run`                             open, open                   a death; the end of its stdin (in its own time)
    mute       a limit on what it writes         open, closed                 the end of its stdin
    deaf       a limit on what it reads          closed, open                 the heal, `terminate`, `die`
    cut off    a reset                           closed, closed               `terminate`, `die`
    gone       a death, `terminate`, `die`       closed, closed

    What may need time needs virtual time: `ACK` makes the order of a subscription and the first list the same in each run.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from typing import Any

import trio

from ..model.status import ToolDef
from .faults import NOISE, Fault
from .frames import CHANGED, SUBSCRIPTION, advertised, announcement, encode, noise, padded
from .outlet import Outlet
from .scripted import Script
from .strikes import DEATHS, REASONS, Delivery, late

__all__ = ["ACK", "Peer"]

ACK = 0.001
"""Seconds that a subscription takes."""

MODERN, LEGACY = "2026-07-28", "2025-11-25"
UNSUPPORTED, NO_METHOD, INTERNAL = -32022, -32601, -32603

_CHUNK = 65536


class Peer:
    """One life of a scripted server.

    Args:
        owner: has the faults, and is told what happens.
        server: its name.
        number: of its connection.
        script: what it does.
        stdin, stdout: its ends of the two pipes.
        max_line: the longest line that the session accepts, in bytes.

    Attributes:
        gone: set when it has ended; `how` then says how, in words.
        read: how many bytes it has taken from its stdin.
        up: whether the handshake is done and nobody is leaving: only then is a loss one.
    """

    def __init__(
        self,
        owner: Delivery,
        server: str,
        number: int,
        script: Script,
        stdin: trio.lowlevel.FdStream,
        stdout: trio.lowlevel.FdStream,
        max_line: int,
    ) -> None:
        self.owner = owner
        self.server = server
        self.number = number
        self.script = script
        self.gone = trio.Event()
        self.how = ""
        self.read = 0
        self.up = False
        self.lasting = script.close_delay
        self.stubborn = False
        self._stdin = stdin
        self._stdout = stdout
        self._outlet = Outlet(stdout, self.end, max_line)
        self._max_line = max_line
        self._healed = trio.Event()
        self._read_at_once = _CHUNK
        self._left = math.inf
        self._deaf = False
        self._discovered = False
        self._listening: list[Any] = []
        self._requests: dict[Any, trio.CancelScope] = {}
        self._extra: tuple[ToolDef, ...] = ()
        self._nursery: trio.Nursery | None = None

    # ── its life ─────────────────────────────────────────────────────────────────────────────────────────────────────

    async def run(self) -> None:
        """Live. Raises nothing; when it returns, `gone` is set and both pipes are closed."""
        try:
            async with trio.open_nursery() as nursery:
                self._nursery = nursery
                if not self.gone.is_set():
                    nursery.start_soon(self._outlet.run)
                    await self._listen()
                    await trio.sleep(self.lasting)
                    self.die(REASONS["clean_exit"])
        finally:
            self.die("was left")

    def die(self, how: str) -> None:
        """End at this instant. Never waits; the first reason stays."""
        if self.gone.is_set():
            return
        self.how = how
        self.gone.set()
        self._stdin.close()
        self._stdout.close()
        if self._nursery is not None:
            self._nursery.cancel_scope.cancel()

    def terminate(self) -> None:
        """Ask it to end, as SIGTERM does; it may be stubborn."""
        if not self.stubborn:
            self.die("was terminated")

    def end(self, fault: Fault) -> None:
        """Make of a connection what a fault that ends one makes of it. Never waits."""
        reason = REASONS[fault.kind]
        self.lost(reason)
        if fault.kind == "reset":
            self._stdin.close()
            self._stdout.close()
        elif fault.kind == "limit":
            self._stdout.close()
        else:
            self.die(reason)

    def lost(self, reason: str) -> None:
        """Note that the connection is lost, once, if it is one."""
        if self.up:
            self.up = False
            self.owner.note(self.server, self.number, "lost", reason)

    def heal(self) -> None:
        """As `Acting.heal`; one that is deaf leaves, as nobody would notice before the next call."""
        if self._deaf:
            self.lost(REASONS["clean_exit"])
            self.die(REASONS["clean_exit"])
            return
        self._left = math.inf
        self._extra = ()
        self._healed.set()
        self._healed = trio.Event()
        self._outlet.heal()
        # Ends a line that a fault had begun, or the announcement would be glued to it.
        self._outlet.put(b"\n")
        self.announce()

    def announce(self) -> None:
        """Announce a change of the list, to whoever subscribed or is of the older era. Never waits."""
        if self._discovered:
            for subscription in self._listening:
                self._outlet.put(announcement(subscription))
        elif self.up:
            self._outlet.put(announcement())

    async def act(self, fault: Fault) -> None:
        """As `Acting.act`."""
        self.owner.note(self.server, self.number, "fault", f"{fault.site} {fault.kind}")
        kind = fault.kind
        if kind in NOISE:
            self._outlet.put(noise(kind, self._max_line))
        elif kind == "half_frame":
            self._outlet.put(encode({"method": CHANGED}), fault)
        elif fault.site == "idle":
            self.end(fault)
        elif kind == "flaky":
            for _ in range(100 * int(fault.arg)):
                self.announce()
                await trio.sleep(0.001)
        else:
            if kind == "huge_listing":
                self._extra = _many(fault)
            self.announce()
            if kind == "duplicate_frame":
                self.announce()
            if kind == "crash":
                self.end(fault)

    # ── what it reads ────────────────────────────────────────────────────────────────────────────────────────────────

    async def _listen(self) -> None:
        """Take lines until its stdin ends; deaf or cut off, for ever."""
        await trio.sleep(self.script.connect_delay)
        if (fault := await self._strike("connect")) is not None and fault.kind == "slice":
            self._read_at_once = int(fault.arg)
        partial = b""
        try:
            while self._left > 0:
                data = bytes(await self._stdin.receive_some(int(min(self._read_at_once, self._left))))
                if not data:
                    return
                self.read += len(data)
                self._left -= len(data)
                *lines, partial = (partial + data).split(b"\n")
                for line in lines:
                    await self._take(json.loads(line))
            self._deaf = True
            self._stdin.close()
            self.owner.note(self.server, self.number, "deaf")
        except (trio.ClosedResourceError, trio.BrokenResourceError):
            pass
        await trio.sleep_forever()

    async def _take(self, message: dict[str, Any]) -> None:
        method, params = message.get("method"), message.get("params") or {}
        if method == "notifications/cancelled":
            if (scope := self._requests.get(params.get("requestId"))) is not None:
                scope.cancel()
        elif method is not None and "id" in message:
            if method == "tools/call":
                await self._before_a_call()
            assert self._nursery is not None
            self._nursery.start_soon(self._answer, message["id"], method, params)

    async def _before_a_call(self) -> None:
        fault = self.owner.due(self.server, self.number, "call_before")
        if fault is None:
            return
        if fault.kind == "hang":
            await self._healed.wait()
        elif fault.kind == "slice":
            self._read_at_once = int(fault.arg)
        elif fault.kind == "limit":
            self._left = int(fault.arg)
        else:
            await self._carry_out(fault)

    async def _strike(self, site: str) -> Fault | None:
        """Carry out what is due at a site, if it is a delay or a death; else the fault is the caller's to carry out."""
        fault = self.owner.due(self.server, self.number, site)
        return None if fault is None or await self._carry_out(fault) else fault

    async def _carry_out(self, fault: Fault) -> bool:
        if fault.kind in DEATHS:
            self.end(fault)
            await trio.sleep_forever()
        elif fault.kind == "hang":
            await trio.sleep_forever()
        elif fault.kind in ("latency", "jitter"):
            await trio.sleep(late(fault, 1) or 0.0)
        else:
            return False
        return True

    # ── what it answers ──────────────────────────────────────────────────────────────────────────────────────────────

    async def _answer(self, request: Any, method: str, params: dict[str, Any]) -> None:
        with trio.CancelScope() as scope:
            self._requests[request] = scope
            try:
                if method == "server/discover" and self.script.modern:
                    self._discovered = True
                    await self._reply("handshake", request, {**self._capable(), "supportedVersions": [MODERN]})
                elif method == "server/discover":
                    await self._refuse("handshake", request, NO_METHOD, "Method not found")
                elif method == "initialize" and self._discovered:
                    data = {"supported": [MODERN], "requested": params.get("protocolVersion")}
                    await self._refuse("handshake", request, UNSUPPORTED, "Unsupported protocol version", data)
                elif method == "initialize":
                    result = {**self._capable(), "protocolVersion": LEGACY}
                    result["serverInfo"] = {"name": self.server, "version": "1"}
                    await self._reply("handshake", request, result)
                elif method == "tools/list":
                    await self._list(request)
                elif method == "tools/call":
                    await self._call(request, params)
                elif method == "subscriptions/listen" and self._discovered:
                    await self._subscribe(request, params)
                else:
                    await self._refuse("", request, NO_METHOD, "Method not found")
            finally:
                del self._requests[request]

    def _capable(self) -> dict[str, Any]:
        return {"capabilities": {"tools": {"listChanged": True}}}

    async def _subscribe(self, request: Any, params: dict[str, Any]) -> None:
        await trio.sleep(ACK)
        told = {"_meta": {SUBSCRIPTION: request}, "notifications": params.get("notifications") or {}}
        self._outlet.put(padded({"method": "notifications/subscriptions/acknowledged", "params": told}, request))
        self._listening.append(request)
        try:
            await trio.sleep_forever()
        finally:
            self._listening.remove(request)

    async def _list(self, request: Any) -> None:
        await trio.sleep(self.script.list_delay)
        if self.script.list_error is not None:
            await self._refuse("list", request, INTERNAL, self.script.list_error)
            return
        extra, self._extra = self._extra, ()
        await self._reply("list", request, {"tools": [advertised(tool) for tool in (*self.script.tools, *extra)]})

    async def _call(self, request: Any, params: dict[str, Any]) -> None:
        arguments = params.get("arguments") or {}
        token, bare = str(arguments.get("token", "")), params.get("name", "")
        self.owner.note(self.server, self.number, "sent", token)
        sliced = await self._strike("call_after")
        await trio.sleep(self.script.call_delay)
        value: Any = {"tool": bare, "arguments": arguments}
        if self.script.handler is not None:
            value = await self.script.handler(bare, arguments)
        result: dict[str, Any] = {"content": [{"type": "text", "text": json.dumps(value)}]}
        if isinstance(value, dict):
            result["structuredContent"] = value

        def replied() -> None:
            self.owner.note(self.server, self.number, "replied", token)

        await self._reply("call_reply", request, result, replied, sliced)

    async def _reply(
        self,
        site: str,
        request: Any,
        result: dict[str, Any],
        written: Callable[[], None] | None = None,
        fault: Fault | None = None,
    ) -> None:
        if self._discovered:
            result = {**result, "resultType": "complete"}
            if site != "call_reply":
                result |= {"ttlMs": 0, "cacheScope": "private"}
        await self._send(site, {"id": request, "result": result}, written, fault)

    async def _refuse(self, site: str, request: Any, code: int, text: str, data: Any = None) -> None:
        error = {"code": code, "message": text} | ({} if data is None else {"data": data})
        await self._send(site, {"id": request, "error": error}, None, None)

    async def _send(
        self, site: str, message: dict[str, Any], written: Callable[[], None] | None, fault: Fault | None
    ) -> None:
        fault = self.owner.due(self.server, self.number, site) or fault
        if fault is not None and fault.kind == "huge_listing":
            message["result"]["tools"] += [advertised(tool) for tool in _many(fault)]
            fault = None
        if fault is not None and fault.kind in ("hang", "latency", "jitter"):
            # The answer as a whole: others may overtake it.
            await self._carry_out(fault)
            fault = None
        self._outlet.put(encode(message), fault, written)


def _many(fault: Fault) -> tuple[ToolDef, ...]:
    return tuple(ToolDef(f"extra{n}") for n in range(int(fault.arg)))
