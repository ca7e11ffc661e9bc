"""What each mend does, by example: what is sent, what is said of it, and what is quarantined with which rule and path."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from playbill.actors.model.profile import PORTABLE, PROFILES, Profile
from playbill.actors.model.schema.fit import Fit, fit
from playbill.actors.model.schema.lint import lint
from playbill.actors.model.status import ToolDef


def fitted(schema: Any, profile: str | Profile = "portable", **tool: Any) -> Fit:
    made = ToolDef("get_it", input_schema=schema, **{"description": "d", **tool})
    return fit(made, "mcp__s__get_it", profile if isinstance(profile, Profile) else PROFILES[profile])


def mended(schema: Any, profile: str = "portable") -> dict[str, Any]:
    found = fitted(schema, profile)
    assert found.flaw is None, found.flaw
    assert found.changes
    return found.input_schema


def inside(schema: Any, profile: str = "portable") -> Any:
    """What becomes of a schema as a property."""
    return mended({"type": "object", "properties": {"a": schema}}, profile)["properties"]["a"]


def flaw(schema: Any, profile: str = "portable") -> tuple[str, str]:
    found = fitted(schema, profile).flaw
    assert found is not None
    return found.rule, found.path


GOOD = {
    "$schema": "http://json-schema.org/draft-07/schema#",
    "type": "object",
    "properties": {
        "a": {"type": "string", "description": "what", "enum": ["x"]},
        "b": {"type": ["array", "null"], "items": {"anyOf": [{"type": "string"}, {}]}, "default": None},
        "c": {"type": "object", "additionalProperties": {"type": "number"}},
    },
    "required": ["a"],
    "additionalProperties": False,
}


@pytest.mark.parametrize("name", [name for name, each in PROFILES.items() if not each.strict])
def test_a_schema_that_needs_nothing_is_the_same_object(name: str) -> None:
    tool = ToolDef("t", description="d", input_schema=GOOD)
    found = fit(tool, "mcp__s__t", PROFILES[name])
    assert found.input_schema is tool.input_schema
    assert found.shown is tool.input_schema
    assert (found.description, found.changes, found.flaw) == ("d", (), None)


@pytest.mark.parametrize("given", [["object", "null"], None, [], "x", {}, "Object", 5, ["object"]])
def test_a_root_that_is_plainly_an_object_becomes_one(given: Any) -> None:
    rest = {"properties": {"a": {"type": "string"}}}
    for profile in ("portable", "mcp", "openai"):
        assert mended({"type": given, **rest}, profile) == {"type": "object", **rest}
        assert mended(rest, profile) == {"type": "object", **rest}


@pytest.mark.parametrize("given", ["array", "string", ["string", "null"], "null", "ARRAY"])
def test_a_root_of_another_type_is_quarantined(given: Any) -> None:
    for profile in PROFILES:
        assert flaw({"type": given}, profile) == ("root-type", "inputSchema.type")
    assert flaw({"enum": ["a", 1]}) == ("root-type", "inputSchema.enum")
    assert flaw({"const": None}) == ("root-type", "inputSchema.const")


def test_an_empty_root_becomes_an_object_without_particular_properties() -> None:
    assert mended({}) == mended({"type": "object"}) == {"type": "object", "properties": {}}


def test_alternatives_at_the_root_are_folded_into_one_object() -> None:
    found = fitted(
        {
            "type": "object",
            "properties": {"verbose": {"type": "boolean"}},
            "required": ["verbose"],
            "oneOf": [
                {
                    "properties": {"do": {"const": "make"}, "title": {"type": "string"}, "n": {"type": "integer"}},
                    "required": ["do", "title"],
                },
                {"properties": {"do": {"const": "drop"}, "n": {"type": "null"}}, "required": ["do"]},
            ],
        }
    )
    assert found.input_schema == {
        "type": "object",
        "properties": {
            "verbose": {"type": "boolean"},
            "do": {"type": "string", "enum": ["make", "drop"]},
            "title": {"type": "string"},
            "n": {"anyOf": [{"type": "integer"}, {"type": "null"}]},
        },
        "required": ["verbose", "do"],
    }
    assert list(found.input_schema["properties"]) == ["verbose", "do", "title", "n"]
    assert any("described as there (narrower)" in line for line in found.changes)
    assert any(line.startswith("inputSchema.oneOf: folded") for line in found.changes)


def test_closed_alternatives_stay_closed_and_nothing_is_narrower() -> None:
    branch = {"type": "object", "additionalProperties": False}
    found = fitted(
        {
            "anyOf": [
                {**branch, "properties": {"a": {"type": "string"}}},
                {**branch, "properties": {"b": {"type": "null"}}},
            ]
        }
    )
    assert found.input_schema == {
        "type": "object",
        "properties": {"a": {"type": "string"}, "b": {"type": "null"}},
        "additionalProperties": False,
    }
    assert not any("narrower" in line for line in found.changes)


@pytest.mark.parametrize("union", ["anyOf", "oneOf"])
def test_one_closed_alternative_closes_nothing_that_another_one_takes(union: str) -> None:
    closed = {"properties": {"a": {"type": "string"}}, "additionalProperties": False}
    opened = {"properties": {"a": {"type": "string"}}, "required": ["a"]}
    found = fitted({"type": "object", union: [closed, opened]})
    assert found.input_schema == {"type": "object", "properties": {"a": {"type": "string"}}}
    assert any("not every branch is closed" in line for line in found.changes)


def test_an_alternative_that_no_object_is_a_value_of_loosens_nothing() -> None:
    form = {"properties": {"a": {"type": "string"}}, "required": ["a"], "additionalProperties": False}
    for other in ({"const": None}, {"enum": ["x", 1]}, {"type": ["null", "array"]}, {"not": True}):
        for profile in ("portable", "anthropic"):
            assert mended({"type": "object", "anyOf": [other, form]}, profile) == {"type": "object", **form}


def test_what_an_alternative_takes_without_naming_it_is_taken_still() -> None:
    form = {"properties": {"a": {"type": "string"}}, "additionalProperties": False}
    others = mended({"type": "object", "anyOf": [form, {"additionalProperties": {"type": "integer"}}]})
    assert others == {"type": "object", "properties": {"a": {"anyOf": [{"type": "string"}, {"type": "integer"}]}}}
    pattern = {"patternProperties": {"^x": {"type": "string"}}, "additionalProperties": False}
    assert "additionalProperties" not in mended({"type": "object", "anyOf": [form, pattern]})


def test_what_either_alternative_takes_for_a_property_is_said_as_plainly_as_can_be() -> None:
    def either(*schemas: Any) -> Any:
        union = [{"properties": {"a": each}} for each in schemas]
        return mended({"type": "object", "anyOf": union}, "anthropic")["properties"]["a"]

    text: dict[str, Any] = {"type": "string", "enum": ["a"]}
    assert either(text, {"type": "string", "const": "b"}) == {"type": "string", "enum": ["a", "b"]}
    assert either(text, {"enum": [1, "b"]}) == {"anyOf": [text, {"enum": [1, "b"]}]}
    assert either(False, text, {"not": {}}) == text


def test_all_of_at_the_root_requires_all() -> None:
    assert mended(
        {
            "allOf": [
                {"properties": {"a": {"type": "string"}}, "required": ["a"]},
                {"properties": {"a": {"minLength": 1}, "b": {"type": "null"}}, "required": ["b"], "minProperties": 2},
                {"if": {"required": ["a"]}, "then": {"required": ["b"]}},
            ]
        }
    ) == {
        "type": "object",
        "properties": {"a": {"type": "string", "minLength": 1}, "b": {"type": "null"}},
        "minProperties": 2,
        "if": {"required": ["a"]},
        "then": {"required": ["b"]},
        "required": ["a", "b"],
    }


def test_what_cannot_be_said_at_the_root_is_left_out_and_said() -> None:
    found = fitted({"type": "object", "properties": {}, "not": {"required": ["a"]}, "const": {"a": 1}, "enum": [{}]})
    assert found.input_schema == {"type": "object", "properties": {}}
    assert [line.split(":")[0] for line in found.changes] == [
        "inputSchema.not",
        "inputSchema.enum",
        "inputSchema.const",
    ]


def test_a_union_of_which_no_object_is_a_value_is_quarantined() -> None:
    assert flaw({"type": "object", "anyOf": [{"type": "string"}, False]}) == ("root-union", "inputSchema.anyOf")
    assert flaw({"type": "object", "allOf": [{}, {"type": "string"}]}) == ("root-union", "inputSchema.allOf")
    assert mended({"anyOf": [{"type": "null"}, {"properties": {"a": {"type": "null"}}}]})["properties"] == {
        "a": {"type": "null"}
    }


def test_references_are_inlined_wherever_they_point() -> None:
    schema = {
        "type": "object",
        "$id": "https://example.org/a/b.json",
        "properties": {
            "pointer": {"$ref": "#/$defs/s", "description": "mine"},
            "chain": {"$ref": "#/$defs/chain"},
            "anchor": {"$ref": "#there"},
            "relative": {"$ref": "c.json"},
            "absolute": {"$ref": "https://example.org/a/b.json#/definitions/old"},
            "odd": {"$ref": "#/x-shared/a%20b~1c~0d"},
            "sibling": {"$ref": "#/properties/pointer"},
            "ref": {"type": "string"},
            "data": {"type": "object", "const": {"$ref": "#/nowhere"}},
        },
        "$defs": {
            "s": {"type": "string", "description": "theirs"},
            "chain": {"$ref": "#/$defs/s"},
            "anchored": {"$anchor": "there", "type": "null"},
            "other": {"$id": "c.json", "$ref": "#/$defs/deep", "$defs": {"deep": {"type": "boolean"}}},
            "unused": {"$ref": "https://example.org/never-fetched"},
        },
        "definitions": {"old": {"type": "integer"}},
        "x-shared": {"a b/c~d": {"type": "number"}},
    }
    found = mended(schema)
    assert {name: each["type"] for name, each in found["properties"].items()} == {
        "pointer": "string",
        "chain": "string",
        "anchor": "null",
        "relative": "boolean",
        "absolute": "integer",
        "odd": "number",
        "sibling": "string",
        "ref": "string",
        "data": "object",
    }
    assert found["properties"]["pointer"]["description"] == "mine"
    assert found["properties"]["sibling"] == {"type": "string", "description": "mine"}
    assert found["properties"]["data"]["const"] == {"$ref": "#/nowhere"}
    assert not {"$defs", "definitions", "$id"} & found.keys()


def test_a_property_called_ref_is_no_reference() -> None:
    schema = {"type": "object", "properties": {"$ref": {"type": "string"}, "$defs": {"type": "null"}}}
    assert fitted(schema, "gemini").changes == ()
    both = {"type": "object", "properties": {**schema["properties"], "a": True}}
    assert mended(both, "gemini")["properties"] == {**schema["properties"], "a": {}}


def test_what_stands_beside_a_reference_counts_too() -> None:
    defs = {"$defs": {"o": {"type": "object", "properties": {"a": {}}, "additionalProperties": False}}}
    schema = {"type": "object", "properties": {"x": {"$ref": "#/$defs/o", "properties": {"b": {}}}}, **defs}
    assert mended(schema)["properties"]["x"]["allOf"] == [defs["$defs"]["o"]]
    beside = {
        "type": "object",
        "properties": {"x": {"$ref": "#/$defs/o", "minProperties": 1, "type": "object"}},
        **defs,
    }
    assert mended(beside)["properties"]["x"] == {**defs["$defs"]["o"], "minProperties": 1}


def test_a_reference_at_the_root_is_followed() -> None:
    schema = {"$ref": "#/$defs/r", "$defs": {"r": {"type": "object", "properties": {"a": {"type": "null"}}}}}
    for profile in ("portable", "openai", "mcp"):
        assert mended(schema, profile)["properties"] == {"a": {"type": "null"}}


CYCLE = {
    "type": "object",
    "properties": {"tree": {"$ref": "#/$defs/node"}},
    "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
}


def test_a_cycle_is_quarantined_alone_with_its_path() -> None:
    found = fitted(CYCLE).flaw
    assert found is not None
    assert found.rule == "ref-cycle"
    assert found.path == "inputSchema.properties.tree.$ref.properties.next.$ref"
    assert "'#/$defs/node' → '#/$defs/node'" in found.message
    assert flaw({"type": "object", "properties": {"me": {"$ref": "#"}}})[0] == "ref-cycle"
    assert flaw({"$ref": "#"}, "openai")[0] == "ref-cycle"
    unused = {"type": "object", "properties": {}, "$defs": CYCLE["$defs"]}
    assert mended(unused) == {"type": "object", "properties": {}}


def test_the_path_of_a_cycle_names_no_reference_that_is_not_on_it() -> None:
    defs = {"fine": {"type": "string"}, **CYCLE["$defs"]}
    properties = {"a": {"$ref": "#/$defs/fine"}, "b": {"$ref": "#/$defs/node"}}
    found = fitted({"type": "object", "properties": properties, "$defs": defs}).flaw
    assert found is not None
    assert "by '#/$defs/node' → '#/$defs/node'," in found.message


def test_one_reference_means_in_each_resource_what_that_one_says() -> None:
    def part(name: str, kind: str) -> dict[str, Any]:
        return {"$id": f"https://x.example/{name}", "$defs": {"x": {"type": kind}}, "$ref": "#/$defs/x"}

    made = mended({"type": "object", "properties": {"a": part("a", "string"), "b": part("b", "integer")}})
    assert made["properties"] == {"a": {"type": "string"}, "b": {"type": "integer"}}


def test_a_reference_and_what_stands_beside_it_are_both_kept() -> None:
    def beside(target: Any, **more: Any) -> Any:
        schema = {"type": "object", "properties": {"a": {"$ref": "#/$defs/t", **more}}, "$defs": {"t": target}}
        return mended(schema)["properties"]["a"]

    members = {"type": "object", "properties": {"a": {"type": "null"}, "b": {"type": "null"}}}
    assert sorted(beside({**members, "required": ["a"]}, required=["b"])["required"]) == ["a", "b"]
    assert "allOf" in beside({"type": "integer", "const": 1}, const=True), "for Python they are equal"
    # Side by side, the one would be about what the other leaves.
    assert "allOf" in beside({"type": "array", "prefixItems": [{"type": "string"}]}, items={"type": "integer"})
    assert "allOf" in beside({"minContains": 2, "type": "array", "items": {}}, contains={"type": "null"})


def test_who_takes_references_gets_them_as_they_are_if_anybody_can_follow_them() -> None:
    tool = ToolDef("t", description="d", input_schema=CYCLE)
    assert fit(tool, "t", PROFILES["openai"]).input_schema is tool.input_schema
    anchored = {"type": "object", "properties": {"a": {"$ref": "#x"}}, "$defs": {"b": {"$anchor": "x", "type": "null"}}}
    assert mended(anchored, "openai") == {"type": "object", "properties": {"a": {"type": "null"}}}


def test_a_reference_to_elsewhere_or_nowhere_is_quarantined_and_nothing_fetched() -> None:
    for profile in ("portable", "anthropic"):
        for to, rule in (
            ("https://example.org/x", "ref-remote"),
            ("#/$defs/no", "ref-dangling"),
            ("#no", "ref-dangling"),
        ):
            schema = {"type": "object", "properties": {"a": {"$ref": to}}}
            assert flaw(schema, profile) == (rule, "inputSchema.properties.a.$ref")


def test_boolean_schemas_are_expanded() -> None:
    assert inside(True) == {}
    assert inside(False) == {"not": {}}
    closed = {"type": "object", "properties": {"a": True}, "additionalProperties": False}
    assert mended(closed)["additionalProperties"] is False


@pytest.mark.parametrize(
    ("given", "made"),
    [
        ({"type": "string", "required": None}, {"type": "string"}),
        ({"type": "object", "properties": []}, {"type": "object"}),
        ({"type": 5, "minLength": 1}, {"minLength": 1}),
        ({"type": "int"}, {"type": "integer"}),
        ({"type": ["STRING", None]}, {"type": ["string", "null"]}),
        ({"type": "any"}, {}),
        ({"type": "array", "items": None}, {"type": "array", "items": {}}),
        ({"type": "string", "enum": {}}, {"type": "string"}),
        ({"type": "string", "enum": []}, {"type": "string"}),
        ({"type": "string", "description": None, "pattern": 1, "minLength": "2"}, {"type": "string"}),
        ({"type": "number", "minimum": 1, "exclusiveMinimum": True}, {"type": "number", "exclusiveMinimum": 1}),
        ({"type": "number", "maximum": 1, "exclusiveMaximum": False}, {"type": "number", "maximum": 1}),
        (
            {"type": "array", "items": [{"type": "string"}], "additionalItems": False},
            {"type": "array", "prefixItems": [{"type": "string"}], "items": {"not": {}}},
        ),
        ({"type": "string", "anyOf": None, "not": None}, {"type": "string"}),
        ({"type": "string", "required": True}, {"type": "string"}),
        ({"type": "object", "properties": {"b": None}}, {"type": "object", "properties": {"b": {}}}),
        (
            {"type": "object", "properties": {"b": {}}, "required": ["b", "b", 1]},
            {"type": "object", "properties": {"b": {}}, "required": ["b"]},
        ),
    ],
)
def test_a_keyword_that_holds_what_it_cannot_is_repaired_or_left_out(given: Any, made: Any) -> None:
    assert inside(given) == made
    tool = fitted({"type": "object", "properties": {"a": given}}, "mcp")
    assert (tool.changes, tool.flaw) == ((), None)  # who takes anything gets it as it is


@pytest.mark.parametrize("given", [5, "string", [], ["x"]])
def test_a_property_that_is_no_schema_is_quarantined(given: Any) -> None:
    assert flaw({"type": "object", "properties": {"a": given}}) == ("malformed", "inputSchema.properties.a")


def test_a_not_or_a_condition_is_left_out_rather_than_made_to_refuse_more() -> None:
    assert inside({"type": "string", "not": {"minLength": "x"}}) == {"type": "string"}
    assert inside({"type": "string", "if": {"pattern": 1}, "then": {"minLength": 1}}) == {"type": "string"}
    assert inside({"oneOf": [{"type": "string", "pattern": 1}, {"type": "string"}]}) == {
        "anyOf": [{"type": "string"}, {"type": "string"}]
    }


def test_a_missing_type_is_inferred_only_where_it_is_plain() -> None:
    assert inside({"enum": ["a", "b"]}) == {"type": "string", "enum": ["a", "b"]}
    assert inside({"const": 1}) == {"type": "integer", "const": 1}
    assert inside({"properties": {"b": {}}}) == {"type": "object", "properties": {"b": {}}}
    assert inside({"items": {}}) == {"type": "array", "items": {}}
    mixed = {"enum": ["a", 1, None, 2.5, True]}
    assert inside(mixed) == {"type": ["boolean", "null", "number", "string"], **mixed}
    for plain in ({}, {"minLength": 1}, {"anyOf": [{"type": "null"}], "properties": {}}):
        schema = {"type": "object", "properties": {"a": plain}}
        assert fitted(schema).changes == ()
    assert fitted({"type": "object", "properties": {"a": {"items": {}}}}).changes[0].endswith("(narrower)")


def test_a_property_with_an_illegal_name_is_left_out_if_it_is_optional() -> None:
    schema = {"type": "object", "properties": {"a b": {"type": "null"}, "ok": {"type": "null"}}}
    found = fitted(schema)
    assert found.input_schema["properties"] == {"ok": {"type": "null"}}
    assert found.changes == (
        "inputSchema.properties['a b']: left out: its name is not one the provider takes (narrower)",
    )
    assert flaw({**schema, "required": ["a b"]}) == ("property-name", "inputSchema.properties['a b']")
    deep = {"type": "object", "properties": {"a": schema}}
    assert fitted(deep, "anthropic").changes == ()
    assert (
        inside(schema)
        == inside(schema, "anthropic-managed")
        == {"type": "object", "properties": {"ok": {"type": "null"}}}
    )


def test_a_required_name_that_is_no_property_becomes_one() -> None:
    assert mended({"type": "object", "required": ["a"]})["properties"] == {"a": {}}
    schema = {"type": "object", "required": ["a"], "additionalProperties": {"type": "null"}}
    assert mended(schema)["properties"] == {"a": {"type": "null"}}


@pytest.mark.parametrize(
    ("tool", "made"),
    [
        ({"description": None}, "Get it."),
        ({"description": " \n", "title": "A title"}, "A title"),
        ({"description": "", "title": " "}, "Get it."),
        ({"description": "kept"}, "kept"),
    ],
)
def test_a_tool_without_a_description_gets_one(tool: dict[str, Any], made: str) -> None:
    found = fitted(GOOD, **tool)
    assert found.description == made
    assert bool(found.changes) == (made != "kept")
    assert fitted(GOOD, "openai", **tool).description == tool["description"]
    nameless = fit(ToolDef("é", input_schema=GOOD), "x", PORTABLE)
    assert nameless.description


def test_people_are_shown_the_schema_as_it_was_advertised() -> None:
    found = fitted({"type": "object", "title": "bare"}, description="")
    assert found.shown == {"type": "object", "title": "bare"}
    assert found.input_schema == {**found.shown, "properties": {}}
    assert [line.partition(":")[0] for line in found.changes] == ["description", "inputSchema"]


def test_limits_of_a_profile_are_kept() -> None:
    limits = {"max_depth": 3, "max_properties": 3, "max_enum": 3, "max_text": 30}
    small = evolve(PORTABLE, schema=evolve(PORTABLE.schema, **limits))
    ok: dict[str, Any] = {"type": "object", "properties": {"a": {"type": "array", "items": {"enum": [1, None, 3]}}}}
    assert fitted(ok, small).flaw is None
    for wrong in (
        {"a": {"type": "array", "items": {"type": "array", "items": {}}}},
        {name: {"type": "null"} for name in "abcd"},
        {"a": {"enum": [1, None]}, "b": {"enum": [1, None]}},
        {"a": {"type": "string", "enum": ["x" * 30]}},
    ):
        found = fitted({"type": "object", "properties": wrong}, small).flaw
        assert found is not None
        assert found.rule == "too-large"


def test_a_tool_refused_by_name_says_why() -> None:
    profile = PORTABLE.refusing(["mcp__s__get_*"], "its OAuth path takes no such tools")
    found = fitted(GOOD, profile).flaw
    assert found is not None
    assert (found.rule, found.path) == ("refused-name", "name")
    assert "its OAuth path takes no such tools" in found.message
    assert fitted(GOOD, PORTABLE.refusing(["other"], "no")).flaw is None


def test_lint_names_the_first_rule_that_is_broken_and_changes_nothing() -> None:
    assert lint(GOOD, PORTABLE) is None
    found = lint({"type": "object", "properties": {"a": {"type": "array"}}}, PORTABLE)
    assert found is not None
    assert (found.rule, found.path) == ("no-items", "inputSchema.properties.a")
    assert lint(CYCLE, PROFILES["anthropic"]) is None
    assert lint(CYCLE, PORTABLE) is not None


def test_what_raises_is_quarantined() -> None:
    class Evil(dict[str, Any]):
        def items(self) -> Any:
            raise RuntimeError("evil")

        get = __getitem__ = items  # type: ignore[assignment]

    tool = ToolDef("t", description="d")
    object.__setattr__(tool, "input_schema", Evil(type="object"))
    assert fit(tool, "t", PORTABLE).flaw is not None
    assert fit(None, "t", PORTABLE).flaw is not None  # type: ignore[arg-type]
