"""The catalog stays the same bytes, and the same object, through all that does not change what is sent."""

from __future__ import annotations

import json
import random
from collections.abc import Iterator
from typing import Any

import pytest
from attrs import evolve
from playbill.actors.model.budget import Budget
from playbill.actors.model.config import Config, ConfigState, ServerEntry
from playbill.actors.model.native import NativeTool
from playbill.actors.model.projection import Memo, project
from playbill.actors.model.snapshot import Snapshot
from playbill.actors.model.status import Lifecycle, Report, ServerStatus, Stage, ToolDef

NATIVE = NativeTool("own", "ours", {"type": "object"}, print)
NAMES = ["git", "files", "a__b", "é", "s" * 60]
ENTRIES = [ServerEntry(name, command="run", pin=("t1",) if name == "files" else ()) for name in NAMES]
BUDGETS = [Budget(None), Budget(12), Budget(None, 600)]


def schema(rng: random.Random | None = None) -> dict[str, Any]:
    """One schema; with a generator, its keys in another order."""

    def mixed(value: Any) -> Any:
        if not isinstance(value, dict):
            return value
        items = [(key, mixed(item)) for key, item in value.items()]
        if rng is not None:
            rng.shuffle(items)
        return dict(items)

    found: dict[str, Any] = mixed(
        {
            "type": "object",
            "properties": {"p": {"type": "string"}, "q": {"type": "integer", "default": 1}},
            "required": ["p"],
        }
    )
    return found


def tools(rng: random.Random | None = None) -> tuple[ToolDef, ...]:
    listed = [ToolDef(f"t{number}", description=f"Tool {number}.", input_schema=schema(rng)) for number in range(5)]
    if rng is not None:
        rng.shuffle(listed)
    return tuple(listed)


def ready(listed: tuple[ToolDef, ...], generation: int = 1) -> ServerStatus:
    return ServerStatus(
        lifecycle=Lifecycle(stage="running", generation=generation, first=generation == 1),
        report=Report(generation=generation, connected=True, ready=True, pid=generation),
        tools=listed,
        tools_generation=generation,
    )


def life_of_a_crash(listed: tuple[ToolDef, ...], rng: random.Random) -> Iterator[ServerStatus]:
    """What the board says of a server that crashes, waits, starts again and lists in another order."""
    alive = ready(listed)
    stages: list[tuple[Stage, int]] = [("backing_off", 1), ("starting", 2), ("running", 2)]
    for stage, generation in stages:
        life = Lifecycle(stage=stage, generation=generation, first=False, error="exit 1", restarts=1)
        yield evolve(alive, lifecycle=life, report=Report(generation=1, error="exit 1"))
    life = Lifecycle(stage="running", generation=2, first=False, error="exit 1", restarts=1)
    yield evolve(alive, lifecycle=life, report=Report(generation=2, connected=True))
    yield ready(tools(rng), 2)


def shown(
    statuses: dict[str, ServerStatus],
    budget: Budget,
    previous: Snapshot | None = None,
    memo: Memo | None = None,
    entries: list[ServerEntry] = ENTRIES,
) -> Snapshot:
    return project(ConfigState(1, Config(entries)), statuses, [NATIVE], budget, previous, memo)


def as_bytes(snap: Snapshot) -> bytes:
    """What a program would send, keys in the order in which it finds them."""
    return json.dumps([[t.wire_name, t.description, t.input_schema] for t in snap.catalog.tools]).encode()


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
@pytest.mark.parametrize("with_memo", [True, False])
def test_a_crash_a_restart_and_a_list_in_another_order_leave_the_catalog_the_same_object(
    budget: Budget, with_memo: bool
) -> None:
    rng = random.Random(5)
    memo = Memo() if with_memo else None
    statuses = {name: ready(tools()) for name in NAMES}
    first = snap = shown(statuses, budget, None, memo)
    for name in NAMES:
        for status in life_of_a_crash(tools(), rng):
            statuses = {**statuses, name: status}
            snap = shown(statuses, budget, snap, memo)
            assert snap.catalog is first.catalog
            assert snap.catalog.version == 1
            assert not first.catalog.diff(snap.catalog)
            assert as_bytes(snap) == as_bytes(first)
    assert snap.version > 1  # what happened to the servers is told all the same


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_the_same_content_again_is_not_a_new_version(budget: Budget) -> None:
    rng = random.Random(6)
    memo = Memo()
    snap = shown({name: ready(tools()) for name in NAMES}, budget, None, memo)
    for _ in range(5):
        again = shown({name: ready(tuple(evolve(tool) for tool in tools())) for name in NAMES}, budget, snap, memo)
        assert again is snap
        mixed = {name: ready(tuple(sorted(tools(rng), key=lambda tool: tool.bare))) for name in NAMES}
        after = shown(mixed, budget, snap, memo)
        assert after is snap  # keys in another order are the same JSON


@pytest.mark.parametrize("budget", BUDGETS, ids=str)
def test_twenty_random_orders_of_start_end_in_the_same_bytes(budget: Budget) -> None:
    ended = set()
    for seed in range(20):
        rng = random.Random(seed)
        memo, snap = Memo(), None
        statuses: dict[str, ServerStatus] = {}
        for name in rng.sample(NAMES, len(NAMES)):
            statuses = {**statuses, name: ServerStatus(lifecycle=Lifecycle(stage="starting", generation=1))}
            snap = shown(statuses, budget, snap, memo)
        for name in rng.sample(NAMES, len(NAMES)):
            listed = tools()
            statuses = {**statuses, name: ready(tuple(rng.sample(listed, len(listed))))}
            snap = shown(statuses, budget, snap, memo)
        assert snap is not None
        ended.add((snap.catalog.digest, as_bytes(snap), snap.catalog.trimmed))
    assert len(ended) == 1


def test_servers_that_come_and_go_change_only_their_own_tools() -> None:
    memo = Memo()
    statuses = {name: ready(tools()) for name in NAMES}
    whole = shown(statuses, Budget(None), None, memo)
    for gone in NAMES:
        left = [entry for entry in ENTRIES if entry.name != gone]
        less = shown(statuses, Budget(None), whole, memo, left)
        diff = whole.catalog.diff(less.catalog)
        own = tuple(tool.wire_name for tool in whole.catalog.tools if tool.server == gone)
        assert (diff.removed, diff.added, diff.changed) == (own, (), ())
        back = shown(statuses, Budget(None), less, memo)
        assert back.catalog.digest == whole.catalog.digest
        assert back.catalog.tools == whole.catalog.tools
        assert as_bytes(back) == as_bytes(whole)


# --- the bytes that go out


def reversed_keys(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: reversed_keys(each) for key, each in reversed(list(value.items()))}
    return value


SCHEMAS = {
    "plain": schema(),
    "mended": {"type": "object", "properties": {"a": {"type": "string", "description": None}, "b": {"type": "INT"}}},
}


@pytest.mark.parametrize("restarted", ["never", "before the list", "with the list", "after the list"])
@pytest.mark.parametrize("what", SCHEMAS)
def test_a_list_with_its_keys_in_another_order_never_changes_the_bytes_of_a_tool(what: str, restarted: str) -> None:
    """Also not later, when another tool changes and the catalog is another object; nor when the projector lost its memo."""

    def listing(given: dict[str, Any], *more: str) -> dict[str, ServerStatus]:
        return {"git": ready((ToolDef("t", description="d", input_schema=given), *map(ToolDef, more)))}

    def bytes_of_t(snap: Snapshot) -> str:
        return json.dumps(snap.catalog.for_provider("openai")[1])

    memo = Memo()
    snap = first = shown(listing(SCHEMAS[what]), Budget(None), None, memo)
    other = reversed_keys(SCHEMAS[what])
    for at, statuses in (
        ("before the list", listing(SCHEMAS[what])),
        ("with the list", listing(other)),
        ("after the list", listing(other, "z")),
        ("never", listing(SCHEMAS[what], "y")),
    ):
        if at == restarted:
            memo = Memo()
        after = shown(statuses, Budget(None), snap, memo)
        assert bytes_of_t(after) == bytes_of_t(first)
        assert "mcp__git__t" not in snap.catalog.diff(after.catalog).changed
        snap = after
    assert len(snap.catalog.tools) == 3


def test_a_lost_memo_brings_back_nothing_that_has_changed() -> None:
    """The catalog before gives its objects only where they are the same JSON, for the same profile."""
    before = shown({"git": ready((ToolDef("t", description="old", input_schema=schema()),))}, Budget(None))
    for description, default in (("new", 1), ("old", True), ("old", 1.0)):
        given = schema()
        given["properties"]["q"]["default"] = default
        status = {"git": ready((ToolDef("t", description=description, input_schema=given),))}
        after = shown(status, Budget(None), before, Memo())
        alone = shown(status, Budget(None))
        assert after.catalog.digest == alone.catalog.digest != before.catalog.digest
        assert as_bytes(after) == as_bytes(alone)
