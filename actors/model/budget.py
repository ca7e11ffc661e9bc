"""Which MCP tools fit the budget: arithmetic on counts, and on token sums when there is a cap on those.

The order in which tools are kept is: pinned ones first; among these higher ``priority`` of their server first, then the
earlier server of the configuration, then the lower bare name. So it is a concatenation of one sorted list for each
server (its pinned tools), in server order, and then of a second one (the others). A budget cuts this concatenation in
one place: all lists before it are kept whole, all behind it dropped whole, and at most one is cut in two. Hence counts
(and running sums of tokens) are enough, and a change of one server leaves the result of nearly all others as it was.

A tool that alone has more tokens than native tools leave could never be sent, whatever else was dropped. If it took part,
it would drag everything behind it along; so it is dropped first, alone (`Row.within`), and is in no list here.

Native tools always ship: they use up slots and tokens first, and are never in a list here.
"""

from __future__ import annotations

import json
from bisect import bisect_right
from collections.abc import Callable, Iterable, Sequence
from typing import Any, Literal

from attrs import field, frozen

from .wire import WireTool

__all__ = [
    "BYTES_PER_TOKEN",
    "Budget",
    "Cut",
    "allot",
    "as_budget",
    "cap_in_force",
    "counted_text",
    "same_count",
    "server_order",
    "slots",
    "token_cost",
]

BYTES_PER_TOKEN = 4
"""Bytes of JSON that are taken for one token, when nobody counts better.

It is the rule of thumb that OpenAI gives ("one token generally corresponds to ~4 characters of text for common English
text", platform.openai.com/tokenizer), on bytes instead of characters: text that is not English costs more tokens a
character, and more bytes too. A provider rewrites tools in a form of its own, so that no count made here is exact.
"""

Count = Callable[[str], int]


def _cap(_: object, attribute: Any, value: int | None) -> None:
    if value is None:
        return
    if not isinstance(value, int) or isinstance(value, bool):
        raise TypeError(f"a budget is a whole number of {attribute.name}, not {value!r}")
    if value < 0:
        raise ValueError(f"a budget is 0 or more {attribute.name}, not {value}")


@frozen
class Budget:
    """A soft cap on what is sent: native tools always ship, MCP tools are trimmed lowest priority first.

    Args:
        tools: the most native and MCP tools together, or None for no cap. The limit of the profile holds all the same: one
            tool more than it takes, and a provider refuses the whole request.
        tokens: the most tokens of all tools together, or None for no cap (then none are counted). Of one tool they are
            `token_cost`.
        count: a tokenizer: called with a tool's JSON text, returns its tokens. It should be quick and always say the
            same; it is asked once for each tool. None, or when it raises or returns no count: the estimate.

    Raises:
        ValueError: a cap is negative.
        TypeError: a cap is no whole number.
    """

    tools: int | None = field(default=100, validator=_cap)
    tokens: int | None = field(default=None, validator=_cap)
    count: Count | None = None


def as_budget(budget: Budget | int | None) -> Budget | None:
    """A budget as a program gives it, as a value; None stays None.

    Args:
        budget: a number is all of it.

    Raises:
        ValueError: it is negative.
        TypeError: it is something else.
    """
    return budget if budget is None or isinstance(budget, Budget) else Budget(budget)


def cap_in_force(budget: Budget, limit: int | None) -> int | None:
    """How many tools may be sent: the lower one of the budget's cap and the profile's limit; None: any number."""
    caps = [cap for cap in (budget.tools, limit) if cap is not None]
    return min(caps, default=None)


def slots(cap: int | None, natives: int) -> int | None:
    """How much fits beside the native tools, or None for any number.

    Args:
        cap: on all together.
        natives: how much the native tools use up.
    """
    return None if cap is None else max(0, cap - natives)


def same_count(one: Count | None, other: Count | None) -> bool:
    """Whether two tokenizers are one. A bound method is a new object at each mention, equal to the last one."""
    if one is other:
        return True
    try:
        return bool(one == other)
    except Exception:
        return False  # counting once more is no harm


def counted_text(tool: WireTool) -> str:
    """The JSON text whose tokens are counted: name, description and input schema, keys sorted, no spaces.

    Raises:
        ValueError, TypeError, RecursionError: it has none.
    """
    parts = {"name": tool.wire_name, "description": tool.description or "", "input_schema": tool.input_schema}
    return json.dumps(parts, sort_keys=True, separators=(",", ":"), ensure_ascii=False, allow_nan=False)


def token_cost(tool: WireTool, count: Count | None) -> int:
    """The tokens of one tool: what ``count`` says, else its JSON's UTF-8 bytes / `BYTES_PER_TOKEN`, rounded up.

    Args:
        tool: as it is sent.
        count: a tokenizer, or None. What it raises and what is no count is passed over.
    """
    try:
        text = counted_text(tool)
    except Exception:
        text = repr(tool)  # a native tool that is no JSON: it ships, and is told by how Python writes it
    if count is not None:
        try:
            counted = count(text)
        except Exception:
            counted = None
        if isinstance(counted, int) and not isinstance(counted, bool) and counted >= 0:
            return int(counted)
    return -(-len(text.encode("utf-8", "backslashreplace")) // BYTES_PER_TOKEN)


def server_order(priorities: Sequence[float]) -> list[int]:
    """The servers by who is kept first: higher priority, then earlier in the configuration.

    Args:
        priorities: of each server, in the order configured; NaN counts as 0.

    Returns:
        Indices into ``priorities``.
    """
    # A NaN compares with nothing and would make the order depend on the sort's own steps.
    ranks = [-priority if priority == priority else 0.0 for priority in priorities]
    return sorted(range(len(ranks)), key=ranks.__getitem__)


@frozen
class Cut:
    """Where the budget cuts.

    Args:
        kept: for each list how many of its tools are kept: its first ones.
        bound: what ran out, if anything did.
    """

    kept: list[int]
    bound: Literal["tools", "tokens"] | None


def allot(counts: Iterable[int], slots: int | None, sums: Sequence[Sequence[int]] = (), room: int | None = None) -> Cut:
    """Give slots and tokens away, list by list, until one of the two has run out.

    Args:
        counts: the lengths of the lists, in the order in which they are kept.
        slots: how many tools may be kept in all; None = all.
        sums: for each list the tokens of its first 1, 2, … tools; needed when ``room`` is given.
        room: how many tokens they may have in all; None = any number.
    """
    kept: list[int] = []
    bound: Literal["tools", "tokens"] | None = None
    for at, count in enumerate(counts):
        if bound is not None:
            kept.append(0)
            continue
        take = count
        if slots is not None and slots < take:
            take, bound = slots, "tools"
        if room is not None and count:
            running = sums[at]
            fits = bisect_right(running, room)
            if fits < take:
                take, bound = fits, "tokens"
            if take:
                room -= running[take - 1]
        if slots is not None:
            slots -= take
        kept.append(take)
    return Cut(kept, bound)
