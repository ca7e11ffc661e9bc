"""The review before trust: what was shown is approved, and nothing before all of it was."""

from __future__ import annotations

import pytest
from attrs import evolve
from playbill.actors.model.config import Config
from playbill.actors.model.edits import AddServer
from playbill.actors.picker.dialogs import dialog_lines, dialog_title, key_hints
from playbill.actors.picker.reducer import State
from playbill.actors.picker.values import (
    Answer,
    Failed,
    FetchReview,
    Resized,
    Review,
    Shown,
    Status,
    Trust,
    TrustReview,
)

from .stage import Stage, at, entry, opened, press, row, told, tools

REVIEW = Review(("server evil would run:", "  command  rm", "  arg      -rf"), "seal-1")


@pytest.fixture
def wary() -> Stage:
    """A server that waits for approval, and one that does not."""
    return Stage(Config([entry("evil", trusted=False), entry("git")]), {"git": tools("log")})


def review_of(wary: Stage) -> State:
    state, operations = press(opened(wary), "t")
    assert operations == [FetchReview(1, "evil")]
    assert state.dialog == TrustReview("evil")
    return state


def read(state: State) -> State:
    """The state after all lines of its dialog were on the screen."""
    return told(state, Shown(0, len(dialog_lines(state))))


def test_what_was_shown_is_what_is_approved(wary: Stage) -> None:
    assert row(opened(wary), "server", "evil").state == "untrusted — press t to review"
    state = told(review_of(wary), Answer(1, REVIEW))
    assert dialog_lines(state) == REVIEW.lines
    assert dialog_title(state) == "Trust evil?"
    state, operations = press(read(state), "y")
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
    after, operations = press(read(state), key, key)
    assert (after.dialog, operations) == (state.dialog, [])
    refused = told(state, Failed(1, "it cannot be read"))
    assert dialog_lines(refused) == ("it cannot be read",)
    assert press(read(refused), key)[1] == []
    assert press(read(told(state, Answer(1, Review((), "seal")))), key)[1] == [], "nothing is nothing to approve"


def test_enter_closes_every_other_text_and_approves_nothing(wary: Stage) -> None:
    state = read(told(review_of(wary), Answer(1, REVIEW)))
    assert press(state, "enter", " ", "enter") == (state, [])


def test_an_approval_waits_until_each_line_was_on_the_screen_and_says_so(wary: Stage) -> None:
    long = Review(tuple(f"  arg      {number}" for number in range(30)), "seal-1")
    state = told(review_of(wary), Answer(1, long), Resized(10, 40))
    said = []
    for shown in (None, Shown(0, 10), Shown(20, 30), Shown(11, 20), Shown(5, 10), Shown(10, 11)):
        state = state if shown is None else told(state, shown)
        state, operations = press(state, "y")
        said.append(None if state.status is None else state.status.text)
        assert bool(operations) == (shown == Shown(10, 11))
    assert said == [
        "not approved: 30 lines of it not seen yet, from line 1 on; space goes on",
        "not approved: 20 lines of it not seen yet, from line 11 on; space goes on",
        "not approved: 10 lines of it not seen yet, from line 11 on; space goes on",
        "not approved: 1 line of it not seen yet, from line 11 on; space goes on",
        "not approved: 1 line of it not seen yet, from line 11 on; space goes on",
        "approving evil",
    ]


def test_what_was_seen_at_one_width_is_seen_at_another_and_nothing_else_is(wary: Stage) -> None:
    state = told(review_of(wary), Answer(1, Review(("  arg      " + "x" * 389,), "seal")), Resized(4, 80))
    state = told(state, Shown(0, 4))  # 80 characters and three times 78 of 400
    assert [len(line) for line in dialog_lines(state)] == [80, 80, 80, 80, 80, 10]
    state = told(state, Resized(4, 40))
    lines = dialog_lines(state)
    # 40 and 38 a line: up to the 314th character is the end of the eighth line, and two of the ninth.
    state, operations = press(state, "y")
    assert operations == []
    assert state.status is not None
    assert state.status.text.startswith(f"not approved: {len(lines) - 8} lines of it not seen yet, from line 9 on")
    assert press(told(state, Shown(8, len(lines))), "y")[1] == [Trust(2, "evil", "seal")]


def test_a_screen_of_another_width_begins_with_the_same_text(wary: Stage) -> None:
    text = "  arg      " + "".join(chr(ord("a") + number % 26) for number in range(2_000))
    state = told(review_of(wary), Answer(1, Review((text,), "seal")), Resized(5, 80))
    state, _ = press(state, " ", " ")
    assert isinstance(state.dialog, TrustReview)
    first = dialog_lines(state)[state.dialog.top]
    state = told(state, Resized(5, 30))
    assert isinstance(state.dialog, TrustReview)
    # The line has the beginning of what was the first, and begins with it or before it.
    at = dialog_lines(state)[state.dialog.top].removeprefix("↳ ")
    begins = text.index(first.removeprefix("↳ "))
    assert 0 <= begins - text.index(at, begins - 28) < 28


def test_on_a_screen_that_is_too_narrow_nothing_is_approved(wary: Stage) -> None:
    state = read(told(review_of(wary), Answer(1, REVIEW), Resized(50, 19)))
    state, operations = press(state, "y")
    assert operations == []
    assert state.status == Status("the screen is too narrow to review it", "ask", 100.0)
    assert press(read(told(state, Resized(50, 20))), "y")[1] == [Trust(2, "evil", "seal-1")]


def test_a_review_shows_every_character_and_blank_and_spells_those_that_nobody_would_see(wary: Stage) -> None:
    args = {
        "two  blanks   three": "two  blanks   three",
        "\x1b[2J\x1b[1A": "\\x1b[2J\\x1b[1A",
        "a\nb\tc\rd": "a\\nb\\tc\\rd",
        "right\u202eto left": "right\\u202eto left",
        "zero\u200bwidth, e\u0301, \ufe0f, \u3164, \u2800": "zero\\u200bwidth, e\\u0301, \\ufe0f, \\u3164, \\u2800",
        "日本語 é — plain": "日本語 é — plain",
    }
    state = told(review_of(wary), Answer(1, Review(tuple(f"  arg      {each}" for each in args), "s")))
    assert dialog_lines(state) == tuple(f"  arg      {each}" for each in args.values())
    assert all(map(str.isprintable, dialog_lines(state)))


def test_a_review_cuts_nothing(wary: Stage) -> None:
    text = "  arg      " + "x " * 60_000 + "END"
    state = told(review_of(wary), Answer(1, Review((text,), "seal")), Resized(20, 40))
    lines = dialog_lines(state)
    assert max(map(len, lines)) == 40
    assert all(line.startswith("↳ ") for line in lines[1:])
    assert lines[0] + "".join(line.removeprefix("↳ ") for line in lines[1:]) == text


@pytest.mark.parametrize("key", ["esc", "q", "n"])
def test_a_review_that_is_closed_approves_nothing(wary: Stage, key: str) -> None:
    state = told(review_of(wary), Answer(1, REVIEW))
    state, operations = press(state, key, "y", "n")
    assert (state.dialog, operations) == (None, [])


def test_a_review_that_is_being_read_is_not_replaced_by_another(wary: Stage) -> None:
    state, _ = press(review_of(wary), "esc", "t")
    state = told(state, Answer(1, REVIEW), Answer(2, Review(("something else",), "seal-2")))
    assert dialog_lines(state) == REVIEW.lines
    assert press(read(state), "y")[1] == [Trust(3, "evil", "seal-1")]


def test_a_review_of_another_server_is_not_shown(wary: Stage) -> None:
    wary.edit(AddServer(entry("evil2", trusted=False)))
    state, _ = press(opened(wary), "t", "esc", "G", "t")
    assert state.dialog == TrustReview("evil2")
    assert told(state, Answer(1, REVIEW)).dialog == TrustReview("evil2")


def test_an_approval_that_is_refused_says_why(wary: Stage) -> None:
    state, (trust,) = press(read(told(review_of(wary), Answer(1, REVIEW))), "y")
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


def test_y_is_hinted_at_where_there_is_something_to_approve(wary: Stage) -> None:
    state = review_of(wary)
    assert ("y", "approve") not in key_hints(state)
    assert ("y", "approve") not in key_hints(told(state, Failed(1, "it cannot be read")))
    there = told(state, Answer(1, REVIEW))
    assert ("y", "approve") not in key_hints(there), "nothing of it was on the screen yet"
    assert ("y", "approve") in key_hints(told(there, Shown(0, len(dialog_lines(there)))))
