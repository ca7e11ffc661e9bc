from __future__ import annotations

from typing import Any, get_args

import pytest
from attrs import evolve
from playbill.actors.model.config import ServerEntry
from playbill.actors.model.phase import DOWN_PHASES, error_of, list_state_of, phase_of
from playbill.actors.model.snapshot import Phase
from playbill.actors.model.status import Lifecycle, Report, ServerStatus, Stage, ToolDef

ENTRY = ServerEntry("s", command="x")
DISABLED = evolve(ENTRY, disabled=True)
UNTRUSTED = evolve(ENTRY, trusted=False)
INVALID = evolve(ENTRY, error="no command")
READY = Report(generation=3, connected=True, ready=True)
CONNECTED = Report(generation=3, connected=True)
LOGIN = Report(generation=3, needs_auth=True, error="401")


def status(stage: Stage | None, report: Report | None = None, **life: Any) -> ServerStatus:
    lifecycle = None if stage is None else Lifecycle(**{"stage": stage, "generation": 3, **life})
    return ServerStatus(lifecycle=lifecycle, report=report)


@pytest.mark.parametrize(
    ("entry", "stage", "report", "phase"),
    [
        (ENTRY, None, None, "starting"),
        (ENTRY, None, READY, "starting"),
        (ENTRY, "starting", None, "starting"),
        (ENTRY, "starting", READY, "starting"),
        (ENTRY, "running", None, "starting"),
        (ENTRY, "running", CONNECTED, "starting"),
        (ENTRY, "running", READY, "ready"),
        (ENTRY, "running", evolve(READY, connected=False), "starting"),
        (ENTRY, "running", evolve(READY, generation=2), "starting"),
        (ENTRY, "running", evolve(READY, generation=4), "starting"),
        (ENTRY, "running", LOGIN, "needs_auth"),
        (ENTRY, "parked", LOGIN, "needs_auth"),
        (ENTRY, "backing_off", LOGIN, "needs_auth"),
        (ENTRY, "starting", evolve(LOGIN, generation=2), "starting"),
        (ENTRY, "backing_off", READY, "backing_off"),
        (ENTRY, "parked", None, "parked"),
        (ENTRY, "stopping", READY, "starting"),
        (DISABLED, None, None, "disabled"),
        (DISABLED, "running", READY, "disabled"),
        (DISABLED, "stopping", READY, "stopping"),
        (evolve(DISABLED, error="x"), None, None, "disabled"),
        (UNTRUSTED, "running", READY, "untrusted"),
        (evolve(UNTRUSTED, error="x"), None, None, "invalid"),
        (INVALID, None, None, "invalid"),
        (INVALID, "running", LOGIN, "invalid"),
    ],
)
def test_the_phase_of_a_server(entry: ServerEntry, stage: Stage | None, report: Report | None, phase: Phase) -> None:
    assert phase_of(entry, status(stage, report)) == phase


def test_every_phase_can_be_reached_and_tools_are_off_the_wire_in_the_settled_ones() -> None:
    stages: list[Stage | None] = [None, *get_args(Stage)]
    reached = {
        phase_of(entry, status(stage, report))
        for entry in (ENTRY, DISABLED, UNTRUSTED, INVALID)
        for stage in stages
        for report in (None, READY, CONNECTED, LOGIN)
    }
    assert reached == set(get_args(Phase))
    assert reached - DOWN_PHASES == {"starting", "ready", "backing_off"}


@pytest.mark.parametrize(
    ("entry", "what", "error"),
    [
        (ENTRY, status(None), None),
        (ENTRY, status("starting", error="old"), None),
        (ENTRY, status("running", Report(generation=3, error="early"), error="old"), None),
        (ENTRY, status("starting", first=False, error="died"), "died"),
        (ENTRY, status("running", CONNECTED, first=False, error="died"), None),
        (ENTRY, status("running", READY, first=False, error="died"), None),
        (ENTRY, status("running", evolve(READY, generation=2), first=False, error="died"), "died"),
        (ENTRY, status("backing_off", Report(generation=3, error="exit 1"), first=False, error="died"), "exit 1"),
        (ENTRY, status("backing_off", Report(generation=2, error="exit 1"), first=False, error="died"), "died"),
        (ENTRY, status("parked", None, first=False, error="died"), "died"),
        (ENTRY, status("running", LOGIN), "401"),
        (INVALID, status(None), "no command"),
        (INVALID, status("running", READY), "no command"),
        (DISABLED, status(None), None),
    ],
)
def test_error_is_the_last_death_and_none_when_connected_or_on_the_first_attempt(
    entry: ServerEntry, what: ServerStatus, error: str | None
) -> None:
    assert error_of(phase_of(entry, what), entry, what) == error


@pytest.mark.parametrize(
    ("what", "tools", "generation", "state"),
    [
        (status("running", READY), None, 0, "none"),
        (status("running", READY), (), 3, "current"),
        (status("running", READY), (ToolDef("t"),), 3, "current"),
        (status("running", READY), (ToolDef("t"),), 2, "stale"),
        (status("running", evolve(READY, list_error="boom")), (ToolDef("t"),), 3, "stale"),
        (status("running", evolve(READY, list_error="boom")), None, 0, "none"),
        (status("starting", None), (ToolDef("t"),), 2, "stale"),
        (status("backing_off", Report(generation=3, error="x")), (ToolDef("t"),), 3, "stale"),
        (status(None), (ToolDef("t"),), 3, "stale"),
    ],
)
def test_a_list_is_current_only_from_the_live_incarnation(
    what: ServerStatus, tools: tuple[ToolDef, ...] | None, generation: int, state: str
) -> None:
    assert list_state_of(evolve(what, tools=tools, tools_generation=generation)) == state
