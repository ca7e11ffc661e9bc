"""`enum` and `const` against `type`: providers refuse a request when a value listed is none of the type beside it.

A value that is not of the type can never be sent, so leaving it out changes nothing. When none is left, the schema accepts
nothing at all, which nobody means: then the values are believed, and the type is theirs.
"""

from __future__ import annotations

from typing import Any

from .flaw import Link
from .keywords import TYPES, types_of
from .notes import Notes

__all__ = ["agreed", "stray"]


def _is_of(value: Any, types: Any) -> bool:
    """Whether a value is of one of some types, as JSON Schema counts: ``1.0`` is an integer, ``true`` is no number."""
    if isinstance(value, str):
        return "string" in types
    if value is None:
        return "null" in types
    if isinstance(value, bool):
        return "boolean" in types
    if isinstance(value, int):
        return "integer" in types or "number" in types
    if isinstance(value, float):
        return "number" in types or ("integer" in types and value.is_integer())
    return ("object" if isinstance(value, dict) else "array") in types


def _types(schema: dict[str, Any]) -> tuple[str, ...]:
    """The types that a schema says, or none when it says none that can be read."""
    given = schema.get("type")
    if isinstance(given, str):
        return (given,) if given in TYPES else ()
    if isinstance(given, list) and all(isinstance(each, str) for each in given) and TYPES.issuperset(given):
        return tuple(given)
    return ()


def stray(schema: dict[str, Any]) -> str | None:
    """The keyword, ``const`` or ``enum``, with a value that is not of the type beside it; None when there is none."""
    types = _types(schema)
    if not types:
        return None
    if "const" in schema and not _is_of(schema["const"], types):
        return "const"
    values = schema.get("enum")
    if isinstance(values, list) and not all(_is_of(each, types) for each in values):
        return "enum"
    return None


def agreed(schema: dict[str, Any], link: Link, notes: Notes) -> dict[str, Any]:
    """A schema whose listed values are all of its type.

    Args:
        schema: of well-formed keywords; not changed.
        link: where it is.
        notes: is told.

    Returns:
        The same object when they are.
    """
    if stray(schema) is None:
        return schema
    types = _types(schema)
    listed = schema.get("enum")
    values: list[Any] = listed if isinstance(listed, list) else []
    if schema.get("nullable") is True and "null" not in types and None in [*values, schema.get("const", 0)]:
        # OpenAPI 3.0: null is one of the type's values too.
        types = (*types, "null")
        schema = {**schema, "type": list(types)}
        notes.wider((link, "type"), "takes null now, as nullable says and a value listed there is")
    if "const" in schema and not _is_of(schema["const"], types):
        schema, types = _believed(schema, [schema["const"]], "const", link, notes)
    kept = [each for each in values if _is_of(each, types)]
    if len(kept) == len(values):
        return schema
    if kept:
        notes.exact((link, "enum"), f"{len(values) - len(kept)} of its values left out: they are not of its type")
        return {**schema, "enum": kept}
    if "const" in schema:
        notes.wider((link, "enum"), "left out: none of its values is of its type")
        return {key: value for key, value in schema.items() if key != "enum"}
    return _believed(schema, values, "enum", link, notes)[0]


def _believed(
    schema: dict[str, Any], values: list[Any], key: str, link: Link, notes: Notes
) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A schema with the type of some values; and that type."""
    kind = types_of(values)
    notes.wider((link, "type"), f"is now that of its {key}, of which it took nothing")
    return {**schema, "type": kind}, (kind,) if isinstance(kind, str) else tuple(kind)
