"""What stays the same object from one projection to the next, what counts as a change, and what a change costs."""

from __future__ import annotations

import json
from collections.abc import Iterable
from typing import Any

import pytest
from attrs import evolve
from playbill.actors.model import facts, tool
from playbill.actors.model import memo as memo_module
from playbill.actors.model.budget import Budget
from playbill.actors.model.config import Config, ConfigState, ServerEntry
from playbill.actors.model.native import NativeTool
from playbill.actors.model.profile import PROFILES
from playbill.actors.model.projection import Memo, project
from playbill.actors.model.snapshot import ServerState, Snapshot
from playbill.actors.model.status import Lifecycle, Report, ServerStatus, ToolDef

NO_CAP = Budget(None)
ANY = PROFILES["mcp"]  # which takes any number of tools
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
    real_row, real_encode = memo_module.make_row, tool.encode
    monkeypatch.setattr(memo_module, "make_row", lambda e, *rest: made.append(e.name) or real_row(e, *rest))
    monkeypatch.setattr(tool, "encode", lambda wire: encoded.append(wire.bare) or real_encode(wire))
    entries = [entry(f"s{i}") for i in range(20)]
    statuses = {e.name: ready(*(f"t{j}" for j in range(10))) for e in entries}
    for budget in (Budget(55), NO_CAP):
        memo = Memo()
        first = project(state(entries), statuses, [], budget, None, memo, profile=ANY)
        made.clear()
        encoded.clear()
        toggled = [evolve(e, exclude=("t3",)) if e.name == "s2" else e for e in entries]
        second = project(state(toggled, rev=2), dict(statuses), [], budget, first, memo, profile=ANY)
        assert made == ["s2"]
        assert encoded == []
        same = [a is b for a, b in zip(first.model.servers, second.model.servers, strict=True)]
        assert same.count(False) == (1 if budget is NO_CAP else 2)  # and the one in which the cut is
        equal_but_new = [evolve(e) for e in toggled]
        made.clear()
        assert project(state(equal_but_new, rev=2), statuses, [], budget, second, memo, profile=ANY) is second
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


RESTARTED = evolve(ready("x", "y", "z"), lifecycle=Lifecycle(stage="running", generation=1, first=False, error="old"))


def changes_of_one_field() -> Iterable[tuple[str, ServerEntry, ServerStatus]]:
    """Every field of an entry and of a status, changed alone to something that shows."""
    base = entry("a", exclude=("z",))
    died = RESTARTED
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
    known = RESTARTED
    memo = Memo()
    before = project(state([base]), {"a": known}, [], Budget(1), None, memo)
    after = project(state([changed]), {"a": status}, [], Budget(1), before, memo)
    assert after is not before
    assert after == project(state([changed]), {"a": status}, [], Budget(1), before)
    back = project(state([base]), {"a": known}, [], Budget(1), after, memo)
    assert (back.model, back.catalog.digest) == (before.model, before.catalog.digest)


def test_a_memo_notices_other_native_tools() -> None:
    thief = evolve(NATIVE, name="other")
    memo, snap, status = Memo(), None, ready("x")
    for natives in ([], [NATIVE], [thief], [NATIVE, thief], []):
        snap = project(state([entry("a")]), {"a": status}, natives, NO_CAP, snap, memo)
        alone = project(state([entry("a")]), {"a": status}, natives, NO_CAP)
        assert (snap.model, snap.catalog.tools) == (alone.model, alone.catalog.tools)


def test_a_memo_forgets_what_is_no_longer_configured() -> None:
    memo = Memo()
    for i in range(50):
        project(state([entry(f"s{i}")]), {f"s{i}": ready("x")}, [], NO_CAP, None, memo)
    assert len(memo._rows) == len(memo._blocks) == 1


def test_one_module_is_the_one_place_that_derives_enabled(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ServerEntry, "allows", lambda self, bare: bare == "q")
    assert facts.ServerEntry is ServerEntry
    snap = project(state([entry("a", exclude=("q",))]), {"a": ready("q", "x")}, [], NO_CAP)
    assert {each.bare: each.enabled for each in only(snap).tools} == {"q": True, "x": False}
