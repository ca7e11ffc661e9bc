"""Mending keeps what a schema means where keywords look at one another; and what it cannot keep, it says."""

from __future__ import annotations

from typing import Any

from jsonschema import Draft7Validator, Draft202012Validator
from playbill.actors.model.profile import PROFILES
from playbill.actors.model.schema.fit import Fit, fit
from playbill.actors.model.status import ToolDef

TEXT = {"type": "string"}


def fitted(schema: Any, profile: str = "portable") -> Fit:
    found = fit(ToolDef("t", description="d", input_schema=schema), "mcp__s__t", PROFILES[profile])
    assert found.flaw is None, found.flaw
    return found


def judged(made: Fit, *values: Any) -> list[bool]:
    Draft202012Validator.check_schema(made.input_schema)
    return [Draft202012Validator(made.input_schema).is_valid(value) for value in values]


def about(properties: dict[str, Any], **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, **more}


def test_the_items_that_nothing_else_looks_at_stay_closed() -> None:
    made = fitted(about({"a": {"type": "array", "prefixItems": [TEXT], "unevaluatedItems": False}}))
    assert judged(made, {"a": ["s"]}, {"a": ["s", 1]}) == [True, False]
    inside = {"not": {"type": "array", "prefixItems": [TEXT], "unevaluatedItems": False}}
    assert judged(fitted(about({"a": inside})), {"a": ["s"]}, {"a": ["s", 1]}) == [False, True]


def test_items_opened_beside_unevaluated_ones_are_said_to_be() -> None:
    closed = {"type": "array", "allOf": [{"prefixItems": [TEXT]}], "unevaluatedItems": False}
    apart = {"allOf": [{"type": "array", "prefixItems": [TEXT]}], "unevaluatedItems": False}
    for schema in (closed, apart):
        made = fitted(about({"a": schema}))
        assert judged(made, {"a": ["s"]}) == [True]
        assert any("unevaluatedItems: left out" in line for line in made.changes), made.changes
        made = fitted(about({"a": {"not": schema}}))
        assert judged(made, {"a": ["s", 1]}) == [True], "a not around it would have become stricter"


def test_a_property_that_one_branch_forbids_takes_anything_where_another_is_open() -> None:
    for never in (False, {"not": {}}):
        forms = [about({"a": TEXT, "b": never}, required=["a"]), about({"c": TEXT}, required=["c"])]
        for profile in ("portable", "openai", "anthropic"):
            made = fitted({"type": "object", "oneOf": forms}, profile)
            assert judged(made, {"c": "x", "b": 1}) == [True]
            assert any("'b', which only some branches forbid" in line for line in made.changes)


def test_a_property_that_every_closed_branch_forbids_stays_forbidden() -> None:
    forms = [about({"a": TEXT, "b": False}, additionalProperties=False), about({}, additionalProperties=False)]
    assert judged(fitted({"type": "object", "anyOf": forms}), {"a": "x"}, {"b": 1}) == [True, False]


def test_a_condition_on_an_object_is_kept_without_its_type() -> None:
    condition = {
        "if": {"properties": {"a": {"const": "x"}}},
        "then": {"properties": {"b": {"type": "integer"}}, "required": ["b"]},
    }
    values = ({"a": "x"}, {"a": "x", "b": 1}, {"a": "x", "b": "1"}, {"a": "y"})
    for profile in ("portable", "gemini"):
        for schema in (about({"a": TEXT}, **condition), about({"a": TEXT}, allOf=[condition])):
            made = fitted(schema, profile)
            assert judged(made, *values) == [False, True, False, True], made.input_schema
            assert not any("narrower" in line or "condition" in line for line in made.changes)
        deep = fitted(about({"o": about({"a": TEXT}, **condition)}), profile)
        assert judged(deep, *({"o": value} for value in values)) == [False, True, False, True]


def test_a_malformed_annotation_changes_nothing_around_it() -> None:
    one = {"oneOf": [{"type": "number", "description": None}, {"type": "integer", "title": 5}], "description": None}
    made = fitted(about({"a": one}))
    assert judged(made, {"a": 1.5}, {"a": 1}) == [True, False]


def test_a_required_property_that_is_nullable_takes_null_in_strict_mode() -> None:
    item = {"type": "integer", "nullable": True}
    schema = about(
        {"n": {**TEXT, "nullable": True}, "l": {"type": "array", "items": item}}, required=["n", "l"], nullable=True
    )
    made = fitted(schema, "openai-strict")
    assert judged(made, {"n": None, "l": [None, 1]}, {"n": "x", "l": []}, None) == [True, True, False]


def test_nothing_depends_on_a_property_that_was_left_out() -> None:
    schema = about({"a b": TEXT, "c": TEXT}, dependentRequired={"c": ["a b"], "d": ["c"]}, additionalProperties=False)
    made = fitted(schema)
    assert judged(made, {"c": "x"}) == [True]
    assert made.input_schema["dependentRequired"] == {"d": ["c"]}
    assert any(line.startswith("inputSchema.dependentRequired.c: left out") for line in made.changes)


def test_a_list_that_changed_is_said_with_its_values() -> None:
    made = fitted(about({"a": {"type": ["STRING", None]}}))
    assert "inputSchema.properties.a.type: ['STRING', null] is now ['string', 'null']" in made.changes


def test_what_stands_beside_a_reference_counts_as_the_draft_of_its_schema_says() -> None:
    given = about(
        {"a": {"$ref": "#/definitions/A", "description": "said", "maxLength": 1}},
        definitions={"A": TEXT},
        required=["a"],
    )
    value = {"a": "long"}
    for draft in ("http://json-schema.org/draft-07/schema#", "http://json-schema.org/draft-04/schema"):
        schema = {"$schema": draft, **given}
        made = fitted(schema)
        assert Draft7Validator(schema).is_valid(value)
        assert judged(made, value) == [True]
        assert made.input_schema["properties"]["a"] == {**TEXT, "description": "said"}
        assert any("maxLength" in line for line in made.changes), made.changes
    for newer in ({}, {"$schema": "https://json-schema.org/draft/2020-12/schema"}):
        assert judged(fitted({**newer, **given}), value) == [False]


def test_what_an_older_draft_ignores_is_ignored_when_it_is_translated() -> None:
    many = {"type": "array", "items": [TEXT], "additionalItems": False}
    schema = about(
        {"a": {"$ref": "#/definitions/A", "maxLength": 1}, "t": many},
        definitions={"A": TEXT},
        **{"$schema": "http://json-schema.org/draft-07/schema#"},
    )
    for profile in ("portable", "openai", "anthropic"):
        made = fitted(schema, profile)
        assert "$schema" not in made.input_schema
        assert judged(made, {"a": "long", "t": ["x"]}, {"t": ["x", 1]}) == [True, False]


def test_a_reference_at_the_root_may_be_of_any_kind() -> None:
    part = about({"x": {"type": "integer"}})
    for profile in ("portable", "openai", "anthropic", "gemini", "bedrock"):
        for reference, named in (("#/definitions/Foo%20x", part), ("#foo", {"$anchor": "foo", **part})):
            made = fitted({"$ref": reference, "definitions": {"Foo x": named}}, profile)
            assert judged(made, {"x": 1}, {"x": "1"}) == [True, False], (profile, reference)


def test_recursion_by_any_reference_is_kept_where_references_may_stand() -> None:
    def node(reference: str) -> dict[str, Any]:
        return about({"name": TEXT, "kids": {"type": "array", "items": {"$ref": reference}}}, required=["name"])

    schemas = (
        about({"node": node("#/properties/node")}),
        about({"node": {"$ref": "#n"}}, **{"$defs": {"N": {"$anchor": "n", **node("#n")}}}),
        about({"node": {"$ref": "#/definitions/N%5B%5D"}}, definitions={"N[]": node("#/definitions/N%5B%5D")}),
    )
    good = {"node": {"name": "a", "kids": [{"name": "b", "kids": [{"name": "c"}]}]}}
    bad = {"node": {"name": "a", "kids": [{"name": "b", "kids": [{"name": 1}]}]}}
    for schema in schemas:
        for profile in ("openai", "anthropic", "gemini", "bedrock"):
            made = fitted(schema, profile)
            assert judged(made, good, bad) == [True, False], (profile, schema)
            again = fitted(made.input_schema, profile)
            assert again.input_schema == made.input_schema
            assert not again.changes
    whole = {**schemas[0], "properties": {**schemas[0]["properties"], "again": {"$ref": "#"}}}
    assert judged(fitted(whole, "openai"), good, {"again": good}, {"again": bad}) == [True, True, False]
