"""What can be seen of a host's servers beside the snapshot: what they said last, what happened to them, who supervises whom."""

from __future__ import annotations

from collections.abc import AsyncIterator

from ..supervision import Event, Gap, Supervisor, TreeNode
from .board import Board
from .given import check_names
from .operations import Operations

__all__ = ["Inspecting"]


class Inspecting:
    """What a host tells of its servers' lives."""

    _core: Supervisor
    _pool: Supervisor
    _board: Board
    _operations: Operations

    def stderr_tail(self, name: str) -> str:
        """What a server wrote on stderr last (bounded, secrets scrubbed): live, or from its last death.

        Raises:
            UnknownServer: no such server is configured.
        """
        check_names(name)
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
        check_names(name)
        self._operations.entry(name)
        return self._pool.recent(name)
