"""Mending on drawn schemas, with `jsonschema` as the judge of what they accept."""

from __future__ import annotations

import json
from typing import Any

from hypothesis import given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from playbill.actors.model.frozen import FrozenDict, freeze
from playbill.actors.model.profile import PORTABLE, PROFILES, Profile
from playbill.actors.model.schema.fit import Fit, fit
from playbill.actors.model.schema.lint import lint
from playbill.actors.model.schema.notes import NARROWER
from playbill.actors.model.status import ToolDef

META = Draft202012Validator(Draft202012Validator.META_SCHEMA)
NAMES = ["a", "b", "c", "a b"]
names = st.sampled_from(NAMES)
values: st.SearchStrategy[Any] = st.recursive(
    st.none() | st.booleans() | st.sampled_from([0, 1, 2.5, "a", "abc", ""]),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(names, inner, max_size=2),
    max_leaves=4,
)
instances = st.dictionaries(names, values, max_size=4)
types = st.sampled_from(["string", "integer", "number", "boolean", "null", "object", "array", ["string", "null"]])
few = st.integers(0, 2)
leaves = (
    st.fixed_dictionaries({"type": types}, optional={"description": st.just("d"), "title": st.just("t")})
    | st.builds(lambda v: {"enum": v}, st.lists(values, min_size=1, max_size=3))
    | st.builds(lambda v: {"const": v}, values)
    | st.fixed_dictionaries({}, optional={"minLength": few, "minimum": few, "maxItems": few, "minProperties": few})
    | st.booleans()
    | st.sampled_from(["#/$defs/A", "#/$defs/B", "#anchored", "#/$defs/A/items"]).map(lambda to: {"$ref": to})
)


def objects(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries(
        {},
        optional={
            "type": st.just("object"),
            "properties": st.dictionaries(names, inner, max_size=3),
            "required": st.lists(names, max_size=2, unique=True),
            "additionalProperties": st.just(False) | inner,
            "patternProperties": st.dictionaries(st.just("^b"), inner, max_size=1),
            "description": st.just("d"),
        },
    )


def schemas(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    listed = st.lists(inner, min_size=1, max_size=3)
    return (
        objects(inner)
        | st.fixed_dictionaries({"type": st.just("array")}, optional={"items": inner, "prefixItems": listed})
        | st.fixed_dictionaries(
            {},
            optional={
                "anyOf": listed,
                "oneOf": listed,
                "allOf": listed,
                "not": inner,
                "if": inner,
                "then": inner,
                "else": inner,
                "properties": st.dictionaries(names, inner, max_size=2),
                "contains": inner,
                "unevaluatedProperties": st.booleans(),
            },
        )
        | st.builds(lambda to, rest: {"$ref": to, **rest}, st.just("#/$defs/A"), objects(inner))
    )


def without_refs(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: without_refs(each) for key, each in value.items() if key != "$ref"}
    return [without_refs(each) for each in value] if isinstance(value, list) else value


inner_schemas = st.recursive(leaves, schemas, max_leaves=6)
roots = st.builds(
    lambda root, union, a, b: {
        **root,
        **union,
        "$defs": {
            "A": {"items": {"type": "string"}, **(a if isinstance(a, dict) else {})},
            "B": {**(b if isinstance(b, dict) else {}), "$anchor": "anchored"},
        },
    },
    objects(inner_schemas),
    st.fixed_dictionaries(
        {},
        optional={
            "anyOf": st.lists(objects(inner_schemas), min_size=1, max_size=3),
            "oneOf": st.lists(objects(inner_schemas), min_size=1, max_size=3),
            "allOf": st.lists(objects(inner_schemas) | inner_schemas, min_size=1, max_size=2),
            "not": inner_schemas,
            "$schema": st.just("https://json-schema.org/draft/2020-12/schema"),
        },
    ),
    inner_schemas.map(without_refs),
    inner_schemas.map(without_refs),
)
junk = (
    st.none() | st.booleans() | st.sampled_from([5, "x", [], {}, [None], [{}], {"a": None}, {"a": {}}, 1.5, ["a", "a"]])
)
KEYWORDS = [
    *("type", "properties", "required", "items", "enum", "const", "anyOf", "oneOf", "allOf", "not", "if", "then"),
    *(
        "additionalProperties",
        "patternProperties",
        "prefixItems",
        "minLength",
        "maximum",
        "exclusiveMaximum",
        "pattern",
    ),
    *(
        "description",
        "title",
        "format",
        "$ref",
        "$id",
        "$anchor",
        "$defs",
        "$dynamicRef",
        "definitions",
        "dependencies",
    ),
    *("default", "examples", "uniqueItems", "multipleOf", "contains", "unevaluatedProperties", "$schema", "$comment"),
    *("dependentRequired", "dependentSchemas", "propertyNames", "x-ours", "nullable", "id", "$recursiveAnchor"),
]
wild = st.recursive(
    junk | leaves,
    lambda inner: (
        st.dictionaries(st.sampled_from(KEYWORDS), inner, max_size=4)
        | st.lists(inner, max_size=3)
        | st.builds(lambda p: {"type": "object", "properties": p}, st.dictionaries(names, inner, max_size=3))
    ),
    max_leaves=10,
)


def fitted(schema: Any, profile: Profile = PORTABLE) -> Fit:
    return fit(ToolDef("t", description="d", input_schema=schema), "mcp__s__t", profile)


def accepts(schema: Any, instance: Any) -> bool:
    return bool(Draft202012Validator(schema).is_valid(instance))


@settings(max_examples=120)
@given(st.dictionaries(st.sampled_from(KEYWORDS), wild, max_size=6) | roots)
def test_fit_is_total_pure_and_deterministic_and_what_it_lets_through_keeps_the_rules(schema: Any) -> None:
    given_schema = freeze(schema)
    before = json.dumps(given_schema)
    for profile in PROFILES.values():
        found = fitted(given_schema, profile)
        assert json.dumps(given_schema) == before
        if found.flaw is not None:
            assert found.flaw.rule not in ("unusable", "unsound"), found.flaw
            continue
        assert isinstance(found.input_schema, FrozenDict)
        assert lint(found.input_schema, profile) is None
        again = fitted(found.input_schema, profile)
        assert again.input_schema is found.input_schema
        assert (again.changes, again.flaw) == ((), None)
        if profile is PORTABLE or profile.strict:
            META.validate(found.input_schema)
            assert found == fitted(schema, profile)
            broken = [name for name, each in PROFILES.items() if not each.strict and lint(found.input_schema, each)]
            assert not broken or profile.strict


@settings(max_examples=150)
@given(schema=roots, tried=st.lists(instances, min_size=1, max_size=8))
def test_mending_keeps_what_a_schema_accepts_unless_it_says_so(schema: Any, tried: list[Any]) -> None:
    accepted = [instance for instance in tried if accepts(schema, instance)]
    for name in ("portable", "openai", "anthropic", "gemini", "mcp"):
        found = fitted(schema, PROFILES[name])
        if found.flaw is None and not any(line.endswith(NARROWER) for line in found.changes):
            for instance in accepted:
                assert accepts(found.input_schema, instance), (name, instance, found.input_schema, found.changes)


@settings(max_examples=120)
@given(schema=roots.map(without_refs), tried=st.lists(instances, min_size=1, max_size=8))
def test_what_is_said_to_be_exact_is_exact(schema: Any, tried: list[Any]) -> None:
    """A schema whose unions are inside its properties, so that nothing has to be folded."""
    inside = {"type": "object", "properties": {"a": schema}}
    found = fitted(inside, PROFILES["gemini"])
    if found.flaw is None and all("is now {}" in line or "its items" in line for line in found.changes):
        for instance in tried:
            assert accepts(inside, {"a": instance}) == accepts(found.input_schema, {"a": instance})
