"""The projection against a plain restatement of its rules, on drawn worlds."""

from __future__ import annotations

import json
from typing import Any

from attrs import evolve, frozen
from hypothesis import given, settings
from hypothesis import strategies as st
from playbill.actors.model.budget import Budget
from playbill.actors.model.config import Config, ConfigState, ServerEntry
from playbill.actors.model.naming import wire_name
from playbill.actors.model.native import NativeTool
from playbill.actors.model.profile import PORTABLE
from playbill.actors.model.projection import Memo, project
from playbill.actors.model.schema.fit import fit
from playbill.actors.model.snapshot import Snapshot
from playbill.actors.model.status import Lifecycle, Report, ServerStatus, ToolDef


def fits(server: str, tool: ToolDef) -> bool:
    return fit(tool, wire_name(server, tool.bare), PORTABLE).flaw is None


DOWN = {"parked", "needs_auth", "disabled", "untrusted", "invalid", "stopping"}

SERVERS = ["a", "b", "a__b", "é", "s" * 60 + "1", "s" * 60 + "2"]
server_names = st.sampled_from(SERVERS)
bares = st.sampled_from(["t", "u", "b__t", "_t", "é", "T", "", "long" * 20])
schemas: st.SearchStrategy[Any] = st.sampled_from(
    [
        {"type": "object"},
        {"type": "object", "default": 1},
        {"type": "object", "default": True},
        {"default": 1, "type": "object"},
        {"type": "array"},
        {"type": "object", "x": float("nan")},
    ]
)
tools = st.builds(ToolDef, bares, description=st.sampled_from([None, "d", "\udc80"]), input_schema=schemas)
listings = st.none() | st.lists(tools, max_size=5, unique_by=lambda t: t.bare).map(tuple)
lists_of_bares = st.lists(bares, max_size=3)
entries = st.builds(
    ServerEntry,
    server_names,
    command=st.just("run"),
    disabled=st.sampled_from([False, False, False, True]),
    trusted=st.sampled_from([True, True, True, False]),
    error=st.sampled_from([None, None, None, "wrong"]),
    include=st.none() | lists_of_bares,
    exclude=lists_of_bares,
    pin=lists_of_bares,
    priority=st.sampled_from([0, 0, 1, -1, 0.5, float("nan")]),
    line=st.sampled_from([1, 2]),
)
lifecycles = st.builds(
    Lifecycle,
    stage=st.sampled_from(["running", "running", "starting", "backing_off", "parked", "stopping"]),
    generation=st.integers(1, 2),
    first=st.booleans(),
    error=st.sampled_from([None, "died"]),
)
reports = st.builds(
    Report,
    generation=st.integers(1, 2),
    connected=st.booleans(),
    ready=st.booleans(),
    needs_auth=st.sampled_from([False, False, False, True]),
    list_error=st.sampled_from([None, "timeout"]),
    error=st.sampled_from([None, "exit 1"]),
    pid=st.just(9),
)
statuses = st.builds(
    ServerStatus,
    lifecycle=st.none() | lifecycles,
    report=st.none() | reports,
    tools=listings,
    tools_generation=st.integers(1, 2),
)
natives = st.lists(st.sampled_from(["n", "m", "zz"]), unique=True).map(
    lambda names: [NativeTool(name, "ours", {"type": "object"}, print) for name in names]
)


@frozen
class World:
    state: ConfigState
    statuses: dict[str, ServerStatus]
    natives: list[NativeTool]
    budget: Budget


worlds = st.builds(
    World,
    st.builds(
        ConfigState,
        st.integers(0, 3),
        st.lists(entries, max_size=5, unique_by=lambda e: e.name).map(Config),
        st.sampled_from([None, "bad"]),
    ),
    st.fixed_dictionaries({}, optional=dict.fromkeys(SERVERS, statuses)),
    natives,
    st.builds(Budget, st.none() | st.integers(0, 12)),
)


def shown(world: World, previous: Snapshot | None = None, memo: Memo | None = None) -> Snapshot:
    return project(world.state, world.statuses, world.natives, world.budget, previous, memo)


@given(worlds)
def test_every_tool_a_server_advertised_is_in_the_model_in_its_order_and_cannot_vanish(world: World) -> None:
    snap = shown(world)
    assert [server.name for server in snap.model.servers] == [entry.name for entry in world.state.config.servers]
    for server, entry in zip(snap.model.servers, world.state.config.servers, strict=True):
        listed = world.statuses.get(entry.name, ServerStatus()).tools
        names = [tool.bare for tool in server.tools]
        assert names == (list(dict.fromkeys(entry.exclude)) if listed is None else [tool.bare for tool in listed])
        for tool in server.tools:
            assert (tool.reason is None) == (tool.verdict == "on_wire")


@given(worlds)
def test_enabled_is_what_the_lists_say(world: World) -> None:
    for server, entry in zip(shown(world).model.servers, world.state.config.servers, strict=True):
        for tool in server.tools:
            included = entry.include is None or tool.bare in entry.include
            assert tool.enabled == (included and tool.bare not in entry.exclude)


def kept_order(world: World, snap: Snapshot) -> list[tuple[str, str]]:
    """The rules restated: what would be sent without a budget, the first kept first."""
    keyed = []
    for place, (server, entry) in enumerate(zip(snap.model.servers, world.state.config.servers, strict=True)):
        priority = entry.priority if entry.priority == entry.priority else 0
        for tool in world.statuses.get(entry.name, ServerStatus()).tools or ():
            if entry.allows(tool.bare) and server.phase not in DOWN and fits(entry.name, tool):
                key = (tool.bare not in entry.pin, -priority, place, tool.bare)
                keyed.append((key, (entry.name, tool.bare)))
    return [ref for _, ref in sorted(keyed)]


@settings(max_examples=150)
@given(worlds)
def test_verdicts_budget_and_catalog_are_what_the_rules_say(world: World) -> None:
    snap = shown(world)
    order = kept_order(world, snap)
    cap = world.budget.tools
    fit = len(order) if cap is None else max(0, cap - len(world.natives))
    kept, lost = order[:fit], order[fit:]
    assert [(ref.server, ref.bare) for ref in snap.catalog.trimmed] == lost[::-1]
    assert [tool.wire_name for tool in snap.catalog.tools[: len(world.natives)]] == [n.name for n in world.natives]
    sent = snap.catalog.tools[len(world.natives) :]
    assert {(tool.server, tool.bare) for tool in sent} == set(kept)
    names = [tool.wire_name for tool in sent]
    assert names == sorted(set(names))
    assert snap.model.wanted == len(world.natives) + len(order)
    assert snap.model.trimmed_count() == len(lost)
    assert snap.model.over_budget() == (cap is not None and snap.model.wanted > cap)
    for server, entry in zip(snap.model.servers, world.state.config.servers, strict=True):
        defs = {tool.bare: tool for tool in world.statuses.get(entry.name, ServerStatus()).tools or ()}
        for tool in server.tools:
            ref = (server.name, tool.bare)
            if not tool.enabled:
                expected = "excluded"
            elif server.phase in DOWN:
                expected = "server_down"
            elif not fits(server.name, defs[tool.bare]):
                expected = "quarantined"
            else:
                expected = "on_wire" if ref in kept else "over_budget"
            assert tool.verdict == expected
            wired = snap.catalog.tool(tool.wire_name)
            assert (wired is not None) == (tool.verdict == "on_wire")
            if wired is not None:
                assert (wired.server, wired.bare, wired.input_schema) == (*ref, tool.input_schema)


@given(worlds)
def test_phases_and_errors_agree_with_each_other(world: World) -> None:
    for server, entry in zip(shown(world).model.servers, world.state.config.servers, strict=True):
        if server.phase == "ready":
            assert server.connected
        if server.connected and server.phase != "invalid" and entry.error is None:
            assert server.error is None
        if not server.connected:
            assert (server.pid, server.protocol_version) == (None, None)
            assert server.list_state != "current"
        assert (server.phase == "invalid") == (entry.error is not None and entry.trusted and not entry.disabled)


@settings(max_examples=60)
@given(st.lists(worlds, min_size=1, max_size=5), st.data())
def test_with_or_without_a_memo_the_projection_is_equal(chain: list[World], data: st.DataObject) -> None:
    """Through any sequence of worlds, each also in part the one before: what a real sequence looks like."""
    memo = Memo()
    previous: Snapshot | None = None
    world = chain[0]
    for after in chain:
        which = data.draw(st.sampled_from(["all", "state", "statuses", "part", "part", "budget", "copy"]))
        if which == "all":
            world = after
        elif which == "state":
            world = evolve(world, state=after.state)
        elif which == "statuses":
            world = evolve(world, statuses={**world.statuses, **after.statuses})
        elif which == "part":  # one part of each status, the others the same objects
            part = data.draw(st.sampled_from(["lifecycle", "report", "tools", "tools_generation"]))
            given_ = {
                name: evolve(status, **{part: getattr(after.statuses.get(name, status), part)})
                for name, status in world.statuses.items()
            }
            world = evolve(world, statuses=given_)
        elif which == "budget":
            world = evolve(world, budget=after.budget)
        else:  # equal values, other objects
            config = Config(tuple(evolve(entry) for entry in world.state.config.servers))
            copies = {
                name: evolve(status, tools=None if status.tools is None else tuple(evolve(t) for t in status.tools))
                for name, status in world.statuses.items()
            }
            world = evolve(world, state=evolve(world.state, config=config), statuses=copies)
        with_memo = shown(world, previous, memo)
        without = shown(world, previous)
        assert with_memo == without
        assert with_memo.catalog.digest == without.catalog.digest
        assert bytes_of(with_memo) == bytes_of(without)
        assert (with_memo is previous) == (without is previous)
        alone = shown(world)
        assert (with_memo.model, with_memo.catalog.tools) == (alone.model, alone.catalog.tools)
        assert with_memo.catalog.digest == alone.catalog.digest
        assert with_memo.catalog.trimmed == alone.catalog.trimmed
        if previous is not None:
            assert with_memo.version == previous.version + (with_memo is not previous)
            same = with_memo.catalog.digest == previous.catalog.digest
            assert same == (bytes_of(with_memo) == bytes_of(previous))
            if same:
                assert with_memo.catalog.tools is previous.catalog.tools
            if same and with_memo.catalog.trimmed == previous.catalog.trimmed:
                assert with_memo.catalog is previous.catalog
        previous = with_memo


def bytes_of(snap: Snapshot) -> bytes:
    rows = [[t.wire_name, t.server, t.bare, t.title, t.description, t.input_schema] for t in snap.catalog.tools]
    return json.dumps(rows, sort_keys=True).encode()


@given(worlds)
def test_the_projection_is_deterministic(world: World) -> None:
    assert shown(world) == shown(world)
    assert shown(world, shown(world)).version == 1


anything: st.SearchStrategy[Any] = st.none() | st.integers() | st.text(max_size=3) | st.lists(st.integers(), max_size=2)


@given(worlds, st.data())
def test_nonsense_anywhere_harms_only_the_server_it_is_in(world: World, data: st.DataObject) -> None:
    victim = ServerEntry("victim", command="run")
    field = data.draw(
        st.sampled_from(["command", "args", "url", "exclude", "include", "pin", "priority", "error", "line"])
    )
    object.__setattr__(victim, field, data.draw(anything))
    tool = ToolDef("t")
    object.__setattr__(
        tool, data.draw(st.sampled_from(["bare", "title", "description", "input_schema"])), data.draw(anything)
    )
    status = ServerStatus(
        lifecycle=Lifecycle(stage="running", generation=1),
        report=Report(generation=1, connected=True, ready=True),
        tools=(tool, ToolDef("good")),
        tools_generation=1,
    )
    object.__setattr__(
        status, data.draw(st.sampled_from(["tools_generation", "lifecycle", "report"])), data.draw(anything)
    )
    config = Config((*world.state.config.servers, victim))
    harmed = project(
        evolve(world.state, config=config), {**world.statuses, "victim": status}, world.natives, Budget(None)
    )
    unharmed = project(world.state, world.statuses, world.natives, Budget(None))
    assert harmed.model.servers[:-1] == unharmed.model.servers
    assert harmed.model.servers[-1].name == "victim"
