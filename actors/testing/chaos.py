"""Plays many plans and judges each: drawn from seeds, or systematically. What fails is shrunk and reported.

Theory of operation
    Each plan is played as it is and judged by the oracle. If servers were struck and others were left alone, it is played twice
    more, without the faults of core actors and without any, and the timelines of those others are compared. It needs no pytest.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator
from typing import Literal

from attrs import field, frozen

from ..opening import open_host
from .faults import Level
from .oracle import Violation, compare, judge
from .plans import Plan, doubles, draw, singles
from .play import Opener, play
from .scripted import ScriptedServers
from .shrink import shrink

__all__ = ["Judged", "Kind", "examine", "explore", "level_of", "shrunk", "systematic", "wire_is_possible"]

Kind = Literal["ok", "crash", "liveness", "correctness"]
"""All was right · the run itself raised · something did not come to its end · something was wrong."""


@frozen
class Judged:
    """A plan that was played, and what came of it.

    Args:
        plan: as played.
        kind: how it went.
        reasons: what was wrong, one line each.
        invariants: which of the design's were broken.
        trace: (virtual seconds, who, what), of the run as planned.
        seconds, steps: virtual seconds and task steps that it took.
    """

    plan: Plan
    kind: Kind
    reasons: tuple[str, ...]
    invariants: frozenset[int]
    trace: tuple[tuple[float, str, str], ...] = field(repr=False)
    seconds: float
    steps: int


def examine(
    plan: Plan, *, opener: Opener = open_host, servers: Callable[..., ScriptedServers] = ScriptedServers
) -> Judged:
    """Play a plan and judge it.

    Args:
        plan: what to play.
        opener: `open_host`, or what stands in for it.
        servers: makes the scripted servers from name → script.
    """
    result, history = play(plan, opener=opener, servers=servers)
    violations = judge(history)
    alone = {each.name for each in plan.servers} - plan.struck()
    if plan.struck() and alone and result.verdict == "ok":
        struck, bare = plan.without(core=True), plan.without(core=True, servers=True)
        among = history if struck == plan else play(struck, opener=opener, servers=servers)[1]
        violations += compare(among, play(bare, opener=opener, servers=servers)[1])
    notes = [(note.at, f"{note.server}#{note.connection}", f"{note.what} {note.detail}") for note in history.notes]
    trace = tuple(sorted([*result.trace, *notes], key=lambda each: each[0]))
    kind: Kind = result.verdict
    if kind == "ok" and violations:
        kind = "liveness" if all(each.kind == "liveness" for each in violations) else "correctness"
    texts = [result.reason] if result.reason else []
    reasons = tuple(dict.fromkeys([*texts, *(str(each) for each in violations)]))
    return Judged(plan, kind, reasons, _broken(violations), trace, result.seconds, result.steps)


def _broken(violations: Iterable[Violation]) -> frozenset[int]:
    return frozenset(each.invariant for each in violations)


def explore(seeds: Iterable[int], level: Level = "connection", **how: object) -> Iterator[Judged]:
    """Draw, play and judge a plan for each seed.

    Args:
        seeds: from which plans are drawn.
        level: where the faults of servers are delivered.
        how: as `examine` takes it.
    """
    for seed in seeds:
        yield examine(draw(seed, level), **how)  # type: ignore[arg-type]


def level_of(seed: int) -> Level:
    """The level that a seed is played at when none is asked for: of eight two on the wire, one over HTTP, which are slower."""
    if seed % 4 == 3 and wire_is_possible():
        return "wire"
    return "http" if seed % 8 == 5 else "connection"


def wire_is_possible() -> bool:
    """Whether this platform has the pipes that the wire level needs."""
    return os.name != "nt"


def systematic(level: Level = "connection", *, pairs: bool = True) -> Iterator[Plan]:
    """The plans of the systematic mode: every single fault, and then, if asked for, every two that can meet."""
    yield from singles(level)
    if pairs:
        yield from doubles(level)


def shrunk(judged: Judged, *, tries: int = 150, **how: object) -> Judged:
    """The least plan that fails in the same way: of the same kind, and (unless it crashed) breaking an invariant in common.

    Args:
        judged: a failure.
        tries: how many plans are played at most.
        how: as `examine` takes it.
    """
    best = judged

    def fails(plan: Plan) -> bool:
        nonlocal best
        again = examine(plan, **how)  # type: ignore[arg-type]
        same = again.kind == judged.kind and (not judged.invariants or bool(again.invariants & judged.invariants))
        if same:
            best = again
        return same

    shrink(judged.plan, fails, tries=tries)
    return best
