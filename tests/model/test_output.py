"""Structured results against output schemas: what is reported, and that no schema and no result takes long."""

from __future__ import annotations

from typing import Any

import pytest
from playbill.actors.model.frozen import freeze
from playbill.actors.model.schema import output
from playbill.actors.model.schema.output import OutputChecks

SEATS = {
    "type": "object",
    "properties": {"row": {"type": "string"}, "seats": {"type": "array", "items": {"type": "integer"}}},
    "required": ["row"],
}


def problem(schema: Any, value: Any, given: bool = True) -> str | None:
    return OutputChecks().problem(freeze(schema), given, value)


@pytest.mark.parametrize(
    ("value", "where"),
    [
        ({"row": "K", "seats": [1]}, None),
        ({"row": 3}, "$.row: "),
        ({}, "'row' is a required"),
        ({"row": "K", "seats": [1, "x"]}, "$.seats[1]: "),
    ],
)
def test_what_a_schema_says_is_checked(value: Any, where: str | None) -> None:
    said = problem(SEATS, value)
    assert (said is None) == (where is None)
    assert where is None or where in (said or "")


def test_a_result_without_structured_content_is_told_where_there_should_be_some() -> None:
    assert "no structured content" in (problem(SEATS, None, given=False) or "")
    assert OutputChecks().problem(None, False, None) is None


def test_a_check_is_made_once_for_each_schema(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    real = output._check_for
    monkeypatch.setattr(output, "_check_for", lambda schema: made.append(schema) or real(schema))
    checks, schema = OutputChecks(), freeze(SEATS)
    for _ in range(3):
        checks.problem(schema, True, {"row": "K"})
    assert len(made) == 1


def _doubling(depth: int, of: Any = None) -> Any:
    """Thirty short definitions that take two to the thirtieth steps."""
    last = f"d{depth}"
    definitions = {
        f"d{level}": {"allOf": [{"$ref": f"#/$defs/d{level + 1}"}, {"$ref": f"#/$defs/d{level + 1}"}]}
        for level in range(depth)
    }
    return {"$ref": "#/$defs/d0", "$defs": {**definitions, last: of or {"type": "object"}}}


DIALECT = "https://json-schema.org/draft/2020-12/schema"

HOSTILE = {
    "exponential references below a dialect": (
        {"$ref": "#/$defs/s", "$defs": {**_doubling(30)["$defs"], "s": {"$schema": DIALECT, "$ref": "#/$defs/d0"}}},
        {},
    ),
    "an expression below a dialect": (
        {"properties": {"a": {"$schema": DIALECT, "pattern": "^(a+)+$"}}},
        {"a": "a" * 40 + "!"},
    ),
    "another dialect": ({"allOf": [{"$schema": "http://json-schema.org/draft-04/schema#", "type": "string"}]}, {}),
    "a long search": (
        {"unevaluatedProperties": False},
        {f"p{number}": 1 for number in range(2000)},
    ),
    "an exponential search": ({"unevaluatedProperties": False, **_doubling(30)}, {"a": 1}),
    "a long list compared often": (_doubling(11, {"const": [*range(9000)]}) | {"type": "string"}, [*range(9000)]),
    "a long text complained of often": (
        _doubling(11, {"anyOf": [{"type": "null"}, {}]}) | {"type": "string"},
        {"a": "x" * (output.MAX_CHARS // 2)},
    ),
    "a schema of many parts": ({"properties": {f"p{n}": {} for n in range(9000)}, "type": "string"}, {}),
    "a long text": ({"type": "string"}, {"a": "x" * output.MAX_CHARS}),
    "a dialect that is no text": ({"$schema": 5, "type": "string"}, {}),
    "a dialect that is no address": ({"$schema": "http://[", "type": "string"}, {}),
    "exponential references": (_doubling(30), {}),
    "a reference to itself": ({"$ref": "#"}, {}),
    "a reference to nothing": ({"$ref": "#/$defs/none"}, {}),
    "a reference to the network": ({"$ref": "https://example.com/schema.json"}, {}),
    "an expression that takes years": (
        {"properties": {"a": {"type": "string", "pattern": "^(a+)+$"}}},
        {"a": "a" * 40 + "!"},
    ),
    "names by such an expression": ({"patternProperties": {"^(a+)+$": {}}}, {"a" * 40 + "!": 1}),
    "unique items of many": (
        {"properties": {"a": {"type": "array", "uniqueItems": True}}},
        {"a": [{"n": number} for number in range(6000)]},
    ),
    "no schema at all": ({"type": 3, "properties": []}, {}),
    "nested without end": ({}, {}),
}


@pytest.mark.parametrize("what", HOSTILE)
def test_what_would_take_too_long_or_cannot_be_used_says_nothing(what: str) -> None:
    schema, value = HOSTILE[what]
    assert problem(schema, value) is None


def test_a_result_that_is_too_large_is_not_looked_at() -> None:
    assert problem(SEATS, {"row": 3, "seats": list(range(output.MAX_VALUES))}) is None


def test_what_is_deep_is_no_harm() -> None:
    value: Any = {}
    for _ in range(100_000):
        value = {"a": value}
    assert problem({"properties": {"a": {"$ref": "#"}}}, value) is None


@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"not": {"pattern": "^a"}}, "b"),
        ({"oneOf": [{"pattern": "^a"}, {"pattern": "^b"}]}, "b"),
        ({"if": {"pattern": "^a"}, "then": {"maxLength": 0}}, "b"),
        ({"contains": {"pattern": "^a"}, "maxContains": 1}, ["a", "b"]),
    ],
)
def test_what_is_not_tried_makes_no_report_of_what_is_right(schema: Any, value: Any) -> None:
    assert problem(schema, value) is None


def test_what_is_not_tried_hides_no_other_report() -> None:
    schema = {
        "properties": {"a": {"pattern": "^a"}},
        "not": {"required": ["b"]},
        "additionalProperties": {"pattern": "x"},
    }
    assert "should not be valid" in (problem(schema, {"a": "a", "b": 1}) or "")
    assert "'c' is a required" in (problem(schema | {"required": ["c"]}, {"a": "a"}) or "")


def test_a_schema_of_some_size_is_checked() -> None:
    names = [f"p{number}" for number in range(300)]
    schema = {"$schema": DIALECT, "properties": {name: {"type": "string"} for name in names}, "required": names}
    assert problem(schema, dict.fromkeys(names, "x")) is None
    assert "$.p299: 3 is not of type" in (problem(schema, {**dict.fromkeys(names, "x"), "p299": 3}) or "")
    older = {"$schema": "http://json-schema.org/draft-07/schema#", "items": {"enum": names}}
    assert problem(older, names) is None
    assert "is not one of" in (problem(older, ["p300"]) or "")
    newer = {"properties": {"a": {}}, "unevaluatedProperties": False}
    assert problem(newer, {"a": 1}) is None
    assert "Unevaluated" in (problem(newer, {"b": 1}) or "")


def test_a_part_may_name_the_dialect_of_the_whole_and_refer_to_it() -> None:
    schema = {"$schema": DIALECT, "properties": {"a": {"$ref": "#"}, "b": {"$schema": DIALECT, "type": "integer"}}}
    assert "$.a.b: " in (problem(schema, {"a": {"b": "x"}}) or "")
