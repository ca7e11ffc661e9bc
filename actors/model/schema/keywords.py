"""What each keyword of JSON Schema holds, as a table: draft 2020-12, its own vocabularies.

Of a keyword that is not in the table nothing is known: what it holds is data, which nobody looks into.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

__all__ = [
    "ANNOTATIONS",
    "FORMS",
    "IDS",
    "LIST",
    "MAP",
    "OPEN_OR_CLOSED",
    "REFS",
    "ROOT_UNIONS",
    "SCHEMA",
    "SHAPES",
    "TYPES",
    "inferred_type",
    "is_form",
    "shortened",
    "types_of",
]

TYPES = frozenset({"array", "boolean", "integer", "null", "number", "object", "string"})

SCHEMA, MAP, LIST = 1, 2, 3
"""A schema; an object of schemas by name; a list of schemas, not empty."""

SHAPES: dict[str, int] = {
    **dict.fromkeys(
        (
            "additionalProperties",
            "contains",
            "contentSchema",
            "else",
            "if",
            "items",
            "not",
            "propertyNames",
            "then",
            "unevaluatedItems",
            "unevaluatedProperties",
        ),
        SCHEMA,
    ),
    **dict.fromkeys(("$defs", "definitions", "dependentSchemas", "patternProperties", "properties"), MAP),
    **dict.fromkeys(("allOf", "anyOf", "oneOf", "prefixItems"), LIST),
}
"""The keywords that hold schemas."""

OPEN_OR_CLOSED = frozenset({"additionalProperties", "unevaluatedItems", "unevaluatedProperties"})
"""Where ``true`` and ``false`` say something that every provider understands, and no schema says it better."""

ROOT_UNIONS = ("allOf", "anyOf", "const", "enum", "not", "oneOf")
"""What providers refuse at the root."""

REFS = frozenset({"$dynamicRef", "$recursiveRef", "$ref"})
"""What refers to another schema."""

IDS = frozenset({"$anchor", "$defs", "$dynamicAnchor", "$id", "$recursiveAnchor", "definitions", "id"})
"""What is there to be referred to; ``id`` is the `$id` of draft 4 when it is a string at the root."""

ANNOTATIONS = frozenset(
    {"$comment", "default", "deprecated", "description", "examples", "readOnly", "title", "writeOnly"}
)
"""What accepts everything."""


def _text(value: Any) -> bool:
    return isinstance(value, str)


def _flag(value: Any) -> bool:
    return isinstance(value, bool)


def _number(value: Any) -> bool:
    return isinstance(value, (int, float)) and not isinstance(value, bool)


def _above_zero(value: Any) -> bool:
    return _number(value) and bool(value > 0)


def _count(value: Any) -> bool:
    return _number(value) and value >= 0 and value == int(value)


def _list(value: Any) -> bool:
    return isinstance(value, list)


def _some(value: Any) -> bool:
    return isinstance(value, list) and len(value) > 0


def _names(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, str) for each in value) and len(set(value)) == len(value)


def _names_by_name(value: Any) -> bool:
    return isinstance(value, dict) and all(map(_names, value.values()))


def _type(value: Any) -> bool:
    if isinstance(value, str):
        return value in TYPES
    return _some(value) and _names(value) and TYPES.issuperset(value)


def _flags_by_name(value: Any) -> bool:
    return isinstance(value, dict) and all(isinstance(each, bool) for each in value.values())


def _anchor(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[A-Za-z_][-A-Za-z0-9._]*", value) is not None


def _id(value: Any) -> bool:
    return isinstance(value, str) and re.fullmatch(r"[^#]*#?", value) is not None


def _never(_: Any) -> bool:
    return False


FORMS: dict[str, Callable[[Any], bool]] = {
    # Of draft 7, and in 2020-12 two other keywords; what is left of it there is a form for it, and no meaning.
    "dependencies": _never,
    "$recursiveAnchor": _anchor,
    "$vocabulary": _flags_by_name,
    "type": _type,
    "enum": _some,
    "required": _names,
    "dependentRequired": _names_by_name,
    "examples": _list,
    "multipleOf": _above_zero,
    "$id": _id,
    "$anchor": _anchor,
    "$dynamicAnchor": _anchor,
    **dict.fromkeys(("deprecated", "readOnly", "uniqueItems", "writeOnly"), _flag),
    **dict.fromkeys(("exclusiveMaximum", "exclusiveMinimum", "maximum", "minimum"), _number),
    **dict.fromkeys(
        (
            "maxContains",
            "maxItems",
            "maxLength",
            "maxProperties",
            "minContains",
            "minItems",
            "minLength",
            "minProperties",
        ),
        _count,
    ),
    **dict.fromkeys(
        (
            "$comment",
            "$dynamicRef",
            "$recursiveRef",
            "$ref",
            "$schema",
            "contentEncoding",
            "contentMediaType",
            "description",
            "format",
            "pattern",
            "title",
        ),
        _text,
    ),
}
"""The keywords that hold no schemas, each with a function that says whether it holds what it should."""


def is_form(key: str, value: Any) -> bool:
    """Whether a keyword holds what draft 2020-12 lets it hold; of schemas in it only whether they are schemas at all."""
    check = FORMS.get(key)
    if check is not None:
        return check(value)
    shape = SHAPES.get(key)
    if shape == SCHEMA:
        return isinstance(value, (dict, bool))
    if shape == MAP:
        return isinstance(value, dict) and all(isinstance(each, (dict, bool)) for each in value.values())
    if shape == LIST:
        return _some(value) and all(isinstance(each, (dict, bool)) for each in value)
    return True


_NAMES_OF_TYPES: tuple[tuple[type, str], ...] = (
    (bool, "boolean"),
    (str, "string"),
    (int, "integer"),
    (float, "number"),
    (dict, "object"),
    (list, "array"),
)


def _type_of(value: Any) -> str:
    for each, name in _NAMES_OF_TYPES:
        if isinstance(value, each):
            return name
    return "null"


def types_of(values: list[Any]) -> str | list[str]:
    """The type of some values, at least one; of several types all of them, in the order of the alphabet."""
    types = {_type_of(each) for each in values}
    if "number" in types:
        types.discard("integer")
    return types.pop() if len(types) == 1 else sorted(types)


def inferred_type(schema: dict[str, Any]) -> str | list[str] | None:
    """The type that a schema without ``type`` plainly means, or None: by ``enum``, ``const``, ``properties``, ``items``.

    A schema that is a union or a reference says its type there.
    """
    if "anyOf" in schema or "oneOf" in schema or "allOf" in schema or "$ref" in schema:
        return None
    if "const" in schema:
        return _type_of(schema["const"])
    values = schema.get("enum")
    if isinstance(values, list) and values:
        return types_of(values)
    if "properties" in schema and "items" not in schema:
        return "object"
    if "items" in schema and "properties" not in schema:
        return "array"
    return None


def shortened(value: Any) -> str:
    """A value in at most about 40 ASCII characters, for a message; of what holds others only what it is."""
    if isinstance(value, str):
        return ascii(value if len(value) <= 40 else value[:40] + "…")
    if value is None or isinstance(value, bool):
        return {None: "null", True: "true", False: "false"}[value]
    if isinstance(value, (dict, list)):
        return f"{'an object' if isinstance(value, dict) else 'a list'} of {len(value)}"
    text = ascii(value)
    return text if len(text) <= 40 else text[:40] + "…"
