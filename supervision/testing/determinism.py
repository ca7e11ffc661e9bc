"""The one file that owns determinism: a seed gives a run, step for step and second for second.

Theory of operation
    Four things make a trio run differ from the last one, and each is taken over here, for the time of the run only:

    | what differs                    | what is done                                                              |
    |---------------------------------|---------------------------------------------------------------------------|
    | the order of runnable tasks     | trio's own random generator (``_r``) is seeded, and its batches are       |
    |                                 | sorted before they are shuffled (``_ALLOW_DETERMINISTIC_SCHEDULING``)     |
    | deadlines at the same instant   | trio breaks the tie by ``id()``; all of them only make tasks runnable in  |
    |                                 | the same batch, which is sorted, so that the tie is without effect        |
    | the clock                       | a ``MockClock`` stands still while anybody can run, then is exactly at    |
    |                                 | the next deadline (by itself it adds a difference, and is off by a        |
    |                                 | rounding error that depends on who else has slept)                        |
    | who seeded ``_r`` before        | importing hypothesis seeds it for each example: so it is seeded inside    |
    |                                 | `run_simulation`, last thing before the run, and put back afterwards      |

    The names used are private to trio. `check_private_names` says which of them is gone; a test calls it, so that a release
    of trio that changes them fails there and with words.

    Budgets are mandatory, as a restart loop can go round for ever without virtual time passing. Past the virtual seconds or
    the steps, the run is cancelled; if it does not end then either (a shielded loop), the clock itself ends trio's loop. A
    run in which everybody waits and no deadline is left is ended at once. All three are a liveness failure. What no budget
    can end is a step that never returns.

    Sets of strings are iterated in an order of their own in each process: what is traced must not depend on that.
"""

from __future__ import annotations

import gc
import math
import random
import sys
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from typing import Generic, Literal, TypeVar

import trio
import trio.testing
from attrs import field, fields, frozen
from trio._core import _run as _trio_run

from ..errors import leaves_of

__all__ = ["Result", "Simulation", "Verdict", "check_private_names", "run_simulation"]

T = TypeVar("T")

Verdict = Literal["ok", "crash", "liveness"]
"""It ended by itself · it raised · a budget ended it, or nobody could go on."""

SLACK_SECONDS = 120.0
"""Virtual seconds that a cancelled run still has to end by itself."""


class _Spent(BaseException):
    """A run that could not be ended by cancellation."""


class Simulation:
    """What the main function of a run is given.

    Attributes:
        seed: of the run.
        rng: seeded with it, for whatever the run draws.
        trace: (virtual seconds, who, what), in order.
    """

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self.rng = random.Random(seed)
        self.trace: list[tuple[float, str, str]] = []

    def say(self, who: str, what: str) -> None:
        """Trace something of now. Never waits."""
        self.trace.append((trio.current_time(), who, what))


@frozen
class Result(Generic[T]):
    """How a run ended.

    Args:
        seed: of the run.
        verdict: how.
        value: what main returned, when the verdict is ``ok``, else None.
        error: what it raised, or None.
        reason: one line why it is not ``ok``, or empty.
        seconds: virtual seconds that passed.
        steps: task steps that were run.
        trace: as said by the run.
    """

    seed: int
    verdict: Verdict
    value: T | None
    error: BaseException | None
    reason: str
    seconds: float
    steps: int
    trace: tuple[tuple[float, str, str], ...] = field(repr=False)


def check_private_names() -> None:
    """Check that trio still has the private names that determinism rests on.

    Raises:
        RuntimeError: one of them is gone or of another kind; it is named.
    """
    if not isinstance(getattr(_trio_run, "_r", None), random.Random):
        raise RuntimeError("trio has no `_core._run._r` any more: the scheduler cannot be seeded")
    if not isinstance(getattr(_trio_run, "_ALLOW_DETERMINISTIC_SCHEDULING", None), bool):
        raise RuntimeError("trio has no `_ALLOW_DETERMINISTIC_SCHEDULING` any more: the order of tasks is not ours")
    runner = {each.name for each in fields(_trio_run.Runner)}
    if missing := {"clock_autojump_threshold", "deadlines"} - runner:
        raise RuntimeError(f"trio's runner has no {sorted(missing)} any more: the clock cannot be moved")
    if not hasattr(trio.testing.MockClock, "_autojump"):
        raise RuntimeError("trio's MockClock has no `_autojump` any more: the clock cannot be moved")
    if not hasattr(_trio_run.Deadlines, "next_deadline") or not hasattr(_trio_run, "GLOBAL_RUN_CONTEXT"):
        raise RuntimeError("trio's deadlines cannot be asked for the next one any more: the clock cannot be moved")


class _VirtualClock:
    """Drives a `MockClock` that stands still while anybody can run, and then is at the next deadline, exactly.

    trio jumps no other kind of clock than its own, so its two decisions are replaced in this one instance.
    """

    def __init__(self, last_second: float) -> None:
        self.trios = trio.testing.MockClock(autojump_threshold=0)
        self.trios._autojump = self._jump  # type: ignore[method-assign]
        self.trios.current_time = self._current_time  # type: ignore[method-assign]
        self.now = 0.0
        self.broken: str | None = None
        self._last_second = last_second

    def _current_time(self) -> float:
        if self.broken is not None and not hasattr(_trio_run.GLOBAL_RUN_CONTEXT, "task"):
            # Asked by the loop itself, between two steps: an error ends the loop, and no task can catch it.
            raise _Spent(self.broken)
        return self.now

    def _jump(self) -> None:
        """Called by trio's loop when nobody can run."""
        then = _trio_run.GLOBAL_RUN_CONTEXT.runner.deadlines.next_deadline()
        if then == math.inf:
            raise _Spent("everybody waits, and no deadline is left")
        if then > self._last_second:
            raise _Spent(f"it did not end within {SLACK_SECONDS:g} virtual seconds of being cancelled")
        self.now = max(self.now, then)


class _StepBudget(trio.abc.Instrument):
    """Counts task steps; cancels the run when they are too many, and breaks the clock when that does not help."""

    def __init__(self, steps: int, scope: trio.CancelScope, clock: _VirtualClock) -> None:
        self.steps = 0
        self._budget = steps
        self._scope = scope
        self._clock = clock

    def before_task_step(self, task: trio.lowlevel.Task) -> None:
        self.steps += 1
        if self.steps == self._budget:
            self._scope.cancel()
        elif self.steps >= 2 * self._budget:
            self._clock.broken = f"it did not end within {self._budget} task steps of being cancelled"


@contextmanager
def _seeded(seed: int) -> Iterator[None]:
    state, allowed = _trio_run._r.getstate(), _trio_run._ALLOW_DETERMINISTIC_SCHEDULING
    _trio_run._ALLOW_DETERMINISTIC_SCHEDULING = True  # type: ignore[misc]
    _trio_run._r.seed(seed)
    try:
        yield
    finally:
        _trio_run._ALLOW_DETERMINISTIC_SCHEDULING = allowed  # type: ignore[misc]
        _trio_run._r.setstate(state)


def run_simulation(
    main: Callable[[Simulation], Awaitable[T]], *, seed: int, seconds: float = 3600.0, steps: int = 1_000_000
) -> Result[T]:
    """Run a trio program in virtual time, deterministically, from the first step to the last.

    The program must use no thread, socket or process: nothing waits for them.

    Args:
        main: called with the `Simulation`.
        seed: decides the order of tasks, and all that the program draws from `Simulation.rng`.
        seconds: virtual seconds it may take.
        steps: task steps it may take.

    Returns:
        How it ended. It raises nothing that the program raises.

    Raises:
        KeyboardInterrupt: as it comes.
    """
    with _unheard() as listen:
        # In a call of its own: whatever still holds a loop that was broken off ends with it, and is collected here.
        result = _run(main, seed, seconds, steps, listen)
        if result.verdict == "liveness":
            gc.collect()
    return result


def _run(
    main: Callable[[Simulation], Awaitable[T]], seed: int, seconds: float, steps: int, listen: Callable[[bool], None]
) -> Result[T]:
    simulation = Simulation(seed)
    clock = _VirtualClock(seconds + SLACK_SECONDS)
    scope = trio.CancelScope(deadline=seconds)
    budget = _StepBudget(steps, scope, clock)
    value: T | None = None

    async def run() -> None:
        nonlocal value
        with scope:
            value = await main(simulation)

    error: BaseException | None = None
    with _seeded(seed):
        listen(True)
        try:
            trio.run(run, clock=clock.trios, instruments=[budget])
        except KeyboardInterrupt:
            raise
        except BaseException as raised:
            # trio delivers Ctrl-C in the group of whatever nurseries it came through.
            for leaf in leaves_of(raised):
                if isinstance(leaf, KeyboardInterrupt):
                    raise leaf from None
            error = raised
        finally:
            listen(False)
    verdict, reason = _judge(error, scope.cancelled_caught, clock.now, budget.steps, steps, seconds)
    if verdict == "liveness":
        # A cancelled run's error says nothing, and would keep all of its tasks.
        error = None
    return Result(
        seed,
        verdict,
        value if verdict == "ok" else None,
        error,
        reason,
        clock.now,
        budget.steps,
        tuple(simulation.trace),
    )


def _judge(
    error: BaseException | None, cancelled: bool, now: float, used: int, steps: int, seconds: float
) -> tuple[Verdict, str]:
    spent = error.__cause__ if isinstance(error, trio.TrioInternalError) else None
    if isinstance(spent, _Spent):
        return "liveness", str(spent)
    if cancelled or (error is not None and (now >= seconds or used >= steps)):
        if used >= steps:
            return "liveness", f"it took more than {steps} task steps"
        return "liveness", f"it took more than {seconds:g} virtual seconds"
    if error is None:
        return "ok", ""
    leaf = leaves_of(error)[0]
    return "crash", f"{type(leaf).__name__}: {leaf}"


@contextmanager
def _unheard() -> Iterator[Callable[[bool], None]]:
    """Let the tasks of a loop that was broken off go without their complaints; gives what lets complaints through again."""
    hook = sys.unraisablehook

    def listen(on: bool) -> None:
        sys.unraisablehook = hook if on else lambda unraisable: None

    try:
        listen(False)
        yield listen
    finally:
        sys.unraisablehook = hook
