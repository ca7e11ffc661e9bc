from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from playbill.actors.model.budget import Budget
from playbill.actors.model.config import Config, ConfigState, ServerEntry
from playbill.actors.model.native import NativeTool
from playbill.actors.model.projection import project
from playbill.actors.model.status import Lifecycle, Report, ServerStatus, ToolDef
from playbill.actors.model.why import why

ENTRY = ServerEntry("github", command="run", source="/etc/mcp.json", line=4)
READY = ServerStatus(
    lifecycle=Lifecycle(stage="running", generation=1),
    report=Report(generation=1, connected=True, ready=True),
    tools=tuple(ToolDef(name) for name in ("create_issue", "list_issues", "merge")),
    tools_generation=1,
)
DIED = Lifecycle(stage="backing_off", generation=1, restarts=2, first=False, attempt=(3, 5), error="exit 1")


def ask(bare: str, *, server: str = "github", status: ServerStatus = READY, cap: int | None = None, **keys: Any) -> Any:
    snap = project(ConfigState(1, Config([evolve(ENTRY, **keys)])), {"github": status}, [], Budget(cap))
    found = why(snap, server, bare)
    known = snap.model.tool(server, bare)
    assert found.verdict == ("unknown" if known is None else known.verdict)
    assert "\n" not in str(found)
    return found


def test_a_tool_on_the_wire_is_said_to_be_there_under_its_wire_name() -> None:
    found = ask("merge")
    assert str(found) == found.sentence == "tool 'merge' of server 'github' is on the wire as 'mcp__github__merge'"


def test_a_tool_on_the_wire_of_a_restarting_server_says_that_a_call_may_fail() -> None:
    said = str(ask("merge", status=evolve(READY, lifecycle=DIED, report=None)))
    assert "on the wire as" in said
    assert said.endswith("but its server is backing off after exit 1, attempt 3 of 5, so a call may fail")


def test_an_excluded_tool_names_the_file_and_line() -> None:
    assert str(ask("merge", exclude=("merge",))).endswith("excluded by the entry 'github' (/etc/mcp.json:4)")
    assert str(ask("merge", include=())).endswith("not in the include list of the entry 'github' (/etc/mcp.json:4)")
    assert str(ask("merge", include=(), source=None)).endswith("of the entry 'github'")


def test_a_tool_over_the_budget_says_its_rank_and_how_many_to_disable() -> None:
    assert str(ask("create_issue", cap=1)).startswith("tool 'create_issue' of server 'github' is on the wire")
    assert "it is number 2 of 3 tools and the budget is 1: disable 1 tool before it" in str(ask("list_issues", cap=1))
    assert "it is number 3 of 3 tools and the budget is 1: disable 2 tools before it" in str(ask("merge", cap=1))


def test_disabling_as_many_as_it_says_brings_the_tool_on_the_wire() -> None:
    assert ask("merge", cap=1, exclude=("create_issue",)).verdict == "over_budget"
    assert ask("merge", cap=1, exclude=("create_issue", "list_issues")).verdict == "on_wire"


def test_when_native_tools_fill_the_budget_disabling_is_not_proposed() -> None:
    natives = [NativeTool(name, "ours", {"type": "object"}, print) for name in ("n", "m")]
    snap = project(ConfigState(1, Config([ENTRY])), {"github": READY}, natives, Budget(2))
    assert str(why(snap, "github", "merge")).endswith(
        "it is number 5 of 5 tools and the budget is 2, which native tools alone fill: raise the budget"
    )


def test_a_quarantined_tool_says_why() -> None:
    status = evolve(READY, tools=(ToolDef("bad", input_schema={"type": "array"}),))
    assert str(ask("bad", status=status)).startswith("tool 'bad' of server 'github' is quarantined: the root of its")


@pytest.mark.parametrize(
    ("keys", "stage", "said"),
    [
        (
            {},
            "parked",
            "its server is parked: exit 1; it was restarted 2 times and is not retried by itself: revive it",
        ),
        ({"disabled": True}, "running", "its server is disabled; enable it"),
        ({"trusted": False}, "running", "its server is not trusted yet; trust it to let it start"),
        (
            {"error": "no command"},
            "running",
            "its server's entry cannot be used: no command; correct the entry and reload",
        ),
    ],
)
def test_a_tool_of_a_server_that_is_down_says_why_and_what_to_do(keys: dict[str, Any], stage: Any, said: str) -> None:
    status = evolve(READY, lifecycle=evolve(DIED, stage=stage), report=None)
    assert str(ask("merge", status=status, **keys)).endswith(said)


def test_a_server_that_wants_a_login_says_so() -> None:
    status = evolve(READY, report=Report(generation=1, needs_auth=True, error="401"))
    assert str(ask("merge", status=status)).endswith("its server needs a login: 401; log in and restart it")


def test_a_parked_server_that_is_retried_says_so() -> None:
    status = evolve(READY, lifecycle=evolve(DIED, stage="parked", next_retry_at=9.0), report=None)
    assert str(ask("merge", status=status)).endswith("and is retried now and then: revive it to try now")


def test_unknown_names_get_the_nearest_ones() -> None:
    assert str(ask("merge", server="git_hub")) == "no server named 'git_hub' is configured; did you mean 'github'?"
    assert str(ask("list_issue")) == "server 'github' has no tool named 'list_issue'; did you mean 'list_issues'?"
    assert str(ask("zzz")) == "server 'github' has no tool named 'zzz'"
    assert str(ask("zzz", server="zzz")) == "no server named 'zzz' is configured"


def test_a_server_that_has_not_listed_says_what_it_does() -> None:
    none = ServerStatus()
    assert str(ask("merge", status=none)) == "server 'github' has not listed its tools yet; it is starting"
    dead = ServerStatus(lifecycle=DIED)
    assert str(ask("merge", status=dead)) == "server 'github' has not listed its tools yet; it is backing off: exit 1"
    assert str(ask("merge", status=none, disabled=True)).endswith("it is disabled; enable it")
