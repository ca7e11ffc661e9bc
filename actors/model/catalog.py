"""The wire catalog: what is sent to a provider, as one immutable value."""

from __future__ import annotations

from typing import Any

from attrs import field, frozen

from .change import CatalogDiff, catalog_diff
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
        digest: hex SHA-256 of the tools' own hashes in this order, each of one tool's canonical JSON (keys sorted). Equal
            if and only if the tools are, as JSON is compared; while one host lives the same tool is the same object, so that
            then the bytes are equal too. Another run may meet a schema's keys in another order.
        profile: what it was made for.
    """

    version: int
    tools: tuple[WireTool, ...]
    trimmed: tuple[ToolRef, ...]
    digest: str
    profile: Profile = PORTABLE
    _index: dict[str, WireTool] = field(init=False, factory=dict, eq=False, repr=False)
    _victims: dict[ToolRef, int] = field(init=False, factory=dict, eq=False, repr=False)

    def tool(self, wire_name: str) -> WireTool | None:
        """The tool of that wire name, or None."""
        if not self._index:
            # Made by the first who asks: with thousands of tools it would be a third of what publishing costs. The
            # update is one step, so that a reader in another thread sees none of it or all of it.
            self._index.update({tool.wire_name: tool for tool in self.tools})
        return self._index.get(wire_name)

    def victim(self, ref: ToolRef) -> int | None:
        """Which a tool is among the victims of the budget, 0 for the first to go; None when it is none of them."""
        if not self._victims:
            self._victims.update({each: at for at, each in enumerate(self.trimmed)})  # as `tool`
        return self._victims.get(ref)

    def diff(self, other: Catalog) -> CatalogDiff:
        """What changed from this catalog to another one, such as the one of the turn after.

        Args:
            other: the later one. What it has and this one has not is ``added``.

        Returns:
            The difference; with equal digests no tool is added, removed or changed.
        """
        mine, its = (self.tools, other.tools) if self.digest != other.digest else ((), ())
        return catalog_diff(mine, its, self.trimmed, other.trimmed)

    def for_provider(self, name: str, *, strict: bool | None = None) -> list[dict[str, Any]]:
        """What a provider's ``tools`` field takes: the tools in this order and under these names, none left out.

        The dicts are new, and the caller's; the schemas in them are those of the catalog, shared and read-only.

        Args:
            name: ``openai`` (chat completions), ``openai-responses``, ``anthropic``, ``gemini`` (one ``Tool`` with all
                functions), ``bedrock`` (Converse's ``toolConfig.tools``) or ``mcp``.
            strict: OpenAI's strict mode; None: if the catalog's profile is strict.

        Raises:
            ProfileMismatch: the provider would refuse a tool, or so many; it says which, why, and which profile to open
                the host or the view with.
            ValueError: there is no such provider (the nearest one is named), or it has no strict mode.
        """
        from .export import export  # when first needed: it brings the judging of schemas with it

        return export(self.tools, self.profile, name, strict=strict)
