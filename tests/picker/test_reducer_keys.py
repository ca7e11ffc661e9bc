"""What keys do in the list: moving, filtering, and where the cursor goes when its row goes."""

from __future__ import annotations

import pytest
from attrs import evolve
from hypothesis import given
from hypothesis import strategies as st
from playbill.actors.model.config import Config
from playbill.actors.model.edits import RemoveServer
from playbill.actors.model.status import ToolDef
from playbill.actors.picker.dialogs import dialog_lines, key_hints
from playbill.actors.picker.keys import TABLE, binding, mode_of, shown_key
from playbill.actors.picker.reducer import ACTIONS, visible
from playbill.actors.picker.state import State
from playbill.actors.picker.values import EmptyRow, Help, Resized, TextLine, Tick

from .stage import Stage, at, backing_off, entry, identities, listed, make, opened, press, row, told, tools, typed


@pytest.fixture
def stage() -> Stage:
    return make({"git": tools("log", "add"), "web": tools("get", "post"), "db": tools()})


# The table.


def test_the_table_and_the_reducer_name_the_same_actions() -> None:
    assert {each.action for bindings in TABLE.values() for each in bindings} == set(ACTIONS)


@pytest.mark.parametrize("mode", TABLE)
def test_no_key_is_bound_twice(mode: str) -> None:
    keys = [key for each in TABLE[mode] for key in each.keys]  # type: ignore[index]
    assert len(keys) == len(set(keys))


def test_the_keys_that_are_promised_are_bound() -> None:
    for key in ("up", "down", "j", "k", "page up", "page down", "home", "end", " ", "enter"):
        assert binding("list", key) is not None
    for key in "/adrRtlip?q":
        assert binding("list", key) is not None


def test_help_tells_every_key_of_the_table(stage: Stage) -> None:
    state, _ = press(opened(stage), "?")
    assert state.dialog == Help()
    lines = "\n".join(dialog_lines(state))
    for bindings in TABLE.values():
        for each in bindings:
            assert f"{' '.join(map(shown_key, each.keys))} " in lines
            assert each.help in lines


def test_hints_are_of_what_keys_are_for(stage: Stage) -> None:
    state = opened(stage)
    always = (("?", "help"), ("q", "quit"))
    assert key_hints(state)[:4] == (("space", "toggle"), *always, ("d", "remove"))
    on_tool = key_hints(press(state, "down")[0])
    assert on_tool[:5] == (("space", "toggle"), *always, ("i", "details"), ("p", "pin"))
    assert ("d", "remove") not in on_tool
    assert ("t", "trust") not in key_hints(state)
    untrusted = opened(Stage(Config([entry("evil", trusted=False)])))
    assert key_hints(untrusted)[:2] == (("t", "trust"), ("space", "toggle"))
    assert ("R", "restart") not in key_hints(untrusted)
    assert key_hints(opened(Stage()))[:3] == (("a", "add"), *always)
    assert key_hints(press(state, "/")[0]) == (("Enter", "keep"), ("Esc", "clear"))
    assert key_hints(press(state, "a")[0])[0] == ("Enter", "next")
    assert mode_of(None, False) == "list"


@pytest.mark.parametrize(
    ("key", "said"), [(" ", "space"), ("page up", "PageUp"), ("ctrl b", "Ctrl-B"), ("G", "G"), ("up", "Up")]
)
def test_keys_are_told_as_a_person_reads_them(key: str, said: str) -> None:
    assert shown_key(key) == said


def test_a_key_that_is_not_bound_does_nothing(stage: Stage) -> None:
    state = opened(stage)
    for key in ("x", "f5", "ctrl l", "meta a", "", "mouse press", "漢"):
        assert press(state, key) == (state, [])


# Moving.


def test_a_picker_opens_on_the_first_server(stage: Stage) -> None:
    assert opened(stage).cursor == ("server", "git")


@pytest.mark.parametrize(
    ("keys", "cursor"),
    [
        (("down",), ("tool", "git", "log")),
        (("j", "j", "k"), ("tool", "git", "log")),
        (("up",), ("server", "git")),
        (("end",), ("empty", "db")),
        (("G", "down"), ("empty", "db")),
        (("G", "home"), ("server", "git")),
        (("G", "g"), ("server", "git")),
        (("page down",), ("tool", "git", "add")),
        (("page down", "page down", "page up"), ("tool", "git", "add")),
        (("page down",) * 9, ("empty", "db")),
        (("tab",), ("server", "web")),
        (("tab", "tab", "tab"), ("server", "db")),
        (("G", "shift tab"), ("server", "db")),
        (("G", "shift tab", "shift tab"), ("server", "web")),
        (("shift tab",), ("server", "git")),
    ],
)
def test_moving(stage: Stage, keys: tuple[str, ...], cursor: tuple[str, ...]) -> None:
    state = told(opened(stage), Resized(3))
    state, operations = press(state, *keys)
    assert state.cursor == cursor
    assert operations == []


@pytest.mark.parametrize("rows", [-1, 0, 1])
def test_a_page_is_at_least_a_row(stage: Stage, rows: int) -> None:
    state = told(opened(stage), Resized(rows))
    assert state.page == 1
    assert press(state, "page down")[0].cursor == ("tool", "git", "log")


# The filter.


def test_typing_filters_at_once(stage: Stage) -> None:
    state, operations = press(opened(stage), "/", *typed("po"))
    assert identities(state) == [("server", "web"), ("tool", "web", "post")]
    assert (state.editing, state.filter) == (True, TextLine("po", 2))
    assert operations == []


def test_keys_are_text_while_the_filter_is_typed(stage: Stage) -> None:
    state, operations = press(opened(stage), "/", *"qdart ?")
    assert state.filter.text == "qdart ?"
    assert operations == []
    assert state.dialog is None


def test_enter_keeps_the_filter_and_esc_clears_it(stage: Stage) -> None:
    state, _ = press(opened(stage), "/", "g", "e", "enter")
    assert (state.editing, state.filter.text) == (False, "ge")
    assert press(state, "j")[0].filter.text == "ge"
    state, _ = press(state, "esc")
    assert state.filter.text == ""
    assert len(identities(state)) == 8
    state, _ = press(state, "/", "g", "esc")
    assert (state.editing, state.filter.text) == (False, "")


def test_backspace_takes_back_and_then_ends_the_filter(stage: Stage) -> None:
    state, _ = press(opened(stage), "/", "p", "o", "backspace")
    assert state.filter.text == "p"
    state, _ = press(state, "backspace")
    assert (state.editing, state.filter.text) == (True, "")
    assert not press(state, "backspace")[0].editing


def test_the_filter_goes_on_from_what_it_was(stage: Stage) -> None:
    state, _ = press(opened(stage), "/", "g", "enter", "/", "e")
    assert state.filter.text == "ge"


def test_arrows_move_while_the_filter_is_typed(stage: Stage) -> None:
    state, _ = press(opened(stage), "/", "w", "e", "b", "down", "down")
    assert state.cursor == ("tool", "web", "post")
    assert state.editing


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("web", ["get", "post"]),
        ("GET", ["get"]),
        ("fetch it", ["get"]),
        ("it fetch", ["get"]),
        ("SENDS", ["post"]),
        ("second", ["post"]),
        ("mcp__web__po", ["post"]),
        ("web title", ["get"]),
        ("  ", ["log", "get", "post"]),
        ("STRASSE", ["post"]),
    ],
)
def test_the_filter_looks_at_server_name_title_description_and_wire_name(text: str, found: list[str]) -> None:
    defs = [
        ToolDef("get", title="Title: Fetch It", description="one"),
        ToolDef("post", title="Straße", description="sends\nsecond line"),
    ]
    state, _ = press(opened(make({"git": tools("log"), "web": listed(defs)})), "/", *text)
    assert [identity[2] for identity in identities(state) if identity[0] == "tool"] == found


def test_a_server_that_matches_by_its_name_keeps_its_row_that_says_it_has_none(stage: Stage) -> None:
    state, _ = press(opened(stage), "/", "d", "b")
    assert identities(state) == [("server", "db"), ("empty", "db")]


def test_a_filter_that_nothing_matches_says_so(stage: Stage) -> None:
    state, _ = press(opened(stage), "/", *"nothing")
    assert identities(state) == [("no-match",)]
    assert state.cursor == ("no-match",)
    assert row(state, "no-match") == EmptyRow(identity=("no-match",), text="nothing matches the filter — esc clears it")
    for key in (" ", "i", "l", "t", "R", "p", "d", "j", "k", "G", "tab"):
        after, operations = press(press(state, "enter")[0], key)
        assert (after.cursor, operations) == (("no-match",), [])
    assert press(state, "esc")[0].cursor == ("server", "git")


def test_header_and_notices_stay_above_a_filter() -> None:
    state, _ = press(opened(make({"git": tools("log", "add")}, cap=1)), "/", *"xyz")
    assert [visible(state).identity(place) for place in range(len(visible(state)))] == [
        ("header",),
        ("warning", "budget"),
        ("no-match",),
    ]
    assert visible(state)[0].tools == 2  # type: ignore[union-attr]


# Where the cursor goes.


def test_the_cursor_follows_its_row_through_any_change(stage: Stage) -> None:
    state = at(opened(stage), "tool", "web", "post")
    stage.statuses["git"] = tools("log", "add", "push", "pull")
    stage.cap = 1
    stage.config = evolve(stage.config, servers=(entry("first"), *reversed(stage.config.servers)))
    state = told(state, stage.news())
    assert state.cursor == ("tool", "web", "post")
    assert visible(state).find(state.cursor) is not None


def gone(state: State, stage: Stage, *left: str) -> tuple[str, ...]:
    """Where the cursor is when the server web lists only these."""
    stage.statuses["web"] = tools(*left)
    return told(state, stage.news()).cursor


def test_a_row_that_goes_leaves_the_cursor_to_the_nearest_of_its_server() -> None:
    stage = make({"git": tools("log"), "web": tools("a", "b", "c", "d"), "db": tools()})
    state = opened(stage)
    assert gone(at(state, "tool", "web", "b"), stage, "a", "c", "d") == ("tool", "web", "c")
    assert gone(at(state, "tool", "web", "b"), stage, "a", "d") == ("tool", "web", "a")
    assert gone(at(state, "tool", "web", "d"), stage, "a", "b", "c") == ("tool", "web", "c")
    assert gone(at(state, "tool", "web", "d"), stage, "a") == ("tool", "web", "a")
    assert gone(at(state, "tool", "web", "a"), stage) == ("server", "web")
    assert gone(at(state, "tool", "web", "c"), stage) == ("server", "web")


def test_a_server_that_goes_leaves_the_cursor_to_the_nearest_row(stage: Stage) -> None:
    state = opened(stage)
    stage.edit(RemoveServer("web"))
    assert told(at(state, "server", "web"), stage.news()).cursor == ("tool", "git", "add")
    assert told(at(state, "tool", "web", "get"), stage.news()).cursor == ("server", "db")
    assert told(at(state, "tool", "web", "post"), stage.news()).cursor == ("server", "db")
    stage.config = Config()
    state = told(at(state, "tool", "web", "post"), stage.news())
    assert state.cursor == ("no-servers",)
    stage.config = Config([entry("new")])
    assert told(state, stage.news()).cursor == ("server", "new")


def test_a_row_that_is_filtered_away_leaves_the_cursor_to_the_nearest_of_its_server(stage: Stage) -> None:
    state, _ = press(at(opened(stage), "tool", "web", "get"), "/", "p", "o")
    assert identities(state)[-2:] == [("server", "web"), ("tool", "web", "post")]
    assert state.cursor == ("tool", "web", "post")
    state, _ = press(state, *"zz")
    assert state.cursor == ("no-match",)


def test_when_tools_come_the_cursor_goes_from_the_empty_row_to_the_first_of_them(stage: Stage) -> None:
    state = at(opened(stage), "empty", "db")
    stage.statuses["db"] = tools("query", "write")
    assert told(state, stage.news()).cursor == ("tool", "db", "query")


# News and time.


def test_an_older_snapshot_is_ignored(stage: Stage) -> None:
    old = stage.news()
    stage.edit(RemoveServer("web"))
    state = told(opened(stage), old)
    assert state.snapshot.model.server("web") is None


def test_time_only_goes_on(stage: Stage) -> None:
    state = told(opened(stage, 100.0), Tick(101.5))
    assert state.now == 101.5
    assert told(state, Tick(50.0), Tick(float("nan"))).now == 101.5


def test_what_is_shown_goes_on_with_the_time() -> None:
    state = opened(make({"git": backing_off(112.0)}), 100.0)
    assert row(state, "server", "git").state == "retry in 12 s (4th of 5)"
    assert row(told(state, Tick(103.0)), "server", "git").state == "retry in 9 s (4th of 5)"


# A line that is typed.


@given(
    st.lists(
        st.sampled_from(
            ["a", " ", "漢", "backspace", "delete", "left", "right", "home", "end", "ctrl u", "ctrl w", "ctrl a", "f1"]
        )
    )
)
def test_the_caret_stays_in_its_line(keys: list[str]) -> None:
    line = TextLine()
    for key in keys:
        line = line.typed(key) or line
        assert 0 <= line.caret <= len(line.text)


def test_editing_a_line() -> None:
    def after(*keys: str) -> TextLine:
        line = TextLine()
        for key in keys:
            line = line.typed(key) or line
        return line

    assert after(*"ab", "left", "x") == TextLine("axb", 2)
    assert after(*"ab", "left", "backspace") == TextLine("b", 0)
    assert after(*"ab", "home", "delete", "delete", "delete") == TextLine("", 0)
    assert after(*"ab cd ", "ctrl w") == TextLine("ab ", 3)
    assert after(*"ab", "left", "ctrl u") == TextLine("b", 0)
    assert after(*"ab", "home", "end", "c") == TextLine("abc", 3)
    assert after(*"ab", "backspace", "backspace", "backspace") == TextLine("", 0)
    assert len(after(*"x" * 5_000).text) == 4_000
    assert TextLine().typed("f1") is None
    assert TextLine().typed("\x1b") is None
