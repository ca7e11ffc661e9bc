"""OpenAI's strict mode: the form of its schemas, and the way back for the nulls it makes of what is left out."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from playbill.actors.model.profile import PROFILES
from playbill.actors.model.schema.fit import Fit, fit
from playbill.actors.model.schema.lint import lint
from playbill.actors.model.schema.strict import unstrict
from playbill.actors.model.status import ToolDef

STRICT = PROFILES["openai-strict"]


def fitted(schema: Any) -> Fit:
    return fit(ToolDef("t", description="d", input_schema=schema), "mcp__s__t", STRICT)


def strict(properties: dict[str, Any], required: tuple[str, ...] = ()) -> dict[str, Any]:
    found = fitted({"type": "object", "properties": properties, "required": list(required)})
    assert found.flaw is None, found.flaw
    return found.input_schema


def inside(schema: Any) -> Any:
    return strict({"a": schema}, ("a",))["properties"]["a"]


def flaw(schema: Any) -> tuple[str, str]:
    found = fitted({"type": "object", "properties": {"a": schema}}).flaw
    assert found is not None
    return found.rule, found.path


def test_every_property_is_required_and_what_was_optional_may_be_null() -> None:
    assert strict(
        {
            "must": {"type": "string"},
            "may": {"type": "integer", "minimum": 1},
            "either": {"type": ["string", "null"]},
            "choice": {"type": "string", "enum": ["x", "y"]},
            "fixed": {"const": "v", "description": "what"},
            "any": {"anyOf": [{"type": "string"}, {"type": "number"}]},
        },
        ("must",),
    ) == {
        "type": "object",
        "properties": {
            "must": {"type": "string"},
            "may": {"type": ["integer", "null"], "minimum": 1},
            "either": {"type": ["string", "null"]},
            "choice": {"type": ["string", "null"], "enum": ["x", "y", None]},
            "fixed": {"description": "what", "anyOf": [{"type": "string", "const": "v"}, {"type": "null"}]},
            "any": {"anyOf": [{"type": "string"}, {"type": "number"}, {"type": "null"}]},
        },
        "required": ["must", "may", "either", "choice", "fixed", "any"],
        "additionalProperties": False,
    }


def test_a_tool_without_arguments_takes_an_empty_object() -> None:
    empty = {"type": "object", "properties": {}, "required": [], "additionalProperties": False}
    assert fitted({"type": "object"}).input_schema == empty
    assert strict({}) == empty


def test_what_strict_mode_does_not_know_is_left_out_and_said() -> None:
    found = fitted(
        {
            "type": "object",
            "properties": {
                "a": {"type": "string", "minLength": 1, "default": "x", "format": "uri", "pattern": "^x"},
                "b": {
                    "type": "array",
                    "items": {"type": "string", "format": "date"},
                    "uniqueItems": True,
                    "minItems": 1,
                },
            },
            "required": ["a", "b"],
            "minProperties": 1,
        }
    )
    assert found.input_schema["properties"] == {
        "a": {"type": "string", "pattern": "^x"},
        "b": {"type": "array", "items": {"type": "string", "format": "date"}, "minItems": 1},
    }
    assert {line.split(":")[0] for line in found.changes} >= {
        "inputSchema.properties.a.minLength",
        "inputSchema.properties.a.default",
        "inputSchema.properties.a.format",
        "inputSchema.properties.b.uniqueItems",
        "inputSchema.minProperties",
    }


def test_unions_become_any_of_and_intersections_one_schema() -> None:
    assert inside({"oneOf": [{"type": "string"}, {"type": "null"}]}) == {
        "anyOf": [{"type": "string"}, {"type": "null"}]
    }
    one = {"type": "object", "properties": {"b": {"type": "string"}}, "required": ["b"]}
    two = {"type": "object", "properties": {"c": {"type": "null"}}, "required": ["c"]}
    assert inside({"allOf": [one, two]}) == {
        "type": "object",
        "properties": {"b": {"type": "string"}, "c": {"type": "null"}},
        "required": ["b", "c"],
        "additionalProperties": False,
    }
    assert inside({"type": "array", "prefixItems": [{"type": "string"}, {"type": "null"}]})["items"] == {
        "anyOf": [{"type": "string"}, {"type": "null"}]
    }


@pytest.mark.parametrize(
    ("schema", "rule", "where"),
    [
        ({"type": "object", "additionalProperties": {"type": "string"}}, "strict-map", ".additionalProperties"),
        (
            {"type": "object", "properties": {"b": {}}, "additionalProperties": True},
            "strict-map",
            ".additionalProperties",
        ),
        ({"type": "object"}, "strict-map", ""),
        ({"type": "object", "patternProperties": {"^x": {}}}, "strict-map", ".patternProperties"),
        ({}, "strict-untyped", ""),
        ({"type": "array"}, "strict-untyped", ".items"),
        ({"$ref": "#"}, "ref-cycle", ".$ref"),
    ],
)
def test_what_cannot_be_said_strictly_is_quarantined(schema: Any, rule: str, where: str) -> None:
    assert flaw(schema) == (rule, f"inputSchema.properties.a{where}")


def test_its_limits_are_kept() -> None:
    deep: dict[str, Any] = {"type": "string"}
    for _ in range(10):
        deep = {"type": "object", "properties": {"x": deep}}
    assert flaw(deep)[0] == "too-large"
    assert flaw({"type": "string", "enum": [f"v{i}" for i in range(1_001)]})[0] == "too-large"
    assert flaw({"type": "string", "enum": ["v" * 120_001]})[0] == "too-large"
    many = fitted({"type": "object", "properties": {f"p{i}": {"type": "null"} for i in range(5_001)}}).flaw
    assert many is not None
    assert many.rule == "too-large"


def test_a_schema_in_strict_form_is_taken_as_it_is() -> None:
    made = strict({"a": {"type": "string", "minLength": 1}})
    assert lint(made, STRICT) is None
    assert fitted(made).input_schema == made
    assert fitted(made).changes == ()


ADVERTISED = {
    "type": "object",
    "properties": {
        "must": {"type": "string"},
        "may": {"type": "integer"},
        "null": {"type": ["string", "null"]},
        "open": {},
        "deep": {"type": "array", "items": {"$ref": "#/$defs/item"}},
    },
    "required": ["must"],
    "$defs": {"item": {"type": "object", "properties": {"x": {"enum": [1]}, "y": {"anyOf": [{"type": "null"}]}}}},
}


def test_a_null_for_what_is_optional_is_left_out_of_the_call() -> None:
    sent = {
        "must": None,
        "may": None,
        "null": None,
        "open": None,
        "deep": [{"x": None, "y": None}, None],
        "other": None,
    }
    before = repr(sent)
    assert unstrict(sent, ADVERTISED) == {
        "must": None,
        "null": None,
        "open": None,
        "deep": [{"y": None}, None],
        "other": None,
    }
    assert repr(sent) == before


def test_a_null_for_another_alternative_is_left_out_too() -> None:
    schema = {
        "oneOf": [
            {"properties": {"do": {"const": "make"}, "title": {"type": "string"}}, "required": ["do", "title"]},
            {"properties": {"do": {"const": "drop"}}, "required": ["do"]},
        ]
    }
    assert unstrict({"do": "drop", "title": None}, schema) == {"do": "drop"}
    assert unstrict({"do": None, "title": "t"}, schema) == {"do": None, "title": "t"}


values = st.recursive(
    st.none() | st.integers(0, 1) | st.text(max_size=1),
    lambda v: st.lists(v, max_size=2) | st.dictionaries(st.sampled_from("abc"), v, max_size=3),
    max_leaves=6,
)
junk = st.recursive(
    values | st.just("#") | st.just("#/properties/a"),
    lambda v: (
        st.dictionaries(
            st.sampled_from(["properties", "required", "anyOf", "allOf", "items", "$ref", "type", "a", "enum"]),
            v,
            max_size=4,
        )
        | st.lists(v, max_size=2)
    ),
    max_leaves=8,
)


@given(st.dictionaries(st.sampled_from("abc"), values, max_size=3), st.dictionaries(st.text(max_size=1), junk) | junk)
def test_unstrict_is_total_and_leaves_out_nulls_only(arguments: dict[str, Any], schema: Any) -> None:
    found = unstrict(arguments, schema)
    assert isinstance(found, dict)
    for name, value in arguments.items():
        assert name in found or value is None


leaves = st.sampled_from(
    [
        {"type": "string"},
        {"type": ["integer", "null"]},
        {"enum": ["x", "y"]},
        {"type": "array", "items": {"type": "null"}},
    ]
)
plain = st.recursive(
    leaves,
    lambda inner: st.builds(
        lambda p, r: {
            "type": "object",
            "properties": p,
            "required": [n for n in p if n in r],
            "additionalProperties": False,
        },
        st.dictionaries(st.sampled_from("abc"), inner, min_size=1, max_size=3),
        st.sets(st.sampled_from("abc")),
    ),
    max_leaves=5,
)


def filled(schema: dict[str, Any], value: Any) -> Any:
    """Arguments as strict mode makes a model send them: null for what is left out."""
    if isinstance(value, dict) and "properties" in schema:
        return {
            name: filled(each, value[name]) if name in value else None for name, each in schema["properties"].items()
        }
    return value


def instances(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    if "properties" in schema:
        needed = {name: instances(each) for name, each in schema["properties"].items() if name in schema["required"]}
        rest = {name: instances(each) for name, each in schema["properties"].items() if name not in schema["required"]}
        return st.fixed_dictionaries(needed, optional=rest)
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if schema["type"] == "array":
        return st.lists(st.none(), max_size=2)
    return st.just("s") if schema["type"] == "string" else st.just(3)


@given(st.data(), plain.filter(lambda schema: schema.get("type") == "object"))
def test_what_a_model_says_strictly_reaches_the_server_as_it_was_meant(data: st.DataObject, schema: Any) -> None:
    made = fitted(schema)
    assert made.flaw is None
    meant = data.draw(instances(schema))
    sent = filled(schema, meant)
    assert Draft202012Validator(made.input_schema).is_valid(sent)
    assert unstrict(sent, schema) == meant


TEXT = {"type": "string"}
PART = {"type": "object", "properties": {"v": TEXT}}


def strictly(schema: dict[str, Any], arguments: dict[str, Any]) -> dict[str, Any]:
    """What reaches a server when a model sends those arguments, which strict mode takes."""
    made = fitted(schema)
    assert made.flaw is None, made.flaw
    assert Draft202012Validator(made.input_schema).is_valid(arguments)
    return unstrict(arguments, schema)


def test_a_null_is_found_behind_every_kind_of_reference() -> None:
    for reference, named in (
        ("#/$defs/Foo%5Bint%5D", {"Foo[int]": PART}),
        ("#part", {"p": {**PART, "$anchor": "part"}}),
        ("https://example.com/part", {"p": {**PART, "$id": "https://example.com/part"}}),
    ):
        schema = {"type": "object", "properties": {"o": {"$ref": reference}}, "required": ["o"], "$defs": named}
        assert strictly(schema, {"o": {"v": None}}) == {"o": {}}, reference


def test_a_null_is_found_inside_tuples_of_every_draft() -> None:
    for many in (
        {"prefixItems": [TEXT, PART]},
        {"prefixItems": [TEXT], "items": PART},
        {"items": [TEXT, PART]},
        {"items": [TEXT], "additionalItems": PART},
    ):
        schema = {"type": "object", "properties": {"t": {"type": "array", **many}}, "required": ["t"]}
        assert strictly(schema, {"t": ["x", {"v": None}]}) == {"t": ["x", {}]}, many


def test_the_tag_of_a_union_says_what_its_nulls_mean() -> None:
    forms = [
        {"type": "object", "properties": {"kind": {"const": "a"}, "v": TEXT}, "required": ["kind"]},
        {
            "type": "object",
            "properties": {"kind": {"enum": ["b"]}, "v": {"type": ["integer", "null"]}},
            "required": ["kind", "v"],
        },
    ]
    schema = {"type": "object", "properties": {"o": {"oneOf": forms}}, "required": ["o"]}
    assert strictly(schema, {"o": {"kind": "a", "v": None}}) == {"o": {"kind": "a"}}
    assert strictly(schema, {"o": {"kind": "b", "v": None}}) == {"o": {"kind": "b", "v": None}}


def test_a_null_that_a_malformed_type_means_reaches_the_server() -> None:
    for kind in (["string", None], ["STRING", "NULL"], ["str", "none"]):
        schema = {"type": "object", "properties": {"v": {"type": kind}}}
        assert strictly(schema, {"v": None}) == {"v": None}, kind
