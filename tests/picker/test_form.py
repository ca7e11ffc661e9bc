"""The form of a new server; and what logs and details keep to while things change around them."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from playbill.actors.model.config import Config
from playbill.actors.model.status import ToolDef
from playbill.actors.picker.dialogs import dialog_lines, dialog_title
from playbill.actors.picker.forms import parse_target
from playbill.actors.picker.reducer import State, reduce, visible
from playbill.actors.picker.values import (
    Add,
    AddForm,
    Answer,
    Failed,
    FetchLog,
    LogTail,
    Status,
    TextLine,
    Tick,
)

from .stage import Stage, at, listed, make, opened, press, told, tools


@pytest.fixture
def stage() -> Stage:
    return make({"git": tools("log", "add"), "web": tools("get")})


# The form.


def form(state: State) -> AddForm:
    assert isinstance(state.dialog, AddForm)
    return state.dialog


def test_a_server_is_added_and_the_cursor_goes_to_it(stage: Stage) -> None:
    state, operations = press(opened(stage), "a", *"fetch", "enter", *'uvx "mcp fetch" -v', "enter")
    assert operations == [Add(1, "fetch", "uvx", ("mcp fetch", "-v"))]
    assert form(state).sent == 1
    assert dialog_lines(state) == ("adding it…",)
    assert press(state, "x", "enter", "backspace") == (state, [])
    assert visible(state).find(("server", "fetch")) is None
    state = told(state, stage.answer(operations[0]))
    assert (state.dialog, state.cursor) == (None, ("server", "fetch"))
    assert state.status == Status("added fetch", "info", 100.0)


def test_what_is_refused_stays_in_the_form_with_its_reason(stage: Stage) -> None:
    state, (add,) = press(opened(stage), "a", *"fetch", "enter", *"uvx", "enter")
    state = told(state, Failed(add.id, "cannot\nwrite"))
    assert form(state) == AddForm(TextLine("fetch", 5), TextLine("uvx", 3), 1, "cannot write", None)
    assert dialog_lines(state)[0] == "cannot write"
    assert press(state, "enter")[1] == [Add(2, "fetch", "uvx")]
    assert form(press(state, "x")[0]).error is None


def test_a_form_that_is_closed_goes_on_in_the_status_line(stage: Stage) -> None:
    state, (add,) = press(opened(stage), "a", *"fetch", "enter", *"uvx", "enter", "esc")
    assert state.dialog is None
    assert told(state, Failed(add.id, "no")).status == Status("add fetch: no", "error", 100.0)
    after = told(state, stage.answer(add))
    assert (after.cursor, after.status) == (("server", "git"), Status("added fetch", "info", 100.0))


def test_a_second_form_is_not_closed_by_what_the_first_asked_for(stage: Stage) -> None:
    state, (add,) = press(opened(stage), "a", *"fetch", "enter", *"uvx", "enter", "esc", "a", "x")
    state = told(state, stage.answer(add))
    assert form(state).name.text == "x"


def test_a_server_that_is_filtered_away_leaves_the_cursor(stage: Stage) -> None:
    state, _ = press(opened(stage), "/", *"log", "enter")
    state, (add,) = press(state, "a", *"fetch", "enter", *"uvx", "enter")
    assert told(state, stage.answer(add)).cursor == ("server", "git")


def test_moving_between_the_fields_and_editing_them(stage: Stage) -> None:
    state, _ = press(opened(stage), "a", "a", "q", "tab", "/", "left", "d", "shift tab", "backspace")
    assert form(state) == AddForm(TextLine("a", 1), TextLine("d/", 1), 0)
    assert form(press(state, "down")[0]).field == 1
    assert form(press(state, "down", "up")[0]).field == 0
    assert press(state, "esc")[0].dialog is None
    assert dialog_title(state) == "Add a server"


@pytest.mark.parametrize(
    ("name", "what", "field", "error"),
    [
        ("", "uvx", 0, "give it a name"),
        ("  ", "uvx", 0, "give it a name"),
        ("git", "uvx", 0, "there is a server git already"),
        ("new", "", 1, "type the command line that starts it, or its URL"),
        ("new", 'uvx "x', 1, "the command line cannot be read: a quote is not closed"),
        ("new", "uvx 'x", 1, "the command line cannot be read: a quote is not closed"),
        ("new", "uvx \\", 1, "the command line cannot be read: there is nothing after the last backslash"),
        ("new", "A=1", 1, "there is no command in it"),
        ("new", "''", 1, "there is no command in it"),
        ("new", "https://", 1, "the URL names no host"),
        ("new", "https://a b", 1, "a URL has no blanks in it"),
    ],
)
def test_what_is_wrong_is_said_in_one_line_where_it_is_wrong(
    stage: Stage, name: str, what: str, field: int, error: str
) -> None:
    state, operations = press(opened(stage), "a", *name, "tab", *what, "enter")
    assert operations == []
    assert (form(state).field, form(state).error) == (field, error)


@pytest.mark.parametrize(
    ("text", "target"),
    [
        ("npx -y server", ("npx", ("-y", "server"), {}, None)),
        ("  A=1 B='x y' npx C=3 ", ("npx", ("C=3",), {"A": "1", "B": "x y"}, None)),
        ("run ''", ("run", ("",), {}, None)),
        ("https://a.example/mcp", (None, (), {}, "https://a.example/mcp")),
        (" HTTP://a ", (None, (), {}, "HTTP://a")),
        ("curl https://a", ("curl", ("https://a",), {}, None)),
        ("${HOME}/run $X", ("${HOME}/run", ("$X",), {}, None)),
    ],
)
def test_a_line_is_a_command_or_a_url(text: str, target: Any) -> None:
    assert parse_target(text) == target


def test_a_url_is_added_as_one(stage: Stage) -> None:
    asked = press(opened(stage), "a", *"web2", "enter", *"https://a.example/mcp", "enter")[1]
    assert asked == [Add(1, "web2", url="https://a.example/mcp")]
    asked = press(opened(stage), "a", *"x", "enter", *"K=v run", "enter")[1]
    assert asked == [Add(1, "x", "run", env={"K": "v"})]


# Logs and details.


def log_of(stage: Stage) -> tuple[State, FetchLog]:
    state, (fetch,) = press(opened(stage), "l")
    assert isinstance(fetch, FetchLog)
    return state, fetch


@pytest.mark.parametrize("keys", [{"disabled": True}, {"error": "no command"}, {"trusted": False}])
def test_a_log_stays_open_whatever_becomes_of_its_server(stage: Stage, keys: dict[str, Any]) -> None:
    state, _ = log_of(stage)
    state = told(state, Answer(1, "last words"))
    stage.config = Config([evolve(each, **keys) if each.name == "git" else each for each in stage.config.servers])
    state = told(state, stage.news())
    assert (state.dialog, state.status) == (LogTail("git", ("last words",)), None)
    assert reduce(state, Tick(101.0))[1] == (FetchLog(2, "git"),)


def test_a_log_that_is_scrolled_stays_while_it_is_read_again(stage: Stage) -> None:
    state, _ = log_of(stage)
    state = told(evolve(state, page=10), Answer(1, "\n".join(map(str, range(100)))))
    state, _ = press(state, "home", "down")
    state, (again,) = reduce(state, Tick(102.0))
    # By now the tail begins later: what was read would be gone, or be somewhere else.
    state = told(state, Answer(again.id, "\n".join(map(str, range(50, 200)))))
    assert isinstance(state.dialog, LogTail)
    assert (state.dialog.top, dialog_lines(state)[0], len(dialog_lines(state))) == (1, "0", 100)
    state, _ = press(state, "end")
    assert isinstance(state.dialog, LogTail)
    assert (state.dialog.top, dialog_lines(state)[-1], len(dialog_lines(state))) == (None, "199", 150)


def test_a_server_that_is_filtered_away_leaves_the_cursor_on_its_own_row(stage: Stage) -> None:
    state, _ = press(opened(stage), "/", *"get", "enter", "down")
    assert state.cursor == ("tool", "web", "get")
    state, (add,) = press(state, "a", *"fetch", "enter", *"uvx", "enter")
    assert told(state, stage.answer(add)).cursor == ("tool", "web", "get")


def test_what_the_first_form_was_refused_is_not_said_in_the_second(stage: Stage) -> None:
    state, (add,) = press(opened(stage), "a", *"fetch", "enter", *"uvx", "enter", "esc", "a", "x")
    state = told(state, Failed(add.id, "no"))
    assert (form(state).error, form(state).name.text) == (None, "x")
    assert state.status == Status("add fetch: no", "error", 100.0)


def test_details_of_a_server_whose_newest_listing_failed_say_why() -> None:
    status = tools("log")
    assert status.report is not None
    status = evolve(status, report=evolve(status.report, list_error="it answered\n-32603"))
    state, _ = press(opened(make({"git": status})), "i")
    assert "error     it answered -32603" in dialog_lines(state)


def test_a_description_keeps_its_indentation() -> None:
    stage = make({"git": listed([ToolDef("log", description="Arguments:\n\tpath\n    all")])})
    state, _ = press(at(opened(stage), "tool", "git", "log"), "i")
    shown = dialog_lines(state)
    begins = shown.index("Description:")
    assert shown[begins + 1 : begins + 4] == ("  Arguments:", "      path", "      all")
