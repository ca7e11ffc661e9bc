"""The projection: configuration and statuses in, one snapshot out. Pure, total, deterministic.

Theory of operation. The work is done in stages, each for one server, so that a change of one costs little whatever the
number of the others:

    ToolDef ────────▶ Tool   judged, named, encoded, hashed                    (kept while it is the same object)
    entry + status ─▶ Row    phase, error, and all verdicts but the budget's    (kept while both are the same)
                             the verdicts are its Stock                         (kept while only other facts change)
    Row + lens ─────▶ Row    without what a view leaves out                     (kept in row and stock)
    all Stocks ─────▶ Plan   where the budget cuts each, and all that is sent   (kept while all are the same: `budget`)
    Row + Part ─────▶ Shown  the published row, with the part of its stock      (kept in the row)

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
from .memo import Joined, Memo, Natives, Plan
from .native import NativeTool
from .profile import PORTABLE, Profile
from .row import Part, Row, Stock
from .snapshot import PluginModel, Snapshot
from .status import ServerStatus
from .tool import nothing_sent
from .wire import ToolRef

__all__ = ["Memo", "project"]


def _trimmed(stocks: Sequence[Stock], order: Sequence[int], kept: Sequence[int]) -> tuple[ToolRef, ...]:
    """The victims, the first to go first: what is too large, then the lists backwards, and each list backwards."""
    victims: list[ToolRef] = []
    for index in reversed(order):
        victims.extend(stocks[index].other_huge)
    for index in reversed(order):
        victims.extend(stocks[index].pinned_huge)
    at = len(kept)
    for index in reversed(order):
        at -= 1
        refs = stocks[index].other_victims
        victims.extend(refs if not kept[at] else refs[: len(refs) - kept[at]])
    for index in reversed(order):
        at -= 1
        refs = stocks[index].pinned_victims
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
    if was.trimmed == trimmed and (was.profile is profile or was.profile == profile):
        return was
    return Catalog(version, was.tools, trimmed, was.digest, profile)


def _plan(native: Natives, rows: Sequence[Row], budget: Budget, profile: Profile, memo: Memo) -> Plan:
    """Cut by the budget what all servers have, and join what is left."""
    given = stocks = [row.stock for row in rows]
    if memo.plan is not None and memo.plan.fits(given, native, budget, profile):
        return memo.plan
    order = server_order([stock.priority for stock in stocks])
    wanted = sum(len(stock.pinned) + len(stock.others) for stock in stocks)
    cap, count, tokens = cap_in_force(budget, profile.max_tools), budget.count, None
    sums: list[Sequence[int]] = []
    room: int | None = None
    if budget.tokens is not None:
        spent = memo.native_tokens(native, count)
        tokens = spent + sum(stock.sizes(count).total for stock in stocks)
        room = max(0, budget.tokens - spent)
        stocks = [stock.within(count, budget.tokens, room) for stock in stocks]
        sums = [stocks[index].sizes(count).pinned for index in order]
        sums += [stocks[index].sizes(count).others for index in order]
    counts = [len(stocks[index].pinned) for index in order]
    counts += [len(stocks[index].others) for index in order]
    cut = allot(counts, slots(cap, len(native.wires)), sums, room)
    kept = cut.kept
    over = _over(budget, profile, cut)
    parts: dict[int, Part] = {}
    for at, index in enumerate(order):
        parts[index] = stocks[index].cut(kept[at], kept[at + len(stocks)], over)
    every = [parts[index] for index in range(len(stocks))]
    trimmed = _trimmed(stocks, order, kept) if sum(kept) < wanted else ()
    memo.plan = Plan(
        stocks=given,
        natives=native,
        budget=budget,
        profile=profile,
        parts=every,
        joined=memo.joined(native, rows, every),
        cap=cap,
        wanted=wanted,
        tokens=tokens,
        trimmed=trimmed,
        cut_by="tokens" if trimmed and cut.bound is None else cut.bound,
    )
    return memo.plan


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
    was = None if previous is None else previous.catalog
    sent = was.tool if was is not None and (was.profile is profile or was.profile == profile) else nothing_sent
    rows = memo.through(lens, memo.rows(state.config.servers, statuses, profile, sent))
    plan = _plan(native, rows, budget, profile, memo)
    # What a row showed last is asked here, and not by a call: nearly all show the same again.
    shown = [
        found.state if (found := row.shown) is not None and found.part is part else row.show(part).state
        for row, part in zip(rows, plan.parts, strict=True)
    ]
    version = 1 if previous is None else previous.version + 1
    catalog = _catalog(version, plan.joined, plan.trimmed, profile, previous)
    model = PluginModel(
        servers=tuple(shown),
        config_error=state.error,
        config_warnings=(*state.config.warnings, *notices),
        profile=profile.name,
        native_count=len(native.wires),
        budget=plan.cap,
        wanted=len(native.wires) + plan.wanted,
        trimmed=len(plan.trimmed),
        budget_asked=budget.tools,
        limit=profile.max_tools,
        token_budget=budget.tokens,
        tokens=plan.tokens,
        cut_by=plan.cut_by,
    )
    if (
        previous is not None
        and catalog is previous.catalog
        and state.rev == previous.config_rev
        and model == previous.model
    ):
        return previous
    return Snapshot(version, state.rev, model, catalog, state.config.line)
