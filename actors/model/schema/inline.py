"""References inlined: after it a schema refers to nothing, and nothing in it is there to be referred to.

`referencing` resolves them, as draft 2020-12 says or as the schema's own ``$schema`` does: by JSON pointer, by anchor, by
``$id``. Nothing is ever fetched. What a reference stands beside counts too, as in 2020-12, unless ``$schema`` names a draft
before 2019, which ignores all of it: then only annotations are kept. Each target is inlined once and
then shared, and the size of the result is counted before it is made, so that definitions which double one another cost no more
than their own length.
"""

from __future__ import annotations

from typing import Any

from .flaw import Link, Unfit
from .keywords import ANNOTATIONS, IDS, LIST, MAP, REFS, SCHEMA, SHAPES, shortened
from .merge import both
from .notes import Notes
from .pointers import points_at, refs_alone
from .sound import MAX_DEPTH

__all__ = ["MAX_GROWTH", "MAX_REFERENCES", "Lookup", "count", "inlined", "root_inlined", "shape_of"]

MAX_GROWTH = 20_000
"""How many values references may add to a schema."""

MAX_REFERENCES = 2_000
"""How many different references of one schema are looked up."""

_ANCHORS = ("$id", "$anchor", "$dynamicAnchor", "id")


def count(value: Any) -> int:
    """How many values a value holds, itself included, wherever they occur."""
    return _count(value, [True])


def _count(value: Any, told: list[bool]) -> int:
    """How many values there are, iteratively; `told` is set when some of them are names to refer to."""
    seen = 0
    stack = [value]
    while stack:
        each = stack.pop()
        seen += 1
        if isinstance(each, dict):
            if not told[0] and any(key in each for key in _ANCHORS):
                told[0] = True
            stack.extend(each.values())
        elif isinstance(each, list):
            stack.extend(each)
    return seen


def shape_of(key: str, value: Any) -> int | None:
    """What a keyword holds, those of older drafts too, which are translated later."""
    if key == "dependencies":
        return MAP
    if key == "additionalItems":
        return SCHEMA
    return LIST if key == "items" and isinstance(value, list) else SHAPES.get(key)


class Lookup:
    """What the references of one schema refer to. Nothing is fetched.

    Args:
        root: the schema.
    """

    def __init__(self, root: dict[str, Any]) -> None:
        told = [False]
        self.limit = _count(root, told) + MAX_GROWTH
        self.named = told[0]
        self._resolver: Any = None
        self._root = root
        self._looked_up: dict[tuple[int, str], tuple[Any, Any]] = {}
        self._resolvers: list[Any] = []  # those looked up with: an id is theirs as long as they live

    def resolver(self) -> Any:
        """What looks references up from the root."""
        if self._resolver is None:
            # Only a schema with references pays for the import.
            from referencing import Registry
            from referencing.jsonschema import DRAFT202012, specification_with

            uri = self._root.get("$schema")
            draft = specification_with(uri if isinstance(uri, str) else "", default=DRAFT202012)
            resource = draft.create_resource(self._root)
            registry: Any = Registry()
            self._draft = draft
            try:
                name = resource.id() or ""
            except Exception:
                name = ""  # its ``$id`` is no text
            registry = registry.with_resource(name, resource)
            if self.named:
                try:
                    registry = registry.crawl()
                except Exception:
                    self.named = False  # malformed somewhere; what is found by pointer is found all the same
            self._resolver = registry.resolver(name)
        return self._resolver

    def look_up(self, reference: str, link: Link, resolver: Any) -> tuple[Any, Any]:
        """What a reference refers to, and what looks up those in it.

        Raises:
            Unfit: ``ref-remote``, ``ref-dangling``, or ``too-large`` when there are too many.
        """
        key = (id(resolver), reference)
        found = self._looked_up.get(key)
        if found is not None:
            return found
        if len(self._looked_up) >= MAX_REFERENCES:
            raise Unfit("too-large", link, f"its input schema has more than {MAX_REFERENCES} references")
        try:
            resolved = resolver.lookup(reference)
        except Exception:
            remote = not reference.startswith("#")
            message = f"{shortened(reference)} is outside its input schema, and is not fetched"
            if not remote:
                message = f"{shortened(reference)} points at nothing in its input schema"
            raise Unfit("ref-remote" if remote else "ref-dangling", link, message) from None
        if not isinstance(resolved.contents, (dict, bool)):
            raise Unfit("ref-dangling", link, f"{shortened(reference)} points at no schema")
        found = (resolved.contents, resolved.resolver)
        self._looked_up[key] = found
        self._resolvers.append(resolver)
        return found


class _Inliner(Lookup):
    """Walks one schema; each target of a reference once."""

    def __init__(self, root: dict[str, Any], notes: Notes) -> None:
        super().__init__(root)
        self.notes = notes
        self.alone = refs_alone(root)
        self.followed = 0
        self.dropped = False
        self._path: dict[int, None] = {}  # the schemas being walked, by identity: meeting one again is a cycle
        self._trail: list[str] = []  # the references being followed
        self._made: dict[int, tuple[Any, int, int]] = {}  # by identity of a target: the result, its values, its levels

    def target(self, reference: str, link: Link, resolver: Any, level: int) -> tuple[Any, int, int]:
        """What a reference stands for, inlined itself; with the number of its values and of its levels."""
        contents, there = self.look_up(reference, link, resolver)
        self.followed += 1
        if isinstance(contents, bool):
            return contents, 1, 1
        made = self._made.get(id(contents))
        if made is None:
            if id(contents) in self._path:
                trail = " → ".join(shortened(each) for each in (*self._trail, reference)[-6:])
                raise Unfit(
                    "ref-cycle", link, f"its input schema refers to itself, by {trail}, so it cannot be inlined"
                )
            self._trail.append(reference)
            made = self._made[id(contents)] = self.walk(contents, link, there, level + 1)
            self._trail.pop()
        return made

    def walk(self, schema: dict[str, Any], link: Link, resolver: Any, level: int) -> tuple[Any, int, int]:
        """A schema without references; with the number of its values and of its levels."""
        if level > MAX_DEPTH:
            raise Unfit("too-large", link, f"the references of its input schema nest deeper than {MAX_DEPTH} levels")
        self._path[id(schema)] = None
        if self.named and resolver is not None and isinstance(schema.get("$id"), str):
            try:
                resolver = resolver.in_subresource(self._draft.create_resource(schema))
            except Exception:
                raise Unfit("ref-dangling", (link, "$id"), f"{shortened(schema['$id'])} names nothing") from None
        out: dict[str, Any] = {}
        size, levels, changed = 1, 1, False
        said = _beside(schema, link, self.notes) if self.alone and isinstance(schema.get("$ref"), str) else schema
        for key, value in said.items():
            if key in REFS or (key in IDS and (key != "id" or (link is None and isinstance(value, str)))):
                changed = self.dropped = True
                continue
            shape = shape_of(key, value)
            inner: Any = value
            made = (value, 0, 0)
            if shape == SCHEMA and isinstance(value, dict):
                made = self.walk(value, (link, key), resolver, level + 1)
            elif shape == MAP and isinstance(value, dict):
                made = self.several(value.items(), (link, key), resolver, level + 1)
                inner = dict(zip(value, made[0], strict=True))
            elif shape == LIST and isinstance(value, list):
                made = self.several(enumerate(value), (link, key), resolver, level + 1)
                inner = made[0]
            if shape is None or made[1] == 0:
                size += count(value) if isinstance(value, (dict, list)) else 1
            else:
                if shape == SCHEMA:
                    inner = made[0]
                size += made[1]
                levels = max(levels, made[2] + 1)
                if shape == SCHEMA:
                    same = inner is value
                else:
                    old = value.values() if isinstance(value, dict) else value
                    same = all(one is other for one, other in zip(made[0], old, strict=True))
                changed = changed or not same
                inner = value if same else inner
            out[key] = inner
        result: Any = out if changed else schema
        for key in REFS:
            if isinstance(schema.get(key), str):
                found = self.target(schema[key], (link, key), resolver or self.resolver(), level)
                result = both(result, found[0])
                size += found[1]
                levels = max(levels, found[2] + 1)
        if size > self.limit:
            raise Unfit("too-large", link, "the references of its input schema make it too large to be inlined")
        if levels > MAX_DEPTH:
            raise Unfit("too-large", link, f"the references of its input schema nest deeper than {MAX_DEPTH} levels")
        self._path.pop(id(schema), None)
        return result, size, levels

    def several(self, schemas: Any, link: Link, resolver: Any, level: int) -> tuple[Any, int, int]:
        made: list[Any] = []
        size, levels = 1, 1
        for key, schema in schemas:
            found = (schema, 1, 1)
            if isinstance(schema, dict):
                found = self.walk(schema, (link, key), resolver, level + 1)
            made.append(found[0])
            size += found[1]
            if size > self.limit:
                raise Unfit("too-large", link, "the references of its input schema make it too large to be inlined")
            levels = max(levels, found[2] + 1)
        return made, size, levels


def _beside(schema: dict[str, Any], link: Link, notes: Notes) -> dict[str, Any]:
    """A schema with a reference, without what drafts before 2019 ignore beside one."""
    kept = {
        key: value
        for key, value in schema.items()
        if key in ANNOTATIONS or key in REFS or key in IDS or key == "$schema"
    }
    for key in schema:
        if key not in kept:
            notes.exact((link, key), "left out: the draft that $schema names ignores it beside $ref")
    return kept


def inlined(root: dict[str, Any], notes: Notes) -> dict[str, Any]:
    """A schema with every reference replaced by what it refers to, and all definitions, anchors and ids left out.

    Args:
        root: the schema; not changed.
        notes: is told.

    Returns:
        The same object when there is nothing of the kind.

    Raises:
        Unfit: ``ref-cycle``, ``ref-remote``, ``ref-dangling``, or ``too-large`` when the result would be.
    """
    walker = _Inliner(root, notes)
    made: Any
    made, _, _ = walker.walk(root, None, walker.resolver() if walker.named else None, 1)
    if walker.followed:
        notes.exact(None, "references inlined")
    elif walker.dropped:
        notes.exact(None, "left out definitions and ids, which nothing refers to")
    if not isinstance(made, dict):
        raise Unfit("root-type", None, "its input schema is no object but refers to true or false")
    return made


def root_inlined(root: dict[str, Any], notes: Notes) -> dict[str, Any]:
    """The same for a reference at the root alone, which may then still hold others, also to itself.

    Raises:
        Unfit: ``ref-dangling`` when it points at no schema, ``ref-cycle`` when it comes back to the root.
    """
    seen: list[Any] = []
    schema = root
    while isinstance(schema.get("$ref"), str):
        found = points_at(root, schema["$ref"])
        if not isinstance(found, dict):
            raise Unfit("ref-dangling", (None, "$ref"), f"{shortened(schema['$ref'])} points at no schema")
        if any(found is each for each in seen) or found is root or len(seen) > MAX_DEPTH:
            raise Unfit("ref-cycle", (None, "$ref"), "the root of its input schema refers to itself")
        seen.append(found)
        if refs_alone(root):
            schema = _beside(schema, None, notes)
        schema = both({key: value for key, value in schema.items() if key != "$ref"}, found)
        notes.exact((None, "$ref"), "reference inlined")
    return schema
