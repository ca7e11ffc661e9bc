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
from .inline import MAX_GROWTH, count
from .keywords import ANNOTATIONS, ROOT_UNIONS, shortened
from .merge import both, distinct, either, every, same
from .notes import Notes
from .pointers import points_at, refs_alone
from .sound import canonical

__all__ = ["MAX_PARTS", "MAX_WORK", "folded"]

MAX_WORK = 100_000
"""How many values of branches are looked at for one root, each as often as it is: unions of unions grow without bound."""

MAX_PARTS = 200
"""How many different schemas for one property are joined, when all of them count."""

_MEMBERS = frozenset({"additionalProperties", "patternProperties", "properties", "required", "type"})
_CONDITION = frozenset({"else", "if", "then"})
_PLAIN = _MEMBERS - {"additionalProperties", "patternProperties"} | ANNOTATIONS
_NO_NAMES: dict[str, Any] = {}
_DEEPEST = 60  # unions and references in one another, far from the end of the stack
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
        self.work = 0
        self.depth = 0
        self._path: set[int] = set()  # the targets being followed, by identity: meeting one again is a cycle
        self._made: dict[int, dict[str, Any] | None] = {}  # by identity of a target: it as a branch
        self._sizes: dict[int, tuple[Any, int]] = {}  # by identity of a schema, which is kept so that it stays its own

    def spend(self, schema: Any, link: Link) -> None:
        """Count the values of a schema that is looked at, however often.

        Raises:
            Unfit: ``too-large``, when that is too much in all.
        """
        known = self._sizes.get(id(schema))
        if known is None:
            known = self._sizes[id(schema)] = (schema, count(schema))
        self.work += known[1]
        if self.work > MAX_WORK:
            raise Unfit("too-large", link, "the unions at the root of its input schema are too large to be folded")

    def referred(self, schema: dict[str, Any], link: Link) -> dict[str, Any] | None:
        """A branch that is a reference. What is referred to alone is looked at once."""
        found = points_at(self.root, schema["$ref"])
        if found is self.root or not isinstance(found, (dict, bool)):
            raise Unfit("root-union", link, "a branch of the root refers to the root, or to no schema")
        alone = refs_alone(self.root)
        rest = {key: value for key, value in schema.items() if key in ANNOTATIONS or not (alone or key == "$ref")}
        if not rest and id(found) in self._made:
            return self._made[id(found)]
        if id(found) in self._path:
            raise Unfit("ref-cycle", link, "a branch of the root refers to itself")
        if len(self._path) >= _DEEPEST:
            raise Unfit("too-large", link, f"the references of its branches nest deeper than {_DEEPEST} levels")
        if rest:
            self.spend(found, link)
        self._path.add(id(found))
        view = self.branch(both(rest, found) if rest else found, link)
        self._path.discard(id(found))
        if not rest:
            self._made[id(found)] = view
        return view

    def branch(self, schema: Any, link: Link) -> dict[str, Any] | None:
        """A branch as one plain object schema, or None when no object is a value of it."""
        self.spend(None, link)
        if isinstance(schema, dict) and isinstance(schema.get("$ref"), str):
            return self.referred(schema, link)
        if not _takes_objects(schema):
            return None
        if not isinstance(schema, dict):
            return {}
        return self.fold(schema, link) if any(key in schema for key in ROOT_UNIONS) else schema

    def fold(self, schema: dict[str, Any], link: Link) -> dict[str, Any]:
        """An object schema without unions of its own."""
        self.depth += 1
        if self.depth > _DEEPEST:
            raise Unfit("too-large", link, f"the unions at the root nest deeper than {_DEEPEST} levels")
        base = {key: value for key, value in schema.items() if key not in ROOT_UNIONS}
        described = {name: [schema] for name, schema in _names(base).items()}
        needed: dict[Any, None] = dict.fromkeys(_required(base))
        for key in ("not", "enum", "const"):
            if key in schema:
                self.notes.wider((link, key), "left out: it cannot be said at the root")
        for key in ("allOf", "anyOf", "oneOf"):
            branches = schema.get(key)
            if not isinstance(branches, list) or not branches:
                continue
            here = (link, key)
            views: list[dict[str, Any] | None] = []
            for place, each in enumerate(branches):
                views.append(self.branch(each, (here, place)))
            objects = list({id(view): view for view in views if view is not None}.values())
            if not objects or (key == "allOf" and None in views):
                raise Unfit("root-union", here, "no object is a value of it")
            for view in objects:
                self.spend(view, here)
            if "unevaluatedProperties" in base and not all(view.keys() <= _PLAIN for view in objects):
                self.notes.wider(
                    (link, "unevaluatedProperties"), "left out: what its branches looked at is not known now"
                )
                del base["unevaluatedProperties"]
            if key == "allOf":
                for view in objects:
                    self.add(base, described, needed, view, here)
            else:
                self.add(base, described, needed, self.any_of(objects, here), here)
            self.notes.exact(here, "folded into one object")
        if described:
            base["properties"] = {name: self.all_of(each, link, name) for name, each in described.items()}
        if needed:
            base["required"] = list(needed)
        self.depth -= 1
        return base

    def all_of(self, schemas: list[Any], link: Link, name: str) -> Any:
        """What takes only what all of some schemas for one property take."""
        if len(schemas) == 1:
            return schemas[0]
        kept = distinct(schemas)
        if len(kept) > MAX_PARTS:
            place = ((link, "properties"), name)
            raise Unfit("too-large", place, f"more than {MAX_PARTS} branches of the root say something else of it")
        return every(kept)

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
        # Each of them is said again for each property that a branch does not describe.
        open_views = open_views or len(described) * sum(map(count, others.values())) > MAX_GROWTH
        properties: dict[str, Any] = {}
        for name, schemas in described.items():
            if others and not open_views and len(schemas) < len(views):
                schemas = [*schemas, *others.values()]
            elif open_views and len(schemas) < len(views) and all(map(_nothing, schemas)):
                # A branch that does not mention it takes anything for it, as what is made does then.
                self.notes.wider(link, f"{shortened(name)}, which only some branches forbid, takes anything")
                continue
            properties[name] = either(schemas)
        if open_views and any(
            len(schemas) < len(views) and name in properties and not _anything(properties[name])
            for name, schemas in described.items()
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

    def add(
        self,
        base: dict[str, Any],
        described: dict[str, list[Any]],
        needed: dict[Any, None],
        view: dict[str, Any],
        link: Link,
    ) -> None:
        """Make an object schema take only what another one takes too, or more where that cannot be said.

        Args:
            base: changed, but for its properties.
            described: what is said of each property; changed, to be joined when all is there.
            needed: the names it requires; changed.
            view: the other one.
            link: where that comes from.
        """
        names = _names(view)
        if names:
            base.setdefault("properties", {})  # its place
            for name, schema in names.items():
                described.setdefault(name, []).append(schema)
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
    return schema is True or (isinstance(schema, dict) and not schema.keys() - ANNOTATIONS)


def _nothing(schema: Any) -> bool:
    return schema is False or (isinstance(schema, dict) and schema.get("not", 0) in (True, {}))


def folded(root: dict[str, Any], notes: Notes, link: Link = None) -> dict[str, Any]:
    """A root schema without ``oneOf``, ``anyOf``, ``allOf``, ``enum``, ``const`` and ``not``.

    Args:
        root: of type object; not changed.
        notes: is told.
        link: where it is, when it is not the root at all, but a schema without references.

    Returns:
        The same object when it has none.

    Raises:
        Unfit: ``root-union``, when no object is a value of it; ``ref-cycle``, when a branch refers to itself; ``too-large``.
    """
    if not any(key in root for key in ROOT_UNIONS):
        return root
    return _Folder(root, notes).fold(root, link)
