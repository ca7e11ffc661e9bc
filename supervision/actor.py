"""One incarnation of an actor: from the spawning of its body to its death.

Theory of operation. `Incarnation.run` is the actor boundary: it runs the body in a cancel scope of its own and turns every
way of ending into one `Exit`, flattening exception groups to their leaves. Its ``finally`` is the death instant: pending
asks are settled, the mailbox is closed and ``down`` is set before anything else can run. What is not an Exception
(KeyboardInterrupt, SystemExit, the Cancelled of an outer scope) passes through, after the same ``finally``.

Two helper tasks may accompany it, both ending with it: `watch_start` cancels a body that does not acknowledge in time,
`finish_stop` carries a stop through its budgets:

    stop asked ──grace──▶ cancelled ──join──▶ Stuck reported, joined on        (death ends it at any point)
"""

from __future__ import annotations

import logging
import math
from collections.abc import AsyncIterator, Callable
from typing import Any, Literal

import trio

from .errors import ActorDown, Stuck, leaves_of, one_line, reason_of
from .ledger import Exit
from .log import tell
from .mailbox import Mailbox
from .probe import EventKind
from .ref import Ref
from .reply import Pending
from .spec import ChildSpec

__all__ = ["Context", "Incarnation", "Notice"]

log = logging.getLogger(__name__)

Notice = Callable[[EventKind, str, Stuck | None], None]
"""Called with (kind, detail, stuck) at each happening of an incarnation's life; the kinds are in `probe.EventKind`."""


class Incarnation:
    """The supervisor's side of one incarnation.

    Args:
        spec: what it runs.
        generation: its number, unique in the process.
        notice: told of what happens to it, synchronously.
    """

    def __init__(self, spec: ChildSpec, generation: int, notice: Notice) -> None:
        self.spec = spec
        self.generation = generation
        self.mailbox = Mailbox(spec.mailbox, spec.name)
        self.pending = Pending()
        self.ref = Ref(spec.name, generation, self.mailbox, self.pending)
        self.started = False
        self.healthy_since: float | None = None
        self.stuck: Stuck | None = None
        self.stop_asked = trio.Event()
        self.stop_reason: Any = None
        self.until_stop: trio.CancelScope | None = None
        self._notice = notice
        self._start_over = trio.Event()
        self._start_expired = False
        self._scope = trio.CancelScope()
        self._patience: trio.CancelScope | None = None

    async def run(self) -> Exit:
        """Run the body to its end; a checkpoint only if the body is one.

        Returns:
            How it ended.

        Raises:
            trio.Cancelled: an outer scope was cancelled; it is no exit to react to.
            BaseException: KeyboardInterrupt, SystemExit and their like, as raised (alone or in a group).
        """
        errors: list[BaseException] = []
        reason = "cancelled from outside"
        try:
            with self._scope:
                try:
                    await self.spec.body(Context(self))
                except* Exception as group:
                    errors = leaves_of(group)
                    name, generation = self.spec.name, self.generation
                    raised = "actor %r (generation %d) raised"
                    tell(log, logging.DEBUG, raised, name, generation, error=group, actor=name, generation=generation)
            if trio.current_effective_deadline() == -math.inf:
                # Cancelled from outside, and the body made something else of it: that is still no exit to react to.
                await trio.lowlevel.checkpoint()
            exit = self._exit(_joined(errors), _retry_after(errors), _futile(errors))
            reason = exit.reason
            return exit
        except BaseException as error:
            reason = _joined([*errors, *leaves_of(error)]) or reason
            raise
        finally:
            self._die(reason)

    def _exit(self, raised: str, retry_after: float = 0.0, futile: bool = False) -> Exit:
        if self.stop_asked.is_set():
            return Exit("shutdown", raised or "stopped")
        if self._start_expired:
            late = f"not started within {self.spec.start_timeout:g} s"
            return Exit("start_failed", f"{late}; {raised}" if raised else late, retry_after)
        if raised:
            return Exit("abnormal" if self.started else "start_failed", raised, retry_after, futile)
        return Exit("normal", "returned")

    def _die(self, reason: str) -> None:
        name, generation = self.spec.name, self.generation
        self._start_over.set()
        self.ref.down.set(reason)
        self.pending.settle(lambda: ActorDown(name, generation, reason))
        self.mailbox.close()

    def acknowledge(self) -> None:
        """The body says it has started; too late or again: nothing happens."""
        if not (self.started or self._start_expired or self.ref.down.is_set()):
            self.started = True
            self._start_over.set()
            self._notice("started", "", None)

    def set_healthy(self, on: bool) -> None:
        """The body says whether it is healthy; again: nothing happens."""
        if on and self.healthy_since is None:
            self.healthy_since = trio.current_time()
            self._notice("healthy", "", None)
        elif not on and self.healthy_since is not None:
            self._notice("unhealthy", "", None)
            self.healthy_since = None

    def ask_stop(self, reason: object, grace: float | None) -> bool:
        """Send the stop message. Never waits. Asked again, a shorter grace counts, and the newest reason that is not None.

        Args:
            reason: becomes ``ctx.stop_reason``.
            grace: seconds until the cancellation; None: the spec's.

        Returns:
            True the first time: `finish_stop` is to be run then.
        """
        grace = self.spec.shutdown.grace if grace is None else grace
        first = not self.stop_asked.is_set()
        if reason is not None or first:
            self.stop_reason = reason
        if self._patience is None:
            self._patience = trio.CancelScope()
        self._patience.deadline = min(self._patience.deadline, trio.current_time() + grace)
        if first:
            self.stop_asked.set()
            self._start_over.set()
            self.mailbox.wake()
            if self.until_stop is not None:
                self.until_stop.cancel()
        if grace <= 0:
            self._scope.cancel()
        return first

    async def finish_stop(self) -> None:
        """Carry the stop through its budgets; returns when the incarnation is dead, however long that takes."""
        assert self._patience is not None  # a stop was asked for
        with self._patience:
            await self.ref.down.wait()
        await self._cancel_and_join("stopping")

    async def watch_start(self) -> None:
        """Cancel a body that does not acknowledge its start in time; returns when it did, or is dead, or being stopped."""
        if self.spec.start_timeout == math.inf:
            return
        with trio.move_on_after(self.spec.start_timeout):
            await self._start_over.wait()
        if not self._start_over.is_set():
            self._start_expired = True
            await self._cancel_and_join("starting")

    async def _cancel_and_join(self, stage: Literal["starting", "stopping"]) -> None:
        down = self.ref.down
        if down.is_set():
            return
        self._notice("cancelled", "", None)
        self._scope.cancel()
        budget = self.spec.shutdown.join
        with trio.move_on_after(budget):
            await down.wait()
        if not down.is_set() and self.stuck is None:
            self.stuck = Stuck(self.spec.name, self.generation, stage, budget)
            self._notice("stuck", str(self.stuck), self.stuck)
        await down.wait()


def _joined(errors: list[BaseException]) -> str:
    told = (reason_of(error) for error in errors if not isinstance(error, trio.Cancelled))
    return one_line("; ".join(dict.fromkeys(told)))


def _retry_after(errors: list[BaseException]) -> float:
    """The longest wait that one of them asks for, in seconds; 0 when none does."""
    asked = (getattr(error, "retry_after", None) for error in errors)
    return max((float(each) for each in asked if isinstance(each, int | float)), default=0.0)


def _futile(errors: list[BaseException]) -> bool:
    """Whether each of them says that another attempt is of no use."""
    return bool(errors) and all(getattr(error, "futile", None) is True for error in errors)


class Context:
    """What a body is given: its own end of its incarnation."""

    __slots__ = ("_own",)

    def __init__(self, own: Incarnation) -> None:
        self._own = own

    @property
    def name(self) -> str:
        """Of the child."""
        return self._own.spec.name

    @property
    def generation(self) -> int:
        """Of this incarnation: unique in the process, and growing."""
        return self._own.generation

    @property
    def mailbox(self) -> Mailbox:
        """Of this incarnation; closed at its death."""
        return self._own.mailbox

    @property
    def ref(self) -> Ref:
        """The reference others have to this incarnation."""
        return self._own.ref

    def started(self) -> None:
        """Acknowledge the start. Never waits; again: nothing happens."""
        self._own.acknowledge()

    def healthy(self) -> None:
        """Proven health counts from now. Never waits; again: nothing happens until `unhealthy`."""
        self._own.set_healthy(True)

    def unhealthy(self) -> None:
        """No longer healthy; health that was already proven has cleared the history. Never waits."""
        self._own.set_healthy(False)

    @property
    def stopping(self) -> trio.Event:
        """Set by the stop message: the body should return; it is cancelled when its grace is over."""
        return self._own.stop_asked

    @property
    def stop_reason(self) -> Any:
        """Whatever the stopper passed, for the body to understand; None when nothing, or not stopped."""
        return self._own.stop_reason

    async def wait_stop(self) -> Any:
        """Wait for the stop message; returns the stop reason."""
        await self._own.stop_asked.wait()
        return self._own.stop_reason

    def cancel_at_stop(self, scope: trio.CancelScope | None) -> None:
        """Have this scope cancelled by the stop message, instead of one named before; at once if it came. None: none.

        For a body that has something to wait for until then, and needs no task to wait for the stop message.
        """
        self._own.until_stop = scope
        if scope is not None and self._own.stop_asked.is_set():
            scope.cancel()

    def mail(self) -> AsyncIterator[Any]:
        """Iterate over the mail, item by item, control first; ends at the stop message, so that an idle actor stops at once.

        Mail left in the mailbox then dies with the incarnation. For one task.
        """
        return _Mail(self._own)


class _Mail(AsyncIterator[Any]):
    __slots__ = ("_own",)

    def __init__(self, own: Incarnation) -> None:
        self._own = own

    async def __anext__(self) -> Any:
        mailbox = self._own.mailbox
        await trio.lowlevel.checkpoint()
        while not self._own.stop_asked.is_set():
            try:
                return mailbox.receive_nowait()
            except trio.WouldBlock:
                await mailbox.wait()
        raise StopAsyncIteration
