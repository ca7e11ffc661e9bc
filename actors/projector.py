"""The projector: the one publisher of snapshots.

Theory of operation
    It waits for the board to change, projects it (pure, in `model.projection`) and publishes the result when it differs.
    Changes that come while it works are conflated: the next round reads the board as it is then. It holds nothing that a
    restart would miss: a new incarnation reads the board and goes on, with versions that only grow. Readers read the cell
    and never wait for it, so that a dead projector means a stale snapshot, never a hung reader.

    In the step in which it publishes it leaves on the board what it published from (`Seen`): views and previews are
    projected from that, and so are of one moment with the snapshot.
"""

from __future__ import annotations

from collections.abc import Sequence

from ..supervision import Cell, Context
from .board import Board
from .model.budget import Budget
from .model.native import NativeTool
from .model.profile import Profile
from .model.projection import Memo, project
from .model.seen import Seen
from .model.snapshot import Snapshot
from .ports import NoSites, Sites
from .telemetry.connects import over_budget

__all__ = ["Projector", "look"]


class Projector:
    """The body of the projector's child specification; each incarnation is one call of it.

    Args:
        board: what is projected.
        cell: where the snapshot is published.
        natives: the embedder's own tools.
        budget: the cap on the catalog.
        profile: what the catalog is made for.
        sites: where a fault kit may strike.
    """

    def __init__(
        self,
        board: Board,
        cell: Cell[Snapshot],
        natives: Sequence[NativeTool],
        budget: Budget,
        profile: Profile,
        sites: Sites | None = None,
    ) -> None:
        self._board = board
        self._cell = cell
        self._natives = tuple(natives)
        self._budget = budget
        self._profile = profile
        self._sites = sites or NoSites()

    async def __call__(self, ctx: Context) -> None:
        """Run one incarnation; a checkpoint."""
        memo = Memo()
        ctx.started()
        ctx.healthy()
        async for version in self._board.changes():
            await self._sites.hit("projector", "projector")
            self._publish(version, memo)

    def _publish(self, version: int, memo: Memo) -> None:
        before = self._cell.value
        board = self._board
        seen = look(board, self._natives, self._budget, self._profile, before, memo)
        if seen.snapshot is not before:
            self._cell.set(seen.snapshot)
            now, then = seen.snapshot.model, before.model
            if now.over_budget() != then.over_budget():
                over_budget(now.budget_warning(), now.budget, now.wanted, now.trimmed)
        board.seen = seen
        self._board.mark_projected(version)


def look(
    board: Board,
    natives: tuple[NativeTool, ...],
    budget: Budget,
    profile: Profile,
    previous: Snapshot | None = None,
    memo: Memo | None = None,
) -> Seen:
    """Project the board as it is now.

    Args:
        board: what is projected; nothing that is returned changes when it does.
        natives, budget, profile, previous, memo: as in `project`.
    """
    memo = Memo() if memo is None else memo
    state, statuses, notices = board.config, dict(board.statuses), tuple(board.notices.values())
    snapshot = project(state, statuses, natives, budget, previous, memo, notices, profile=profile)
    return Seen(
        snapshot=snapshot,
        state=state,
        statuses=statuses,
        natives=natives,
        budget=budget,
        profile=profile,
        notices=notices,
        rows=memo.made,
    )
