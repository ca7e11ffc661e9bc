"""Two schemas in one: what both accept, and what either accepts, said as plainly as can be without changing it."""

from __future__ import annotations

from typing import Any

from .keywords import ANNOTATIONS
from .sound import canonical

__all__ = ["both", "either", "same"]

_GROUPS: tuple[frozenset[str], ...] = (
    frozenset({"properties", "patternProperties", "additionalProperties"}),
    frozenset({"items", "prefixItems"}),
    frozenset({"contains", "minContains", "maxContains"}),
    frozenset({"if", "then", "else"}),
)
"""Keywords that change one another's meaning inside one schema: of each group only one side may have any."""

_UNEVALUATED = frozenset({"unevaluatedItems", "unevaluatedProperties"})


def same(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON (``1`` is not ``true``, as it is for ``==``)."""
    return one is other or canonical(one) == canonical(other)


def _flat(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any] | None:
    """All keywords side by side, when each then means what it meant; else None."""
    ours = one.keys() - ANNOTATIONS
    theirs = other.keys() - ANNOTATIONS
    if not ours or not theirs:
        return {**other, **one}
    if (ours | theirs) & _UNEVALUATED:
        return None
    merged = {**other, **one}
    shared = {key for key in ours & theirs if not same(one[key], other[key])}
    if "required" in shared and isinstance(one["required"], list) and isinstance(other["required"], list):
        shared.discard("required")
        merged["required"] = [*other["required"], *(name for name in one["required"] if name not in other["required"])]
    left = set(shared)
    for group in _GROUPS:
        if not (ours & group and theirs & group):
            continue
        if ours & group == theirs & group and not shared & group:
            continue
        if (ours | theirs) & group == {"properties"} and _objects(one, other):
            left.discard("properties")
            merged["properties"] = _members(one["properties"], other["properties"])
            continue
        return None
    return None if left else merged


def _objects(one: dict[str, Any], other: dict[str, Any]) -> bool:
    return isinstance(one["properties"], dict) and isinstance(other["properties"], dict)


def _members(one: dict[str, Any], other: dict[str, Any]) -> dict[str, Any]:
    merged = dict(other)
    for name, schema in one.items():
        merged[name] = both(schema, merged[name]) if name in merged else schema
    return merged


def both(one: Any, other: Any) -> Any:
    """A schema that accepts what both accept.

    Args:
        one: a schema; its title, description and other annotations win.
        other: a schema.

    Returns:
        One without ``allOf`` where that can be.
    """
    if one is True or one == {}:
        return other
    if other is True or other == {}:
        return one
    if one is False or other is False:
        return False
    flat = _flat(one, other)
    if flat is not None:
        return flat
    if same(one, other):
        return one
    given = one.get("allOf")
    return {**one, "allOf": [*(given if isinstance(given, list) else ()), other]}


def _choices(schemas: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Schemas that only list values, as one ``enum``; None when one says more."""
    values: dict[bytes, Any] = {}
    types: set[str] = set()
    for schema in schemas:
        if "const" in schema and schema.keys() <= {"const", "type"}:
            listed = [schema["const"]]
        elif isinstance(schema.get("enum"), list) and schema.keys() <= {"enum", "type"}:
            listed = schema["enum"]
        else:
            return None
        types.add(schema["type"] if isinstance(schema.get("type"), str) else "")
        for value in listed:
            values.setdefault(canonical(value), value)
    if len(types) > 1 and len(types - {""}) > 0:
        return None
    kind = types.pop()
    return {**({"type": kind} if kind else {}), "enum": list(values.values())}


def either(schemas: list[Any]) -> Any:
    """A schema that accepts what any of some schemas accepts.

    Args:
        schemas: at least one.

    Returns:
        The one, if they are all the same; one ``enum``, if they only list values; else ``anyOf``.
    """
    distinct: dict[bytes, Any] = {}
    for schema in schemas:
        if schema is False or schema == {"not": {}}:
            continue
        distinct.setdefault(canonical(schema), schema)
    kept = list(distinct.values())
    if not kept:
        return False
    if len(kept) == 1:
        return kept[0]
    for schema in kept:
        if schema is True or not schema.keys() - ANNOTATIONS:
            return {} if schema is True else schema  # it accepts anything, and so does the whole
    return _choices(kept) or {"anyOf": kept}
