"""The supervisor: the operations on its children, the ordered stop, and all that can be seen of it.

Theory of operation. Every operation is synchronous: it changes what a child's keeper wants next (`keeper`), and the keepers'
tasks, all side by side in one nursery, carry it out. `run` holds that nursery, waits for the stop, carries it out group by
group, and ends when all tasks have (`home`).

Outside cancellation reaches every child at once, as trio has it: no order, no grace. A caller that needs the ordered stop
to survive it runs ``run(shielded=True)`` and calls `stop` in a shielded ``finally``.
"""

from __future__ import annotations

import itertools
import math
import random
from collections.abc import AsyncIterator, Callable, Hashable, Iterator, Sequence

import trio

from .errors import StartFailed, leaves_of
from .home import Home
from .pace import Pace
from .plan import Plan, Ticket
from .probe import ChildState, Counts, Event, EventLog, Gap, TreeNode, count
from .ref import Ref
from .spec import ChildSpec

__all__ = ["Supervisor"]

_process_wide = itertools.count(1)
_STREAM_PER_CHILD_RING = 16


class Supervisor:
    """Keeps children running, each by its own rules.

    Args:
        name: in the tree.
        rng: for the jitter of backoffs.
        observe: called synchronously with the new state at every change of a child; if it raises, that is logged.
        events: how many events are kept of each child; 16 times as many are kept for the readers of `events`.
        generations: where the numbers of incarnations come from; by default one count for the whole process.
        spacing: seconds, at least, between two restarts by itself, of whichever children: those that die together are not
            started together. A first start, `revive` and a replacement never wait for it.

    Raises:
        ValueError: ``events`` is less than 1, or ``spacing`` less than 0 or infinite.
    """

    def __init__(
        self,
        name: str = "supervisor",
        *,
        rng: random.Random | None = None,
        observe: Callable[[ChildState], None] | None = None,
        events: int = 256,
        generations: Iterator[int] | None = None,
        spacing: float = 0.0,
    ) -> None:
        if not 0 <= spacing < math.inf:
            raise ValueError(f"spacing must be a finite number of seconds, 0 or more, not {spacing!r}")
        self.name = name
        self._home = Home(
            name,
            random.Random() if rng is None else rng,
            observe,
            EventLog(events, events * _STREAM_PER_CHILD_RING),
            _process_wide if generations is None else generations,
            Pace(spacing),
        )

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
        home = self._home
        if home.nursery is not None:
            raise RuntimeError(f"supervisor {self.name!r} can be run only once")
        home.check_open()
        failure: BaseException | None = None
        try:
            task_status.started()
            # A start that was cancelled meanwhile leaves this task where the cancellation is: shielded, it would never end.
            await trio.lowlevel.checkpoint_if_cancelled()
            home.guard.shield = shielded
            with home.guard:
                async with trio.open_nursery() as home.nursery:
                    for keeper in home.keepers.values():
                        home.launch(home.nursery, keeper)
                    await home.stop_asked.wait()
                    await home.stop_in_order()
        except BaseExceptionGroup as group:
            if len(leaves := leaves_of(group)) > 1:
                raise
            failure = leaves[0]
        finally:
            home.end()
        # Raised down here, so that no group clings to it as its context.
        if failure is not None:
            raise failure
        if home.escalated is not None:
            raise home.escalated

    # Operations: synchronous, from any task of the loop; before `run` they are kept for it.

    def start_soon(self, spec: ChildSpec) -> None:
        """Add a child. If one of that name is being stopped, it starts when that is gone; the newest spec wins.

        Raises:
            ValueError: there is a child of that name.
            trio.ClosedResourceError: the supervisor is stopping, or has ended.
        """
        self._home.add(Plan(spec))

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
        self._home.check_open()
        keeper = self._home.keepers.get(spec.name)
        if keeper is None:
            self._home.add(Plan(spec))
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
        if (keeper := self._home.keepers.get(name)) is not None:
            keeper.remove()
            keeper.halt(stop_reason, grace)

    def restart_soon(self, name: str, *, stop_reason: object = None) -> None:
        """Replace a child by its own newest spec (see `replace_soon`).

        Raises:
            KeyError: there is no child of that name, or it is being removed.
            trio.ClosedResourceError: the supervisor is stopping, or has ended.
        """
        self._home.check_open()
        self.replace_soon(self._home.wanted(name), stop_reason=stop_reason)

    def revive(self, name: str) -> None:
        """Start a parked or backing-off child now, its history cleared; one in its slow retry goes on with a cleared history.

        In other stages nothing happens.

        Raises:
            KeyError: there is no child of that name, or it is being removed.
            trio.ClosedResourceError: the supervisor is stopping, or has ended.
        """
        self._home.check_open()
        self._home.wanted(name)
        self._home.keepers[name].revive()

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
        self._home.add(Plan(spec, ticket))
        why = "cancelled"
        try:
            with trio.move_on_after(math.inf if timeout is None else timeout):
                await ticket.wait()
            why = f"not started within {timeout} s"
        finally:
            if ticket.open:
                ticket.settle(None, why)
                if (keeper := self._home.keepers.get(spec.name)) is not None:
                    keeper.withdraw(ticket)
        if ticket.ref is None:
            raise StartFailed(spec.name, ticket.failure or why)
        return ticket.ref

    async def stop_child(self, name: str, *, stop_reason: object = None, grace: float | None = None) -> None:
        """`stop_soon`, then wait until it is gone, however long that takes. Unknown: only a checkpoint."""
        keeper = self._home.keepers.get(name)
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
            if self._home.ended.is_set():
                self._home.check_open()
            self._home.wanted(name)
            keeper = self._home.keepers[name]
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
        self._home.begin_stop(order or (), stop_reason)
        if self._home.nursery is None:
            self._home.end()
        await trio.lowlevel.checkpoint()
        await self._home.ended.wait()

    def abort(self) -> None:
        """Cancel everything now, without order or grace; `run` then returns. Never waits."""
        self._home.begin_stop((), None)
        self._home.guard.cancel()
        if self._home.nursery is None:
            self._home.end()

    # Looking: synchronous, at any time.

    def ref(self, name: str) -> Ref | None:
        """The incarnation that lives, in whatever stage; None when none does."""
        keeper = self._home.keepers.get(name)
        return None if keeper is None or keeper.live is None else keeper.live.ref

    def keys(self) -> dict[str, Hashable]:
        """Name → key of the newest spec, of the children that are to be (not of those being removed)."""
        return {name: spec.key for name, keeper in self._home.keepers.items() if (spec := keeper.wanted) is not None}

    def states(self) -> dict[str, ChildState]:
        """Name → state, of all children there are."""
        return {name: keeper.state() for name, keeper in self._home.keepers.items()}

    def tree(self) -> TreeNode:
        """The supervisor and its children as values."""
        return TreeNode(self.name, "supervisor", None, tuple(keeper.node() for keeper in self._home.keepers.values()))

    def counts(self) -> Counts:
        """How many children there are, and in which stage."""
        return count(self.tree(), self._home.restarts)

    def recent(self, name: str) -> tuple[Event, ...]:
        """The last events of a child, oldest first; empty when there is none of that name."""
        return self._home.log.recent(name)

    def events(self) -> AsyncIterator[Event | Gap]:
        """Iterate over all events from now on, with a `Gap` where the reader fell behind; ends with the supervisor."""
        return self._home.log.follow()
