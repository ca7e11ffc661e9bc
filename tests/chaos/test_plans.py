"""Plans are values: drawn by seed, pasted back, covering what they claim; a fault that makes no sense is refused."""

from __future__ import annotations

import itertools

import pytest
from playbill.actors.testing.faults import ARGS, CORE, VALID, Fault, FaultPlan, all_pairs
from playbill.actors.testing.literal import literal, parse
from playbill.actors.testing.plans import Op, Plan, ServerPlan, doubles, draw, singles


@pytest.mark.parametrize("seed", range(0, 200, 7))
def test_a_plan_pastes_back(seed: int) -> None:
    plan = draw(seed)
    assert draw(seed) == plan
    assert parse(f"# a comment\n{literal(plan)}\n") == plan
    assert parse(repr(plan)) == plan


def test_a_fault_pastes_back() -> None:
    fault = Fault(1.5, "a", "call_before", "latency", 0.25)
    assert eval(repr(fault), {"Fault": Fault}) == fault


@pytest.mark.parametrize(
    "text",
    ["", "Plan(", "1", "__import__('os')", "Plan(seed=open('x'), servers=())", "Plan(sed=1)", "FaultPlan()"],
)
def test_what_is_no_plan_is_refused_by_line_and_not_evaluated(text: str) -> None:
    with pytest.raises(ValueError, match="line 1"):
        parse(text)


@pytest.mark.parametrize(
    ("server", "site", "kind", "words"),
    [
        ("a", "nowhere", "crash", "no such site"),
        ("a", "spawn", "huge_listing", "makes no sense"),
        ("", "spawn", "crash", "names a server"),
        ("a", "projector", "crash", "names no server"),
    ],
)
def test_a_fault_that_makes_no_sense_is_refused(server: str, site: str, kind: str, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        Fault(0.0, server, site, kind)


def test_every_kind_that_is_known_is_used_somewhere() -> None:
    assert set(ARGS) <= {kind for kinds in VALID.values() for kind in kinds}


def test_the_singles_have_every_site_and_kind_with_one_two_and_three_servers() -> None:
    plans = list(singles())
    assert {(f.site, f.kind) for plan in plans for f in plan.faults} == set(all_pairs())
    assert all(len(plan.faults) == 1 or plan.faults.faults[0].site == "list" for plan in plans)
    assert {len(plan.servers) for plan in plans} == {1, 2, 3}


def test_the_doubles_cover_every_two() -> None:
    met: set[frozenset[tuple[str, str]]] = set()
    for plan in doubles():
        met.update(map(frozenset, itertools.combinations([(f.site, f.kind) for f in plan.faults], 2)))
    assert met == set(map(frozenset, itertools.combinations(all_pairs(), 2)))


def test_somebody_is_left_alone_in_every_drawn_plan_of_several() -> None:
    for plan in map(draw, range(200)):
        if len(plan.servers) > 1:
            assert plan.struck() < {server.name for server in plan.servers}


def test_a_plan_without_the_faults_of_some_keeps_the_others() -> None:
    core, other = Fault(1.0, "", "projector", "crash"), Fault(2.0, "a", "idle", "crash")
    plan = Plan(1, (ServerPlan("a"),), FaultPlan((other, core)), (Op(0.0, "reload"),))
    assert plan.faults.faults == (core, other)
    assert plan.without(core=True).faults.faults == (other,)
    assert plan.without(servers=True).faults.faults == (core,)
    assert CORE[0] not in plan.struck()
