"""What would be on the wire if: a projection of what was seen with a few edits applied, compared with what is. Pure."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from attrs import evolve, frozen

from .budget import Budget
from .change import CatalogDiff
from .config import Config
from .edits import Edit, SetEnabled, SetPin, SetTool, apply_edit
from .errors import UnknownServer, UnknownTool
from .lens import EVERYTHING, Item, Lens
from .nearest import nearest
from .profile import Profile
from .seen import Seen
from .snapshot import Snapshot
from .wire import ToolRef

__all__ = ["Preview", "preview"]


@frozen
class Preview:
    """What would be sent; a value whose ``str`` is a sentence.

    Args:
        snapshot: as it would be, all else left as it is.
        diff: from the catalog as it is to that one's.
        trimmed: all victims of the budget there, the first to go first. Those that are not victims now: ``diff.trimmed_now``.
        warning: what there would be to warn of, one line each, or None.
    """

    snapshot: Snapshot
    diff: CatalogDiff
    trimmed: tuple[ToolRef, ...]
    warning: str | None

    def __str__(self) -> str:
        return self.diff.sentence(preview=True)


def preview(
    seen: Seen,
    *,
    enable: Iterable[Item] = (),
    disable: Iterable[Item] = (),
    pin: Iterable[Item] = (),
    unpin: Iterable[Item] = (),
    budget: Budget | None = None,
    profile: Profile | None = None,
    lens: Lens = EVERYTHING,
    now: Snapshot | None = None,
) -> Preview:
    """Work out what would be on the wire if some things were otherwise. Pure: it changes nothing.

    Args:
        seen: what it starts from.
        enable, disable: tools, by `ToolRef` or ``server/tool``, or servers by name.
        pin, unpin: tools likewise.
        budget, profile: None: as they are.
        lens: of the view that it is asked of.
        now: what it is compared with; None for the host's snapshot.

    Returns:
        The preview. A server that is enabled in it, and has not run, has no tools there: nobody knows them yet.

    Raises:
        UnknownServer, UnknownTool: an item names none; the nearest one is named.
        ValueError: an item names more than one thing.
        TypeError: an item is neither a string nor a `ToolRef`, or one string stands for a list.
    """
    config = seen.state.config
    before = seen.snapshot if now is None else now
    edits = [*_edits(seen, enable, True), *_edits(seen, disable, False), *_pins(seen, pin, True)]
    for edit in [*edits, *_pins(seen, unpin, False)]:
        config = apply_edit(config, edit)
    after = seen.project(
        lens=lens, budget=budget, profile=profile, state=evolve(seen.state, config=config), previous=before
    )
    model = after.model
    warnings = [each for each in (model.budget_warning(), model.budget_details(), model.limit_warning()) if each]
    return Preview(after, before.catalog.diff(after.catalog), after.catalog.trimmed, "\n".join(warnings) or None)


def _edits(seen: Seen, items: Iterable[Item], on: bool) -> Iterator[Edit]:
    for item in _listed(items):
        found = _find(seen, item, servers=True)
        yield SetEnabled(found, on) if isinstance(found, str) else SetTool(found.server, found.bare, on)


def _pins(seen: Seen, items: Iterable[Item], on: bool) -> Iterator[Edit]:
    for item in _listed(items):
        found = _find(seen, item, servers=False)
        assert isinstance(found, ToolRef)
        yield SetPin(found.server, found.bare, on)


def _listed(items: Iterable[Item]) -> tuple[Item, ...]:
    if isinstance(items, (str, ToolRef)):
        raise TypeError(f"a list of names is needed here, not the one name {items!r}")
    return tuple(items)


def _find(seen: Seen, item: Item, *, servers: bool) -> str | ToolRef:
    """What an item names: a server, or a tool."""
    config = seen.state.config
    if isinstance(item, ToolRef):
        if not _may_have(seen, item):
            raise _unknown(seen, config, item)
        return item
    if not isinstance(item, str):
        raise TypeError(f"tools are named by strings or ToolRefs, not by {item!r}")
    found: list[str | ToolRef] = [item] if servers and config.get(item) is not None else []
    # Names of servers may hold a slash too: each way to read it counts.
    splits = [ToolRef(item[:at], item[at + 1 :]) for at, char in enumerate(item) if char == "/"]
    splits = [ref for ref in splits if config.get(ref.server) is not None]
    known = [ref for ref in splits if _knows(seen, ref)]
    found += known or ([ref for ref in splits if _may_have(seen, ref)] if not found else [])
    if len(found) > 1:
        raise ValueError(f"{item!r} can be {' or '.join(map(repr, found))}: pass a ToolRef")
    if found:
        return found[0]
    if splits:
        raise _unknown(seen, config, splits[-1])
    server, _, bare = item.partition("/")
    raise _unknown(seen, config, ToolRef(item if servers and not bare else server, bare))


def _knows(seen: Seen, ref: ToolRef) -> bool:
    if seen.snapshot.model.tool(ref.server, ref.bare) is not None:
        return True
    entry = seen.state.config.get(ref.server)
    return entry is not None and ref.bare in (*entry.exclude, *(entry.include or ()), *entry.pin)


def _may_have(seen: Seen, ref: ToolRef) -> bool:
    """Whether a server has a tool, as far as anybody knows: one that has not listed any may have it."""
    there = seen.snapshot.model.server(ref.server)
    return _knows(seen, ref) or (there is not None and there.list_state == "none")


def _unknown(seen: Seen, config: Config, ref: ToolRef) -> UnknownServer | UnknownTool:
    there = seen.snapshot.model.server(ref.server)
    if there is None:
        return UnknownServer(ref.server, nearest(ref.server, (each.name for each in config.servers)), config.path)
    return UnknownTool(ref.bare, nearest(ref.bare, (each.bare for each in there.tools)), server=ref.server)
