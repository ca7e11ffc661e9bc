"""The projection: configuration and statuses in, one snapshot out. Pure, total, deterministic.

Theory of operation. The work is done in stages, each for one server, so that a change of one costs little whatever the
number of the others:

    ToolDef ────────▶ Tool   judged, named, encoded, hashed                    (kept while it is the same object)
    entry + status ─▶ Row    phase, error, and all verdicts but the budget's    (kept while both are the same)
    all counts ─────▶ cut    which lists the budget keeps, and where it cuts    (arithmetic on counts: `budget`)
    Row + cut ──────▶ Shown  the published row and its block of the catalog     (kept in the row)

and then the parts are joined. What is kept lives in a `Memo` that the caller passes from one projection to the next;
with or without it, with an old one or a strange one, the result is equal. A tool is recognised by identity or by the hash
of its JSON and never by ``==``: for Python ``1 == True``, but they are other bytes.

Total: a tool that makes anything raise is quarantined alone, and a server that does becomes a row with an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from hashlib import sha256
from itertools import chain, pairwise
from operator import is_

from attrs import define, field, frozen

from .budget import Budget, allot, server_order, slots
from .catalog import Catalog
from .config import ConfigState, ServerEntry
from .native import NativeTool
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
    """

    _rows: dict[str, Row] = field(init=False, factory=dict)
    _blocks: dict[str, Block] = field(init=False, factory=dict)
    _natives: _Natives = field(init=False, factory=_Natives)
    _joined: _Joined | None = field(init=False, default=None)

    def natives(self, given: Sequence[NativeTool]) -> _Natives:
        """The native tools, encoded; anew only when they are other objects."""
        if not _identical(given, self._natives.given):
            self._natives = _make_natives(tuple(given))
        return self._natives

    def rows(self, entries: Sequence[ServerEntry], statuses: Mapping[str, ServerStatus], profile: Profile) -> list[Row]:
        """The row of each entry; anew only where entry or status differ. Forgets every other row."""
        rows = []
        for entry in entries:
            status = statuses.get(entry.name, _NOTHING_KNOWN)
            row = self._rows.get(entry.name)
            if row is None or row.profile != profile or not _same(row, entry, status):
                row = make_row(entry, status, profile, row)
            rows.append(row)
        self._rows = {row.entry.name: row for row in rows}
        return rows

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


def _same(row: Row, entry: ServerEntry, status: ServerStatus) -> bool:
    """Whether a row would come out the same of these. Cheap when they are the same objects."""
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
        )
    except Exception:
        return False


def _make_natives(given: tuple[NativeTool, ...]) -> _Natives:
    wires = tuple(
        WireTool(
            wire_name=native.name,
            server=None,
            bare=native.name,
            description=native.description,
            input_schema=native.input_schema,
        )
        for native in given
    )
    return _Natives(given, wires, b"".join(map(_native_digest, wires)))


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
    """The victims, the first to go first: the lists backwards, and each list backwards."""
    victims: list[ToolRef] = []
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


def _catalog(
    version: int, joined: _Joined, trimmed: tuple[ToolRef, ...], profile: Profile, previous: Snapshot | None
) -> Catalog:
    if previous is None or previous.catalog.digest != joined.digest:
        return Catalog(version, joined.tools, trimmed, joined.digest, profile)
    was = previous.catalog
    return was if was.trimmed == trimmed else Catalog(version, was.tools, trimmed, was.digest, profile)


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
) -> Snapshot:
    """Make the one value all readers read. Pure and total.

    Args:
        state: the configuration in force, its revision, and why a newer one was refused.
        statuses: what is known of servers, by name; one that is missing is not running, one not configured is ignored.
        natives: the embedder's own tools, in the order they are sent.
        budget: the cap on native and MCP tools together.
        previous: the snapshot before, whose version this one follows and whose parts it uses again.
        memo: what the projection before left behind; it makes this one fast and does not change it.
        notices: one line each, of what ails the host itself; shown behind the config's warnings.
        profile: what the catalog is made for.

    Returns:
        ``previous`` itself when nothing differs; else a snapshot with the next version (1 without ``previous``). Its
        catalog is the previous object when neither the tools' bytes nor the victims changed.
    """
    memo = Memo() if memo is None else memo
    native = memo.natives(natives)
    rows = memo.rows(state.config.servers, statuses, profile)
    order = server_order([row.priority for row in rows])
    counts = [len(rows[index].pinned) for index in order]
    counts += [len(rows[index].others) for index in order]
    wanted = sum(counts)
    kept = allot(counts, slots(budget, len(native.wires)))
    shown: list[Shown | None] = [None] * len(rows)
    for at, index in enumerate(order):
        shown[index] = rows[index].cut(kept[at], kept[at + len(rows)], budget.tools)
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
        budget=budget.tools,
        wanted=len(native.wires) + wanted,
        trimmed=len(trimmed),
    )
    if (
        previous is not None
        and catalog is previous.catalog
        and state.rev == previous.config_rev
        and model == previous.model
    ):
        return previous
    return Snapshot(version, state.rev, model, catalog)
