"""Which MCP tools fit the budget: arithmetic on counts.

The order in which tools are kept is: pinned ones first; among these higher ``priority`` of their server first, then the
earlier server of the configuration, then the lower bare name. So it is a concatenation of one sorted list for each
server (its pinned tools), in server order, and then of a second one (the others). A budget cuts this concatenation in
one place: all lists before it are kept whole, all behind it dropped whole, and at most one is cut in two. Hence counts
are enough, and a change of one server leaves the result of nearly all others as it was.

Native tools always ship: they use up slots first, and are never in a list here.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import field, frozen

__all__ = ["Budget", "allot", "server_order", "slots"]


def _cap(_: object, __: object, value: int | None) -> None:
    if value is not None and value < 0:
        raise ValueError(f"a budget is 0 or more tools, not {value}")


@frozen
class Budget:
    """A soft cap on what is sent: native tools always ship, MCP tools are trimmed lowest priority first.

    Args:
        tools: the most native and MCP tools together, or None for no cap.

    Raises:
        ValueError: when it is negative.
    """

    tools: int | None = field(default=100, validator=_cap)


def slots(budget: Budget, natives: int) -> int | None:
    """How many MCP tools fit beside the native ones, or None for any number.

    Args:
        budget: the cap on both together.
        natives: how many native tools there are.
    """
    return None if budget.tools is None else max(0, budget.tools - natives)


def _rank(priority: float) -> float:
    # A NaN compares with nothing and would make the order depend on the sort's own steps.
    return -priority if priority == priority else 0.0


def server_order(priorities: Sequence[float]) -> list[int]:
    """The servers by who is kept first: higher priority, then earlier in the configuration.

    Args:
        priorities: of each server, in the order configured; NaN counts as 0.

    Returns:
        Indices into ``priorities``.
    """
    ranks = [_rank(priority) for priority in priorities]
    return sorted(range(len(ranks)), key=ranks.__getitem__)


def allot(counts: Iterable[int], slots: int | None) -> list[int]:
    """Give the slots away, list by list.

    Args:
        counts: the lengths of the lists, in the order in which they are kept.
        slots: how many tools may be kept in all; None = all.

    Returns:
        For each list how many of its tools are kept: its first ones.
    """
    if slots is None:
        return list(counts)
    kept = []
    for count in counts:
        take = count if count < slots else slots
        slots -= take
        kept.append(take)
    return kept
