"""The projection of one server: its row before the budget has cut, and after.

Two stages: a `Row` depends on the server's own entry and status alone; a `Shown`, kept in its row, on how many of its tools
the budget keeps as well. Between them a row may be narrowed to another one, by what a view leaves out (`Row.without`) and by
tools too large for any budget (`Row.within`). Nothing here raises: what an entry or a status makes raise becomes the error
of its row.

Host and views share rows. A row only ever adds to what it remembers, so that sharing changes no result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from itertools import accumulate
from operator import attrgetter
from typing import Any

from attrs import define, evolve, field, frozen

from .config import ServerEntry
from .mask import mask_args, mask_text, mask_url
from .naming import wire_name
from .phase import DOWN_PHASES, error_of, list_state_of, live_report, phase_of
from .profile import Profile
from .snapshot import Phase, ServerState, ToolState
from .status import ServerStatus, ToolDef
from .tool import Tool, make_tools, one_line
from .wire import ToolRef, WireTool

__all__ = ["Block", "Row", "Shown", "Sizes", "make_row"]

_CUTS_KEPT = 4  # cuts a row remembers: toggling to and fro moves the cut between two
_NARROWED_KEPT = 4  # what a row remembers of views and budgets that narrow it


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
class Shown:
    """A server after the cut: its published row, and its block of the catalog."""

    state: ServerState
    block: Block


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


_BY_BARE = attrgetter("ref.bare")
_BY_WIRE_NAME = attrgetter("wire.wire_name")


@define(eq=False)
class Row:
    """A server before the cut.

    Args:
        entry, status, profile: what it was made from.
        advertised: the list as in the status, for recognition.
        tools: in the order advertised.
        facts: the arguments of its `ServerState`, but for its tools.
        fixed: for each tool its state when the budget has no say in it, else None.
        extra: tools that are shown but not known: excluded names of a server without a list.
        pinned, others: the tools the budget decides about, the first kept to the last kept.
        pinned_huge, other_huge: tools that are too large for any cut to keep, the first to go first.
    """

    entry: ServerEntry
    status: ServerStatus
    profile: Profile
    advertised: tuple[ToolDef, ...] | None
    priority: float
    tools: tuple[Tool, ...]
    facts: Mapping[str, Any]
    fixed: tuple[ToolState | None, ...]
    extra: tuple[ToolState, ...]
    pinned: tuple[Tool, ...]
    others: tuple[Tool, ...]
    pinned_huge: tuple[ToolRef, ...] = ()
    other_huge: tuple[ToolRef, ...] = ()
    pinned_victims: tuple[ToolRef, ...] = field(init=False)
    other_victims: tuple[ToolRef, ...] = field(init=False)
    _whole: Shown | None = field(init=False, default=None)
    _cuts: dict[tuple[int, int, str], Shown] = field(init=False, factory=dict)
    _sizes: tuple[Callable[[str], int] | None, Sizes] | None = field(init=False, default=None)
    _without: dict[tuple[frozenset[str] | None, str], Row] = field(init=False, factory=dict)
    _within: tuple[Callable[[str], int] | None, int, int, Row] | None = field(init=False, default=None)

    def __attrs_post_init__(self) -> None:
        # The first to go first, so that what the budget drops of a list is a beginning of this.
        self.pinned_victims = tuple(tool.ref for tool in reversed(self.pinned))
        self.other_victims = tuple(tool.ref for tool in reversed(self.others))

    def sizes(self, count: Callable[[str], int] | None) -> Sizes:
        """The tokens of the tools that the budget decides about.

        Args:
            count: a tokenizer, or None for the estimate.
        """
        was = self._sizes
        if was is not None and was[0] is count:
            return was[1]
        pinned = [tool.cost(count) for tool in self.pinned]
        others = [tool.cost(count) for tool in self.others]
        sizes = Sizes(
            pinned=tuple(accumulate(pinned)),
            others=tuple(accumulate(others)),
            total=sum(pinned) + sum(others),
            largest=max(max(pinned, default=0), max(others, default=0)),
        )
        self._sizes = (count, sizes)
        return sizes

    def within(self, count: Callable[[str], int] | None, cap: int, room: int) -> Row:
        """This row without the tools that alone have more tokens than there is room for; itself when there are none.

        Args:
            count: a tokenizer, or None for the estimate.
            cap: the budget's tokens, for the words.
            room: what native tools leave of them.
        """
        if self.sizes(count).largest <= room:
            return self
        was = self._within
        if was is not None and was[0] is count and was[1:3] == (cap, room):
            return was[3]
        fixed = tuple(
            done
            if done is not None or tool.cost(count) <= room
            else tool.state(True, "over_budget", _too_large(tool.cost(count), cap, room))
            for tool, done in zip(self.tools, self.fixed, strict=True)
        )
        row = evolve(
            self,
            fixed=fixed,
            pinned=tuple(tool for tool in self.pinned if tool.cost(count) <= room),
            others=tuple(tool for tool in self.others if tool.cost(count) <= room),
            pinned_huge=tuple(tool.ref for tool in reversed(self.pinned) if tool.cost(count) > room),
            other_huge=tuple(tool.ref for tool in reversed(self.others) if tool.cost(count) > room),
        )
        self._within = (count, cap, room, row)
        return row

    def without(self, hidden: frozenset[str] | None, reason: str) -> Row:
        """This row with tools excluded that are not so by the config; itself when it has none of them.

        Args:
            hidden: their bare names; None for all tools.
            reason: why, in words.
        """
        key = (hidden, reason)
        found = self._without.get(key)
        if found is None:
            found = self._narrowed(hidden, reason)
            if len(self._without) >= _NARROWED_KEPT:
                self._without.clear()
            self._without[key] = found
        return found

    def _narrowed(self, hidden: frozenset[str] | None, reason: str) -> Row:
        fixed: list[ToolState | None] = []
        for tool, done in zip(self.tools, self.fixed, strict=True):
            if (done is not None and done.verdict == "excluded") or not (hidden is None or tool.ref.bare in hidden):
                fixed.append(done)
            else:
                # What the budget decides about is enabled; what the config says is derived in one place only.
                fixed.append(tool.state(done is None or done.enabled, "excluded", reason))
        if all(after is before for after, before in zip(fixed, self.fixed, strict=True)):
            return self
        gone = frozenset(tool.ref.bare for tool in self.tools) if hidden is None else hidden
        return evolve(
            self,
            fixed=tuple(fixed),
            pinned=tuple(tool for tool in self.pinned if tool.ref.bare not in gone),
            others=tuple(tool for tool in self.others if tool.ref.bare not in gone),
        )

    def cut(self, pinned: int, others: int, over: str) -> Shown:
        """The server when so many of its tools are kept.

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
                self._cuts.clear()
            self._cuts[key] = found
        return found

    def _make(self, pinned: int, others: int, over: str) -> Shown:
        kept = sorted((*self.pinned[:pinned], *self.others[:others]), key=_BY_WIRE_NAME)
        wired = {tool.wire.bare for tool in kept}
        states = tuple(
            done
            if done is not None
            else tool.state(True, "on_wire", None)
            if tool.wire.bare in wired
            else tool.state(True, "over_budget", over)
            for tool, done in zip(self.tools, self.fixed, strict=True)
        )
        block = Block(tuple(kept), tuple(tool.wire for tool in kept), b"".join(tool.digest for tool in kept))
        return Shown(ServerState(**self.facts, tools=states + self.extra), block)


def _too_large(cost: int, cap: int, room: int) -> str:
    if not room:
        return f"native tools alone fill the budget of {cap} tokens"
    left = f"the budget of {cap} tokens" if room == cap else f"the {room} that native tools leave of {cap} tokens"
    return f"alone it has {cost} tokens, more than {left}"


def _excluded(entry: ServerEntry, bare: str) -> tuple[str, str | None, int | None]:
    """Why the lists do not let a tool through, in words, and where that is written: the file and the line."""
    line = entry.excluded_at(bare)
    where = f"the entry {entry.name!r}"
    if entry.source is not None:
        where += f" ({entry.source}{'' if line is None else f':{line}'})"
    said = f"excluded by {where}" if bare in entry.exclude else f"not in the include list of {where}"
    return said, entry.source, line


def _down(phase: Phase, error: str | None) -> str:
    why = f": {error}" if error else ""
    return {
        "parked": f"its server is parked{why}",
        "needs_auth": f"its server needs a login{why}",
        "disabled": "its server is disabled",
        "untrusted": "its server is not trusted yet",
        "invalid": f"its server's entry cannot be used{why}",
        "stopping": "its server is disabled and being stopped",
    }[phase]


def _facts(entry: ServerEntry, status: ServerStatus) -> dict[str, Any]:
    phase = phase_of(entry, status)
    life, report = status.lifecycle, live_report(status)
    connected = report is not None and report.connected
    died = life is not None and not (life.first and connected)
    return {
        "name": entry.name,
        "command": None if entry.command is None else mask_text(entry.command),
        "args": mask_args(entry.args),
        "url": None if entry.url is None else mask_url(entry.url),
        "source": entry.source,
        "connected": connected,
        "phase": phase,
        "error": error_of(phase, entry, status),
        "list_error": None if report is None else report.list_error,
        "list_state": list_state_of(status),
        "restarts": 0 if life is None else life.restarts,
        "next_retry_at": None if life is None else life.next_retry_at,
        "attempt": None if life is None else life.attempt,
        "generation": 0 if life is None else life.generation,
        "pid": report.pid if connected and report is not None else None,
        "protocol_version": report.protocol_version if connected and report is not None else None,
        "stderr_tail": report.stderr_tail if died and report is not None else "",
    }


def _failed_facts(entry: ServerEntry, error: Exception) -> dict[str, Any]:
    return {"name": entry.name, "phase": "invalid", "error": f"it cannot be shown: {one_line(error)}"}


def _priority(entry: ServerEntry) -> float:
    try:
        return entry.priority if isinstance(entry.priority, int) else float(entry.priority)
    except Exception:
        return 0


def _fixed(entry: ServerEntry, tool: Tool, down: str | None) -> ToolState | None:
    """The state of a tool the budget has no say in, or None. The order of the questions is that of the verdicts."""
    try:
        bare = tool.wire.bare
        enabled = entry.allows(bare)
        if not enabled:
            return tool.state(False, "excluded", *_excluded(entry, bare))
        if down is not None:
            return tool.state(True, "server_down", down)
        if tool.flaw is not None:
            return tool.state(True, "quarantined", str(tool.flaw))
    except Exception as error:
        return tool.state(False, "quarantined", f"its entry's lists cannot be used: {one_line(error)}")
    return None


def _unlisted(entry: ServerEntry) -> tuple[ToolState, ...]:
    """What is known of the tools of a server that has not listed any: the excluded names."""
    return tuple(
        ToolState(
            bare=bare,
            enabled=entry.allows(bare),
            wire_name=wire_name(entry.name, bare),
            verdict="excluded",
            reason=reason,
            file=file,
            line=line,
        )
        for bare in dict.fromkeys(entry.exclude)
        for reason, file, line in (_excluded(entry, bare),)
    )


def make_row(entry: ServerEntry, status: ServerStatus, profile: Profile, old: Row | None = None) -> Row:
    """Everything about a server that does not depend on the others. Total: it never raises.

    Args:
        entry: as configured.
        status: what is known of it.
        profile: what its tools are judged for.
        old: its row before; what is the same in it is used again.
    """
    tools: tuple[Tool, ...] = ()
    extra: tuple[ToolState, ...] = ()
    try:
        facts = _facts(entry, status)
        if status.tools is None:
            extra = _unlisted(entry)
    except Exception as error:
        facts = _failed_facts(entry, error)
    try:
        if status.tools is not None:
            known = old is not None and old.advertised is status.tools and old.profile == profile
            before = () if old is None else old.tools
            tools = before if known else make_tools(entry.name, status.tools, profile, before)
    except Exception as error:
        facts = _failed_facts(entry, error)
    phase: Phase = facts["phase"]
    down = _down(phase, facts["error"]) if phase in DOWN_PHASES else None
    fixed = tuple(_fixed(entry, tool, down) for tool in tools)
    open_ = sorted((tool for tool, done in zip(tools, fixed, strict=True) if done is None), key=_BY_BARE)
    try:
        pins = frozenset(entry.pin)
    except Exception:
        pins = frozenset()
    return Row(
        entry=entry,
        status=status,
        profile=profile,
        advertised=status.tools,
        priority=_priority(entry),
        tools=tools,
        facts=facts,
        fixed=fixed,
        extra=extra,
        pinned=tuple(tool for tool in open_ if tool.ref.bare in pins),
        others=tuple(tool for tool in open_ if tool.ref.bare not in pins),
    )
