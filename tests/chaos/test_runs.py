"""The host under faults: fixed seeds, single faults and pairs, and all that ever failed. Exit codes and reports of the kit.

Determinism contract: every run is `run_simulation`'s; a seed that passed passes for ever, until the host is changed.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import playbill.actors.testing.chaos
import pytest
from playbill.actors.testing.chaos import Judged, examine, explore
from playbill.actors.testing.faults import Fault, FaultPlan
from playbill.actors.testing.plans import Plan, ServerPlan, doubles, draw, singles
from playbill.actors.testing.play import play
from playbill.actors.testing.reports import load, report

REGRESSIONS = sorted((Path(__file__).resolve().parents[1] / "regressions").glob("*.plan"))
SEEDS = 150
SLICES = 15
SINGLES, DOUBLES = 2, 8
"""Every second plan of one fault, and every eighth of two, is played here; `playbill chaos --systematic` plays them all."""


def failures(judged: list[Judged]) -> str:
    return "\n\n".join(report(each) for each in judged if each.kind != "ok")


@pytest.mark.parametrize("part", range(SLICES))
def test_seeded_runs_are_clean(part: int) -> None:
    size = SEEDS // SLICES
    assert failures(list(explore(range(part * size, (part + 1) * size)))) == ""


@pytest.mark.parametrize("part", range(8))
def test_single_faults_are_borne(part: int) -> None:
    plans = list(singles())[::SINGLES]
    assert failures([examine(plan) for plan in plans[part::8]]) == ""


def test_faults_that_meet_are_borne() -> None:
    assert failures([examine(plan) for plan in list(doubles())[::DOUBLES]]) == ""


@pytest.mark.parametrize("file", REGRESSIONS, ids=lambda file: file.stem)
def test_what_failed_once_does_not_fail_again(file: Path) -> None:
    assert failures([examine(load(file))]) == ""


def test_a_plan_is_played_again_as_often_as_somebody_in_it_was_left_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the others saw is held against a run without faults; where there are no others there is nothing to hold."""
    played: list[int] = []

    def counted(plan: Plan, **how: Any) -> Any:
        played.append(len(plan.faults))
        return play(plan, **how)

    monkeypatch.setattr(playbill.actors.testing.chaos, "play", counted)
    server, core = Fault(1.0, "a", "call_before", "crash"), Fault(2.0, "", "coordinator", "latency", 0.1)
    both, a, b = FaultPlan((server, core)), ServerPlan("a"), ServerPlan("b")
    for plan, times in (
        (Plan(1, (a, b), faults=both), [2, 1, 0]),
        (Plan(1, (a, b), faults=FaultPlan((server,))), [1, 0]),
        (Plan(1, (a, b), faults=FaultPlan((core,))), [1]),
        (Plan(1, (a,), faults=both), [2]),
    ):
        played.clear()
        assert examine(plan).kind == "ok"
        assert played == times


def test_a_run_is_the_same_whenever_it_is_played() -> None:
    plan = next(each for each in map(draw, range(50)) if len(each.faults) > 6)
    first, second = examine(plan), examine(plan)
    assert first == second
    assert first.trace == second.trace
    assert "fault" in {what.split()[0] for _, _, what in first.trace}


def test_a_run_is_the_same_in_another_process_with_other_hashes() -> None:
    code = (
        "from playbill.actors.testing.chaos import explore\n"
        "print([(each.trace, each.steps) for each in explore(range(4, 8))])"
    )
    seen = {
        subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    assert seen == {f"{[(each.trace, each.steps) for each in explore(range(4, 8))]}\n"}
