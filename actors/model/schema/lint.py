"""Does a schema keep the rules of a profile: checked in one pass, without recursion, changing nothing.

This file is what the rules are. `mend` does what it can so that a schema keeps them, and its result is asked here again, so
nothing that breaks a rule gets past `fit`, and what was mended once needs no mending again.
"""

from __future__ import annotations

import re
from functools import lru_cache
from typing import Any

from ..profile import Profile, SchemaRules
from .agree import stray
from .flaw import Flaw, Link, path_text
from .keywords import (
    FORMS,
    IDS,
    LIST,
    MAP,
    OPEN_OR_CLOSED,
    REFS,
    ROOT_UNIONS,
    SCHEMA,
    SHAPES,
    TYPES,
    inferred_type,
    shortened,
)
from .patterns import MAX_PATTERNS, oddity
from .pointers import is_dangling
from .strict_rules import Tally, strict_flaw

__all__ = ["lint"]

_Found = tuple[str, Link, str]
_NO_NAMES: dict[str, Any] = {}
_SCALARS = ("string", "integer", "boolean", "number")  # they lack nothing

_TYPE, _TEXT, _FORM, _REF, _ID, _SCHEMA, _MAP, _LIST, _ID_MAP, _PATTERN = range(10)
_KINDS: dict[str, int] = {
    **dict.fromkeys(FORMS, _FORM),
    **dict.fromkeys(("description", "title"), _TEXT),  # what there is most of, so that it costs least
    "type": _TYPE,
    "pattern": _PATTERN,
    **{key: {SCHEMA: _SCHEMA, MAP: _MAP, LIST: _LIST}[shape] for key, shape in SHAPES.items()},
    **dict.fromkeys(IDS, _ID),
    **dict.fromkeys(IDS & SHAPES.keys(), _ID_MAP),
    **dict.fromkeys(REFS, _REF),
}


@lru_cache(maxsize=64)
def _matcher(pattern: str) -> Any:
    return re.compile(pattern).fullmatch


def _root(schema: dict[str, Any], rules: SchemaRules) -> _Found | None:
    if schema.get("type") != "object":
        given = shortened(schema["type"]) if "type" in schema else "none"
        return (
            "root-type",
            (None, "type"),
            f'the root of its input schema must be of type "object"; its type is {given}',
        )
    if not rules.root_unions:
        for key in ROOT_UNIONS:
            if key in schema:
                return "root-union", (None, key), f"{key} cannot stand at the root of an input schema"
    if not rules.properties_key and "properties" not in schema:
        return "no-properties", None, "an input schema must have properties, if only an empty object of them"
    return None


def _names(schema: dict[str, Any], link: Link, rules: SchemaRules) -> _Found | None:
    """The rules for `properties` and `required` of one schema."""
    properties = schema.get("properties", _NO_NAMES)
    known = properties if isinstance(properties, dict) else _NO_NAMES
    if rules.property_name is not None and (link is None or rules.deep_names):
        matches = _matcher(rules.property_name)
        for name in known:
            if not matches(name):
                place = ((link, "properties"), name)
                return "property-name", place, f"names of properties must match {rules.property_name}"
    if not rules.loose_required and "required" in schema and ("properties" in schema or schema.get("type") == "object"):
        required = schema["required"]
        for name in required if isinstance(required, list) else ():
            if isinstance(name, str) and name not in known:
                message = f"required names {shortened(name)}, which is no property"
                return "required-unknown", (link, "required"), message
    return None


def _whole(schema: dict[str, Any], link: Link, rules: SchemaRules) -> _Found | None:
    """The rules for what one schema lacks."""
    if "type" not in schema:
        inferred = None if rules.untyped else inferred_type(schema)
        if inferred is not None:
            said = inferred if isinstance(inferred, str) else " or ".join(inferred)
            return "no-type", link, f"its type is missing; it is plainly {said}"
    elif not rules.bare_arrays and "items" not in schema:
        given = schema["type"]
        if given == "array" or (isinstance(given, list) and "array" in given):
            return "no-items", link, "an array must say what its items are"
    if not rules.stray_values and ("enum" in schema or "const" in schema):
        key = stray(schema)
        if key is not None:
            return "enum-type", (link, key), f"a value of {key} is not of the type that it says beside it"
    if "properties" in schema or "required" in schema:
        return _names(schema, link, rules)
    return None


def _pattern(pattern: Any, link: Link) -> _Found | None:
    found = oddity(pattern) if isinstance(pattern, str) else None
    return None if found is None else ("pattern", link, f"a regular expression cannot have {found}")


def _reference(key: str, value: Any, link: Link, rules: SchemaRules, root: dict[str, Any]) -> _Found | None:
    if not rules.refs:
        return "ref", (link, key), "references are not taken"
    if not rules.malformed and (key != "$ref" or is_dangling(root, value)):
        return "ref", (link, key), f"only references into the definitions are taken, not {shortened(value)}"
    return None


def _lint(root: dict[str, Any], profile: Profile) -> _Found | None:
    rules = profile.schema
    found = _root(root, rules)
    if found is not None:
        return found
    tally = Tally(rules) if rules.limited else None
    strict = profile.strict
    malformed = rules.malformed
    judged = 0  # characters of regular expressions
    queue: list[tuple[dict[str, Any], Link, int]] = [(root, None, 1)]
    for schema, link, depth in queue:  # grows while it is read: breadth first
        for key, value in schema.items():
            kind = _KINDS.get(key)
            if kind is None:
                continue
            if kind <= _FORM:
                if isinstance(value, str) and (kind == _TEXT or (kind == _TYPE and value in TYPES)):
                    continue
                if not malformed and not FORMS[key](value):
                    return "malformed", (link, key), f"{key} cannot be {shortened(value)}"
                continue
            if kind == _REF:
                found = _reference(key, value, link, rules, root)
                if found is not None:
                    return found
                continue
            if kind == _PATTERN:
                if not malformed and not isinstance(value, str):
                    return "malformed", (link, key), f"{key} cannot be {shortened(value)}"
                if not rules.any_pattern and isinstance(value, str):
                    judged += len(value)
                    if judged > MAX_PATTERNS:
                        return "too-large", (link, key), f"its patterns have more than {MAX_PATTERNS} characters"
                    found = _pattern(value, (link, key))
                    if found is not None:
                        return found
                continue
            if kind in (_ID, _ID_MAP):
                if not rules.refs and (key != "id" or (link is None and isinstance(value, str))):
                    return "definitions", (link, key), f"{key} is not taken, as no reference is"
                if kind == _ID:
                    if not malformed and key in FORMS and not FORMS[key](value):
                        return "malformed", (link, key), f"{key} cannot be {shortened(value)}"
                    continue
            here = (link, key)
            if kind == _SCHEMA:
                if isinstance(value, dict):
                    queue.append((value, here, depth + 1))
                elif not isinstance(value, bool):
                    if not malformed:
                        return "malformed", here, f"{key} cannot be {shortened(value)}"
                elif not rules.booleans and key not in OPEN_OR_CLOSED:
                    return "boolean", here, f"{str(value).lower()} cannot stand for a schema"
                continue
            if kind == _LIST:
                if not isinstance(value, list) or not value:
                    if malformed:
                        continue
                    return "malformed", here, f"{key} cannot be {shortened(value)}"
                each: Any = enumerate(value)
                deeper = depth + (key == "prefixItems")
            else:
                if not isinstance(value, dict):
                    if malformed:
                        continue
                    return "malformed", here, f"{key} cannot be {shortened(value)}"
                each = value.items()
                deeper = depth + 1
                if key == "patternProperties" and not rules.any_pattern:
                    judged += sum(map(len, value))
                    if judged > MAX_PATTERNS:
                        return "too-large", here, f"its patterns have more than {MAX_PATTERNS} characters"
                    for name in value:
                        found = _pattern(name, (here, name))
                        if found is not None:
                            return found
            for name, inner in each:
                if isinstance(inner, dict):
                    queue.append((inner, (here, name), deeper))
                elif not isinstance(inner, bool):
                    if not malformed:
                        return "malformed", (here, name), f"a schema cannot be {shortened(inner)}"
                elif not rules.booleans:
                    return "boolean", (here, name), f"{str(inner).lower()} cannot stand for a schema"
        found = None
        if (
            schema.get("type") not in _SCALARS
            or "enum" in schema
            or "properties" in schema
            or "required" in schema
            or "const" in schema
        ):
            found = _whole(schema, link, rules)
        if found is None and strict:
            found = strict_flaw(schema, link)
        if found is None and tally is not None:
            found = tally.count(schema, link, depth)
        if found is not None:
            return found
    return None


def lint(schema: dict[str, Any], profile: Profile) -> Flaw | None:
    """The first rule of a profile that a schema breaks, or None. It changes nothing.

    Args:
        schema: of JSON that `judge` lets through, such as a catalog's tools have.
        profile: whose rules.

    Returns:
        The rule, the place and what is wrong: of several the first one, from the root downwards.
    """
    found = _lint(schema, profile)
    return None if found is None else Flaw(found[0], path_text(found[1]), found[2])
