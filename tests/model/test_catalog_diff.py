"""`Catalog.diff`: what changed from one catalog to another, as a value and as a sentence."""

from __future__ import annotations

import random
from typing import Any

from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from playbill.actors.model.budget import Budget
from playbill.actors.model.catalog import Catalog
from playbill.actors.model.change import CatalogDiff, catalog_diff
from playbill.actors.model.config import Config, ConfigState, ServerEntry
from playbill.actors.model.native import NativeTool
from playbill.actors.model.profile import PROFILES
from playbill.actors.model.projection import project
from playbill.actors.model.schema.sound import canonical
from playbill.actors.model.status import Lifecycle, Report, ServerStatus, ToolDef
from playbill.actors.model.wire import ToolRef, WireTool

bares = st.sampled_from(["a", "b", "c", "d", "e"])
schemas: st.SearchStrategy[Any] = st.sampled_from(
    [{"type": "object"}, {"type": "object", "default": 1}, {"type": "object", "default": True}]
)
tool_lists = st.lists(st.builds(ToolDef, bares, input_schema=schemas), max_size=5, unique_by=lambda tool: tool.bare)
listings = st.fixed_dictionaries({"one": tool_lists, "two": tool_lists})
natives = st.lists(st.sampled_from(["n", "m"]), unique=True)
catalogs = st.tuples(listings, natives, st.integers(0, 8))


def catalog(drawn: tuple[dict[str, list[ToolDef]], list[str], int]) -> Catalog:
    tools, own, budget = drawn
    statuses = {
        name: ServerStatus(
            lifecycle=Lifecycle(stage="running", generation=1),
            report=Report(generation=1, connected=True, ready=True),
            tools=tuple(listed),
            tools_generation=1,
        )
        for name, listed in tools.items()
    }
    state = ConfigState(1, Config([ServerEntry(name, command="run") for name in tools]))
    given_ = [NativeTool(name, "ours", {"type": "object"}, print) for name in own]
    return project(state, statuses, given_, Budget(budget), profile=PROFILES["mcp"]).catalog


def as_bytes(tool: WireTool) -> bytes:
    return canonical([tool.wire_name, tool.server, tool.bare, tool.title, tool.description, tool.input_schema])


@given(catalogs, catalogs)
def test_a_difference_leads_from_the_one_to_the_other(one: Any, other: Any) -> None:
    before, after = catalog(one), catalog(other)
    diff = before.diff(after)
    old = {tool.wire_name: as_bytes(tool) for tool in before.tools}
    new = {tool.wire_name: as_bytes(tool) for tool in after.tools}
    moved = {name: text for name, text in old.items() if name not in diff.removed}
    assert set(diff.removed) <= set(old)
    assert not set(diff.added) & set(old)
    moved |= {name: new[name] for name in (*diff.added, *diff.changed)}
    assert moved == new
    assert all(old[name] != new[name] for name in diff.changed)
    victims = (set(before.trimmed) - set(diff.untrimmed)) | set(diff.trimmed_now)
    assert victims == set(after.trimmed)
    same = before.digest == after.digest and set(before.trimmed) == set(after.trimmed)
    assert bool(diff) == (not same)
    assert (str(diff) == "nothing on the wire changed") == same
    back = after.diff(before)
    assert (set(back.added), set(back.removed), set(back.changed)) == (
        set(diff.removed),
        set(diff.added),
        set(diff.changed),
    )
    assert (set(back.trimmed_now), set(back.untrimmed)) == (set(diff.untrimmed), set(diff.trimmed_now))
    assert not before.diff(before)


@given(catalogs, catalogs, st.randoms(use_true_random=False))
def test_the_order_of_either_list_does_not_matter(one: Any, other: Any, rng: random.Random) -> None:
    before, after = catalog(one), catalog(other)
    plain = catalog_diff(before.tools, after.tools)
    mixed = catalog_diff(rng.sample(before.tools, len(before.tools)), rng.sample(after.tools, len(after.tools)))
    for name in ("added", "removed", "changed"):
        assert sorted(getattr(plain, name)) == sorted(getattr(mixed, name))


def test_equal_for_python_is_not_equal_for_a_provider() -> None:
    one = catalog(({"one": [ToolDef("a", input_schema={"type": "object", "default": 1})], "two": []}, [], 8))
    two = catalog(({"one": [ToolDef("a", input_schema={"type": "object", "default": True})], "two": []}, [], 8))
    assert one.diff(two).changed == ("mcp__one__a",)


def test_native_tools_in_another_order_are_a_difference() -> None:
    one, two = catalog(({"one": [], "two": []}, ["n", "m"], 8)), catalog(({"one": [], "two": []}, ["m", "n"], 8))
    assert one.diff(two) == CatalogDiff(reordered=True)


def test_it_says_what_changed_in_a_sentence() -> None:
    diff = CatalogDiff(
        added=("mcp__a__x",),
        removed=("mcp__a__y", "mcp__b__z"),
        changed=("mcp__a__w",),
        trimmed_now=(ToolRef("b", "z"),),
        untrimmed=(ToolRef("a", "x"), ToolRef("c", "q")),
    )
    assert str(diff) == (
        "1 more tool is sent (mcp__a__x), 1 withdrawn (mcp__a__y), 1 changed (mcp__a__w), 1 trimmed (mcp__b__z) "
        "and 1 no longer wanted, and so not trimmed (c/q)"
    )
    many = evolve(CatalogDiff(), added=tuple(f"mcp__a__{number}" for number in range(9)))
    assert many.sentence(preview=True) == (
        "9 more tools would be sent (mcp__a__0, mcp__a__1, mcp__a__2, mcp__a__3, mcp__a__4 and 4 more)"
    )


def test_its_sentence_is_one_line_of_bounded_length_whatever_servers_call_themselves() -> None:
    odd = ToolRef("a\n\x1b[2J" + "x" * 10_000, "t\r" + "y" * 10_000)
    own = odd.server
    for told in map(
        str,
        [
            CatalogDiff(untrimmed=(odd,)),
            CatalogDiff(trimmed_now=(odd,)),
            CatalogDiff(added=(own,)),
            CatalogDiff(removed=(own,)),
            CatalogDiff(changed=(own,)),
        ],
    ):
        assert told.isprintable()
        assert len(told) < 500
    assert str(CatalogDiff(untrimmed=(ToolRef("a", "t"),))) == "1 no longer wanted, and so not trimmed (a/t)"
