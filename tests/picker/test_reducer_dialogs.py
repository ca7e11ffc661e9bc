"""Dialogs: help, details, logs, the review before trust, and the form of a new server."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from playbill.actors.model.config import Config
from playbill.actors.model.edits import AddServer, RemoveServer
from playbill.actors.model.status import Lifecycle, Report, ServerStatus, ToolDef
from playbill.actors.picker.dialogs import dialog_lines, dialog_title
from playbill.actors.picker.forms import parse_target
from playbill.actors.picker.reducer import State, reduce, visible
from playbill.actors.picker.values import (
    Add,
    AddForm,
    Answer,
    Details,
    Failed,
    FetchLog,
    FetchReview,
    Help,
    LogTail,
    Resized,
    Review,
    Status,
    TextLine,
    Tick,
    Trust,
    TrustReview,
)

from .stage import Stage, at, entry, listed, make, opened, press, row, told, tools

REVIEW = Review(("server evil would run:", "  command  rm", "  arg      -rf"), "seal-1")


@pytest.fixture
def stage() -> Stage:
    return make({"git": tools("log", "add"), "web": tools("get")})


@pytest.fixture
def wary() -> Stage:
    """A server that waits for approval, and one that does not."""
    return Stage(Config([entry("evil", trusted=False), entry("git")]), {"git": tools("log")})


# Text: help, details.


@pytest.mark.parametrize("key", ["esc", "q", "enter", "?", "i"])
def test_a_dialog_of_text_closes_and_leaves_the_rest_alone(stage: Stage, key: str) -> None:
    state = opened(stage)
    for opens in "?i":
        assert press(state, opens, key) == (state, [])


def test_a_dialog_takes_its_keys(stage: Stage) -> None:
    state, operations = press(opened(stage), "?", "d", "d", "p", "R", "a", "t", "/", "x")
    assert (state.dialog, operations, state.cursor) == (Help(), [], ("server", "git"))


def test_scrolling_stays_within_the_text(stage: Stage) -> None:
    state = told(opened(stage), Resized(10))
    state, _ = press(state, "?")
    last = len(dialog_lines(state)) - 1

    def top(*keys: str) -> Any:
        return press(state, *keys)[0].dialog.top  # type: ignore[union-attr]

    assert top("up") == 0
    assert top("down", "j", "k") == 1
    assert top("page down") == 9
    assert top(" ", "page up") == 0
    assert top("end") == len(dialog_lines(state)) - 5
    assert top("end", "home") == 0
    assert top(*["page down"] * 50) == last
    assert dialog_title(state) == "Keys"


def test_details_of_a_tool_are_why_names_description_and_schema() -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string"}}}
    defs = [ToolDef("log", title="The log", description="one\n  two", input_schema=schema)]
    state, _ = press(at(opened(make({"git": listed(defs)})), "tool", "git", "log"), "i")
    assert state.dialog == Details(("tool", "git", "log"))
    assert dialog_title(state) == "log of git"
    assert dialog_lines(state) == (
        "tool 'log' of server 'git' is on the wire as 'mcp__git__log'",
        "",
        "server     git",
        "title      The log",
        "wire name  mcp__git__log",
        "enabled    yes",
        "",
        "Description:",
        "  one",
        "    two",
        "",
        "Arguments (JSON Schema):",
        "  {",
        '    "type": "object",',
        '    "properties": {',
        '      "path": {',
        '        "type": "string"',
        "      }",
        "    }",
        "  }",
    )


def test_details_of_a_mended_tool_say_what_is_sent_otherwise() -> None:
    state, _ = press(at(opened(make({"git": tools("log")})), "tool", "git", "log"), "i")
    lines = dialog_lines(state)
    told_at = lines.index("Sent otherwise than its server says:")
    assert lines[told_at + 1] == "  inputSchema: properties: {} is now there"


def test_details_of_a_server_say_what_it_runs_and_its_last_words() -> None:
    status = ServerStatus(
        lifecycle=Lifecycle(
            stage="backing_off",
            generation=1,
            restarts=2,
            first=False,
            next_retry_at=103.0,
            attempt=(3, 5),
            error="exit 1",
        ),
        report=Report(generation=1, error="exit 1", stderr_tail="Traceback\n  boom\x1b[0m"),
    )
    stage = Stage(Config([entry("git", command="npx", args=("-y", "git-mcp"))]), {"git": status})
    state, _ = press(opened(stage), "i")
    assert dialog_title(state) == "git"
    assert dialog_lines(state) == (
        "server 'git' is backing off after exit 1, attempt 3 of 5 in 3 s",
        "",
        "phase     backing off",
        "runs      npx -y git-mcp",
        "from      /etc/mcp.json",
        "restarts  2",
        "error     exit 1",
        "",
        "Last words on stderr:",
        "  Traceback",
        "    boom [0m",
    )
    assert "in 2 s" in dialog_lines(told(state, Tick(101.0)))[0]


def test_details_on_an_empty_row_are_of_its_server() -> None:
    state, _ = press(at(opened(make({"git": tools()})), "empty", "git"), "i")
    assert state.dialog == Details(("server", "git"))


def test_details_follow_their_tool_and_close_when_it_is_gone(stage: Stage) -> None:
    state, _ = press(at(opened(stage), "tool", "git", "log"), "i")
    stage.cap = 1
    state = told(state, stage.news())
    assert "the budget is 1" in dialog_lines(state)[0]
    stage.statuses["git"] = tools("add")
    state = told(state, stage.news())
    assert (state.dialog, state.status) == (None, Status("log is gone", "info", 100.0))


def test_details_of_a_server_close_when_it_is_gone(stage: Stage) -> None:
    for key in "il":
        state, _ = press(opened(stage), key)
        gone = evolve(stage, config=stage.config)
        gone.edit(RemoveServer("git"))
        state = told(state, gone.news())
        assert (state.dialog, state.status) == (None, Status("git is gone", "info", 100.0))


# The log.


def log_of(stage: Stage) -> tuple[State, FetchLog]:
    state, (fetch,) = press(opened(stage), "l")
    assert isinstance(fetch, FetchLog)
    return state, fetch


def test_a_log_is_fetched_and_shown_from_its_end(stage: Stage) -> None:
    state, fetch = log_of(stage)
    assert fetch == FetchLog(1, "git")
    assert (state.dialog, dialog_lines(state)) == (LogTail("git"), ("reading…",))
    assert dialog_title(state) == "stderr of git"
    state = told(state, Answer(1, "one\ntwo\n"))
    assert (state.dialog, dialog_lines(state)) == (LogTail("git", ("one", "two")), ("one", "two"))
    assert state.flights == ()


def test_an_empty_log_says_so(stage: Stage) -> None:
    state, _ = log_of(stage)
    assert dialog_lines(told(state, Answer(1, ""))) == ("it has written nothing",)


def test_an_open_log_is_read_again_with_time_once_at_a_time(stage: Stage) -> None:
    state, _ = log_of(stage)
    state, operations = reduce(state, Tick(101.0))
    assert operations == ()
    state = told(state, Answer(1, "one"))
    state, operations = reduce(state, Tick(102.0))
    assert operations == (FetchLog(2, "git"),)
    assert dialog_lines(state) == ("one",)
    assert dialog_lines(told(state, Answer(2, "one\ntwo"))) == ("one", "two")
    state, _ = press(state, "esc")
    assert reduce(told(state, Answer(2, "late")), Tick(103.0))[1] == ()


def test_a_log_that_cannot_be_read_says_why_until_it_is_asked_for_again(stage: Stage) -> None:
    state, _ = log_of(stage)
    state = told(state, Failed(1, "no\nlog"))
    assert dialog_lines(state) == ("no log",)
    assert state.status is None
    assert reduce(state, Tick(102.0))[1] == ()
    state, operations = press(state, "l")
    assert operations == [FetchLog(2, "git")]
    assert dialog_lines(state) == ("reading…",)
    assert press(state, "r")[1] == []


def test_a_log_that_is_scrolled_stays_and_the_end_follows(stage: Stage) -> None:
    state, _ = log_of(stage)
    state = told(evolve(state, page=10), Answer(1, "\n".join(map(str, range(100)))))
    assert isinstance(state.dialog, LogTail)
    assert state.dialog.top is None
    state, _ = press(state, "up")
    assert isinstance(state.dialog, LogTail)
    assert state.dialog.top == 89
    state, _ = press(state, "end")
    assert isinstance(state.dialog, LogTail)
    assert state.dialog.top is None


def test_only_the_last_thousand_lines_of_a_log_are_kept(stage: Stage) -> None:
    state, _ = log_of(stage)
    lines = dialog_lines(told(state, Answer(1, "\n".join(map(str, range(5_000))))))
    assert (len(lines), lines[-1]) == (1_000, "4999")


def test_an_answer_that_nobody_waits_for_is_dropped(stage: Stage) -> None:
    state, _ = log_of(stage)
    closed, _ = press(state, "esc")
    assert told(closed, Answer(1, "late")).dialog is None
    assert told(closed, Failed(1, "late")).status is None
    assert told(closed, Failed(1, "late")).flights == ()
    other, _ = press(closed, "tab", "l")
    assert told(other, Answer(1, "of git")).dialog == LogTail("web")
    assert told(state, Answer(1, REVIEW)).dialog == LogTail("git")
    assert told(state, Answer(9, "x")) == state


# The review before trust.


def review_of(wary: Stage) -> State:
    state, operations = press(opened(wary), "t")
    assert operations == [FetchReview(1, "evil")]
    assert state.dialog == TrustReview("evil")
    return state


@pytest.mark.parametrize("key", ["y", "enter"])
def test_what_was_shown_is_what_is_approved(wary: Stage, key: str) -> None:
    assert row(opened(wary), "server", "evil").state == "untrusted — press t to review"
    state = told(review_of(wary), Answer(1, REVIEW))
    assert dialog_lines(state) == REVIEW.lines
    assert dialog_title(state) == "Trust evil?"
    state, operations = press(state, key)
    assert operations == [Trust(2, "evil", "seal-1")]
    assert state.dialog is None
    assert row(state, "server", "evil").pending == "approving"
    state = told(state, wary.answer(operations[0]))
    assert row(state, "server", "evil").phase == "starting"
    assert state.status == Status("approved evil", "info", 100.0)


@pytest.mark.parametrize("key", ["y", "enter"])
def test_nothing_is_approved_before_it_is_shown(wary: Stage, key: str) -> None:
    state = review_of(wary)
    assert dialog_lines(state) == ("reading…",)
    assert press(state, key, key) == (state, [])
    refused = told(state, Failed(1, "it cannot be read"))
    assert dialog_lines(refused) == ("it cannot be read",)
    assert press(refused, key)[1] == []


@pytest.mark.parametrize("key", ["esc", "q", "n"])
def test_a_review_that_is_closed_approves_nothing(wary: Stage, key: str) -> None:
    state = told(review_of(wary), Answer(1, REVIEW))
    state, operations = press(state, key, "y", "n")
    assert (state.dialog, operations) == (None, [])


def test_a_review_that_is_being_read_is_not_replaced_by_another(wary: Stage) -> None:
    state, _ = press(review_of(wary), "esc", "t")
    state = told(state, Answer(1, REVIEW), Answer(2, Review(("something else",), "seal-2")))
    assert dialog_lines(state) == REVIEW.lines
    assert press(state, "y")[1] == [Trust(3, "evil", "seal-1")]


def test_a_review_of_another_server_is_not_shown(wary: Stage) -> None:
    wary.edit(AddServer(entry("evil2", trusted=False)))
    state, _ = press(opened(wary), "t", "esc", "G", "t")
    assert state.dialog == TrustReview("evil2")
    assert told(state, Answer(1, REVIEW)).dialog == TrustReview("evil2")


def test_an_approval_that_is_refused_says_why(wary: Stage) -> None:
    state, (trust,) = press(told(review_of(wary), Answer(1, REVIEW)), "y")
    state = told(state, Failed(trust.id, "what it would run has changed"))
    assert row(state, "server", "evil").phase == "untrusted"
    assert state.status == Status("trust evil: what it would run has changed", "error", 100.0)


def test_a_review_closes_when_there_is_nothing_to_approve_any_more(wary: Stage) -> None:
    state = told(review_of(wary), Answer(1, REVIEW))
    trusted = evolve(wary, config=Config([entry("evil"), entry("git")]))
    after = told(state, trusted.news())
    assert (after.dialog, after.status) == (None, Status("evil needs no approval any more", "info", 100.0))
    gone = evolve(wary, config=Config([entry("git")]))
    after = told(state, gone.news())
    assert (after.dialog, after.status) == (None, Status("evil is gone", "info", 100.0))


def test_a_server_that_is_trusted_has_nothing_to_review(wary: Stage) -> None:
    state, operations = press(at(opened(wary), "tool", "git", "log"), "t")
    assert (state.dialog, operations) == (None, [])
    assert state.status == Status("git needs no approval", "info", 100.0)


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
