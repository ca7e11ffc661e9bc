"""The projection: configuration and statuses in, one snapshot out. Pure, total, deterministic.

Theory of operation. The work is done in stages, each for one server, so that a change of one costs little whatever the
number of the others:

    ToolDef ────────▶ Tool   judged, named, encoded, hashed                    (kept while it is the same object)
    entry + status ─▶ Row    phase, error, and all verdicts but the budget's    (kept while both are the same)
    Row + lens ─────▶ Row    without what a view leaves out                     (kept in the row)
    all counts ─────▶ cut    which lists the budget keeps, and where it cuts    (arithmetic on counts: `budget`)
    Row + cut ──────▶ Shown  the published row and its block of the catalog     (kept in the row)

and then the parts are joined. What is kept lives in a `Memo` that the caller passes from one projection to the next;
with or without it, with an old one or a strange one, the result is equal. (Equal as JSON is: the order of a schema's keys is
the one that was sent before, where the memo or ``previous`` knows it.) A view, or a preview, borrows the rows of the
host's last projection, and so makes only what differs in it. A tool is recognised by identity or by the hash
of its JSON and never by ``==``: for Python ``1 == True``, but they are other bytes.

Total: a tool that makes anything raise is quarantined alone, and a server that does becomes a row with an error.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from .budget import Budget, Cut, allot, cap_in_force, server_order, slots
from .catalog import Catalog
from .config import ConfigState
from .lens import EVERYTHING, Lens
from .memo import Joined, Memo
from .native import NativeTool
from .profile import PORTABLE, Profile
from .row import Row, Shown
from .snapshot import PluginModel, Snapshot
from .status import ServerStatus
from .tool import nothing_sent
from .wire import ToolRef

__all__ = ["Memo", "project"]


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
    version: int, joined: Joined, trimmed: tuple[ToolRef, ...], profile: Profile, previous: Snapshot | None
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
    # A memo that is empty though there was a catalog is that of a projector that was restarted.
    sent = nothing_sent if previous is None or previous.catalog.profile != profile else previous.catalog.tool
    rows = memo.through(lens, memo.rows(state.config.servers, statuses, profile, sent))
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
    return Snapshot(version, state.rev, model, catalog, state.config.line)
