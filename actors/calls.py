"""Calls: from a wire name to a tool's result, in the caller's own task and by its deadline.

A call bypasses every mailbox. It is resolved in a catalog value, routed by (server, bare) to the server's open line, and
waits for that line only during the server's first start; else a server that is not ready refuses at once.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any, Literal

import trio

from ..supervision import Cell
from .again import may_repeat, on_its_way, pause_before
from .board import Board
from .deadline import IDLE, Deadline, Timer, by_deadline
from .line import Line
from .model.catalog import Catalog
from .model.errors import (
    CallTimeout,
    HostClosed,
    ServerDied,
    ServerUnavailable,
    ToolNotOffered,
    UnknownServer,
    UnknownTool,
)
from .model.lens import EVERYTHING, Lens
from .model.naming import PREFIX, may_be_of
from .model.native import NativeTool
from .model.nearest import nearest
from .model.plain import quoted
from .model.profile import Profile
from .model.schema.sound import canonical
from .model.schema.strict import unstrict
from .model.snapshot import ServerState, Snapshot
from .model.status import ToolDef
from .model.tool import prepare
from .model.why import why
from .model.wire import WireTool
from .natives import Natives
from .ports import ConnectionLost, Expired, Progress
from .refusal import refusal
from .routes import Route, Routes
from .telemetry.calls import again, calling, finished, resolved, running, watched
from .telemetry.notes import Note

__all__ = ["Calls"]

TELL_SECONDS = 5.0
"""Within which a server takes what is said to all of them."""


class Calls:
    """Routes calls.

    Args:
        board: where open lines and statuses are.
        cell: the published snapshot.
        natives: the embedder's own tools.
        closing: whether the host has begun to close.
        timer: runs as long as the host does.
    """

    def __init__(
        self,
        *,
        board: Board,
        cell: Cell[Snapshot],
        natives: tuple[NativeTool, ...],
        closing: Callable[[], bool],
        timer: Timer,
    ) -> None:
        self._board = board
        self._cell = cell
        self._timer = timer
        self._routes = Routes()
        self._natives = Natives(natives)
        self.closing = closing

    async def by_wire_name(
        self,
        wire_name: str,
        arguments: Mapping[str, Any] | None,
        *,
        catalog: Catalog | None,
        timeout: float | None,
        progress: Progress | None,
        retry: int = 0,
        meta: Mapping[str, Any] | None = None,
        shown: Callable[[], Snapshot] | None = None,
        lens: Lens = EVERYTHING,
        routes: Routes | None = None,
    ) -> Any:
        """See `Host.call`; ``shown``, ``lens`` and ``routes``: of the view that is called through."""
        shown = self._published if shown is None else shown
        routes = self._routes if routes is None else routes
        now = shown()
        if progress is None and not retry and (timeout is None or timeout > 0) and not watched():
            route = routes.find(wire_name, catalog, self._board.version, now)
            if route is not None:
                return await self._directly(route, wire_name, arguments, timeout, meta)
        with _told(wire_name, shown().catalog if catalog is None else catalog):
            result = await self._by_wire_name(
                wire_name, arguments, catalog, timeout, progress, retry, meta, shown, lens, routes
            )
            finished(result)
            return result

    async def _by_wire_name(
        self,
        wire_name: str,
        arguments: Mapping[str, Any] | None,
        catalog: Catalog | None,
        timeout: float | None,
        progress: Progress | None,
        retry: int,
        meta: Mapping[str, Any] | None,
        shown: Callable[[], Snapshot],
        lens: Lens,
        routes: Routes,
    ) -> Any:
        if self.closing():
            raise HostClosed
        version, snapshot = self._board.version, shown()
        offered = catalog if catalog is not None else snapshot.catalog
        tool = offered.tool(wire_name)
        began = trio.current_time()
        if tool is None and catalog is None and await self._awaited(wire_name, shown, lens, timeout):
            version, snapshot = self._board.version, shown()
            tool = snapshot.catalog.tool(wire_name)
        if tool is None:
            raise self._not_offered(wire_name, snapshot, offered, lens)
        if tool.server is None:
            hidden = lens.hides_native(tool.bare)
            if hidden is not None:
                raise ToolNotOffered(wire_name, hidden)
            native = self._natives.find(tool.bare)
            if native is None:
                raise ToolNotOffered(wire_name, "the catalog that the call was made with is another host's")
            if offered.profile.strict:
                arguments = unstrict(dict(arguments or {}), native.input_schema)
            return await self._native(native, arguments or {}, timeout)
        resolved(tool.server, tool.bare)
        self._refuse_withdrawn(tool, snapshot, offered.profile, lens)
        strict = offered.profile.strict

        def keep(line: Line, source: ToolDef, limit: float | None) -> None:
            if self._board.version == version and shown() is snapshot:
                routes.keep(wire_name, Route(line, source, limit, strict, catalog), version, snapshot)

        return await self._by_origin(
            tool.server,
            tool.bare,
            arguments,
            timeout=timeout,
            progress=progress,
            retry=retry,
            meta=meta,
            name=wire_name,
            began=began,
            strict=strict,
            held=None if catalog is None else (tool, catalog.profile),
            keep=keep,
        )

    async def _directly(
        self,
        route: Route,
        name: str,
        arguments: Mapping[str, Any] | None,
        timeout: float | None,
        meta: Mapping[str, Any] | None,
    ) -> Any:
        """A call on a way that is known, to a line that takes calls: it waits for its answer only, in no scope of ours."""
        if self.closing():
            raise HostClosed
        deadline = Deadline(timeout, route.timeout or IDLE, trio.current_time(), self._timer)
        try:
            self._timer.add(deadline)
            return await route.line.call_directly(route.source.bare, route.given(arguments), deadline, meta)
        except Expired:
            raise CallTimeout(name, deadline.seconds) from None
        finally:
            self._timer.waiting.discard(deadline)

    def _published(self) -> Snapshot:
        return self._cell.value

    async def _awaited(self, name: str, shown: Callable[[], Snapshot], lens: Lens, timeout: float | None) -> bool:
        """Wait for the first lists of the servers that a wire name may be of, until one has it; False when there are none.

        Raises:
            ServerUnavailable: none has it, and one of them has no list and gets none now.
        """
        servers = [each.name for each in _unlisted(name, shown()) if lens.hides_server(each.name) is None]
        if not servers:
            return False

        async def work(_: Deadline) -> None:
            while True:
                version = self._board.version
                states = [self._first_list(server) for server in servers]
                try:
                    await self._board.projected(version)
                    listed = [state for server in servers if (state := shown().model.server(server)) is not None]
                    if any(tool.wire_name == name for state in listed for tool in state.tools):
                        return
                    if "awaited" not in states:
                        break
                    await self._board.changed(version)
                except trio.ClosedResourceError:
                    raise HostClosed from None
            for each in states:
                if isinstance(each, ServerUnavailable):
                    raise each

        await by_deadline(name, timeout, IDLE, work)
        return True

    def _first_list(self, server: str) -> Literal["awaited", "there"] | ServerUnavailable:
        """How it stands with the first list of a server, for a call that waits for it."""
        if self.closing():
            raise HostClosed
        line = self._board.lines.get(server)
        if line is not None and line.closing is None:
            return "there"
        reason = refusal(self._board.config.config.get(server), self._board.status(server))
        return "awaited" if reason is None else ServerUnavailable(server, reason)

    def _not_offered(self, wire_name: str, snapshot: Snapshot, offered: Catalog, lens: Lens) -> Exception:
        hidden = lens.hides_native(wire_name)
        if hidden is not None and self._natives.find(wire_name) is not None:
            return ToolNotOffered(wire_name, hidden)
        for server in snapshot.model.servers:
            for tool in server.tools:
                if tool.wire_name == wire_name:
                    reason = why(snapshot, server.name, tool.bare, trio.current_time()).reason
                    if tool.verdict == "server_down":
                        return ServerUnavailable(server.name, reason or server.phase)
                    return ToolNotOffered(wire_name, reason or "it is not in the catalog that the call was made with")
        for server in _unlisted(wire_name, snapshot):
            hidden = lens.hides_server(server.name)
            if hidden is not None:
                return ToolNotOffered(wire_name, hidden)
        # What they all begin with would make any two of them alike.
        names = {tool.wire_name.removeprefix(PREFIX): tool.wire_name for tool in offered.tools}
        near = nearest(wire_name.removeprefix(PREFIX), names)
        return UnknownTool(wire_name, None if near is None else names[near])

    def _refuse_withdrawn(self, tool: WireTool, snapshot: Snapshot, profile: Profile, lens: Lens) -> None:
        assert tool.server is not None
        server = snapshot.model.server(tool.server)
        if server is None:
            raise ServerUnavailable(tool.server, "it is not configured any more")
        state = server.tool(tool.bare)
        if state is None:
            hidden = lens.hides(tool.server, tool.bare, tool.wire_name)
            if hidden is not None:
                raise ToolNotOffered(tool.wire_name, hidden)
            if server.list_state == "none":
                return
            raise ToolNotOffered(tool.wire_name, _withdrawn(tool.server))
        if state.verdict == "quarantined" and profile != snapshot.catalog.profile:
            # What one profile does not take another one may: the catalog's own decides whether it still offers the tool.
            flaw = self._flaw(tool.server, tool.bare, profile)
            if flaw is not None:
                raise ToolNotOffered(tool.wire_name, flaw)
        elif state.verdict in ("excluded", "quarantined"):
            raise ToolNotOffered(tool.wire_name, why(snapshot, tool.server, tool.bare).reason or state.verdict)

    def _flaw(self, server: str, bare: str, profile: Profile) -> str | None:
        for source in self._board.status(server).tools or ():
            if source.bare == bare:
                made = prepare(server, source, profile)
                return None if made is None or made.flaw is None else str(made.flaw)
        return None

    async def by_origin(
        self,
        server: str,
        bare: str,
        arguments: Mapping[str, Any] | None,
        *,
        timeout: float | None,
        progress: Progress | None,
        retry: int = 0,
        meta: Mapping[str, Any] | None = None,
    ) -> Any:
        """See `Host.call_tool`. The arguments are the server's as they are: no catalog was shown to whoever calls."""
        version, snapshot = self._board.version, self._cell.value
        if progress is None and not retry and (timeout is None or timeout > 0) and not watched():
            route = self._routes.find((server, bare), None, version, snapshot)
            if route is not None:
                return await self._directly(route, f"{server}/{bare}", arguments, timeout, meta)

        def keep(line: Line, source: ToolDef, limit: float | None) -> None:
            if self._board.version == version and self._cell.value is snapshot:
                self._routes.keep((server, bare), Route(line, source, limit), version, snapshot)

        with calling(server, bare):
            result = await self._by_origin(
                server, bare, arguments, timeout=timeout, progress=progress, retry=retry, meta=meta, keep=keep
            )
            finished(result)
            return result

    async def _by_origin(
        self,
        server: str,
        bare: str,
        arguments: Mapping[str, Any] | None,
        *,
        timeout: float | None,
        progress: Progress | None,
        retry: int = 0,
        meta: Mapping[str, Any] | None = None,
        name: str | None = None,
        began: float | None = None,
        strict: bool = False,
        held: tuple[WireTool, Profile] | None = None,
        keep: Callable[[Line, ToolDef, float | None], None],
    ) -> Any:
        """A call by origin.

        Args:
            name: the wire name it was called by.
            began: trio clock time from which the deadline counts, or None for now.
            strict: the arguments answer to a schema of strict mode, in which null stands for what is left out.
            held: the tool as a held catalog has it, and that one's profile; it must still be the same one.
            keep: takes the way that was found: its line, what the server advertises, and the entry's timeout.
        """
        entry = self._board.config.config.get(server)
        if entry is None:
            config = self._board.config.config
            raise UnknownServer(server, nearest(server, (each.name for each in config.servers)), config.path)
        if not entry.allows(bare):
            shown = why(self._cell.value, server, bare)  # which may be older than the config
            words = shown.reason if shown.verdict == "excluded" else None
            raise ToolNotOffered(f"{server}/{bare}", words or f"excluded by the lists of server {quoted(server)}")

        async def once(line: Line, deadline: Deadline) -> tuple[ToolDef, Any]:
            """One call, with what it was of; what only a loss of the server raises is an outcome too."""
            source = self._known(server, bare) if held is None else self._as_held(*held)
            given = dict(arguments or {})
            if strict:
                # By what the server advertises now, not by what the model was shown: that one is mended.
                given = unstrict(given, source.input_schema)
            keep(line, source, entry.timeout)
            try:
                return source, await line.call(bare, given, deadline.told(progress), patience=deadline, meta=meta)
            except (ServerDied, ServerUnavailable) as error:
                return source, error

        async def work(deadline: Deadline) -> Any:
            failed: Line | None = None
            attempts = 1
            while True:
                line = await self.line(server, patient=retry > 0, failed=failed)
                source, outcome = await once(line, deadline)
                pause = pause_before(outcome) if attempts <= retry and may_repeat(source) else None
                if pause is None or (pause and not deadline.pauses(pause)):
                    break
                failed = line if isinstance(outcome, Exception) else None
                await trio.sleep(pause)
                attempts += 1
                again(attempts)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        return await by_deadline(name or f"{server}/{bare}", timeout, entry.timeout or IDLE, work, began)

    def _known(self, server: str, bare: str) -> ToolDef:
        """The definition of a tool that a server lists."""
        tools = self._board.status(server).tools or ()
        for tool in tools:
            if tool.bare == bare:
                return tool
        raise UnknownTool(bare, nearest(bare, (tool.bare for tool in tools)), server=server)

    def _as_held(self, tool: WireTool, profile: Profile) -> ToolDef:
        """The definition of a tool that a server lists, provided that it takes what the held catalog says it takes.

        Not by the description: servers put news there, and it is the arguments that another tool cannot be given.
        """
        assert tool.server is not None
        for source in self._board.status(tool.server).tools or ():
            if source.bare == tool.bare:
                break
        else:
            raise ToolNotOffered(tool.wire_name, _withdrawn(tool.server))
        made = prepare(tool.server, source, profile)
        if made is not None and made.flaw is not None:
            raise ToolNotOffered(tool.wire_name, str(made.flaw))
        now = source.input_schema if made is None else made.wire.input_schema
        if now is not tool.input_schema and canonical(now) != canonical(tool.input_schema):
            raise ToolNotOffered(
                tool.wire_name,
                f"server {quoted(tool.server)} lists it with another input schema now than the catalog that the call was made "
                "with; call it by the catalog as it is now",
            )
        return source

    async def line(self, server: str, *, patient: bool = False, failed: Line | None = None) -> Line:
        """The open line of a server; waits for it during a first start only.

        Args:
            server: its name.
            patient: waits whenever the server is on its way to have one.
            failed: not this one.
        """
        while True:
            if self.closing():
                raise HostClosed
            version = self._board.version
            line = self._board.lines.get(server)
            renewing = line is not None and (line.renewing or line is failed)
            if line is not None and line.closing is None and not renewing:
                return line
            reason = None if renewing else refusal(self._board.config.config.get(server), self._board.status(server))
            if reason is not None and not (patient and on_its_way(self._board.status(server))):
                raise ServerUnavailable(server, reason)
            try:
                await self._board.changed(version)
            except trio.ClosedResourceError:
                raise HostClosed from None

    async def tell_all(self, what: str) -> None:
        """Have every open connection that knows a method of that name say it, each within `TELL_SECONDS`. A checkpoint."""
        if self.closing():
            raise HostClosed
        await trio.lowlevel.checkpoint()

        async def tell(line: Line) -> None:
            with trio.move_on_after(TELL_SECONDS), suppress(ConnectionLost):
                await getattr(line.connection, what)()

        async with trio.open_nursery() as nursery:
            for line in tuple(self._board.lines.values()):
                if hasattr(line.connection, what):
                    nursery.start_soon(tell, line)

    async def _native(self, tool: NativeTool, arguments: Mapping[str, Any], timeout: float | None) -> Any:
        async def work(_: Deadline) -> Any:
            return await self._natives.run(tool, arguments)

        try:
            return await by_deadline(tool.name, timeout, IDLE, work)
        except CallTimeout as late:
            return self._natives.late(tool, late)


def _told(wire_name: str, offered: Catalog) -> Note:
    """A call by wire name, for those who watch; entered in the caller's task."""
    tool = offered.tool(wire_name)
    if tool is None:
        return calling(None, wire_name)
    return running(tool.bare) if tool.server is None else calling(tool.server, tool.bare)


def _unlisted(wire_name: str, snapshot: Snapshot) -> list[ServerState]:
    """The servers without a list yet that a wire name may be of."""
    return [
        server for server in snapshot.model.servers if server.list_state == "none" and may_be_of(wire_name, server.name)
    ]


def _withdrawn(server: str) -> str:
    return f"server {quoted(server)} does not advertise it any more"
