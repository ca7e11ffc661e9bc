"""A definition prepared beforehand is projected as any other, without being judged again."""

from __future__ import annotations

from typing import Any

import pytest
from playbill.actors.model import tool as tool_module
from playbill.actors.model.frozen import FrozenDict
from playbill.actors.model.profile import PORTABLE
from playbill.actors.model.status import ToolDef
from playbill.actors.model.tool import Tool, make_tools, prepare

GOOD = {"type": "object", "properties": {"a": {"type": "string"}}}
CASES = [
    ToolDef("good", description="d", input_schema=FrozenDict(GOOD)),
    ToolDef("flawed", input_schema=FrozenDict(type="array")),
]


def seen(tools: tuple[Tool, ...]) -> list[Any]:
    return [(tool.wire, tool.flaw, tool.digest, tool.ref) for tool in tools]


def copies() -> list[ToolDef]:
    return [ToolDef(each.bare, description=each.description, input_schema=each.input_schema) for each in CASES]


def test_it_comes_out_the_same_and_is_not_judged_again(monkeypatch: pytest.MonkeyPatch) -> None:
    ready = copies()
    for each in ready:
        prepare("s", each, PORTABLE)
    plain = seen(make_tools("s", copies(), PORTABLE))
    monkeypatch.setattr(tool_module, "fit", None)
    monkeypatch.setattr(tool_module, "encode", None)
    assert seen(make_tools("s", ready, PORTABLE)) == plain
    assert plain[1][1] is not None


def test_it_is_equal_to_one_that_was_not_prepared() -> None:
    ready, plain = copies()[0], copies()[0]
    prepare("s", ready, PORTABLE)
    assert ready == plain
    assert repr(ready) == repr(plain)


def test_under_another_server_it_is_made_anew() -> None:
    ready = copies()
    for each in ready:
        prepare("other", each, PORTABLE)
    assert seen(make_tools("s", ready, PORTABLE)) == seen(make_tools("s", copies(), PORTABLE))


def test_advertised_again_it_keeps_the_objects_sent_before() -> None:
    before = make_tools("s", copies(), PORTABLE)
    ready = copies()
    for each in ready:
        prepare("s", each, PORTABLE)
    after = make_tools("s", ready, PORTABLE, before)
    assert after[0].wire is before[0].wire
    assert after[0].source is ready[0]


def test_what_has_no_name_is_left_alone() -> None:
    strange = ToolDef(5)  # type: ignore[arg-type]
    prepare("s", strange, PORTABLE)
    assert str(make_tools("s", [strange], PORTABLE)[0].flaw) == "it has no name that is text"
