"""What a view leaves out, by names that are compared as a whole."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from playbill.actors.model.budget import Budget
from playbill.actors.model.config import Config, ConfigState, ServerEntry
from playbill.actors.model.lens import EVERYTHING, Lens
from playbill.actors.model.naming import wire_name
from playbill.actors.model.native import NativeTool
from playbill.actors.model.profile import PORTABLE, PROFILES
from playbill.actors.model.projection import Memo, project
from playbill.actors.model.snapshot import Snapshot
from playbill.actors.model.status import Lifecycle, Report, ServerStatus, ToolDef
from playbill.actors.model.wire import ToolRef

NATIVES = [NativeTool("own", "ours", {"type": "object"}, print), NativeTool("other", "ours", {"type": "object"}, print)]
TOOLS = {"a": ["x", "y"], "a/b": ["x", "c"], "b": ["a/b/x", "x"]}


STATUSES = {
    name: ServerStatus(
        lifecycle=Lifecycle(stage="running", generation=1),
        report=Report(generation=1, connected=True, ready=True),
        tools=tuple(map(ToolDef, tools)),
        tools_generation=1,
    )
    for name, tools in TOOLS.items()
}


def shown(lens: Lens, memo: Memo | None = None, **keys: dict[str, Any]) -> Snapshot:
    entries = [ServerEntry(name, command="run", **keys.get(name, {})) for name in TOOLS]
    return project(ConfigState(1, Config(entries)), STATUSES, NATIVES, Budget(None), None, memo, lens=lens)


def sent(snap: Snapshot) -> set[str]:
    return {tool.bare if tool.server is None else f"{tool.server}|{tool.bare}" for tool in snap.catalog.tools}


ALL = {"own", "other", *(f"{server}|{bare}" for server, tools in TOOLS.items() for bare in tools)}


@pytest.mark.parametrize(
    ("items", "gone"),
    [
        (["a"], {"a|x", "a|y"}),
        (["a/b"], {"a/b|x", "a/b|c"}),  # a server of that name; `b` of `a` does not exist
        (["a/x"], {"a|x"}),
        (["a/b/x"], {"a/b|x"}),  # not tool `a/b/x` of server `b`
        (["b/a/b/x"], {"b|a/b/x"}),
        ([ToolRef("a/b", "c"), ToolRef("a", "b/c")], {"a/b|c"}),
        ([ToolRef("a", "y"), ToolRef("b", "x")], {"a|y", "b|x"}),  # and not `x` of `a`
        ([wire_name("a/b", "x")], {"a/b|x"}),
        (["own"], {"own"}),
        (["x", "A", "a/", "/x", "", "ghost", "mcp__", "a/X", "mcp__a"], set()),
    ],
)
def test_what_is_named_is_left_out_and_nothing_else(items: list[Any], gone: set[str]) -> None:
    assert sent(shown(Lens(items))) == ALL - gone
    # As an include list the same names leave just that; native tools are not concerned.
    assert sent(shown(Lens((), items))) == (gone & ALL) | {"own", "other"}


def test_exclude_wins_over_include() -> None:
    assert sent(shown(Lens(["a/x"], ["a", "b/x"]))) == {"own", "other", "a|y", "b|x"}


def test_the_model_says_who_left_a_tool_out_and_what_the_config_says_stays() -> None:
    snap = shown(Lens(["a/x", "a/y"], ["a"]), a={"exclude": ["y"]})
    x, y = snap.model.servers[0].tools
    assert (x.enabled, x.verdict, x.reason) == (True, "excluded", "excluded by this view")
    assert (y.enabled, y.verdict) == (False, "excluded")
    assert "view" not in str(y.reason)
    other = snap.model.tool("b", "x")
    assert other is not None
    assert (other.enabled, other.reason) == (True, "not in this view's include list")
    assert snap.model.wanted == 2


def test_a_lens_that_leaves_nothing_out_gives_the_very_rows() -> None:
    memo = Memo()
    plain = shown(EVERYTHING, memo)
    borrower = Memo(memo.made)
    seen = shown(Lens(["ghost", "b/x"]), borrower)
    assert [one is other for one, other in zip(seen.model.servers, plain.model.servers, strict=True)] == [
        True,
        True,
        False,
    ]
    assert all(borrower.made[name] is memo.made[name] for name in TOOLS)


@pytest.mark.parametrize("items", ["a", ToolRef("a", "x"), [1], [None]])
def test_what_names_nothing_is_refused(items: Any) -> None:
    for make in (lambda: Lens(items), lambda: Lens((), items)):
        with pytest.raises(TypeError, match="name"):
            make()


def test_a_single_question_has_the_answer_of_the_whole() -> None:
    for lens in (Lens(["a", "b/x"]), Lens((), ["a/b", wire_name("a", "y")]), Lens(["a/b"], ["a"])):
        snap = shown(lens)
        for server, tools in TOOLS.items():
            for bare in tools:
                state = snap.model.tool(server, bare)
                assert state is not None
                assert lens.hides(server, bare, state.wire_name) == state.reason
        for server in TOOLS:
            if (reason := lens.hides_server(server)) is not None:
                there = snap.model.server(server)
                assert there is not None
                assert {tool.reason for tool in there.tools} == {reason}


def test_views_that_leave_the_same_out_for_other_reasons_do_not_borrow_each_others_words() -> None:
    memo = Memo()
    shown(EVERYTHING, memo)
    reasons = []
    for lens in (Lens(["a"]), Lens((), ["b"]), Lens(["a"])):
        tool = shown(lens, Memo(memo.made)).model.tool("a", "x")
        assert tool is not None
        reasons.append(tool.reason)
    assert reasons == ["excluded by this view", "not in this view's include list", "excluded by this view"]


def test_a_memo_notices_another_lens_another_row_and_another_profile() -> None:
    memo = Memo()
    for lens, keys in (
        (Lens(["a"]), {}),
        (Lens(["b"]), {}),
        (Lens(["b"]), {"a": {"exclude": ["x"]}}),
        (Lens(["b"]), {"a": {"exclude": ["y"]}}),
        (EVERYTHING, {}),
    ):
        with_memo, without = shown(lens, memo, **keys), shown(lens, None, **keys)
        assert with_memo == without
    odd = ToolDef("odd", input_schema={"type": "object", "oneOf": [{"$ref": "#/none"}]})
    status = {"a": evolve(STATUSES["a"], tools=(odd,))}
    state = ConfigState(1, Config([ServerEntry("a", command="run")]))
    taken = []
    for profile in (PORTABLE, PROFILES["mcp"], PORTABLE):
        snap = project(state, status, [], Budget(None), None, memo, profile=profile)
        assert snap == project(state, status, [], Budget(None), profile=profile)
        taken.append(len(snap.catalog.tools))
    assert taken == [0, 1, 0]
