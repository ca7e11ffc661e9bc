"""The host over HTTP: real sessions and the real HTTP client in virtual time, and every kind of fault of a response.

Determinism contract: every run is `run_simulation`'s; the servers are in the same run, behind the client's transport.
"""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
import trio
from playbill.actors import Host, PlaybillError
from playbill.actors.edge.wire.sdk import import_sdk
from playbill.actors.server import ServerSettings
from playbill.actors.testing.chaos import examine, explore, shrunk
from playbill.actors.testing.faults import HTTP_VALID, Fault, FaultPlan
from playbill.actors.testing.http import HttpServerKit
from playbill.actors.testing.literal import literal, parse
from playbill.actors.testing.plans import Plan, ServerPlan, draw, singles
from playbill.actors.testing.reports import report
from playbill.supervision.testing import Simulation, run_simulation

import_sdk()

import playbill.actors.edge.wire.remote.conversation as conversation  # noqa: E402
import playbill.actors.edge.wire.remote.streamable as streamable  # noqa: E402
import playbill.actors.edge.wire.remote.wire as remote_wire  # noqa: E402

TAKES = 0.2
"""Seconds that a call takes."""

SETTINGS = ServerSettings(connect_timeout=4.0, list_timeout=4.0, relist_pause=0.5)


def failures(judged: list[Any]) -> str:
    return "\n\n".join(report(each) for each in judged if each.kind != "ok")


# Plans over HTTP: the same workload, oracle and invariants as for whole connections.


@pytest.mark.parametrize("part", range(4))
def test_seeded_runs_over_http_are_clean(part: int) -> None:
    assert failures(list(explore(range(12)[part::4], "http"))) == ""


@pytest.mark.parametrize("part", range(4))
def test_single_faults_over_http_are_borne(part: int) -> None:
    """Every ninth here; `playbill chaos --systematic --http` plays them all."""
    assert failures([examine(plan) for plan in list(singles("http"))[::9][part::4]]) == ""


def test_a_run_over_http_is_the_same_whenever_and_wherever_it_is_played() -> None:
    plan = next(each for each in (draw(seed, "http") for seed in range(50)) if len(each.faults) > 6)
    here = examine(plan)
    assert "fault" in {what.split()[0] for _, _, what in here.trace}
    code = (
        "from playbill.actors.testing.chaos import explore\n"
        f"print([(each.trace, each.steps) for each in explore([{plan.seed}], 'http')])"
    )
    for seed in ("1", "2"):
        told = subprocess.run(
            [sys.executable, "-c", code],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        assert told == f"{[(here.trace, here.steps)]}\n"


def test_the_level_is_part_of_the_plan_and_its_faults_are_refused_at_others() -> None:
    plan = draw(4, "http")
    assert "level='http'" in literal(plan)
    assert parse(literal(plan)) == plan
    fault = Fault(1.0, "a", "call_reply", "throttled", 7)
    with pytest.raises(ValueError, match="'throttled' makes no sense at 'call_reply', except over HTTP"):
        Plan(1, (ServerPlan("a"),), FaultPlan((fault,)), level="wire")
    with pytest.raises(ValueError, match=r"'crash' makes no sense at 'spawn', except .*; there: nothing can"):
        Plan(1, (ServerPlan("a"),), FaultPlan((Fault(1.0, "a", "spawn", "crash"),)), level="http")


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


Work = Callable[[HttpServerKit, Host], Awaitable[None]]


def over_http(work: Work, *, modern: bool) -> list[str]:
    """Do some work with a host of two servers, a and b, while b is called all the time and never notices."""
    notes: list[str] = []
    neighbour: list[tuple[str, float]] = []

    async def main(simulation: Simulation) -> None:
        kit = HttpServerKit()
        for name in "ab":
            kit.add(name, ["t"], call_delay=TAKES, handler=answer, modern=modern)
        async with kit.open(settings=SETTINGS) as host, trio.open_nursery() as nursery:
            assert (await host.ready(timeout=1)).satisfied
            nursery.start_soon(go_on, host)
            await work(kit, host)
            assert kit.waiting == ()
            nursery.cancel_scope.cancel()
        notes.extend(f"{note.server} {note.what}" for note in kit.notes)
        assert kit.scripted.alive == {}

    async def go_on(host: Host) -> None:
        while True:
            neighbour.append(await ask(host, "b", f"b{len(neighbour)}"))

    result = run_simulation(main, seed=7, seconds=600)
    assert result.verdict == "ok", result.reason
    assert len(neighbour) > 1
    assert set(neighbour) == {("ok", TAKES)}
    assert notes.count("b spawn") == 1
    assert not [note for note in notes if note.endswith(" open")]
    return notes


FAILED = "is_error: The call failed: "
DIED = "ServerDied: server 'a' died during the call: the request to a.test failed: "
SILENT = "CallTimeout: "
FATES: dict[tuple[str, float], str] = {
    ("reset", 0): DIED + "ReadError",
    ("closed", 0): DIED + "RemoteProtocolError",
    ("cut", 0): DIED + "RemoteProtocolError",
    ("crash", 0): DIED + "ReadError",
    ("down", 0.3): DIED + "ReadError",
    ("flaky", 1): DIED + "ReadError",
    ("hang", 0): SILENT,
    ("stall", 0): SILENT,
    ("latency", 0.5): "ok",
    ("jitter", 0.1): "ok",
    ("slice", 1): "ok",
    ("bandwidth", 400): "ok",
    ("bandwidth", 20): SILENT,
    ("duplicate_frame", 0): "ok",
    ("status", 500): FAILED + "HTTP 500 Internal Server Error",
    ("status", 400): FAILED + "HTTP 400 Bad Request",
    ("throttled", 7): FAILED + "HTTP 503 Service Unavailable; it asks to wait 7 s",
    ("forbidden", 0): FAILED + "HTTP 403",
    ("redirect", 0): FAILED + "HTTP 307: not followed to https://elsewhere.example/mcp",
    ("accepted", 0): FAILED + "HTTP 202",
    ("html", 0): FAILED + "invalid response: HTTP 200 with text/html",
    ("garbage_frame", 0): "is_error: The server refused the call: invalid response: its response is not valid JSON",
    ("long_frame", 0): FAILED + "invalid response: it is longer than 262144 bytes",
    ("cut_stream", 0): FAILED + "its event stream ended without a response (",
    ("end_stream", 0): FAILED + "its event stream ended without a response",
    ("unauthorized", 0): "ServerUnavailable: server 'a' is unavailable: it needs login: HTTP 401",
    ("session_lost", 0): "ServerDied: server 'a' died during the call: the session has ended: HTTP 404",
}
"""(kind, arg) of a fault in the answer to a call → what that call gets."""


def test_every_kind_of_answer_has_its_fate() -> None:
    assert {kind for kind, _ in FATES} == set(HTTP_VALID["call_reply"])


@pytest.mark.parametrize("modern", [False, True], ids=["legacy", "modern"])
@pytest.mark.parametrize(("kind", "arg"), FATES, ids=lambda each: f"{each}")
def test_a_call_whose_answer_is_struck_gets(kind: str, arg: float, modern: bool) -> None:
    fate = FATES[kind, arg]
    if modern and kind == "session_lost":  # it has none to lose
        fate = FAILED + "HTTP 404 Not Found"
    outcomes: list[tuple[str, float]] = []

    async def work(kit: HttpServerKit, host: Host) -> None:
        kit.fail("a", "call_reply", kind, arg=arg)
        outcomes.append(await ask(host, "a", "one"))
        if kind == "unauthorized":
            await trio.sleep(100)
            state = host.snapshot().model.server("a")
            assert state is not None
            assert (state.phase, state.restarts) == ("needs_auth", 0)
            await host.restart("a")
        await host.ready(require=["a"], timeout=10)
        outcomes.append(await ask(host, "a", "two"))

    notes = over_http(work, modern=modern)
    (outcome, took), second = outcomes
    assert outcome.startswith(fate)
    if fate == SILENT:
        assert took == 3.0  # its own deadline, to the last digit
    elif fate != "ok":
        assert took == TAKES  # told at the instant it is known
    assert second == ("ok", TAKES)
    stays = fate in ("ok", SILENT) or fate.startswith("is_error")
    assert (notes.count("a spawn") == 1) == stays


# Bugs that are planted, found and shrunk.


def a_refusal_ends_the_connection(patch: pytest.MonkeyPatch) -> None:
    refuse = remote_wire.RemoteWire.refuse

    def harsh(self: Any, response: Any, method: str = "") -> Any:
        meaning = refuse(self, response, method)
        if self.worked:
            self.lose(str(meaning))
        return meaning

    patch.setattr(remote_wire.RemoteWire, "refuse", harsh)


def a_call_that_is_given_up_keeps_its_response(patch: pytest.MonkeyPatch) -> None:
    async def shielded(self: Any, exchange: Any) -> None:
        await self._guarded(lambda: self._carry(exchange))

    patch.setattr(conversation.Conversation, "_exchange", shielded)


def a_loss_leaves_calls_pending(patch: pytest.MonkeyPatch) -> None:
    shut = conversation.Conversation.shut

    def forgetful(self: Any) -> None:
        self._pending.clear()
        shut(self)

    patch.setattr(conversation.Conversation, "shut", forgetful)


def an_answer_that_is_cut_off_costs_only_its_call(patch: pytest.MonkeyPatch) -> None:
    patch.setattr(streamable.StreamableHttp, "_broke", lambda self, error: None)


PLANTS: dict[Callable[[pytest.MonkeyPatch], None], tuple[str, str]] = {
    a_refusal_ends_the_connection: ("call_reply", "status"),
    a_call_that_is_given_up_keeps_its_response: ("call_reply", "stall"),
    a_loss_leaves_calls_pending: ("call_reply", "reset"),
    an_answer_that_is_cut_off_costs_only_its_call: ("call_reply", "cut"),
}
"""Each with the fault that shows it."""


@pytest.mark.parametrize(("plant", "shows"), PLANTS.items(), ids=[plant.__name__ for plant in PLANTS])
def test_a_bug_in_what_is_made_of_responses_is_found_and_shrunk(
    plant: Callable[[pytest.MonkeyPatch], None], shows: tuple[str, str]
) -> None:
    plan = next(each for each in singles("http") if (each.faults.faults[0].site, each.faults.faults[0].kind) == shows)
    with pytest.MonkeyPatch.context() as patch:
        plant(patch)
        found = examine(plan)
        assert found.kind != "ok"
        least = shrunk(found, tries=8)
        assert least.kind == found.kind
        assert len(least.plan.work) < len(plan.work)
    assert examine(least.plan).kind == "ok"
