"""Scripted servers: a `Connect` whose servers exist in memory only and do exactly what they are told.

They speak no protocol and use no process, thread or file, so that a run on trio's ``MockClock`` is exact. Every spawn, end
and call is counted and stamped with the trio clock.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from types import TracebackType
from typing import Any

import trio
from attrs import define, field

from ..model.config import ServerEntry
from ..model.status import ToolDef
from ..ports import Client, ConnectionFailed, ConnectionLost, EraMemory, ListFailed, Listing, Loss, Opening, Progress

__all__ = ["Script", "ScriptedConnection", "ScriptedServers"]


def _tools(names: Iterable[str]) -> tuple[ToolDef, ...]:
    return tuple(
        each if isinstance(each, ToolDef) else ToolDef(each, input_schema={"type": "object", "properties": {}})
        for each in names
    )


@define
class Script:
    """What one server does; may be changed while it runs.

    Args:
        tools: names or `ToolDef` values that it advertises.
        connect_delay, list_delay, call_delay, close_delay: seconds each takes; ``math.inf`` hangs.
        refuse: connecting fails with this reason, or None.
        futile: such a failure will not pass by itself, as that of a command that is not there.
        list_error: listing fails with this reason, or None.
        handler: answers calls: (bare, arguments) → any value; None echoes the arguments.
        needs_auth: a refusal is for want of a login.
        says: what it writes on stderr before it is connected.
        modern: it knows ``server/discover``, and announces changes to subscribers; matters only on the wire and
            over HTTP.
    """

    tools: tuple[ToolDef, ...] = field(default=(), converter=_tools)
    connect_delay: float = 0.0
    list_delay: float = 0.0
    call_delay: float = 0.0
    close_delay: float = 0.0
    refuse: str | None = None
    futile: bool = False
    list_error: str | None = None
    handler: Callable[[str, Mapping[str, Any]], Awaitable[Any]] | None = None
    needs_auth: bool = False
    says: str = ""
    modern: bool = False


class ScriptedConnection:
    """One live connection to a scripted server; ends when it is told to."""

    def __init__(self, script: Script, pid: int, log: Callable[[str], None], changed: Callable[[], None]) -> None:
        self.script = script
        self.pid: int | None = pid
        self.protocol_version: str | None = "scripted"
        self.kind: str | None = None
        self.announce = changed
        self.lists = 0
        self._log = log
        self._lost = trio.Event()
        self._reason = ""

    def lose(self, reason: str = "exited with code 1") -> None:
        """End the connection now, as a crash does: calls in flight end at this instant."""
        if not self._lost.is_set():
            self._reason = reason
            self._lost.set()

    async def wait_lost(self) -> str:
        """Wait until the connection is lost; returns why."""
        await self._lost.wait()
        return self._reason

    @property
    def loss(self) -> Loss | None:
        """How it was lost; None while it was not."""
        return Loss(self._reason) if self._lost.is_set() else None

    def stderr_tail(self) -> str:
        """What it said last; here, why it ended."""
        return self._reason

    async def until_lost(self, work: Callable[[], Awaitable[Any]]) -> Any:
        """Do some work, unless the connection ends first.

        Returns:
            What the work returned.

        Raises:
            ConnectionLost: the connection ended first; the work is cancelled.
            Exception: what the work raised.
        """
        result: list[Any] = []

        async def run() -> None:
            result.append(await work())
            nursery.cancel_scope.cancel()

        if self._lost.is_set():
            await trio.lowlevel.checkpoint()
            raise ConnectionLost(self._reason)
        error: Exception | None = None
        try:
            async with trio.open_nursery() as nursery:
                nursery.start_soon(run)
                await self._lost.wait()
                nursery.cancel_scope.cancel()
        except* Exception as group:
            error = group.exceptions[0]
        if error is not None:
            raise error
        if result:
            return result[0]
        raise ConnectionLost(self._reason)

    async def list_tools(self) -> Listing:
        """The script's tools now.

        Raises:
            ConnectionLost: the connection ended first.
            ListFailed: the script says so.
        """

        async def work() -> Listing:
            self.lists += 1
            tools = self.script.tools
            await trio.sleep(self.script.list_delay)
            if self.script.list_error is not None:
                raise ListFailed(self.script.list_error)
            return Listing(tools)

        listing: Listing = await self.until_lost(work)
        return listing

    async def call_tool(
        self,
        bare: str,
        arguments: Mapping[str, Any],
        progress: Progress | None,
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> Any:
        """Answer as the script says.

        Raises:
            ConnectionLost: the connection ended before the answer.
        """
        self._log(f"call {bare}")

        async def work() -> Any:
            await trio.sleep(self.script.call_delay)
            if self.script.handler is not None:
                return await self.script.handler(bare, arguments)
            return {"tool": bare, "arguments": dict(arguments)}

        return await self.until_lost(work)


class _Opening:
    def __init__(self, manager: AbstractAsyncContextManager[ScriptedConnection], script: Script | None) -> None:
        self._manager = manager
        self._script = script

    async def __aenter__(self) -> ScriptedConnection:
        return await self._manager.__aenter__()

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> bool | None:
        return await self._manager.__aexit__(kind, error, trace)

    def stderr_tail(self) -> str:
        return "" if self._script is None else self._script.says


class ScriptedServers:
    """A `Connect` over scripts, by server name. A name without a script is a command that is not found.

    Attributes:
        scripts: by server name.
        live: the connections that are open now, by server name.
        spawns: how often each server was started.
        most_at_once: the most copies of each server that were ever alive at the same time.
        log: (trio clock, server, what happened), in order.
    """

    def __init__(self, **scripts: Script | Iterable[str]) -> None:
        self.scripts: dict[str, Script] = {
            name: script if isinstance(script, Script) else Script(tuple(script)) for name, script in scripts.items()
        }
        self.live: dict[str, ScriptedConnection] = {}
        self.spawns: Counter[str] = Counter()
        self.ends: Counter[str] = Counter()
        self.most_at_once: Counter[str] = Counter()
        self.log: list[tuple[float, str, str]] = []
        self._alive: Counter[str] = Counter()

    @property
    def alive(self) -> dict[str, int]:
        """How many copies of each server are alive now; names with none are left out."""
        return {name: count for name, count in self._alive.items() if count}

    def entries(self, **keys: Any) -> tuple[ServerEntry, ...]:
        """An entry for each script, in order; ``keys`` go to all of them."""
        return tuple(ServerEntry(name, command=name, **keys) for name in self.scripts)

    def _say(self, name: str, what: str) -> None:
        self.log.append((trio.current_time(), name, what))

    def __call__(
        self, entry: ServerEntry, *, eras: EraMemory, on_list_changed: Callable[[], None], client: Client | None = None
    ) -> Opening:
        """Connect as the script of ``entry.name`` says; see `ports.Connect`. Nothing is asked of the client."""
        return _Opening(self._open(entry, on_list_changed), self.scripts.get(entry.name))

    @asynccontextmanager
    async def _open(self, entry: ServerEntry, on_list_changed: Callable[[], None]) -> AsyncIterator[ScriptedConnection]:
        name = entry.name
        self.spawns[name] += 1
        script = self.scripts.get(name)
        if script is None:
            raise ConnectionFailed(f"command not found: {entry.command}", futile=True)
        with self.life(name):
            async with self._connect(name, script, on_list_changed) as connection:
                yield connection

    @contextmanager
    def life(self, name: str) -> Iterator[None]:
        """One copy of a server is alive inside; counted and logged."""
        self._alive[name] += 1
        self.most_at_once[name] = max(self.most_at_once[name], self._alive[name])
        self._say(name, "spawn")
        try:
            yield
        finally:
            self._alive[name] -= 1
            self.ends[name] += 1
            self._say(name, "end")

    @asynccontextmanager
    async def _connect(
        self, name: str, script: Script, on_list_changed: Callable[[], None]
    ) -> AsyncIterator[ScriptedConnection]:
        connection = ScriptedConnection(
            script, 1000 + sum(self.spawns.values()), lambda what: self._say(name, what), on_list_changed
        )
        try:
            await trio.sleep(script.connect_delay)
            if script.refuse is not None:
                raise ConnectionFailed(
                    script.refuse,
                    stderr_tail=script.says or script.refuse,
                    needs_auth=script.needs_auth,
                    futile=script.futile,
                )
            self.live[name] = connection
            self._say(name, "connected")
            yield connection
        finally:
            if self.live.get(name) is connection:
                del self.live[name]
            connection.lose("closed")
            if script.close_delay:
                with trio.CancelScope(shield=True):
                    await trio.sleep(script.close_delay)
