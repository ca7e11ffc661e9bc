"""Two schemas in one: what both accept, and what either accepts, said as plainly as can be without changing it."""

from __future__ import annotations

from typing import Any

from .keywords import ANNOTATIONS, TYPES
from .sound import canonical

__all__ = ["both", "distinct", "either", "every", "joined", "same"]

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


def _types(value: Any) -> list[str]:
    listed = value if isinstance(value, list) else [value]
    return listed if all(isinstance(each, str) and each in TYPES for each in listed) else []


def _shared_type(one: Any, other: Any) -> Any:
    """The types that both of two ``type``s say, an integer being a number too; None when there is none."""
    ours, theirs = _types(one), _types(other)
    kept = [each for each in ours if each in theirs or (each == "integer" and "number" in theirs)]
    if "integer" in theirs and "number" in ours and "integer" not in ours:
        kept.append("integer")
    if "number" in kept:
        kept = [each for each in kept if each != "integer"]
    return None if not kept else kept[0] if len(kept) == 1 else kept


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
    if "type" in shared:
        kind = _shared_type(one["type"], other["type"])
        if kind is not None:
            shared.discard("type")
            merged["type"] = kind
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


def joined(one: Any, other: Any) -> Any:
    """A schema that accepts what both accept, with no ``allOf`` for it; None when it takes one.

    Args:
        one: a schema; its title, description and other annotations win.
        other: a schema.
    """
    if one is True or one == {}:
        return other
    if other is True or other == {}:
        return one
    if one is False or other is False:
        return False
    return _flat(one, other)


def _beside(one: dict[str, Any], others: list[Any]) -> dict[str, Any]:
    given = one.get("allOf")
    return {**one, "allOf": [*(given if isinstance(given, list) else ()), *others]}


def both(one: Any, other: Any) -> Any:
    """A schema that accepts what both accept.

    Args:
        one: a schema; its title, description and other annotations win.
        other: a schema.

    Returns:
        One without ``allOf`` where that can be.
    """
    whole = joined(one, other)
    if whole is not None:
        return whole
    return one if same(one, other) else _beside(one, [other])


def distinct(schemas: list[Any]) -> list[Any]:
    """Each of some schemas once, in order; what is the same object is compared only once."""
    by_identity = {id(each): each for each in schemas}
    if len(by_identity) == 1:
        return schemas[:1]
    kept: dict[bytes, Any] = {}
    for each in by_identity.values():
        kept.setdefault(canonical(each), each)
    return list(kept.values())


def every(schemas: list[Any]) -> Any:
    """A schema that accepts what all of some schemas accept.

    Args:
        schemas: at least one; of annotations the first one's win.

    Returns:
        One without ``allOf`` where that can be.
    """
    kept = distinct(schemas)
    whole = kept[0]
    apart: list[Any] = []
    for each in kept[1:]:
        made = joined(whole, each)
        if made is None:
            apart.append(each)
        else:
            whole = made
    return _beside(whole, apart) if apart and whole is not False else whole


def _choices(schemas: list[dict[str, Any]]) -> dict[str, Any] | None:
    """Schemas that only list values, as one ``enum``; None when one says more."""
    values: dict[bytes, Any] = {}
    types: dict[bytes, Any] = {}
    for schema in schemas:
        if "const" in schema and schema.keys() <= {"const", "type"}:
            listed = [schema["const"]]
        elif isinstance(schema.get("enum"), list) and schema.keys() <= {"enum", "type"}:
            listed = schema["enum"]
        else:
            return None
        types.setdefault(canonical(schema.get("type")), schema.get("type"))
        for value in listed:
            values.setdefault(canonical(value), value)
    if len(types) > 1:
        return None
    (kind,) = types.values()
    return {**({} if kind is None else {"type": kind}), "enum": list(values.values())}


def either(schemas: list[Any]) -> Any:
    """A schema that accepts what any of some schemas accepts.

    Args:
        schemas: at least one.

    Returns:
        The one, if they are all the same; one ``enum``, if they only list values; else ``anyOf``.
    """
    kept = distinct([each for each in schemas if each is not False and each != {"not": {}}])
    if not kept:
        return False
    if len(kept) == 1:
        return kept[0]
    for schema in kept:
        if schema is True or not schema.keys() - ANNOTATIONS:
            return {} if schema is True else schema  # it accepts anything, and so does the whole
    return _choices(kept) or {"anyOf": kept}
