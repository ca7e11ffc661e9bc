"""What is not lost: errors that come close together, or while a person types; and the end of the host."""

from __future__ import annotations

from typing import Any

import pytest
from playbill.actors.model.config import Config
from playbill.actors.picker.dialogs import dialog_lines
from playbill.actors.picker.keys import TABLE
from playbill.actors.picker.reducer import State, reduce
from playbill.actors.picker.state import visible
from playbill.actors.picker.values import (
    Add,
    AddForm,
    Closed,
    Details,
    Failed,
    FetchLog,
    Help,
    Key,
    LogTail,
    News,
    Paste,
    Quit,
    Remove,
    Status,
    Tick,
    TrustReview,
)

from .stage import Stage, at, entry, make, opened, parked, press, row, told, tools

CLOSED = "the host is closed: q leaves"


@pytest.fixture
def stage() -> Stage:
    return make({"git": tools("log", "add"), "web": tools("get")})


def refused(stage: Stage, *keys: str) -> State:
    """A state in which turning off ``log`` was just refused, and some keys before it are under way."""
    state, _ = press(opened(stage), *keys)
    state, (toggle,) = press(at(state, "tool", "git", "log"), " ")
    return told(state, Failed(toggle.id, "no"))


def said(state: State) -> tuple[Any, ...]:
    assert state.status is not None
    return state.status.kind, state.status.text


# Errors.


def test_what_another_operation_came_to_is_not_said_over_an_error(stage: Stage) -> None:
    state = refused(stage, "R")
    after = told(state, stage.answer(state.flights[0]))
    assert after.status == Status("disable log: no", "error", 100.0)
    assert said(told(state, Tick(105.0), stage.answer(state.flights[0]))) == ("info", "restarted git")


@pytest.mark.parametrize("key", ["t", "p", "R", "d"])
def test_a_key_that_says_something_says_it_in_vain_while_an_error_is_new(stage: Stage, key: str) -> None:
    state, _ = press(at(refused(stage), "tool", "git", "add"), key)
    assert said(state)[1] == "disable log: no"


def test_what_is_gone_is_not_said_over_an_error(stage: Stage) -> None:
    state, _ = press(at(refused(stage), "server", "web"), "i")
    stage.config = make({"git": None}).config
    assert said(told(state, stage.news())) == ("error", "disable log: no")


def test_two_errors_are_both_told_and_the_time_begins_anew(stage: Stage) -> None:
    state = refused(stage, "R", "r")
    restart, reload = state.flights
    state = told(state, Tick(103.0), Failed(restart.id, "it hangs"))
    assert said(state) == ("error", "disable log: no; restart git: it hangs")
    state, _ = press(told(state, Tick(107.0)), "j")
    assert said(state) == ("error", "disable log: no; restart git: it hangs")
    long = "x" * 200
    state = told(state, Failed(reload.id, long))
    assert said(state) == ("error", f"reload: {long} (and 2 more)")
    assert press(told(state, Tick(112.0)), "j")[0].status is None


def test_an_error_that_has_been_seen_gives_way_to_the_next_one(stage: Stage) -> None:
    state = refused(stage, "R")
    state = told(state, Tick(105.0), Failed(state.flights[0].id, "it hangs"))
    assert said(state) == ("error", "restart git: it hangs")


def test_the_same_error_again_is_told_once_and_stays_longer(stage: Stage) -> None:
    state = told(refused(stage), Tick(104.0))
    state, (toggle,) = press(state, " ")
    state = told(state, Failed(toggle.id, "no"), Tick(108.0))
    assert press(state, "j")[0].status == Status("disable log: no", "error", 104.0)


def test_a_question_is_asked_in_front_of_a_new_error_which_comes_back_after_it(stage: Stage) -> None:
    state, _ = press(at(refused(stage), "server", "git"), "d")
    assert said(state) == ("ask", "press d again to remove git — disable log: no")
    assert press(state, "d")[1] == [Remove(2, "git")]
    assert said(press(state, "j")[0]) == ("error", "disable log: no")
    assert press(told(state, Tick(105.0)), "j")[0].status is None


def test_staying_brings_back_an_error_that_leaving_stood_in_front_of(stage: Stage) -> None:
    state, _ = press(refused(stage, "r"), "q")
    assert said(state)[0] == "ask"
    state, _ = press(state, "esc")
    assert said(state) == ("error", "disable log: no")
    assert press(state, "esc")[0].status is None


def test_an_error_goes_when_the_same_thing_is_done_after_all(stage: Stage) -> None:
    state, (other,) = press(at(refused(stage), "tool", "git", "add"), " ")
    assert said(told(state, stage.answer(other))) == ("error", "disable log: no")
    state, (toggle,) = press(refused(stage), " ")
    assert told(state, stage.answer(toggle)).status is None


def test_an_error_goes_when_the_file_can_be_read_again(stage: Stage) -> None:
    stage.config_error = "mcp.json:3:1: no JSON"
    state, (toggle,) = press(at(opened(stage), "tool", "git", "log"), " ")
    state = told(state, Failed(toggle.id, "mcp.json:3:1: no JSON"))
    stage.statuses["web"] = parked()
    state = told(state, stage.news())
    assert said(state)[0] == "error"
    stage.config_error = None
    assert told(state, stage.news()).status is None


# What is pasted.


def test_a_paste_is_a_text_and_no_keys(stage: Stage) -> None:
    state, operations = reduce(opened(stage), Paste("d d q \n"))
    assert operations == ()
    assert said(state) == ("info", "what was pasted was left alone: it is no keys")
    state, _ = press(opened(stage), "d")
    state = told(state, Paste("d"))
    assert state.armed is None


def test_a_paste_goes_into_the_line_that_is_typed(stage: Stage) -> None:
    state, _ = press(opened(stage), "/", "x", "left")
    state = told(state, Paste("lo\ng\x1b"))
    assert (state.filter.text, state.filter.caret) == ("lo g x", 5)
    state, _ = press(opened(stage), "a")
    state = told(state, Paste("fetch"))
    state = told(press(state, "tab")[0], Paste("uvx\nmcp-server-fetch"))
    assert press(state, "enter")[1] == [Add(1, "fetch", "uvx", ("mcp-server-fetch",))]


def test_a_filter_takes_two_hundred_characters(stage: Stage) -> None:
    state, _ = press(opened(stage), "/", *"ab" * 200)
    assert state.filter.text == "ab" * 100
    assert told(state, Paste("more")).filter.text == "ab" * 100
    state = told(press(opened(stage), "/")[0], Paste("x" * 20_000))
    assert len(state.filter.text) == 200


# What cannot be reviewed.


def test_an_invalid_server_that_nobody_approved_is_invalid_and_t_says_why_it_cannot_be_reviewed() -> None:
    stage = Stage(Config([entry("git", trusted=False, error="/etc/mcp.json:7: no\ncommand")]))
    state = opened(stage)
    assert row(state, "server", "git").state == "invalid"
    state, operations = press(state, "t")
    assert (operations, state.dialog) == ([], None)
    assert said(state)[1] == "git cannot be reviewed, as its entry is invalid: /etc/mcp.json:7: no command"


def test_a_review_that_cannot_be_shown_cannot_be_approved_and_that_is_said() -> None:
    state, (fetch,) = press(opened(Stage(Config([entry("git", trusted=False)]))), "t")
    state = told(state, Failed(fetch.id, "it is gone"))
    state, operations = press(state, "y")
    assert operations == []
    assert said(state) == ("ask", "nothing is shown that could be approved")


# A server that is being removed.


@pytest.mark.parametrize("where", [("tool", "git", "log"), ("server", "git")])
@pytest.mark.parametrize("key", [" ", "p", "R"])
def test_a_server_that_is_being_removed_is_asked_for_nothing_more(
    stage: Stage, where: tuple[str, ...], key: str
) -> None:
    state, (removal,) = press(opened(stage), "d", "d")
    after, operations = press(at(state, *where), key)
    if (where[0], key) != ("server", "p"):
        assert said(after) == ("info", "git is being removed")
    assert operations == []
    assert press(at(state, "tool", "web", "get"), " ")[1] != []
    assert press(at(told(state, Failed(removal.id, "no")), "tool", "git", "log"), " ")[1] != []


# The host closes.


def test_when_the_host_closes_what_was_under_way_is_named_and_shown_no_more(stage: Stage) -> None:
    state, _ = press(at(opened(stage), "tool", "git", "log"), " ", "j", " ", "r", "l")
    state = told(state, Closed())
    assert state.flights == ()
    assert row(state, "tool", "git", "log").check == "on"
    assert visible(state)[0].busy == 0  # type: ignore[union-attr]
    assert said(state) == ("error", f"{CLOSED}; nobody knows what came of: disable log, disable add, reload")
    assert press(state, " ", "j")[0].status == state.status
    assert said(press(told(state, Tick(105.0)), " ")[0]) == ("error", CLOSED)


def test_of_many_operations_three_are_named(stage: Stage) -> None:
    state, _ = press(at(opened(stage), "tool", "git", "log"), *" " * 5)
    assert said(told(state, Closed()))[1].endswith("of: disable log, enable log, disable log and 2 more")


@pytest.mark.parametrize("key", [key for each in TABLE["list"] for key in each.keys if each.action != "quit"])
def test_after_that_no_key_asks_it_for_anything_and_it_goes_on_being_said(stage: Stage, key: str) -> None:
    for where in (("tool", "git", "log"), ("server", "git")):
        state = told(opened(stage), Closed(), Tick(200.0))
        after, operations = press(at(state, *where), key, key)
        assert (operations, after.flights) == ([], ())
        assert said(after) == ("error", CLOSED)
        after = told(after, Tick(300.0), News(stage.snapshot))
        assert said(press(after, "esc")[0]) == ("error", CLOSED)


def test_q_leaves_a_host_that_is_closed_at_once(stage: Stage) -> None:
    state, _ = press(opened(stage), " ", "q")
    state = told(state, Closed())
    assert not state.quitting  # what came of it is to be seen first
    state, operations = press(state, "q")
    assert operations == [Quit(2)]
    assert state.ended


def test_a_dialog_that_waits_for_the_host_closes_and_one_that_is_read_stays(stage: Stage) -> None:
    for keys, stays in [(("?",), Help), (("i",), Details), (("l",), None), (("a", "x"), None)]:
        state = told(press(opened(stage), *keys)[0], Closed())
        assert (None if state.dialog is None else type(state.dialog)) is stays
    untrusted = Stage(type(stage.config)([entry("git", trusted=False)]))
    state, _ = press(opened(untrusted), "t")
    assert isinstance(state.dialog, TrustReview)
    assert told(state, Closed()).dialog is None


def test_an_open_log_stays_and_is_read_no_more(stage: Stage) -> None:
    state, (fetch,) = press(opened(stage), "l")
    state = told(state, stage.answer(fetch), Closed())
    assert isinstance(state.dialog, LogTail)
    assert "bye" in dialog_lines(state)
    assert reduce(state, Tick(200.0))[1] == ()
    after, operations = press(state, "r")
    assert operations == []
    assert isinstance(after.dialog, LogTail)
    assert isinstance(fetch, FetchLog)


def test_what_comes_after_the_end_changes_nothing(stage: Stage) -> None:
    state, (toggle,) = press(at(opened(stage), "tool", "git", "log"), " ")
    state = told(state, Closed())
    assert told(state, Failed(toggle.id, "the host is closed"), Closed()) == state
    assert not isinstance(state.dialog, AddForm)
    assert reduce(state, Key(" "))[1] == ()
