"""What a supervisor and its keepers share: the table of children, the one nursery, and the way to the end.

    not run ──run──▶ running ──stop, or a child escalates──▶ closing ──all children gone──▶ ended
    (operations queue)         (no child is started any more)        (Escalated is raised here)

Nothing here waits but `stop_in_order`.
"""

from __future__ import annotations

import logging
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence

import trio

from .errors import Escalated, reason_of
from .keeper import Keeper
from .log import tell
from .pace import Pace
from .plan import Plan
from .probe import ChildState, EventLog
from .spec import ChildSpec

__all__ = ["Home"]

log = logging.getLogger(__name__)


class Home:
    """The inside of one supervisor; the arguments are those of `Supervisor`."""

    def __init__(
        self,
        name: str,
        rng: random.Random,
        observe: Callable[[ChildState], None] | None,
        events: EventLog,
        generations: Iterator[int],
        pace: Pace,
    ) -> None:
        self.name = name
        self.rng = rng
        self.log = events
        self.generations = generations
        self.pace = pace
        self.keepers: dict[str, Keeper] = {}
        self.restarts = 0
        self.nursery: trio.Nursery | None = None
        self.guard = trio.CancelScope()
        self.closing = False
        self.stop_asked = trio.Event()
        self.escalated: Escalated | None = None
        self.ended = trio.Event()
        self._observe = observe
        self._stop_order: Sequence[Sequence[str]] = ()
        self._stop_reason: object = None

    # The children.

    def check_open(self) -> None:
        """Raises trio.ClosedResourceError once it is closing."""
        if self.closing:
            raise trio.ClosedResourceError(f"supervisor {self.name!r} is stopping, or has ended")

    def wanted(self, name: str) -> ChildSpec:
        """The newest spec of a child; raises KeyError when there is none, or it is being removed."""
        keeper = self.keepers.get(name)
        if keeper is None or (spec := keeper.wanted) is None:
            raise KeyError(name)
        return spec

    def add(self, plan: Plan) -> None:
        """A new child, or the successor of one that is being stopped; raises as `Supervisor.start_soon`."""
        self.check_open()
        keeper = self.keepers.get(plan.spec.name)
        if keeper is None:
            keeper = self.keepers[plan.spec.name] = Keeper(self, plan)
            if self.nursery is not None:
                self.launch(self.nursery, keeper)
            keeper.show()
        elif keeper.stage == "stopping":
            keeper.plan(plan)
        else:
            raise ValueError(f"there is a child named {plan.spec.name!r} already")

    def launch(self, nursery: trio.Nursery, keeper: Keeper) -> None:
        """Start a keeper's task."""
        nursery.start_soon(keeper.run, name=f"{self.name}/{keeper.name}")

    def helper(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run a task beside the keepers."""
        if self.nursery is not None:
            self.nursery.start_soon(work)

    def forget(self, keeper: Keeper) -> None:
        """The child is gone."""
        if self.keepers.get(keeper.name) is keeper:
            del self.keepers[keeper.name]
            self.log.forget(keeper.name)

    def publish(self, state: ChildState) -> None:
        """Tell the observer."""
        if self._observe is None:
            return
        try:
            self._observe(state)
        except Exception as error:
            raised = "the observer of supervisor %r raised %s"
            tell(log, logging.ERROR, raised, self.name, reason_of(error), supervisor=self.name)
            tell(log, logging.DEBUG, "the observer's traceback", error=error, supervisor=self.name)

    # The end.

    def begin_stop(self, order: Sequence[Sequence[str]], reason: object) -> None:
        """Close; `stop_in_order` does the rest. Again: nothing happens."""
        if not self.closing:
            self.closing = True
            self._stop_order, self._stop_reason = order, reason
            # From here on the children end by their own budgets, whatever is cancelled around us.
            self.guard.shield = True
            self.stop_asked.set()

    def escalate(self, name: str, reason: str) -> None:
        """A child failed for good: close, and raise it at the end; the first one counts."""
        if self.escalated is None:
            self.escalated = Escalated(name, reason)
        self.begin_stop((), self.escalated)

    async def stop_in_order(self) -> None:
        """Stop group after group, within a group side by side; returns when no child is left."""
        named = {name for group in self._stop_order for name in group}
        groups = [list(group) for group in self._stop_order] or [[]]
        groups[0] += [name for name in self.keepers if name not in named]
        for group in groups:
            keepers = [self.keepers[name] for name in group if name in self.keepers]
            for keeper in keepers:
                keeper.remove()
                keeper.halt(self._stop_reason, None)
            for keeper in keepers:
                await keeper.gone.wait()

    def end(self) -> None:
        """Nothing runs any more. Again: nothing happens."""
        self.closing = True
        for keeper in list(self.keepers.values()):
            keeper.finish("the supervisor has ended")
        self.log.close()
        self.ended.set()
