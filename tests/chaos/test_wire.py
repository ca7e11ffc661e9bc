"""The host over bytes: real sessions on real pipes in virtual time, and every kind of fault in the bytes of an answer.

Determinism contract: every run is `run_simulation`'s, and trio looks at a pipe before a virtual clock jumps.
"""

from __future__ import annotations

import gc
import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
from attrs import evolve
from playbill.actors import Host, PlaybillError
from playbill.actors.model.status import ToolDef
from playbill.actors.server import ServerSettings
from playbill.actors.testing.chaos import examine, explore
from playbill.actors.testing.faults import BYTES, NOISE, VALID, WIRE_ARGS, WIRE_VALID, Fault, FaultPlan
from playbill.actors.testing.literal import literal, parse
from playbill.actors.testing.plans import Plan, ServerPlan, draw, singles
from playbill.actors.testing.reports import report
from playbill.actors.testing.wires import WireServerKit
from playbill.supervision.testing import Simulation, run_simulation

SEEDS = range(20)
TAKES = 0.2
"""Seconds that a call takes."""

PATIENCE = 4.0
"""Seconds that a connection may take, and a later list."""

SETTINGS = ServerSettings(connect_timeout=PATIENCE, list_timeout=PATIENCE, relist_pause=0.5)


def failures(judged: list[Any]) -> str:
    return "\n\n".join(report(each) for each in judged if each.kind != "ok")


# Plans on the wire: the same workload, oracle and invariants as for whole connections.


@pytest.mark.parametrize("part", range(4))
def test_seeded_runs_over_bytes_are_clean(part: int) -> None:
    assert failures(list(explore(SEEDS[part::4], "wire"))) == ""


def test_every_single_fault_in_bytes_is_borne() -> None:
    literally = [
        plan
        for plan in singles("wire")
        if len(plan.servers) == 2 and plan.faults.faults[0].kind not in VALID[plan.faults.faults[0].site]
    ]
    sites = {(plan.faults.faults[0].site, plan.faults.faults[0].kind) for plan in literally}
    assert sites == {(site, kind) for site in WIRE_VALID for kind in WIRE_VALID[site] if kind not in VALID[site]}
    assert failures([examine(plan) for plan in literally]) == ""


def test_the_same_plan_is_borne_at_both_levels() -> None:
    plan = next(each for each in map(draw, range(100)) if len(each.faults) > 6 and len(each.struck()) > 1)
    assert plan.level == "connection"
    assert failures([examine(plan), examine(evolve(plan, level="wire"))]) == ""


def test_a_run_over_bytes_is_the_same_whenever_it_is_played() -> None:
    plan = next(each for each in (draw(seed, "wire") for seed in range(50)) if len(each.faults) > 6)
    first, second = examine(plan), examine(plan)
    assert first == second
    assert first.trace == second.trace
    assert "fault" in {what.split()[0] for _, _, what in first.trace}


def test_a_run_over_bytes_is_the_same_in_another_process_with_other_hashes() -> None:
    code = (
        "from playbill.actors.testing.chaos import explore\n"
        "print([(each.trace, each.steps) for each in explore(range(4, 6), 'wire')])"
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
    assert seen == {f"{[(each.trace, each.steps) for each in explore(range(4, 6), 'wire')]}\n"}


def test_a_run_leaves_no_pipe_open() -> None:
    gc.collect()
    before = len(os.listdir("/dev/fd"))
    for seed in (3, 5, 8):
        assert examine(draw(seed, "wire")).kind == "ok"
    gc.collect()
    assert len(os.listdir("/dev/fd")) == before


def test_the_level_is_part_of_the_plan_and_is_not_said_where_it_is_the_first_one() -> None:
    plan = draw(4, "wire")
    assert plan.level == "wire"
    assert "level='wire'" in literal(plan)
    assert parse(literal(plan)) == plan
    assert "level" not in literal(draw(4))


def test_a_fault_in_bytes_is_refused_where_there_are_none() -> None:
    fault = Fault(1.0, "a", "call_reply", "half_frame")
    with pytest.raises(ValueError, match="'half_frame' makes no sense at 'call_reply', except on the wire"):
        Plan(1, (ServerPlan("a"),), FaultPlan((fault,)))
    with pytest.raises(ValueError, match="no such level: 'ether'"):
        Plan(1, (ServerPlan("a"),), FaultPlan((fault,)), level="ether")  # type: ignore[arg-type]
    assert Plan(1, (ServerPlan("a"),), FaultPlan((fault,)), level="wire").faults.faults == (fault,)


# What a caller sees, kind by kind.


async def answer(bare: str, arguments: Any) -> dict[str, Any]:
    await trio.lowlevel.checkpoint()
    return {"tool": bare, "said": arguments["say"]}


async def ask(host: Host, server: str, say: str, timeout: float = 3.0) -> tuple[str, float]:
    """What came of one call, and the seconds it took."""
    began = trio.current_time()
    try:
        result = await host.call_tool(server, "t", {"say": say}, timeout=timeout)
        if result.is_error:
            outcome = f"is_error: {result.content[0].text}"
        else:
            outcome = "ok" if result.structured_content == {"tool": "t", "said": say} else f"WRONG {result}"
    except PlaybillError as error:
        outcome = f"{type(error).__name__}: {error}"
    return outcome, round(trio.current_time() - began, 6)


Work = Callable[[WireServerKit, Host], Awaitable[None]]


def over_bytes(work: Work, *, modern: bool, first: Fault | None = None) -> list[str]:
    """Do some work with a host of two servers, a and b, while b is called all the time and never notices.

    Args:
        work: what; the host has waited for both servers, unless a fault comes first.
        modern: the era of the servers.
        first: strikes from the beginning.

    Returns:
        What the servers noted, each as ``server what``.
    """
    notes: list[str] = []
    neighbour: set[tuple[str, float]] = set()

    async def main(simulation: Simulation) -> None:
        kit = WireServerKit()
        for name in "ab":
            kit.add(name, ["t"], call_delay=TAKES, handler=answer, modern=modern)
        if first is not None:
            kit.plan([first])
        async with kit.open(settings=SETTINGS) as host, trio.open_nursery() as nursery:
            assert (await host.ready(require=["b"] if first else "all", timeout=1)).satisfied
            nursery.start_soon(go_on, host)
            await work(kit, host)
            assert kit.waiting == ()
            nursery.cancel_scope.cancel()
        notes.extend(f"{note.server} {note.what}" for note in kit.notes)
        assert kit.scripted.alive == {}

    async def go_on(host: Host) -> None:
        for n in range(1000):
            neighbour.add(await ask(host, "b", f"b{n}"))

    result = run_simulation(main, seed=7, seconds=600)
    assert result.verdict == "ok", result.reason
    assert neighbour <= {("ok", TAKES)}
    assert notes.count("b spawn") == 1
    return notes


GARBLED = "is_error: The server refused the call: invalid response: its response is not valid JSON"
OVERLONG = "is_error: The server refused the call: invalid response: its response is longer than 262144 bytes"
SILENT = "CallTimeout: "
DIED = "ServerDied: server 'a' died during the call: the server "
FATES: dict[tuple[str, float], tuple[str, str]] = {
    ("slice", 1): ("ok", "ok"),
    ("slice", 64): ("ok", "ok"),
    ("bandwidth", 400): ("ok", "ok"),
    ("bandwidth", 20): (SILENT, SILENT),
    ("limit", 1): (DIED + "closed its stdout", "ok"),
    ("limit", 40): (DIED + "closed its stdout", "ok"),
    ("half_frame", 0): (SILENT, SILENT),
    ("duplicate_frame", 0): ("ok", "ok"),
    ("garbage_frame", 0): (GARBLED, "ok"),
    ("long_frame", 0): (OVERLONG, "ok"),
    ("glued_line", 0): (SILENT, "ok"),
    **{(kind, 0): ("ok", "ok") for kind in NOISE if kind != "glued_line"},
    ("crash", 0): (DIED + "killed by signal 9", "ok"),
    ("flaky", 1): (DIED + "exited with code 1", "ok"),
    ("clean_exit", 0): (DIED + "exited with code 0", "ok"),
    ("reset", 0): (DIED + "closed its stdout", "ok"),
    ("hang", 0): (SILENT, "ok"),
    ("latency", 0.5): ("ok", "ok"),
    ("jitter", 0.1): ("ok", "ok"),
}
"""(kind, arg) of a fault in the answer to a call → what that call gets, and what the next one gets."""


def test_every_kind_of_answer_has_its_fate() -> None:
    assert {kind for kind, _ in FATES} == set(WIRE_VALID["call_reply"])
    assert set(BYTES) <= set(WIRE_VALID["call_reply"])


@pytest.mark.parametrize("modern", [False, True], ids=["legacy", "modern"])
@pytest.mark.parametrize(("kind", "arg"), FATES, ids=lambda each: f"{each}")
def test_a_call_whose_answer_is_spoiled_gets(kind: str, arg: float, modern: bool) -> None:
    fates = FATES[kind, arg]
    outcomes: list[tuple[str, float]] = []

    async def work(kit: WireServerKit, host: Host) -> None:
        kit.fail("a", "call_reply", kind, arg=arg)
        outcomes.append(await ask(host, "a", "one"))
        await host.ready(require=["a"], timeout=10)
        outcomes.append(await ask(host, "a", "two"))
        kit.heal()
        await trio.sleep(0.1)
        outcomes.append(await ask(host, "a", "three"))

    notes = over_bytes(work, modern=modern)
    for (outcome, took), fate in zip(outcomes, (*fates, "ok"), strict=True):
        assert outcome.startswith(fate)
        if fate == SILENT:
            assert took == 3.0  # its own deadline, to the last digit
        elif fate != "ok":
            assert took == TAKES  # told at the instant it is known
        else:
            assert TAKES <= took < 1.5
    assert notes.count("a spawn") == (2 if fates[0].startswith(DIED) else 1)


@pytest.mark.parametrize("modern", [False, True], ids=["legacy", "modern"])
def test_a_second_copy_of_an_answer_goes_to_nobody(modern: bool) -> None:
    """Calls follow one another at once, so that the second copy meets the next call in flight."""
    outcomes: list[tuple[str, float]] = []

    async def work(kit: WireServerKit, host: Host) -> None:
        for _ in range(5):
            kit.fail("a", "call_reply", "duplicate_frame")
        async with trio.open_nursery() as nursery:
            for caller in range(3):
                nursery.start_soon(several, host, caller)

    async def several(host: Host, caller: int) -> None:
        for n in range(5):
            outcomes.append(await ask(host, "a", f"{caller}/{n}"))

    over_bytes(work, modern=modern)
    assert outcomes == [("ok", TAKES)] * 15


@pytest.mark.parametrize("kind", ["crash", "reset", "limit"])
def test_all_calls_in_flight_end_when_the_stream_does(kind: str) -> None:
    outcomes: list[tuple[str, float]] = []

    async def work(kit: WireServerKit, host: Host) -> None:
        kit.fail("a", "idle", kind, after=TAKES / 2, arg=1)
        async with trio.open_nursery() as nursery:
            for n in range(20):
                nursery.start_soon(one, host, n)

    async def one(host: Host, n: int) -> None:
        outcomes.append(await ask(host, "a", f"{n}"))

    over_bytes(work, modern=False)
    assert {took for _, took in outcomes} == {TAKES / 2}
    assert {outcome[: len(DIED)] for outcome, _ in outcomes} == {DIED}


def test_a_server_that_reads_no_more_is_lost_with_the_next_thing_that_is_said_to_it() -> None:
    outcomes: list[tuple[str, float]] = []

    async def work(kit: WireServerKit, host: Host) -> None:
        kit.fail("a", "call_before", "limit", arg=1)
        outcomes.append(await ask(host, "a", "one"))
        outcomes.append(await ask(host, "a", "two", timeout=1))
        outcomes.append(await ask(host, "a", "three", timeout=1))
        await host.ready(require=["a"], timeout=20)
        outcomes.append(await ask(host, "a", "four"))

    over_bytes(work, modern=False)
    first, second, third, fourth = outcomes
    assert (first, fourth) == (("ok", TAKES), ("ok", TAKES))
    # The pipe took the second one, and nobody read it; its cancellation is what the server is found out by.
    assert second[0].startswith(SILENT)
    assert third[0].startswith(DIED + "closed its stdin")
    assert third[1] < 1


@pytest.mark.parametrize("modern", [False, True], ids=["legacy", "modern"])
@pytest.mark.parametrize("site", ["handshake", "list"])
@pytest.mark.parametrize("kind", BYTES)
def test_a_server_whose_first_answer_is_spoiled_is_ready_by_its_next_start(kind: str, site: str, modern: bool) -> None:
    async def work(kit: WireServerKit, host: Host) -> None:
        readiness = await host.ready(require=["a"], timeout=2 * PATIENCE + 1)
        assert readiness.satisfied, readiness.missing
        assert await ask(host, "a", "one") == ("ok", TAKES)

    first = Fault(0.0, "a", site, kind, min(WIRE_ARGS.get(kind, (0.0,))))
    notes = over_bytes(work, modern=modern, first=first)
    assert notes.count("a spawn") <= 2


@pytest.mark.parametrize("kind", BYTES)
def test_a_list_that_is_spoiled_later_keeps_the_last_good_one(kind: str) -> None:
    async def work(kit: WireServerKit, host: Host) -> None:
        kit.fail("a", "list", kind, arg=min(WIRE_ARGS.get(kind, (0.0,))))
        kit.scripted.scripts["a"].tools = (ToolDef("t"), ToolDef("u"))
        kit.fail("a", "list_changed", "duplicate_frame")
        listed = []
        async for snapshot in host.changes():
            state = snapshot.model.server("a")
            assert state is not None
            listed.append([tool.bare for tool in state.tools])
            if len(listed[-1]) == 2 and state.phase == "ready":
                break
            if state.list_error is not None:
                kit.heal()
        assert all(each in (["t"], ["t", "u"]) for each in listed)

    over_bytes(work, modern=False)
