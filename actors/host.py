"""The house: `Host`, what an embedding program holds, and all that it can do.

A host reads from one cell and asks through one door: `snapshot` and `changes` read what the projector published, the
operations go to the coordinator, and calls go straight to the server's line. Opening one is `opening.open_host`.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal

import trio
from attrs import frozen

from ..supervision import Cell, Event, Gap, Supervisor, TreeNode
from .board import Board
from .calls import Calls
from .desk import Apply, Reload, Trust
from .line import Stop
from .model.catalog import Catalog
from .model.config import Config, ServerEntry
from .model.edits import AddServer, RemoveServer, SetEnabled, SetPin, SetTool
from .model.errors import ConfigError, HostClosed, UnknownServer
from .model.nearest import nearest
from .model.snapshot import PluginModel, ServerState, Snapshot, Why
from .model.why import why
from .operations import Operations
from .ports import Progress

if TYPE_CHECKING:
    from mcp.types import CallToolResult

__all__ = ["Host", "Readiness"]

_OFF = ("disabled", "stopping")  # a server is ``stopping`` only on its way to ``disabled``
_SETTLED = ("parked", "needs_auth", "untrusted", "invalid", *_OFF)


@frozen
class Readiness:
    """An answer to `Host.ready`.

    Args:
        ready: names of the servers that are ready.
        missing: name → one line why it is not.
        satisfied: whether what was required is ready; also the truth value.
    """

    ready: tuple[str, ...]
    missing: Mapping[str, str]
    satisfied: bool

    def __bool__(self) -> bool:
        return self.satisfied


class Host:
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
        drain: float,
    ) -> None:
        self._core = core
        self._pool = pool
        self._board = board
        self._cell = cell
        self._operations = operations
        self._calls = calls
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
                await self._cell.wait(lambda snapshot: _answered(snapshot.model, require))
            except trio.ClosedResourceError:
                raise HostClosed from None
        return _readiness(self.snapshot().model, require)

    async def _caught_up(self) -> None:
        """Wait until the snapshot says what callers were told: one who heard of a death must not be told `ready` of it."""
        while any(line.lost for line in self._board.lines.values()):
            await self._board.changed(self._board.version)
        await self._board.projected(self._board.version)

    def why(self, server: str, bare: str) -> Why:
        """Why a tool is, or is not, on the wire, read from the snapshot now. Never waits."""
        _names(server, bare)
        return why(self.snapshot(), server, bare)

    def stderr_tail(self, name: str) -> str:
        """What a server wrote on stderr last (bounded, secrets scrubbed): live, or from its last death.

        Raises:
            UnknownServer: no such server is configured.
        """
        _names(name)
        self._operations.entry(name)
        opening = self._board.openings.get(name)
        if opening is not None:
            return opening.stderr_tail()
        report = self._board.status(name).report
        return "" if report is None else report.stderr_tail

    def tree(self) -> TreeNode:
        """The supervision tree as values."""
        core, pool = self._core.tree(), self._pool.tree()
        return TreeNode(name="host", kind="supervisor", state=None, children=(*core.children, pool))

    def events(self) -> AsyncIterator[Event | Gap]:
        """What happens to the servers from now on: starts, deaths, restarts, parkings. A slow reader gets a `Gap`."""
        return self._pool.events()

    def journal(self, name: str) -> tuple[Event, ...]:
        """The last events of one server, oldest first, at most 256: what `events` told while nobody listened.

        Args:
            name: as configured.

        Raises:
            UnknownServer: no such server is configured.
        """
        _names(name)
        self._operations.entry(name)
        return self._pool.recent(name)

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
        replace: bool = False,
        timeout: float | None = None,
    ) -> Snapshot:
        """Add a server to the configuration and start it; it is visible at once, ``starting``.

        Args:
            name: its key; any characters.
            command, args, env, cwd: how to start it over stdio; ``${VAR}`` is expanded at every start.
            url, headers: or where it is.
            replace: whether an entry of that name may be there already.
            timeout: seconds.

        Raises:
            ConfigError: neither or both of command and url; or the file cannot be read, and nothing was written.
            ServerExists: the name is there and ``replace`` is False.
            WriteFailed: the file could not be written.
        """
        _names(name)
        file = self._board.config.config.path
        if not name:
            raise ConfigError("a server needs a name", file=file)
        if not command and not url:
            raise ConfigError(f"server {name!r} needs a command or a url", file=file)
        if command and url:
            raise ConfigError(f"server {name!r} has a command or a url, not both", file=file)
        entry = ServerEntry(
            name,
            command=command,
            args=args,
            env=dict(env or {}),
            cwd=cwd,
            url=url,
            headers=dict(headers or {}),
            source=file,
        )
        return await self._operations.submit("plugin_add", AddServer(entry, replace), timeout)

    async def plugin_remove(self, name: str, *, timeout: float | None = None) -> Snapshot:
        """Remove a server from the configuration; its row is gone at once, though its process may still drain.

        Raises:
            UnknownServer: no such server is configured.
            ConfigError, WriteFailed: as in `plugin_add`.
        """
        _names(name)
        return await self._operations.submit("plugin_remove", RemoveServer(name), timeout)

    async def tool_set_enabled(self, server: str, bare: str, on: bool, *, timeout: float | None = None) -> Snapshot:
        """Enable or disable one tool; spawns nothing, stops nothing, and waits for no server.

        Raises:
            UnknownServer: no such server is configured.
            UnknownTool: the server's list is known and has no such tool.
            ConfigError, WriteFailed: as in `plugin_add`.
        """
        _names(server, bare)
        self._operations.check_tool(server, bare)
        return await self._operations.submit("tool_set_enabled", SetTool(server, bare, on), timeout)

    async def server_set_enabled(self, name: str, on: bool, *, timeout: float | None = None) -> Snapshot:
        """Let a server run, or stop it and keep it configured.

        Raises:
            UnknownServer: no such server is configured.
            ConfigError, WriteFailed: as in `plugin_add`.
        """
        _names(name)
        return await self._operations.submit("server_set_enabled", SetEnabled(name, on), timeout)

    async def pin(self, server: str, bare: str, on: bool, *, timeout: float | None = None) -> Snapshot:
        """Pin a tool, so that the budget trims it last, or unpin it.

        Raises:
            UnknownServer, UnknownTool, ConfigError, WriteFailed: as in `tool_set_enabled`.
        """
        _names(server, bare)
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
        _names(name)
        return await self._operations.submit("trust", Trust(name, self._board.config.config.get(name)), timeout)

    async def restart(self, name: str, *, timeout: float | None = None) -> Snapshot:
        """Stop a server (calls in flight may finish) and start it with a clean history.

        Raises:
            UnknownServer: no such server is configured.
            ServerUnavailable: it is not meant to run.
        """

        _names(name)

        def again(name: str) -> None:
            self._pool.restart_soon(name, stop_reason=Stop("it is being restarted", self._drain))

        return await self._operations.act("restart", name, timeout, again)

    async def revive(self, name: str, *, timeout: float | None = None) -> Snapshot:
        """Start a server that is parked, or waiting to be restarted, now and with a clean history; a running one is left.

        Raises:
            UnknownServer: no such server is configured.
            ServerUnavailable: it is not meant to run.
        """
        _names(name)
        return await self._operations.act("revive", name, timeout, self._pool.revive)

    # Calls.

    async def call(
        self,
        wire_name: str,
        arguments: Mapping[str, Any] | None = None,
        *,
        catalog: Catalog | None = None,
        timeout: float | None = None,
        progress: Progress | None = None,
    ) -> CallToolResult:
        """Call a tool as the model sees it.

        Args:
            wire_name: as in the catalog.
            arguments: JSON values, or None for none.
            catalog: the value that the model was shown; None for the one now. A call through a held catalog reaches the tool
                that it named then, or none.
            timeout: seconds in all, for queueing, a first start and the answer. None: the entry's ``timeout`` or 60 s,
                extended by progress up to ten times that.
            progress: awaited with (progress, total, message) for each progress notification.

        Returns:
            The result; an error of the tool is a result too (``is_error``).

        Raises:
            UnknownTool: no such tool is known.
            ToolNotOffered: it is excluded, quarantined, over the budget, or withdrawn.
            ServerUnavailable: its server cannot take calls now, or was stopped before it answered.
            ServerDied: its server died before it answered; whether the call took effect is unknown.
            CallTimeout: no answer by the deadline.
            HostClosed: the host is closed.
            TypeError, ValueError: the arguments are no mapping with string keys, or the timeout no number of seconds.
        """
        _names(wire_name)
        _fits(arguments, timeout)
        result: CallToolResult = await self._calls.by_wire_name(
            wire_name, arguments, catalog=catalog, timeout=timeout, progress=progress
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
    ) -> CallToolResult:
        """Call a tool by where it comes from, for programs: the budget and quarantine do not matter, the lists do.

        Args, returns and raises as in `call`, and:

        Raises:
            UnknownServer: no such server is configured.
        """
        _names(server, bare)
        _fits(arguments, timeout)
        result: CallToolResult = await self._calls.by_origin(
            server, bare, arguments, timeout=timeout, progress=progress
        )
        return result


def _names(*given: object) -> None:
    """Refuse, where it is written, what can name nothing: inside, it would be a defect of ours."""
    for name in given:
        if not isinstance(name, str):
            raise TypeError(f"a name is a string, not {name!r}")


def _fits(arguments: object, timeout: object) -> None:
    if arguments is not None and not (
        isinstance(arguments, Mapping) and all(isinstance(key, str) for key in arguments)
    ):
        raise TypeError(f"arguments are a mapping with strings as keys, not {arguments!r}")
    if timeout is not None and not (isinstance(timeout, (int, float)) and timeout >= 0):
        raise ValueError(f"timeout is a number of seconds, 0 or more, not {timeout!r}")


def _required(model: PluginModel, require: str | Collection[str]) -> list[ServerState]:
    if isinstance(require, str):
        return [state for state in model.servers if state.phase not in _OFF]
    return [state for state in model.servers if state.name in require]


def _answered(model: PluginModel, require: str | Collection[str]) -> bool:
    states = _required(model, require)
    if require == "any" and any(state.phase == "ready" for state in states):
        return True
    return all(state.phase == "ready" or state.phase in _SETTLED for state in states)


def _readiness(model: PluginModel, require: str | Collection[str]) -> Readiness:
    states = _required(model, require)
    names = {state.name for state in states}
    missing = {state.name: _reason(state) for state in states if state.phase != "ready"}
    if not isinstance(require, str):
        missing |= {name: "it is not configured any more" for name in require if name not in names}
    ready = tuple(state.name for state in states if state.phase == "ready")
    return Readiness(ready, missing, satisfied=bool(ready) if require == "any" else not missing)


def _reason(state: ServerState) -> str:
    if state.error is not None:
        return f"{state.phase}: {state.error}"
    if state.phase == "starting":
        return "starting: " + ("its tool list is not in yet" if state.connected else "it has not answered yet")
    return state.phase
