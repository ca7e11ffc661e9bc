"""What changed from one catalog to another, as a value."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from attrs import frozen

from .naming import wire_name
from .plain import label
from .schema.sound import canonical
from .wire import ToolRef, WireTool

__all__ = ["CatalogDiff", "catalog_diff"]

_NAMES_TOLD = 5


@frozen
class CatalogDiff:
    """From one catalog to another; false when there is no difference, and its ``str`` is a sentence on one line.

    Args:
        added, removed, changed: wire names in order: only in the later one, only in the earlier one, in both with other bytes.
        trimmed_now: which tools the budget dropped from the later one and not from the earlier one, the first to go first.
        untrimmed: which it dropped from the earlier one and not from the later one (they are sent now, or not wanted).
        reordered: tools that are in both come in another order (only native tools can).
    """

    added: tuple[str, ...] = ()
    removed: tuple[str, ...] = ()
    changed: tuple[str, ...] = ()
    trimmed_now: tuple[ToolRef, ...] = ()
    untrimmed: tuple[ToolRef, ...] = ()
    reordered: bool = False

    def __bool__(self) -> bool:
        return bool(self.added or self.removed or self.changed or self.trimmed_now or self.untrimmed or self.reordered)

    def __str__(self) -> str:
        return self.sentence()

    def sentence(self, *, preview: bool = False) -> str:
        """It in words: what was changed, or of a preview what would be."""
        were = " would be" if preview else ""
        trimmed = [wire_name(ref.server, ref.bare) for ref in self.trimmed_now]
        gone = set(trimmed)
        withdrawn = [name for name in self.removed if name not in gone]
        sent = set(self.added)
        unwanted = [ref for ref in self.untrimmed if wire_name(ref.server, ref.bare) not in sent]
        many = len(self.added) != 1
        parts = [
            _part(
                [*map(label, self.added)], f" more tool{'s' if many else ''}{were or (' are' if many else ' is')} sent"
            ),
            _part([*map(label, withdrawn)], f"{were} withdrawn"),
            _part([*map(label, self.changed)], f"{were} changed"),
            _part(trimmed, f"{were} trimmed"),
            _part(
                [f"{label(ref.server)}/{label(ref.bare)}" for ref in unwanted],
                f"{were} no longer wanted, and so not trimmed",
            ),
            f"the order of native tools{were} changed" if self.reordered else "",
        ]
        said = [part for part in parts if part]
        if not said:
            return "nothing on the wire would change" if preview else "nothing on the wire changed"
        return said[0] if len(said) == 1 else f"{', '.join(said[:-1])} and {said[-1]}"


def _part(names: Sequence[str], words: str) -> str:
    if not names:
        return ""
    told = ", ".join(names[:_NAMES_TOLD])
    more = f" and {len(names) - _NAMES_TOLD} more" if len(names) > _NAMES_TOLD else ""
    return f"{len(names)}{words} ({told}{more})"


def catalog_diff(
    before: Sequence[WireTool],
    after: Sequence[WireTool],
    was_trimmed: Iterable[ToolRef] = (),
    now_trimmed: Iterable[ToolRef] = (),
) -> CatalogDiff:
    """What changed from one list of tools to another. Pure, and whatever the order of either.

    Args:
        before, after: the tools of the two catalogs.
        was_trimmed, now_trimmed: their victims.
    """
    old = {tool.wire_name: tool for tool in before}
    new = {tool.wire_name: tool for tool in after}
    gone, come = dict.fromkeys(was_trimmed), dict.fromkeys(now_trimmed)
    both = [name for name in old if name in new]
    return CatalogDiff(
        added=tuple(name for name in new if name not in old),
        removed=tuple(name for name in old if name not in new),
        changed=tuple(name for name in new if name in old and not _same(old[name], new[name])),
        trimmed_now=tuple(ref for ref in come if ref not in gone),
        untrimmed=tuple(ref for ref in gone if ref not in come),
        reordered=both != [name for name in new if name in old],
    )


def _same(one: WireTool, other: WireTool) -> bool:
    # By bytes: for Python ``1 == True``, but a provider is sent something else.
    return one is other or _bytes(one) == _bytes(other)


def _bytes(tool: WireTool) -> bytes:
    try:
        return canonical([tool.wire_name, tool.server, tool.bare, tool.title, tool.description, tool.input_schema])
    except Exception:
        return repr(tool).encode("utf-8", "backslashreplace")  # a native tool that is no JSON
