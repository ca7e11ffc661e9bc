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
from playbill.actors.model.config import Config, InputSpec, ServerEntry
from playbill.actors.model.phase import phase_of
from playbill.supervision.probe import STAGES
from tools import cli_page, config_page
from tools.api_page import api_page
from tools.drawing import draw
from tools.fields import arguments, field_table, signature
from tools.pages import Undocumented, table
from tools.states import child_stages, phases, server_actor


def test_the_pages_and_diagrams_are_current() -> None:
    assert generate.stale() == [], "run python docs/generate.py"


def test_a_stale_page_is_named(tmp_path: object) -> None:
    assert generate.stale(generate.HERE / "nowhere") == list(generate.FILES)


def test_a_check_names_what_is_stale_and_fails_and_writes_nothing(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(generate, "FILES", {"nowhere/one.md": lambda: "a page"})
    assert generate.main(["--check"]) == 1
    assert capsys.readouterr().err == "docs/nowhere/one.md is stale: run python docs/generate.py\n"
    assert not (generate.HERE / "nowhere").exists()
    monkeypatch.setattr(generate, "FILES", {})
    assert generate.main(["--check"]) == 0
    assert generate.main(["--chek"]) == 2


@pytest.mark.parametrize("arguments", [[], ["--check"]])
def test_what_has_no_words_fails_with_the_place_to_write_them(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], arguments: list[str]
) -> None:
    def page() -> str:
        raise Undocumented("Entry.new: see KEYS")

    monkeypatch.setattr(generate, "FILES", {"nowhere/one.md": page})
    assert generate.main(arguments) == 1
    assert capsys.readouterr().err == "Entry.new: see KEYS\n"


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


def test_words_for_a_key_or_a_field_that_is_no_more_are_refused() -> None:
    gone = {**config_page.KEYS, "colour": ("command", "A key of before.")}
    with pytest.raises(Undocumented, match="colour: the reader does not know it"):
        config_page.key_table(keys.Written, gone, keys._RENAMED)
    wrong = {**config_page.KEYS, "cwd": ("folder", "The server's folder.")}
    with pytest.raises(Undocumented, match="cwd: ServerEntry has no field folder"):
        config_page.key_table(keys.Written, wrong, keys._RENAMED)


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


def test_words_for_an_exit_code_that_is_no_more_are_refused() -> None:
    with pytest.raises(Undocumented, match="GONE"):
        cli_page.exit_table({**cli_page.EXITS, "GONE": "a code of before"})


def test_a_stage_that_has_no_place_in_the_picture_is_refused() -> None:
    with pytest.raises(Undocumented, match="dreaming"):
        child_stages({**STAGES, "dreaming": frozenset({"starting"})})


def test_a_place_for_a_stage_that_is_no_more_is_refused() -> None:
    with pytest.raises(Undocumented, match=r"'parked' .* is no more in the code"):
        child_stages({stage: after - {"parked"} for stage, after in STAGES.items() if stage != "parked"})


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


def test_each_field_of_an_entry_has_words_of_its_own() -> None:
    for cls in (ServerEntry, Config, InputSpec):
        words = list(arguments(cls).values())
        assert sorted(set(words)) == sorted(words)


def test_the_picker_is_in_the_reference() -> None:
    text = api_page()
    for name in ("picker.Picker", "picker.run_picker", "picker.reduce", "picker.values.Key", "picker.values.ToolRow"):
        assert f"playbill.actors.{name}\n" in text


def test_a_class_is_shown_as_it_would_be_written() -> None:
    @attrs.frozen
    class Entry:
        name: str
        tags: list[str] = attrs.field(factory=list)
        size: int | None = attrs.field(default=None, kw_only=True)
        whole: str = attrs.field(kw_only=True, default=attrs.Factory(lambda self: self.name, takes_self=True))
        memo: int = attrs.field(init=False, default=0)

    assert signature(Entry) == "(name: str, tags: list[str] = [], *, size: int | None = None, whole: str = …)"
    assert signature(dict) is None
