"""Shrinking: from a plan that fails to the least of it that still fails (delta debugging, Zeller and Hildebrandt 2002).

Faults are taken away first, then the work, then servers that neither needs, and then the faults once more, as less work may
need fewer. Each try is a whole run, so the number of tries is bounded; what has been reached by then is what is given.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from attrs import evolve

from .faults import FaultPlan
from .plans import Plan

__all__ = ["shrink"]

T = TypeVar("T")


class _Spent(Exception):
    """No more tries."""


def shrink(plan: Plan, fails: Callable[[Plan], bool], *, tries: int = 150) -> Plan:
    """Make a failing plan as small as it can be made.

    Args:
        plan: fails.
        fails: plays a plan and says whether it fails in the same way.
        tries: how many plans are played at most.

    Returns:
        A plan that fails, with faults, work and servers of the given one only.
    """
    best = plan
    left = tries

    def attempt(smaller: Plan) -> bool:
        nonlocal best, left
        if left <= 0:
            raise _Spent
        left -= 1
        if fails(smaller):
            best = smaller
            return True
        return False

    try:
        for _ in range(2):
            before = best
            _reduce(best.faults.faults, lambda kept: attempt(evolve(best, faults=FaultPlan(tuple(kept)))))
            _reduce(best.work, lambda kept: attempt(evolve(best, work=tuple(kept))))
            used = {fault.server for fault in best.faults} | {op.server for op in best.work}
            idle = [server for server in best.servers if server.name not in used]
            for server in idle if len(best.servers) > 1 else []:
                if len(best.servers) > 1:
                    attempt(evolve(best, servers=tuple(each for each in best.servers if each != server)))
            if best == before:
                break
    except _Spent:
        pass
    return best


def _reduce(items: Sequence[T], works: Callable[[Sequence[T]], bool]) -> None:
    """Find a least subsequence for which ``works`` holds; ``works`` keeps what it accepts."""
    current = list(items)
    if not current or works([]):
        return
    size = max(1, len(current) // 2)
    while current:
        start, removed = 0, False
        while start < len(current):
            rest = current[:start] + current[start + size :]
            if rest and works(rest):
                current, removed = rest, True
            else:
                start += size
        if size == 1 and not removed:
            return
        size = max(1, size // 2)
