"""The restart decision: one pure function over a child's history. No clock, no trio, no effect.

Theory of operation. A child's `History` is what its deaths so far add up to. When an incarnation ends, `decide` is given
the history, how it ended, since when it had been healthy, the time and a source of randomness, and answers with the new
history and one `Decision` for the supervisor to carry out. In order:

1. A stop we asked for (``shutdown``) is never answered with a restart.
2. Health proven for ``backoff.reset_after`` seconds clears the history before this end is counted.
3. `RESTARTS` says if this kind of end is answered at all for this restart type; if not, the child is removed.
4. A parked child's slow retry that ended parks again: one try per ``park_retry``, never a burst.
5. A first attempt that is futile (`Exit.futile`) parks at once. One that follows another death does not: what ran a moment ago
   may be on its way back, as a program that is being upgraded.
6. One more restart than ``intensity.restarts`` within ``intensity.window``: park or escalate.
7. Else restart, after a backoff that grows with the deaths counted since the history was cleared; and not before the time
   that the end itself named (`Exit.retry_after`), which goes for 4 to 6 too.

The cancellation of everything from outside never comes here: it is nothing to react to.
"""

from __future__ import annotations

import random
from typing import Literal

from attrs import frozen

from .spec import ChildSpec, Restart

__all__ = [
    "RESTARTS",
    "Decision",
    "Escalate",
    "Exit",
    "ExitKind",
    "History",
    "Park",
    "Remove",
    "RestartAfter",
    "cleared",
    "decide",
    "next_attempt",
    "proven",
    "restarted",
]

ExitKind = Literal["normal", "shutdown", "abnormal", "start_failed"]
"""The body returned · we stopped it · it raised · it raised or was too slow before it acknowledged its start."""

RESTARTS: dict[tuple[Restart, ExitKind], bool] = {
    (Restart.PERMANENT, "normal"): True,
    (Restart.PERMANENT, "abnormal"): True,
    (Restart.PERMANENT, "start_failed"): True,
    (Restart.PERMANENT, "shutdown"): False,
    (Restart.TRANSIENT, "normal"): False,
    (Restart.TRANSIENT, "abnormal"): True,
    (Restart.TRANSIENT, "start_failed"): True,
    (Restart.TRANSIENT, "shutdown"): False,
    (Restart.TEMPORARY, "normal"): False,
    (Restart.TEMPORARY, "abnormal"): False,
    (Restart.TEMPORARY, "start_failed"): False,
    (Restart.TEMPORARY, "shutdown"): False,
}
"""Is an end of this kind answered with a restart? (OTP's supervisor, restart types.)"""


@frozen
class Exit:
    """How an incarnation ended.

    Args:
        kind: in which way.
        reason: one line.
        retry_after: seconds before which it is of no use to start it anew, 0 when that is not known. A body says so by an
            exception with a ``retry_after`` attribute.
        futile: nothing but a change from outside (an edit, a program that is installed) can make another attempt succeed. A
            body says so by an exception with a true ``futile`` attribute. It makes a difference only where children park.
    """

    kind: ExitKind
    reason: str
    retry_after: float = 0.0
    futile: bool = False


@frozen
class History:
    """What a child's deaths add up to since the history was last cleared.

    Args:
        failures: deaths counted; drives the backoff.
        stamps: when the restarts inside the window were decided, oldest first.
        restarts: how often it was started anew.
        parked: it was over the limit and has not proven its health since.
        last_reason: one line of the last death, or None when there was none.
    """

    failures: int = 0
    stamps: tuple[float, ...] = ()
    restarts: int = 0
    parked: bool = False
    last_reason: str | None = None


@frozen
class RestartAfter:
    """Start it anew after ``delay`` seconds; ``asked``: the end itself asked to wait so long, and not the backoff."""

    delay: float
    asked: bool = False


@frozen
class Park:
    """Keep it down and visible; try once after ``retry_after`` seconds (``asked``: as above), or (None) only by hand."""

    retry_after: float | None
    asked: bool = False


@frozen
class Remove:
    """It is a child no more."""


@frozen
class Escalate:
    """The supervisor itself has failed, for ``reason``."""

    reason: str


Decision = RestartAfter | Park | Remove | Escalate


def cleared() -> History:
    """The history of a child that never died: for a new, revived or replaced one."""
    return History()


def restarted(history: History) -> History:
    """The history as a restart, or the slow retry of a parked child, begins; parked stays parked until health is proven."""
    was = history
    return History(was.failures, was.stamps, was.restarts + 1, was.parked, was.last_reason)


def next_attempt(spec: ChildSpec, history: History) -> tuple[int, int] | None:
    """Which restart of how many within the window is next (or under way); None when none is counted, or parked."""
    if history.parked or not history.stamps:
        return None
    return len(history.stamps), spec.intensity.restarts


def proven(spec: ChildSpec, healthy_since: float | None, now: float) -> bool:
    """Whether health that began at ``healthy_since`` (None: there is none) is proven by ``now``."""
    return healthy_since is not None and now - healthy_since >= spec.backoff.reset_after


def decide(
    spec: ChildSpec, history: History, exit: Exit, *, healthy_since: float | None, now: float, rng: random.Random
) -> tuple[History, Decision]:
    """What to do about the end of an incarnation (the rules are at the top of this file).

    Args:
        spec: of the child.
        history: before this end.
        exit: how the incarnation ended.
        healthy_since: when its present health began, or None when it is not healthy.
        now: the time of the end, same clock.
        rng: for the jitter; drawn from once if the answer is `RestartAfter`, else not.

    Returns:
        The history after this end, and the decision.
    """
    if exit.kind != "shutdown" and proven(spec, healthy_since, now):
        history = cleared()
    restarts, reason = history.restarts, exit.reason
    if not RESTARTS[spec.restart, exit.kind]:
        return History(history.failures, history.stamps, restarts, history.parked, reason), Remove()
    failures = history.failures + 1
    limit = spec.intensity
    stamps = (*[stamp for stamp in history.stamps if now - stamp < limit.window], now)
    over = len(stamps) > limit.restarts
    hopeless = exit.futile and not history.failures
    if history.parked or (limit.then == "park" and (over or hopeless)):
        parked = History(failures, (), restarts, True, reason)
        if limit.park_retry is None:
            return parked, Park(None)
        return parked, Park(max(limit.park_retry, exit.retry_after), asked=exit.retry_after > limit.park_retry)
    if over:
        return History(failures, (), restarts, False, reason), Escalate(reason)
    delay = spec.backoff.delay(history.failures, rng)
    decision = RestartAfter(max(delay, exit.retry_after), asked=exit.retry_after > delay)
    return History(failures, stamps, restarts, False, reason), decision
