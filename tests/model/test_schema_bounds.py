"""Hostile schemas are refused, or handled, in bounded time and stack; and each of them alone."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

import pytest
from playbill.actors.model.frozen import freeze
from playbill.actors.model.profile import PROFILES
from playbill.actors.model.schema.fit import Fit, fit
from playbill.actors.model.schema.inline import MAX_REFERENCES
from playbill.actors.model.schema.mend import MAX_MENDED
from playbill.actors.model.schema.strict import unstrict
from playbill.actors.model.status import ToolDef


def wide(count: int) -> dict[str, Any]:
    return {"type": "object", "properties": {f"p{i}": True for i in range(count)}}


def doubling(levels: int) -> dict[str, Any]:
    defs: dict[str, Any] = {
        f"d{i}": {"type": "object", "properties": {side: {"$ref": f"#/$defs/d{i + 1}"} for side in "lr"}}
        for i in range(levels)
    }
    return {"type": "object", "properties": {"x": {"$ref": "#/$defs/d0"}}, "$defs": {**defs, f"d{levels}": {}}}


def chain(hops: int) -> dict[str, Any]:
    defs: dict[str, Any] = {f"d{i}": {"$ref": f"#/$defs/d{i + 1}"} for i in range(hops)}
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{hops}": {"type": "object"}}}


def nested(key: str, levels: int, inner: Any) -> dict[str, Any]:
    for _ in range(levels):
        inner = {key: [inner]} if key.endswith("Of") else {key: inner}
    return {"type": "object", "properties": {"x": inner}}


def many_refs(count: int) -> dict[str, Any]:
    return {
        "type": "object",
        "properties": {f"p{i}": {"$ref": f"#/$defs/d{i}"} for i in range(count)},
        "$defs": {f"d{i}": {} for i in range(count)},
    }


def twice(key: str, levels: int, **beside: Any) -> dict[str, Any]:
    """A union at the root each of whose definitions refers to the next one twice."""
    defs: dict[str, Any] = {
        f"e{i}": {key: [{"$ref": f"#/$defs/e{i + 1}", **beside}, {"$ref": f"#/$defs/e{i + 1}"}]} for i in range(levels)
    }
    defs[f"e{levels}"] = {"type": "object", "properties": {"a": {"type": "string"}}}
    return {"type": "object", key: [{"$ref": "#/$defs/e0"}], "$defs": defs}


def crossing(levels: int) -> dict[str, Any]:
    """Two ways through each of some definitions, which say one property differently."""
    defs: dict[str, Any] = {f"e{levels}": {"properties": {"a": {"type": "string"}}}}
    for i in range(levels):
        defs[f"e{i}"] = {"anyOf": [{"$ref": f"#/$defs/f{i}"}, {"$ref": f"#/$defs/g{i}"}]}
        for side, value in (("f", i), ("g", -i - 1)):
            own = {"properties": {"a": {"const": value}}}
            defs[f"{side}{i}"] = {"anyOf": [{"$ref": f"#/$defs/e{i + 1}"}, own]}
    return {"type": "object", "anyOf": [{"$ref": "#/$defs/e0"}], "$defs": defs}


def itself(key: str, **beside: Any) -> dict[str, Any]:
    node = {key: [{"$ref": "#/$defs/e", **beside}, {"type": "object"}]}
    return {"type": "object", key: [{"$ref": "#/$defs/e"}], "$defs": {"e": node}}


BIG = {"type": "object", "properties": {f"q{i}": {"type": "string"} for i in range(3_000)}}
HOSTILE: dict[str, tuple[Callable[[], dict[str, Any]], str | None]] = {
    "many values": (lambda: wide(MAX_MENDED - 10), None),
    "too many values to mend": (lambda: wide(90_000), "too-large"),
    "many values that need no mending": (lambda: {**wide(0), "default": [0] * 90_000}, None),
    "too many values": (lambda: wide(110_000), "unsound"),
    "definitions that double": (lambda: doubling(25), "too-large"),
    "definitions that double to the edge": (lambda: doubling(11), None),
    "a short chain of references": (lambda: chain(50), None),
    "a long chain of references": (lambda: chain(9_000), "too-large"),
    "many references": (lambda: many_refs(MAX_REFERENCES + 1), "too-large"),
    "one large target, often": (
        lambda: {
            "type": "object",
            "properties": {f"p{i}": {"$ref": "#/$defs/d", "description": "d"} for i in range(3_000)},
            "$defs": {"d": BIG},
        },
        "too-large",
    ),
    "a union of many": (
        lambda: {"oneOf": [{"properties": {"kind": {"const": i}, f"p{i % 50}": {}}} for i in range(3_900)]},
        None,
    ),
    "a union of too many": (
        lambda: {"oneOf": [{"properties": {"kind": {"const": i}}} for i in range(10_000)]},
        "too-large",
    ),
    "a union of many with names of their own": (
        lambda: {
            "anyOf": [
                {"properties": {f"p{i}": {}}, "additionalProperties": {"maximum": i % 100}, "x": i}
                for i in range(2_800)
            ]
        },
        None,
    ),
    "all of many": (
        lambda: {"allOf": [{"properties": {f"p{i}": {}}, "required": [f"p{i}"]} for i in range(3_900)]},
        None,
    ),
    "a long enum": (lambda: {"type": "object", "properties": {"e": {"enum": list(range(19_000))}}}, None),
    "a long list of unknown names": (lambda: {"type": "object", "required": [f"r{i}" for i in range(19_000)]}, None),
    "many names that are not legal": (
        lambda: {"type": "object", "properties": {f"a b {i}": {} for i in range(19_000)}},
        None,
    ),
    "many names that are not legal, and many required": (
        lambda: {
            "type": "object",
            "properties": {f"a b {i}": {} for i in range(9_000)},
            "required": [f"r{i}" for i in range(9_000)],
        },
        None,
    ),
    "one name, enormous": (lambda: {"type": "object", "properties": {"n" * 1_000_000: {}}}, None),
    "all of many about one property": (
        lambda: {"allOf": [{"properties": {"a": {"minLength": i}}} for i in range(3_000)]},
        "too-large",
    ),
    "all of many that say the same of one property": (
        lambda: {"allOf": [{"properties": {"a": {"type": "string"}}, "required": [f"r{i}"]} for i in range(2_000)]},
        None,
    ),
    "all of many about the properties of one": (
        lambda: {"allOf": [{"properties": {"a": {"properties": {f"p{i}": {}}}}} for i in range(2_500)]},
        "too-large",
    ),
    "a large rest beside many properties": (
        lambda: {
            "anyOf": [
                {"properties": {f"p{i}": {}}, "additionalProperties": {"enum": list(range(100))}} for i in range(150)
            ]
        },
        None,
    ),
    "a very large rest beside very many properties": (
        lambda: {
            "anyOf": [
                {
                    "properties": {f"p{i}": {} for i in range(6_000)},
                    "additionalProperties": {"enum": list(range(6_000))},
                },
                {"additionalProperties": {"enum": [0]}},
            ]
        },
        None,
    ),
    "many unknown names that are of a large schema": (
        lambda: {
            "type": "object",
            "required": [f"r{i}" for i in range(6_000)],
            "additionalProperties": {"enum": list(range(6_000))},
        },
        None,
    ),
    "deep unions": (lambda: nested("anyOf", 45, True), None),
    "deep negations": (lambda: nested("not", 95, {"enum": []}), None),
    "deep roots": (lambda: {"allOf": nested("allOf", 40, True)["properties"]["x"]["allOf"]}, None),
}


def fitted(schema: Any, profile: str = "portable") -> Fit:
    return fit(ToolDef("t", description="d", input_schema=schema), "mcp__s__t", PROFILES[profile])


@pytest.mark.parametrize("name", HOSTILE)
def test_a_hostile_schema_is_done_with_soon(name: str) -> None:
    make, rule = HOSTILE[name]
    schema = freeze(make())
    spent = time.process_time()
    found = fitted(schema)
    spent = time.process_time() - spent
    assert (found.flaw and found.flaw.rule) == rule
    assert spent < 5  # far more than it takes; what would be quadratic takes minutes
    assert len(found.changes) <= 50
    assert all(len(line) < 1_000 for line in (*found.changes, str(found.flaw)))
    assert found.flaw is None or len(found.flaw.path) < 400


REFERRING: dict[str, tuple[Callable[[], dict[str, Any]], set[str | None]]] = {
    "all of what doubles": (lambda: twice("allOf", 28), {None, "too-large"}),
    "any of what doubles": (lambda: twice("anyOf", 28), {None, "too-large"}),
    "one of what doubles": (lambda: twice("oneOf", 28), {None, "too-large"}),
    "all of what doubles, with something beside": (lambda: twice("allOf", 28, minProperties=1), {None, "too-large"}),
    "any of what doubles, with something beside": (lambda: twice("anyOf", 28, minProperties=1), {None, "too-large"}),
    "few that cross": (lambda: crossing(15), {None, "too-large"}),
    "many that cross": (lambda: crossing(28), {None, "too-large"}),
    "a long chain": (
        lambda: {
            "allOf": [{"$ref": "#/$defs/e0"}],
            "$defs": {**{f"e{i}": {"allOf": [{"$ref": f"#/$defs/e{i + 1}"}]} for i in range(2_000)}, "e2000": {}},
        },
        {None, "too-large"},
    ),
    "one large target, often, with something beside": (
        lambda: {"anyOf": [{"$ref": "#/$defs/b", "x": i} for i in range(2_500)], "$defs": {"b": BIG}},
        {None, "too-large"},
    ),
    "all of itself": (lambda: itself("allOf"), {None, "ref-cycle"}),
    "any of itself": (lambda: itself("anyOf"), {None, "ref-cycle"}),
    "any of itself, with something beside": (lambda: itself("anyOf", minProperties=1), {None, "ref-cycle"}),
}
"""For the profiles that take references, so that their targets are looked at only where the root is folded."""


@pytest.mark.parametrize("name", REFERRING)
def test_unions_of_references_at_the_root_are_done_with_soon_under_every_profile(name: str) -> None:
    make, rules = REFERRING[name]
    schema = freeze(make())
    for each in PROFILES:
        spent = time.process_time()
        found = fitted(schema, each)
        spent = time.process_time() - spent
        assert (found.flaw and found.flaw.rule) in rules, (each, found.flaw)
        assert spent < 2, each


def test_a_shared_definition_is_folded_into_the_root_once_and_as_it_is() -> None:
    found = fitted(twice("anyOf", 28), "openai")
    assert found.flaw is None
    assert found.input_schema["properties"] == {"a": {"type": "string"}}


@pytest.mark.parametrize("key", ["allOf", "anyOf"])
@pytest.mark.parametrize("profile", ["openai", "anthropic", "gemini", "portable"])
def test_a_definition_that_is_a_union_of_itself_is_a_cycle(key: str, profile: str) -> None:
    found = fitted(itself(key), profile).flaw
    assert found is not None
    assert found.rule == "ref-cycle"


def test_nulls_are_left_out_of_a_call_in_bounded_time() -> None:
    branches = [{"$ref": "#/$defs/e1"}] * 60
    defs: dict[str, Any] = {f"e{i}": {"anyOf": [{"$ref": f"#/$defs/e{i + 1}"}] * 60} for i in range(1, 8)}
    schema = {"properties": {"q": {"anyOf": branches}}, "$defs": {**defs, "e8": {"type": "string"}}}
    spent = time.process_time()
    assert unstrict({"q": None}, schema) in ({}, {"q": None})
    assert time.process_time() - spent < 2


@pytest.mark.parametrize("name", ["deep unions", "deep negations", "deep roots", "a short chain of references"])
@pytest.mark.parametrize("profile", ["portable", "openai", "openai-strict"])
def test_the_answer_is_the_same_however_deep_the_stack_is(name: str, profile: str) -> None:
    schema = freeze(HOSTILE[name][0]())

    def deep(frames: int) -> Fit:
        return deep(frames - 1) if frames else fitted(schema, profile)

    assert deep(500) == fitted(schema, profile)
