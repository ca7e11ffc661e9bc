"""The way back from strict mode: a null that stands for something left out is left out of the call."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from .pointers import points_at

__all__ = ["unstrict"]

_MOST_VIEWS = 256  # schemas looked at for one object; more is no schema that a person wrote
_DEEPEST = 100


def _views(schema: Any, root: dict[str, Any]) -> list[tuple[dict[str, Any], bool]]:
    """The schemas that say something of one value: itself, what it refers to, the branches of its unions.

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
            if isinstance(branches, list):
                queue += [(branch, choice or key != "allOf") for branch in branches[:_MOST_VIEWS]]
    return found


def _takes_null(schema: Any, root: dict[str, Any], depth: int = 0) -> bool:
    """Whether null is a value of a schema; True where that is too deep to tell."""
    if not isinstance(schema, dict):
        return schema is not False
    if depth > 20:
        return True
    given = schema.get("type")
    if schema.get("nullable") is True:
        return True
    if isinstance(given, (str, list)) and given != "null" and "null" not in (given if isinstance(given, list) else ()):
        return False
    if "const" in schema and schema["const"] is not None:
        return False
    values = schema.get("enum")
    if isinstance(values, list) and None not in values:
        return False
    reference = schema.get("$ref")
    if isinstance(reference, str):
        target = points_at(root, reference)
        if target is not None and not _takes_null(target, root, depth + 1):
            return False
    for key in ("anyOf", "oneOf"):
        branches = schema.get(key)
        if isinstance(branches, list) and branches and not any(_takes_null(each, root, depth + 1) for each in branches):
            return False
    branches = schema.get("allOf")
    return not isinstance(branches, list) or all(_takes_null(each, root, depth + 1) for each in branches)


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


def _restored(value: Any, schemas: list[Any], root: dict[str, Any], depth: int) -> Any:
    if depth > _DEEPEST or not isinstance(value, (dict, list)):
        return value
    views = [view for schema in schemas for view in _views(schema, root)][:_MOST_VIEWS]
    if isinstance(value, list):
        items = [view["items"] for view, _ in views if isinstance(view.get("items"), dict)]
        return [_restored(each, items, root, depth + 1) for each in value] if items else value
    return {
        name: _restored(each, list(_about(views, name)), root, depth + 1)
        for name, each in value.items()
        if each is not None or not _stands_for_nothing(views, name, root)
    }


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
        restored = _restored(arguments, [advertised_schema], advertised_schema, 0)
    except (RecursionError, TypeError):
        return dict(arguments)
    return restored if isinstance(restored, dict) else dict(arguments)
