"""The shapes of the providers' ``tools`` fields: for each, the exact JSON of one tool, and of them all."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Final

from attrs import frozen

from .nearest import nearest
from .wire import WireTool

__all__ = ["PROVIDERS", "Provider", "find_provider"]

Encode = Callable[[WireTool, "bool | None"], dict[str, Any]]


def _described(out: dict[str, Any], tool: WireTool) -> dict[str, Any]:
    if tool.description is not None:
        out["description"] = tool.description
    return out


def _openai(tool: WireTool, strict: bool | None) -> dict[str, Any]:
    function = _described({"name": tool.wire_name}, tool)
    function["parameters"] = tool.input_schema
    if strict:
        function["strict"] = True
    return {"type": "function", "function": function}


def _responses(tool: WireTool, strict: bool | None) -> dict[str, Any]:
    out = _described({"type": "function", "name": tool.wire_name}, tool)
    out["parameters"] = tool.input_schema
    # Always said: this interface takes a missing one for true, and rewrites the schema.
    out["strict"] = bool(strict)
    return out


def _anthropic(tool: WireTool, _: bool | None) -> dict[str, Any]:
    out = _described({"name": tool.wire_name}, tool)
    out["input_schema"] = tool.input_schema
    return out


def _gemini(tool: WireTool, _: bool | None) -> dict[str, Any]:
    out = _described({"name": tool.wire_name}, tool)
    out["parametersJsonSchema"] = tool.input_schema
    return out


def _bedrock(tool: WireTool, _: bool | None) -> dict[str, Any]:
    out = _described({"name": tool.wire_name}, tool)
    out["inputSchema"] = {"json": tool.input_schema}
    return {"toolSpec": out}


def _mcp(tool: WireTool, _: bool | None) -> dict[str, Any]:
    out: dict[str, Any] = {"name": tool.wire_name}
    if tool.title is not None:
        out["title"] = tool.title
    _described(out, tool)
    out["inputSchema"] = tool.input_schema
    return out


def _as_they_are(tools: list[dict[str, Any]]) -> list[dict[str, Any]]:
    return tools


def _one_tool(declarations: list[dict[str, Any]]) -> list[dict[str, Any]]:
    # Gemini's field is a list of Tool objects, each of which may hold all functions. One without any is refused.
    return [{"functionDeclarations": declarations}] if declarations else []


@frozen
class Provider:
    """One shape of a ``tools`` field.

    Args:
        name: what it is asked for by.
        profile: the name of the profile that says what is taken.
        encode: makes the JSON of one tool; its second argument is whether it is strict.
        gather: makes the field of them all.
        strict: it has OpenAI's strict mode.
    """

    name: str
    profile: str
    encode: Encode
    gather: Callable[[list[dict[str, Any]]], list[dict[str, Any]]] = _as_they_are
    strict: bool = False


PROVIDERS: Final[dict[str, Provider]] = {
    each.name: each
    for each in (
        Provider("openai", "openai", _openai, strict=True),
        Provider("openai-responses", "openai-responses", _responses, strict=True),
        Provider("anthropic", "anthropic", _anthropic),
        Provider("gemini", "gemini", _gemini, _one_tool),
        Provider("bedrock", "bedrock", _bedrock),
        Provider("mcp", "mcp", _mcp),
    )
}
"""All shapes by name."""


def find_provider(name: str) -> Provider:
    """The provider of that name.

    Raises:
        ValueError: there is none; the nearest one is named.
    """
    found = PROVIDERS.get(name)
    if found is None:
        near = nearest(name, PROVIDERS)
        hint = f"; did you mean {near!r}?" if near else ""
        raise ValueError(f"there is no provider {name!r}{hint} (they are: {', '.join(PROVIDERS)})")
    return found
