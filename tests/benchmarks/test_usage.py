"""The neutral processes of an equal-CPU arm burn what they should, as they should, and are counted apart."""

from __future__ import annotations

import time
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

Runner = Callable[[str], ModuleType]

ENOUGH = 0.6
"""Seconds of CPU after which it is looked at what burned them."""


@pytest.mark.parametrize("fresh", [False, True], ids=["in a loop", "in new processes"])
def test_neutral_processes_burn_as_they_should_and_are_counted_apart(runner: Runner, fresh: bool) -> None:
    usage = runner("usage")
    burners = usage.Burners(0.8, 2, 0.1, fresh=fresh)
    seen: set[int] = set()
    try:
        first, burned = usage.cpu_below(burners.pids)
        most, end = first, time.monotonic() + 60
        while burned < ENOUGH:
            others, burned = usage.cpu_below(burners.pids)
            most = max(most, others)
            seen |= {int(pid) for burner in burners.pids for pid in children_of(burner)}
            assert time.monotonic() < end, "they burned nothing"
    finally:
        burners.end()
    assert len(burners.pids) == 2
    assert (len(seen) > 2) is fresh
    assert most - first < 0.05, "what they burned was counted as that of servers"


def test_next_to_nothing_is_burned_by_nobody(runner: Runner) -> None:
    burners = runner("usage").Burners(0.004, 5, fresh=True)
    burners.end()
    assert burners.pids == []


def test_memory_is_in_megabytes(runner: Runner) -> None:
    status = Path("/proc/self/status").read_text()
    kilobytes = next(int(line.split()[1]) for line in status.splitlines() if line.startswith("VmRSS"))
    assert 0.5 < runner("usage").memory() / (kilobytes / 1024) < 2


def children_of(pid: int) -> list[str]:
    """The pids of a process's children now."""
    try:
        return Path(f"/proc/{pid}/task/{pid}/children").read_text().split()
    except OSError:
        return []
