"""Calls: from a wire name to a tool's result, in the caller's own task and by its deadline.

A call bypasses every mailbox. It is resolved in a catalog value, routed by (server, bare) to the server's open line, and
waits for that line only during the server's first start; else a server that is not ready refuses at once.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Literal

import trio

from ..supervision import Cell
from .again import may_repeat, on_its_way, pause_before
from .board import Board
from .line import Line
from .model.catalog import Catalog
from .model.config import ServerEntry
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
from .model.phase import predicate
from .model.plain import flat, quoted
from .model.profile import Profile
from .model.schema.sound import canonical
from .model.schema.strict import unstrict
from .model.snapshot import ServerState, Snapshot
from .model.status import ServerStatus, ToolDef
from .model.tool import prepare
from .model.why import why
from .model.wire import WireTool
from .natives import Natives
from .operations import not_meant_to_run
from .ports import Progress
from .telemetry.calls import again, calling, finished, resolved, running
from .telemetry.notes import Note

__all__ = ["Calls", "check_call", "check_names", "refusal"]

IDLE = 60.0
"""Seconds a call may stay without an answer or progress, unless the argument or the entry says otherwise."""

PATIENCE = 10
"""A call without an argument of its own may take this many times its idle limit, however much progress it reports."""


def refusal(entry: ServerEntry | None, status: ServerStatus) -> str | None:
    """Why a call to a server that has no open line is refused at once, or None when it should wait.

    Args:
        entry: as configured, or None.
        status: what is known of it.
    """
    if entry is None:
        return "it is not configured any more"
    if not entry.runnable:
        return not_meant_to_run(entry)
    report, lifecycle = status.report, status.lifecycle
    if lifecycle is None:
        return None
    current = report if report is not None and report.generation == lifecycle.generation else None
    if current is not None and current.needs_auth:
        return f"it {predicate('needs_auth')}: {flat(current.error or 'unknown')}"
    if current is not None and current.error is not None and lifecycle.stage == "running":
        return f"it has ended and is being cleared away: {flat(current.error)}"
    if lifecycle.stage in ("starting", "running", "stopping") and lifecycle.first:
        return None
    if lifecycle.stage == "parked" and current is not None and current.futile:
        return f"it is parked: {flat(current.error or 'unknown')}; mend that and revive it"
    cause = flat(lifecycle.error or (current.error if current is not None else None) or "unknown")
    return {
        "backing_off": f"it is waiting to be restarted after: {cause}",
        "parked": f"it is parked after {lifecycle.restarts} restarts: {cause}",
    }.get(lifecycle.stage, f"it is being restarted after: {cause}")


class Calls:
    """Routes calls.

    Args:
        board: where open lines and statuses are.
        cell: the published snapshot.
        natives: the embedder's own tools.
        closing: whether the host has begun to close.
    """

    def __init__(
        self, *, board: Board, cell: Cell[Snapshot], natives: tuple[NativeTool, ...], closing: Callable[[], bool]
    ) -> None:
        self._board = board
        self._cell = cell
        self._natives = Natives(natives)
        self._closing = closing

    async def by_wire_name(
        self,
        wire_name: str,
        arguments: Mapping[str, Any] | None,
        *,
        catalog: Catalog | None,
        timeout: float | None,
        progress: Progress | None,
        retry: int = 0,
        shown: Callable[[], Snapshot] | None = None,
        lens: Lens = EVERYTHING,
    ) -> Any:
        """See `Host.call`; ``shown`` and ``lens``: of the view that is called through."""
        shown = self._published if shown is None else shown
        with _told(wire_name, shown().catalog if catalog is None else catalog):
            result = await self._by_wire_name(wire_name, arguments, catalog, timeout, progress, retry, shown, lens)
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
        shown: Callable[[], Snapshot],
        lens: Lens,
    ) -> Any:
        if self._closing():
            raise HostClosed
        snapshot = shown()
        offered = catalog if catalog is not None else snapshot.catalog
        tool = offered.tool(wire_name)
        began = trio.current_time()
        if tool is None and catalog is None and await self._awaited(wire_name, shown, lens, timeout):
            snapshot = shown()
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
        return await self._by_origin(
            tool.server,
            tool.bare,
            arguments,
            timeout=timeout,
            progress=progress,
            retry=retry,
            name=wire_name,
            began=began,
            strict=offered.profile.strict,
            held=None if catalog is None else (tool, catalog.profile),
        )

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

        async def work(_: Heard) -> None:
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

        await _by_deadline(name, timeout, IDLE, work)
        return True

    def _first_list(self, server: str) -> Literal["awaited", "there"] | ServerUnavailable:
        """How it stands with the first list of a server, for a call that waits for it."""
        if self._closing():
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
    ) -> Any:
        """See `Host.call_tool`. The arguments are the server's as they are: no catalog was shown to whoever calls."""
        with calling(server, bare):
            result = await self._by_origin(server, bare, arguments, timeout=timeout, progress=progress, retry=retry)
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
        name: str | None = None,
        began: float | None = None,
        strict: bool = False,
        held: tuple[WireTool, Profile] | None = None,
    ) -> Any:
        """A call by origin.

        Args:
            name: the wire name it was called by.
            began: trio clock time from which the deadline counts, or None for now.
            strict: the arguments answer to a schema of strict mode, in which null stands for what is left out.
            held: the tool as a held catalog has it, and that one's profile; it must still be the same one.
        """
        entry = self._board.config.config.get(server)
        if entry is None:
            config = self._board.config.config
            raise UnknownServer(server, nearest(server, (each.name for each in config.servers)), config.path)
        if not entry.allows(bare):
            shown = why(self._cell.value, server, bare)  # which may be older than the config
            words = shown.reason if shown.verdict == "excluded" else None
            raise ToolNotOffered(f"{server}/{bare}", words or f"excluded by the lists of server {quoted(server)}")

        async def once(line: Line, heard: Heard) -> tuple[ToolDef, Any]:
            """One call, with what it was of; what only a loss of the server raises is an outcome too."""
            source = self._known(server, bare) if held is None else self._as_held(*held)
            given = dict(arguments or {})
            if strict:
                # By what the server advertises now, not by what the model was shown: that one is mended.
                given = unstrict(given, source.input_schema)
            # Only an idle limit is extended by progress; with a total of the caller's own nobody need be told of it.
            listens = progress is not None or timeout is None
            try:
                return source, await line.call(bare, given, _heard(progress, heard) if listens else None)
            except (ServerDied, ServerUnavailable) as error:
                return source, error

        async def work(heard: Heard) -> Any:
            failed: Line | None = None
            attempts = 1
            while True:
                line = await self._line(server, patient=retry > 0, failed=failed)
                source, outcome = await once(line, heard)
                pause = pause_before(outcome) if attempts <= retry and may_repeat(source) else None
                if pause is None or (pause and not heard(pause)):
                    break
                failed = line if isinstance(outcome, Exception) else None
                await trio.sleep(pause)
                attempts += 1
                again(attempts)
            if isinstance(outcome, Exception):
                raise outcome
            return outcome

        return await _by_deadline(name or f"{server}/{bare}", timeout, entry.timeout or IDLE, work, began)

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

    async def _line(self, server: str, *, patient: bool = False, failed: Line | None = None) -> Line:
        """The open line of a server; waits for it during a first start only.

        Args:
            server: its name.
            patient: waits whenever the server is on its way to have one.
            failed: not this one.
        """
        while True:
            if self._closing():
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

    async def _native(self, tool: NativeTool, arguments: Mapping[str, Any], timeout: float | None) -> Any:
        async def work(_: Heard) -> Any:
            return await self._natives.run(tool, arguments)

        try:
            return await _by_deadline(tool.name, timeout, IDLE, work)
        except CallTimeout as late:
            return self._natives.late(tool, late)


def _told(wire_name: str, offered: Catalog) -> Note:
    """A call by wire name, for those who watch; entered in the caller's task."""
    tool = offered.tool(wire_name)
    if tool is None:
        return calling(None, wire_name)
    return running(tool.bare) if tool.server is None else calling(tool.server, tool.bare)


def check_names(*given: object) -> None:
    """Refuse, where it is written, what can name nothing: inside, it would be a defect of ours."""
    for name in given:
        if not isinstance(name, str):
            raise TypeError(f"a name is a string, not {name!r}")


def check_call(arguments: object, timeout: object) -> None:
    """Refuse arguments and a timeout that are none, with TypeError or ValueError."""
    if arguments is not None and not (
        isinstance(arguments, Mapping) and all(isinstance(key, str) for key in arguments)
    ):
        raise TypeError(f"arguments are a mapping with strings as keys, not {arguments!r}")
    if timeout is not None and not (isinstance(timeout, (int, float)) and timeout >= 0):
        raise ValueError(f"timeout is a number of seconds, 0 or more, not {timeout!r}")


def _unlisted(wire_name: str, snapshot: Snapshot) -> list[ServerState]:
    """The servers without a list yet that a wire name may be of."""
    return [
        server for server in snapshot.model.servers if server.list_state == "none" and may_be_of(wire_name, server.name)
    ]


def _withdrawn(server: str) -> str:
    return f"server {quoted(server)} does not advertise it any more"


def _heard(progress: Progress | None, heard: Heard) -> Progress:
    async def note(done: float, total: float | None, message: str | None) -> None:
        heard()
        if progress is None:
            await trio.lowlevel.checkpoint()
        else:
            await progress(done, total, message)

    return note


Heard = Callable[..., bool]
"""Told of a sign of life; with the seconds of a pause, of that: says whether the call has time for it."""


async def _by_deadline(
    name: str,
    timeout: float | None,
    idle: float,
    work: Callable[[Heard], Awaitable[Any]],
    began: float | None = None,
) -> Any:
    """Run one call by its deadline.

    An argument is the total. Without one the idle limit counts, which progress extends, within a total that nothing does; and
    so does a pause that the server asked for.
    """
    start = trio.current_time() if began is None else began
    total = start + (timeout if timeout is not None else PATIENCE * idle)
    quiet = math.inf if timeout is not None else idle

    def heard(pause: float = 0.0) -> bool:
        until = trio.current_time() + pause
        scope.deadline = min(total, until + quiet)
        return until < total

    with trio.CancelScope(deadline=min(total, start + quiet)) as scope:
        return await work(heard)
    raise CallTimeout(name, scope.deadline - start)
