"""Dialogs: help, details, logs, warnings, and the form of a new server."""

from __future__ import annotations

from typing import Any

import pytest
from attrs import evolve
from playbill.actors.model.config import Config
from playbill.actors.model.edits import RemoveServer
from playbill.actors.model.status import Lifecycle, Report, ServerStatus, ToolDef
from playbill.actors.picker.dialogs import dialog_lines, dialog_title, key_hints
from playbill.actors.picker.reducer import State, reduce
from playbill.actors.picker.values import (
    AddForm,
    Answer,
    Details,
    Failed,
    FetchLog,
    Help,
    LogTail,
    Notices,
    Resized,
    Review,
    Status,
    Tick,
)

from .stage import Stage, at, backing_off, entry, listed, make, opened, press, told, tools

REVIEW = Review(("server evil would run:", "  command  rm", "  arg      -rf"), "seal-1")


@pytest.fixture
def stage() -> Stage:
    return make({"git": tools("log", "add"), "web": tools("get")})


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
    last = len(dialog_lines(state)) - 10  # the last line is the last of a full page

    def top(*keys: str) -> Any:
        return press(state, *keys)[0].dialog.top  # type: ignore[union-attr]

    assert top("up") == 0
    assert top("down", "j", "k") == 1
    assert top("page down") == 9
    assert top(" ", "page up") == 0
    assert top("end") == last
    assert top("end", "up") == last - 1
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
        "server 'git' is backing off (attempt 3 of 5 in 3 s): exit 1",
        "",
        "phase     backing off",
        "list      not in yet",
        "runs      npx -y git-mcp",
        "from      /etc/mcp.json",
        "restarts  2 times",
        "error     exit 1",
        "",
        "Last words on stderr:",
        "  Traceback",
        "    boom [0m",
    )
    assert "in 2 s" in dialog_lines(told(state, Tick(101.0)))[0]


def test_details_of_a_server_say_how_fresh_its_list_is() -> None:
    for status, keys, said in [
        (tools("log"), {}, "current"),
        (backing_off(103.0, tools=tools("log").tools, tools_generation=1), {}, "stale: what it listed before, until"),
        (None, {}, "not in yet"),
        (None, {"disabled": True}, "not known"),
    ]:
        stage = Stage(Config([entry("git", **keys)]), {} if status is None else {"git": status})
        state, _ = press(opened(stage), "i")
        (line,) = [each for each in dialog_lines(state) if each.startswith("list ")]
        assert line.split(maxsplit=1)[1].startswith(said)


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


# Warnings.


def test_all_warnings_and_the_last_error_can_be_read(stage: Stage) -> None:
    stage.cap = 1
    stage.config_error = "mcp.json:3:5: no"
    stage.config = evolve(stage.config, warnings=tuple(f"warning {number}" for number in range(5)))
    state, (toggle,) = press(at(opened(stage), "tool", "git", "log"), " ")
    state = told(state, Failed(toggle.id, "the disk is full"), Tick(500.0))
    state, _ = press(state, "w")
    assert (state.dialog, state.status) == (Notices(), None)
    assert dialog_title(state) == "Warnings and errors"
    assert dialog_lines(state) == (
        "What failed last:",
        "  disable log: the disk is full",
        "Errors:",
        "  mcp.json:3:5: no",
        "    what could be read last stays in force until that is mended",
        "Warnings:",
        "  3 tools over the budget of 1 — 2 MCP tools were dropped from this session; disable some to make room",
        "    mostly from git (2), web (1)",
        *(f"  warning {number}" for number in range(5)),
    )
    assert press(state, "w")[0].dialog is None


def test_without_a_warning_that_is_said(stage: Stage) -> None:
    assert dialog_lines(press(opened(stage), "w")[0]) == ("There is nothing to warn of.",)


def test_a_key_that_does_nothing_now_is_not_hinted_at(stage: Stage) -> None:
    def hinted(state: State) -> set[str]:
        return {what for _, what in key_hints(state)}

    state, _ = press(opened(stage), "i")
    assert "scroll" not in hinted(told(state, Resized(100)))
    assert "scroll" in hinted(told(state, Resized(2)))


def test_a_form_that_was_sent_hints_at_no_sending(stage: Stage) -> None:
    form, _ = press(opened(stage), "a")
    assert isinstance(form.dialog, AddForm)
    sent = evolve(form, dialog=evolve(form.dialog, sent=1))
    assert len(key_hints(sent)) == len(key_hints(form)) - 1
