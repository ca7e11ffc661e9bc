"""A keeper: the one task that keeps one child, from its being asked for to its removal.

Theory of operation. The keeper's task runs the incarnations of its child inline, one after the other, so there are never two
at once, and a slow child delays nobody. Between two incarnations it carries out the ledger's decision, waiting where the
decision is to wait. The supervisor's operations never wait: they note what is wanted next and either send the running
incarnation its stop message or end the waiting. What is wanted is two fields: ``upcoming``, the newest plan (a later one
overwrites it: only the newest is ever spawned), and ``removing``.

    at the top of the loop       then
    upcoming                     spawn it, history cleared
    removing, or all is closing  removed
    else                         spawn the same spec (the first time, or a restart)
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Literal

import trio

from .actor import Incarnation
from .errors import Stuck
from .ledger import Escalate, Exit, Park, Remove, RestartAfter, cleared, decide, next_attempt, proven, restarted
from .plan import Plan, Ticket
from .probe import ChildStage, ChildState, EventKind, TreeNode
from .spec import ChildSpec

if TYPE_CHECKING:
    from .home import Home

__all__ = ["Keeper"]


class Keeper:
    """The life of one child.

    Args:
        home: of the supervisor.
        plan: the first incarnation; `run` is to be started for it, and `show` called.
    """

    def __init__(self, home: Home, plan: Plan) -> None:
        self.home = home
        self.name = plan.spec.name
        self.spec = plan.spec
        self.upcoming: Plan | None = plan
        self.removing = False
        self.live: Incarnation | None = None
        self.gone = trio.Event()
        self.stage: ChildStage = "starting"
        self._since = trio.current_time()
        self._generation = 0
        self._history = cleared()
        self._next_retry_at: float | None = None
        self._asked = False
        self._ticket: Ticket | None = None
        self._pause: trio.Event | None = None
        self._shown: ChildState | None = None
        self._changed = trio.lowlevel.ParkingLot()

    # What is seen of it. Nothing here waits, but `changed`.

    @property
    def wanted(self) -> ChildSpec | None:
        """The spec that is to run: the newest plan, else the present one unless it is being removed."""
        if self.upcoming is not None:
            return self.upcoming.spec
        return None if self.removing else self.spec

    def state(self) -> ChildState:
        """The child as it is now."""
        return ChildState(
            name=self.name,
            stage=self.stage,
            since=self._since,
            generation=self._generation,
            restarts=self._history.restarts,
            first=self._history.failures == 0,
            next_retry_at=self._next_retry_at,
            asked=self._asked and self._next_retry_at is not None,
            attempt=next_attempt(self.spec, self._history),
            reason=self._history.last_reason,
            pending=self.stage == "stopping" and self.upcoming is not None,
        )

    def node(self) -> TreeNode:
        """The child as a leaf of the tree."""
        live = self.live
        if live is None:
            return TreeNode(self.name, "actor", self.state())
        mailbox = live.mailbox.statistics()
        return TreeNode(self.name, "actor", self.state(), (), mailbox, len(live.pending), live.stuck)

    async def changed(self) -> None:
        """Wait for the next change of its state."""
        await self._changed.park()

    # What the supervisor asks of it. Nothing here waits.

    def plan(self, plan: Plan) -> None:
        """Run this next; an older plan is dropped. `halt` ends what runs now."""
        if self.upcoming is not None:
            self.upcoming.drop("replaced before it was started")
        self.upcoming = plan
        self._note("replaced")
        if self.live is None:
            self._history = cleared()
        self.show()

    def remove(self) -> None:
        """Run nothing next; the plan is dropped. `halt` ends what runs now."""
        if self.upcoming is not None:
            self.upcoming.drop("stopped before it was started")
        self.upcoming = None
        self.removing = True
        self.show()

    def halt(self, reason: object, grace: float | None) -> None:
        """Send the stop message to the incarnation that lives, if one does."""
        if self.live is None:
            return
        if self._ticket is not None:
            self._ticket.settle(None, "stopped before it had started")
        if self.live.ask_stop(reason, grace):
            self._note("stop_asked")
            self.home.helper(self.live.finish_stop)
        self.show()

    def withdraw(self, ticket: Ticket) -> None:
        """The one who waited for this start went away: it is not to be, or not to go on."""
        if self.upcoming is not None and self.upcoming.ticket is ticket:
            self.remove()
        elif self._ticket is ticket:
            self.remove()
            self.halt(None, 0)

    def revive(self) -> None:
        """Parked or backing off: start now with a cleared history; in its slow retry: go on with one; else nothing happens."""
        if self.stage in ("backing_off", "parked"):
            self._note("revived")
            self._history = cleared()
            self._enter("starting")
            self._wake()
        elif self._history.parked:
            self._note("revived")
            self._history = cleared()
            self.show()

    # Its own task.

    async def run(self) -> None:
        """Keep the child until it is removed. Raises what an incarnation lets through, Cancelled included."""
        try:
            while self._next():
                live = self._spawn()
                try:
                    exit = await live.run()
                except BaseException:
                    self._note("down", live.ref.down.reason or "")
                    raise
                finally:
                    self.live = None
                # Still the death instant: nothing else has run since.
                self._bury(live, exit)
                if self._pause is not None:
                    with trio.move_on_at(math.inf if self._next_retry_at is None else self._next_retry_at):
                        await self._pause.wait()
                    self._resume()
        finally:
            self.finish("the supervisor has ended")

    def _next(self) -> bool:
        """The top of the loop: the table at the head of this file. False: removed."""
        if self.home.closing:
            return False
        if self.upcoming is not None:
            plan, self.upcoming = self.upcoming, None
            self.spec, self._ticket = plan.spec, plan.ticket
            self._history, self.removing = cleared(), False
        return not self.removing

    def _spawn(self) -> Incarnation:
        self._generation = next(self.home.generations)
        live = self.live = Incarnation(self.spec, self._generation, self._heard)
        if self.spec.start_timeout < math.inf:
            self.home.helper(live.watch_start)
        self._note("spawned")
        self._enter("starting")
        return live

    def _bury(self, live: Incarnation, exit: Exit) -> None:
        """Decide what the end of an incarnation leads to, and show it."""
        self._note("down", exit.reason)
        if self._ticket is not None:
            # As OTP's start_child: who asked for the start is told of its failure, and the child is not kept.
            self._ticket.settle(None, "it returned before it had started" if exit.kind == "normal" else exit.reason)
            self._ticket = None
            self.removing = True
        if self.upcoming is not None or self.removing or self.home.closing:
            return
        now, healthy_since = trio.current_time(), live.healthy_since
        self._history, decision = decide(
            self.spec, self._history, exit, healthy_since=healthy_since, now=now, rng=self.home.rng
        )
        match decision:
            case RestartAfter(delay, asked):
                self._asked = asked
                self._wait("backing_off", self.home.pace.book(now + delay, now), exit.reason)
            case Park(retry_after, asked):
                self._asked = asked
                until = None if retry_after is None else self.home.pace.book(now + retry_after, now)
                self._wait("parked", until, exit.reason)
            case Escalate(reason):
                self._note("escalated", reason)
                self.removing = True
                self.home.escalate(self.name, reason)
            case Remove():
                self.removing = True

    def _wait(self, stage: Literal["backing_off", "parked"], until: float | None, reason: str) -> None:
        self._pause = trio.Event()
        self._note(stage, reason)
        self._enter(stage, until)

    def _wake(self) -> None:
        if self._pause is not None:
            self._pause.set()

    def _resume(self) -> None:
        """The waiting is over: by itself it is a restart; woken, whatever was wanted is already noted."""
        self._pause = None
        if self.stage in ("backing_off", "parked") and not self.home.closing:
            self._history = restarted(self._history)
            self.home.restarts += 1

    def finish(self, why: str) -> None:
        """It is a child no more. Again: nothing happens."""
        if self.gone.is_set():
            return
        for ticket in (self._ticket, self.upcoming.ticket if self.upcoming is not None else None):
            if ticket is not None:
                ticket.settle(None, why)
        self._ticket = self.upcoming = None
        self.removing = True
        self.gone.set()
        self._note("removed")
        self.home.forget(self)
        self._enter("removed")

    # Telling.

    def _heard(self, kind: EventKind, detail: str, stuck: Stuck | None) -> None:
        """The incarnation that lives says something."""
        self._note(kind, detail, stuck)
        live = self.live
        if live is None:
            return
        if kind == "started" and not live.stop_asked.is_set():
            if self._ticket is not None:
                self._ticket.settle(live.ref, None)
                self._ticket = None
            self._enter("running")
        elif kind == "unhealthy" and proven(self.spec, live.healthy_since, trio.current_time()):
            self._history = cleared()
            self.show()

    def show(self) -> None:
        """Show what was just noted, and end a waiting that it ends."""
        if self.live is None:
            self._enter("stopping" if self.wanted is None else "starting")
            self._wake()
        else:
            self._enter("stopping" if self.live.stop_asked.is_set() else self.stage)

    def _enter(self, stage: ChildStage, next_retry_at: float | None = None) -> None:
        if stage != self.stage:
            self.stage, self._since = stage, trio.current_time()
        self._next_retry_at = next_retry_at
        state = self.state()
        if state != self._shown:
            self._shown = state
            if self._changed:
                self._changed.unpark_all()
            self.home.publish(state)

    def _note(self, kind: EventKind, detail: str = "", stuck: Stuck | None = None) -> None:
        self.home.log.record(self.name, self._generation, kind, detail, stuck)
