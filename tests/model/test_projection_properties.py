"""The projection against a plain restatement of its rules, on drawn worlds."""

from __future__ import annotations

import json
import math
from typing import Any

from attrs import evolve, frozen
from hypothesis import given, settings
from hypothesis import strategies as st
from playbill.actors.model.budget import Budget
from playbill.actors.model.config import Config, ConfigState, ServerEntry
from playbill.actors.model.lens import EVERYTHING, Item, Lens
from playbill.actors.model.naming import wire_name
from playbill.actors.model.native import NativeTool
from playbill.actors.model.profile import PORTABLE, PROFILES, Profile
from playbill.actors.model.projection import Memo, project
from playbill.actors.model.schema.fit import fit
from playbill.actors.model.snapshot import Snapshot
from playbill.actors.model.status import Lifecycle, Report, ServerStatus, ToolDef
from playbill.actors.model.wire import ToolRef, WireTool


def fits(server: str, tool: ToolDef, profile: Profile) -> bool:
    return fit(tool, wire_name(server, tool.bare), profile).flaw is None


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


def by_length(text: str) -> int:
    return len(text) // 10


def odd_count(text: str) -> Any:
    """A tokenizer that raises for some texts, and says nonsense of others."""
    return {0: 1 // 0 if len(text) % 2 else -1, 1: "many", 2: True, 3: 7, 4: 0}[len(text) % 5]


budgets = st.builds(
    Budget,
    st.none() | st.integers(0, 12),
    st.none() | st.none() | st.integers(0, 250),
    st.sampled_from([None, None, by_length, odd_count]),
)
profiles = st.sampled_from([PORTABLE, PORTABLE, PROFILES["mcp"], evolve(PROFILES["mcp"], name="tiny", max_tools=4)])
items: st.SearchStrategy[Item] = (
    st.sampled_from([*SERVERS, "ghost", "n", "a/t", "é/é", "a__b/t", "a/u", "t"])
    | st.builds(ToolRef, server_names, bares)
    | st.builds(wire_name, server_names, bares)
)
lenses = st.just(EVERYTHING) | st.builds(
    Lens, st.lists(items, max_size=3), st.none() | st.none() | st.lists(items, max_size=4)
)


@frozen
class World:
    state: ConfigState
    statuses: dict[str, ServerStatus]
    natives: list[NativeTool]
    budget: Budget
    profile: Profile = PORTABLE
    lens: Lens = EVERYTHING


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
    budgets,
    profiles,
    lenses,
)


def shown(world: World, previous: Snapshot | None = None, memo: Memo | None = None) -> Snapshot:
    return project(
        world.state,
        world.statuses,
        world.natives,
        world.budget,
        previous,
        memo,
        profile=world.profile,
        lens=world.lens,
    )


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


def hidden(lens: Lens, server: str, bare: str) -> bool:
    """The rules of a view restated."""
    names: set[Item] = {server, f"{server}/{bare}", wire_name(server, bare), ToolRef(server, bare)}
    return bool(names & lens.exclude) or (lens.include is not None and not names & lens.include)


def cost_of(wire: WireTool, budget: Budget) -> int:
    """The rules of counting restated."""
    parts = {"name": wire.wire_name, "description": wire.description or "", "input_schema": wire.input_schema}
    text = json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False)
    try:
        counted = None if budget.count is None else budget.count(text)
    except ZeroDivisionError:
        counted = None
    return counted if type(counted) is int and counted >= 0 else math.ceil(len(text.encode()) / 4)


def as_sent(server: str, tool: ToolDef, profile: Profile) -> WireTool:
    name = wire_name(server, tool.bare)
    fitted = fit(tool, name, profile)
    return WireTool(
        wire_name=name,
        server=server,
        bare=tool.bare,
        title=tool.title,
        description=fitted.description,
        input_schema=fitted.input_schema,
    )


def kept_order(world: World, snap: Snapshot) -> list[WireTool]:
    """The rules restated: what would be sent without a budget, the first kept first."""
    keyed = []
    for place, (server, entry) in enumerate(zip(snap.model.servers, world.state.config.servers, strict=True)):
        priority = entry.priority if entry.priority == entry.priority else 0
        for tool in world.statuses.get(entry.name, ServerStatus()).tools or ():
            seen = not hidden(world.lens, entry.name, tool.bare) and server.phase not in DOWN
            if entry.allows(tool.bare) and seen and fits(entry.name, tool, world.profile):
                key = (tool.bare not in entry.pin, -priority, place, tool.bare)
                keyed.append((key, as_sent(entry.name, tool, world.profile)))
    return [tool for _, tool in sorted(keyed, key=lambda each: each[0])]


def cut(world: World, order: list[WireTool], natives: list[WireTool]) -> tuple[list[WireTool], list[WireTool]]:
    """The rules restated: who is kept, and who is not, the first to go first."""
    caps = [cap for cap in (world.budget.tools, world.profile.max_tools) if cap is not None]
    slots = max(0, min(caps) - len(natives)) if caps else len(order)
    if world.budget.tokens is None:
        return order[:slots], order[slots:][::-1]
    room = max(0, world.budget.tokens - sum(cost_of(tool, world.budget) for tool in natives))
    huge = [tool for tool in order if cost_of(tool, world.budget) > room]
    left = [tool for tool in order if tool not in huge]
    fit = 0
    while fit < min(slots, len(left)) and sum(cost_of(tool, world.budget) for tool in left[: fit + 1]) <= room:
        fit += 1
    return left[:fit], huge[::-1] + left[fit:][::-1]


@settings(max_examples=200)
@given(worlds)
def test_verdicts_budget_and_catalog_are_what_the_rules_say(world: World) -> None:
    snap = shown(world)
    order = kept_order(world, snap)
    natives = [native.name for native in world.natives if native.name not in world.lens.exclude]
    sent = list(snap.catalog.tools)
    assert [tool.wire_name for tool in sent[: len(natives)]] == natives
    kept, lost = cut(world, order, sent[: len(natives)])
    assert [(ref.server, ref.bare) for ref in snap.catalog.trimmed] == [(tool.server, tool.bare) for tool in lost]
    mcp = sent[len(natives) :]
    assert {(tool.server, tool.bare) for tool in mcp} == {(tool.server, tool.bare) for tool in kept}
    names = [tool.wire_name for tool in mcp]
    assert names == sorted(set(names))
    model, budget = snap.model, world.budget
    assert model.wanted == len(natives) + len(order)
    assert model.trimmed_count() == len(lost)
    caps = [cap for cap in (budget.tools, world.profile.max_tools) if cap is not None]
    assert model.budget == min(caps, default=None)
    wanted = sum(cost_of(tool, budget) for tool in [*sent[: len(natives)], *order])
    assert model.tokens == (None if budget.tokens is None else wanted)
    too_long = budget.tokens is not None and wanted > budget.tokens
    assert model.over_budget() == ((bool(caps) and model.wanted > min(caps)) or too_long)
    assert (model.budget_warning() is None) == (not model.over_budget())
    assert not lost or model.over_budget()
    for server, entry in zip(model.servers, world.state.config.servers, strict=True):
        defs = {tool.bare: tool for tool in world.statuses.get(entry.name, ServerStatus()).tools or ()}
        for tool in server.tools:
            ref = (server.name, tool.bare)
            if not tool.enabled or (tool.bare in defs and hidden(world.lens, *ref)):
                expected = "excluded"
            elif server.phase in DOWN:
                expected = "server_down"
            elif not fits(server.name, defs[tool.bare], world.profile):
                expected = "quarantined"
            else:
                expected = "over_budget" if ToolRef(*ref) in snap.catalog.trimmed else "on_wire"
            assert tool.verdict == expected
            wired = snap.catalog.tool(tool.wire_name)
            assert (wired is not None) == (tool.verdict == "on_wire")
            if wired is not None:
                assert (wired.server, wired.bare) == ref
                assert wired == as_sent(server.name, defs[tool.bare], world.profile)


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
        assert (server.phase == "invalid") == (entry.error is not None and not entry.disabled)


@settings(max_examples=60)
@given(st.lists(worlds, min_size=1, max_size=5), st.data())
def test_with_or_without_a_memo_the_projection_is_equal(chain: list[World], data: st.DataObject) -> None:
    """Through any sequence of worlds, each also in part the one before: what a real sequence looks like."""
    memo, lender = Memo(), Memo()
    previous: Snapshot | None = None
    world = chain[0]
    for after in chain:
        which = data.draw(
            st.sampled_from(["all", "state", "statuses", "part", "part", "budget", "lens", "profile", "copy"])
        )
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
        elif which == "lens":
            world = evolve(world, lens=after.lens)
        elif which == "profile":
            world = evolve(world, profile=after.profile)
        else:  # equal values, other objects
            config = Config(tuple(evolve(entry) for entry in world.state.config.servers))
            copies = {
                name: evolve(status, tools=None if status.tools is None else tuple(evolve(t) for t in status.tools))
                for name, status in world.statuses.items()
            }
            world = evolve(world, state=evolve(world.state, config=config), statuses=copies)
        if data.draw(st.booleans()):  # what a view does: it borrows the rows that somebody else has just made
            lent = evolve(world, budget=after.budget, lens=after.lens, profile=after.profile)
            shown(lent, None, lender)
            memo.borrowed = lender.made
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
            assert with_memo.catalog.profile == world.profile
            victims = with_memo.catalog.trimmed == previous.catalog.trimmed
            if same and victims and world.profile == previous.catalog.profile:
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
