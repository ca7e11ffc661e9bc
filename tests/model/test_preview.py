"""What would be on the wire if: the same projection, on a configuration that nobody put in force."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from playbill.actors.model.budget import Budget
from playbill.actors.model.config import Config, ConfigState, ServerEntry
from playbill.actors.model.edits import SetEnabled, SetPin, SetTool, apply_edit
from playbill.actors.model.errors import UnknownServer, UnknownTool
from playbill.actors.model.lens import Lens
from playbill.actors.model.native import NativeTool
from playbill.actors.model.preview import preview
from playbill.actors.model.profile import PORTABLE, PROFILES
from playbill.actors.model.projection import Memo, project
from playbill.actors.model.seen import Seen
from playbill.actors.model.status import Lifecycle, Report, ServerStatus, ToolDef
from playbill.actors.model.wire import ToolRef

NATIVE = NativeTool("own", "ours", {"type": "object"}, print)
ENTRIES = [
    ServerEntry("git", command="run", exclude=("push",), env={"TOKEN": "hunter2"}),
    ServerEntry("files", command="run"),
    ServerEntry("files/old", command="run", disabled=True),
    ServerEntry("late", command="run"),
]
TOOLS = {"git": ["log", "push", "status"], "files": ["read", "write", "old/read"], "files/old": ["read", "copy"]}


def seen(budget: Budget | None = None, entries: list[ServerEntry] = ENTRIES) -> Seen:
    statuses = {
        name: ServerStatus(
            lifecycle=None if name == "files/old" else Lifecycle(stage="running", generation=1),
            report=Report(generation=1, connected=True, ready=True),
            tools=tuple(map(ToolDef, tools)),
            tools_generation=1,
        )
        for name, tools in TOOLS.items()
    }
    state, memo = ConfigState(3, Config(entries, path="/etc/mcp.json")), Memo()
    budget = Budget(5) if budget is None else budget
    snapshot = project(state, statuses, [NATIVE], budget, None, memo)
    return Seen(
        snapshot=snapshot,
        state=state,
        statuses=statuses,
        natives=(NATIVE,),
        budget=budget,
        profile=PORTABLE,
        rows=memo.made,
    )


def test_a_tool_enabled_takes_the_place_of_the_last_in_rank() -> None:
    found = preview(seen(), enable=["git/push"])
    assert found.diff.added == ("mcp__git__push",)
    assert found.diff.trimmed_now == (ToolRef("files", "read"),)
    assert found.trimmed == (ToolRef("files", "write"), ToolRef("files", "read"))
    assert str(found) == "1 more tool would be sent (mcp__git__push) and 1 would be trimmed (mcp__files__read)"
    assert found.warning is not None
    assert found.warning.splitlines()[0].startswith("7 tools over the budget of 5 — 2 MCP tools")


def test_it_changes_nothing_and_is_what_doing_it_would_show() -> None:
    ground = seen()
    before = (ground.snapshot, ground.state, dict(ground.statuses), dict(ground.rows))
    found = preview(ground, enable=["git/push", "files/old"], disable=[ToolRef("files", "read")], pin=["files/write"])
    assert (ground.snapshot, ground.state, dict(ground.statuses), dict(ground.rows)) == before
    config = ground.state.config
    for edit in (
        SetTool("git", "push", True),
        SetEnabled("files/old", True),
        SetTool("files", "read", False),
        SetPin("files", "write", True),
    ):
        config = apply_edit(config, edit)
    real = project(evolve(ground.state, config=config), ground.statuses, [NATIVE], ground.budget)
    assert (found.snapshot.model, found.snapshot.catalog.tools) == (real.model, real.catalog.tools)
    assert found.snapshot.version == ground.snapshot.version + 1
    assert "hunter2" not in repr(found)


def test_another_budget() -> None:
    ground = seen()
    assert preview(ground, budget=Budget(100)).diff.untrimmed == (ToolRef("files", "write"),)
    assert preview(ground, budget=Budget(2)).trimmed[:2] == (ToolRef("files", "write"), ToolRef("files", "read"))
    assert preview(ground, budget=Budget(None, 1)).snapshot.catalog.tools[0].wire_name == "own"
    assert len(preview(ground, budget=Budget(None, 1)).snapshot.catalog.tools) == 1


def test_nothing_asked_is_the_snapshot_itself() -> None:
    ground = seen()
    found = preview(ground)
    assert found.snapshot is ground.snapshot
    assert not found.diff
    assert str(found) == "nothing on the wire would change"
    assert preview(ground, enable=["git/log"], unpin=["git/log"]).snapshot is ground.snapshot


def test_what_ails_the_host_is_told_by_its_views_too() -> None:
    ground = evolve(seen(), notices=("the file is not watched",))
    assert ground.project(lens=Lens(["git"])).model.config_warnings[-1] == "the file is not watched"


def test_of_what_is_asked_both_ways_the_later_argument_wins() -> None:
    ground = seen()
    assert preview(ground, enable=["git/log"], disable=["git/log"]).diff.removed == ("mcp__git__log",)
    assert preview(ground, pin=["files/write"], unpin=["files/write"]).trimmed == (ToolRef("files", "write"),)


def test_another_profile_and_a_views_lens() -> None:
    ground = seen()
    assert preview(ground, profile=PROFILES["mcp"]).snapshot.catalog.profile is PROFILES["mcp"]
    lens = Lens(["git"])
    now = ground.project(lens=lens)
    found = preview(ground, enable=["git/push"], lens=lens, now=now)
    assert not found.diff
    assert preview(ground, disable=["files/read"], lens=lens, now=now).diff.removed == ("mcp__files__read",)


@pytest.mark.parametrize(
    ("item", "error", "text"),
    [
        ("gti/log", UnknownServer, "'gti' is configured in /etc/mcp.json (did you mean 'git'?)"),
        ("gti", UnknownServer, "did you mean 'git'"),
        ("git/stauts", UnknownTool, "server 'git' has no tool named 'stauts' (did you mean 'status'?)"),
        (ToolRef("git", "lgo"), UnknownTool, "did you mean 'log'"),
        (ToolRef("nobody", "log"), UnknownServer, "'nobody'"),
        ("files/old/reed", UnknownTool, "server 'files/old' has no tool named 'reed'"),
        ("files/old/read", ValueError, "pass a ToolRef"),
    ],
)
def test_what_names_nothing_or_two_things_is_refused(item: Any, error: type[Exception], text: str) -> None:
    with pytest.raises(error) as caught:
        preview(seen(), enable=[item])
    assert text in str(caught.value)


def test_names_with_a_slash_are_matched_as_a_whole() -> None:
    ground = seen(Budget(100), [evolve(each, disabled=False) for each in ENTRIES])
    for ref in (ToolRef("files/old", "read"), ToolRef("files", "old/read")):
        (gone,) = preview(ground, disable=[ref]).diff.removed
        tool = ground.snapshot.catalog.tool(gone)
        assert tool is not None
        assert (tool.server, tool.bare) == (ref.server, ref.bare)
    assert len(preview(ground, disable=["files/old"]).diff.removed) == 2  # the server


def test_a_server_without_a_list_may_have_any_tool() -> None:
    assert not preview(seen(), enable=["late/anything"], pin=[ToolRef("late", "x")]).diff


@pytest.mark.parametrize("items", ["git/log", ToolRef("git", "log"), [3]])
def test_one_name_for_a_list_is_refused(items: Any) -> None:
    with pytest.raises(TypeError, match="name"):
        preview(seen(), enable=items)
    with pytest.raises(TypeError, match="name"):
        preview(seen(), unpin=items)


refs = st.sampled_from([ToolRef(server, bare) for server, tools in TOOLS.items() for bare in tools])
some = st.lists(refs, max_size=3)


@given(some, some, some, some, st.none() | st.builds(Budget, st.none() | st.integers(0, 9)))
def test_a_preview_is_the_projection_of_the_edited_configuration(
    enable: list[ToolRef], disable: list[ToolRef], pin: list[ToolRef], unpin: list[ToolRef], budget: Budget | None
) -> None:
    ground = seen()
    found = preview(ground, enable=enable, disable=disable, pin=pin, unpin=unpin, budget=budget)
    config = ground.state.config
    for edit in (
        *(SetTool(ref.server, ref.bare, True) for ref in enable),
        *(SetTool(ref.server, ref.bare, False) for ref in disable),
        *(SetPin(ref.server, ref.bare, True) for ref in pin),
        *(SetPin(ref.server, ref.bare, False) for ref in unpin),
    ):
        config = apply_edit(config, edit)
    real = project(evolve(ground.state, config=config), ground.statuses, [NATIVE], budget or ground.budget)
    assert found.snapshot.model == real.model
    assert found.snapshot.catalog.digest == real.catalog.digest
    assert found.trimmed == real.catalog.trimmed
    assert found.diff == ground.snapshot.catalog.diff(real.catalog)
