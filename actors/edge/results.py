"""What a native tool returned, as the result that an MCP tool would have given: legal JSON, or an error in one line."""

from __future__ import annotations

import inspect
from typing import TYPE_CHECKING, Any

import attrs

if TYPE_CHECKING:
    from mcp.types import CallToolResult, TextContent

__all__ = ["error_result", "ready", "to_result"]

_LONGEST_ERROR = 4_000
"""Characters of a tool error that are passed on."""


def ready() -> None:
    """Import what results are made of; the first time that may take a second."""
    import mcp_types  # noqa: F401
    import pydantic_core  # noqa: F401


def to_result(value: Any) -> CallToolResult:
    """Turn a handler's return value into a ``CallToolResult``.

    Args:
        value: a ``CallToolResult`` as it is; content blocks (one, or a list of them and of strings) as content; a ``str``, or
            bytes that are UTF-8, as text; None as an empty result; anything else that has a JSON form (besides JSON itself
            models of pydantic, dataclasses, attrs classes, enums, dates, sets …) as its JSON text, and as structured content
            too when that is an object. NaN and infinities become null, keys that are no text their text, lone surrogates ``�``.

    Raises:
        TypeError: it is none of these.
        ValueError: it holds itself, nests too deep, or holds bytes that are no text.
    """
    from mcp_types import CallToolResult

    if isinstance(value, CallToolResult):
        return _checked(value)
    if value is None:
        return CallToolResult(content=[])
    if isinstance(value, str):
        return CallToolResult(content=[_text(str.__str__(value))])
    if isinstance(value, (bytes, bytearray, memoryview)):
        return CallToolResult(content=[_text(_decoded(bytes(value)))])
    blocks = value if isinstance(value, (list, tuple)) else [value]
    if any(_is_block(each) for each in blocks):
        if not all(_is_block(each) or isinstance(each, str) for each in blocks):
            raise TypeError("a list that holds content blocks may hold strings besides, and nothing else")
        return CallToolResult(content=[_text(each) if isinstance(each, str) else each for each in blocks])
    _refuse_unfinished(value)
    text, plain = _json(value)
    return CallToolResult(content=[_text(text)], structured_content=plain if isinstance(plain, dict) else None)


def error_result(message: str) -> CallToolResult:
    """A tool error with that message: what the model sees when a tool, not the connection, failed.

    Args:
        message: what went wrong; of a very long one the beginning is passed on.
    """
    from mcp_types import CallToolResult

    if len(message) > _LONGEST_ERROR:
        message = f"{message[:_LONGEST_ERROR]}… ({len(message) - _LONGEST_ERROR} more characters)"
    return CallToolResult(content=[_text(message)], is_error=True)


def _is_block(value: Any) -> bool:
    from mcp_types import AudioContent, EmbeddedResource, ImageContent, ResourceLink, TextContent

    return isinstance(value, (AudioContent, EmbeddedResource, ImageContent, ResourceLink, TextContent))


def _text(text: str) -> TextContent:
    from mcp_types import TextContent

    return TextContent(type="text", text=_sound(text))


def _sound(text: str) -> str:
    """Text that can be encoded: halves of surrogate pairs are joined, and what is left of them is replaced."""
    try:
        text.encode("utf-8")
    except UnicodeEncodeError:
        return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
    return text


def _decoded(value: bytes) -> str:
    try:
        return value.decode("utf-8")
    except UnicodeDecodeError:
        raise ValueError("bytes that are no UTF-8 text; return an ImageContent or AudioContent") from None


def _refuse_unfinished(value: Any) -> None:
    """Refuse what would have to be run first, so that it is not taken for an empty result, and does not complain unseen."""
    if inspect.iscoroutine(value):
        value.close()
        raise TypeError("a coroutine that was not awaited")
    if inspect.isawaitable(value) or inspect.isasyncgen(value):
        raise TypeError(f"a {type(value).__name__}, which would have to be awaited")
    if inspect.isgenerator(value):
        raise TypeError("a generator, and a call has one result: return a list")


def _json(value: Any) -> tuple[str, Any]:
    """The JSON text of a value, and the plain value that it says."""
    from pydantic_core import PydanticSerializationError, from_json, to_json, to_jsonable_python

    try:
        try:
            text = to_json(value, inf_nan_mode="null", fallback=_taken_apart)
        except PydanticSerializationError as error:
            if "surrogates" not in str(error):
                raise
            plain = to_jsonable_python(_all_sound(value), inf_nan_mode="null", fallback=_taken_apart)
            text = to_json(_all_sound(plain), inf_nan_mode="null")
        return text.decode(), from_json(text)
    except RecursionError:
        raise ValueError("it nests too deep, or holds itself") from None
    except PydanticSerializationError as error:
        raise ValueError(str(error).removeprefix("Error serializing to JSON: ").split("\n")[0]) from None


def _taken_apart(value: Any) -> Any:
    if attrs.has(type(value)):
        return {each.name: getattr(value, each.name) for each in attrs.fields(type(value))}
    raise TypeError(f"a {type(value).__name__} has no JSON form")


def _all_sound(value: Any) -> Any:
    """The same with sound text, as far as dicts and lists go."""
    if isinstance(value, str):
        return _sound(value)
    if isinstance(value, (list, tuple)):
        return [_all_sound(each) for each in value]
    if isinstance(value, dict):
        return {_all_sound(key) if isinstance(key, str) else key: _all_sound(each) for key, each in value.items()}
    return value


def _checked(result: CallToolResult) -> CallToolResult:
    """A handler's own result, with structured content that is JSON: the SDK takes anything for it."""
    given = result.structured_content
    if given is None:
        return result
    _, plain = _json(given)
    return result if plain == given else result.model_copy(update={"structured_content": plain})
