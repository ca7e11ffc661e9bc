"""What rows cost, counted as work and not as time: sentences, rows and sections made."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest
from attrs import evolve
from playbill.actors.model.edits import SetTool
from playbill.actors.picker import rows as rows_module
from playbill.actors.picker import sections as sections_module
from playbill.actors.picker import words
from playbill.actors.picker.reducer import State, reduce, visible
from playbill.actors.picker.values import Key, Resized, Tick

from .stage import Stage, make, opened, press, tools

SERVERS, TOOLS, SCREEN = 100, 100, 40


@pytest.fixture
def work(monkeypatch: pytest.MonkeyPatch) -> Counter[str]:
    """How often something was made."""
    count: Counter[str] = Counter()

    def counted(module: Any, name: str, original: Any) -> None:
        def call(*args: Any, **keys: Any) -> Any:
            count[name] += 1
            return original(*args, **keys)

        monkeypatch.setattr(module, name, call)

    counted(rows_module, "tool_words", words.tool_words)
    counted(rows_module, "description_of", words.description_of)
    counted(rows_module, "state_of", words.state_of)
    counted(sections_module.Section, "_text", sections_module.Section._text)
    return count


@pytest.fixture(scope="module")
def stage() -> Stage:
    """10,000 tools, of which the profile takes 128."""
    made = make({f"s{n:03}": tools(*(f"tool{m:03}" for m in range(TOOLS))) for n in range(SERVERS)})
    assert sum(len(server.tools) for server in made.snapshot.model.servers) == 10_000
    return made


def look(state: State) -> None:
    """Draw a screen around the cursor, as a view does."""
    shown = visible(state)
    at = shown.find(state.cursor)
    assert at is not None
    for place in range(at, min(at + SCREEN, len(shown))):
        shown[place]


def test_a_screen_of_ten_thousand_tools_makes_the_words_of_a_screen(stage: Stage, work: Counter[str]) -> None:
    state = opened(stage)
    look(state)
    assert len(visible(state)) > 10_000
    assert 0 < work["tool_words"] <= SCREEN
    assert work["_text"] == 0


def test_keys_and_ticks_make_no_words_until_somebody_looks(stage: Stage, work: Counter[str]) -> None:
    state = evolve(opened(stage), page=SCREEN)
    for key in ("G", "g", "page down", "j", "k", "tab", "shift tab", "/", "t", "esc"):
        state, _ = press(state, key)
    for now in range(200, 220):
        state, _ = reduce(state, Tick(float(now)))
    state, _ = reduce(state, Resized(SCREEN))
    assert work["tool_words"] == work["description_of"] == work["state_of"] == 0


def test_looking_twice_makes_nothing_twice(stage: Stage, work: Counter[str]) -> None:
    state = opened(stage)
    look(state)
    made = work["tool_words"]
    look(state)
    assert work["tool_words"] == made


def test_a_snapshot_in_which_one_server_changed_costs_that_server(stage: Stage, work: Counter[str]) -> None:
    changed = evolve(stage)
    state, _ = press(opened(changed), "/", *"tool00")
    assert work["_text"] == 10_000
    before = [part.section for part in visible(state)._parts]
    changed.edit(SetTool("s000", "tool003", False))
    state, _ = reduce(state, changed.news())
    after = [part.section for part in visible(state)._parts]
    renewed = [at for at, (old, new) in enumerate(zip(before, after, strict=True)) if old is not new]
    # One tool of the next server took the place on the wire.
    assert renewed == [0, 1]
    # Of the two only the tools whose values changed are looked at again.
    assert work["_text"] == 10_000 + 2


def test_the_texts_that_are_searched_are_kept_over_snapshots_in_which_nobody_searches(
    stage: Stage, work: Counter[str]
) -> None:
    changed = evolve(stage)
    state, _ = press(opened(changed), "/", "x", "esc")
    for number in range(5):
        changed.edit(SetTool("s007", f"tool{number:03}", False))
        state, _ = reduce(state, changed.news())
        look(state)
    work.clear()
    press(state, "/", "y")
    assert 0 < work["_text"] <= 2 * 5


def test_the_memo_does_not_grow(stage: Stage) -> None:
    changed = evolve(stage)
    state = opened(changed)
    for number in range(50):
        changed.edit(SetTool("s007", "tool003", bool(number % 2)))
        state, _ = reduce(state, changed.news())
        state, _ = reduce(state, Key("j"))
        look(state)
    assert len(state.memo._sections) == SERVERS
    assert len(state.memo._last) <= 8


def test_the_same_state_has_the_same_rows(stage: Stage) -> None:
    state = opened(stage)
    assert visible(state) is visible(state)
    assert visible(evolve(state, page=3)) is visible(state)
    assert visible(evolve(state, now=101.0)) is not visible(state)
