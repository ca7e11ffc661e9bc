"""Operations: what keys ask for, how it is shown while it is under way, and what becomes of it."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from playbill.actors.model.config import Config
from playbill.actors.model.edits import RemoveServer
from playbill.actors.model.edits import SetTool as EditTool
from playbill.actors.model.status import ServerStatus
from playbill.actors.picker.reducer import State, reduce, visible
from playbill.actors.picker.values import (
    Done,
    Failed,
    Key,
    Pin,
    Quit,
    Reload,
    Remove,
    Restart,
    Revive,
    SetServer,
    SetTool,
    Status,
    Tick,
)

from .stage import NO_LOGIN, STARTING, Stage, at, backing_off, entry, make, opened, parked, press, row, told, tools


@pytest.fixture
def stage() -> Stage:
    return make({"git": tools("log", "add"), "web": tools("get")})


def on_tool(stage: Stage, server: str = "git", bare: str = "log") -> State:
    return at(opened(stage), "tool", server, bare)


# Toggling a tool.


@pytest.mark.parametrize("key", [" ", "enter"])
def test_a_toggle_is_asked_for_and_shown_as_pending_at_once(stage: Stage, key: str) -> None:
    state, operations = press(on_tool(stage), key)
    assert operations == [SetTool(1, "git", "log", False)]
    assert state.flights == tuple(operations)
    shown = row(state, "tool", "git", "log")
    assert (shown.check, shown.pending, shown.verdict) == ("pending-off", 1, "on_wire")
    assert row(state, "tool", "git", "add").check == "on"
    assert visible(state)[0].busy == 1  # type: ignore[union-attr]
    assert "1 under way" in visible(state)[0].parts  # type: ignore[union-attr]


def test_a_toggle_is_settled_by_the_snapshot(stage: Stage) -> None:
    state, (operation,) = press(on_tool(stage), " ")
    state = told(state, stage.answer(operation))
    shown = row(state, "tool", "git", "log")
    assert (shown.check, shown.pending, shown.verdict) == ("off", 0, "excluded")
    assert state.flights == ()
    assert state.status is None
    state, (operation,) = press(state, " ")
    assert operation == SetTool(2, "git", "log", True)
    assert row(state, "tool", "git", "log").check == "pending-on"
    assert row(told(state, stage.answer(operation)), "tool", "git", "log").check == "on"


def test_a_snapshot_alone_settles_nothing_that_is_under_way(stage: Stage) -> None:
    state, (operation,) = press(on_tool(stage), " ")
    stage.statuses["web"] = parked()
    state = told(state, stage.news())
    assert row(state, "tool", "git", "log").check == "pending-off"
    done = stage.answer(operation)
    state = told(state, stage.news())
    assert row(state, "tool", "git", "log").check == "pending-off"
    assert row(told(state, done), "tool", "git", "log").check == "off"


def test_a_refused_toggle_reverts_and_says_why(stage: Stage) -> None:
    state, (operation,) = press(on_tool(stage), " ")
    state = told(state, Failed(operation.id, "cannot write\n/etc/mcp.json"))
    assert row(state, "tool", "git", "log").check == "on"
    assert state.flights == ()
    assert state.status == Status("disable log: cannot write /etc/mcp.json", "error", 100.0)


def test_a_refusal_without_words_says_that(stage: Stage) -> None:
    state, (operation,) = press(on_tool(stage), " ")
    assert told(state, Failed(operation.id, "")).status == Status(
        "disable log: it failed, and does not say why", "error", 100.0
    )


def test_the_last_wish_wins_and_each_is_asked_for_in_order(stage: Stage) -> None:
    state, operations = press(on_tool(stage), " ", " ", " ")
    assert operations == [
        SetTool(1, "git", "log", False),
        SetTool(2, "git", "log", True),
        SetTool(3, "git", "log", False),
    ]
    counts = [row(state, "tool", "git", "log").pending]
    for operation in operations:
        assert row(state, "tool", "git", "log").check == "pending-off"
        state = told(state, stage.answer(operation))
        counts.append(row(state, "tool", "git", "log").pending)
    assert counts == [3, 2, 1, 0]
    assert row(state, "tool", "git", "log").check == "off"


def test_when_the_last_of_several_wishes_is_refused_the_one_before_it_is_shown(stage: Stage) -> None:
    state, (first, second) = press(on_tool(stage), " ", " ")
    state = told(state, Failed(second.id, "no"))
    assert row(state, "tool", "git", "log").check == "pending-off"
    assert row(told(state, stage.answer(first)), "tool", "git", "log").check == "off"


def test_tools_are_toggled_independently(stage: Stage) -> None:
    state, _ = press(on_tool(stage), " ", "j", " ")
    assert row(state, "tool", "git", "log").check == "pending-off"
    assert row(state, "tool", "git", "add").check == "pending-off"
    state = told(state, Failed(1, "no"))
    assert row(state, "tool", "git", "log").check == "on"
    assert row(state, "tool", "git", "add").check == "pending-off"


@pytest.mark.parametrize(
    "status",
    [
        parked(tools=tools("log").tools, tools_generation=1),
        backing_off(1.0, tools=tools("log").tools, tools_generation=1),
    ],
)
def test_a_tool_whose_server_is_down_is_toggled_all_the_same(status: ServerStatus) -> None:
    stage = make({"git": status})
    state, (operation,) = press(on_tool(stage), " ")
    assert operation == SetTool(1, "git", "log", False)
    assert row(told(state, stage.answer(operation)), "tool", "git", "log").check == "off"


def test_what_came_of_something_unknown_changes_nothing_but_the_snapshot(stage: Stage) -> None:
    state = opened(stage)
    assert told(state, Failed(77, "no")) == state
    stage.edit(EditTool("git", "log", False))
    after = told(state, Done(77, stage.snapshot))
    assert row(after, "tool", "git", "log").check == "off"
    assert after.status is None


def test_an_operation_on_what_is_gone_ends_quietly(stage: Stage) -> None:
    state, (operation,) = press(on_tool(stage), " ")
    stage.edit(RemoveServer("git"))
    state = told(state, stage.news())
    assert visible(state).find(("tool", "git", "log")) is None
    state = told(state, Failed(operation.id, "no server named 'git' is configured"))
    assert state.flights == ()
    assert state.status is not None


# Servers.


@pytest.mark.parametrize("key", [" ", "enter"])
def test_a_server_is_turned_off_and_on(stage: Stage, key: str) -> None:
    state, (operation,) = press(opened(stage), key)
    assert operation == SetServer(1, "git", False)
    assert (row(state, "server", "git").check, row(state, "server", "git").pending) == ("pending-off", "disabling")
    state = told(state, stage.answer(operation))
    assert (row(state, "server", "git").check, row(state, "server", "git").pending) == ("off", None)
    assert row(state, "server", "git").phase in ("disabled", "stopping")
    state, (operation,) = press(state, key)
    assert operation == SetServer(2, "git", True)
    assert (row(state, "server", "git").check, row(state, "server", "git").pending) == ("pending-on", "enabling")


@pytest.mark.parametrize(
    ("status", "keys", "expected"),
    [
        (tools("log"), {}, Restart(1, "git")),
        (STARTING, {}, Restart(1, "git")),
        (NO_LOGIN, {}, Restart(1, "git")),
        (parked(), {}, Revive(1, "git")),
        (backing_off(1.0), {}, Revive(1, "git")),
        (None, {"disabled": True}, "git is disabled: press space on its row to enable it"),
        (None, {"trusted": False}, "git is not trusted: press t to review what it would run"),
        (None, {"error": "no command"}, "the entry of git is invalid: correct it in its file"),
    ],
)
def test_restart_revives_what_waits_and_says_why_not_elsewhere(
    status: ServerStatus | None, keys: dict[str, Any], expected: Any
) -> None:
    stage = Stage(Config([entry("git", **keys)]), {} if status is None else {"git": status})
    state, operations = press(opened(stage), "R")
    if isinstance(expected, str):
        assert (operations, state.status) == ([], Status(expected, "info", 100.0))
    else:
        assert operations == [expected]
        doing = "reviving" if isinstance(expected, Revive) else "restarting"
        assert row(state, "server", "git").pending == doing
        done = told(state, Done(1, stage.snapshot))
        assert row(done, "server", "git").pending is None
        assert done.status is not None
        assert done.status.kind == "info"


def test_keys_for_a_server_work_on_the_rows_of_its_tools(stage: Stage) -> None:
    assert press(on_tool(stage, "web", "get"), "R")[1] == [Restart(1, "web")]


def test_reload(stage: Stage) -> None:
    state, operations = press(opened(stage), "r")
    assert operations == [Reload(1)]
    assert told(state, stage.answer(operations[0])).status == Status("read the config anew", "info", 100.0)


def test_pinning_is_shown_at_once_and_taken_back_when_refused(stage: Stage) -> None:
    state, operations = press(on_tool(stage), "p")
    assert operations == [Pin(1, "git", "log", True)]
    shown = row(state, "tool", "git", "log")
    assert (shown.pinned, shown.pending, shown.check) == (True, 1, "on")
    assert not row(told(state, Failed(1, "no")), "tool", "git", "log").pinned
    state = told(state, stage.answer(operations[0]))
    assert row(state, "tool", "git", "log").pinned
    assert press(state, "p")[1] == [Pin(2, "git", "log", False)]


def test_the_last_wish_of_a_pin_wins_and_is_asked_for_in_order(stage: Stage) -> None:
    state, operations = press(on_tool(stage), "p", "p", "p")
    assert operations == [Pin(1, "git", "log", True), Pin(2, "git", "log", False), Pin(3, "git", "log", True)]
    state = told(state, Failed(3, "no"))
    shown = row(state, "tool", "git", "log")
    assert (shown.pinned, shown.pending) == (False, 2)


def test_a_refused_pin_says_which_way_it_was(stage: Stage) -> None:
    state, _ = press(on_tool(stage), "p", "p")
    assert told(state, Failed(1, "no")).status == Status("pin log: no", "error", 100.0)
    assert told(state, Failed(2, "no")).status == Status("unpin log: no", "error", 100.0)


def test_only_a_tool_can_be_pinned(stage: Stage) -> None:
    state, operations = press(opened(stage), "p")
    assert (operations, state.status) == ([], Status("only a tool can be pinned", "info", 100.0))


# Removing.


def test_removing_takes_two_presses_on_the_same_row(stage: Stage) -> None:
    state, operations = press(opened(stage), "d")
    assert operations == []
    assert state.status == Status("press d again to remove git", "ask", 100.0)
    state, operations = press(state, "d")
    assert operations == [Remove(1, "git")]
    assert (row(state, "server", "git").pending, state.armed) == ("removing", None)
    state = told(state, stage.answer(operations[0]))
    assert visible(state).find(("server", "git")) is None
    assert state.cursor == ("server", "web")
    assert state.status == Status("removed git", "info", 100.0)


@pytest.mark.parametrize("between", ["j", "k", "x", "f5", "esc", "r", "/", "?", "tab", "p", "a"])
def test_any_other_key_between_cancels_the_removal(stage: Stage, between: str) -> None:
    state, _ = press(opened(stage), "d", between, "esc", "g")
    assert state.status is None
    assert state.armed is None
    state, operations = press(state, "d")
    assert not any(isinstance(each, Remove) for each in operations)
    assert state.armed == "git"


def test_a_change_of_what_is_shown_does_not_cancel_a_removal_but_the_loss_of_its_row_does(stage: Stage) -> None:
    state, _ = press(opened(stage), "d")
    stage.statuses["web"] = parked()
    assert press(told(state, stage.news(), Tick(101.0)), "d")[1] == [Remove(1, "git")]
    stage.edit(RemoveServer("git"))
    state = told(state, stage.news())
    assert state.cursor == ("server", "web")
    assert press(state, "d")[1] == []


def test_a_question_that_is_no_longer_seen_is_not_answered(stage: Stage) -> None:
    state, _ = press(opened(stage), "r", "d")
    state = told(state, Failed(1, "no such file"))
    assert state.armed is None
    assert press(state, "d")[1] == []


def test_the_second_press_on_another_row_is_a_first_one(stage: Stage) -> None:
    state, operations = press(opened(stage), "d", "tab", "d")
    assert operations == []
    assert state.status == Status("press d again to remove web", "ask", 100.0)


def test_a_server_that_is_being_removed_is_not_removed_again(stage: Stage) -> None:
    state, operations = press(opened(stage), "d", "d", "d", "d")
    assert operations == [Remove(1, "git")]
    assert state.status == Status("git is being removed", "info", 100.0)


def test_d_on_a_tool_removes_nothing_and_says_so(stage: Stage) -> None:
    state, operations = press(on_tool(stage), "d", "d")
    assert operations == []
    assert state.status is not None
    assert state.status.text.startswith("d removes a server, on its own row: go up to git")


# The status line.


def test_a_key_clears_what_was_said_but_an_error_stays_for_some_seconds(stage: Stage) -> None:
    state, _ = press(opened(stage), "p")
    assert state.status is not None
    assert press(state, "j")[0].status is None
    state, (operation,) = press(on_tool(stage), " ")
    state = told(state, Failed(operation.id, "no"))
    assert press(state, "j")[0].status == state.status
    assert press(told(state, Tick(104.9)), "j")[0].status == state.status
    assert press(told(state, Tick(105.0)), "j")[0].status is None
    assert press(state, "esc")[0].status is None
    assert told(state, Tick(300.0)).status == state.status


# Leaving.


def test_q_leaves_at_once_when_nothing_is_under_way(stage: Stage) -> None:
    state, operations = press(opened(stage), "q")
    assert operations == [Quit(1)]
    assert state.ended
    for event in (Key(" "), Tick(200.0), stage.news(), Failed(1, "no")):
        assert reduce(state, event) == (state, ())


def test_q_waits_for_what_is_under_way(stage: Stage) -> None:
    state, (first, second, *rest) = press(on_tool(stage), " ", "r", "q")
    assert rest == []
    assert state.status == Status("leaving when done: 2 operations; q again leaves at once, esc stays", "ask", 100.0)
    state, operations = reduce(state, stage.answer(first))
    assert (operations, state.ended) == ((), False)
    state, operations = reduce(state, stage.answer(second))
    assert operations == (Quit(3),)
    assert state.ended


def test_q_twice_leaves_at_once(stage: Stage) -> None:
    state, operations = press(on_tool(stage), " ", "q", "q")
    assert operations == [SetTool(1, "git", "log", False), Quit(2)]
    assert state.ended


def test_what_is_refused_while_leaving_is_seen(stage: Stage) -> None:
    state, (operation,) = press(on_tool(stage), " ", "q")
    assert state.status is not None
    assert state.status.text.startswith("leaving when done: disable log;")
    state, operations = reduce(state, Failed(operation.id, "no"))
    assert (operations, state.ended, state.quitting) == ((), False, False)
    assert state.status == Status("disable log: no", "error", 100.0)


def test_while_leaving_only_leaving_and_staying_are_keys(stage: Stage) -> None:
    leaving, _ = press(at(opened(stage), "tool", "git", "log"), " ", "q")
    for key in (" ", "d", "j", "/", "?", "a"):
        assert press(leaving, key) == (leaving, [])
    state, _ = press(evolve(leaving, filter=evolve(leaving.filter, text="log")), "esc")
    assert (state.quitting, state.status, state.filter.text) == (False, None, "log")
    state, operations = reduce(state, stage.answer(state.flights[0]))
    assert (operations, state.ended) == ((), False)


def test_a_fetch_does_not_keep_one_from_leaving(stage: Stage) -> None:
    state, operations = press(opened(stage), "l", "q", "q")
    assert isinstance(operations[-1], Quit)
    assert state.ended
    state, (_, change) = press(opened(stage), "l", "q", "r", "q")
    state, operations_after = reduce(state, stage.answer(change))
    assert [type(each) for each in operations_after] == [Quit]
