"""The shapes in which providers take a tool's result. Each function is one shape, and decides nothing."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Sequence
from posixpath import basename
from typing import Any

from .cut import Part
from .media import Taken
from .pieces import Note, Structured

__all__ = ["ERROR", "NOTHING", "SHAPES", "Shape"]

NOTHING = "(no output)"
"""What stands for a result without content: most providers refuse an empty one."""

ERROR = "[The tool reported an error.]"
"""The first line of an error, where a provider has no other place to say it."""

Shape = Callable[[Sequence[Part], bool, str, str], dict[str, Any]]
"""Of the parts, whether it is an error, the call's id, and the tool's name."""


def _joined(parts: Iterable[Part]) -> str:
    return "\n".join(part.text for part in parts if not isinstance(part, Taken)) or NOTHING


def _with_error(parts: Sequence[Part], error: bool) -> Sequence[Part]:
    return [Note(ERROR), *parts] if error else parts


def _file_name(part: Taken) -> str:
    name = re.sub(r"[^\w.() -]+", "-", basename(part.label.rstrip("/"))).strip("-. ")[-80:]
    ending = f".{part.word}"
    return name if name.lower().endswith(ending) and name != ending else f"{name or 'document'}{ending}"


def _openai(parts: Sequence[Part], error: bool, call_id: str, name: str) -> dict[str, Any]:
    return {"role": "tool", "tool_call_id": call_id, "content": _joined(_with_error(parts, error))}


def _responses(parts: Sequence[Part], error: bool, call_id: str, name: str) -> dict[str, Any]:
    parts = _with_error(parts, error)
    media = any(isinstance(part, Taken) for part in parts)
    output: Any = [_responses_part(part) for part in parts] if media else _joined(parts)
    return {"type": "function_call_output", "call_id": call_id, "output": output}


def _responses_part(part: Part) -> dict[str, Any]:
    if not isinstance(part, Taken):
        return {"type": "input_text", "text": part.text}
    url = f"data:{part.mime};base64,{part.base64}"
    if part.image:
        return {"type": "input_image", "detail": "auto", "image_url": url}
    return {"type": "input_file", "filename": _file_name(part), "file_data": url}


def _anthropic(parts: Sequence[Part], error: bool, call_id: str, name: str) -> dict[str, Any]:
    content = [_anthropic_part(part) for part in parts or [Note(NOTHING)]]
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, "is_error": error}


def _anthropic_part(part: Part) -> dict[str, Any]:
    if not isinstance(part, Taken):
        return {"type": "text", "text": part.text}
    kind = "image" if part.image else "document"
    return {"type": kind, "source": {"type": "base64", "media_type": part.mime, "data": part.base64}}


def _gemini(parts: Sequence[Part], error: bool, call_id: str, name: str) -> dict[str, Any]:
    values = [part.value for part in parts if isinstance(part, Structured)]
    texts = [part for part in parts if not isinstance(part, Taken | Structured)]
    output: Any = _joined(texts)
    if values:
        (value,) = values
        output = {"text": output, "structured": value} if texts else value
    function: dict[str, Any] = {"name": name, "response": {"error" if error else "output": output}}
    if call_id:
        function = {"id": call_id, **function}
    media = [part for part in parts if isinstance(part, Taken)]
    if media:
        function["parts"] = [{"inlineData": {"mimeType": part.mime, "data": part.base64}} for part in media]
    return {"functionResponse": function}


def _bedrock(parts: Sequence[Part], error: bool, call_id: str, name: str) -> dict[str, Any]:
    content: list[dict[str, Any]] = []
    documents = 0
    for part in parts or [Note(NOTHING)]:
        if isinstance(part, Taken) and part.image:
            content.append({"image": {"format": part.word, "source": {"bytes": part.raw}}})
        elif isinstance(part, Taken):
            documents += 1
            # Only these characters are taken, no name twice in a conversation, and a name of the server's would be
            # read by the model.
            unique = re.sub(r"[^A-Za-z0-9]+", "-", call_id)[:100]
            about = {"format": part.word, "name": f"document {unique}-{documents}", "source": {"bytes": part.raw}}
            content.append({"document": about})
        elif isinstance(part, Structured) and isinstance(part.value, dict):
            content.append({"json": part.value})
        else:
            content.append({"text": part.text})
    if documents and not any("text" in each for each in content):
        content.append({"text": "(a document)"})  # none is taken without a text beside it
    return {"toolResult": {"toolUseId": call_id, "content": content, "status": "error" if error else "success"}}


SHAPES: dict[str, Shape] = {
    "openai": _openai,
    "openai-responses": _responses,
    "anthropic": _anthropic,
    "gemini": _gemini,
    "bedrock": _bedrock,
}
"""The shape of each provider, by its name."""
