"""The projection: configuration and statuses in, one snapshot out. Pure, total, deterministic.

Theory of operation. The work is done in stages, each for one server, so that a change of one costs little whatever the
number of the others:

    ToolDef ────────▶ Tool   judged, named, encoded, hashed                    (kept while it is the same object)
    entry + status ─▶ Row    phase, error, and all verdicts but the budget's    (kept while both are the same)
    Row + lens ─────▶ Row    without what a view leaves out                     (kept in the row)
    all counts ─────▶ cut    which lists the budget keeps, and where it cuts    (arithmetic on counts: `budget`)
    Row + cut ──────▶ Shown  the published row and its block of the catalog     (kept in the row)

and then the parts are joined. What is kept lives in a `Memo` that the caller passes from one projection to the next;
with or without it, with an old one or a strange one, the result is equal. A view, or a preview, borrows the rows of the
host's last projection, and so makes only what differs in it. A tool is recognised by identity or by the hash
of its JSON and never by ``==``: for Python ``1 == True``, but they are other bytes.

Total: a tool that makes anything raise is quarantined alone, and a server that does becomes a row with an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import chain, pairwise
from operator import is_

from attrs import define, field, frozen

from .budget import Budget, Count, Cut, allot, cap_in_force, server_order, slots, token_cost
from .catalog import Catalog
from .config import ConfigState, ServerEntry
from .lens import EVERYTHING, Lens
from .native import NativeTool, fit_native
from .profile import PORTABLE, Profile
from .row import Block, Row, Shown, make_row
from .snapshot import PluginModel, Snapshot
from .status import ServerStatus
from .tool import Tool, encode
from .wire import ToolRef, WireTool

__all__ = ["Memo", "project"]

_NOTHING_KNOWN = ServerStatus()


@frozen(eq=False)
class _Natives:
    """The native tools as the catalog has them."""

    given: tuple[NativeTool, ...] = ()
    profile: Profile = PORTABLE
    wires: tuple[WireTool, ...] = ()
    digests: bytes = b""


@frozen(eq=False)
class _Joined:
    """The catalog's tools, and the parts they were joined of."""

    natives: _Natives
    blocks: tuple[Block, ...]
    tools: tuple[WireTool, ...]
    digest: str


@define(eq=False)
class Memo:
    """What a projection keeps for the next one: make one, and pass it to every call of `project`.

    It never changes a result. It holds only what the last projection showed, so it does not grow. It belongs to one
    caller at a time.

    Args:
        borrowed: rows of another projection, by server, to be used where they are what would be made here.
    """

    borrowed: Mapping[str, Row] = field(factory=dict)
    _rows: dict[str, Row] = field(init=False, factory=dict)
    _narrowed: dict[str, tuple[Row, Row]] = field(init=False, factory=dict)
    _lens: Lens = field(init=False, default=EVERYTHING)
    _native_tokens: tuple[_Natives, Count | None, int] | None = field(init=False, default=None)
    _blocks: dict[str, Block] = field(init=False, factory=dict)
    _natives: _Natives = field(init=False, factory=_Natives)
    _joined: _Joined | None = field(init=False, default=None)

    def natives(self, given: Sequence[NativeTool], profile: Profile) -> _Natives:
        """The native tools, encoded; anew only when they are other objects, or for another profile."""
        if not _identical(given, self._natives.given) or profile != self._natives.profile:
            self._natives = _make_natives(tuple(given), profile)
        return self._natives

    def native_tokens(self, natives: _Natives, count: Count | None) -> int:
        """The tokens of all native tools together."""
        was = self._native_tokens
        if was is None or was[0] is not natives or was[1] is not count:
            was = self._native_tokens = (natives, count, sum(token_cost(wire, count) for wire in natives.wires))
        return was[2]

    @property
    def made(self) -> Mapping[str, Row]:
        """The rows of the last projection, for another memo to borrow. It is never changed afterwards."""
        return self._rows

    def rows(self, entries: Sequence[ServerEntry], statuses: Mapping[str, ServerStatus], profile: Profile) -> list[Row]:
        """The row of each entry; anew only where entry or status differ. Forgets every other row."""
        rows = []
        for entry in entries:
            status = statuses.get(entry.name, _NOTHING_KNOWN)
            lent, own = self.borrowed.get(entry.name), self._rows.get(entry.name)
            if lent is not None and _same(lent, entry, status, profile):
                rows.append(lent)
            elif own is not None and _same(own, entry, status, profile):
                rows.append(own)
            else:
                rows.append(make_row(entry, status, profile, own if own is not None else lent))
        self._rows = {row.entry.name: row for row in rows}
        return rows

    def through(self, lens: Lens, rows: Sequence[Row]) -> Sequence[Row]:
        """The rows without what a lens leaves out; anew only where row or lens differ."""
        if lens == EVERYTHING:
            return rows
        was = self._narrowed if lens == self._lens else {}
        self._lens = lens
        narrowed: dict[str, tuple[Row, Row]] = {}
        for row in rows:
            found = was.get(row.entry.name)
            narrowed[row.entry.name] = found if found is not None and found[0] is row else (row, lens.through(row))
        self._narrowed = narrowed
        return [after for _, after in narrowed.values()]

    def joined(self, natives: _Natives, rows: Sequence[Row], shown: Sequence[Shown]) -> _Joined:
        """The catalog's tools and digest; anew only when a block sends other objects."""
        blocks: dict[str, Block] = {}
        for row, each in zip(rows, shown, strict=True):
            name = row.entry.name
            old = self._blocks.get(name)
            if old is not None and old is not each.block and old.same(each.block):
                each.block = old
            blocks[name] = each.block
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
            and entry == row.entry
            and entry.places == row.entry.places
        )
    except Exception:
        return False


def _make_natives(given: tuple[NativeTool, ...], profile: Profile) -> _Natives:
    wires = tuple(_native_wire(native, profile) for native in given)
    return _Natives(given, profile, wires, b"".join(map(_native_digest, wires)))


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


def _join(natives: _Natives, blocks: tuple[Block, ...]) -> _Joined:
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
    return _Joined(natives, blocks, wires, sha256(digests).hexdigest())


def _trimmed(rows: Sequence[Row], order: Sequence[int], kept: Sequence[int]) -> tuple[ToolRef, ...]:
    """The victims, the first to go first: what is too large, then the lists backwards, and each list backwards."""
    victims: list[ToolRef] = []
    for index in reversed(order):
        victims.extend(rows[index].other_huge)
    for index in reversed(order):
        victims.extend(rows[index].pinned_huge)
    at = len(kept)
    for index in reversed(order):
        at -= 1
        refs = rows[index].other_victims
        victims.extend(refs if not kept[at] else refs[: len(refs) - kept[at]])
    for index in reversed(order):
        at -= 1
        refs = rows[index].pinned_victims
        victims.extend(refs if not kept[at] else refs[: len(refs) - kept[at]])
    return tuple(victims)


def _over(budget: Budget, profile: Profile, cut: Cut) -> str:
    """Why the tools behind the cut are not kept."""
    if cut.bound == "tokens":
        return f"over the budget of {budget.tokens} tokens"
    cap = cap_in_force(budget, profile.max_tools)
    if cap != budget.tools:
        return f"over the {cap} tools that profile {profile.name!r} takes"
    return f"over the budget of {cap} tools"


def _catalog(
    version: int, joined: _Joined, trimmed: tuple[ToolRef, ...], profile: Profile, previous: Snapshot | None
) -> Catalog:
    if previous is None or previous.catalog.digest != joined.digest:
        return Catalog(version, joined.tools, trimmed, joined.digest, profile)
    was = previous.catalog
    if was.trimmed == trimmed and was.profile == profile:
        return was
    return Catalog(version, was.tools, trimmed, was.digest, profile)


def project(
    state: ConfigState,
    statuses: Mapping[str, ServerStatus],
    natives: Sequence[NativeTool],
    budget: Budget,
    previous: Snapshot | None = None,
    memo: Memo | None = None,
    notices: Sequence[str] = (),
    *,
    profile: Profile = PORTABLE,
    lens: Lens = EVERYTHING,
) -> Snapshot:
    """Make the one value all readers read. Pure and total.

    Args:
        state: the configuration in force, its revision, and why a newer one was refused.
        statuses: what is known of servers, by name; one that is missing is not running, one not configured is ignored.
        natives: the embedder's own tools, in the order they are sent.
        budget: the cap on native and MCP tools together; the profile's limit on their number holds besides.
        previous: the snapshot before, whose version this one follows and whose parts it uses again.
        memo: what the projection before left behind; it makes this one fast and does not change it.
        notices: one line each, of what ails the host itself; shown behind the config's warnings.
        profile: what the catalog is made for.
        lens: what of it all is shown on the wire.

    Returns:
        ``previous`` itself when nothing differs; else a snapshot with the next version (1 without ``previous``). Its
        catalog is the previous object when neither the tools' bytes nor the victims changed.
    """
    memo = Memo() if memo is None else memo
    native = memo.natives(lens.natives(natives), profile)
    rows = memo.through(lens, memo.rows(state.config.servers, statuses, profile))
    order = server_order([row.priority for row in rows])
    wanted = sum(len(row.pinned) + len(row.others) for row in rows)
    cap, count, tokens = cap_in_force(budget, profile.max_tools), budget.count, None
    sums: list[Sequence[int]] = []
    room: int | None = None
    if budget.tokens is not None:
        spent = memo.native_tokens(native, count)
        tokens = spent + sum(row.sizes(count).total for row in rows)
        room = max(0, budget.tokens - spent)
        rows = [row.within(count, budget.tokens, room) for row in rows]
        sums = [rows[index].sizes(count).pinned for index in order]
        sums += [rows[index].sizes(count).others for index in order]
    counts = [len(rows[index].pinned) for index in order]
    counts += [len(rows[index].others) for index in order]
    cut = allot(counts, slots(cap, len(native.wires)), sums, room)
    kept = cut.kept
    over = _over(budget, profile, cut)
    shown: list[Shown | None] = [None] * len(rows)
    for at, index in enumerate(order):
        shown[index] = rows[index].cut(kept[at], kept[at + len(rows)], over)
    every = [each for each in shown if each is not None]
    trimmed = _trimmed(rows, order, kept) if sum(kept) < wanted else ()
    version = 1 if previous is None else previous.version + 1
    catalog = _catalog(version, memo.joined(native, rows, every), trimmed, profile, previous)
    model = PluginModel(
        servers=tuple(each.state for each in every),
        config_error=state.error,
        config_warnings=(*state.config.warnings, *notices),
        profile=profile.name,
        native_count=len(native.wires),
        budget=cap,
        wanted=len(native.wires) + wanted,
        trimmed=len(trimmed),
        budget_asked=budget.tools,
        limit=profile.max_tools,
        token_budget=budget.tokens,
        tokens=tokens,
        cut_by="tokens" if trimmed and cut.bound is None else cut.bound,
    )
    if (
        previous is not None
        and catalog is previous.catalog
        and state.rev == previous.config_rev
        and model == previous.model
    ):
        return previous
    return Snapshot(version, state.rev, model, catalog)
