from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from playbill.actors.model.config import Config, ServerEntry
from playbill.actors.model.frozen import FrozenDict
from playbill.actors.model.snapshot import Snapshot
from playbill.actors.model.status import ServerStatus, ToolDef
from playbill.actors.model.why import why
from playbill.actors.picker.rows import Memo, Rows, rows
from playbill.actors.picker.values import EmptyRow, HeaderRow, Identity, NoticeRow, ServerRow, ToolRow

from .stage import (
    CONNECTED,
    NATIVE,
    NO_LOGIN,
    STARTING,
    Stage,
    backing_off,
    entry,
    listed,
    make,
    parked,
    tools,
)


def identities(found: Rows) -> list[Identity]:
    return [found.identity(at) for at in range(len(found))]


def server(status: ServerStatus | None, now: float | None = 100.0, **keys: Any) -> ServerRow:
    """The head of the one server's section."""
    stage = Stage(Config([entry("git", **keys)]), {} if status is None else {"git": status})
    found = rows(stage.snapshot, now)
    head = found[found.top]
    assert isinstance(head, ServerRow)
    return head


def tool(snapshot: Snapshot, bare: str, now: float | None = 100.0) -> ToolRow:
    found = rows(snapshot, now)
    place = found.find(("tool", "git", bare))
    assert place is not None
    made = found[place]
    assert isinstance(made, ToolRow)
    return made


# The order, and who is who.


def test_rows_are_a_header_then_a_section_for_each_server_in_the_order_configured() -> None:
    found = rows(make({"git": tools("log", "add"), "web": tools(), "db": None}).snapshot, 0.0)
    assert identities(found) == [
        ("header",),
        ("server", "git"),
        ("tool", "git", "log"),
        ("tool", "git", "add"),
        ("server", "web"),
        ("empty", "web"),
        ("server", "db"),
        ("empty", "db"),
    ]
    assert [row.identity for row in found] == identities(found)
    assert [found.find(identity) for identity in identities(found)] == list(range(len(found)))
    assert found.heads() == [1, 4, 6]
    assert found.top == 1


def test_rows_that_are_not_there_are_not_found() -> None:
    found = rows(make({"git": tools("log"), "web": tools()}).snapshot)
    for identity in [
        ("tool", "git", "add"),
        ("tool", "no", "log"),
        ("server", "no"),
        ("empty", "git"),
        ("empty", "no"),
        ("no-servers",),
        ("warning", "budget"),
        (),
        ("what", "ever"),
    ]:
        assert found.find(identity) is None


def test_rows_are_a_sequence() -> None:
    found = rows(make({"git": tools("log", "add")}).snapshot)
    assert found[-1] == found[3]
    assert found[1:3] == [found[1], found[2]]
    with pytest.raises(IndexError):
        found[4]
    with pytest.raises(IndexError):
        found.identity(4)


def test_a_filter_that_is_typed_finds_what_the_whole_filter_finds() -> None:
    names = ["log", "log_all", "add", "all", "a", "lo", "gal", "get_all_logs"]
    snapshot = make({"git": tools(*names), "all": tools(*reversed(names))}).snapshot
    memo = Memo()
    for text in ["al log", "log all", "log\b\b\ba", "git lo al", "al\b\bgit", "a a a l"]:
        typed = ""
        for key in text:
            typed = typed[:-1] if key == "\b" else typed + key
            assert identities(rows(snapshot, matching=typed, memo=memo)) == identities(rows(snapshot, matching=typed))


def test_a_name_that_a_server_lists_twice_is_one_row() -> None:
    found = rows(make({"git": listed([ToolDef("log", title="a"), ToolDef("add"), ToolDef("log", title="b")])}).snapshot)
    assert len(set(identities(found))) == len(found) == 4


def test_without_servers_a_row_says_how_to_add_one() -> None:
    found = rows(Stage().snapshot)
    assert found[-1] == EmptyRow(identity=("no-servers",), text="no servers are configured — press a to add one")
    assert len(found) == found.top + 1


# The header and the notices.


def test_the_header_counts() -> None:
    stage = make({"git": tools("log", "add", "push"), "web": backing_off(5.0)}, cap=3, natives=(NATIVE,))
    header = rows(stage.snapshot, 0.0)[0]
    assert isinstance(header, HeaderRow)
    assert (header.servers, header.ready, header.tools, header.on_wire) == (2, 1, 3, 2)
    assert (header.native, header.budget, header.profile, header.busy) == (1, 3, "portable", 0)
    assert header.parts == (
        "2 of 3 tools on the wire",
        "1 of 2 servers ready",
        "1 native tool",
        "budget 3",
        "profile portable",
    )


def test_no_budget_and_no_native_tool_is_no_part_of_the_header() -> None:
    header = rows(evolve_model(make({"git": tools("log")}).snapshot, budget=None))[0]
    assert isinstance(header, HeaderRow)
    assert header.parts == ("1 of 1 tool on the wire", "1 of 1 server ready", "profile portable")


def evolve_model(snapshot: Snapshot, **keys: Any) -> Snapshot:
    return evolve(snapshot, model=evolve(snapshot.model, **keys))


def test_a_budget_that_is_exceeded_is_a_notice_with_the_largest_servers() -> None:
    found = rows(make({"git": tools("log", "add", "push"), "web": tools("get")}, cap=2).snapshot)
    assert found.top == 2
    assert found[1] == NoticeRow(
        identity=("warning", "budget"),
        kind="warning",
        text="4 tools over the budget of 2 — 2 MCP tools were dropped from this session; disable some to make room",
        more="mostly from git (3), web (1)",
    )


def test_a_limit_that_is_near_is_a_notice() -> None:
    model = {"limit": 100, "wanted": 95, "budget": 100}
    notice = rows(evolve_model(make({"git": tools("log")}).snapshot, **model))[1]
    assert isinstance(notice, NoticeRow)
    assert notice.identity == ("warning", "limit")
    assert notice.text == "95 of the 100 tools that profile 'portable' takes: 5 more fit"


def test_a_config_that_cannot_be_read_is_the_first_notice() -> None:
    stage = make({"git": tools("log", "add")}, cap=1, config_error="/etc/mcp.json:3:1: this is\nno JSON")
    notice = rows(stage.snapshot)[1]
    assert notice == NoticeRow(
        identity=("config-error",),
        kind="error",
        text="/etc/mcp.json:3:1: this is no JSON",
        more="what could be read last stays in force until that is mended",
    )


def test_three_warnings_of_the_config_are_told_and_how_many_more() -> None:
    warnings = tuple(f"warning {number}" for number in range(5))
    found = rows(evolve_model(make({"git": tools("log")}).snapshot, config_warnings=warnings))
    assert [(row.text, row.more) for row in found[1:4] if isinstance(row, NoticeRow)] == [
        ("warning 0", None),
        ("warning 1", None),
        ("warning 2", "and 2 more (w shows them)"),
    ]
    assert found.top == 4


# Servers: a row for every phase.


def test_a_ready_server_says_how_many_of_its_tools_are_on_the_wire() -> None:
    stage = Stage(Config([entry("git", exclude=("add",))]), {"git": tools("log", "add")})
    assert rows(stage.snapshot)[1] == ServerRow(
        identity=("server", "git"),
        name="git",
        phase="ready",
        tone="good",
        check="on",
        state="ready",
        count="1 of 2 tools on the wire",
        error=None,
        source="/etc/mcp.json",
        pending=None,
    )


@pytest.mark.parametrize(
    ("status", "keys", "said"),
    [
        (None, {}, ("starting", "busy", "on", "starting", None)),
        (STARTING, {}, ("starting", "busy", "on", "starting", None)),
        (CONNECTED, {}, ("starting", "busy", "on", "starting: its tools are not in yet", None)),
        (backing_off(112.0), {}, ("backing_off", "busy", "on", "retry in 12 s (4th of 5)", "it exited with 1")),
        (backing_off(99.0), {}, ("backing_off", "busy", "on", "retry now (4th of 5)", "it exited with 1")),
        (backing_off(112.0, None), {}, ("backing_off", "busy", "on", "retry in 12 s", "it exited with 1")),
        (backing_off(None, None), {}, ("backing_off", "busy", "on", "waiting for a retry", "it exited with 1")),
        (parked(), {}, ("parked", "bad", "on", "parked — press R to revive", "it exited with 1")),
        (parked(340.0), {}, ("parked", "bad", "on", "parked — press R to revive, retry in 4 min", "it exited with 1")),
        (NO_LOGIN, {}, ("needs_auth", "ask", "on", "needs login — press R afterwards", "it answered 401")),
        (None, {"disabled": True}, ("disabled", "off", "off", "disabled", None)),
        (None, {"trusted": False}, ("untrusted", "ask", "on", "untrusted — press t to review", None)),
        (None, {"error": "no command"}, ("invalid", "bad", "on", "invalid", "no command")),
    ],
)
def test_a_server_in_each_phase(status: ServerStatus | None, keys: dict[str, Any], said: tuple[Any, ...]) -> None:
    row = server(status, **keys)
    assert (row.phase, row.tone, row.check, row.state, row.error) == said


def test_a_server_that_died_and_starts_says_that_it_starts_again() -> None:
    life = backing_off(None).lifecycle
    assert life is not None
    row = server(ServerStatus(lifecycle=evolve(life, stage="starting")))
    assert (row.state, row.error) == ("starting again", "it exited with 1")


def test_the_error_of_an_entry_names_its_file_without_the_folder() -> None:
    assert server(None, error="/etc/mcp.json:7:3: no command").error == "mcp.json:7:3: no command"
    assert server(None, error="/opt/x: no such file").error == "/opt/x: no such file"


def test_a_stopping_server_is_off() -> None:
    life = STARTING.lifecycle
    assert life is not None
    row = server(ServerStatus(lifecycle=evolve(life, stage="stopping")), disabled=True)
    assert (row.phase, row.state, row.check, row.tone) == ("stopping", "stopping", "off", "busy")


def test_a_listing_that_failed_is_told_of_a_ready_server() -> None:
    status = tools("log")
    assert status.report is not None
    row = server(evolve(status, report=evolve(status.report, list_error="it took too long")))
    assert (row.phase, row.tone, row.error) == ("ready", "bad", "its newest tool list: it took too long")


@pytest.mark.parametrize(
    ("attempt", "said"),
    [
        (1, "1st"),
        (2, "2nd"),
        (3, "3rd"),
        (4, "4th"),
        (11, "11th"),
        (12, "12th"),
        (13, "13th"),
        (21, "21st"),
        (112, "112th"),
    ],
)
def test_the_attempt_is_an_ordinal(attempt: int, said: str) -> None:
    assert server(backing_off(112.0, (attempt, 200))).state == f"retry in 12 s ({said} of 200)"


def test_without_a_clock_no_time_is_told() -> None:
    assert server(backing_off(112.0), now=None).state == "waiting for a retry (4th of 5)"
    assert server(parked(112.0), now=None).state == "parked — press R to revive"


def test_times_go_on_with_the_clock_and_are_all_that_does() -> None:
    snapshot = make({"git": backing_off(112.0), "web": tools("get")}).snapshot
    early, late = list(rows(snapshot, 100.0)), list(rows(snapshot, 105.5))
    assert [a == b for a, b in zip(early, late, strict=True)] == [True, False, True, True, True]
    assert isinstance(late[1], ServerRow)
    assert late[1].state == "retry in 7 s (4th of 5)"


@pytest.mark.parametrize(
    ("left", "said"),
    [
        (-1.0, "now"),
        (0.0, "now"),
        (0.2, "in 1 s"),
        (59.1, "in 60 s"),
        (120.0, "in 120 s"),
        (120.5, "in 3 min"),
        (240.0, "in 4 min"),
    ],
)
def test_a_wait_is_told_in_seconds_up_to_two_minutes_and_is_never_told_as_shorter(left: float, said: str) -> None:
    found = rows(make({"git": backing_off(100.0 + left)}).snapshot, 100.0)
    assert isinstance(found[1], ServerRow)
    assert found[1].state == f"retry {said} (4th of 5)"


def test_a_server_made_in_code_has_no_source() -> None:
    stage = Stage(Config([ServerEntry("git", command="run")]), {})
    row = rows(stage.snapshot)[1]
    assert isinstance(row, ServerRow)
    assert row.source is None


# A server without tools, and one that has not listed yet.


def test_a_server_without_tools_says_so() -> None:
    found = rows(make({"git": tools()}).snapshot)
    assert found[2] == EmptyRow(identity=("empty", "git"), text="this server has no tools")
    assert isinstance(found[1], ServerRow)
    assert found[1].count == "no tools"


@pytest.mark.parametrize("status", [None, STARTING, CONNECTED, backing_off(1.0)])
def test_a_server_that_has_not_listed_says_something_else(status: ServerStatus | None) -> None:
    found = rows(make({"git": status}).snapshot)
    assert found[2] == EmptyRow(identity=("empty", "git"), text="it has not listed its tools yet")
    assert isinstance(found[1], ServerRow)
    assert found[1].count is None


@pytest.mark.parametrize(
    ("status", "keys", "why_not"),
    [
        (None, {"disabled": True}, "it is disabled"),
        (None, {"trusted": False}, "it is untrusted"),
        (None, {"error": "no command"}, "it is invalid"),
        (parked(), {}, "it is parked"),
        (NO_LOGIN, {}, "it needs login"),
    ],
)
def test_a_server_that_will_not_list_as_it_is_does_not_say_that_it_has_not_yet(
    status: ServerStatus | None, keys: dict[str, Any], why_not: str
) -> None:
    stage = Stage(Config([entry("git", **keys)]), {} if status is None else {"git": status})
    assert rows(stage.snapshot)[2] == EmptyRow(identity=("empty", "git"), text=f"its tools are not known: {why_not}")


def test_a_server_that_is_down_and_had_no_tools_still_says_that() -> None:
    found = rows(make({"git": parked(tools=(), tools_generation=1)}).snapshot)
    assert found[2] == EmptyRow(identity=("empty", "git"), text="this server has no tools")


def test_excluded_tools_of_a_server_that_has_not_listed_are_rows() -> None:
    stage = Stage(Config([entry("git", exclude=("add",))]), {})
    assert tool(stage.snapshot, "add").check == "off"
    head = rows(stage.snapshot)[1]
    assert isinstance(head, ServerRow)
    assert head.count is None


# Tools.


def test_a_tool_on_the_wire() -> None:
    said = "\n  Shows  the log.\nWith much more to say."
    defs = [ToolDef("log", title="Show the log", description=said, input_schema={"type": "object", "properties": {}})]
    assert tool(make({"git": listed(defs)}).snapshot, "log") == ToolRow(
        identity=("tool", "git", "log"),
        name="log",
        title="Show the log",
        description="Shows the log.",
        check="on",
        verdict="on_wire",
        label="on the wire",
        words="on the wire as 'mcp__git__log'",
        pinned=False,
        pending=0,
    )


def test_each_verdict_is_told_in_the_words_of_why() -> None:
    bad = FrozenDict(type="object", properties={"a": {"$ref": "#/nowhere"}})
    defs = [ToolDef("log"), ToolDef("add"), ToolDef("push"), ToolDef("odd", input_schema=bad)]
    stage = Stage(Config([entry("git", exclude=("add",))]), {"git": listed(defs)}, cap=1)
    snapshot = stage.snapshot
    labels = {}
    for bare in ("log", "add", "push", "odd"):
        row = tool(snapshot, bare)
        assert f"tool '{bare}' of server 'git' is {row.words}" == str(why(snapshot, "git", bare, 100.0))
        labels[bare] = (row.verdict, row.label, row.check)
    assert labels == {
        "log": ("on_wire", "on the wire", "on"),
        "add": ("excluded", "excluded", "off"),
        "push": ("over_budget", "over budget", "on"),
        "odd": ("quarantined", "quarantined", "on"),
    }
    stage.statuses["git"] = parked(340.0, tools=tuple(defs), tools_generation=1)
    row = tool(stage.snapshot, "log")
    assert (row.verdict, row.label) == ("server_down", "server down")
    assert row.words.startswith("not on the wire: its server is parked: it exited with 1")
    assert "next retry in 4 min" in row.words


def test_a_title_that_only_repeats_the_name_is_none() -> None:
    defs = [ToolDef("a", title="a"), ToolDef("b", title="  "), ToolDef("c")]
    snapshot = make({"git": listed(defs)}).snapshot
    assert [tool(snapshot, bare).title for bare in "abc"] == [None, None, None]
    assert [tool(snapshot, bare).description for bare in "abc"] == ["", "", ""]


def test_a_pinned_tool_is_shown_pinned() -> None:
    stage = Stage(Config([entry("git", pin=("log",))]), {"git": tools("log", "add")})
    assert tool(stage.snapshot, "log").pinned
    assert not tool(stage.snapshot, "add").pinned


def test_a_tool_that_a_config_excludes_says_the_file_and_the_line() -> None:
    stage = Stage(Config([entry("git", exclude=("add",))]), {"git": tools("add")})
    assert tool(stage.snapshot, "add").words == "not on the wire: excluded by the entry 'git' (/etc/mcp.json:7)"
