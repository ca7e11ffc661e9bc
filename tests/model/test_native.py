"""Native tools as values: what is refused where it is written, and how a profile judges and mends them."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from playbill.actors.model.budget import Budget
from playbill.actors.model.config import Config, ConfigState
from playbill.actors.model.frozen import FrozenDict
from playbill.actors.model.native import NativeTool, check_natives, fit_native
from playbill.actors.model.profile import PORTABLE, PROFILES
from playbill.actors.model.projection import Memo, project

MCP = PROFILES["mcp"]
TOOL = NativeTool("tool", "A tool.", {"type": "object", "properties": {}}, print)


def sent(*natives: NativeTool, profile: Any = PORTABLE, memo: Memo | None = None) -> Any:
    return project(ConfigState(1, Config()), {}, natives, Budget(None), None, memo, profile=profile).catalog


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"name": ""}, "not empty"),
        ({"name": 3}, "not 3"),
        ({"name": "mcp__a__b"}, "begin with mcp__"),
        ({"handler": None}, "'tool': its handler is not callable, but None"),
        ({"input_schema": None}, "is a mapping, not None"),
    ],
)
def test_what_is_no_native_tool_is_refused_where_it_is_written(change: dict[str, Any], reason: str) -> None:
    with pytest.raises(ValueError, match=reason):
        evolve(TOOL, **change)


def test_a_schema_that_holds_itself_is_refused_in_one_line() -> None:
    schema: dict[str, Any] = {"type": "object"}
    schema["properties"] = {"a": schema}
    with pytest.raises(ValueError, match="holds itself"):
        evolve(TOOL, input_schema=schema)


def test_a_tool_is_equal_by_what_is_sent_and_its_schema_is_read_only() -> None:
    assert evolve(TOOL, handler=len) == TOOL
    assert isinstance(TOOL.input_schema, FrozenDict)


def test_good_tools_pass_for_every_profile() -> None:
    for profile in PROFILES.values():
        check_natives([TOOL, evolve(TOOL, name="other")], profile)


@pytest.mark.parametrize(
    ("tools", "reason"),
    [
        ([TOOL, TOOL], r"native tool 'tool' is given twice"),
        ([evolve(TOOL, name="a" * 64)], r"native tool 'a+': profile 'portable' takes names that match"),
        ([evolve(TOOL, input_schema={"type": "string"})], r"native tool 'tool': .*\(root-type at inputSchema"),
        ([evolve(TOOL, input_schema={"type": "object", "default": float("nan")})], r"native tool 'tool': .*nan"),
        ([evolve(TOOL, name=f"t{n}") for n in range(200)], r"200 native tools are given, and profile 'portable' takes"),
    ],
)
def test_what_a_provider_would_refuse_is_named_with_its_reason(tools: list[NativeTool], reason: str) -> None:
    with pytest.raises(ValueError, match=reason) as refused:
        check_natives(tools, PORTABLE)
    assert "\n" not in str(refused.value)


def test_as_many_tools_as_the_profile_takes_are_not_too_many() -> None:
    assert PORTABLE.max_tools is not None
    check_natives([evolve(TOOL, name=f"t{n}") for n in range(PORTABLE.max_tools)], PORTABLE)
    with pytest.raises(ValueError, match="129 native tools"):
        check_natives([evolve(TOOL, name=f"t{n}") for n in range(PORTABLE.max_tools + 1)], PORTABLE)


def test_natives_ship_as_the_profile_mends_them() -> None:
    shapes = [
        {"type": "object"},
        {"type": "object", "properties": {"a": {"$ref": "#/$defs/A"}}, "$defs": {"A": {"type": "string"}}},
    ]
    for schema in shapes:
        for profile in PROFILES.values():
            tool = evolve(TOOL, input_schema=schema)
            fitted = fit_native(tool, profile)
            assert fitted.flaw is None
            (wire,) = sent(tool, profile=profile).tools
            assert (wire.description, wire.input_schema) == (fitted.description, fitted.input_schema)


def test_a_native_tool_that_cannot_be_mended_still_ships_as_it_is() -> None:
    odd = evolve(TOOL, input_schema={"type": "array", "items": {"x": float("inf")}})
    assert fit_native(odd, PORTABLE).flaw is not None
    (wire,) = sent(odd).tools
    assert wire.input_schema == odd.input_schema


def test_one_memo_serves_two_profiles_in_turn() -> None:
    tool = evolve(TOOL, input_schema={"type": "object"})
    memo = Memo()
    for profile in (PORTABLE, MCP, PORTABLE):
        assert sent(tool, profile=profile, memo=memo) == sent(tool, profile=profile)


def test_the_digest_is_of_the_bytes_and_of_the_order() -> None:
    other = evolve(TOOL, name="other")
    assert sent(TOOL, other).digest == sent(evolve(TOOL, handler=len), evolve(other)).digest
    assert sent(TOOL, other).digest != sent(other, TOOL).digest
    assert sent(TOOL).digest != sent(evolve(TOOL, description="Another.")).digest
    assert [tool.wire_name for tool in sent(other, TOOL).tools] == ["other", "tool"]


def test_a_plain_function_among_native_tools_is_told_what_to_do() -> None:
    with pytest.raises(TypeError, match=r"make a tool of a function with native_tool\(function\)"):
        check_natives([print], PORTABLE)  # type: ignore[list-item]
