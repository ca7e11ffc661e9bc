"""The load on healthy servers, the same in every arm, and what is told of it. Of the standard library and anyio alone.

Shared by `isolation.py` (Playbill on trio) and `peers/under_fault.py` (every peer, on whichever loop it runs).
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterator, Sequence
from statistics import median, quantiles
from typing import Any

import anyio

AT_ONCE = 16
GRACE = 2.0
"""Seconds after the end of a block in which calls that were due in it can still begin; the rest are errors."""

ORDERS = (
    ("calm", "faulty", "busy"),
    ("busy", "faulty", "calm"),
    ("faulty", "busy", "calm"),
    ("calm", "busy", "faulty"),
    ("busy", "calm", "faulty"),
    ("faulty", "calm", "busy"),
)
"""Of the arms, round by round: each of the two that are compared is as often before the other, and as often after `calm`."""

SHORT = 0.5
"""How long a block of `calm` is, against one of the two that are compared: it only says what is used when nothing happens."""


class Load:
    """The times of all calls of one kind of load in one arm, in seconds, and how many failed.

    Attributes:
        times: of calls that succeeded, from when they were due.
        p99s: of each block; None where too few succeeded.
        errors, words: how many failed, and how, once for each way.
    """

    def __init__(self) -> None:
        self.times: list[float] = []
        self.p99s: list[float | None] = []
        self.errors = 0
        self.words: dict[str, int] = {}

    def failed(self, error: str) -> None:
        """Note one that failed."""
        self.errors += 1
        if error in self.words or len(self.words) < 5:
            self.words[error] = self.words.get(error, 0) + 1

    def figures(self) -> dict[str, Any]:
        """Percentiles in ms of all blocks together, and counts."""
        named: dict[str, float | None] = dict.fromkeys(("p50", "p99", "p99.9", "max"))
        if len(self.times) > 1:
            cuts = quantiles(self.times, n=1000, method="inclusive")
            named = {"p50": cuts[499], "p99": cuts[989], "p99.9": cuts[998], "max": max(self.times)}
        figures: dict[str, Any] = {name: value and round(value * 1e3, 3) for name, value in named.items()}
        figures |= {"errors": self.errors, "calls": len(self.times) + self.errors}
        figures["p99 of each block"] = [value and round(value * 1e3, 3) for value in self.p99s]
        return figures | ({"errors were": self.words} if self.words else {})


async def run_load(
    call: Callable[[str], Awaitable[object]],
    healthy: Sequence[str],
    load: Load,
    callers: int,
    rate: float,
    seconds: float,
) -> None:
    """Call the healthy servers, in turn, so many times a second in all.

    Args:
        call: calls one; raises, within a time of its own, when that fails.
        healthy: names of servers.
        load: is added to.
        callers: how many at once, each of which waits for its answer before its next call.
        rate: calls a second of all callers together.
        seconds: how long.
    """
    began, each = anyio.current_time(), callers / rate
    times: list[float] = []

    async def caller(lane: int) -> None:
        due, turn = began + lane * each / callers, lane
        while due < began + seconds:
            await anyio.sleep_until(due)
            if anyio.current_time() > began + seconds + GRACE:
                load.failed("not made: its caller still waited for the one before")
            else:
                try:
                    await call(healthy[turn % len(healthy)])
                except Exception as error:
                    load.failed(short(error))
                else:
                    times.append(anyio.current_time() - due)
            due, turn = due + each, turn + callers

    async with anyio.create_task_group() as group:
        for lane in range(callers):
            group.start_soon(caller, lane)
    load.times += times
    load.p99s.append(quantiles(times, n=100, method="inclusive")[98] if len(times) > 1 else None)


def over(faulty: Load, busy: Load) -> dict[str, float | None]:
    """How p99 in the one compares with that in the other.

    Returns:
        ``median``: that of the ratios of all rounds; ``pooled``: the ratio of the percentiles of all rounds together. None
        where a round, or all, had no calls to compare.
    """
    rounds = [ours / theirs for ours, theirs in zip(faulty.p99s, busy.p99s, strict=False) if ours and theirs]
    ours, theirs = faulty.figures()["p99"], busy.figures()["p99"]
    return {
        "median": round(median(rounds), 3) if rounds and len(rounds) == len(busy.p99s) else None,
        "pooled": round(ours / theirs, 3) if ours and theirs else None,
    }


def orders(rounds: int) -> Iterator[tuple[str, ...]]:
    """The order of the arms in each round."""
    for turn in range(rounds):
        yield ORDERS[turn % len(ORDERS)]


def short(error: BaseException) -> str:
    """An error in one line, that of its first leaf."""
    while isinstance(error, BaseExceptionGroup):
        error = error.exceptions[0]
    return f"{type(error).__name__}: {str(error).splitlines()[0] if str(error) else ''}"[:120]
