"""What the budget does to a whole model: sharing, tokens, the profile's own limit, and the words for a person."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest
from attrs import evolve
from playbill.actors.model.budget import Budget, token_cost
from playbill.actors.model.config import Config, ConfigState, ServerEntry
from playbill.actors.model.lens import Lens
from playbill.actors.model.native import NativeTool
from playbill.actors.model.profile import PORTABLE, PROFILES, Profile
from playbill.actors.model.projection import Memo, project
from playbill.actors.model.seen import Seen
from playbill.actors.model.snapshot import Snapshot
from playbill.actors.model.status import Lifecycle, Report, ServerStatus, ToolDef
from playbill.actors.model.wire import ToolRef

MCP = PROFILES["mcp"]
NATIVE = NativeTool("own", "ours", {"type": "object"}, print)


def ready(*tools: str | ToolDef) -> ServerStatus:
    return ServerStatus(
        lifecycle=Lifecycle(stage="running", generation=1),
        report=Report(generation=1, connected=True, ready=True),
        tools=tuple(ToolDef(t) if isinstance(t, str) else t for t in tools),
        tools_generation=1,
    )


def shown(
    tools: dict[str, Iterable[str | ToolDef]],
    budget: Budget,
    natives: Iterable[NativeTool] = (),
    profile: Profile = MCP,
    memo: Memo | None = None,
    **keys: dict[str, Any],
) -> Snapshot:
    entries = [ServerEntry(name, command="run", **keys.get(name, {})) for name in tools]
    statuses = {name: ready(*each) for name, each in tools.items()}
    return project(ConfigState(1, Config(entries)), statuses, list(natives), budget, None, memo, profile=profile)


def numbered(count: int) -> list[str]:
    return [f"t{number:03}" for number in range(count)]


def on_wire(snap: Snapshot) -> dict[str, int]:
    counts: dict[str, int] = {}
    for tool in snap.catalog.tools:
        counts[tool.server or ""] = counts.get(tool.server or "", 0) + 1
    return counts


# --- sharing


def test_b066_a_server_of_300_tools_does_not_starve_the_others_nor_the_programs_own() -> None:
    """One server with 300 tools under a budget of 100: who has a say is told, and can be kept by priority or by a pin."""
    tools = {"big": numbered(300), "mid": numbered(91), "small": ["a", "b"]}
    natives = [evolve(NATIVE, name=f"own_{number}") for number in range(10)]
    plain = shown(tools, Budget(100), natives)
    assert on_wire(plain) == {"": 10, "big": 90}
    assert plain.model.budget_warning() == (
        "403 tools over the budget of 100 — 303 MCP tools were dropped from this session; disable some to make room"
    )
    assert plain.model.budget_details() == "mostly from big (300), mid (91), small (2)"
    lower = shown(tools, Budget(103), natives, big={"priority": -1})
    assert on_wire(lower) == {"": 10, "mid": 91, "small": 2}
    higher = shown(tools, Budget(100), natives, small={"priority": 1}, mid={"pin": ["t090"]})
    assert on_wire(higher) == {"": 10, "big": 87, "mid": 1, "small": 2}


def test_the_largest_servers_are_told_by_what_they_want_on_the_wire() -> None:
    tools = {"off": numbered(50), "a": numbered(5), "b": numbered(7), "c": numbered(7), "none": []}
    model = shown(tools, Budget(3), off={"disabled": True}, b={"exclude": ["t000", "t001"]}).model
    assert model.largest() == (("c", 7), ("a", 5), ("b", 5))
    assert model.largest(1) == (("c", 7),)
    assert shown(tools, Budget(None)).model.budget_details() is None


# --- tokens


def cost(snap: Snapshot, server: str, bare: str) -> int:
    tool = snap.model.tool(server, bare)
    assert tool is not None
    (wire,) = [each for each in snap.catalog.tools if each.wire_name == tool.wire_name]
    return token_cost(wire, None)


def test_a_cap_on_tokens_trims_from_the_end_of_the_same_order() -> None:
    tools = {"a": ["x", "y"], "b": ["p", "q"]}
    full = shown(tools, Budget(None, 10_000), [NATIVE], b={"pin": ["q"]})
    assert full.catalog.trimmed == ()
    each = cost(full, "a", "x")
    own = token_cost(full.catalog.tools[0], None)
    assert full.model.tokens == own + 4 * each
    snap = shown(tools, Budget(None, own + 2 * each), [NATIVE], b={"pin": ["q"]})
    assert snap.catalog.trimmed == (ToolRef("b", "p"), ToolRef("a", "y"))
    cut = snap.model.tool("a", "y")
    assert cut is not None
    assert (cut.verdict, cut.reason) == ("over_budget", f"over the budget of {own + 2 * each} tokens")
    assert snap.model.budget_warning() == (
        f"{own + 4 * each} tokens of tools over the budget of {own + 2 * each} — 2 MCP tools were dropped from this "
        "session; disable some to make room"
    )
    assert snap.model.budget_details() == "mostly from a (2), b (2)"


def test_a_tool_too_large_for_the_room_is_dropped_first_alone_and_says_so() -> None:
    huge = ToolDef("a_huge", description="x" * 4000)
    small = shown({"a": ["x"]}, Budget(None, 1000))
    each = cost(small, "a", "x")
    snap = shown({"a": [huge, "x", "y"], "b": ["z"]}, Budget(None, 3 * each), a={"pin": ["a_huge"]})
    assert snap.catalog.trimmed == (ToolRef("a", "a_huge"),)
    assert on_wire(snap) == {"a": 2, "b": 1}
    told = snap.model.tool("a", "a_huge")
    assert told is not None
    assert told.reason == (f"alone it has {token_cost_of(huge)} tokens, more than the budget of {3 * each} tokens")
    assert snap.model.cut_by == "tokens"
    with_native = shown({"a": [huge, "x"]}, Budget(None, 3 * each), [NATIVE])
    told = with_native.model.tool("a", "a_huge")
    assert told is not None
    assert "that native tools leave of" in str(told.reason)
    assert with_native.catalog.trimmed == (ToolRef("a", "a_huge"),)


def test_of_tools_too_large_the_lowest_goes_first() -> None:
    huge = [ToolDef(f"huge_{number}", description="x" * 4000) for number in range(2)]
    tools = {"a": [*huge, "x"], "b": [*huge, "y"], "c": huge}
    snap = shown(tools, Budget(None, 500), b={"pin": ["huge_1"]}, c={"priority": 1})
    assert snap.catalog.trimmed == (
        ToolRef("b", "huge_0"),
        ToolRef("a", "huge_1"),
        ToolRef("a", "huge_0"),
        ToolRef("c", "huge_1"),
        ToolRef("c", "huge_0"),
        ToolRef("b", "huge_1"),
    )
    assert on_wire(snap) == {"a": 1, "b": 1}


def token_cost_of(tool: ToolDef) -> int:
    snap = shown({"a": [tool]}, Budget(None, 100_000))
    return token_cost(snap.catalog.tools[0], None)


def test_native_tools_ship_and_count_also_when_they_alone_are_over_the_budget() -> None:
    snap = shown({"a": ["x"]}, Budget(None, 1), [NATIVE])
    assert on_wire(snap) == {"": 1}
    told = snap.model.tool("a", "x")
    assert told is not None
    assert told.reason == "native tools alone fill the budget of 1 tokens"
    assert snap.model.over_budget()


def test_the_count_of_tools_is_told_when_it_is_what_cut() -> None:
    snap = shown({"a": numbered(5)}, Budget(2, 60))
    assert snap.model.cut_by == "tools"
    assert str(snap.model.budget_warning()).startswith("5 tools over the budget of 2 — 3 MCP tools")


def test_a_tokenizer_is_asked_once_for_each_tool_and_only_when_there_is_a_cap_on_tokens() -> None:
    asked: list[str] = []

    def count(text: str) -> int:
        asked.append(text)
        return 10

    memo = Memo()
    tools = {"a": [ToolDef("x"), ToolDef("y")]}
    shown(tools, Budget(None, None, count), [NATIVE], memo=memo)
    assert asked == []
    for tokens in (25, 15, 35):
        snap = shown(tools, Budget(None, tokens, count), [NATIVE], memo=memo)
        assert len(snap.catalog.tools) == tokens // 10
    assert len(asked) == len(set(asked)) == 3
    shown({"a": [ToolDef("x"), ToolDef("y")]}, Budget(None, 25, count), memo=memo)  # listed again, byte for byte
    assert len(asked) == 3


class Tokenizer:
    """One whose ``count`` is a new object at each mention, as any method is."""

    def __init__(self, tokens: int = 10) -> None:
        self.tokens = tokens
        self.asked: list[str] = []

    def count(self, text: str) -> int:
        self.asked.append(text)
        return self.tokens


def test_many_views_ask_each_tokenizer_once_for_each_tool() -> None:
    statuses = {"a": ready(*numbered(60)), "b": ready(*numbered(40))}
    state = ConfigState(1, Config([ServerEntry("a", command="run"), ServerEntry("b", command="run")]))
    tokenizers = [Tokenizer(), Tokenizer(20), Tokenizer(30)]
    lenses = [Lens(), Lens(exclude=["a/t001"]), Lens(include=["b"])]
    memo = Memo()
    budget = Budget(None, 500, tokenizers[0].count)
    snap = project(state, statuses, [NATIVE], budget, None, memo, profile=MCP)
    seen = Seen(
        snapshot=snap, state=state, statuses=statuses, natives=(NATIVE,), budget=budget, profile=MCP, rows=memo.made
    )
    views = [Memo() for _ in range(12)]
    for turn in range(3):
        for number, own in enumerate(views):
            # Read by turns, each with caps of its own; the method is named anew each time.
            given = Budget(None, 400 + 10 * number + turn, tokenizers[number % 3].count)
            lens = lenses[number // 3 % 3]
            shown_now = seen.project(budget=given, lens=lens, memo=own)
            assert shown_now == seen.project(budget=given, lens=lens)
    for tokenizer in tokenizers:
        assert memo.made["a"].stock.sizes(tokenizer.count) is memo.made["a"].stock.sizes(tokenizer.count)
        of_tools = [text for text in tokenizer.asked if '"name":"own"' not in text]
        assert len(of_tools) == len(set(of_tools)) == 100


def test_a_tokenizer_that_cannot_be_compared_is_asked_all_the_same() -> None:
    class Odd:
        __hash__ = None  # type: ignore[assignment]

        def __eq__(self, other: object) -> bool:
            raise TypeError

        def __call__(self, text: str) -> int:
            return 10

    memo = Memo()
    for _ in range(2):
        assert on_wire(shown({"a": numbered(5)}, Budget(None, 25, Odd()), memo=memo)) == {"a": 2}


# --- the profile's own limit


@pytest.mark.parametrize("asked", [None, 200, 129])
@pytest.mark.parametrize("profile", ["portable", "openai"])
def test_no_budget_lets_more_tools_through_than_the_profile_takes(asked: int | None, profile: str) -> None:
    snap = shown({"a": numbered(140)}, Budget(asked), [NATIVE], PROFILES[profile])
    limit = PROFILES[profile].max_tools
    assert limit is not None
    assert len(snap.catalog.tools) == limit
    assert (snap.model.budget, snap.model.budget_asked, snap.model.limit) == (limit, asked, limit)
    assert snap.model.budget_warning() == (
        f"141 tools over the budget of {limit} — {141 - limit} MCP tools were dropped from this session; "
        "disable some to make room"
    )
    cut = snap.model.tool("a", "t139")
    assert cut is not None
    assert cut.reason == f"over the {limit} tools that profile {profile!r} takes"


def test_a_profile_without_a_limit_cuts_nothing() -> None:
    snap = shown({"a": numbered(300)}, Budget(None), profile=MCP)
    assert len(snap.catalog.tools) == 300
    assert (snap.model.budget, snap.model.limit, snap.model.limit_warning()) == (None, None, None)


@pytest.mark.parametrize(
    ("tools", "asked", "warning"),
    [
        (115, 128, None),
        (116, 128, "116 of the 128 tools that profile 'openai' takes: 12 more fit"),
        (118, None, "118 of the 128 tools that profile 'openai' takes: 10 more fit"),
        (128, None, "128 of the 128 tools that profile 'openai' takes: no more fit"),
        (500, None, "128 of the 128 tools that profile 'openai' takes: no more fit"),
        (500, 100, None),
        (3, 200, "the budget of 200 is above the 128 tools that profile 'openai' takes: 128 are sent at most"),
    ],
)
def test_the_profiles_limit_is_warned_of_before_it_is_reached(
    tools: int, asked: int | None, warning: str | None
) -> None:
    limited = evolve(PROFILES["openai"], max_tools=128)
    assert shown({"a": numbered(tools)}, Budget(asked), profile=limited).model.limit_warning() == warning


def test_native_tools_alone_over_the_limit_are_warned_of() -> None:
    few = evolve(PORTABLE, name="few", max_tools=1)
    warning = shown({}, Budget(None), [NATIVE, evolve(NATIVE, name="two")], few).model.limit_warning()
    assert warning == "2 native tools are more than the 1 tools that profile 'few' takes: it will refuse every request"


def test_what_is_too_large_follows_the_room_that_native_tools_leave() -> None:
    memo = Memo()
    state = ConfigState(1, Config([ServerEntry("a", command="run")]))
    huge = ToolDef("huge", description="x" * 400)
    budget = Budget(None, token_cost_of(huge) + 10)  # one native tool has more than 10, and less than 20
    statuses = {"a": ready(huge, ToolDef("large", description="x" * 360), "small")}
    natives = [evolve(NATIVE, name=f"own_{number}") for number in range(3)]
    dropped = []
    for given in (natives, [], natives[:1], natives):
        snap = project(state, statuses, given, budget, None, memo, profile=MCP)
        assert snap == project(state, statuses, given, budget, profile=MCP)
        dropped.append([ref.bare for ref in snap.catalog.trimmed])
    assert dropped[0] == dropped[3] != dropped[1]
    assert dropped[2] not in (dropped[0], dropped[1])
