"""The operations of a host: the only way back from a reader to the configuration.

Each is submitted to the coordinator, asked for again when a coordinator died before it answered (the operation's id makes
that safe), and answered in the caller's own task once the snapshot shows it. The caller's task owns the deadline.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from copy import copy

import trio

from ..supervision import ActorDown, Cell, Supervisor
from .board import Board
from .desk import Apply, Operation, Reload, Taken, Trust
from .model.config import ServerEntry
from .model.edits import Edit
from .model.errors import HostClosed, OperationTimeout, ServerUnavailable, UnknownServer, UnknownTool
from .model.nearest import nearest
from .model.snapshot import Snapshot
from .telemetry.operations import operating, taken

__all__ = ["Operations"]


class Operations:
    """Submits operations and waits until each is visible.

    Args:
        core: the supervisor whose child ``coordinator`` takes operations.
        pool: the supervisor of the servers.
        board: for what is not the coordinator's: restarts.
        cell: where snapshots are published.
        closing: whether the host has begun to close.
        timeout: seconds an operation may take until it is visible.
    """

    def __init__(
        self,
        *,
        core: Supervisor,
        pool: Supervisor,
        board: Board,
        cell: Cell[Snapshot],
        closing: Callable[[], bool],
        timeout: float,
    ) -> None:
        self._core = core
        self._pool = pool
        self._board = board
        self._cell = cell
        self._closing = closing
        self._timeout = timeout
        self._ids = itertools.count(1)

    @property
    def closing(self) -> bool:
        """Whether the host has begun to close, or is closed."""
        return self._closing()

    async def submit(self, name: str, request: Edit | Reload | Apply | Trust, timeout: float | None) -> Snapshot:
        """Have one operation done, exactly once, and return the snapshot that shows it.

        Args:
            name: of the operation, for messages.
            request: what is asked for.
            timeout: seconds; None for the host's own.

        Raises:
            HostClosed: the host is closing.
            OperationTimeout: it was not visible by the deadline.
            PlaybillError: it was refused; nothing changed.
        """
        with operating(name, getattr(request, "server", None)):
            return await self._submit(name, request, timeout)

    async def _submit(self, name: str, request: Edit | Reload | Apply | Trust, timeout: float | None) -> Snapshot:
        seconds = self._timeout if timeout is None else timeout
        operation = Operation(next(self._ids), request)
        answer: Taken | None = None
        with trio.move_on_after(seconds):
            answer = await self._taken(operation)
            rev = answer.rev
            taken(rev)
            # Refused or not: who is answered sees in the snapshot why (``config_error``).
            snapshot = await self._seen(lambda snapshot: snapshot.config_rev >= rev)
            if answer.refused is not None:
                raise copy(answer.refused)
            return snapshot
        if answer is not None and answer.refused is not None:
            raise copy(answer.refused)
        raise OperationTimeout(name, seconds, None if answer is None else True)

    async def _taken(self, operation: Operation) -> Taken:
        while True:
            if self._closing():
                raise HostClosed
            try:
                ref = await self._core.up("coordinator")
                # The deadline is the scope around us; the ask's own is only that there is one.
                answer: Taken = await ref.ask(operation, timeout=86_400.0)
                return answer
            except ActorDown:
                # Nobody answered: the next incarnation finds on its desk whether it was done.
                await trio.lowlevel.checkpoint()
            except (KeyError, trio.ClosedResourceError):
                raise HostClosed from None

    async def _seen(self, shows: Callable[[Snapshot], bool]) -> Snapshot:
        try:
            return await self._cell.wait(shows)
        except trio.ClosedResourceError:
            raise HostClosed from None

    async def act(self, name: str, server: str, timeout: float | None, how: Callable[[str], None]) -> Snapshot:
        """Do something to a server that is running or meant to, and return the snapshot that shows it.

        Args:
            name: of the operation.
            server: whom it is done to.
            timeout: seconds; None for the host's own.
            how: the supervisor's operation, which never waits.

        Raises:
            UnknownServer: no such server is configured.
            ServerUnavailable: it is configured but not meant to run.
            HostClosed: the host is closing.
            OperationTimeout: it was not visible by the deadline.
        """
        with operating(name, server):
            return await self._act(name, server, timeout, how)

    async def _act(self, name: str, server: str, timeout: float | None, how: Callable[[str], None]) -> Snapshot:
        if self._closing():
            raise HostClosed
        entry = self.entry(server)
        if not entry.runnable:
            raise ServerUnavailable(server, not_meant_to_run(entry))
        held = self._pool.keys()
        if server in held:
            how(server)
        seconds = self._timeout if timeout is None else timeout
        version = self._board.version
        with trio.move_on_after(seconds):
            try:
                await self._board.projected(version)
            except trio.ClosedResourceError:
                raise HostClosed from None
            return self._cell.value
        raise OperationTimeout(name, seconds, True)

    def entry(self, server: str) -> ServerEntry:
        """The configured entry of that name.

        Raises:
            UnknownServer: there is none.
        """
        config = self._board.config.config
        entry = config.get(server)
        if entry is None:
            raise UnknownServer(server, nearest(server, (each.name for each in config.servers)), config.path)
        return entry

    def check_tool(self, server: str, bare: str) -> None:
        """Refuse a tool name that its server is known not to have; a server that is slow refuses nothing.

        Raises:
            UnknownTool: the server's list is known, and neither it nor the config names such a tool.
        """
        state = self._cell.value.model.server(server)
        entry = self._board.config.config.get(server)
        if state is None or entry is None or state.list_state == "none":
            return
        known = [tool.bare for tool in state.tools]
        if bare not in known and bare not in (*entry.exclude, *(entry.include or ()), *entry.pin):
            raise UnknownTool(bare, nearest(bare, known), server=server)


def not_meant_to_run(entry: ServerEntry) -> str:
    """Why a configured server is not meant to run."""
    if entry.error is not None:
        return entry.error
    return "it is disabled" if entry.disabled else "it is not trusted yet"
