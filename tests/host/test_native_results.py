"""What a handler returns becomes a result of legal JSON, or is refused in one line."""

from __future__ import annotations

import json
from dataclasses import dataclass
from datetime import date
from enum import StrEnum
from typing import Any

import attrs
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp.types import CallToolResult, ImageContent, ResourceLink, TextContent
from playbill.actors.edge.results import error_result, to_result
from pydantic import BaseModel

PICTURE = ImageContent(type="image", data="aGk=", mime_type="image/png")
WORDS = TextContent(type="text", text="words")


def only_text(result: CallToolResult) -> str:
    (block,) = result.content
    assert isinstance(block, TextContent)
    return block.text


class Model(BaseModel):
    a: int = 1


@dataclass
class Plain:
    b: Any = 2


@attrs.define
class Defined:
    c: Any = 3
    _d: int = 4


class Mood(StrEnum):
    GOOD = "good"


@pytest.mark.parametrize(
    ("value", "text", "structured"),
    [
        ("said", "said", None),
        ("", "", None),
        (Mood.GOOD, "good", None),
        (b"bytes", "bytes", None),
        (True, "true", None),
        (3, "3", None),
        ([1, "é"], '[1,"é"]', None),
        ((), "[]", None),
        ({"a": 1}, '{"a":1}', {"a": 1}),
        ({}, "{}", {}),
        (Model(), '{"a":1}', {"a": 1}),
        (Plain(Model()), '{"b":{"a":1}}', {"b": {"a": 1}}),
        (Defined([Defined()]), '{"c":[{"c":3,"_d":4}],"_d":4}', {"c": [{"c": 3, "_d": 4}], "_d": 4}),
        ({"day": date(2026, 1, 2), "set": {1}}, '{"day":"2026-01-02","set":[1]}', {"day": "2026-01-02", "set": [1]}),
        (float("nan"), "null", None),
        ({1: float("inf"), None: 2}, '{"1":null,"None":2}', {"1": None, "None": 2}),
        ("\ud83d\ude00 \ud800", "😀 �", None),
        ({"\ud800": ["\udc00"], "n": float("nan")}, '{"�":["�"],"n":null}', {"�": ["�"], "n": None}),
        (10**30, str(10**30), None),
    ],
)
def test_values_become_their_json(value: Any, text: str, structured: Any) -> None:
    result = to_result(value)
    assert only_text(result) == text
    assert result.structured_content == structured
    assert not result.is_error
    result.model_dump_json()


def test_nothing_is_an_empty_result() -> None:
    assert to_result(None).content == []


def test_content_blocks_are_content_as_they_are() -> None:
    link = ResourceLink(type="resource_link", uri="file:///x", name="x")
    assert to_result(PICTURE).content == [PICTURE]
    assert to_result([WORDS, PICTURE, link]).content == [WORDS, PICTURE, link]
    assert to_result(("words", PICTURE)).content == [WORDS, PICTURE]


def test_a_result_of_the_handlers_own_is_left_as_it_is() -> None:
    own = CallToolResult(content=[WORDS], structured_content={"a": [1]}, is_error=True)
    assert to_result(own) is own


def test_a_result_of_the_handlers_own_holds_legal_json_too() -> None:
    own = CallToolResult(content=[WORDS], structured_content={"a": float("nan"), "b": 1})
    assert to_result(own).structured_content == {"a": None, "b": 1}


def test_structured_content_is_a_copy() -> None:
    kept: dict[str, Any] = {"a": []}
    result = to_result(kept)
    kept["a"].append(1)
    assert result.structured_content == {"a": []}


def _ring() -> Any:
    ring: list[Any] = []
    ring.append({"a": ring})
    return ring


def _deep(levels: int) -> Any:
    deep: Any = 1
    for _ in range(levels):
        deep = [deep]
    return deep


async def _unawaited() -> None: ...


@pytest.mark.parametrize(
    ("make", "reason"),
    [
        (_ring, "Circular reference"),
        (lambda: _deep(100_000), "Maximum serialization depth"),
        (lambda: b"\xff", "no UTF-8 text; return an ImageContent"),
        (object, "a object has no JSON form"),
        (lambda: {"a": print}, "has no JSON form"),
        (lambda: [PICTURE, {"a": 1}], "may hold strings besides, and nothing else"),
        (lambda: (n for n in ()), "a generator, and a call has one result"),
        (_unawaited, "a coroutine that was not awaited"),
        (lambda: CallToolResult(content=[], structured_content={"a": object()}), "has no JSON form"),
    ],
)
def test_what_has_no_json_is_refused_in_one_line(make: Any, reason: str) -> None:
    with pytest.raises((TypeError, ValueError), match=reason) as refused:
        to_result(make())
    assert "\n" not in str(refused.value)


def test_a_very_long_error_says_how_much_of_it_is_left_out() -> None:
    told = only_text(error_result("x" * 5_000))
    assert told.endswith("… (1000 more characters)")
    assert error_result("x").is_error


surrogates = st.text(st.sampled_from("ab\ud83d\ude00é\x00"), max_size=4)
numbers = st.none() | st.booleans() | st.integers(-(2**70), 2**70) | st.floats()
values = st.recursive(
    numbers | surrogates,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(surrogates | st.integers(), inner, max_size=4),
    max_leaves=20,
)


@settings(max_examples=150, deadline=None)
@given(values)
def test_whatever_json_like_is_returned_is_a_result_that_every_encoder_takes(value: Any) -> None:
    result = to_result(value)
    dumped = json.loads(result.model_dump_json(by_alias=True, exclude_none=True).encode("utf-8"))
    json.dumps(dumped, allow_nan=False).encode("ascii")
    if isinstance(value, dict):
        assert json.loads(only_text(result)) == dumped["structuredContent"]
