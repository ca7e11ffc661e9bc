from __future__ import annotations

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playbill.actors.model.frozen import FrozenDict, FrozenList
from playbill.actors.model.schema.sound import MAX_DEPTH, MAX_VALUES, canonical, judge
from playbill.actors.model.status import ToolDef


def tool(schema: Any = None, **changes: Any) -> ToolDef:
    made = ToolDef("t") if schema is None else ToolDef("t", input_schema=schema)
    for name, value in changes.items():
        object.__setattr__(made, name, value)
    return made


def nested(depth: int) -> FrozenDict:
    value = FrozenDict(type="object")
    for _ in range(depth - 1):
        value = FrozenDict(type="object", x=value)
    return value


def test_an_object_schema_passes() -> None:
    schema = {"type": "object", "properties": {"a": {"type": "number", "default": 1.5, "enum": [1, None, True, "é"]}}}
    assert judge(tool(schema)) is None
    assert judge(ToolDef("t")) is None


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        ([], "not an object but a FrozenList"),
        (None, "not an object but a NoneType"),
        ("x", "not an object but a str"),
        ({"type": "object", "x": float("nan")}, "holds nan"),
        ({"type": "object", "x": [{"y": float("-inf")}]}, "holds -inf"),
        ({"type": "object", "x": {1, 2}}, "holds a set"),
        ({"type": "object", "x": b"y"}, "holds a bytes"),
        ({"type": "object", "x": "\ud800"}, "not valid Unicode"),
        ({"type": "object", "\udfff": 1}, "not valid Unicode"),
        ({"type": "object", "x": 10**5000}, "holds a number of more than 4300 digits"),
    ],
)
def test_what_no_provider_can_take_is_named(schema: Any, reason: str) -> None:
    found = judge(tool() if schema is None else tool(schema))
    if schema is None:
        found = judge(tool(input_schema=None))
    assert found is not None
    assert reason in found


def test_keys_that_are_not_text_are_named() -> None:
    assert "not text: int" in str(judge(tool(FrozenDict({"type": "object", 1: 2}))))


def test_a_title_or_description_that_is_not_text_is_named() -> None:
    assert judge(tool(title=3)) == "its title is not text but a int"
    assert judge(tool(description="\udc80")) == "its description is not valid Unicode"


def test_depth_is_limited_at_the_same_place_whatever_the_stack() -> None:
    assert judge(tool(nested(MAX_DEPTH - 1))) is None
    for depth in (MAX_DEPTH + 1, 2_000, 100_000):
        assert "nests deeper" in str(judge(tool(nested(depth))))

    def deep_in_the_stack(frames: int) -> str | None:
        return deep_in_the_stack(frames - 1) if frames else judge(tool(nested(MAX_DEPTH - 1)))

    assert deep_in_the_stack(500) is None


def test_a_schema_that_contains_itself_or_grows_without_end_is_refused_in_bounded_time() -> None:
    loop: dict[str, Any] = {"type": "object"}
    loop["x"] = loop
    assert "nests deeper" in str(judge(tool(input_schema=loop)))
    bushy: Any = FrozenList()
    for _ in range(90):
        bushy = FrozenList([bushy, bushy])
    assert f"more than {MAX_VALUES}" in str(judge(tool(FrozenDict(type="object", x=bushy))))


class Evil(dict[str, Any]):
    def get(self, *_: object) -> Any:
        raise RuntimeError("evil")

    def values(self) -> Any:
        raise RuntimeError("evil")

    __iter__ = values


def test_what_raises_is_a_reason_too() -> None:
    assert judge(tool(input_schema=Evil(type="object"))) == "its definition cannot be encoded: RuntimeError"
    assert judge(None) == "its definition cannot be encoded: AttributeError"  # type: ignore[arg-type]


scalars: st.SearchStrategy[Any] = st.none() | st.booleans() | st.integers() | st.floats() | st.text() | st.binary()
values = st.recursive(
    scalars,
    lambda v: st.lists(v, max_size=3) | st.dictionaries(st.text(max_size=2), v, max_size=3) | st.just({1}),
    max_leaves=8,
)


@given(values)
def test_judge_never_raises_and_what_it_passes_can_be_encoded(value: Any) -> None:
    for schema in (value, {"type": "object", "x": value}):
        made = tool(input_schema=schema)
        reason = judge(made)
        assert reason is None or (reason and "\n" not in reason)
        if reason is None:
            canonical(made.input_schema)


def test_canonical_json_does_not_depend_on_the_order_of_keys_and_tells_numbers_from_booleans() -> None:
    assert canonical({"b": 1, "a": [1, "é"]}) == canonical({"a": (1, "é"), "b": 1}) == b'{"a":[1,"\\u00e9"],"b":1}'
    assert len({canonical(each) for each in (1, 1.0, True, "1")}) == 4
