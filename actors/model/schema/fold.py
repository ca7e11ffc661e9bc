"""Unions at the root folded into one object: no provider takes them there, and tools that offer several forms have them.

Every branch is an object, because the arguments of a call are one. Folded, they are one object that accepts what any branch
(``anyOf``, ``oneOf``) or every branch (``allOf``) accepted:

- properties: all of them; one that several branches have takes what any of them takes (or all of them, for ``allOf``);
- required: what every branch requires (or any, for ``allOf``);
- closed (``additionalProperties: false``): if every branch is closed (or one of them, for ``allOf``).

It accepts no less than before, but for one thing that is said: a property that only some branches describe is described as
there, though branches that do not mention it would take anything for it. A call with the one branch's property, malformed, in
the form of another is not what anybody means, and without its description nobody could use the property at all.
"""

from __future__ import annotations

from typing import Any

from .flaw import Link, Unfit
from .keywords import ANNOTATIONS, ROOT_UNIONS
from .merge import both, either, same
from .notes import Notes
from .pointers import points_at
from .sound import MAX_DEPTH, canonical

__all__ = ["folded"]

_MEMBERS = frozenset({"additionalProperties", "patternProperties", "properties", "required", "type"})
_CONDITION = frozenset({"else", "if", "then"})
_PLAIN = _MEMBERS - {"additionalProperties", "patternProperties"} | ANNOTATIONS
_NO_NAMES: dict[str, Any] = {}
_MOST_RESTS = 8  # different schemas for further properties that are told apart


def _takes_objects(schema: Any) -> bool:
    """Whether an object could be a value of a branch, by what it says itself."""
    if not isinstance(schema, dict):
        return schema is not False
    if "not" in schema and (schema["not"] is True or schema["not"] == {}):
        return False
    given = schema.get("type", "object")
    if given != "object" and not (isinstance(given, list) and "object" in given):
        return False
    if "const" in schema and not isinstance(schema["const"], dict):
        return False
    values = schema.get("enum")
    return not isinstance(values, list) or any(isinstance(each, dict) for each in values)


def _names(schema: dict[str, Any]) -> dict[str, Any]:
    found = schema.get("properties")
    return found if isinstance(found, dict) else _NO_NAMES


def _required(schema: dict[str, Any]) -> list[Any]:
    found = schema.get("required")
    return found if isinstance(found, list) else []


def _rest(schema: dict[str, Any]) -> Any:
    """What a branch takes for a property that it does not describe: False for nothing, True for anything, or a schema."""
    rest = schema.get("additionalProperties", True)
    return True if "patternProperties" in schema or not isinstance(rest, (dict, bool)) else rest


class _Folder:
    def __init__(self, root: dict[str, Any], notes: Notes) -> None:
        self.root = root
        self.notes = notes

    def branch(self, schema: Any, link: Link) -> dict[str, Any] | None:
        """A branch as one plain object schema, or None when no object is a value of it."""
        hops = 0
        while isinstance(schema, dict) and isinstance(schema.get("$ref"), str):
            hops += 1
            if hops > MAX_DEPTH:
                raise Unfit("ref-cycle", link, "a branch of the root refers to itself")
            found = points_at(self.root, schema["$ref"])
            if found is self.root or not isinstance(found, (dict, bool)):
                raise Unfit("root-union", link, "a branch of the root refers to the root, or to no schema")
            schema = both({key: value for key, value in schema.items() if key != "$ref"}, found)
        if not _takes_objects(schema):
            return None
        if not isinstance(schema, dict):
            return {}
        return self.fold(schema, link) if any(key in schema for key in ROOT_UNIONS) else schema

    def fold(self, schema: dict[str, Any], link: Link) -> dict[str, Any]:
        """An object schema without unions of its own."""
        base = {key: value for key, value in schema.items() if key not in ROOT_UNIONS}
        if isinstance(base.get("properties"), dict):
            base["properties"] = dict(base["properties"])  # ours, to be added to
        needed: dict[Any, None] = dict.fromkeys(_required(base))
        for key in ("not", "enum", "const"):
            if key in schema:
                self.notes.wider((link, key), "left out: it cannot be said at the root")
        for key in ("allOf", "anyOf", "oneOf"):
            branches = schema.get(key)
            if not isinstance(branches, list) or not branches:
                continue
            here = (link, key)
            views = [self.branch(each, (here, place)) for place, each in enumerate(branches)]
            objects = [view for view in views if view is not None]
            if not objects or (key == "allOf" and len(objects) < len(views)):
                raise Unfit("root-union", here, "no object is a value of it")
            if "unevaluatedProperties" in base and not all(view.keys() <= _PLAIN for view in objects):
                self.notes.wider(
                    (link, "unevaluatedProperties"), "left out: what its branches looked at is not known now"
                )
                del base["unevaluatedProperties"]
            if key == "allOf":
                for view in objects:
                    self.add(base, needed, view, here)
            else:
                self.add(base, needed, self.any_of(objects, here), here)
            self.notes.exact(here, "folded into one object")
        if needed:
            base["required"] = list(needed)
        return base

    def any_of(self, views: list[dict[str, Any]], link: Link) -> dict[str, Any]:
        """What takes all that any of some object schemas takes."""
        if len(views) == 1:
            return views[0]
        described: dict[str, list[Any]] = {}
        for view in views:
            for name, schema in _names(view).items():
                described.setdefault(name, []).append(schema)
        rests = [_rest(view) for view in views]
        others = {canonical(rest): rest for rest in rests if isinstance(rest, dict)}
        open_views = any(rest is True for rest in rests) or len(others) > _MOST_RESTS
        properties: dict[str, Any] = {}
        for name, schemas in described.items():
            if others and not open_views and len(schemas) < len(views):
                schemas = [*schemas, *others.values()]
            properties[name] = either(schemas)
        if open_views and any(
            len(schemas) < len(views) and not _anything(properties[name]) for name, schemas in described.items()
        ):
            self.notes.narrower(link, "what only some branches describe is described as there")
        needed = _required(views[0])
        for view in views[1:]:
            also = set(map(str, _required(view)))
            needed = [name for name in needed if name in also]
        out: dict[str, Any] = {"properties": properties} if properties else {}
        if needed:
            out["required"] = list(needed)
        if all(rest is False for rest in rests):
            out["additionalProperties"] = False
        elif all(isinstance(rest, dict) and same(rest, rests[0]) for rest in rests):
            out["additionalProperties"] = rests[0]
        elif any(rest is not True for rest in rests):
            self.notes.wider(link, "other properties may be there: not every branch is closed")
        self.left_out(views, _MEMBERS, link)
        return out

    def left_out(self, views: list[dict[str, Any]], said: frozenset[str], link: Link) -> None:
        keys = sorted({key for view in views for key in view} - said - ANNOTATIONS)
        if keys or any("patternProperties" in view for view in views):
            self.notes.wider(link, f"left out of its branches: {', '.join(keys or ['patternProperties'])[:120]}")

    def add(self, base: dict[str, Any], needed: dict[Any, None], view: dict[str, Any], link: Link) -> None:
        """Make an object schema take only what another one takes too, or more where that cannot be said.

        Args:
            base: changed; its properties are its own.
            needed: the names it requires; changed.
            view: the other one.
            link: where that comes from.
        """
        names = _names(view)
        if names:
            properties = base.setdefault("properties", {})
            for name, schema in names.items():
                properties[name] = both(properties[name], schema) if name in properties else schema
        needed.update(dict.fromkeys(_required(view)))
        conditional = bool(base.keys() & _CONDITION)
        for key, value in view.items():
            if key in ("properties", "required", "type"):
                continue
            if key == "additionalProperties":
                # It is about what its own branch does not describe: beside what others describe it takes more, never less.
                if key in base or "patternProperties" in view or "patternProperties" in base:
                    if not (key in base and same(base[key], value)) and value is not True:
                        self.notes.wider(link, "additionalProperties of a branch is left out")
                    continue
                base[key] = value
            elif key not in base and not (conditional and key in _CONDITION):
                if key in ("unevaluatedProperties", "unevaluatedItems"):
                    self.notes.wider(link, f"{key} of a branch is left out")
                    continue
                base[key] = value
            elif key not in ANNOTATIONS and not (key in base and same(base[key], value)):
                self.notes.wider(link, f"{key} of a branch is left out"[:120])


def _anything(schema: Any) -> bool:
    return not isinstance(schema, dict) or not schema.keys() - ANNOTATIONS


def folded(root: dict[str, Any], notes: Notes) -> dict[str, Any]:
    """A root schema without ``oneOf``, ``anyOf``, ``allOf``, ``enum``, ``const`` and ``not``.

    Args:
        root: of type object; not changed.
        notes: is told.

    Returns:
        The same object when it has none.

    Raises:
        Unfit: ``root-union``, when no object is a value of it.
    """
    if not any(key in root for key in ROOT_UNIONS):
        return root
    return _Folder(root, notes).fold(root, None)
