"""The generated pages and diagrams are what the code would make of them now, and nothing gets in without a word on it."""

from __future__ import annotations

import inspect
from typing import Annotated

import attrs
import generate
import playbill.actors.server
import pytest
from cyclopts import App, Parameter
from playbill.actors.edge.config import keys
from playbill.actors.model.phase import phase_of
from playbill.supervision.probe import STAGES
from tools import cli_page, config_page
from tools.drawing import draw
from tools.fields import arguments, field_table
from tools.pages import Undocumented, table
from tools.states import child_stages, phases, server_actor


def test_the_pages_and_diagrams_are_current() -> None:
    assert generate.stale() == [], "run python docs/generate.py"


def test_a_stale_page_is_named(tmp_path: object) -> None:
    assert generate.stale(generate.HERE / "nowhere") == list(generate.FILES)


def test_a_field_without_words_is_refused() -> None:
    @attrs.frozen
    class Entry:
        """An entry.

        Args:
            name, kind: both of
                them.
        """

        name: str
        kind: str
        new: int = 0

    assert arguments(Entry) == {"name": "both of them.", "kind": "both of them."}
    with pytest.raises(Undocumented, match=r"Entry\.new"):
        field_table(Entry)


def test_words_without_a_field_are_refused() -> None:
    @attrs.frozen
    class Entry:
        """An entry.

        Args:
            name: its name.
            gone: no more.
        """

        name: str

    with pytest.raises(Undocumented, match=r"Entry\.gone"):
        field_table(Entry)


def test_a_key_without_words_is_refused() -> None:
    @attrs.define
    class Written(keys.Written):
        novelty: bool = False

    with pytest.raises(Undocumented, match="novelty"):
        config_page.key_table(Written, config_page.KEYS, keys._RENAMED)
    with pytest.raises(Undocumented, match="cwd"):
        config_page.key_table(
            keys.Written, {key: words for key, words in config_page.KEYS.items() if key != "cwd"}, keys._RENAMED
        )


def test_the_keys_are_all_that_the_reader_knows() -> None:
    assert set(config_page.KEYS) == keys.ENTRY_KEYS
    assert set(config_page.TOOL_KEYS) == keys.TOOL_KEYS


def test_a_verb_without_an_example_and_an_option_without_help_are_refused() -> None:
    grammar = App(name="playbill")

    @grammar.command
    def bare() -> None:
        """Does something."""

    @grammar.command
    def mute(*, loud: Annotated[bool, Parameter()] = False) -> None:
        """Does something.

        Example: playbill mute
        """

    with pytest.raises(Undocumented, match="bare"):
        cli_page.verb_part("bare", grammar["bare"])
    with pytest.raises(Undocumented, match="--loud"):
        cli_page.verb_part("mute", grammar["mute"])


def test_an_exit_code_without_words_is_refused() -> None:
    with pytest.raises(Undocumented, match="USAGE"):
        cli_page.exit_table({name: words for name, words in cli_page.EXITS.items() if name != "USAGE"})


def test_a_stage_that_has_no_place_in_the_picture_is_refused() -> None:
    with pytest.raises(Undocumented, match="dreaming"):
        child_stages({**STAGES, "dreaming": frozenset({"starting"})})


def test_the_picture_has_every_way_of_the_table() -> None:
    machine = child_stages()
    assert {(edge.source, edge.target) for edge in machine.edges} == {
        (stage, after) for stage, all_after in STAGES.items() for after in all_after
    }
    assert draw(machine).count('class="w"') == len(machine.edges)


def test_a_row_of_the_server_actors_table_is_a_state_of_its_picture() -> None:
    text = inspect.cleandoc(playbill.actors.server.__doc__ or "")
    machine = server_actor(text)
    assert {edge.source for edge in machine.edges} == {"connecting", "listing", "ready", "needs_auth"}
    with pytest.raises(Undocumented, match="on a whim"):
        server_actor(text.replace("on a stop  ", "on a whim  "))
    with pytest.raises(Undocumented, match="listening"):
        server_actor(text.replace("| listing    |", "| listening  |"))


def test_the_table_of_phases_has_every_phase() -> None:
    seen = {phase for *_, phase in phases()}
    assert seen == set(inspect.signature(phase_of, eval_str=True).return_annotation.__args__)


def test_a_bar_in_a_cell_does_not_break_a_table() -> None:
    assert table(("a",), [("x|y",)]).splitlines()[-1] == r"| x\|y |"
