"""The embedding program's own tools, as values."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any

from attrs import field, frozen

from .frozen import FrozenDict, freeze

__all__ = ["NativeTool"]


def _native_name(_: object, __: object, value: str) -> None:
    if value.startswith("mcp__"):
        raise ValueError(f"native tool {value!r}: names that begin with mcp__ are those of MCP tools")


@frozen
class NativeTool:
    """A tool of the embedding program itself; it always ships.

    Args:
        name: its wire name; may not begin with ``mcp__``.
        description: for the model.
        input_schema: JSON Schema of its arguments; the root is an object.
        handler: called with the arguments as keywords; sync (run in a worker thread) or async.

    Raises:
        ValueError: when the name begins with ``mcp__``.
    """

    name: str = field(validator=_native_name)
    description: str
    input_schema: FrozenDict = field(converter=freeze)
    handler: Callable[..., Any] | Callable[..., Awaitable[Any]] = field(eq=False)
