"""What others say is one bounded line wherever a line is promised, whatever they are called and whatever they say."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from hypothesis import given
from hypothesis import strategies as st
from playbill.actors.model.budget import Budget
from playbill.actors.model.config import Config, ConfigState, ServerEntry
from playbill.actors.model.errors import (
    CallTimeout,
    PlaybillError,
    ServerDied,
    ServerExists,
    ServerUnavailable,
    ToolNotOffered,
    UnknownServer,
    UnknownTool,
)
from playbill.actors.model.plain import flat, label, line, quoted, short
from playbill.actors.model.projection import project
from playbill.actors.model.snapshot import PluginModel
from playbill.actors.model.status import Lifecycle, Report, ServerStatus, ToolDef

EVIL = "a\x1b[2J\nb\u202e\ud800"
HUGE = "x" * 5_000
ANY = st.text(st.characters()) | st.sampled_from(["", " ", "\n", EVIL, HUGE, EVIL * 2_000, "\x1b" * 300])


@given(ANY)
@pytest.mark.parametrize(("made", "most"), [(quoted, 1_100), (flat, 400), (label, 1_100), (line, 4_000)])
def test_whatever_it_is_it_is_one_bounded_line(made: Callable[[str], str], most: int, text: str) -> None:
    told = made(text)
    assert told.isprintable()
    assert len(told) <= most


@given(ANY)
def test_a_name_is_always_seen(name: str) -> None:
    assert label(name).strip()


def test_what_is_plain_already_stays_as_it_is() -> None:
    assert (quoted("git"), label("my notes"), flat("exit 1")) == ("'git'", "my notes", "exit 1")
    assert line("tool 'a  b' is excluded") == "tool 'a  b' is excluded"


def test_what_is_cut_says_so() -> None:
    assert (short("abcdef", 4), short("abcd", 4)) == ("abc…", "abcd")
    assert quoted(HUGE) == f"'{'x' * 99}…'"
    assert flat(HUGE).endswith("x…")
    assert flat("a\n\n b\x1bc") == "a b c"


ERRORS: list[Callable[[str], PlaybillError]] = [
    lambda text: UnknownServer(text, text),
    lambda text: ServerExists(text),
    lambda text: UnknownTool(text, text, server=text),
    lambda text: UnknownTool(text),
    lambda text: ToolNotOffered(text, text),
    lambda text: ServerUnavailable(text, text),
    lambda text: ServerDied(text, text),
    lambda text: CallTimeout(text, 3),
]


@pytest.mark.parametrize("made", ERRORS)
@pytest.mark.parametrize("text", [EVIL, HUGE, "", "\n"])
def test_every_error_is_one_printable_line_and_keeps_the_name_whole(
    made: Callable[[str], PlaybillError], text: str
) -> None:
    error = made(text)
    assert str(error).isprintable()
    assert len(str(error)) < 4_500
    assert vars(error)["name"] == text
    assert vars(error).get("reason", text) == text


def test_a_name_in_an_error_is_cut_and_a_reason_stays_as_it_was_worded() -> None:
    assert str(UnknownTool(HUGE)) == f"no tool is named '{'x' * 99}…'"
    said = "the tool 'a  b' is over the budget; " * 20
    assert str(ToolNotOffered("a", said)) == f"tool 'a' is not offered: {said}"


def over(*names: str) -> PluginModel:
    status = ServerStatus(
        lifecycle=Lifecycle(stage="running", generation=1),
        report=Report(generation=1, connected=True),
        tools=(ToolDef("t", description="d", input_schema={"type": "object", "properties": {}}),),
    )
    entries = [ServerEntry(name, command="run") for name in names]
    return project(ConfigState(1, Config(entries)), dict.fromkeys(names, status), (), Budget(0)).model


def test_the_largest_servers_are_told_in_one_line_whatever_they_are_called() -> None:
    model = over(EVIL, HUGE, "")
    assert model.largest() == ((EVIL, 1), (HUGE, 1), ("", 1))
    assert model.budget_details() == f"mostly from a [2J b (1), {'x' * 99}… (1), '' (1)"
