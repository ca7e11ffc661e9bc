"""The way back from strict mode: a null that stands for something left out is left out of the call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .flaw import Unfit
from .inline import inlined
from .keywords import REFS
from .notes import Notes
from .pointers import points_at
from .repair import type_names

__all__ = ["unstrict"]

_MOST_VIEWS = 256  # schemas looked at for one object; more is no schema that a person wrote
_DEEPEST = 100


def _views(schema: Any, value: Any, root: dict[str, Any]) -> list[tuple[dict[str, Any], bool]]:
    """The schemas that say something of one value: itself, what it refers to, the branches of its unions.

    Args:
        schema, root: the schema, and where its references begin.
        value: the object or list; branches that it plainly is not of say nothing of it. None: all branches count.

    Returns:
        Each with whether it is one of several choices.
    """
    found: list[tuple[dict[str, Any], bool]] = []
    queue: list[tuple[Any, bool]] = [(schema, False)]
    for each, choice in queue:
        if not isinstance(each, dict):
            continue
        found.append((each, choice))
        if len(queue) > _MOST_VIEWS:
            break
        reference = each.get("$ref")
        if isinstance(reference, str):
            queue.append((points_at(root, reference), choice))
        for key in ("allOf", "anyOf", "oneOf"):
            branches = each.get(key)
            if not isinstance(branches, list):
                continue
            kept = branches[:_MOST_VIEWS]
            if key != "allOf" and value is not None:
                kept = [branch for branch in kept if not _excludes(branch, value, root)] or kept
            queue += [(branch, choice or (key != "allOf" and len(kept) > 1)) for branch in kept]
    return found


def _excludes(schema: Any, value: Any, root: dict[str, Any]) -> bool:
    """Whether a branch plainly is not the one of a value: by its type, or by the tag (a ``const`` or ``enum``) it has."""
    if isinstance(schema, dict) and isinstance(schema.get("$ref"), str):
        schema = points_at(root, schema["$ref"])
    if not isinstance(schema, dict):
        return schema is False
    types = type_names(schema.get("type"))
    if types and ("object" if isinstance(value, dict) else "array") not in types:
        return True
    properties = schema.get("properties")
    if not isinstance(value, dict) or not isinstance(properties, dict):
        return False
    for name, each in properties.items():
        if not isinstance(each, dict) or not isinstance(value.get(name), str):
            continue
        if isinstance(each.get("const"), str) and each["const"] != value[name]:
            return True
        listed = each.get("enum")
        if isinstance(listed, list) and value[name] not in listed:
            return True
    return False


def _takes_null(schema: Any, root: dict[str, Any]) -> bool:
    """Whether null is a value of a schema; True where that is too deep, or takes too many schemas, to tell."""
    return _nullable(schema, root, 0, [_MOST_VIEWS])


def _nullable(schema: Any, root: dict[str, Any], depth: int, left: list[int]) -> bool:
    if not isinstance(schema, dict):
        return schema is not False
    left[0] -= 1
    if depth > 20 or left[0] < 0:
        return True
    if schema.get("nullable") is True:
        return True
    types = type_names(schema.get("type"))
    if types and "null" not in types:
        return False
    if "const" in schema and schema["const"] is not None:
        return False
    values = schema.get("enum")
    if isinstance(values, list) and None not in values:
        return False
    reference = schema.get("$ref")
    if isinstance(reference, str):
        target = points_at(root, reference)
        if target is not None and not _nullable(target, root, depth + 1, left):
            return False
    for key in ("anyOf", "oneOf"):
        branches = schema.get(key)
        if not isinstance(branches, list) or not branches:
            continue
        if not any(_nullable(each, root, depth + 1, left) for each in branches):
            return False
    branches = schema.get("allOf")
    return not isinstance(branches, list) or all(_nullable(each, root, depth + 1, left) for each in branches)


def _required(view: dict[str, Any], name: str) -> bool:
    required = view.get("required")
    return isinstance(required, list) and name in required


def _about(views: list[tuple[dict[str, Any], bool]], name: str) -> Iterator[Any]:
    """What the views say of a property."""
    for view, _ in views:
        properties = view.get("properties")
        if isinstance(properties, dict) and name in properties:
            yield properties[name]


def _stands_for_nothing(views: list[tuple[dict[str, Any], bool]], name: str, root: dict[str, Any]) -> bool:
    schemas = list(_about(views, name))
    if not schemas or any(_takes_null(each, root) for each in schemas):
        return False
    if any(_required(view, name) for view, choice in views if not choice):
        return False
    # Of several choices: one that describes it and does not require it is enough.
    choices = [view for view, choice in views if choice and name in (view.get("properties") or ())]
    return not choices or not all(_required(view, name) for view in choices) or len(choices) < _choices(views)


def _choices(views: list[tuple[dict[str, Any], bool]]) -> int:
    return sum(1 for view, choice in views if choice and "properties" in view)


def _at(view: dict[str, Any], place: int) -> Any:
    """What a schema says of the item at a place; the tuples of older drafts too."""
    rest = view.get("items")
    listed = view.get("prefixItems")
    if not isinstance(listed, list):
        if not isinstance(rest, list):
            return rest
        listed, rest = rest, view.get("additionalItems")
    return listed[place] if place < len(listed) else rest


def _restored(value: Any, schemas: list[Any], root: dict[str, Any], depth: int) -> Any:
    if depth > _DEEPEST or not isinstance(value, (dict, list)):
        return value
    views = [view for schema in schemas for view in _views(schema, value, root)][:_MOST_VIEWS]
    every: list[tuple[dict[str, Any], bool]] = []  # of the branches that are not of this value too

    def left_out(name: str) -> bool:
        if any(True for _ in _about(views, name)):
            return _stands_for_nothing(views, name, root)
        # Only other branches know it: in strict mode it is required all the same.
        if not every:
            every.extend([view for schema in schemas for view in _views(schema, None, root)][:_MOST_VIEWS])
        return _stands_for_nothing(every, name, root)

    if isinstance(value, list):
        return [
            _restored(each, [said for view, _ in views if isinstance(said := _at(view, place), dict)], root, depth + 1)
            for place, each in enumerate(value)
        ]
    return {
        name: _restored(each, list(_about(views, name)), root, depth + 1)
        for name, each in value.items()
        if each is not None or not left_out(name)
    }


def _refers(schema: Any) -> bool:
    stack = [schema]
    while stack:
        each = stack.pop()
        if isinstance(each, dict):
            if any(key in each for key in REFS):
                return True
            stack.extend(each.values())
        elif isinstance(each, list):
            stack.extend(each)
    return False


def _plain(schema: dict[str, Any]) -> dict[str, Any]:
    """A schema without references, as mending for strict mode reads it; as it is where that cannot be."""
    if not _refers(schema):
        return schema
    try:
        return inlined(schema, Notes())
    except Unfit:
        return schema


def unstrict(arguments: dict[str, Any], advertised_schema: dict[str, Any]) -> dict[str, Any]:
    """The arguments of a call as the server expects them: strict mode's nulls for what is optional left out, at any depth.

    Args:
        arguments: as the model sent them; not changed.
        advertised_schema: the server's own schema, before it was mended.

    Returns:
        A copy without each null that stands for a property which is optional there and takes no null. Total: what cannot be
        told is kept.
    """
    try:
        schema = _plain(advertised_schema)
        restored = _restored(arguments, [schema], schema, 0)
    except (RecursionError, TypeError):
        return dict(arguments)
    return restored if isinstance(restored, dict) else dict(arguments)
