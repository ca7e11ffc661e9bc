from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from playbill.actors.model.budget import Budget
from playbill.actors.model.config import Config, ConfigState, ServerEntry
from playbill.actors.model.native import NativeTool
from playbill.actors.model.oauth import OAuth
from playbill.actors.model.profile import PORTABLE
from playbill.actors.model.projection import project
from playbill.actors.model.status import Lifecycle, Report, ServerStatus, ToolDef
from playbill.actors.model.why import each_why, why, why_server

ENTRY = ServerEntry("github", command="run", source="/etc/mcp.json", line=4)
READY = ServerStatus(
    lifecycle=Lifecycle(stage="running", generation=1),
    report=Report(generation=1, connected=True, ready=True),
    tools=tuple(
        ToolDef(name, description=name, input_schema={"type": "object", "properties": {}})
        for name in ("create_issue", "list_issues", "merge")
    ),
    tools_generation=1,
)
DIED = Lifecycle(stage="backing_off", generation=1, restarts=2, first=False, attempt=(3, 5), error="exit 1")


def ask(bare: str, *, server: str = "github", status: ServerStatus = READY, cap: int | None = None, **keys: Any) -> Any:
    snap = project(
        ConfigState(1, Config([evolve(ENTRY, **keys)])), {keys.get("name", ENTRY.name): status}, [], Budget(cap)
    )
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
    assert said.endswith("but its server is backing off (attempt 3 of 5): exit 1, so a call may fail")


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


def test_of_a_budget_of_nothing_native_tools_are_not_blamed() -> None:
    assert str(ask("merge", cap=0)).endswith("it is number 3 of 3 tools and the budget is 0: raise it")


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
        (
            {"trusted": False},
            "running",
            "its server is untrusted; trust it to let it start (`playbill trust github`)",
        ),
        (
            {"error": "no command"},
            "running",
            "its server is invalid: no command; correct the entry and reload",
        ),
    ],
)
def test_a_tool_of_a_server_that_is_down_says_why_and_what_to_do(keys: dict[str, Any], stage: Any, said: str) -> None:
    status = evolve(READY, lifecycle=evolve(DIED, stage=stage), report=None)
    assert str(ask("merge", status=status, **keys)).endswith(said)


@pytest.mark.parametrize(
    ("keys", "what_to_do"),
    [
        ({}, "log in and restart it"),
        ({"headers": {"X-Team": "a"}}, "log in (`playbill login github`)"),
        ({"oauth": OAuth(client_id="us"), "headers_helper": "./team.sh"}, "log in (`playbill login github`)"),
        ({"name": "git hub"}, "log in (`playbill login 'git hub'`)"),
        ({"name": "git\nhub"}, "log in"),
        ({"headers": {"AUTHORIZATION": "x"}}, "correct its login (the headers of its entry) and restart it"),
        ({"headers_helper": "./login.sh"}, "correct its login (the headers of its entry) and restart it"),
        ({"oauth": OAuth(enabled=False)}, "correct its login (the headers of its entry) and restart it"),
    ],
)
def test_a_server_that_wants_a_login_says_what_can_help(keys: dict[str, Any], what_to_do: str) -> None:
    status = evolve(READY, report=Report(generation=1, needs_auth=True, error="401"))
    if keys:
        keys = {"command": None, "url": "https://example.com/mcp"} | keys
    said = str(ask("merge", server=keys.get("name", "github"), status=status, **keys))
    assert said.endswith(f"its server needs login: 401; {what_to_do}")


def test_a_parked_server_that_is_retried_says_so() -> None:
    status = evolve(READY, lifecycle=evolve(DIED, stage="parked", next_retry_at=9.0), report=None)
    assert str(ask("merge", status=status)).endswith("and is retried now and then: revive it to try now")


def test_unknown_names_get_the_nearest_ones() -> None:
    assert str(ask("merge", server="git_hub")) == "no server named 'git_hub' is configured; did you mean 'github'?"
    assert str(ask("list_issue")) == "server 'github' has no tool named 'list_issue'; did you mean 'list_issues'?"
    assert str(ask("zzz")) == "server 'github' has no tool named 'zzz'"
    assert str(ask("zzz", server="zzz")) == "no server named 'zzz' is configured"
    assert (ask("list_issue").nearest, ask("zzz").nearest, ask("x", server="git_hub").nearest) == (
        "list_issues",
        None,
        "github",
    )


def test_names_of_another_kind_are_told_to_be_that() -> None:
    wire = "mcp__github__merge"
    known = "that is the wire name of tool 'merge' of server 'github'"
    assert str(ask(wire)) == f"server 'github' has no tool named '{wire}'; {known}"
    assert str(ask(wire, server="")) == f"no server named '' is configured; as for '{wire}', {known}"
    native = NativeTool("recall", "ours", {"type": "object"}, print)
    snap = project(ConfigState(1, Config([ENTRY])), {"github": READY}, [native], Budget())
    said = "that is a native tool, which always ships"
    assert str(why(snap, "github", "recall")) == f"server 'github' has no tool named 'recall'; {said}"
    assert str(why(snap, "", "recall")) == f"no server named '' is configured; as for 'recall', {said}"


def test_a_server_that_has_not_listed_says_what_it_does() -> None:
    none = ServerStatus()
    head = "server 'github' has not listed its tools yet; it is "
    assert str(ask("merge", status=none)) == f"{head}starting: it has not answered yet"
    dead = ServerStatus(lifecycle=DIED)
    assert str(ask("merge", status=dead)) == f"{head}backing off (attempt 3 of 5): exit 1"
    assert str(ask("merge", status=none, disabled=True)).endswith("it is disabled; enable it")
    failed = evolve(READY, tools=None, report=Report(generation=1, connected=True, list_error="tools/list: no"))
    assert str(ask("merge", status=failed)) == (
        f"{head}starting: its tools are not in yet; of its newest tool list: tools/list: no"
    )


def test_a_server_that_has_listed_no_tools_has_none_of_that_name() -> None:
    assert str(ask("merge", status=evolve(READY, tools=()))) == "server 'github' has no tool named 'merge'"


def test_a_command_that_is_proposed_can_be_typed_as_it_stands() -> None:
    entry = ServerEntry("my server; rm", command="run", source="/etc/mcp.json", trusted=False)
    snap = project(ConfigState(1, Config([entry])), {}, [], Budget())
    assert "`playbill trust 'my server; rm'`" in str(why(snap, entry.name, "x"))


# When the time is known, so is the time until the next attempt.


@pytest.mark.parametrize(
    ("lifecycle", "said", "seconds"),
    [
        (evolve(DIED, next_retry_at=12.2), "(attempt 3 of 5 in 3 s): exit 1, so a call may fail", 2.2),
        (evolve(DIED, next_retry_at=9.0), "(attempt 3 of 5 in 0 s): exit 1, so a call may fail", 0.0),
        (
            evolve(DIED, next_retry_at=12.2, attempt=None),
            "backing off (next retry in 3 s): exit 1, so a call may fail",
            2.2,
        ),
        (evolve(DIED, stage="parked", next_retry_at=310.0), ", next retry in 5 min: revive it to try now", 300.0),
        (evolve(DIED, stage="parked", next_retry_at=371.0), ", next retry in 7 min: revive it to try now", 361.0),
        (evolve(DIED, stage="parked", next_retry_at=None), "is not retried by itself: revive it", None),
    ],
)
def test_the_time_until_the_next_retry_is_told(lifecycle: Lifecycle, said: str, seconds: float | None) -> None:
    status = evolve(READY, lifecycle=lifecycle, report=None)
    snap = project(ConfigState(1, Config([ENTRY])), {"github": status}, [], Budget())
    found = why(snap, "github", "merge", now=10.0)
    assert str(found).endswith(said)
    assert found.retry_in == pytest.approx(seconds)
    assert found.error == "exit 1"
    unlisted = project(ConfigState(1, Config([ENTRY])), {"github": evolve(status, tools=None)}, [], Budget())
    assert why(unlisted, "github", "merge", now=10.0).retry_in == pytest.approx(seconds)


# What is said in parts.


def test_an_answer_says_the_same_in_parts() -> None:
    wired = ask("merge")
    assert (wired.reason, wired.wire_name, wired.error) == (None, "mcp__github__merge", None)
    cut = ask("merge", cap=1)
    assert (cut.rank, cut.wanted, cut.budget, cut.wire_name) == (3, 3, 1, "mcp__github__merge")
    assert str(cut) == f"tool 'merge' of server 'github' is not on the wire: {cut.reason}"
    status = evolve(READY, tools=(ToolDef("bad", input_schema={"type": "array"}),))
    bad = ask("bad", status=status)
    assert bad.rule
    assert bad.path
    assert str(bad).endswith(f"(rule {bad.rule}, at {bad.path})")


def test_what_is_sent_otherwise_than_advertised_is_told() -> None:
    snap = project(ConfigState(1, Config([ENTRY])), {"github": READY}, [], Budget())
    server = snap.model.servers[0]
    changes = tuple(f"change\n{n}" for n in range(5))
    mended = evolve(server, tools=tuple(evolve(tool, mended=changes) for tool in server.tools))
    found = why(evolve(snap, model=evolve(snap.model, servers=(mended,))), "github", "merge")
    assert str(found).endswith("on the wire as 'mcp__github__merge'; mended: change 0; change 1; change 2; and 2 more")
    assert found.mended == changes


def test_a_tool_behind_the_limit_of_the_profile_is_told_so() -> None:
    few = evolve(PORTABLE, name="few", max_tools=2)
    snap = project(ConfigState(1, Config([ENTRY])), {"github": READY}, [], Budget(100), profile=few)
    assert str(why(snap, "github", "merge")).endswith(
        "it is number 3 of 3 tools and profile 'few' takes 2: disable 1 tool before it, pin it, or raise its server's "
        "priority"
    )


def test_a_budget_of_tokens_says_how_the_tool_does_not_fit() -> None:
    def told(bare: str, **caps: Any) -> Any:
        budget = Budget(None, count=lambda text: 50 if "create" in text else 10, **caps)
        return why(project(ConfigState(1, Config([ENTRY])), {"github": READY}, [], budget), "github", bare)

    assert str(told("merge", tokens=60)).endswith(
        "it is number 3 of 3 tools, over the budget of 60 tokens: disable tools before it, pin it, or raise its server's "
        "priority"
    )
    cut = told("merge", tokens=60)
    assert (cut.rank, cut.wanted, cut.budget) == (3, 3, 60)
    alone = told("create_issue", tokens=40)
    assert str(alone).endswith("alone it has 50 tokens, more than the budget of 40 tokens: raise the budget")
    assert (alone.rank, alone.budget) == (None, 40)
    assert told("merge", tokens=40).verdict == "on_wire"


# Whatever names and errors hold, a sentence is one printable line that can be read.


@given(
    st.text(st.characters(exclude_categories=()), max_size=200),
    st.text(st.characters(exclude_categories=()), max_size=200),
    st.text(st.characters(exclude_categories=()), min_size=1, max_size=2000),
    st.sampled_from(["running", "starting", "parked", "backing_off", "stopping"]),
    st.booleans(),
    st.sampled_from([{}, {"disabled": True}, {"trusted": False}, {"error": "no\ncommand\x1b[2J"}, {"include": ()}]),
    st.integers(0, 2),
)
def test_a_sentence_is_one_line_of_printable_characters_and_not_long(
    server: str, bare: str, error: str, stage: Any, listed: bool, keys: dict[str, Any], cap: int
) -> None:
    lifecycle = Lifecycle(stage=stage, generation=1, first=False, error=error, next_retry_at=1.0, attempt=(1, 2))
    status = ServerStatus(lifecycle=lifecycle, tools=(ToolDef("x"), ToolDef(bare + "y")) if listed else None)
    entry = ServerEntry(server, command="run", source="/a\nb\x1b[2J/mcp.json", line=1, **keys)
    snap = project(ConfigState(1, Config([entry])), {server: status}, [], Budget(cap))
    answers = [why(snap, *pair, now=0.0) for pair in ((server, bare), (server, "x"), (server, bare + "y"), (bare, "z"))]
    for answer in (*answers, why_server(snap, server, 0.0), why_server(snap, bare, 0.0)):
        assert str(answer).isprintable(), str(answer)
        assert len(str(answer)) < 1500


def test_a_name_of_a_megabyte_is_cut_in_the_words_and_not_in_the_parts() -> None:
    huge = "x" * 1_000_000
    for found in (ask(huge), ask("merge", server=huge)):
        assert len(str(found)) < 300
    assert ask(huge).bare == huge


def test_all_tools_are_explained_in_the_words_of_one() -> None:
    extra = evolve(ENTRY, name="other", exclude=("merge",))
    statuses = {"github": READY, "other": READY}
    snap = project(ConfigState(1, Config([ENTRY, extra])), statuses, [], Budget(2))
    every = list(each_why(snap, 5.0))
    assert [(server.name, tool.bare) for server, tool, _ in every] == [
        (server, bare) for server in ("github", "other") for bare in ("create_issue", "list_issues", "merge")
    ]
    for server, tool, told in every:
        assert told == why(snap, server.name, tool.bare, 5.0)
        assert told.verdict == tool.verdict


# Servers.


@pytest.mark.parametrize(
    ("status", "keys", "said"),
    [
        (READY, {}, "ready; 2 of 3 tools on the wire, 1 over the budget"),
        (READY, {"exclude": ("merge",)}, "ready; 2 of 3 tools on the wire, 1 excluded"),
        (evolve(READY, tools=()), {}, "ready; it has no tools"),
        (ServerStatus(), {}, "starting: it has not answered yet"),
        (
            evolve(READY, lifecycle=DIED, report=None),
            {},
            "backing off (attempt 3 of 5): exit 1; 2 of 3 tools on the wire, 1 over the budget",
        ),
        (
            evolve(READY, lifecycle=evolve(DIED, stage="parked", next_retry_at=7.0), report=None),
            {},
            "parked: exit 1; it was restarted 2 times, next retry in 2 s: revive it to try now; 0 of 3 tools on the wire, "
            "3 waiting for it",
        ),
        (ServerStatus(), {"disabled": True}, "disabled; enable it"),
        (ServerStatus(), {"trusted": False}, "untrusted; trust it to let it start (`playbill trust github`)"),
        (ServerStatus(), {"error": "no command"}, "invalid: no command; correct the entry and reload"),
    ],
)
def test_a_server_is_explained_with_a_count_of_its_tools(status: ServerStatus, keys: dict[str, Any], said: str) -> None:
    snap = project(
        ConfigState(1, Config([evolve(ENTRY, **keys)])), {keys.get("name", ENTRY.name): status}, [], Budget(2)
    )
    found = why_server(snap, "github", 5.0)
    assert str(found) == f"server 'github' is {said}"
    assert found.phase == snap.model.servers[0].phase


def test_an_unknown_server_gets_the_nearest_name() -> None:
    snap = project(ConfigState(1, Config([ENTRY])), {}, [], Budget())
    found = why_server(snap, "git_hub")
    assert str(found) == "no server named 'git_hub' is configured; did you mean 'github'?"
    assert (found.phase, found.nearest) == (None, "github")
