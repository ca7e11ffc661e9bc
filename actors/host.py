"""The house: `Host`, what an embedding program holds, and all that it can do.

A host reads from one cell and asks through one door: `snapshot` and `changes` read what the projector published, the
operations go to the coordinator, and calls go straight to the server's line. Opening one is `opening.open_host`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Iterable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import trio

from ..supervision import Cell, Supervisor
from .again import check_retry
from .board import Board
from .calls import Calls
from .desk import Apply, Reload, Trust
from .given import check_call, check_names
from .inspecting import Inspecting
from .line import Stop
from .logging_in import LoggingIn, LoginDoor
from .model.budget import Budget, as_budget
from .model.catalog import Catalog
from .model.config import Config, ServerEntry
from .model.edits import AddServer, RemoveServer, SetEnabled, SetPin, SetTool
from .model.errors import ConfigError, HostClosed, UnknownServer
from .model.lens import Item, Lens
from .model.native import check_natives
from .model.nearest import nearest
from .model.preview import Preview
from .model.profile import Profile, find_profile
from .model.snapshot import Snapshot, Why
from .model.why import why
from .operations import Operations
from .ports import Progress
from .readiness import Readiness, answered, readiness
from .reading import Reading
from .view import View, foresee, seen_on

if TYPE_CHECKING:
    from mcp.types import CallToolResult

__all__ = ["Host", "Readiness"]


class Host(Inspecting, Reading, LoggingIn):
    """Many MCP servers, run and supervised inside the caller's own trio program. Made by `open_host`."""

    def __init__(
        self,
        *,
        core: Supervisor,
        pool: Supervisor,
        board: Board,
        cell: Cell[Snapshot],
        operations: Operations,
        calls: Calls,
        door: LoginDoor,
        drain: float,
    ) -> None:
        self._core = core
        self._pool = pool
        self._board = board
        self._cell = cell
        self._operations = operations
        self._calls = calls
        self._door = door
        self._drain = drain

    # Reading.

    def snapshot(self) -> Snapshot:
        """The snapshot now. Not async: never waits, never raises, and stays readable after the host closed."""
        return self._cell.value

    def changes(self) -> AsyncIterator[Snapshot]:
        """The snapshot now, then the latest after each change, conflated: a slow reader skips versions.

        Ends when the host closes. Each iterator is for one task and needs no closing.
        """
        return self._cell.changes()

    async def ready(self, *, require: Literal["all", "any"] | Collection[str] = "all", timeout: float) -> Readiness:
        """Wait until servers are ready; the deadline is an answer, not an exception.

        Args:
            require: ``all`` that are meant to run (not disabled), ``any`` one of them, or these names.
            timeout: seconds at most.

        Returns:
            Which are ready and, with reasons, which are not. It does not wait on for a server that will not become ready by
            itself (parked, in need of a login, not trusted, invalid, disabled).

        Raises:
            UnknownServer: a required name is not configured.
            HostClosed: the host closed meanwhile.
        """
        if not isinstance(require, str):
            configured = [state.name for state in self.snapshot().model.servers]
            for name in require:
                if name not in configured:
                    raise UnknownServer(name, nearest(name, configured), self._board.config.config.path)
        with trio.move_on_after(timeout):
            try:
                await self._caught_up()
                await self._cell.wait(lambda snapshot: answered(snapshot.model, require))
            except trio.ClosedResourceError:
                raise HostClosed from None
        return readiness(self.snapshot().model, require)

    async def _caught_up(self) -> None:
        """Wait until the snapshot says what callers were told: one who heard of a death must not be told `ready` of it."""
        while any(line.lost for line in self._board.lines.values()):
            await self._board.changed(self._board.version)
        await self._board.projected(self._board.version)

    def why(self, server: str, bare: str) -> Why:
        """Why a tool is, or is not, on the wire, read from the snapshot now. Never waits."""
        check_names(server, bare)
        return why(self.snapshot(), server, bare, self._now())

    def _now(self) -> float | None:
        """What time it is for the servers, or None where none of them has a next time: outside of trio, or after the close."""
        if self._operations.closing:
            return None
        try:
            return trio.current_time()
        except RuntimeError:
            return None

    def preview(
        self,
        *,
        enable: Iterable[Item] = (),
        disable: Iterable[Item] = (),
        pin: Iterable[Item] = (),
        unpin: Iterable[Item] = (),
        budget: Budget | int | None = None,
        profile: Profile | str | None = None,
    ) -> Preview:
        """What would be on the wire if some things were otherwise: what would be sent, and what trimmed. Changes nothing.

        Not async: it never waits.

        Args:
            enable, disable: tools, each a `ToolRef` or ``server/tool``, and servers by name.
            pin, unpin: tools likewise.
            budget: another one; a number is all of it, as in `open_host`. None: the host's (``Budget(None)`` is no cap).
            profile: another one, or its name; None: the host's. Tools not yet judged for it are judged here, which takes some
                0.1 ms each.

        Raises:
            UnknownServer, UnknownTool: nothing of that name is known; the nearest is named.
            ValueError: a string can be more than one thing; or there is no such profile, or the budget is negative.
            TypeError: one string stands for a list, an item is neither a string nor a `ToolRef`, or the budget is no budget.
        """
        return foresee(
            seen_on(self._board),
            enable=enable,
            disable=disable,
            pin=pin,
            unpin=unpin,
            budget=budget,
            profile=profile,
        )

    def view(
        self,
        *,
        exclude: Iterable[Item] = (),
        include: Iterable[Item] | None = None,
        budget: Budget | int | None = None,
        profile: Profile | str | None = None,
    ) -> View:
        """An agent's own catalog over this host's servers: no further process, and nothing to close.

        Opening it never waits, and judges nothing. Its first ``snapshot()`` does, when it is for a profile that no view had
        yet: all tools at once, some 0.1 ms each. What servers list later is judged beforehand, as for the host.

        An item is the name of a server, ``server/tool``, a wire name, a `ToolRef`, or a native tool's name. It is compared as a
        whole, and stands for what comes later too; so none is refused. `View.unmatched` tells those that name nothing now.

        Args:
            exclude: what is left out; wins over ``include``.
            include: when given, only these MCP tools are left. Native tools are, unless they are excluded.
            budget: a number is all of it, as in `open_host`. None: the host's (``Budget(None)`` is no cap).
            profile: what its catalog is made for, or the name of it; None: the host's.

        Raises:
            ValueError: there is no such profile, or it does not take a native tool that is not excluded (`open_host`); or the
                budget is negative.
            TypeError: one string stands for a list, an item is neither a string nor a `ToolRef`, or the budget is no budget.
        """
        lens, taker = Lens(exclude, include), None if profile is None else find_profile(profile)
        if taker is not None:
            check_natives(lens.natives(seen_on(self._board).natives), taker)
        return View(
            board=self._board,
            cell=self._cell,
            calls=self._calls,
            now=self._now,
            lens=lens,
            budget=as_budget(budget),
            profile=taker,
        )

    # Operations. Each returns the snapshot in which its effect is visible.
    #
    # All raise `HostClosed` once the host is closing, `OperationTimeout` after ``timeout`` seconds (None: the host's own), and
    # TypeError for a name that is no string.

    async def plugin_add(
        self,
        name: str,
        command: str | None = None,
        args: Sequence[str] = (),
        *,
        env: Mapping[str, str] | None = None,
        cwd: str | None = None,
        url: str | None = None,
        headers: Mapping[str, str] | None = None,
        headers_helper: str | None = None,
        type: str | None = None,
        replace: bool = False,
        timeout: float | None = None,
    ) -> Snapshot:
        """Add a server to the configuration and start it; it is visible at once, ``starting``.

        Args:
            name: its key; any characters.
            command, args, env, cwd: how to start it over stdio; ``${VAR}`` is expanded at every start.
            url, headers: or where it is.
            headers_helper: a command line that prints more headers of it, as JSON, for each connection; or None.
            type: ``http`` or ``sse``; None: found out.
            replace: whether an entry of that name may be there already.
            timeout: seconds.

        Raises:
            ConfigError: neither or both of command and url, or what does not fit it; or the file cannot be read, and nothing
                was written.
            ServerExists: the name is there and ``replace`` is False.
            WriteFailed: the file could not be written.
        """
        check_names(name)
        file = self._board.config.config.path
        if not name:
            raise ConfigError("a server needs a name", file=file)
        if not command and not url:
            raise ConfigError(f"server {name!r} needs a command or a url", file=file)
        if command and url:
            raise ConfigError(f"server {name!r} has a command or a url, not both", file=file)
        if command and headers_helper:
            raise ConfigError(f"server {name!r} has a command, and gets no headers", file=file)
        if type not in (None, *(("http", "sse") if url else ("stdio",))):
            expected = "http or sse" if url else "stdio"
            raise ConfigError(f"server {name!r}: expected the type {expected}, found {type!r}", file=file)
        entry = ServerEntry(
            name,
            command=command,
            args=args,
            env=dict(env or {}),
            cwd=cwd,
            url=url,
            headers=dict(headers or {}),
            headers_helper=headers_helper,
            type=type,
            source=file,
        )
        return await self._operations.submit("plugin_add", AddServer(entry, replace), timeout)

    async def plugin_remove(self, name: str, *, timeout: float | None = None) -> Snapshot:
        """Remove a server from the configuration; its row is gone at once, though its process may still drain.

        Raises:
            UnknownServer: no such server is configured.
            ConfigError, WriteFailed: as in `plugin_add`.
        """
        check_names(name)
        return await self._operations.submit("plugin_remove", RemoveServer(name), timeout)

    async def tool_set_enabled(self, server: str, bare: str, on: bool, *, timeout: float | None = None) -> Snapshot:
        """Enable or disable one tool; spawns nothing, stops nothing, and waits for no server.

        Raises:
            UnknownServer: no such server is configured.
            UnknownTool: the server's list is known and has no such tool.
            ConfigError, WriteFailed: as in `plugin_add`.
        """
        check_names(server, bare)
        self._operations.check_tool(server, bare)
        return await self._operations.submit("tool_set_enabled", SetTool(server, bare, on), timeout)

    async def server_set_enabled(self, name: str, on: bool, *, timeout: float | None = None) -> Snapshot:
        """Let a server run, or stop it and keep it configured.

        Raises:
            UnknownServer: no such server is configured.
            ConfigError, WriteFailed: as in `plugin_add`.
        """
        check_names(name)
        return await self._operations.submit("server_set_enabled", SetEnabled(name, on), timeout)

    async def pin(self, server: str, bare: str, on: bool, *, timeout: float | None = None) -> Snapshot:
        """Pin a tool, so that the budget trims it last, or unpin it.

        Raises:
            UnknownServer, UnknownTool, ConfigError, WriteFailed: as in `tool_set_enabled`.
        """
        check_names(server, bare)
        self._operations.check_tool(server, bare)
        return await self._operations.submit("pin", SetPin(server, bare, on), timeout)

    async def reload(self, *, timeout: float | None = None) -> Snapshot:
        """Read the configuration anew and run what it says: exactly the delta is spawned and stopped.

        Raises:
            ConfigError: it cannot be read; the last good one stays, and ``model.config_error`` says so too. When one of two
                files cannot be read, what it said last stays, and the other one is in force as it is now.
        """
        return await self._operations.submit("reload", Reload(), timeout)

    async def apply(self, config: Config, *, timeout: float | None = None) -> Snapshot:
        """Put a configuration value in force, for a host that was opened with a value.

        Raises:
            ConfigError: this host reads its configuration from a file.
        """
        if not isinstance(config, Config):
            raise TypeError(f"apply() takes a Config, not {config!r}")
        return await self._operations.submit("apply", Apply(config), timeout)

    async def trust(self, name: str, *, timeout: float | None = None) -> Snapshot:
        """Approve a server as it is configured in the host now, and start it.

        Raises:
            UnknownServer: no such server is configured.
            ConfigError: as in `plugin_add`; or in the file it would run something else than the host shows. That is shown from
                then on, and not approved.
            WriteFailed: as in `plugin_add`.
        """
        check_names(name)
        return await self._operations.submit("trust", Trust(name, self._board.config.config.get(name)), timeout)

    async def restart(self, name: str, *, timeout: float | None = None) -> Snapshot:
        """Stop a server (calls in flight may finish) and start it with a clean history.

        Raises:
            UnknownServer: no such server is configured.
            ServerUnavailable: it is not meant to run.
        """
        check_names(name)

        def again(name: str) -> None:
            self._pool.restart_soon(name, stop_reason=Stop("it is being restarted", self._drain))

        return await self._operations.act("restart", name, timeout, again)

    async def revive(self, name: str, *, timeout: float | None = None) -> Snapshot:
        """Start a server that is parked, or waiting to be restarted, now and with a clean history; a running one is left.

        Raises:
            UnknownServer: no such server is configured.
            ServerUnavailable: it is not meant to run.
        """
        check_names(name)
        return await self._operations.act("revive", name, timeout, self._pool.revive)

    async def roots_changed(self) -> None:
        """Say to all connected servers that ``ClientHandlers.roots`` are others now; those that want to ask for them again.

        Nothing is said to servers of 2026-07-28 and later: they ask with each call that needs them. A checkpoint; a server that
        does not take it within 5 s is left. Roots that are given as values never change.

        Raises:
            HostClosed: the host is closed.
        """
        await self._calls.tell_all("roots_changed")

    # Calls.

    async def call(
        self,
        wire_name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        catalog: Catalog | None = None,
        timeout: float | None = None,
        progress: Progress | None = None,
        retry: int = 0,
        meta: Mapping[str, Any] | None = None,
    ) -> CallToolResult:
        """Call a tool as the model sees it.

        Args:
            wire_name: as in the catalog.
            arguments: JSON values, or None for none.
            catalog: the value that the model was shown; None for the one now. A call through a held catalog reaches the tool
                that it named then, or none: the server of that name must still list a tool of that name, with the input schema
                that the catalog shows of it (as this profile has it). So a restart does not matter, nor does another
                description; but what another program lists under the name, for other arguments, is another tool.
            timeout: seconds in all, for queueing, a first start and the answer. None: the entry's ``timeout`` or 60 s,
                extended by progress up to ten times that.
            progress: awaited with (progress, total, message) for each progress notification.
            retry: how often it may be made again, within the deadline, when its server dies before it answers, or refuses it
                for now. Only a tool that is annotated as read-only or idempotent is called again; without this none ever is.
            meta: for the request's ``_meta``, with keys as the protocol wants them (``example.com/trace``); a native tool's
                handler does not see it.

        Returns:
            The result; an error of the tool is a result too (``is_error``). Structured content that is not what the tool's
            output schema says is given as it is, and ``result.meta["playbill/outputInvalid"]`` says why.

        Raises:
            UnknownTool: no such tool is known.
            ToolNotOffered: it is excluded, quarantined, over the budget, or withdrawn; or it takes other arguments now than the
                ``catalog`` says.
            ServerUnavailable: its server cannot take calls now, or was stopped before it answered.
            ServerDied: its server died before it answered; whether the call took effect is unknown.
            CallTimeout: no answer by the deadline; of a native tool that is a result with ``is_error``.
            HostClosed: the host is closed.
            TypeError, ValueError: the arguments are no mapping with string keys, the timeout no number of seconds, or
                ``retry`` no number.
        """
        check_names(wire_name)
        check_call(arguments, timeout, meta)
        check_retry(retry)
        result: CallToolResult = await self._calls.by_wire_name(
            wire_name, arguments, catalog=catalog, timeout=timeout, progress=progress, retry=retry, meta=meta
        )
        return result

    async def call_tool(
        self,
        server: str,
        bare: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        timeout: float | None = None,
        progress: Progress | None = None,
        retry: int = 0,
        meta: Mapping[str, Any] | None = None,
    ) -> CallToolResult:
        """Call a tool by where it comes from, for programs: the budget and quarantine do not matter, the lists do.

        Args, returns and raises as in `call`, and:

        Raises:
            UnknownServer: no such server is configured.
        """
        check_names(server, bare)
        check_call(arguments, timeout, meta)
        check_retry(retry)
        result: CallToolResult = await self._calls.by_origin(
            server, bare, arguments, timeout=timeout, progress=progress, retry=retry, meta=meta
        )
        return result
