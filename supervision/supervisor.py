"""The supervisor: the operations on its children, and the ordered stop. (What can be seen of them: `roster`.)

Theory of operation. The supervisor owns a dict of names and a nursery. Every operation is synchronous: it changes what a
child's keeper wants next (`keeper`), and the keepers' tasks, all side by side in the nursery, carry it out. `run` waits for
the stop, carries it out group by group, and ends when all tasks have.

    not run ──run──▶ running ──stop, or a child escalates──▶ closing ──all children gone──▶ ended
    (operations queue)         (no child is started any more)        (Escalated is raised here)

Outside cancellation reaches every child at once, as trio has it: no order, no grace. A caller that needs the ordered stop
to survive it runs ``run(shielded=True)`` and calls `stop` in a shielded ``finally``.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import Awaitable, Callable, Iterator, Sequence

import trio

from .errors import Escalated, StartFailed, leaves_of
from .keeper import Keeper
from .plan import Plan, Ticket
from .probe import ChildState
from .ref import Ref
from .roster import Roster
from .spec import ChildSpec

__all__ = ["Supervisor"]

_process_wide = itertools.count(1)


class Supervisor(Roster):
    """Keeps children running, each by its own rules.

    Args:
        name: in the tree.
        rng: for the jitter of backoffs.
        observe: called synchronously with the new state at every change of a child; if it raises, that is logged.
        events: how many events are kept of each child; 16 times as many are kept for the readers of `events`.
        generations: where the numbers of incarnations come from; by default one count for the whole process.

    Raises:
        ValueError: ``events`` is less than 1.
    """

    def __init__(
        self,
        name: str = "supervisor",
        *,
        rng: random.Random | None = None,
        observe: Callable[[ChildState], None] | None = None,
        events: int = 256,
        generations: Iterator[int] | None = None,
    ) -> None:
        super().__init__(name, observe, events)
        self.rng = random.Random() if rng is None else rng
        self.generations = _process_wide if generations is None else generations
        self.closing = False
        self._nursery: trio.Nursery | None = None
        self._guard = trio.CancelScope()
        self._stop_asked = trio.Event()
        self._stop_order: Sequence[Sequence[str]] = ()
        self._stop_reason: object = None
        self._escalated: Escalated | None = None
        self._ended = trio.Event()

    async def run(
        self, *, shielded: bool = False, task_status: trio.TaskStatus[None] = trio.TASK_STATUS_IGNORED
    ) -> None:
        """Run the children until `stop`; use it with ``await nursery.start(supervisor.run)``. Once only.

        Args:
            shielded: outside cancellation does not reach the children; then only `stop`, `abort` or an escalation ends it.
            task_status: told when the operations are in force.

        Raises:
            Escalated: alone, not in a group, after all other children were stopped.
            trio.ClosedResourceError: it was stopped before it ran.
            RuntimeError: it runs already, or has run.
            BaseException: what a body let through that is not an Exception, alone when it is one.
        """
        if self._nursery is not None:
            raise RuntimeError(f"supervisor {self.name!r} can be run only once")
        self._check_open()
        failure: BaseException | None = None
        try:
            self._guard.shield = shielded
            with self._guard:
                async with trio.open_nursery() as self._nursery:
                    for keeper in self._keepers.values():
                        self._launch(self._nursery, keeper)
                    task_status.started()
                    await self._stop_asked.wait()
                    await self._stop_in_order()
        except BaseExceptionGroup as group:
            if len(leaves := leaves_of(group)) > 1:
                raise
            failure = leaves[0]
        finally:
            self._end()
        # Raised down here, so that no group clings to it as its context.
        if failure is not None:
            raise failure
        if self._escalated is not None:
            raise self._escalated

    # Operations: synchronous, from any task of the loop; before `run` they are kept for it.

    def start_soon(self, spec: ChildSpec) -> None:
        """Add a child. If one of that name is being stopped, it starts when that is gone; the newest spec wins.

        Raises:
            ValueError: there is a child of that name.
            trio.ClosedResourceError: the supervisor is stopping, or has ended.
        """
        self._add(Plan(spec))

    def replace_soon(self, spec: ChildSpec, *, stop_reason: object = None, grace: float | None = None) -> None:
        """Stop the child of that name, then start ``spec`` with a cleared history; never two at once.

        A later replacement overwrites one that waits: only the newest is spawned. A parked or backing-off child is started
        at once. Without a child of that name it is `start_soon`.

        Args:
            spec: what is to run.
            stop_reason: becomes ``ctx.stop_reason`` of the incarnation that is stopped.
            grace: seconds, instead of that of the spec that runs.

        Raises:
            trio.ClosedResourceError: the supervisor is stopping, or has ended.
        """
        self._check_open()
        keeper = self._keepers.get(spec.name)
        if keeper is None:
            self._add(Plan(spec))
        else:
            keeper.plan(Plan(spec))
            keeper.halt(stop_reason, grace)

    def stop_soon(self, name: str, *, stop_reason: object = None, grace: float | None = None) -> None:
        """Stop and remove a child; a start or replacement that waits is dropped. Unknown: nothing happens.

        Args:
            name: of the child.
            stop_reason: becomes ``ctx.stop_reason``.
            grace: seconds, instead of the spec's; 0 cancels it at once. A child already being stopped: the shorter counts.
        """
        if (keeper := self._keepers.get(name)) is not None:
            keeper.remove()
            keeper.halt(stop_reason, grace)

    def restart_soon(self, name: str, *, stop_reason: object = None) -> None:
        """Replace a child by its own newest spec (see `replace_soon`).

        Raises:
            KeyError: there is no child of that name, or it is being removed.
            trio.ClosedResourceError: the supervisor is stopping, or has ended.
        """
        self._check_open()
        self.replace_soon(self._wanted(name), stop_reason=stop_reason)

    def revive(self, name: str) -> None:
        """Start a parked or backing-off child now, its history cleared; in other stages nothing happens.

        Raises:
            KeyError: there is no child of that name, or it is being removed.
            trio.ClosedResourceError: the supervisor is stopping, or has ended.
        """
        self._check_open()
        self._wanted(name)
        self._keepers[name].revive()

    # Waiting operations.

    async def start(self, spec: ChildSpec, timeout: float | None = None) -> Ref:
        """`start_soon`, then wait for ``ctx.started()``. Cancelled: the child is stopped without grace.

        Args:
            spec: what is to run. If its first incarnation fails, it is not kept as a child.
            timeout: seconds for all of it, besides the spec's own ``start_timeout``; None: that one alone.

        Raises:
            StartFailed: it raised, returned or was stopped before it started, or was too slow.
            ValueError: there is a child of that name.
            trio.ClosedResourceError: the supervisor is stopping, or has ended.
        """
        ticket = Ticket()
        self._add(Plan(spec, ticket))
        why = "cancelled"
        try:
            with trio.move_on_after(math.inf if timeout is None else timeout):
                await ticket.wait()
            why = f"not started within {timeout} s"
        finally:
            if ticket.open:
                ticket.settle(None, why)
                if (keeper := self._keepers.get(spec.name)) is not None:
                    keeper.withdraw(ticket)
        if ticket.ref is None:
            raise StartFailed(spec.name, ticket.failure or why)
        return ticket.ref

    async def stop_child(self, name: str, *, stop_reason: object = None, grace: float | None = None) -> None:
        """`stop_soon`, then wait until it is gone, however long that takes. Unknown: only a checkpoint."""
        keeper = self._keepers.get(name)
        live = None if keeper is None else keeper.live
        self.stop_soon(name, stop_reason=stop_reason, grace=grace)
        await trio.lowlevel.checkpoint()
        if live is not None:
            await live.ref.down.wait()
        # Started anew meanwhile, it is another one: that need not be waited for.
        while keeper is not None and keeper.wanted is None and not keeper.gone.is_set():
            await keeper.changed()

    async def up(self, name: str) -> Ref:
        """Wait for a live incarnation that has started (a parked child: until it is revived; bring a deadline).

        Raises:
            KeyError: there is no child of that name, or it is being removed.
            trio.ClosedResourceError: the supervisor has ended.
        """
        await trio.lowlevel.checkpoint()
        while True:
            if self._ended.is_set():
                self._check_open()
            self._wanted(name)
            keeper = self._keepers[name]
            if keeper.stage == "running" and keeper.live is not None:
                return keeper.live.ref
            await keeper.changed()

    async def stop(self, order: Sequence[Sequence[str]] | None = None, *, stop_reason: object = None) -> None:
        """Stop all children, each by its budgets, then end `run`. Cancelled or called again: the stop goes on.

        Args:
            order: groups of names: one group after the other, within a group side by side. Children that are not named
                stop with the first group. None: all side by side.
            stop_reason: becomes ``ctx.stop_reason``.
        """
        self._begin_stop(order or (), stop_reason)
        if self._nursery is None:
            self._end()
        await trio.lowlevel.checkpoint()
        await self._ended.wait()

    def abort(self) -> None:
        """Cancel everything now, without order or grace; `run` then returns. Never waits."""
        self._begin_stop((), None)
        self._guard.cancel()

    # For the keepers (`keeper.Home`).

    def helper(self, work: Callable[[], Awaitable[None]]) -> None:
        """Run a task beside the keepers."""
        if self._nursery is not None:
            self._nursery.start_soon(work)

    def escalate(self, name: str, reason: str) -> None:
        """Stop everything and raise; the first one counts."""
        if self._escalated is None:
            self._escalated = Escalated(name, reason)
        self._begin_stop((), self._escalated)

    # Inside.

    def _check_open(self) -> None:
        if self.closing:
            raise trio.ClosedResourceError(f"supervisor {self.name!r} is stopping, or has ended")

    def _wanted(self, name: str) -> ChildSpec:
        keeper = self._keepers.get(name)
        if keeper is None or (spec := keeper.wanted) is None:
            raise KeyError(name)
        return spec

    def _add(self, plan: Plan) -> None:
        self._check_open()
        keeper = self._keepers.get(plan.spec.name)
        if keeper is None:
            keeper = self._keepers[plan.spec.name] = Keeper(self, plan)
            if self._nursery is not None:
                self._launch(self._nursery, keeper)
            keeper.show()
        elif keeper.stage == "stopping":
            keeper.plan(plan)
        else:
            raise ValueError(f"there is a child named {plan.spec.name!r} already")

    def _launch(self, nursery: trio.Nursery, keeper: Keeper) -> None:
        nursery.start_soon(keeper.run, name=f"{self.name}/{keeper.name}")

    def _begin_stop(self, order: Sequence[Sequence[str]], reason: object) -> None:
        if not self.closing:
            self.closing = True
            self._stop_order, self._stop_reason = order, reason
            # From here on the children end by their own budgets, whatever is cancelled around us.
            self._guard.shield = True
            self._stop_asked.set()

    async def _stop_in_order(self) -> None:
        named = {name for group in self._stop_order for name in group}
        first = [name for name in self._keepers if name not in named]
        groups = [list(group) for group in self._stop_order] or [[]]
        groups[0] += first
        for group in groups:
            keepers = [self._keepers[name] for name in group if name in self._keepers]
            for keeper in keepers:
                self.stop_soon(keeper.name, stop_reason=self._stop_reason)
            for keeper in keepers:
                await keeper.gone.wait()

    def _end(self) -> None:
        self.closing = True
        for keeper in list(self._keepers.values()):
            keeper.finish("the supervisor has ended")
        self.log.close()
        self._ended.set()
