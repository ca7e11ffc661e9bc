from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playbill.actors.model.budget import Budget, allot, server_order, slots

counts = st.lists(st.integers(0, 60), max_size=12)


@given(counts, st.none() | st.integers(0, 300))
def test_slots_are_given_in_order_until_there_are_none(lists: list[int], free: int | None) -> None:
    kept = allot(lists, free)
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
    assert [slots(Budget(10), n) for n in (0, 4, 10, 11)] == [10, 6, 0, 0]
    assert slots(Budget(None), 5) is None


def test_a_negative_budget_is_refused() -> None:
    with pytest.raises(ValueError, match="0 or more"):
        Budget(-1)
