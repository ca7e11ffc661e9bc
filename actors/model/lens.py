"""What one view shows of the servers that all share: filters by name, as a value."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence

from attrs import field, frozen

from .naming import PREFIX
from .native import NativeTool
from .nearest import nearest
from .row import Row
from .snapshot import PluginModel
from .wire import ToolRef

__all__ = ["EVERYTHING", "Item", "Lens"]

Item = str | ToolRef

BY_EXCLUDE = "excluded by this view"
BY_INCLUDE = "not in this view's include list"


def _items(value: Iterable[Item]) -> frozenset[Item]:
    if isinstance(value, (str, ToolRef)):
        raise TypeError(f"a list of names is needed here, not the one name {value!r}")
    items = frozenset(value)
    for item in items:
        if not isinstance(item, (str, ToolRef)):
            raise TypeError(f"a view names servers and tools by strings or ToolRefs, not by {item!r}")
    return items


def _items_or_none(value: Iterable[Item] | None) -> frozenset[Item] | None:
    return None if value is None else _items(value)


@frozen
class Lens:
    """Standing filters of a view. What they name may come later, or never.

    An item is the name of a server, ``server/tool``, a wire name, a `ToolRef`, or the name of a native tool. It is compared
    as a whole and never taken apart: names of servers and tools may hold any characters.

    Args:
        exclude: what is left out; wins over ``include``.
        include: when not None, only these MCP tools are left. Native tools are not concerned.

    Raises:
        TypeError: an item is something else, or one string stands for a list.
    """

    exclude: frozenset[Item] = field(default=frozenset(), converter=_items)
    include: frozenset[Item] | None = field(default=None, converter=_items_or_none)

    def hides(self, server: str, bare: str, wire_name: str) -> str | None:
        """Why a tool is left out, in words, or None.

        Args:
            server, bare, wire_name: of an MCP tool, known or not.
        """
        names = (server, f"{server}/{bare}", wire_name, ToolRef(server, bare))
        if not self.exclude.isdisjoint(names):
            return BY_EXCLUDE
        return None if self.include is None or not self.include.isdisjoint(names) else BY_INCLUDE

    def hides_server(self, server: str) -> str | None:
        """Why no tool of a server can be shown, whatever it has, or None."""
        if server in self.exclude:
            return BY_EXCLUDE
        if self.include is None or server in self.include:
            return None
        return None if _may_name(self.include, server) else BY_INCLUDE

    def hides_shelves(self, server: str) -> str | None:
        """Why a server's resources and prompts are left out, in words, or None. An item that names a tool names no server."""
        if server in self.exclude:
            return BY_EXCLUDE
        return None if self.include is None or server in self.include else BY_INCLUDE

    def hides_native(self, name: str) -> str | None:
        """Why a native tool is left out, in words, or None."""
        return BY_EXCLUDE if name in self.exclude else None

    def unmatched(self, model: PluginModel, natives: Collection[NativeTool]) -> dict[Item, str | None]:
        """The items that name nothing there is, each with the nearest name there is, or None.

        What a server may still list is not among them: a tool of one that has not listed its tools, and a wire name for as long
        as one is being started.

        Args:
            model: of all servers.
            natives: all native tools.
        """
        names: set[Item] = {native.name for native in natives}
        refs: set[Item] = set()
        for server in model.servers:
            names.add(server.name)
            for tool in server.tools:
                names.update((f"{server.name}/{tool.bare}", tool.wire_name))
                refs.add(ToolRef(server.name, tool.bare))
        unlisted = [server.name for server in model.servers if server.list_state == "none"]
        coming = any(
            server.phase in ("starting", "backing_off") for server in model.servers if server.list_state == "none"
        )
        found: dict[Item, str | None] = {}
        for item in sorted(self.exclude | (self.include or frozenset()), key=str):
            if item in names or item in refs or _may_come(item, unlisted, coming):
                continue
            text = item if isinstance(item, str) else f"{item.server}/{item.bare}"
            found[item] = nearest(text, sorted(name for name in names if isinstance(name, str)))
        return found

    def natives(self, given: Sequence[NativeTool]) -> tuple[NativeTool, ...]:
        """The native tools that are left."""
        return tuple(native for native in given if native.name not in self.exclude) if self.exclude else tuple(given)

    def through(self, row: Row) -> Row:
        """A server as the view has it; the row itself when nothing of it is left out."""
        server = row.entry.name
        if self.hides_shelves(server) is not None:
            row = row.unshelved()
        if server in self.exclude:
            return row.without(None, BY_EXCLUDE)
        if _may_name(self.exclude, server):
            row = row.without(_named(self.exclude, row), BY_EXCLUDE)
        if self.include is None or server in self.include:
            return row
        if not _may_name(self.include, server):
            return row.without(None, BY_INCLUDE)
        shown = _named(self.include, row)
        return row.without(frozenset(tool.ref.bare for tool in row.stock.tools) - shown, BY_INCLUDE)


def _may_come(item: Item, unlisted: Collection[str], coming: bool) -> bool:
    """Whether an item may be that of a tool that is not listed yet.

    Args:
        item: what is sought.
        unlisted: the servers that have not listed their tools.
        coming: one of them is being started.
    """
    if isinstance(item, ToolRef):
        return item.server in unlisted
    return (coming and item.startswith(PREFIX)) or any(item.startswith(f"{server}/") for server in unlisted)


def _may_name(items: Collection[Item], server: str) -> bool:
    """Whether an item may be that of a tool of this server; when it is not, none is."""
    head = f"{server}/"
    return any(
        item.server == server if isinstance(item, ToolRef) else item.startswith(("mcp__", head)) for item in items
    )


def _named(items: Collection[Item], row: Row) -> frozenset[str]:
    """The bare names of the tools of a server that are named one by one."""
    server = row.entry.name
    head = f"{server}/"
    named = {item.bare for item in items if isinstance(item, ToolRef) and item.server == server}
    texts = {item for item in items if isinstance(item, str)}
    named |= {text[len(head) :] for text in texts if text.startswith(head)}
    return frozenset(
        tool.ref.bare for tool in row.stock.tools if tool.ref.bare in named or tool.wire.wire_name in texts
    )


EVERYTHING = Lens()
"""What leaves nothing out."""
