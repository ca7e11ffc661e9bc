"""What a native tool returned, as the result that an MCP tool would have given."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from mcp.types import CallToolResult

__all__ = ["error_result", "to_result"]


def to_result(value: Any) -> CallToolResult:
    """Turn a handler's return value into a ``CallToolResult``.

    Args:
        value: a ``CallToolResult`` as it is; a ``str`` as text; None as an empty result; a dict as structured content with
            its JSON as text; any other JSON value as its JSON text.

    Raises:
        TypeError: it is none of these and no JSON.
    """
    from mcp_types import CallToolResult, TextContent

    if isinstance(value, CallToolResult):
        return value
    if value is None:
        return CallToolResult(content=[])
    if isinstance(value, str):
        return CallToolResult(content=[TextContent(type="text", text=value)])
    text = TextContent(type="text", text=json.dumps(value, ensure_ascii=False))
    if isinstance(value, dict):
        return CallToolResult(content=[text], structured_content=value)
    return CallToolResult(content=[text])


def error_result(message: str) -> CallToolResult:
    """A tool error with that message: what the model sees when a tool, not the connection, failed."""
    from mcp_types import CallToolResult, TextContent

    return CallToolResult(content=[TextContent(type="text", text=message)], is_error=True)
