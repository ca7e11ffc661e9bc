"""What the host's published snapshot was projected from: the ground that views and previews stand on.

It is kept beside the snapshot and never in it: entries hold the config's text, and with it what a reader must not see.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import field, frozen

from .budget import Budget
from .config import ConfigState
from .lens import EVERYTHING, Lens
from .native import NativeTool
from .profile import Profile
from .projection import Memo, project
from .row import Row
from .snapshot import Snapshot
from .status import ServerStatus

__all__ = ["Seen"]


@frozen(eq=False, repr=False, kw_only=True)
class Seen:
    """A published snapshot and all that went into it, which never changes afterwards.

    Args:
        snapshot: as published.
        state, statuses, natives, budget, profile, notices: what it was projected from.
        rows: what was made on the way, for others to borrow.
    """

    snapshot: Snapshot
    state: ConfigState
    statuses: Mapping[str, ServerStatus]
    natives: tuple[NativeTool, ...]
    budget: Budget
    profile: Profile
    notices: tuple[str, ...] = ()
    rows: Mapping[str, Row] = field(factory=dict)

    def project(
        self,
        *,
        lens: Lens = EVERYTHING,
        budget: Budget | None = None,
        profile: Profile | None = None,
        state: ConfigState | None = None,
        previous: Snapshot | None = None,
        memo: Memo | None = None,
    ) -> Snapshot:
        """Project the same ground otherwise. Pure and total.

        Args:
            lens: what of it is shown.
            budget, profile, state: other ones than the host's.
            previous, memo: as in `project`.
        """
        memo = Memo() if memo is None else memo
        memo.borrowed = self.rows
        return project(
            self.state if state is None else state,
            self.statuses,
            self.natives,
            self.budget if budget is None else budget,
            previous,
            memo,
            self.notices,
            profile=self.profile if profile is None else profile,
            lens=lens,
        )
