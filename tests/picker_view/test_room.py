"""Where there is little room: words are not cut without a sign, and there is a way to read what is."""

from __future__ import annotations

import re
from typing import Any

import pytest
import urwid
from attrs import evolve
from playbill.actors.model.snapshot import ServerState
from playbill.actors.model.why import why
from playbill.actors.picker.boxes import bottom, head_of
from playbill.actors.picker.dialogs import dialog_lines
from playbill.actors.picker.paint import Brush, Line, shortened
from playbill.actors.picker.palette import UNICODE
from playbill.actors.picker.rows import rows
from playbill.actors.picker.state import say
from playbill.actors.picker.values import AddForm, Answer, EmptyRow, Failed, Key, Row, TextLine, Tick
from playbill.actors.picker.view import Picker

from .scripted import ScriptedHost, server, snapshot, tool

ERROR = (
    "/some/long/path/of/a/person/with/many/folders/mcp.json:10:22: expected a value, found 'oops' and some more words"
)


@pytest.fixture(autouse=True)
def unicode() -> None:
    """As on a terminal of UTF-8."""
    urwid.set_encoding("utf-8")


def a_picker(*servers: ServerState, **more: Any) -> Picker:
    return Picker(ScriptedHost(snapshot(*servers, **more)), clock=lambda: 100.0)


def row_of(server: ServerState) -> Row:
    return rows(snapshot(server), 100.0)[1]


def text_of(line: Line) -> str:
    return "".join(text for _, text in line)


def drawn(picker: Picker, columns: int, rows: int) -> list[str]:
    return [line.decode().rstrip() for line in picker.render((columns, rows), focus=True).text]


def words(lines: list[str]) -> str:
    """What lines say, however they are wrapped at blanks."""
    return " ".join(" ".join(lines).split())


# Notices.


def test_notices_take_the_lines_that_the_list_leaves_empty() -> None:
    picker = a_picker(server("a", tool("x")), config_error=ERROR, wanted=120, trimmed=20)
    lines = drawn(picker, 40, 15)
    said = words(lines)
    assert "120 tools over the budget of 100 — 20 MCP tools were dropped from this session; disable some" in said
    assert "and some more words" in said
    assert "more line" not in said
    assert any("[x]  x" in line for line in lines)
    assert "w shows all" in words(drawn(picker, 40, 12)), "and one line too few is told"


def test_of_notices_without_room_each_has_its_beginning_and_the_rest_is_counted() -> None:
    warnings = ("w1 " * 30, "w2 " * 30)
    picker = a_picker(
        server("a", *(tool(f"tool_{n}") for n in range(40))),
        config_error=ERROR,
        config_warnings=warnings,
        wanted=120,
        trimmed=20,
    )
    lines = drawn(picker, 40, 20)
    head = lines[: next(at for at, line in enumerate(lines) if " a" in line and "[x]" in line)]
    assert len(head) == 6, "a third of what is there"
    assert [line[:9] for line in head] == [
        " 40 of 40",
        " /some/lo",
        " 120 tool",
        " w1 w1 w1",
        " w2 w2 w2",
        head[-1][:9],
    ]
    assert [line.endswith("…") for line in head] == [False, True, True, True, True, False]
    assert re.fullmatch(r" \d+ more lines: w shows all", head[-1])
    # And there they are.
    picker.keypress((40, 20), "w")
    seen = drawn(picker, 40, 40)
    assert "expected a value, found 'oops' and some more words" in words(seen)
    assert words(seen).count("w1") == words(seen).count("w2") == 30
    assert "disable some to make room" in words(seen)


def test_a_head_is_as_high_as_it_may_be_and_no_line_of_it_is_lost() -> None:
    brush = Brush(UNICODE, 40)
    rows = [[[("playbill", f"{row}.{line}")] for line in range(count)] for row, count in enumerate((1, 3, 1, 4))]
    whole = head_of(rows, brush, 9)
    assert [line[0][1] for line in whole] == ["0.0", "1.0", "1.1", "1.2", "2.0", "3.0", "3.1", "3.2", "3.3"]
    for height in range(1, 9):
        head = [line[0][1] for line in head_of(rows, brush, height)]
        assert len(head) == height
        assert head[0] == "0.0"
        if height > 1:
            assert head[-1] == f" {9 - (height - 1)} more lines: w shows all"
    assert [line[0][1] for line in head_of(rows, brush, 7)][1:6] == ["1.0", "1.1", "1.2", "2.0", "3.0…"]


# What is said at the bottom.


def test_a_message_that_is_cut_says_so_and_can_be_read_whole() -> None:
    picker = a_picker(server("a", tool("x")))
    for key in ("down", " "):
        picker.tell(Key(key))
    [toggle] = picker.state.flights
    picker.tell(Failed(toggle.id, " ".join(f"word{number}" for number in range(60))))
    *said, _ = bottom(picker.state, Brush(UNICODE, 40))
    assert len(said) == 4
    assert said[-1][0][1].endswith("…")
    picker.keypress((40, 30), "w")
    assert "What failed last: disable x: word0 word1" in words(drawn(picker, 40, 30))
    assert "word58 word59" in words(drawn(picker, 40, 30))


def test_on_a_low_screen_a_message_leaves_the_list_and_the_keys() -> None:
    picker = a_picker(server("a", tool("x")))
    picker._state = say(picker.state, "word " * 60, "error")
    lines = drawn(picker, 40, 6)
    assert lines[-2].endswith("…")
    assert "space toggle" in lines[-1]
    assert any("[x] a" in line for line in lines)


@pytest.mark.parametrize(("columns", "lines"), [(100, 1), (80, 2), (40, 3)])
def test_why_a_tool_is_not_on_the_wire_is_said_whole_below_the_list(columns: int, lines: int) -> None:
    reason = "excluded by the entry 'a', as its owner said so, and for no other reason at all (mcp.json:3)"
    picker = a_picker(server("a", tool("x", enabled=False, verdict="excluded", reason=reason)))
    picker.keypress((columns, 20), "down")
    *said, _ = bottom(picker.state, Brush(UNICODE, columns))
    assert len(said) <= 3
    told = words([line[0][1] for line in said])
    assert told == f"not on the wire: {reason}" or (told.endswith("…") and len(said) == 3)
    assert "as its owner said so" in told


@pytest.mark.parametrize(
    ("of", "more", "told"),
    [
        ({"mended": ("inputSchema: properties: {} is now there",)}, {}, "mended: inputSchema: properties: {} is now"),
        ({}, {"phase": "starting", "error": "it exited"}, "so a call may fail"),
        ({}, {}, ""),
    ],
    ids=["mended", "server", "nothing"],
)
def test_what_else_there_is_to_say_of_a_tool_on_the_wire_is_said_when_the_cursor_is_on_it(
    of: dict[str, Any], more: dict[str, Any], told: str
) -> None:
    picker = a_picker(server("a", tool("x", **of), **more))
    picker.keypress((100, 20), "down")
    *said, _ = bottom(picker.state, Brush(UNICODE, 100))
    _, _, tail = str(why(picker.state.snapshot, "a", "x", 100.0)).partition("; ")
    assert words([line[0][1] if line else "" for line in said]) == (f"on the wire; {tail}" if told else "")
    assert told in tail


# Servers on a narrow screen.


@pytest.mark.parametrize("columns", [40, 59, 60, 64, 80])
@pytest.mark.parametrize(
    ("more", "said"),
    [
        ({}, "ready · 2 of 2 tools on the wire"),
        (
            {"phase": "backing_off", "next_retry_at": 112.0, "attempt": (4, 5)},
            "retry in 12 s (4th of 5) · 2 of 2 tools",
        ),
        ({"phase": "parked", "next_retry_at": 400.0}, "parked — press R to revive, retry in 5 min · 2 of 2 tools"),
        ({"phase": "untrusted"}, "untrusted — press t to review"),
    ],
    ids=["ready", "backing off", "parked", "untrusted"],
)
def test_the_words_of_a_server_are_never_cut(columns: int, more: dict[str, Any], said: str) -> None:
    name = "a-server-of-a-rather-long-name"
    lines = drawn(a_picker(server(name, tool("x"), tool("y"), **more)), columns, 20)
    assert said in words(lines)
    assert all("…" not in line for line in lines[2:] if line.startswith("      "))


def test_on_a_narrow_screen_the_file_of_a_server_is_beside_its_name() -> None:
    lines = drawn(a_picker(server("files", tool("x"), source="/home/somebody/code/project/mcp.json")), 40, 20)
    assert lines[1].startswith(" ● [x] files  ")
    assert lines[1].endswith("…/code/project/mcp.json")
    # Where there is hardly room it goes, and the name stays.
    lines = drawn(a_picker(server("f" * 14, tool("x"), source="/home/somebody/mcp.json")), 24, 20)
    assert "mcp.json" not in lines[1]


def test_names_that_are_long_are_cut_and_leave_what_is_behind_them_in_its_column() -> None:
    names = ("read", "read_multiple_files_and_folders_at_once_and_whatever_else_there_is")
    for columns in (60, 80, 100, 240):
        lines = drawn(a_picker(server("a", *map(tool, names))), columns, 20)
        assert lines[2].index("Does read") == lines[3].index("Does read")
        assert "…" in lines[3]


def test_what_stands_in_place_of_tools_is_not_cut() -> None:
    row = EmptyRow(identity=("empty", "a"), text="its tools are not known: it is untrusted, and that stays so")
    lines = Brush(UNICODE, 40).row(row)
    assert words(["".join(text for _, text in line) for line in lines]) == row.text


# Dialogs.


def test_how_much_more_a_dialog_says_is_told() -> None:
    picker = a_picker(server("a", tool("x")))
    picker.keypress((80, 20), "?")
    lines = drawn(picker, 80, 20)
    assert lines[-2] == f" {len(dialog_lines(picker.state)) - 17} more lines"
    picker.keypress((80, 20), "end")
    assert drawn(picker, 80, 20)[-2] == ""


def test_a_log_that_is_read_holds_still_and_says_that_there_is_more() -> None:
    picker = a_picker(server("a", tool("x")))
    picker.keypress((80, 12), "l")
    [fetch] = picker.state.flights
    picker.tell(Answer(fetch.id, "\n".join(f"line {number}" for number in range(100))))
    assert "line 99" in drawn(picker, 80, 12)[-3]
    picker.keypress((80, 12), "page up")
    before = drawn(picker, 80, 12)
    picker.tell(Tick(200.0))
    [fetch] = picker.state.flights
    picker.tell(Answer(fetch.id, "\n".join(f"line {number}" for number in range(60, 160))))
    after = drawn(picker, 80, 12)
    assert after[:-2] == before[:-2]
    assert after[-2] == " 8 more lines; it has written more: G shows it"
    picker.keypress((80, 12), "G")
    assert "line 159" in drawn(picker, 80, 12)[-3]


def test_the_help_of_a_narrow_screen_has_what_a_key_does_below_it() -> None:
    picker = a_picker(server("a", tool("x")))
    picker.keypress((40, 20), "?")
    lines = drawn(picker, 40, 20)
    assert lines[1:4] == ["In the list:", "  space Enter", "      turn the tool or the server on or"]


def test_a_screen_of_three_lines_has_one_of_the_list() -> None:
    picker = a_picker(server("a", tool("x")))
    assert "[x] a" in drawn(picker, 60, 3)[1]
    picker.keypress((60, 3), "/")
    assert drawn(picker, 60, 3)[2].startswith("/")


def test_of_a_line_that_is_typed_only_what_is_seen_is_measured(monkeypatch: pytest.MonkeyPatch) -> None:
    measured = 0
    width = Brush.width

    def counted(self: Brush, text: str) -> int:
        nonlocal measured
        measured += len(text)
        return width(self, text)

    monkeypatch.setattr(Brush, "width", counted)
    typed = TextLine("漢" * 4_000, 4_000)
    picker = a_picker(server("a", tool("x")))
    picker._state = evolve(picker.state, dialog=AddForm(what=typed, field=1))
    assert "漢" in words(drawn(picker, 80, 20))
    assert measured < 50_000


# Where an entry is written.


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/home/me/code/app/.mcp.json", ".mcp.json"),
        ("/home/me/.config/playbill/mcp.json", "~/.config/playbill/mcp.json"),
        ("/home/me", "/home/me"),
        ("/home/menno/mcp.json", "/home/menno/mcp.json"),
        ("/etc/mcp.json", "/etc/mcp.json"),
        ("mcp.json", "mcp.json"),
    ],
)
def test_a_file_is_told_as_seen_from_here_or_from_home(path: str, said: str) -> None:
    assert shortened(path, "/home/me/code/app", "/home/me") == said
    assert shortened(path, "", "") == shortened(path, "/", "/") == path


def test_what_is_too_long_for_that_is_cut_at_a_separator() -> None:
    brush = Brush(UNICODE, 80, "/home/me/code", "/home/me")
    row = row_of(server("files", tool("x"), source="/srv/projects/somewhere/config/mcp.json"))
    assert text_of(brush.row(row)[0]).endswith("  …/config/mcp.json")
    row = row_of(server("files", tool("x"), source="/srv/" + "x" * 50 + ".json"))
    assert text_of(brush.row(row)[0]).endswith(f"  …{'x' * 20}.json")
    row = row_of(server("files", tool("x"), source="/home/me/code/sub/mcp.json"))
    assert text_of(brush.row(row)[0]).endswith("  sub/mcp.json")


# Restarts.


def test_a_server_that_was_restarted_says_so_where_there_is_room() -> None:
    again = {"restarts": 2, "restarted_at": 88.0}
    wide = drawn(a_picker(server("files", tool("x"), **again)), 100, 20)
    assert "ready · 1 of 1 tool on the wire · restarted 2 times, last 12 s ago" in wide[1]
    narrow = drawn(a_picker(server("files", tool("x"), **again)), 70, 20)
    assert "ready · 1 of 1 tool on the wire" in narrow[1]
    assert "restarted" not in narrow[1]
    waiting = drawn(
        a_picker(server("files", tool("x"), phase="backing_off", next_retry_at=112.0, attempt=(2, 5), **again)), 100, 20
    )
    assert "restarted" not in waiting[1]
    picker = a_picker(server("files", tool("x"), **again))
    picker.keypress((80, 20), "i")
    assert any(re.match(r"restarts +2 times, last 12 s ago$", line) for line in drawn(picker, 80, 20))


def test_the_time_since_the_last_restart_goes_on() -> None:
    assert a_picker(server("files", tool("x")))._pause() is None
    assert a_picker(server("files", tool("x"), restarts=1, restarted_at=88.0))._pause() == 1
    assert a_picker(server("files", tool("x"), restarts=1, restarted_at=-300.0))._pause() == 15


def test_what_terminals_do_not_agree_about_is_not_drawn() -> None:
    brush = Brush(UNICODE, 40)
    assert brush.plain("x\N{HANGUL FILLER}y\N{ZERO WIDTH JOINER}z") == "x yz"
