from __future__ import annotations

import math
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playbill.actors.model.budget import (
    BYTES_PER_TOKEN,
    Budget,
    allot,
    as_budget,
    cap_in_force,
    counted_text,
    server_order,
    slots,
    token_cost,
)
from playbill.actors.model.wire import WireTool

counts = st.lists(st.integers(0, 60), max_size=12)


@given(counts, st.none() | st.integers(0, 300))
def test_slots_are_given_in_order_until_there_are_none(lists: list[int], free: int | None) -> None:
    kept = allot(lists, free).kept
    assert len(kept) == len(lists)
    assert all(0 <= k <= c for k, c in zip(kept, lists, strict=True))
    assert sum(kept) == (sum(lists) if free is None else min(free, sum(lists)))
    cut = [i for i, (k, c) in enumerate(zip(kept, lists, strict=True)) if k < c]
    if cut:
        assert not any(kept[cut[0] + 1 :])


@given(st.lists(st.integers(-3, 3)))
def test_servers_are_ordered_by_priority_then_by_place(priorities: list[float]) -> None:
    order = server_order(priorities)
    assert order == sorted(range(len(priorities)), key=lambda i: (-priorities[i], i))


def test_a_priority_that_is_no_number_counts_as_zero() -> None:
    assert server_order([float("nan"), 1, 0, -1, float("inf"), float("-inf")]) == [4, 1, 0, 2, 3, 5]


def test_native_tools_use_up_slots_first() -> None:
    assert [slots(10, n) for n in (0, 4, 10, 11)] == [10, 6, 0, 0]
    assert slots(None, 5) is None


def test_a_negative_budget_is_refused() -> None:
    with pytest.raises(ValueError, match="0 or more"):
        Budget(-1)


@given(counts, st.none() | st.integers(0, 300), st.integers(0, 900), st.data())
def test_a_cut_keeps_the_longest_beginning_that_both_caps_allow(
    lists: list[int], free: int | None, room: int, data: st.DataObject
) -> None:
    costs = [data.draw(st.lists(st.integers(0, 40), min_size=count, max_size=count)) for count in lists]
    sums = [list(accumulate(each)) for each in costs]
    cut = allot(lists, free, sums, room)
    flat = [cost for each in costs for cost in each]
    kept = sum(cut.kept)
    assert kept == sum(len(each[:k]) for each, k in zip(costs, cut.kept, strict=True))
    begun = [k for k, count in zip(cut.kept, lists, strict=True) if k < count]
    assert not any(begun[1:])  # one list at most is cut in two, and nothing behind it is kept
    assert sum(flat[:kept]) <= room
    assert free is None or kept <= free
    if kept < len(flat):
        too_many, too_long = kept == free, sum(flat[: kept + 1]) > room
        assert too_many or too_long
        assert cut.bound == ("tools" if too_many else "tokens")
    else:
        assert cut.bound is None


@pytest.mark.parametrize(
    ("asked", "limit", "cap"), [(100, 128, 100), (200, 128, 128), (None, 128, 128), (5, None, 5), (None, None, None)]
)
def test_the_lower_cap_is_in_force(asked: int | None, limit: int | None, cap: int | None) -> None:
    assert cap_in_force(Budget(asked), limit) == cap


WIRE = WireTool(wire_name="mcp__a__é", server="a", bare="é", description="d", input_schema={"type": "object"})
TEXT = '{"description":"d","input_schema":{"type":"object"},"name":"mcp__a__é"}'


def test_tokens_are_counted_on_the_tools_json_text() -> None:
    assert counted_text(WIRE) == TEXT
    assert token_cost(WIRE, len) == len(TEXT)
    assert token_cost(WIRE, None) == math.ceil(len(TEXT.encode()) / BYTES_PER_TOKEN)


def _raises(text: str) -> int:
    raise RuntimeError(text)


@pytest.mark.parametrize(
    "count", [_raises, lambda text: -1, lambda text: "12", lambda text: 1.5, lambda text: None, lambda text: True]
)
def test_a_tokenizer_that_raises_or_says_nonsense_is_passed_over(count: Any) -> None:
    assert token_cost(WIRE, count) == token_cost(WIRE, None)


def test_the_estimate_is_of_bytes_so_that_text_that_is_not_english_costs_more() -> None:
    def cost(text: str) -> int:
        return token_cost(WireTool(wire_name="a", server=None, bare="a", description=text), None)

    assert cost("é" * 400) - cost("e" * 400) == 400 // BYTES_PER_TOKEN


def test_a_tokenizer_may_say_that_a_tool_costs_nothing() -> None:
    assert token_cost(WIRE, lambda text: 0) == 0


def test_what_has_no_json_has_tokens_all_the_same() -> None:
    odd = WireTool(wire_name="odd", server=None, bare="odd", input_schema={"type": "object", "x": float("nan")})
    assert token_cost(odd, None) > 0
    surrogate = WireTool(wire_name="odd", server=None, bare="odd", description="\udc80")
    assert token_cost(surrogate, None) > 0


def test_negative_tokens_are_refused() -> None:
    with pytest.raises(ValueError, match="0 or more tokens"):
        Budget(None, -1)


@pytest.mark.parametrize("value", [1.5, "5", True, False, math.nan, [], b"5"])
def test_what_is_no_whole_number_is_refused_where_it_is_written(value: Any) -> None:
    for make in (as_budget, Budget, lambda given: Budget(None, given)):
        with pytest.raises(TypeError, match="a budget is a"):
            make(value)


def test_a_number_is_all_of_a_budget() -> None:
    assert as_budget(5) == Budget(5)
    assert as_budget(None) is None
    own = Budget(3, 4)
    assert as_budget(own) is own
    with pytest.raises(ValueError, match="0 or more"):
        as_budget(-1)
