from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from attrs import evolve
from playbill.actors.model import tool
from playbill.actors.model.budget import Budget
from playbill.actors.model.config import Config, ConfigState, ServerEntry
from playbill.actors.model.frozen import FrozenDict
from playbill.actors.model.lens import Lens
from playbill.actors.model.native import NativeTool
from playbill.actors.model.projection import Memo, project
from playbill.actors.model.snapshot import ServerState, Snapshot
from playbill.actors.model.status import Lifecycle, Report, ServerStatus, ToolDef
from playbill.actors.model.wire import ToolRef

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


def test_excluded_tools_stay_in_the_model_with_the_entry_that_hides_them_and_its_line_is_there() -> None:
    snap = project(state([entry("a", exclude=("x",), include=("x", "y"))]), {"a": ready("x", "y", "z")}, [], NO_CAP)
    x, y, z = only(snap).tools
    assert (x.enabled, x.verdict, x.reason) == (False, "excluded", "excluded by the entry 'a'")
    assert (y.enabled, y.verdict, y.reason) == (True, "on_wire", None)
    assert (z.verdict, z.reason) == ("excluded", "not in the include list of the entry 'a'")
    assert (only(snap).source, snap.lines("a", "x"), snap.lines("a", None)) == ("/etc/mcp.json", 7, 7)


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


@pytest.mark.parametrize(("module", "name"), [(tool, "fit"), (tool, "wire_name"), (tool, "encode")])
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


def spoilt(**keys: Any) -> ServerEntry:
    """An entry as its class refuses to make it: the projection is total all the same."""
    broken = evolve(entry("a"))
    for key, value in keys.items():
        object.__setattr__(broken, key, value)
    return broken


@pytest.mark.parametrize(
    "keys",
    [{"command": 5}, {"args": (5,)}, {"url": object()}, {"exclude": (5, [])}],
    ids=lambda keys: next(iter(keys)),
)
def test_a_server_that_makes_anything_raise_becomes_a_row_with_its_error(keys: dict[str, Any]) -> None:
    broken = spoilt(**keys)
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
    broken = spoilt(args=(5,), pin=([],), priority="high")
    snap = project(state([broken]), {"a": ready("x")}, [], NO_CAP)
    assert verdicts(snap, "a") == {"x": "server_down"}
    snap = project(state([spoilt(pin=([],), priority="high")]), {"a": ready("x")}, [], NO_CAP)
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


def test_what_looks_wrong_in_the_config_is_in_the_model() -> None:
    config = Config((entry("a"),), warnings=("mcpServers.a.argz: unknown key",))
    snap = project(ConfigState(1, config), {}, [], NO_CAP)
    assert snap.model.config_warnings == ("mcpServers.a.argz: unknown key",)


def test_a_tool_that_the_entry_pins_says_so_whatever_its_verdict() -> None:
    pinned = entry("a", pin=("x", "z", "q"), exclude=("z",))
    snap = project(state([pinned]), {"a": ready("x", "y", "z", "w")}, [], Budget(1))
    assert {tool.bare: tool.pinned for tool in only(snap).tools} == {"x": True, "y": False, "z": True, "w": False}
    snap = project(state([pinned]), {}, [], NO_CAP)
    assert {tool.bare: tool.pinned for tool in only(snap).tools} == {"z": True}
    snap = project(state([evolve(pinned, disabled=True)]), {"a": ready("x", "y")}, [], Budget(1))
    assert {tool.bare: tool.pinned for tool in only(snap).tools} == {"x": True, "y": False}


def test_a_pinned_tool_says_so_when_it_is_over_the_budget_too_large_or_hidden_from_a_view() -> None:
    pins = {"a": ready("x", "y", "z")}
    snap = project(state([entry("a", pin=("x", "y"))]), pins, [], Budget(1))
    assert verdicts(snap, "a") == {"x": "on_wire", "y": "over_budget", "z": "over_budget"}
    assert {tool.bare: tool.pinned for tool in only(snap).tools} == {"x": True, "y": True, "z": False}
    snap = project(state([entry("a", pin=("x",))]), pins, [], Budget(None, 1))
    assert verdicts(snap, "a") == dict.fromkeys("xyz", "over_budget")
    assert {tool.bare: tool.pinned for tool in only(snap).tools} == {"x": True, "y": False, "z": False}
    snap = project(state([entry("a", pin=("x", "y"))]), pins, [], NO_CAP, lens=Lens(["a/x", "a/y"]))
    assert verdicts(snap, "a") == {"x": "excluded", "y": "excluded", "z": "on_wire"}
    assert {tool.bare: tool.pinned for tool in only(snap).tools} == {"x": True, "y": True, "z": False}


@pytest.mark.parametrize("cap", [None, 1, 0])
@pytest.mark.parametrize("keys", [{}, {"exclude": ("x",)}, {"disabled": True}])
def test_pinning_and_unpinning_is_seen_at_once_and_makes_nothing_else_anew(
    cap: int | None, keys: dict[str, Any]
) -> None:
    memo, known, last = Memo(), {"a": ready("x", "y")}, None
    for rev, pin in enumerate([(), ("x",), (), ("y",), ("x", "y"), ()], 1):
        last = project(state([entry("a", pin=pin, **keys)], rev), known, [], Budget(cap), last, memo)
        assert {tool.bare for tool in only(last).tools if tool.pinned} == set(pin)
        assert [tool.verdict for tool in only(last).tools] == [
            tool.verdict for tool in only(project(state([entry("a", pin=pin, **keys)]), known, [], Budget(cap))).tools
        ]
