"""The roster: the table of a supervisor's children, and all that can be seen of them without waiting."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Callable, Hashable

from .errors import reason_of
from .keeper import Keeper
from .probe import ChildState, Counts, Event, EventLog, Gap, TreeNode, count
from .ref import Ref

__all__ = ["Roster"]

log = logging.getLogger(__name__)

_STREAM_PER_CHILD_RING = 16


class Roster:
    """The part of a `Supervisor` that only looks and tells; its methods never wait.

    Args:
        name: in the tree.
        observe: called with the new state at every change of a child; if it raises, that is logged.
        events: how many events are kept of each child; 16 times as many are kept for the readers of `events`.
    """

    def __init__(self, name: str, observe: Callable[[ChildState], None] | None, events: int) -> None:
        self.name = name
        self.log = EventLog(events, events * _STREAM_PER_CHILD_RING)
        self._observe = observe
        self._keepers: dict[str, Keeper] = {}
        self._restarts = 0

    def ref(self, name: str) -> Ref | None:
        """The incarnation that lives, in whatever stage; None when none does."""
        keeper = self._keepers.get(name)
        return None if keeper is None or keeper.live is None else keeper.live.ref

    def keys(self) -> dict[str, Hashable]:
        """Name → key of the newest spec, of the children that are to be (not of those being removed)."""
        return {name: spec.key for name, keeper in self._keepers.items() if (spec := keeper.wanted) is not None}

    def states(self) -> dict[str, ChildState]:
        """Name → state, of all children there are."""
        return {name: keeper.state() for name, keeper in self._keepers.items()}

    def tree(self) -> TreeNode:
        """The supervisor and its children as values."""
        return TreeNode(self.name, "supervisor", None, tuple(keeper.node() for keeper in self._keepers.values()))

    def counts(self) -> Counts:
        """How many children there are, and in which stage."""
        return count(self.tree(), self._restarts)

    def recent(self, name: str) -> tuple[Event, ...]:
        """The last events of a child, oldest first; empty when there is none of that name."""
        return self.log.recent(name)

    def events(self) -> AsyncIterator[Event | Gap]:
        """Iterate over all events from now on, with a `Gap` where the reader fell behind; ends with the supervisor."""
        return self.log.follow()

    # For the keepers.

    def publish(self, state: ChildState) -> None:
        """Tell the observer."""
        if self._observe is None:
            return
        try:
            self._observe(state)
        except Exception as error:
            log.error("the observer of supervisor %r raised %s", self.name, reason_of(error))
            log.debug("the observer's traceback", exc_info=True)

    def counted_restart(self) -> None:
        """A child was started anew."""
        self._restarts += 1

    def forget(self, keeper: Keeper) -> None:
        """The child is gone."""
        if self._keepers.get(keeper.name) is keeper:
            del self._keepers[keeper.name]
            self.log.forget(keeper.name)
