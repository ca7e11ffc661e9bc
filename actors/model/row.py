"""One server on its way through the projection, as a value: before the budget has cut, and after.

A `Row` depends on the server's own entry and status alone (`facts.make_row`). What it says of the tools is apart, in its
`Stock`: most changes of a status leave that as it is, and then the next row has the same one, with all that was made of it. A
stock may be narrowed to another one, by what a view leaves out (`Row.without`) and by tools too large for any budget
(`Stock.within`); how many of its tools the budget keeps makes a `Part` of it, and row and part make the published `Shown`.

Host and views share rows. Rows and stocks only ever add to what they remember, so that sharing changes no result.
"""

from __future__ import annotations

from collections.abc import Mapping
from itertools import accumulate
from operator import attrgetter
from typing import Any

from attrs import define, evolve, field, frozen

from .budget import Count, same_count
from .config import ServerEntry
from .profile import Profile
from .snapshot import ServerState, ToolState, Verdict
from .status import ServerStatus, ToolDef
from .tool import Tool
from .wire import ToolRef, WireTool

__all__ = ["Block", "Part", "Row", "Shown", "Sizes", "Stock"]

_CUTS_KEPT = 16  # cuts a row remembers: toggling to and fro moves the cut between two, each view has its own
_NARROWED_KEPT = 16  # what a row remembers of views and budgets that narrow it
_COUNTS_KEPT = 16  # tokenizers whose counts a row remembers
_SHELVES = frozenset(("resources", "templates", "prompts", "resources_error", "prompts_error"))


@frozen(eq=False)
class Block:
    """A server's part of the catalog: its tools on the wire by wire name, and their hashes in a row."""

    tools: tuple[Tool, ...]
    wires: tuple[WireTool, ...]
    digests: bytes

    def same(self, other: Block) -> bool:
        """Whether the other one sends the very same objects."""
        return len(self.wires) == len(other.wires) and all(a is b for a, b in zip(self.wires, other.wires, strict=True))


@define(eq=False)
class Part:
    """A server's tools after the cut: as the model shows them, and their block of the catalog."""

    states: tuple[ToolState, ...]
    block: Block


@define(eq=False)
class Shown:
    """A server after the cut: its published row, and the part that its tools are."""

    state: ServerState
    part: Part


@frozen(eq=False)
class Sizes:
    """The tokens of a server's tools that the budget decides about.

    Args:
        pinned, others: of the first 1, 2, … tools of the two lists together.
        total: of all.
        largest: of the largest one; 0 when there is none.
    """

    pinned: tuple[int, ...]
    others: tuple[int, ...]
    total: int
    largest: int


_BY_WIRE_NAME = attrgetter("wire.wire_name")


@define(eq=False)
class Stock:
    """A server's tools before the cut.

    Args:
        advertised: the list as in the status, for recognition.
        down: why none of them is on the wire, in words, or None.
        priority: of the server.
        tools: in the order advertised.
        fixed: for each tool its state when the budget has no say in it, else None.
        extra: tools that are shown but not known: excluded names of a server without a list.
        pins: the bare names that the entry pins.
        pinned, others: the tools the budget decides about, the first kept to the last kept.
        pinned_huge, other_huge: tools that are too large for any cut to keep, the first to go first.
    """

    advertised: tuple[ToolDef, ...] | None
    down: str | None
    priority: float
    tools: tuple[Tool, ...]
    fixed: tuple[ToolState | None, ...]
    extra: tuple[ToolState, ...]
    pins: frozenset[str]
    pinned: tuple[Tool, ...]
    others: tuple[Tool, ...]
    pinned_huge: tuple[ToolRef, ...] = ()
    other_huge: tuple[ToolRef, ...] = ()
    pinned_victims: tuple[ToolRef, ...] = field(init=False)
    other_victims: tuple[ToolRef, ...] = field(init=False)
    _whole: Part | None = field(init=False, default=None)
    _cuts: dict[tuple[int, int, str], Part] = field(init=False, factory=dict)
    _sizes: list[tuple[Count | None, Sizes]] = field(init=False, factory=list)
    _without: dict[tuple[frozenset[str] | None, str], Stock] = field(init=False, factory=dict)
    _within: list[tuple[Count | None, int, int, Stock]] = field(init=False, factory=list)

    def __attrs_post_init__(self) -> None:
        # The first to go first, so that what the budget drops of a list is a beginning of this.
        self.pinned_victims = tuple(tool.ref for tool in reversed(self.pinned))
        self.other_victims = tuple(tool.ref for tool in reversed(self.others))

    def _state(self, tool: Tool, enabled: bool, verdict: Verdict, reason: str | None) -> ToolState:
        return tool.state(enabled, verdict, reason, tool.ref.bare in self.pins)

    def sizes(self, count: Count | None) -> Sizes:
        """The tokens of the tools that the budget decides about.

        Args:
            count: a tokenizer, or None for the estimate.
        """
        for counter, known in self._sizes:
            if same_count(counter, count):
                return known
        pinned = [tool.cost(count) for tool in self.pinned]
        others = [tool.cost(count) for tool in self.others]
        sizes = Sizes(
            pinned=tuple(accumulate(pinned)),
            others=tuple(accumulate(others)),
            total=sum(pinned) + sum(others),
            largest=max(max(pinned, default=0), max(others, default=0)),
        )
        if len(self._sizes) >= _COUNTS_KEPT:
            del self._sizes[0]
        self._sizes.append((count, sizes))
        return sizes

    def within(self, count: Count | None, cap: int, room: int) -> Stock:
        """This stock without the tools that alone have more tokens than there is room for; itself when there are none.

        Args:
            count: a tokenizer, or None for the estimate.
            cap: the budget's tokens, for the words.
            room: what native tools leave of them.
        """
        if self.sizes(count).largest <= room:
            return self
        for counter, cap_then, room_then, stock in self._within:
            if (cap_then, room_then) == (cap, room) and same_count(counter, count):
                return stock
        fixed = tuple(
            done
            if done is not None or tool.cost(count) <= room
            else self._state(tool, True, "over_budget", _too_large(tool.cost(count), cap, room))
            for tool, done in zip(self.tools, self.fixed, strict=True)
        )
        stock = evolve(
            self,
            fixed=fixed,
            pinned=tuple(tool for tool in self.pinned if tool.cost(count) <= room),
            others=tuple(tool for tool in self.others if tool.cost(count) <= room),
            pinned_huge=tuple(tool.ref for tool in reversed(self.pinned) if tool.cost(count) > room),
            other_huge=tuple(tool.ref for tool in reversed(self.others) if tool.cost(count) > room),
        )
        if len(self._within) >= _NARROWED_KEPT:
            del self._within[0]
        self._within.append((count, cap, room, stock))
        return stock

    def without(self, hidden: frozenset[str] | None, reason: str) -> Stock:
        """This stock with tools excluded that are not so by the config; itself when it has none of them.

        Args:
            hidden: their bare names; None for all tools.
            reason: why, in words.
        """
        key = (hidden, reason)
        found = self._without.get(key)
        if found is None:
            found = self._narrowed(hidden, reason)
            if len(self._without) >= _NARROWED_KEPT:
                del self._without[next(iter(self._without))]
            self._without[key] = found
        return found

    def _narrowed(self, hidden: frozenset[str] | None, reason: str) -> Stock:
        fixed: list[ToolState | None] = []
        for tool, done in zip(self.tools, self.fixed, strict=True):
            if (done is not None and done.verdict == "excluded") or not (hidden is None or tool.ref.bare in hidden):
                fixed.append(done)
            else:
                # What the budget decides about is enabled; what the config says is derived in one place only.
                fixed.append(self._state(tool, done is None or done.enabled, "excluded", reason))
        if all(after is before for after, before in zip(fixed, self.fixed, strict=True)):
            return self
        gone = frozenset(tool.ref.bare for tool in self.tools) if hidden is None else hidden
        return evolve(
            self,
            fixed=tuple(fixed),
            pinned=tuple(tool for tool in self.pinned if tool.ref.bare not in gone),
            others=tuple(tool for tool in self.others if tool.ref.bare not in gone),
        )

    def cut(self, pinned: int, others: int, over: str) -> Part:
        """The tools when so many of them are kept.

        Args:
            pinned, others: how many of the two lists are kept: their first ones.
            over: why the rest is not, in words.
        """
        if pinned == len(self.pinned) and others == len(self.others):
            if self._whole is None:
                self._whole = self._make(pinned, others, "")
            return self._whole
        key = (pinned, others, over)
        found = self._cuts.get(key)
        if found is None:
            found = self._make(pinned, others, over)
            if len(self._cuts) >= _CUTS_KEPT:
                del self._cuts[next(iter(self._cuts))]
            self._cuts[key] = found
        return found

    def _make(self, pinned: int, others: int, over: str) -> Part:
        kept = sorted((*self.pinned[:pinned], *self.others[:others]), key=_BY_WIRE_NAME)
        wired = {tool.wire.bare for tool in kept}
        states = tuple(
            done
            if done is not None
            else self._state(tool, True, "on_wire", None)
            if tool.wire.bare in wired
            else self._state(tool, True, "over_budget", over)
            for tool, done in zip(self.tools, self.fixed, strict=True)
        )
        block = Block(tuple(kept), tuple(tool.wire for tool in kept), b"".join(tool.digest for tool in kept))
        return Part(states + self.extra, block)


@define(eq=False)
class Row:
    """A server before the cut.

    Args:
        entry, status, profile: what it was made from.
        written: of its facts those that the entry alone says; None when they cannot be said.
        facts: the arguments of its `ServerState`, but for its tools.
        stock: its tools.
        shown: as what it was shown last, if it was.
    """

    entry: ServerEntry
    status: ServerStatus
    profile: Profile
    written: Mapping[str, Any] | None
    facts: Mapping[str, Any]
    stock: Stock
    shown: Shown | None = field(init=False, default=None)
    _shown: dict[Part, Shown] = field(init=False, factory=dict)
    _without: dict[Stock, Row] = field(init=False, factory=dict)
    _unshelved: Row | None = field(init=False, default=None)

    def unshelved(self) -> Row:
        """This row without resources and prompts; itself when it has none of them."""
        if self._unshelved is None:
            facts = {name: value for name, value in self.facts.items() if name not in _SHELVES}
            self._unshelved = self if len(facts) == len(self.facts) else evolve(self, facts=facts)
        return self._unshelved

    def without(self, hidden: frozenset[str] | None, reason: str) -> Row:
        """This row with tools excluded that are not so by the config; itself when it has none of them.

        Args:
            hidden: their bare names; None for all tools.
            reason: why, in words.
        """
        stock = self.stock.without(hidden, reason)
        if stock is self.stock:
            return self
        found = self._without.get(stock)
        if found is None:
            found = evolve(self, stock=stock)
            if len(self._without) >= _NARROWED_KEPT:
                del self._without[next(iter(self._without))]
            self._without[stock] = found
        return found

    def show(self, part: Part) -> Shown:
        """The server when this part of its stock is what is left by the budget."""
        found = self._shown.get(part)
        if found is None:
            found = Shown(ServerState(**self.facts, tools=part.states), part)
            if len(self._shown) >= _CUTS_KEPT:
                del self._shown[next(iter(self._shown))]
            self._shown[part] = found
        self.shown = found
        return found


def _too_large(cost: int, cap: int, room: int) -> str:
    if not room:
        return f"native tools alone fill the budget of {cap} tokens"
    left = f"the budget of {cap} tokens" if room == cap else f"the {room} that native tools leave of {cap} tokens"
    return f"alone it has {cost} tokens, more than {left}"
