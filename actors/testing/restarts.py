"""A model of restarting, written a second time and differently from the supervisor's own: when must the next start come?

It reads only what a server sees of itself: when it was started, when its first list was fetched (it is healthy from then
on), when it ended. From the deaths so far follow the number of the attempt, the range of its backoff, and the parking.
Later than that it may be only because it would have been too near to another one's restart.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

from ..ports import RESTART_SPACING
from .plans import Plan
from .strikes import Note

__all__ = ["restart_times", "too_near"]


def too_near(restarts: Sequence[float]) -> Iterator[str]:
    """Check that restarts by themselves, of whichever servers, keep their distance; one line for each that does not."""
    for before, after in pairwise(sorted(restarts)):
        if after - before < RESTART_SPACING - 1e-9:
            yield f"servers were started again at {before:g} and {after:g}, less than {RESTART_SPACING:g} s apart"


def restart_times(
    plan: Plan, notes: Sequence[Note], until: float, others: Sequence[float] | None = None
) -> Iterator[str]:
    """Check every restart of one server that nobody but faults stopped.

    Args:
        plan: whose rules hold.
        notes: of that server, in order.
        until: trio clock seconds after which nothing is judged.
        others: when other servers were started; None: it is not known for which times they had their turns.

    Returns:
        What was wrong, one line each.
    """
    lives: list[tuple[float, float | None, float]] = []
    born, healthy = 0.0, None
    for note in notes:
        if note.what == "spawn":
            born, healthy = note.at, None
        elif note.what == "listed" and healthy is None:
            healthy = note.at
        elif note.what == "end":
            lives.append((born, healthy, note.at))
    starts = [note.at for note in notes if note.what == "spawn"]
    crowd = 2 * RESTART_SPACING * (len(plan.servers) - 1)  # each other one moves it by less than two distances
    deaths = 0
    recent: list[float] = []
    parked = False
    for number, (_, healthy, died) in enumerate(lives):
        if died >= until:
            return
        if healthy is not None and died - healthy >= plan.reset_after:
            deaths, recent, parked = 0, [], False
        recent = [*(at for at in recent if died - at < plan.window), died]
        if parked or len(recent) > plan.restarts:
            parked, recent = True, []
            least = most = plan.retry
        else:
            grown = plan.base * 2**deaths
            least = min(plan.most, grown * (1 - plan.jitter))
            most = min(plan.most, grown * (1 + plan.jitter))
        deaths += 1
        after = starts[number + 1] if number + 1 < len(starts) else math.inf
        state = "parked" if parked else f"attempt {deaths}"
        crowded = others is None or any(abs(after - RESTART_SPACING - at) < 1e-6 for at in others)
        latest = died + most + (crowd if crowded else 0.0)
        if after == math.inf and died + most + crowd < until:
            yield f"it died at {died:g} ({state}) and was not started again"
        elif after < until and not died + least - 1e-9 <= after <= latest + 1e-9:
            yield f"it died at {died:g} ({state}) and was started after {after - died:.4g} s, not {least:.4g} to {most:.4g}"
