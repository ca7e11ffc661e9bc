"""The wire catalog: what is sent to a provider, as one immutable value."""

from __future__ import annotations

from attrs import field, frozen

from .profile import PORTABLE, Profile
from .wire import ToolRef, WireTool

__all__ = ["Catalog"]


@frozen
class Catalog:
    """The wire catalog: native tools as given, then MCP tools by wire name.

    Args:
        version: of the snapshot in which this catalog took the place of another one.
        tools: what is sent.
        trimmed: the victims of the budget, the first to go first.
        digest: hex SHA-256 of the tools' canonical JSON: equal if and only if the bytes are.
        profile: what it was made for.
    """

    version: int
    tools: tuple[WireTool, ...]
    trimmed: tuple[ToolRef, ...]
    digest: str
    profile: Profile = PORTABLE
    _index: dict[str, WireTool] = field(init=False, factory=dict, eq=False, repr=False)

    def tool(self, wire_name: str) -> WireTool | None:
        """The tool of that wire name, or None."""
        if not self._index:
            # Made by the first who asks: with thousands of tools it would be a third of what publishing costs. The
            # update is one step, so that a reader in another thread sees none of it or all of it.
            self._index.update({tool.wire_name: tool for tool in self.tools})
        return self._index.get(wire_name)
