"""Whether a tool's definition is JSON that every encoder takes, and no more of it than can be handled at once.

The limits are explicit, so that the answer is the same at every depth of the caller's stack.
"""

from __future__ import annotations

import json
from math import isfinite
from typing import Any

from ..status import ToolDef

__all__ = ["MAX_DEPTH", "MAX_DIGITS", "MAX_VALUES", "canonical", "judge"]

MAX_DEPTH = 100
"""How deep an input schema may nest: far from where encoders and comparisons run out of stack."""

MAX_VALUES = 100_000
"""How many values (objects, arrays, scalars, counted wherever they occur) an input schema may hold."""

MAX_DIGITS = 4_300
"""How many digits a number may have: as many as Python turns into text."""

_MAX_BITS = 14_280  # 10**4300 has 14285


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


def _odd(value: Any) -> str | None:
    """What is wrong with a value that is not plainly fine, or None."""
    if isinstance(value, str):
        return None if _text(value) else "text that is not valid Unicode"
    if isinstance(value, float):
        return None if isfinite(value) else f"{value}, which JSON does not have"
    if isinstance(value, int):
        return None if value.bit_length() <= _MAX_BITS else f"a number of more than {MAX_DIGITS} digits"
    return f"a {type(value).__name__}, which JSON does not have"


def _flaw(schema: dict[str, Any]) -> str | None:
    """What keeps a schema from being JSON that every encoder takes, or None. Iterative: bounded in time and in stack."""
    level: list[Any] = [schema]
    seen = 1
    for _ in range(MAX_DEPTH):
        below: list[Any] = []
        for holder in level:
            values = holder
            if isinstance(holder, dict):
                values = holder.values()
                for key in holder:
                    if not isinstance(key, str):
                        return f"its input schema has a key that is not text: {type(key).__name__}"
                    if not key.isascii() and not _text(key):
                        return "its input schema has a key that is not valid Unicode"
            seen += len(holder)
            if seen > MAX_VALUES:
                return f"its input schema holds more than {MAX_VALUES} values"
            for value in values:
                if isinstance(value, str):
                    if value.isascii():
                        continue
                elif value is None or value is True or value is False:
                    continue
                elif isinstance(value, (dict, list, tuple)):
                    below.append(value)
                    continue
                odd = _odd(value)
                if odd is not None:
                    return f"its input schema holds {odd}"
        if not below:
            return None
        level = below
    return f"its input schema nests deeper than {MAX_DEPTH} levels"


def _judge(tool: ToolDef) -> str | None:
    for what, text in (("title", tool.title), ("description", tool.description)):
        if text is not None and not isinstance(text, str):
            return f"its {what} is not text but a {type(text).__name__}"
        if text is not None and not _text(text):
            return f"its {what} is not valid Unicode"
    schema = tool.input_schema
    if not isinstance(schema, dict):
        return f"its input schema is not an object but a {type(schema).__name__}"
    return _flaw(schema)


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
