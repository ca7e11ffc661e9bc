"""A failure is made small, told so that it can be repeated, kept as a file, and its kind is the exit code."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
import trio
from playbill.actors import open_host
from playbill.actors.cli import chaos as verb
from playbill.actors.cli.app import run
from playbill.actors.testing.chaos import examine, shrunk
from playbill.actors.testing.faults import Fault, FaultPlan
from playbill.actors.testing.plans import Plan, ServerPlan, draw
from playbill.actors.testing.reports import load, report, store
from playbill.actors.testing.shrink import shrink


def test_shrinking_finds_the_two_that_are_needed() -> None:
    needed = {Fault(3.0, "a", "idle", "crash"), Fault(4.0, "a", "close", "crash")}
    others = [Fault(float(n), "b", "spawn", "crash") for n in range(20)]
    servers = (ServerPlan("a"), ServerPlan("b"), ServerPlan("c"))
    plan = Plan(1, servers, FaultPlan((*others[:9], *needed, *others[9:])), draw(1).work)
    played = []

    def fails(smaller: Plan) -> bool:
        played.append(smaller)
        return needed <= set(smaller.faults)

    least = shrink(plan, fails)
    assert set(least.faults) == needed
    assert least.work == ()
    assert least.servers == (ServerPlan("a"),)
    assert len(played) < 60


def test_shrinking_stops_at_its_number_of_tries() -> None:
    played = []

    def fails(smaller: Plan) -> bool:
        played.append(smaller)
        return len(smaller.faults) >= 2

    faults = FaultPlan(tuple(Fault(float(n), "a", "idle", "crash") for n in range(40)))
    least = shrink(Plan(1, (ServerPlan("a"),), faults), fails, tries=5)
    assert len(played) == 5
    assert 2 <= len(least.faults) < 40


@asynccontextmanager
async def crashing(**options: Any) -> AsyncIterator[Any]:
    async with open_host(**options) as host:
        yield host
    raise KeyError("lost")


@asynccontextmanager
async def hanging(**options: Any) -> AsyncIterator[Any]:
    async with open_host(**options) as host:
        yield host
        await trio.sleep_forever()


@asynccontextmanager
async def forgetful(**options: Any) -> AsyncIterator[Any]:
    async with open_host(**options) as host:
        host.why = lambda server, bare: type("Why", (), {"verdict": "unknown"})  # type: ignore[method-assign]
        yield host


@pytest.mark.parametrize(
    ("opener", "kind", "code"),
    [(crashing, "crash", 10), (hanging, "liveness", 11), (forgetful, "correctness", 12)],
)
def test_the_kind_of_a_failure_is_told_kept_and_the_exit_code(
    opener: Any,
    kind: str,
    code: int,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr(verb, "examine", lambda plan: examine(plan, opener=opener))
    monkeypatch.setattr(verb, "shrunk", lambda judged: shrunk(judged, tries=40, opener=opener))
    assert run(["chaos", "--seeds", "3", "--keep", str(tmp_path)]) == code
    (file,) = tmp_path.glob("*.plan")
    out, err = capsys.readouterr()
    assert file.name.startswith(kind)
    assert out.startswith(f"{kind}, seed 0, 0 faults")
    assert "trio" in out
    assert "Plan(" in out
    assert f"replay: playbill chaos --replay {file}" in out
    assert kind in err
    assert load(file) == load(file)
    assert run(["chaos", "--replay", str(file), "--json"]) == code
    value = json.loads(capsys.readouterr().out)
    assert (value["ok"], value["kind"], value["file"]) == (False, kind, str(file))


@pytest.mark.parametrize(
    ("typed", "levels"),
    [
        (["--seed", "2", "--seeds", "4"], ["connection", "wire", "connection", "http"]),
        (["--seed", "2", "--seeds", "3", "--http"], ["http"] * 3),
        (["--seed", "2", "--seeds", "3", "--wire"], ["wire"] * 3),
        (["--seed", "2", "--seeds", "3", "--no-wire"], ["connection"] * 3),
    ],
)
def test_every_fourth_seed_is_on_the_wire_and_every_eighth_over_http_unless_all_or_none_are(
    typed: list[str], levels: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    played = []

    def look(plan: Plan) -> Any:
        played.append(plan.level)
        return examine(Plan(1, (ServerPlan("a"),)))

    monkeypatch.setattr(verb, "examine", look)
    assert run(["chaos", *typed]) == 0
    assert played == levels


def test_the_systematic_plans_are_of_all_levels_or_of_the_one_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(verb, "systematic", lambda level: [draw(1, level)])
    monkeypatch.setattr(verb, "examine", lambda plan: played.append(plan.level) or examine(draw(5)))  # type: ignore[func-returns-value]
    for typed, levels in (
        ([], ["connection", "wire", "http"]),
        (["--wire"], ["wire"]),
        (["--http"], ["http"]),
        (["--no-wire"], ["connection"]),
    ):
        played: list[str] = []
        assert run(["chaos", "--systematic", *typed]) == 0
        assert played == levels


@pytest.mark.parametrize("level", ["wire", "http"])
def test_a_failure_below_a_session_is_kept_with_its_level_and_replayed_there(
    level: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(verb, "examine", lambda plan: examine(plan, opener=forgetful))
    monkeypatch.setattr(verb, "shrunk", lambda judged: shrunk(judged, tries=10, opener=forgetful))
    assert run(["chaos", f"--{level}", "--seed", "7", "--keep", str(tmp_path)]) == 12
    (file,) = tmp_path.glob("*.plan")
    assert load(file).level == level
    assert f"level='{level}'" in capsys.readouterr().out
    assert run(["chaos", "--replay", str(file)]) == 12


def test_a_stored_plan_is_the_plan(tmp_path: Path) -> None:
    judged = examine(draw(4), opener=forgetful)
    assert load(store(judged, tmp_path)) == draw(4)
    assert store(judged, tmp_path) == store(judged, tmp_path)
    assert str(judged.plan.seed) in report(judged)


def test_clean_runs_exit_with_0_and_say_so(capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["chaos", "--seed", "5", "--seeds", "2"]) == 0
    assert capsys.readouterr().out.startswith("2 runs, nothing wrong")
    assert run(["chaos", "--seed", "5", "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["runs"] == 1


@pytest.mark.parametrize(
    "typed", [["--seeds", "0"], ["--replay", "no-such-file"], ["--seed", "x"], ["--wire", "--http"]]
)
def test_a_mistyped_run_is_one_line_and_exit_2(typed: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    assert run(["chaos", *typed]) == 2
    out, err = capsys.readouterr()
    assert (out, err.count("\n")) == ("", 1)
