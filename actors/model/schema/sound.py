"""Whether a tool's definition is JSON that every encoder takes, and no more of it than can be handled at once.

The limits are explicit, so that the answer is the same at every depth of the caller's stack.
"""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

from ..status import ToolDef

__all__ = ["MAX_DEPTH", "MAX_VALUES", "canonical", "judge"]

MAX_DEPTH = 100
"""How deep an input schema may nest: far from where encoders and comparisons run out of stack."""

MAX_VALUES = 100_000
"""How many values (objects, arrays, scalars, counted wherever they occur) an input schema may hold."""


def canonical(value: Any) -> bytes:
    """The canonical JSON of a value: sorted keys, no spaces, ASCII.

    Args:
        value: JSON values; lists and tuples are arrays.

    Returns:
        The bytes: the same for equal JSON, whatever the order of keys.

    Raises:
        ValueError: a number has no JSON form (NaN, infinity, more digits than Python converts).
        TypeError: a value has no JSON form.
        RecursionError: it nests too deep; not for values that `judge` let through.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode("ascii")


def _text(value: str) -> bool:
    """Whether a string can be encoded as UTF-8 (no lone surrogates)."""
    if value.isascii():
        return True
    try:
        value.encode("utf-8")
    except UnicodeEncodeError:
        return False
    return True


def _flaw(schema: dict[str, Any]) -> str | None:
    """What keeps a schema from being JSON that every encoder takes, or None. Iterative: bounded in time and in stack."""
    level: list[Any] = [schema]
    seen = depth = 0
    while level:
        depth += 1
        if depth > MAX_DEPTH:
            return f"its input schema nests deeper than {MAX_DEPTH} levels"
        below: list[Any] = []
        for value in level:
            if isinstance(value, dict):
                for key in value:
                    if not isinstance(key, str):
                        return f"its input schema has a key that is not text: {type(key).__name__}"
                    if not _text(key):
                        return "its input schema has a key that is not valid Unicode"
                below.extend(value.values())
            elif isinstance(value, (list, tuple)):
                below.extend(value)
            elif isinstance(value, str):
                if not _text(value):
                    return "its input schema holds text that is not valid Unicode"
            elif isinstance(value, float):
                if not isfinite(value):
                    return f"its input schema holds {value}, which JSON does not have"
            elif value is not None and not isinstance(value, int):
                return f"its input schema holds a {type(value).__name__}, which JSON does not have"
            seen += 1
            if seen + len(below) > MAX_VALUES:
                return f"its input schema holds more than {MAX_VALUES} values"
        level = below
    return None


def _judge(tool: ToolDef) -> str | None:
    for what, text in (("title", tool.title), ("description", tool.description)):
        if text is not None and not isinstance(text, str):
            return f"its {what} is not text but a {type(text).__name__}"
        if text is not None and not _text(text):
            return f"its {what} is not valid Unicode"
    schema = tool.input_schema
    if not isinstance(schema, dict):
        return f"its input schema is not an object but a {type(schema).__name__}"
    flaw = _flaw(schema)
    if flaw is not None:
        return flaw
    canonical(schema)
    return None


def judge(tool: ToolDef) -> str | None:
    """Why a tool's definition is no JSON that could be sent to anybody, or None when it is. Total: it never raises.

    Args:
        tool: as its server advertised it.

    Returns:
        One line that says what is wrong with it, or None.
    """
    try:
        return _judge(tool)
    except Exception as error:
        return f"its definition cannot be encoded: {type(error).__name__}"
