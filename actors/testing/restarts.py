"""A model of restarting, written a second time and differently from the supervisor's own: when must the next start come?

It reads only what a server sees of itself: when it was started, when its first list was fetched (it is healthy from then
on), when it ended. From the deaths so far follow the number of the attempt, the range of its backoff, and the parking.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

from .plans import Plan
from .strikes import Note

__all__ = ["restart_times"]


def restart_times(plan: Plan, notes: Sequence[Note], until: float) -> Iterator[str]:
    """Check every restart of one server that nobody but faults stopped.

    Args:
        plan: whose rules hold.
        notes: of that server, in order.
        until: trio clock seconds after which nothing is judged.

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
        if after == math.inf and died + most < until:
            yield f"it died at {died:g} ({state}) and was not started again"
        elif after < until and not died + least - 1e-9 <= after <= died + most + 1e-9:
            yield f"it died at {died:g} ({state}) and was started after {after - died:.4g} s, not {least:.4g} to {most:.4g}"
