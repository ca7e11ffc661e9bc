"""What one projection leaves behind for the next: rows, native tools, and the catalog's parts as they were joined.

A `Memo` makes a projection fast and never changes what comes out. It recognises things by identity first.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import chain, pairwise
from operator import is_
from typing import Literal

from attrs import define, field, frozen

from .budget import Budget, Count, same_count, token_cost
from .config import ServerEntry
from .facts import make_row
from .lens import EVERYTHING, Lens
from .native import NativeTool, fit_native
from .profile import PORTABLE, Profile
from .row import Block, Part, Row, Stock
from .status import ServerStatus
from .tool import Sent, Tool, encode, nothing_sent
from .wire import ToolRef, WireTool

__all__ = ["Joined", "Memo", "Natives", "Plan"]

_NOTHING_KNOWN = ServerStatus()


@frozen(eq=False)
class Natives:
    """The native tools as the catalog has them."""

    given: tuple[NativeTool, ...] = ()
    profile: Profile = PORTABLE
    wires: tuple[WireTool, ...] = ()
    digests: bytes = b""


@frozen(eq=False)
class Joined:
    """The catalog's tools, and the parts they were joined of."""

    natives: Natives
    blocks: tuple[Block, ...]
    tools: tuple[WireTool, ...]
    digest: str


@frozen(eq=False)
class Plan:
    """What the budget makes of all stocks, whatever else is said of the servers.

    Args:
        stocks, natives, budget, profile: what it was made from.
        parts: of each stock, what is kept.
        joined: what is sent.
        cap: on the number of tools, the one in force.
        wanted, tokens: how many MCP tools there would be without it, and the tokens of all; None where none are counted.
        trimmed: the victims, the first to go first.
        cut_by: which cap dropped them.
    """

    stocks: Sequence[Stock]
    natives: Natives
    budget: Budget
    profile: Profile
    parts: Sequence[Part]
    joined: Joined
    cap: int | None
    wanted: int
    tokens: int | None
    trimmed: tuple[ToolRef, ...]
    cut_by: Literal["tools", "tokens"] | None

    def fits(self, stocks: Sequence[Stock], natives: Natives, budget: Budget, profile: Profile) -> bool:
        """Whether it was made from the same objects."""
        return (
            self.natives is natives
            and self.budget is budget
            and self.profile is profile
            and _identical(stocks, self.stocks)
        )


@define(eq=False)
class Memo:
    """What a projection keeps for the next one: make one, and pass it to every call of `project`.

    It never changes a result. It holds only what the last projection showed, so it does not grow. It belongs to one
    caller at a time.

    Args:
        borrowed: rows of another projection, by server, to be used where they are what would be made here.
    """

    borrowed: Mapping[str, Row] = field(factory=dict)
    plan: Plan | None = field(init=False, default=None)
    _rows: dict[str, Row] = field(init=False, factory=dict)
    _narrowed: dict[str, tuple[Row, Row]] = field(init=False, factory=dict)
    _lens: Lens = field(init=False, default=EVERYTHING)
    _native_tokens: tuple[Natives, Count | None, int] | None = field(init=False, default=None)
    _blocks: dict[str, Block] = field(init=False, factory=dict)
    _natives: Natives = field(init=False, factory=Natives)
    _joined: Joined | None = field(init=False, default=None)

    def natives(self, given: Sequence[NativeTool], profile: Profile) -> Natives:
        """The native tools, encoded; anew only when they are other objects, or for another profile."""
        was = self._natives
        if not _identical(given, was.given) or (profile is not was.profile and profile != was.profile):
            was = self._natives = _make_natives(tuple(given), profile)
        return was

    def native_tokens(self, natives: Natives, count: Count | None) -> int:
        """The tokens of all native tools together."""
        was = self._native_tokens
        if was is None or was[0] is not natives or not same_count(was[1], count):
            was = self._native_tokens = (natives, count, sum(token_cost(wire, count) for wire in natives.wires))
        return was[2]

    @property
    def made(self) -> Mapping[str, Row]:
        """The rows of the last projection, for another memo to borrow. It is never changed afterwards."""
        return self._rows

    def rows(
        self,
        entries: Sequence[ServerEntry],
        statuses: Mapping[str, ServerStatus],
        profile: Profile,
        sent: Sent = nothing_sent,
    ) -> list[Row]:
        """The row of each entry; anew only where entry or status differ. Forgets every other row.

        Args:
            entries, statuses, profile: as in `project`.
            sent: what was sent before, for tools that no row here knows.
        """
        borrowed, known = self.borrowed, self._rows
        made: dict[str, Row] = {}
        for entry in entries:
            name = entry.name
            status = statuses.get(name, _NOTHING_KNOWN)
            row = (borrowed if name in borrowed else known).get(name)
            if row is None or row.entry is not entry or row.status is not status or row.profile is not profile:
                row = self._row(entry, status, profile, sent)
            made[name] = row
        self._rows = made
        return list(made.values())

    def _row(self, entry: ServerEntry, status: ServerStatus, profile: Profile, sent: Sent) -> Row:
        lent, own = self.borrowed.get(entry.name), self._rows.get(entry.name)
        if lent is not None and _same(lent, entry, status, profile):
            return lent
        if own is not None and _same(own, entry, status, profile):
            return own
        return make_row(entry, status, profile, own if own is not None else lent, sent)

    def through(self, lens: Lens, rows: Sequence[Row]) -> Sequence[Row]:
        """The rows without what a lens leaves out; anew only where row or lens differ."""
        if lens is EVERYTHING or lens == EVERYTHING:
            return rows
        was = self._narrowed if lens == self._lens else {}
        self._lens = lens
        narrowed: dict[str, tuple[Row, Row]] = {}
        for row in rows:
            found = was.get(row.entry.name)
            narrowed[row.entry.name] = found if found is not None and found[0] is row else (row, lens.through(row))
        self._narrowed = narrowed
        return [after for _, after in narrowed.values()]

    def joined(self, natives: Natives, rows: Sequence[Row], kept: Sequence[Part]) -> Joined:
        """The catalog's tools and digest; anew only when a block sends other objects."""
        blocks: dict[str, Block] = {}
        for row, part in zip(rows, kept, strict=True):
            name = row.entry.name
            old = self._blocks.get(name)
            if old is not None and old is not part.block and old.same(part.block):
                part.block = old
            blocks[name] = part.block
        self._blocks = blocks
        parts = tuple(block for block in blocks.values() if block.wires)
        was = self._joined
        if was is None or was.natives is not natives or not _identical(parts, was.blocks):
            was = self._joined = _join(natives, parts)
        return was


def _identical(these: Sequence[object], those: Sequence[object]) -> bool:
    return these is those or (len(these) == len(those) and all(map(is_, these, those)))


def _same(row: Row, entry: ServerEntry, status: ServerStatus, profile: Profile) -> bool:
    """Whether a row would come out the same of these. Cheap when they are the same objects."""
    if row.profile is not profile and row.profile != profile:
        return False
    was = row.status
    if entry is row.entry and status is was:
        return True
    try:
        return bool(
            (status.tools is was.tools or (status.tools and was.tools and _identical(status.tools, was.tools)))
            and status.lifecycle == was.lifecycle
            and status.report == was.report
            and status.tools_generation == was.tools_generation
            and status.offers == was.offers
            and entry == row.entry
        )
    except Exception:
        return False


def _make_natives(given: tuple[NativeTool, ...], profile: Profile) -> Natives:
    wires = tuple(_native_wire(native, profile) for native in given)
    return Natives(given, profile, wires, b"".join(map(_native_digest, wires)))


def _native_wire(native: NativeTool, profile: Profile) -> WireTool:
    """A native tool as it is sent: mended as an MCP tool would be. One that cannot be mended ships as it is."""
    description: str | None = native.description
    schema = native.input_schema
    fitted = fit_native(native, profile)
    if fitted.flaw is None:
        description, schema = fitted.description, fitted.input_schema
    return WireTool(wire_name=native.name, server=None, bare=native.name, description=description, input_schema=schema)


def _native_digest(wire: WireTool) -> bytes:
    try:
        return encode(wire)
    except Exception:
        # It ships whatever it is: the embedder's own tool is never dropped. Told apart by how Python writes it.
        return sha256(repr(wire).encode("utf-8", "backslashreplace")).digest()


def _tool_name(tool: Tool) -> str:
    return tool.wire.wire_name


def _join(natives: Natives, blocks: tuple[Block, ...]) -> Joined:
    """Native tools as given, then MCP tools by wire name.

    Each block is sorted, and names of different servers seldom interleave: then sorting the blocks is enough.
    """
    ordered = sorted(blocks, key=lambda block: block.wires[0].wire_name)
    apart = all(left.wires[-1].wire_name < right.wires[0].wire_name for left, right in pairwise(ordered))
    if apart:
        wires = tuple(chain(natives.wires, *(block.wires for block in ordered)))
        digests = b"".join([natives.digests, *(block.digests for block in ordered)])
    else:
        tools = sorted(chain.from_iterable(block.tools for block in ordered), key=_tool_name)
        wires = (*natives.wires, *(tool.wire for tool in tools))
        digests = natives.digests + b"".join(tool.digest for tool in tools)
    return Joined(natives, blocks, wires, sha256(digests).hexdigest())
