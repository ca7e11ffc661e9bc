"""What a provider's endpoint refuses a whole request for: regular expressions, values against their type, texts too long.

Each example is one from a server or a library that people use; each is mended, said, and sent.
"""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from jsonschema.validators import validator_for
from playbill.actors.model.profile import PORTABLE, PROFILES, Profile
from playbill.actors.model.schema.fit import Fit, fit
from playbill.actors.model.schema.lint import lint
from playbill.actors.model.status import ToolDef

from ..providers.rules import nodes, odd_patterns, stray_values, untyped

META = Draft202012Validator(Draft202012Validator.META_SCHEMA)
OPENAI = ["openai", "openai-responses", "openai-strict", "xai", "portable"]
AGREEING = [*OPENAI, "gemini", "vertex"]


def fitted(schema: Any, profile: str | Profile = "portable", description: str = "d") -> Fit:
    given_profile = profile if isinstance(profile, Profile) else PROFILES[profile]
    return fit(ToolDef("t", description=description, input_schema=schema), "mcp__s__t", given_profile)


def inside(schema: Any, profile: str = "portable", **root: Any) -> tuple[Any, tuple[str, ...]]:
    """What becomes of a schema as a required property, and what is said of it."""
    found = fitted({"type": "object", "properties": {"a": schema}, "required": ["a"], **root}, profile)
    assert found.flaw is None, found.flaw
    return found.input_schema["properties"]["a"], found.changes


# --- regular expressions

ZOD_EMAIL = r"^(?!\.)(?!.*\.\.)([A-Za-z0-9_'+\-\.]*)[A-Za-z0-9_+-]@([A-Za-z0-9][A-Za-z0-9\-]*\.)+[A-Za-z]{2,}$"
REFUSED = {
    ZOD_EMAIL: "lookaround",
    "a(?=b)": "lookaround",
    "(?<=a)b": "lookaround",
    "(?<!a)b": "lookaround",
    r"(a)\1": "a backreference",
    r"(?<n>a)\k<n>": "a backreference",
    r"(?P<n>a)(?P=n)": "a backreference",
    r"^\p{L}+$": "a class of Unicode properties",
    "a++": "a possessive quantifier",
    "(?>a)": "an atomic group",
    "[": "what does not compile",
    "(": "what does not compile",
    "a{99999999999}": "what does not compile",
    "(" * 41 + "a" + ")" * 41: "groups more than 40 deep",
    "a" * 1_001: "more than 1000 characters",
}
TAKEN = [
    "^[a-z]+$",
    r"^\d{4}-\d{2}$",
    r"\(?=",  # a parenthesis that may be there, and a sign
    "[(?=]",
    r"\\p",
    "(?:a|b)?",
    "(?<name>a)",
    "[[a]",  # Python warns of it
    "a+?b*?",
    "a" * 1_000,
    "",
]


@pytest.mark.parametrize("profile", OPENAI)
@pytest.mark.parametrize("pattern", REFUSED)
def test_a_regular_expression_that_openai_does_not_compile_is_left_out_and_said(profile: str, pattern: str) -> None:
    made, changes = inside({"type": "string", "pattern": pattern}, profile)
    assert made == {"type": "string"}
    assert f"inputSchema.properties.a.pattern: left out: it has {REFUSED[pattern]}" in changes


@pytest.mark.parametrize("pattern", TAKEN)
def test_one_that_it_compiles_stays(pattern: str) -> None:
    schema = {"type": "string", "pattern": pattern}
    assert inside(schema) == (schema, ())


def test_who_takes_any_regular_expression_gets_it() -> None:
    schema = {"type": "string", "pattern": ZOD_EMAIL}
    for profile in ("anthropic", "gemini", "bedrock", "vscode", "mcp"):
        assert inside(schema, profile) == (schema, ())


def test_properties_by_such_a_pattern_are_anything_and_an_object_closed_around_them_is_open() -> None:
    closed = {
        "type": "object",
        "patternProperties": {"^(?!x)": {"type": "string"}, "^b": {"type": "null"}},
        "additionalProperties": False,
    }
    made, changes = inside(closed)
    assert made == {"type": "object", "patternProperties": {"^b": {"type": "null"}}}
    assert any("patternProperties['^(?!x)']: left out" in line for line in changes)
    assert any("additionalProperties: left out" in line for line in changes)
    outside = {"type": "object", "allOf": [{"patternProperties": {"(?=b)": {}}}], "unevaluatedProperties": False}
    assert "unevaluatedProperties" not in inside(outside)[0]
    assert Draft202012Validator(inside(outside)[0]).is_valid({"b": 1})


def test_below_a_not_the_not_is_left_out_with_it() -> None:
    assert inside({"type": "string", "not": {"pattern": "(?=a)"}})[0] == {"type": "string"}


def test_a_schema_of_very_many_patterns_is_not_compiled_to_the_end() -> None:
    schemas = {f"p{i}": {"type": "string", "pattern": f"^{'x' * 500}{i}$"} for i in range(300)}
    found = fitted({"type": "object", "properties": schemas}).flaw
    assert found is not None
    assert found.rule == "too-large"
    names = {"type": "object", "patternProperties": {f"^{'x' * 500}{i}$": {} for i in range(300)}}
    assert str(fitted({"type": "object", "properties": {"a": names}}).flaw) == str(found)
    assert fitted({"type": "object", "properties": schemas}, "anthropic").flaw is None


# --- values against their type


@pytest.mark.parametrize("profile", AGREEING)
@pytest.mark.parametrize(
    ("given_schema", "made"),
    [
        ({"type": "string", "enum": ["a", None]}, {"type": "string", "enum": ["a"]}),
        ({"type": ["string", "null"], "enum": ["a", 1, None]}, {"type": ["string", "null"], "enum": ["a", None]}),
        ({"type": "integer", "enum": [1, 1.0, 1.5, True]}, {"type": "integer", "enum": [1, 1.0]}),
        ({"type": "number", "enum": [1, 1.5, "1"]}, {"type": "number", "enum": [1, 1.5]}),
        ({"type": "null", "enum": ["a"]}, {"type": "string", "enum": ["a"]}),
        ({"type": "integer", "enum": ["1", "2", None]}, {"type": ["null", "string"], "enum": ["1", "2", None]}),
        ({"type": "string", "const": 5}, {"type": "integer", "const": 5}),
        ({"type": "string", "const": 5, "enum": ["a"]}, {"type": "integer", "const": 5}),
        ({"enum": ["a", 1, None]}, {"type": ["integer", "null", "string"], "enum": ["a", 1, None]}),
    ],
)
def test_listed_values_are_those_of_the_type_or_the_type_is_theirs(given_schema: Any, made: Any, profile: str) -> None:
    if "type" not in given_schema and profile in ("openai", "openai-responses", "xai"):
        made = given_schema  # they take it without one
    found, changes = inside(given_schema, profile)
    assert found == made
    assert bool(changes) == (found != given_schema) or profile == "openai-strict"


@pytest.mark.parametrize("profile", AGREEING)
def test_a_null_that_nullable_allows_is_one_of_the_type(profile: str) -> None:
    found, changes = inside({"type": "string", "nullable": True, "enum": ["a", None]}, profile)
    assert (found["type"], found["enum"]) == (["string", "null"], ["a", None])
    assert any("takes null now" in line for line in changes)


def test_what_nobody_refuses_stays() -> None:
    schema = {"type": "string", "enum": ["a", None]}
    for profile in ("anthropic", "bedrock", "vscode", "mcp"):
        assert inside(schema, profile) == (schema, ())
    good = {"type": ["number", "null"], "enum": [1, 2.5, None]}
    assert inside(good) == (good, ())


def test_values_that_come_together_with_a_type_only_in_strict_mode_agree_too() -> None:
    made, _ = inside({"type": "string", "allOf": [{"enum": [1, "a"]}]}, "openai-strict")
    assert made == {"type": "string", "enum": ["a"]}


listed = st.none() | st.booleans() | st.sampled_from([0, 1, 1.0, 2.5, "a", "", [], {}])
kinds = st.sampled_from(["string", "integer", "number", "boolean", "null", "object", "array"])
typed = kinds | st.lists(kinds, min_size=2, max_size=3, unique=True)


@given(typed, st.lists(listed, min_size=1, max_size=4), st.booleans(), st.sampled_from(AGREEING))
def test_no_value_that_was_accepted_is_lost_and_none_is_of_another_type(
    kind: Any, values: list[Any], one: bool, profile: str
) -> None:
    schema = {"type": kind, **({"const": values[0]} if one else {"enum": values})}
    found = fitted({"type": "object", "properties": {"a": schema}, "required": ["a"]}, profile)
    if found.flaw is not None:
        assert (profile, found.flaw.rule) in {("openai-strict", "strict-map"), ("openai-strict", "strict-untyped")}
        return
    made = found.input_schema["properties"]["a"]
    assert list(stray_values(made)) == []
    for value in values:
        assert Draft202012Validator(made).is_valid(value) or not Draft202012Validator(schema).is_valid(value)


# --- all of it, on drawn schemas, by checks of their own

small = st.recursive(
    st.sampled_from(
        [
            {"type": "string", "pattern": "(?=a)"},
            {"pattern": "["},
            {"type": "string", "enum": ["a", None]},
            {"enum": ["a", 1]},
            {"const": None},
            {"type": "integer", "const": "a"},
            {"type": "string", "format": "uri"},
            {"type": ["string", "null"]},
            {"type": "array", "items": [{"type": "string"}], "additionalItems": {"$ref": "#/$defs/A"}},
            {"$ref": "#/$defs/A"},
        ]
    ),
    lambda inner: (
        st.builds(lambda p: {"type": "object", "properties": p}, st.dictionaries(st.sampled_from("ab"), inner))
        | st.builds(lambda s: {"type": "array", "items": s}, inner)
        | st.builds(lambda k, s: {k: s}, st.sampled_from(["anyOf", "oneOf", "allOf"]), st.lists(inner, min_size=1))
        | st.builds(lambda s, e: {**s, "enum": e}, inner, st.lists(listed, min_size=1, max_size=3))
        | st.builds(
            lambda s: {"type": "object", "patternProperties": {"(?!a)": s}, "additionalProperties": False}, inner
        )
        | st.builds(lambda s: {"type": "object", "dependencies": {"a": ["b"], "b": s}}, inner)
    ),
    max_leaves=6,
)


@given(small, small, st.sampled_from(AGREEING))
def test_what_is_sent_keeps_these_rules_by_checks_of_their_own(one: Any, two: Any, profile: str) -> None:
    definition = {"A": {"enum": ["a", None], "type": "string"}}
    root = {"type": "object", "properties": {"a": one, "b": two}, "anyOf": [{"properties": {"b": one}}, {}]}
    found = fitted({**root, "$defs": definition}, profile)
    strict = profile == "openai-strict"
    if found.flaw is not None:
        # Only what cannot be said at all: nothing that mending should have seen to.
        assert found.flaw.rule in {"strict-map", "strict-untyped", "root-union", "too-large"}, found.flaw
        assert strict
        return
    assert META.is_valid(found.input_schema)
    for node in nodes(found.input_schema):
        assert list(stray_values(node)) == []
        if profile in OPENAI:
            assert list(odd_patterns(node)) == []
        if profile not in ("openai", "openai-responses", "xai"):
            assert list(untyped(node, strict)) == []


# --- older drafts


@pytest.mark.parametrize(
    ("draft", "schema", "values"),
    [
        (
            "http://json-schema.org/draft-07/schema#",
            {"type": "array", "items": [{"type": "string"}], "additionalItems": {"type": "integer"}},
            [["x", 1], ["x", "y"], [1], []],
        ),
        (
            "http://json-schema.org/draft-04/schema#",
            {"type": "number", "maximum": 3, "exclusiveMaximum": True},
            [2, 3, 4],
        ),
        (
            "http://json-schema.org/draft-07/schema#",
            {"type": "object", "dependencies": {"x": ["y"], "z": {"required": ["w"]}}},
            [{}, {"x": 1}, {"x": 1, "y": 1}, {"z": 1}, {"z": 1, "w": 1}],
        ),
    ],
)
@pytest.mark.parametrize("profile", ["portable", "openai", "anthropic", "gemini", "vscode"])
def test_what_is_translated_is_read_by_the_draft_it_is_of(draft: str, schema: Any, values: Any, profile: str) -> None:
    given_schema = {"$schema": draft, "type": "object", "properties": {"a": schema}}
    found = fitted(given_schema, profile)
    assert found.flaw is None
    assert "$schema" not in found.input_schema
    assert any(line.startswith("inputSchema.$schema: left out") for line in found.changes)
    before, after = (validator_for(each)(each) for each in (given_schema, found.input_schema))
    for value in values:
        assert before.is_valid({"a": value}) == after.is_valid({"a": value}), value


def test_the_draft_stays_named_where_nothing_is_translated() -> None:
    schema = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object", "required": None}
    assert fitted(schema).input_schema["$schema"] == schema["$schema"]


def test_references_in_keywords_of_older_drafts_are_inlined_too() -> None:
    schema = {
        "type": "object",
        "properties": {
            "t": {"type": "array", "items": [{"$ref": "#/$defs/A"}], "additionalItems": {"$ref": "#/$defs/A"}}
        },
        "dependencies": {"t": {"properties": {"u": {"$ref": "#/$defs/A"}}}},
        "$defs": {"A": {"type": "null"}},
    }
    assert fitted(schema).input_schema == {
        "type": "object",
        "properties": {"t": {"type": "array", "prefixItems": [{"type": "null"}], "items": {"type": "null"}}},
        "dependentSchemas": {"t": {"type": "object", "properties": {"u": {"type": "null"}}}},
    }


def test_dependencies_join_what_is_said_already() -> None:
    schema = {
        "dependencies": {"x": ["y", "y"], "z": {"required": ["w"]}, "q": "r", "n": 5},
        "dependentRequired": {"x": ["v"]},
        "dependentSchemas": {"z": {"minProperties": 2}},
    }
    made, changes = inside(schema)
    assert made == {
        "dependentRequired": {"x": ["v", "y"], "q": ["r"]},
        "dependentSchemas": {"z": {"minProperties": 2, "required": ["w"]}},
    }
    assert any(".dependencies.n: left out" in line for line in changes)
    assert inside({"type": "string", "dependencies": 5})[0] == {"type": "string"}


def test_a_bound_of_draft_4_without_its_limit_is_said_as_it_is() -> None:
    _, changes = inside({"type": "number", "exclusiveMaximum": True})
    assert changes == (
        "inputSchema.properties.a.exclusiveMaximum: left out: true, as in draft 4, says nothing without a maximum",
    )


# --- descriptions


@pytest.mark.parametrize(
    ("text", "made"),
    [
        ("one two three", "one two three"),
        ("one two three four five", "one two three…"),
        ("one two threefour", "one two…"),
        ("one two threeX four", "one two threeX…"),
        ("x" * 30, "x" * 14 + "…"),
        ("x " + "y" * 30, "x " + "y" * 12 + "…"),
    ],
)
def test_a_description_is_cut_where_a_profile_says_so_at_the_end_of_a_word(text: str, made: str) -> None:
    short = evolve(PORTABLE, max_description=15)
    found = fitted({"type": "object", "properties": {}}, short, text)
    assert found.description == made
    assert len(made) <= 15
    cut = f"description: cut from {len(text)} characters to at most 15"
    assert found.changes == (() if made == text else (cut,))
    assert found.input_schema == {"type": "object", "properties": {}}
    assert fitted({"type": "object", "properties": {}}, short, made).changes == ()


def test_no_profile_cuts_descriptions_of_its_own() -> None:
    for profile in PROFILES.values():
        assert profile.max_description is None
        assert fitted({"type": "object", "properties": {}}, profile, "d" * 5_000).description == "d" * 5_000
    with pytest.raises(ValueError, match="max_description"):
        evolve(PORTABLE, max_description=0)


# --- strict mode


def test_a_long_enum_in_strict_mode_has_few_characters() -> None:
    def enum(count: int, length: int) -> Any:
        values = [f"{i:0{length}d}" for i in range(count)]
        return fitted({"type": "object", "properties": {"a": {"type": "string", "enum": values}}}, "openai-strict").flaw

    assert enum(250, 100) is None
    assert enum(251, 59) is None
    found = enum(251, 60)
    assert (found.rule, found.path) == ("too-large", "inputSchema.properties.a.enum")


def test_what_is_said_of_objects_beside_another_type_is_left_out_in_strict_mode() -> None:
    besides: list[dict[str, Any]] = [{"additionalProperties": {"minLength": 1}}, {"additionalProperties": {}}]
    for beside in (*besides, {"required": ["x"]}):
        assert inside({"type": "string", **beside}, "openai-strict")[0] == {"type": "string"}
    union: dict[str, Any] = {"anyOf": [{"type": "string"}, {"type": "null"}]}
    assert inside({**union, "additionalProperties": {"minLength": 1}}, "openai-strict")[0] == union


def test_lint_says_what_each_of_these_is() -> None:
    for schema, profile, rule in (
        ({"type": "string", "pattern": "(?=a)"}, "openai", "pattern"),
        ({"type": "object", "patternProperties": {"(?=a)": {}}}, "openai", "pattern"),
        ({"type": "string", "enum": [1]}, "gemini", "enum-type"),
        ({"type": "string", "const": 1}, "openai", "enum-type"),
        ({"enum": ["a", 1]}, "gemini", "no-type"),
    ):
        flaw = lint({"type": "object", "properties": {"a": schema}}, PROFILES[profile])
        assert flaw is not None
        assert flaw.rule == rule
