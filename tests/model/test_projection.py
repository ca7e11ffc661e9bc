from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from attrs import evolve
from playbill.actors.model import projection, row, tool
from playbill.actors.model.config import Config, ConfigState, ServerEntry
from playbill.actors.model.frozen import FrozenDict
from playbill.actors.model.projection import Memo, project
from playbill.actors.model.snapshot import Budget, NativeTool, ServerState, Snapshot, ToolRef
from playbill.actors.model.status import Lifecycle, Report, ServerStatus, ToolDef

NO_CAP = Budget(None)
NATIVE = NativeTool("zz_native", "ours", {"type": "object"}, print)


def entry(name: str, **keys: Any) -> ServerEntry:
    return ServerEntry(name, command="run", source="/etc/mcp.json", line=7, **keys)


def ready(*tools: str | ToolDef, generation: int = 1) -> ServerStatus:
    return ServerStatus(
        lifecycle=Lifecycle(stage="running", generation=generation),
        report=Report(generation=generation, connected=True, ready=True, pid=42, protocol_version="2025-11-25"),
        tools=tuple(ToolDef(t) if isinstance(t, str) else t for t in tools),
        tools_generation=generation,
    )


def state(entries: Iterable[ServerEntry], rev: int = 1, error: str | None = None) -> ConfigState:
    return ConfigState(rev, Config(tuple(entries)), error)


def verdicts(snapshot: Snapshot, server: str) -> dict[str, str]:
    found = snapshot.model.server(server)
    assert found is not None
    return {each.bare: each.verdict for each in found.tools}


def only(snapshot: Snapshot) -> ServerState:
    (server,) = snapshot.model.servers
    return server


# --- the model


def test_a_ready_server_shows_its_tools_in_the_order_advertised_and_the_wire_by_name() -> None:
    snap = project(state([entry("git")]), {"git": ready("status", "log", "add")}, [NATIVE], NO_CAP)
    server = only(snap)
    assert (server.phase, server.connected, server.error, server.list_state) == ("ready", True, None, "current")
    assert (server.pid, server.protocol_version, server.generation) == (42, "2025-11-25", 1)
    assert [each.bare for each in server.tools] == ["status", "log", "add"]
    assert [each.wire_name for each in snap.catalog.tools] == [
        "zz_native",
        "mcp__git__add",
        "mcp__git__log",
        "mcp__git__status",
    ]
    assert snap.model.wanted == 4
    assert snap.version == 1


def test_a_server_of_no_tools_is_ready() -> None:
    server = only(project(state([entry("a")]), {"a": ready()}, [], NO_CAP))
    assert (server.phase, server.list_state, server.tools) == ("ready", "current", ())


def test_excluded_tools_stay_in_the_model_with_the_file_and_line_of_the_list_that_hides_them() -> None:
    snap = project(state([entry("a", exclude=("x",), include=("x", "y"))]), {"a": ready("x", "y", "z")}, [], NO_CAP)
    x, y, z = only(snap).tools
    assert (x.enabled, x.verdict, x.reason) == (False, "excluded", "excluded by the entry 'a' (/etc/mcp.json:7)")
    assert (y.enabled, y.verdict, y.reason) == (True, "on_wire", None)
    assert (z.verdict, z.reason) == ("excluded", "not in the include list of the entry 'a' (/etc/mcp.json:7)")


def test_a_server_without_a_list_lists_its_excluded_names() -> None:
    snap = project(state([entry("a", exclude=("x", "x", "y"))]), {}, [], NO_CAP)
    assert verdicts(snap, "a") == {"x": "excluded", "y": "excluded"}
    assert only(snap).list_state == "none"
    snap = project(state([entry("a", exclude=("x", "y"))]), {"a": ready("y")}, [], NO_CAP)
    assert verdicts(snap, "a") == {"y": "excluded"}


@pytest.mark.parametrize(
    ("keys", "stage", "phase"),
    [
        ({"disabled": True}, "running", "disabled"),
        ({"disabled": True}, "stopping", "stopping"),
        ({"trusted": False}, "running", "untrusted"),
        ({"error": "no command"}, "running", "invalid"),
        ({}, "parked", "parked"),
    ],
)
def test_tools_of_a_server_that_is_down_stay_in_the_model_with_the_reason(
    keys: dict[str, Any], stage: Any, phase: str
) -> None:
    status = evolve(ready("x", "y"), lifecycle=Lifecycle(stage=stage, generation=1, first=False, error="exit 1"))
    snap = project(state([entry("a", exclude=("y",), **keys)]), {"a": status}, [], NO_CAP)
    assert only(snap).phase == phase
    assert verdicts(snap, "a") == {"x": "server_down", "y": "excluded"}
    assert only(snap).tools[0].reason
    assert snap.catalog.tools == ()
    assert snap.model.wanted == 0


@pytest.mark.parametrize(
    "life",
    [
        Lifecycle(stage="backing_off", generation=1, first=False, error="exit 1"),
        Lifecycle(stage="starting", generation=2, first=False, error="exit 1"),
        Lifecycle(stage="running", generation=2, first=False, error="exit 1"),
        Lifecycle(stage="stopping", generation=1, first=False, error="exit 1"),
    ],
)
def test_a_crash_does_not_change_the_catalog_while_the_server_restarts(life: Lifecycle) -> None:
    entries = state([entry("a"), entry("b")])
    before = project(entries, {"a": ready("x"), "b": ready("y")}, [], NO_CAP)
    dead = evolve(ready("x"), lifecycle=life, report=Report(generation=1, error="exit 1"))
    after = project(entries, {"a": dead, "b": ready("y")}, [], NO_CAP, before)
    assert after.catalog is before.catalog
    assert after.version == before.version + 1
    server = after.model.server("a")
    assert server is not None
    assert (server.connected, server.error, server.pid, server.list_state) == (False, "exit 1", None, "stale")
    back = project(entries, {"a": ready("x", generation=2), "b": ready("y")}, [], NO_CAP, after)
    assert back.catalog is before.catalog


def test_reports_of_another_generation_are_dropped() -> None:
    status = evolve(ready("x"), lifecycle=Lifecycle(stage="running", generation=2))
    server = only(project(state([entry("a")]), {"a": status}, [], NO_CAP))
    assert (server.phase, server.connected, server.pid, server.list_state) == ("starting", False, None, "stale")


def test_a_failed_listing_keeps_the_last_good_list_and_an_empty_list_is_empty() -> None:
    good = ready("x")
    failed = evolve(good, report=evolve(good.report, list_error="timeout"))
    server = only(project(state([entry("a")]), {"a": failed}, [], NO_CAP))
    assert (server.phase, server.list_state, server.list_error) == ("ready", "stale", "timeout")
    assert [each.verdict for each in server.tools] == ["on_wire"]
    assert only(project(state([entry("a")]), {"a": evolve(good, tools=())}, [], NO_CAP)).tools == ()


def test_stderr_is_shown_only_after_a_death() -> None:
    alive = evolve(ready(), report=evolve(ready().report, stderr_tail="starting up"))
    assert only(project(state([entry("a")]), {"a": alive}, [], NO_CAP)).stderr_tail == ""
    life = Lifecycle(stage="backing_off", generation=1, first=False, error="exit 1")
    dead = ServerStatus(lifecycle=life, report=Report(generation=1, error="exit 1", stderr_tail="boom"))
    assert only(project(state([entry("a")]), {"a": dead}, [], NO_CAP)).stderr_tail == "boom"


def test_what_the_supervisor_says_is_passed_on() -> None:
    life = Lifecycle(
        stage="parked", generation=4, restarts=6, first=False, next_retry_at=12.5, attempt=(6, 5), error="gone"
    )
    server = only(project(state([entry("a")]), {"a": ServerStatus(lifecycle=life)}, [], NO_CAP))
    assert (server.restarts, server.next_retry_at, server.attempt, server.generation) == (6, 12.5, (6, 5), 4)
    assert server.error == "gone"


def test_secrets_are_masked_and_references_stay() -> None:
    e = ServerEntry("a", command="run", args=("--token", "hunter2", "--key=${KEY}"), env={"T": "hunter2"})
    r = ServerEntry("b", url="https://u:hunter2@h/mcp?api_key=hunter2", headers={"Authorization": "Bearer hunter2"})
    snap = project(state([e, r]), {}, [], NO_CAP)
    assert "hunter2" not in repr(snap)
    a, b = snap.model.servers
    assert a.args == ("--token", "***", "--key=${KEY}")
    assert b.url == "https://***:***@h/mcp?api_key=***"


def test_the_config_error_is_passed_on() -> None:
    assert project(state([], error="line 3: x"), {}, [], NO_CAP).model.config_error == "line 3: x"


def test_servers_may_share_tool_names_and_wire_names_do_not_clash() -> None:
    entries = [entry("a"), entry("a__b"), entry("A")]
    statuses = {e.name: ready("x", "b__x", "_x") for e in entries}
    snap = project(state(entries), statuses, [], NO_CAP)
    assert len({each.wire_name for each in snap.catalog.tools}) == 9


def test_a_status_of_a_server_that_is_not_configured_is_ignored() -> None:
    assert project(state([]), {"ghost": ready("x")}, [], NO_CAP).model.servers == ()


def test_a_name_advertised_twice_is_one_tool_the_first() -> None:
    snap = project(state([entry("a")]), {"a": ready(ToolDef("x", title="1"), ToolDef("x", title="2"))}, [], NO_CAP)
    assert [each.title for each in only(snap).tools] == ["1"]
    assert [each.title for each in snap.catalog.tools] == ["1"]


# --- quarantine and totality


def test_a_tool_with_a_bad_schema_is_quarantined_alone() -> None:
    bad = ToolDef("bad", title="Bad", description="d", input_schema={"type": "array"})
    worse = ToolDef("worse", input_schema={"type": "object", "x": float("nan")})
    snap = project(state([entry("a")]), {"a": ready("x", bad, worse)}, [], NO_CAP)
    assert verdicts(snap, "a") == {"x": "on_wire", "bad": "quarantined", "worse": "quarantined"}
    _, shown, hidden = only(snap).tools
    assert (shown.title, shown.description, shown.input_schema) == ("Bad", "d", {"type": "array"})
    assert "type" in str(shown.reason)
    assert hidden.input_schema == {}  # what is not JSON is not shown either: a reader may want to write it down
    json.dumps([each.input_schema for each in only(snap).tools], allow_nan=False)
    assert snap.model.wanted == 1


@pytest.mark.parametrize(("module", "name"), [(tool, "judge"), (tool, "wire_name"), (tool, "encode")])
def test_a_tool_that_makes_anything_raise_is_quarantined_alone(
    module: Any, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = getattr(module, name)
    seen: list[object] = []

    def bad(*args: Any) -> Any:
        if any("evil" in str(arg) for arg in args) and not seen:
            seen.append(args)
            raise RuntimeError("boom")
        return real(*args)

    monkeypatch.setattr(module, name, bad)
    snap = project(state([entry("a"), entry("b")]), {"a": ready("x", "evil"), "b": ready("y")}, [], NO_CAP)
    assert seen
    assert verdicts(snap, "a") == {"x": "on_wire", "evil": "quarantined"}
    assert verdicts(snap, "b") == {"y": "on_wire"}
    assert "boom" in str(only_tool(snap, "a", "evil").reason)


def only_tool(snap: Snapshot, server: str, bare: str) -> Any:
    found = snap.model.tool(server, bare)
    assert found is not None
    return found


class Evil(ToolDef):
    @property
    def description(self) -> str:  # type: ignore[override]
        raise RuntimeError("boom")


class Nameless(ToolDef):
    @property
    def bare(self) -> str:  # type: ignore[override]
        raise RuntimeError("boom")


def test_tools_whose_own_attributes_raise_are_quarantined_alone() -> None:
    evil, nameless = Evil.__new__(Evil), Nameless.__new__(Nameless)
    for broken in (evil, nameless):
        for name, value in {"title": None, "input_schema": FrozenDict(type="object")}.items():
            object.__setattr__(broken, name, value)
    ToolDef.bare.__set__(evil, "evil")  # type: ignore[attr-defined]
    ToolDef.description.__set__(nameless, None)  # type: ignore[attr-defined]
    number = ToolDef(5)  # type: ignore[arg-type]
    snap = project(state([entry("a")]), {"a": ready("x", evil, nameless, number)}, [], NO_CAP)
    assert verdicts(snap, "a") == {
        "x": "on_wire",
        "evil": "quarantined",
        "(tool 3)": "quarantined",
        "(tool 4)": "quarantined",
    }


@pytest.mark.parametrize(
    "keys",
    [{"command": 5}, {"args": (5,)}, {"url": object()}, {"exclude": (5, [])}],
    ids=str,
)
def test_a_server_that_makes_anything_raise_becomes_a_row_with_its_error(keys: dict[str, Any]) -> None:
    broken = evolve(entry("a"), **keys)
    memo = Memo()
    for _ in range(2):
        snap = project(state([broken, entry("b")]), {"b": ready("y")}, [], NO_CAP, None, memo)
        server = snap.model.server("a")
        assert server is not None
        assert server.phase == "invalid"
        assert server.error is not None
        assert "cannot be shown" in server.error
        assert verdicts(snap, "b") == {"y": "on_wire"}


def test_entries_with_nonsense_in_them_still_show_their_tools() -> None:
    broken = evolve(entry("a"), args=(5,), pin=([],), priority="high")
    snap = project(state([broken]), {"a": ready("x")}, [], NO_CAP)
    assert verdicts(snap, "a") == {"x": "server_down"}
    snap = project(state([evolve(entry("a"), pin=([],), priority="high")]), {"a": ready("x")}, [], NO_CAP)
    assert verdicts(snap, "a") == {"x": "on_wire"}


def test_a_status_that_makes_anything_raise_becomes_a_row_with_its_error() -> None:
    status = evolve(ready("x"), lifecycle=5, tools=7)
    snap = project(state([entry("a"), entry("b")]), {"a": status, "b": ready("y")}, [], NO_CAP)
    assert snap.model.servers[0].phase == "invalid"
    assert verdicts(snap, "b") == {"y": "on_wire"}


def test_a_native_tool_always_ships_even_with_a_schema_that_cannot_be_encoded() -> None:
    odd = NativeTool("odd", "d", {"type": "object", "x": {1}}, print)
    snap = project(state([entry("a")]), {"a": ready("x")}, [odd], Budget(0))
    assert [each.wire_name for each in snap.catalog.tools] == ["odd"]


def test_a_native_tool_wins_over_an_mcp_tool_of_the_same_wire_name() -> None:
    thief = evolve(NATIVE)
    object.__setattr__(thief, "name", "mcp__a__x")
    snap = project(state([entry("a")]), {"a": ready("x", "y")}, [thief], NO_CAP)
    assert [(each.wire_name, each.server) for each in snap.catalog.tools] == [("mcp__a__x", None), ("mcp__a__y", "a")]
    assert verdicts(snap, "a") == {"x": "quarantined", "y": "on_wire"}


# --- the budget


def test_victims_are_trimmed_lowest_first_and_say_so() -> None:
    entries = [
        entry("low", priority=-1, pin=("p",)),
        entry("first", pin=("p",)),
        entry("second"),
    ]
    statuses = {name: ready("b", "a", "p") for name in ("low", "first", "second")}
    full = project(state(entries), statuses, [NATIVE], NO_CAP)
    keep = [
        ("first", "p"),
        ("low", "p"),
        ("first", "a"),
        ("first", "b"),
        ("second", "a"),
        ("second", "b"),
        ("second", "p"),
        ("low", "a"),
        ("low", "b"),
    ]
    assert full.catalog.trimmed == ()
    for cap in range(12):
        snap = project(state(entries), statuses, [NATIVE], Budget(cap))
        fit = max(0, cap - 1)
        assert snap.catalog.trimmed == tuple(ToolRef(*each) for each in reversed(keep[fit:]))
        on_wire = {(each.server, each.bare) for each in snap.catalog.tools[1:]}
        assert on_wire == set(keep[:fit])
        for server, bare in keep[fit:]:
            cut = only_tool(snap, server, bare)
            assert (cut.verdict, cut.reason) == ("over_budget", f"over the budget of {cap} tools")
        assert (snap.model.wanted, snap.model.trimmed_count()) == (10, len(keep[fit:]))


def test_the_warning_counts_native_and_mcp_tools() -> None:
    snap = project(state([entry("a")]), {"a": ready(*"xyz")}, [NATIVE], Budget(2))
    assert snap.model.budget_warning() == (
        "4 tools over the budget of 2 — 2 MCP tools were dropped from this session; disable some to make room"
    )
    assert project(state([entry("a")]), {"a": ready(*"xyz")}, [NATIVE], Budget(4)).model.budget_warning() is None


def test_only_tools_that_would_be_sent_use_up_the_budget() -> None:
    bad = ToolDef("bad", input_schema={"type": "array"})
    entries = [entry("a", exclude=("x",)), entry("off", disabled=True), entry("b")]
    statuses = {"a": ready("x", bad, "y"), "off": ready("q", "r"), "b": ready("z")}
    snap = project(state(entries), statuses, [], Budget(2))
    assert (snap.model.wanted, snap.catalog.trimmed) == (2, ())


# --- versions and identity


def test_nothing_new_is_the_previous_snapshot_itself() -> None:
    memo = Memo()
    first = project(state([entry("a")]), {"a": ready("x")}, [NATIVE], NO_CAP, None, memo)
    assert project(state([entry("a")]), {"a": ready("x")}, [NATIVE], NO_CAP, first, memo) is first
    assert project(state([entry("a")]), {"a": ready("x")}, [NATIVE], NO_CAP, first) is first


def test_anything_new_is_the_next_version() -> None:
    base = project(state([entry("a")]), {"a": ready("x")}, [], NO_CAP)
    others = [
        project(state([entry("a")], rev=2), {"a": ready("x")}, [], NO_CAP, base),
        project(state([entry("a")], error="e"), {"a": ready("x")}, [], NO_CAP, base),
        project(state([entry("a")]), {"a": ready("x", "y")}, [], NO_CAP, base),
        project(state([entry("a")]), {"a": ready("x")}, [NATIVE], NO_CAP, base),
        project(state([entry("a")]), {"a": ready("x")}, [], Budget(5), base),
        project(state([entry("a", exclude=("x",))]), {"a": ready("x")}, [], NO_CAP, base),
    ]
    assert [each.version for each in others] == [2] * len(others)
    assert [each.catalog is base.catalog for each in others] == [True, True, False, False, True, False]


def test_a_change_of_the_victims_alone_is_a_new_catalog_of_the_same_tools() -> None:
    entries = [entry("a"), entry("b")]
    one = project(state(entries), {"a": ready("x"), "b": ready("y")}, [], Budget(1))
    two = project(state(entries), {"a": ready("x"), "b": ready("y", "z")}, [], Budget(1), one)
    assert two.catalog is not one.catalog
    assert two.catalog.tools is one.catalog.tools
    assert two.catalog.digest == one.catalog.digest
    assert (one.catalog.version, two.catalog.version) == (1, 2)
    assert [each.bare for each in two.catalog.trimmed] == ["z", "y"]


@pytest.mark.parametrize("memo", [None, Memo()])
def test_numbers_that_python_calls_equal_are_other_bytes(memo: Memo | None) -> None:
    def listing(default: object) -> dict[str, ServerStatus]:
        return {"a": ready(ToolDef("x", input_schema={"type": "object", "properties": {"p": {"default": default}}}))}

    snaps = [project(state([entry("a")]), listing(1), [], NO_CAP, None, memo)]
    for default in (True, 1.0, 1):
        snaps.append(project(state([entry("a")]), listing(default), [], NO_CAP, snaps[-1], memo))
    assert [each.version for each in snaps] == [1, 2, 3, 4]
    digests = [each.catalog.digest for each in snaps]
    assert digests[0] == digests[3]
    assert len(set(digests)) == 3
    sent = [json.dumps(each.catalog.tools[0].input_schema["properties"]["p"]) for each in snaps]
    assert sent == ['{"default": 1}', '{"default": true}', '{"default": 1.0}', '{"default": 1}']


def test_a_server_that_shuffles_its_schemas_keys_does_not_change_the_catalog() -> None:
    one = ToolDef("x", input_schema={"type": "object", "properties": {"p": {}, "q": {}}})
    two = ToolDef("x", input_schema={"properties": {"q": {}, "p": {}}, "type": "object"})
    memo = Memo()
    first = project(state([entry("a"), entry("b")]), {"a": ready(one), "b": ready("y")}, [], NO_CAP, None, memo)
    again = project(
        state([entry("a"), entry("b")]), {"a": ready(two, generation=2), "b": ready("y", "z")}, [], NO_CAP, first, memo
    )
    assert again.catalog is not first.catalog
    assert list(again.catalog.tools[0].input_schema["properties"]) == ["p", "q"]


def test_the_catalog_is_the_same_bytes_whatever_the_order_of_arrival() -> None:
    entries = [entry("a"), entry("a-b"), entry("b")]
    statuses = {e.name: ready("x", "y-1", "z") for e in entries}
    whole = project(state(entries), statuses, [NATIVE], NO_CAP)
    names = [each.wire_name for each in whole.catalog.tools]
    assert names[0] == "zz_native"
    assert names[1:] == sorted(names[1:])
    for order in ("a", "a-b", "b"), ("b", "a-b", "a"), ("a-b", "b", "a"):
        memo, snap, known = Memo(), None, {}
        for name in order:
            known = {**known, name: statuses[name]}
            snap = project(state(entries), known, [NATIVE], NO_CAP, snap, memo)
        assert snap is not None
        assert snap.catalog.digest == whole.catalog.digest
        assert snap.catalog.tools == whole.catalog.tools


def test_names_of_servers_that_interleave_are_still_in_order() -> None:
    # Long names are cut, so that tools of two servers meet in one range of names.
    left, right = "s" * 60 + "a", "s" * 60 + "b"
    entries = [entry(left), entry(right)]
    statuses = {e.name: ready("a", "b", "c") for e in entries}
    catalog = project(state(entries), statuses, [], NO_CAP).catalog
    names = [each.wire_name for each in catalog.tools]
    assert names == sorted(names)
    assert [each.bare for each in catalog.tools] == ["a", "a", "b", "b", "c", "c"]
    assert catalog == project(state(entries[::-1]), statuses, [], NO_CAP).catalog


# --- cost: counted, not timed


def test_a_toggle_touches_one_server_whatever_the_number_of_the_others(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    encoded: list[str] = []
    real_row, real_encode = projection.make_row, tool.encode
    monkeypatch.setattr(projection, "make_row", lambda e, *rest: made.append(e.name) or real_row(e, *rest))
    monkeypatch.setattr(tool, "encode", lambda wire: encoded.append(wire.bare) or real_encode(wire))
    entries = [entry(f"s{i}") for i in range(20)]
    statuses = {e.name: ready(*(f"t{j}" for j in range(10))) for e in entries}
    for budget in (Budget(55), NO_CAP):
        memo = Memo()
        first = project(state(entries), statuses, [], budget, None, memo)
        made.clear()
        encoded.clear()
        toggled = [evolve(e, exclude=("t3",)) if e.name == "s2" else e for e in entries]
        second = project(state(toggled, rev=2), dict(statuses), [], budget, first, memo)
        assert made == ["s2"]
        assert encoded == []
        same = [a is b for a, b in zip(first.model.servers, second.model.servers, strict=True)]
        assert same.count(False) == (1 if budget is NO_CAP else 2)  # and the one in which the cut is
        equal_but_new = [evolve(e) for e in toggled]
        made.clear()
        assert project(state(equal_but_new, rev=2), statuses, [], budget, second, memo) is second
        assert made == []


def test_a_list_that_arrives_again_costs_only_what_is_new_in_it(monkeypatch: pytest.MonkeyPatch) -> None:
    encoded: list[str] = []
    real = tool.encode
    monkeypatch.setattr(tool, "encode", lambda wire: encoded.append(wire.bare) or real(wire))
    memo = Memo()
    status = ready("x", "y")
    first = project(state([entry("a")]), {"a": status}, [], NO_CAP, None, memo)
    encoded.clear()
    assert status.tools is not None
    more = evolve(status, tools=(*status.tools, ToolDef("z")))
    project(state([entry("a")]), {"a": more}, [], NO_CAP, first, memo)
    assert encoded == ["z"]


def test_rows_the_budget_does_not_cut_are_the_same_objects_whatever_the_budget() -> None:
    memo = Memo()
    entries, statuses = [entry("a"), entry("b")], {"a": ready("x", "y"), "b": ready("x", "y")}
    one, two, three = (project(state(entries), statuses, [], Budget(cap), None, memo) for cap in (3, 2, 4))
    assert one.model.servers[0] is two.model.servers[0] is three.model.servers[0]
    assert [each.model.servers[1].tools[1].verdict for each in (one, two, three)] == [
        "over_budget",
        "over_budget",
        "on_wire",
    ]


def test_the_cut_moves_when_another_server_needs_more_or_less() -> None:
    memo, snap = Memo(), None
    entries = [entry("a"), entry("b", pin=("p",))]
    for count in (0, 3, 1, 9, 2, 0, 3):
        statuses = {"a": ready(*(f"t{i}" for i in range(count))), "b": ready("p", "x", "y")}
        snap = project(state(entries), statuses, [], Budget(4), snap, memo)
        fit = max(0, 3 - count)
        assert verdicts(snap, "b") == {
            "p": "on_wire",
            "x": "on_wire" if fit > 0 else "over_budget",
            "y": "on_wire" if fit > 1 else "over_budget",
        }


def changes_of_one_field() -> Iterable[tuple[str, ServerEntry, ServerStatus]]:
    """Every field of an entry and of a status, changed alone to something that shows."""
    base = entry("a", exclude=("z",))
    died = evolve(ready("x", "y", "z"), lifecycle=Lifecycle(stage="running", generation=1, first=False, error="old"))
    assert died.report is not None
    assert died.lifecycle is not None
    for name, value in {
        "command": "other",
        "args": ("b",),
        "url": "https://h/",
        "disabled": True,
        "include": ("y",),
        "exclude": ("x",),
        "pin": ("y",),
        "source": "/other.json",
        "line": 8,
        "error": "wrong",
        "trusted": False,
    }.items():
        yield name, evolve(base, **{name: value}), died
    for name, value in {
        "stage": "parked",
        "generation": 2,
        "restarts": 5,
        "next_retry_at": 1.5,
        "attempt": (1, 2),
    }.items():
        yield name, base, evolve(died, lifecycle=evolve(died.lifecycle, **{name: value}))
    for name, value in {
        "generation": 2,
        "connected": False,
        "ready": False,
        "list_error": "timeout",
        "pid": 43,
        "protocol_version": "2026-07-28",
        "needs_auth": True,
        "stderr_tail": "boom",
    }.items():
        yield name, base, evolve(died, report=evolve(died.report, **{name: value}))
    yield "no lifecycle", base, evolve(died, lifecycle=None)
    yield "no report", base, evolve(died, report=None)
    yield "no tools", base, evolve(died, tools=None)
    yield "empty", base, evolve(died, tools=())
    yield "tools_generation", base, evolve(died, tools_generation=2)


@pytest.mark.parametrize(
    ("what", "changed", "status"), list(changes_of_one_field()), ids=lambda v: v if isinstance(v, str) else ""
)
def test_a_memo_notices_every_field_that_shows(what: str, changed: ServerEntry, status: ServerStatus) -> None:
    base = entry("a", exclude=("z",))
    known = evolve(ready("x", "y", "z"), lifecycle=Lifecycle(stage="running", generation=1, first=False, error="old"))
    memo = Memo()
    before = project(state([base]), {"a": known}, [], Budget(1), None, memo)
    after = project(state([changed]), {"a": status}, [], Budget(1), before, memo)
    assert after is not before
    assert after == project(state([changed]), {"a": status}, [], Budget(1), before)
    back = project(state([base]), {"a": known}, [], Budget(1), after, memo)
    assert (back.model, back.catalog.digest) == (before.model, before.catalog.digest)


def test_a_memo_notices_other_native_tools() -> None:
    thief = evolve(NATIVE)
    object.__setattr__(thief, "name", "mcp__a__x")
    memo, snap = Memo(), None
    for natives in ([], [NATIVE], [thief], [NATIVE, thief], []):
        snap = project(state([entry("a")]), {"a": ready("x")}, natives, NO_CAP, snap, memo)
        alone = project(state([entry("a")]), {"a": ready("x")}, natives, NO_CAP)
        assert (snap.model, snap.catalog.tools) == (alone.model, alone.catalog.tools)


def test_a_memo_forgets_what_is_no_longer_configured() -> None:
    memo = Memo()
    for i in range(50):
        project(state([entry(f"s{i}")]), {f"s{i}": ready("x")}, [], NO_CAP, None, memo)
    assert len(memo._rows) == len(memo._blocks) == 1


def test_row_module_is_the_one_place_that_derives_enabled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ServerEntry, "allows", lambda self, bare: bare == "q")
    assert row.ServerEntry is ServerEntry
    snap = project(state([entry("a", exclude=("q",))]), {"a": ready("q", "x")}, [], NO_CAP)
    assert {each.bare: each.enabled for each in only(snap).tools} == {"q": True, "x": False}
