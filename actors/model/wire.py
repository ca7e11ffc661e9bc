"""One tool on the wire, and one by where it comes from."""

from __future__ import annotations

from attrs import field, frozen

from .frozen import FrozenDict, freeze

__all__ = ["ToolRef", "WireTool"]


@frozen
class ToolRef:
    """A tool by where it comes from: server name and bare tool name."""

    server: str
    bare: str


@frozen(kw_only=True)
class WireTool:
    """One tool as it is sent to a provider; ``server`` is None for a native tool."""

    wire_name: str
    server: str | None
    bare: str
    title: str | None = None
    description: str | None = None
    input_schema: FrozenDict = field(factory=FrozenDict, converter=freeze)
