"""Mending schema by schema, from the root downwards: all that does not need to see the whole.

Under ``not`` and ``if``, and among the branches of ``oneOf``, a schema that accepts more makes the whole accept less. So where
something inexact happens below one of them, the ``not`` or the condition is left out, and ``oneOf`` becomes ``anyOf``.
"""

from __future__ import annotations

import re
from typing import Any

from ..profile import SchemaRules
from .agree import agreed
from .flaw import Link, Unfit
from .inline import MAX_GROWTH, count
from .keywords import LIST, MAP, OPEN_OR_CLOSED, ROOT_UNIONS, SCHEMA, SHAPES, inferred_type, shortened
from .notes import Notes
from .patterns import MAX_PATTERNS, oddity
from .repair import repaired

__all__ = ["tidied"]

_UNEVALUATED = frozenset({"unevaluatedItems", "unevaluatedProperties"})
_IN_PLACE = frozenset({"allOf", "anyOf", "dependentSchemas", "else", "if", "not", "oneOf", "then"})
_LOOKS_AT_ITEMS = _IN_PLACE - {"not"} | {"$dynamicRef", "$ref", "contains"}


def _is_array(schema: dict[str, Any]) -> bool:
    given = schema.get("type")
    return given == "array" or (isinstance(given, list) and "array" in given)


class _Tidier:
    """Mends one schema for one set of rules."""

    def __init__(self, rules: SchemaRules, notes: Notes) -> None:
        self.rules = rules
        self.notes = notes
        self.conditions = 0  # how many were left out
        self.bared = 0  # how many arrays say their items now
        self.judged = 0  # characters of regular expressions
        self.growth = 0  # values added by saying a schema again
        self.is_name = re.compile(rules.property_name).fullmatch if rules.property_name is not None else None

    def expanded(self, value: bool, link: Link) -> Any:
        if self.rules.booleans:
            return value
        self.notes.exact(link, "true is now {}" if value else 'false is now {"not": {}}')
        return {} if value else {"not": {}}

    def each(self, value: Any, link: Link, folds: bool = False, objects: bool = False) -> Any:
        """One value where a schema can be."""
        if isinstance(value, bool):
            return self.expanded(value, link)
        return self.schema(value, link, folds, objects) if isinstance(value, dict) else value

    def schema(self, schema: dict[str, Any], link: Link, folds: bool, objects: bool = False) -> dict[str, Any]:
        """A schema and all inside it; the same object when there is nothing to do.

        Args:
            schema, link: the schema and where it is.
            folds: it is the root, or a branch that will be folded into it: an object, whether it says so or not.
            objects: what it stands in takes only objects, so of it no other values count.
        """
        out = schema if self.rules.malformed else repaired(schema, link, self.notes)
        inner: dict[str, Any] = {}
        loose: list[str] = []
        conditions = self.conditions
        objects = objects or out.get("type") == "object"
        bared = False  # something in place says the items of an array now
        if not self.rules.any_pattern and ("pattern" in out or "patternProperties" in out):
            out = self.matched(out, link)
        for key, value in out.items():
            shape = SHAPES.get(key)
            if shape is None:
                continue
            before, arrays = self.notes.inexact, self.bared
            made = value
            here = objects and key in _IN_PLACE
            if shape == SCHEMA:
                if not (isinstance(value, bool) and key in OPEN_OR_CLOSED):
                    made = self.each(value, (link, key), False, here)
            elif shape == MAP and isinstance(value, dict):
                changed = {name: self.each(each, ((link, key), name), False, here) for name, each in value.items()}
                if any(changed[name] is not each for name, each in value.items()):
                    made = changed
            elif shape == LIST and isinstance(value, list):
                deep = folds and key in ROOT_UNIONS
                listed = [self.each(each, ((link, key), place), deep, here) for place, each in enumerate(value)]
                if any(one is not other for one, other in zip(listed, value, strict=True)):
                    made = listed
            if made is not value:
                inner[key] = made
            bared = bared or (self.bared != arrays and key in _LOOKS_AT_ITEMS)
            if self.notes.inexact != before and not (folds and key == "oneOf"):
                loose.append(key)
        if inner:
            out = {**out, **inner}
        out = self.loosened(out, loose, link)
        if self.conditions != conditions and out.keys() & _UNEVALUATED:
            out = {key: value for key, value in out.items() if key not in _UNEVALUATED}
            self.notes.wider(
                link, "unevaluated members may be anything now: a condition that looked at them is left out"
            )
        if bared and "unevaluatedItems" in out:
            out = {key: value for key, value in out.items() if key != "unevaluatedItems"}
            self.notes.wider((link, "unevaluatedItems"), "left out: an array beside it says its items now")
        out = self.named(out, link)
        return self.typed(out, link, folds, objects)

    def is_odd(self, pattern: str, link: Link) -> str | None:
        self.judged += len(pattern)
        if self.judged > MAX_PATTERNS:
            raise Unfit("too-large", link, f"its patterns have more than {MAX_PATTERNS} characters")
        return oddity(pattern)

    def matched(self, schema: dict[str, Any], link: Link) -> dict[str, Any]:
        """A schema without the regular expressions that not every provider takes."""
        out = schema
        pattern = schema.get("pattern")
        found = self.is_odd(pattern, (link, "pattern")) if isinstance(pattern, str) else None
        if found is not None:
            out = {key: value for key, value in out.items() if key != "pattern"}
            self.notes.wider((link, "pattern"), f"left out: it has {found}")
        named = schema.get("patternProperties")
        if not isinstance(named, dict):
            return out
        here = (link, "patternProperties")
        kept = {name: each for name, each in named.items() if self.is_odd(name, (here, name)) is None}
        if len(kept) == len(named):
            return out
        for name in sorted(named.keys() - kept.keys()):
            self.notes.wider((here, name), f"left out: the pattern has {oddity(name)}")
        self.conditions += 1  # what looked at the properties that matched does not know them now
        out = {key: value for key, value in out.items() if key not in ("additionalProperties", "patternProperties")}
        if "additionalProperties" in schema and schema["additionalProperties"] is not True:
            self.notes.wider((link, "additionalProperties"), "left out: what matched that pattern may be there")
        return {**out, "patternProperties": kept} if kept else out

    def loosened(self, schema: dict[str, Any], loose: list[str], link: Link) -> dict[str, Any]:
        """A schema that accepts no less because of what was changed inside it."""
        out = schema
        if "not" in loose:
            out = {key: value for key, value in out.items() if key != "not"}
            self.notes.wider((link, "not"), "left out: it cannot be said exactly")
        if "if" in loose:
            out = {key: value for key, value in out.items() if key not in ("if", "then", "else")}
            self.conditions += 1
            self.notes.wider((link, "if"), "the condition is left out: it cannot be said exactly")
        if "contains" in loose and "maxContains" in out:
            out = {key: value for key, value in out.items() if key != "maxContains"}
            self.notes.wider((link, "maxContains"), "left out: it cannot be said exactly")
        if "oneOf" in loose:
            out = _any_instead_of_one(out)
            self.notes.wider((link, "oneOf"), "is now anyOf: it cannot be said exactly")
        return out

    def named(self, schema: dict[str, Any], link: Link) -> dict[str, Any]:
        """A schema whose properties have names that the profile takes, and which requires no other ones."""
        properties = schema.get("properties")
        required = schema.get("required")
        named: dict[str, Any] = properties if isinstance(properties, dict) else {}
        needed: list[Any] = required if isinstance(required, list) else []
        if self.is_name is not None and (link is None or self.rules.deep_names):
            wrong = [name for name in named if not self.is_name(name)]
            if wrong:
                needs = set(needed)
                for name in wrong:
                    place = ((link, "properties"), name)
                    if name in needs:
                        message = f"it requires a property whose name does not match {self.rules.property_name}"
                        raise Unfit("property-name", place, message)
                    self.notes.narrower(place, "left out: its name is not one the provider takes")
                gone = set(wrong)
                named = {name: each for name, each in named.items() if name not in gone}
                schema = self.without(gone, {**schema, "properties": named}, link)
        if self.rules.loose_required or not needed:
            return schema
        if "properties" not in schema and schema.get("type") != "object":
            return schema
        unknown = [name for name in needed if isinstance(name, str) and name not in named]
        if not unknown:
            return schema
        for name in unknown:
            if self.is_name is not None and (link is None or self.rules.deep_names) and not self.is_name(name):
                message = f"it requires a property whose name does not match {self.rules.property_name}"
                raise Unfit("property-name", ((link, "required"), needed.index(name)), message)
            self.notes.wider((link, "required"), f"{shortened(name)} is now a property, which takes anything")
        rest = schema.get("additionalProperties")
        governed: Any = {}
        if isinstance(rest, dict) and "patternProperties" not in schema:
            self.growth += len(unknown) * count(rest)
            if self.growth <= MAX_GROWTH:
                governed = rest
        return {**schema, "properties": {**named, **dict.fromkeys(unknown, governed)}}

    def without(self, gone: set[str], schema: dict[str, Any], link: Link) -> dict[str, Any]:
        """A schema in which no property depends on one that is left out: it could not be sent in a closed object."""
        depending = schema.get("dependentRequired")
        if not isinstance(depending, dict):
            return schema
        kept = {
            name: needs
            for name, needs in depending.items()
            if not (isinstance(needs, list) and gone.intersection(needs))
        }
        for name in sorted(depending.keys() - kept.keys()):
            place = ((link, "dependentRequired"), name)
            self.notes.wider(place, "left out: it needs a property that is left out")
        rest = {key: value for key, value in schema.items() if key != "dependentRequired"}
        return schema if len(kept) == len(depending) else {**rest, "dependentRequired": kept} if kept else rest

    def typed(self, schema: dict[str, Any], link: Link, folds: bool, objects: bool) -> dict[str, Any]:
        """A schema that says its type and, of an array, its items."""
        if not self.rules.untyped and "type" not in schema:
            inferred = inferred_type(schema)
            if inferred is not None and not (folds and inferred == "object"):
                text = f"its type is now {inferred if isinstance(inferred, str) else ' or '.join(inferred)}"
                if "const" in schema or "enum" in schema or (objects and inferred == "object"):
                    self.notes.exact(link, text)
                else:
                    self.notes.narrower(link, text)
                schema = {"type": inferred, **schema}
        if not self.rules.stray_values and ("enum" in schema or "const" in schema):
            schema = agreed(schema, link, self.notes)
        if not self.rules.bare_arrays and "items" not in schema and _is_array(schema):
            schema = self.itemized(schema, link)
        return schema

    def itemized(self, schema: dict[str, Any], link: Link) -> dict[str, Any]:
        """An array that says its items, which it did not."""
        self.bared += 1
        if "unevaluatedItems" not in schema:
            self.notes.exact(link, "its items are now said to be anything")
            return {**schema, "items": {}}
        rest = {key: value for key, value in schema.items() if key != "unevaluatedItems"}
        value = schema["unevaluatedItems"]
        if rest.keys() & _LOOKS_AT_ITEMS:
            self.notes.wider((link, "unevaluatedItems"), "left out: its items are now said to be anything")
            return {**rest, "items": {}}
        # Nothing else looks at its items: what is not evaluated is what `items` is about.
        self.notes.exact((link, "unevaluatedItems"), "is now items")
        return {**rest, "items": self.expanded(value, (link, "items")) if isinstance(value, bool) else value}


def _any_instead_of_one(schema: dict[str, Any]) -> dict[str, Any]:
    if "anyOf" not in schema:
        return {("anyOf" if key == "oneOf" else key): value for key, value in schema.items()}
    out = {key: value for key, value in schema.items() if key != "oneOf"}
    given = out.get("allOf")
    return {**out, "allOf": [*(given if isinstance(given, list) else ()), {"anyOf": schema["oneOf"]}]}


def tidied(schema: dict[str, Any], rules: SchemaRules, notes: Notes) -> dict[str, Any]:
    """A schema whose keywords are well formed, with its types, items and names as a profile wants them.

    Args:
        schema: the root; not changed.
        rules: what the profile takes.
        notes: is told.

    Returns:
        The same object when nothing is to be done.

    Raises:
        Unfit: ``malformed`` or ``property-name``.
    """
    return _Tidier(rules, notes).schema(schema, None, not rules.root_unions)
