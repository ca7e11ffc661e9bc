"""What a terminal can show, the names of what is drawn, and the lines around the list."""

from __future__ import annotations

from typing import Any, get_args

import pytest
import trio
import trio.testing
import urwid
from attrs import evolve
from playbill.actors.model.snapshot import Phase, ServerState
from playbill.actors.picker.boxes import bottom, dialog_box
from playbill.actors.picker.paint import Brush, Line
from playbill.actors.picker.palette import ASCII, PALETTE, UNICODE
from playbill.actors.picker.state import State, say, start
from playbill.actors.picker.terminal import colours, speaks_unicode
from playbill.actors.picker.values import AddForm, Answer, TextLine
from playbill.actors.picker.view import Picker

from .scripted import ScriptedHost, server, snapshot, tool


@pytest.fixture(autouse=True)
def unicode() -> None:
    """As on a terminal of UTF-8."""
    urwid.set_encoding("utf-8")


@pytest.mark.parametrize(
    ("environ", "count"),
    [
        ({}, 1),
        ({"TERM": "dumb"}, 1),
        ({"TERM": "dumb", "COLORTERM": "truecolor"}, 1),
        ({"TERM": "xterm"}, 16),
        ({"TERM": "xterm", "COLORTERM": "truecolor"}, 256),
        ({"TERM": "screen-256color"}, 256),
        ({"TERM": "xterm-kitty"}, 256),
        ({"TERM": "xterm-256color", "NO_COLOR": "1"}, 1),
        ({"TERM": "xterm-256color", "NO_COLOR": "0"}, 1),
        ({"TERM": "xterm-256color", "NO_COLOR": ""}, 256),
    ],
)
def test_colours_are_as_many_as_the_environment_tells(environ: dict[str, str], count: int) -> None:
    assert colours(environ) == count


@pytest.mark.parametrize(
    ("environ", "encoding", "speaks"),
    [
        ({}, "utf-8", True),
        ({}, "UTF8", True),
        ({}, "ascii", False),
        ({}, None, False),
        ({"LANG": "C"}, "utf-8", False),
        ({"LANG": "de_DE.UTF-8"}, "utf-8", True),
        ({"LANG": "de_DE.UTF-8", "LC_CTYPE": "C"}, "utf-8", False),
        ({"LANG": "C", "LC_CTYPE": "C.utf8"}, "utf-8", True),
        ({"LANG": "C", "LC_CTYPE": "C", "LC_ALL": "C.UTF-8"}, "utf-8", True),
        ({"LANG": "de_DE.UTF-8", "LC_ALL": "POSIX"}, "utf-8", False),
        ({"LANG": "de_DE.UTF-8", "LC_ALL": ""}, "utf-8", True),
        ({"LANG": "de_DE.UTF-8"}, "latin-1", False),
    ],
)
def test_unicode_is_drawn_where_locale_and_encoding_have_it(
    environ: dict[str, str], encoding: str | None, speaks: bool
) -> None:
    assert speaks_unicode(environ, encoding) is speaks


def test_in_ascii_our_own_signs_are_the_like_and_all_others_a_question_mark() -> None:
    assert Brush(ASCII, 80).plain("a — b – c… d · e × f ’g“h” → ü") == 'a - b - c... d | e x f \'g"h" -> ?'
    assert Brush(UNICODE, 80).plain("a — ü\x1b[2J") == "a — ü [2J"


def every_phase() -> list[ServerState]:
    tools = (
        tool("on", pinned=True),
        tool("off", enabled=False, verdict="excluded", reason="r"),
        tool("over", verdict="over_budget", reason="r"),
        tool("down", verdict="server_down", reason="r"),
        tool("held", verdict="quarantined", reason="r"),
    )
    return [server(phase, *tools, phase=phase, error="e" if phase == "parked" else None) for phase in get_args(Phase)]


def test_each_phase_has_a_glyph_of_one_column_with_and_without_unicode() -> None:
    for glyphs in (UNICODE, ASCII):
        assert set(glyphs.phases) == set(get_args(Phase))
        assert all(urwid.calc_width(each, 0, len(each)) == 1 for each in (*glyphs.phases.values(), glyphs.pin))
    assert all(each.isascii() for each in (*ASCII.phases.values(), ASCII.pin, ASCII.more, ASCII.dot, ASCII.rule))


def test_everything_that_is_drawn_has_a_look() -> None:
    named = {entry[0] for entry in PALETTE}
    picker = a_picker(*every_phase(), config_error="wrong", config_warnings=("odd",))
    drawn: set[Any] = set()
    for keys in (
        (),
        (" ",),
        ("esc", "j", " ", "p"),
        ("?",),
        ("esc", "a", "x"),
        ("esc", "i"),
        ("esc", "/", "o"),
        ("enter", "d"),
    ):
        for key in keys:
            picker.keypress((100, 60), key)
        for row in picker.render((100, 60), focus=True).content():
            drawn |= {attribute for attribute, _, _ in row}
    assert drawn - {None} <= named
    assert {"playbill caret", "playbill cursor", "playbill pending", "playbill ask", "playbill error"} <= drawn


def test_the_looks_are_ones_that_urwid_can_draw() -> None:
    for entry in PALETTE:
        for count in (1, 16, 256):
            text, ground = {1: (entry[3], ""), 16: (entry[1], entry[2]), 256: (entry[4], entry[5])}[count]
            urwid.AttrSpec(text, ground or "default", 256 if count == 256 else 16)


def a_picker(*servers: ServerState, **more: Any) -> Picker:
    return Picker(ScriptedHost(snapshot(*servers, **more)), clock=lambda: 100.0)


# Around the list.


def text_of(line: Line) -> str:
    return "".join(text for _, text in line).rstrip()


def a_state(**more: Any) -> State:
    return evolve(start(snapshot(*every_phase()), 100.0), **more)


def test_a_long_message_is_wrapped_and_not_cut() -> None:
    said = "the file cannot be written: there is no room left on the device that it is on"
    *lines, keys = bottom(say(a_state(), said, "error"), Brush(UNICODE, 40))
    assert len(lines) > 1
    assert " ".join(text_of(line).strip() for line in lines) == said
    assert len(bottom(say(a_state(), said * 40, "error"), Brush(UNICODE, 40))) == 5, "the list keeps most of the screen"
    assert text_of(keys)


@pytest.mark.parametrize(
    ("bare", "why"),
    [("off", "not on the wire"), ("over", "not on the wire"), ("down", "not on the wire"), ("held", "quarantined")],
)
def test_why_a_tool_is_not_on_the_wire_is_said_below_the_list_when_the_cursor_is_on_it(bare: str, why: str) -> None:
    said, _ = bottom(a_state(cursor=("tool", "ready", bare)), Brush(UNICODE, 100))
    assert why in text_of(said)
    said, _ = bottom(a_state(cursor=("tool", "ready", "on")), Brush(UNICODE, 100))
    assert text_of(said) == ""


def test_the_end_of_a_long_text_that_is_typed_is_in_sight_and_so_is_its_caret() -> None:
    typed = TextLine("beginning " + "x" * 60 + " end", len("beginning " + "x" * 60 + " end"))
    lines = dialog_box(a_state(dialog=AddForm(what=typed, field=1)), Brush(UNICODE, 40), 8)
    assert text_of(lines[2]).endswith("x end")
    assert "beginning" not in text_of(lines[2])
    assert sum(kind == "playbill caret" for kind, _ in lines[2]) == 1
    at_home = dialog_box(a_state(dialog=AddForm(what=evolve(typed, caret=0), field=1)), Brush(UNICODE, 40), 8)
    assert ("playbill caret", "b") in at_home[2]


def seen(picker: Picker, columns: int = 40, height: int = 12) -> list[str]:
    return [line.decode().rstrip() for line in picker.render((columns, height), focus=True).text]


def test_a_log_shows_its_end_until_it_is_scrolled_and_its_last_line_stays_the_last() -> None:
    picker = a_picker(server("a", tool("x")))
    seen(picker)
    picker.keypress((40, 12), "l")
    (fetch,) = picker.state.flights
    picker.tell(Answer(fetch.id, "\n".join(f"line {number}" for number in range(50))))
    below = next(at for at, line in enumerate(seen(picker)) if line == "line 49")
    for keys, first in ((("home",), "line 0"), (("down",) * 7, "line 7")):
        for key in keys:
            picker.keypress((40, 12), key)
        assert seen(picker)[1] == first
    for _ in range(60):
        picker.keypress((40, 12), "down")
        seen(picker)
    shown = seen(picker)
    assert shown[below] == "line 49"
    assert all(shown[1 : below + 1]), "no line is empty while there is something to show"
    picker.keypress((40, 12), "end")
    assert seen(picker)[below] == "line 49"


def test_details_begin_at_their_beginning_and_long_lines_are_wrapped() -> None:
    picker = a_picker(*every_phase())
    for key in ("/", *"over", "enter", "down"):
        seen(picker, 30)
        picker.keypress((30, 12), key)
    picker.keypress((30, 12), "i")
    shown = seen(picker, 30)
    assert shown[1].startswith("tool 'over' of server")
    assert "not on the wire" in " ".join(shown[1:5])


# The widget's own.


def test_the_wheel_moves_the_cursor_and_other_buttons_are_not_ours() -> None:
    picker = a_picker(server("a", tool("x"), tool("y")))
    assert picker.mouse_event((80, 20), "mouse press", 5, 3, 3, True)
    assert picker.state.cursor == ("tool", "a", "x")
    assert picker.mouse_event((80, 20), "mouse press", 4, 3, 3, True)
    assert picker.state.cursor == ("server", "a")
    assert not picker.mouse_event((80, 20), "mouse press", 1, 3, 3, True)
    assert not picker.mouse_event((80, 20), "mouse release", 5, 3, 3, True)
    assert picker.state.cursor == ("server", "a")


@pytest.mark.parametrize("opens", ["/", "a"])
def test_every_key_is_its_own_while_something_is_typed(opens: str) -> None:
    picker = a_picker(server("a", tool("x")))
    assert picker.keypress((80, 20), "f5") == "f5"
    picker.keypress((80, 20), opens)
    assert picker.keypress((80, 20), "f5") is None
    assert picker.keypress((80, 20), "z") is None
    assert "z" in (picker.state.filter.text, getattr(picker.state.dialog, "name", TextLine()).text)


def test_many_notices_leave_room_for_the_list() -> None:
    picker = a_picker(server("a", tool("x")), config_warnings=("w" * 300,) * 9)
    lines = [line.decode() for line in picker.render((60, 12), focus=True).text]
    assert any("[x]  x" in line for line in lines)


# Rows.


def drawn(*servers: ServerState, columns: int = 120) -> list[str]:
    return [line.decode().rstrip() for line in a_picker(*servers).render((columns, 20), focus=True).text]


def test_where_there_is_room_a_tools_row_says_why_it_is_not_on_the_wire_in_whole() -> None:
    why = "behind 40 others, of which 39 are pinned"
    row = drawn(server("a", tool("x", verdict="over_budget", reason=why, description="D" * 300)))[2]
    assert why in row
    assert "DDDD…" in row
    assert why not in drawn(server("a", tool("x", verdict="over_budget", reason=why)), columns=80)[2]
    assert "over budget" in drawn(server("a", tool("x", verdict="over_budget", reason=why)), columns=80)[2]


def test_what_is_wrong_with_a_server_stands_below_its_name_even_where_it_is_narrow() -> None:
    for columns in (120, 40):
        lines = drawn(server("a", phase="parked", error="exit 1: no file"), columns=columns)
        assert "a" in lines[1]
        assert any("exit 1: no file" in line for line in lines[2:5])


def test_a_pinned_tool_has_its_mark_and_no_other_has() -> None:
    lines = drawn(server("a", tool("x", pinned=True), tool("y")))
    assert (UNICODE.pin in lines[2], UNICODE.pin in lines[3]) == (True, False)


@pytest.mark.parametrize(
    "text", ["日本語の長い文章" * 4, "  " + "wort " * 20, "x" * 45, "e\u0301" * 30, "   👩‍👩‍👧 " * 7]
)
@pytest.mark.parametrize("columns", [3, 10, 17])
def test_wrapped_text_fits_by_columns_and_loses_nothing(text: str, columns: int) -> None:
    lines = Brush(UNICODE, columns).wrapped(text)
    assert all(urwid.calc_width(line, 0, len(line)) <= columns for line in lines)
    assert "".join("".join(lines).split()) == "".join(Brush(UNICODE, columns).plain(text).split())


async def test_a_near_retry_counts_down_beside_a_far_one(autojump_clock: trio.testing.MockClock) -> None:
    far = server("far", phase="parked", next_retry_at=1_000.0)
    near = server("near", phase="backing_off", connected=False, next_retry_at=12.0)
    picker = Picker(ScriptedHost(snapshot(near, far)))
    async with trio.open_nursery() as nursery:
        nursery.start_soon(picker.run)
        with trio.fail_after(12):
            while not any(b"retry in 3 s" in line for line in picker.render((80, 20), focus=True).text):
                await trio.sleep(0.25)
        nursery.cancel_scope.cancel()
