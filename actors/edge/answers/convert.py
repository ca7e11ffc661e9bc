"""From a tool's result to what a provider takes: the three steps in a row, and the one provider that takes it as it is."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

from ...model.provider import find_provider
from .cut import Part, boundary, fit, marker
from .media import TAKES, Taken, Takes, Tally, admit
from .pieces import Media, Piece, read
from .shapes import SHAPES

if TYPE_CHECKING:
    from mcp.types import CallToolResult

__all__ = ["MAX_CHARS", "result_for_provider"]

MAX_CHARS = 100_000
"""How many characters of text a result has by default: about 25,000 tokens, at which Claude Code cuts as well."""

_NEEDS = {
    "openai": "call_id",
    "openai-responses": "call_id",
    "anthropic": "call_id",
    "gemini": "name",
    "bedrock": "call_id",
}


def result_for_provider(
    result: CallToolResult,
    provider: str,
    *,
    call_id: str | None = None,
    name: str | None = None,
    max_chars: int = MAX_CHARS,
    media: bool = True,
) -> dict[str, Any]:
    """A tool's result as a provider takes it back; for any result that can be parsed.

    What the provider does not take, or would refuse the whole request for, is left out and said in a line of text: audio,
    types it does not know, images that are too large, empty or not what their type says. An empty result becomes
    ``(no output)``. Structured content goes as JSON where there is a place for it, else as its text, and not twice when a
    text says the same. What each provider takes, and where that is written, is in the table `media.TAKES`.

    Args:
        result: as `Host.call` returned it.
        provider: whom it goes to; it gets
            ``openai``: a message of the role ``tool`` (text alone); ``openai-responses``: a ``function_call_output``
            item; ``anthropic``: a ``tool_result`` block; ``gemini``: a ``functionResponse`` part; ``bedrock``: a
            ``toolResult`` block, with bytes as boto3 takes them; ``mcp``: the result as JSON.
        call_id: the id of the model's call; all but ``gemini`` and ``mcp`` need it.
        name: the wire name of the tool; ``gemini`` needs it.
        max_chars: the most characters of text in all. What is over is cut where a character ends, and a line says how
            much: ``[… 123,456 of 200,000 characters cut]``.
        media: False for a model that takes text alone: images and documents are left out, each with its line.

    Raises:
        ValueError: there is no such provider (the nearest one is named), or it needs `call_id` or `name`.
    """
    wanted = find_provider(provider).name
    need = _NEEDS.get(wanted)
    if need is not None and not {"call_id": call_id, "name": name}[need]:
        raise ValueError(f"provider {provider!r} needs {need}=")
    if wanted == "mcp":
        try:
            as_it_is = _as_it_is(result, max_chars)
            json.dumps(as_it_is, ensure_ascii=False, allow_nan=False).encode("utf-8")
        except Exception:  # no JSON, as it is
            return _as_text(result, max_chars)
        return as_it_is
    takes = TAKES[wanted] if media else Takes()
    error = bool(result.is_error)
    return SHAPES[wanted](_parts(read(result), takes, error, max_chars), error, call_id or "", name or "")


def _parts(pieces: list[Piece], takes: Takes, error: bool, max_chars: int) -> list[Part]:
    tally = Tally()
    parts = [admit(piece, takes, tally, error=error) if isinstance(piece, Media) else piece for piece in pieces]
    return fit(parts, max_chars)


def _as_text(result: CallToolResult, max_chars: int) -> dict[str, Any]:
    parts = _parts(read(result), Takes(), False, max_chars)
    content = [{"type": "text", "text": part.text} for part in parts if not isinstance(part, Taken)]
    return {"content": content, "isError": bool(result.is_error), "resultType": "complete"}


def _as_it_is(result: CallToolResult, max_chars: int) -> dict[str, Any]:
    """The result as JSON, its texts cut, and structured content left out when it is more than they leave."""
    out: dict[str, Any] = result.model_dump(mode="json", by_alias=True, exclude_none=True)
    structured = ""
    if result.structured_content is not None:
        structured = json.dumps(result.structured_content, ensure_ascii=False, allow_nan=False)
    holders = [holder for block in out["content"] if "text" in (holder := block.get("resource", block))]
    of = sum(len(holder["text"]) for holder in holders) + len(structured)
    if of <= max_chars:
        return out
    kept, room = 0, max(0, max_chars - len(marker(of, of)))
    for holder in holders:
        text = holder["text"]
        holder["text"] = text[: boundary(text, room - kept)]
        kept += len(holder["text"])
        if holder["text"] != text:
            room = kept
    if len(structured) > room - kept:
        out.pop("structuredContent", None)
    else:
        kept += len(structured)
    shown = [block for block in out["content"] if block["type"] != "text" or block["text"]]
    out["content"] = [*shown, {"type": "text", "text": marker(of - kept, of)}]
    return out
