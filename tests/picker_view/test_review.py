"""The review before trust, as it is drawn: what is approved has been on the screen, all of it, on whatever screen it was."""

from __future__ import annotations

from collections.abc import Sequence

import pytest
import urwid
from hypothesis import given, settings
from hypothesis import strategies as st
from playbill.actors.picker.values import Answer, FetchReview, Key, Review, Trust, TrustReview
from playbill.actors.picker.view import Picker

from .scripted import ScriptedHost, server, snapshot

MARK = "↳ "


@pytest.fixture(autouse=True)
def unicode() -> None:
    """As on a terminal of UTF-8."""
    urwid.set_encoding("utf-8")


def reviewing(*lines: str, ascii: bool = False) -> Picker:
    """A picker that shows what a server would run."""
    waits = server("evil", phase="untrusted", connected=False, list_state="none", command="x")
    picker = Picker(ScriptedHost(snapshot(waits)), ascii=ascii, clock=lambda: 100.0)
    picker.tell(Key("t"))
    [fetch] = picker.state.flights
    assert isinstance(fetch, FetchReview)
    picker.tell(Answer(fetch.id, Review(("server evil would run:", *lines), "seal")))
    return picker


def drawn(picker: Picker, columns: int, rows: int) -> list[str]:
    """The lines of the text, as they are drawn: without title, status and keys."""
    lines = [line.decode() for line in picker.render((columns, rows), focus=True).text]
    return lines[1 : 1 + max(0, picker.state.page)]


def status(picker: Picker, columns: int, rows: int) -> str:
    """What is said at the bottom, in one line."""
    lines = [line.decode().strip() for line in picker.render((columns, rows), focus=True).text]
    return " ".join(lines[-4:-1])


def approved(picker: Picker) -> bool:
    """Whether it asked the host for it."""
    return any(isinstance(each, Trust) for each in picker.state.flights)


def text_of(lines: Sequence[str]) -> str:
    """Lines of a review, put together again."""
    return "".join(line.removeprefix(MARK) if line.startswith(MARK) else f"\n{line}" for line in lines)


def walk(picker: Picker, key: str, columns: int, rows: int) -> list[list[str]]:
    """Every screen on the way to the end, by one key."""
    screens = [drawn(picker, columns, rows)]
    while True:
        picker.keypress((columns, rows), key)
        screens.append(drawn(picker, columns, rows))
        if screens[-1] == screens[-2]:
            return screens
        picker.keypress((columns, rows), "enter")  # what closes other texts does nothing here
        assert isinstance(picker.state.dialog, TrustReview)


@pytest.mark.parametrize("key", [" ", "page down", "down"])
@pytest.mark.parametrize("size", [(80, 24), (40, 20), (20, 6)])
def test_the_inside_of_a_long_argument_is_on_the_screen_before_it_is_approved(key: str, size: tuple[int, int]) -> None:
    filler = "".join(f"{number:04} " for number in range(2_000))
    text = f"  arg      {filler[:2_400]}EVIL_MIDDLE{filler[2_400:]}EVIL_END"
    picker = reviewing("  command  sh", "  arg      -c", text)
    picker.keypress(size, "y")
    assert not approved(picker)
    screens = walk(picker, key, *size)
    seen = [text_of(screen) for screen in screens]
    assert any("EVIL_MIDDLE" in each for each in seen)
    assert "EVIL_END" in seen[-1]
    picker.keypress(size, "enter")
    assert not approved(picker)
    picker.keypress(size, "y")
    assert approved(picker)


def test_the_end_alone_is_not_enough_and_what_is_missing_is_said() -> None:
    picker = reviewing("  command  sh", *(f"  arg      {number}" for number in range(100)))
    drawn(picker, 40, 20)
    picker.keypress((40, 20), "end")
    assert "99" in text_of(drawn(picker, 40, 20))
    assert "68 of 102 lines not seen yet: space" in status(picker, 40, 20)
    picker.keypress((40, 20), "y")
    assert not approved(picker)
    said = status(picker, 40, 20)
    assert "not approved: 68 lines of it not seen yet, from" in said
    assert "line 18 on; space goes on" in said
    # From the end back is a way too.
    for _ in range(5):
        picker.keypress((40, 20), "page up")
        drawn(picker, 40, 20)
    assert "all of it was shown: y approves it" in status(picker, 40, 20)
    picker.keypress((40, 20), "y")
    assert approved(picker)


def test_of_forty_arguments_none_is_skipped_by_paging_on_a_narrow_screen() -> None:
    picker = reviewing(*(f"  arg      {number:03} " + "q" * 100 for number in range(40)))
    seen = "\n".join(text_of(screen) for screen in walk(picker, " ", 40, 20))
    assert [number for number in range(40) if f"{number:03} {'q' * 100}"[:20] not in seen] == []
    picker.keypress((40, 20), "y")
    assert approved(picker)


def test_keys_that_come_faster_than_the_screen_is_drawn_show_nothing() -> None:
    picker = reviewing(*(f"  arg      {number}" for number in range(100)))
    drawn(picker, 80, 24)
    for key in (*([" "] * 9), "y"):
        picker.keypress((80, 24), key)
    assert not approved(picker)
    drawn(picker, 80, 24)
    picker.keypress((80, 24), "y")
    assert not approved(picker), "the pages between were never drawn"


def test_nothing_is_shown_where_there_is_no_room() -> None:
    picker = reviewing("  command  sh")
    for rows in (1, 2):
        drawn(picker, 80, rows)
        picker.keypress((80, rows), "y")
        assert not approved(picker)
    drawn(picker, 80, 5)
    picker.keypress((80, 5), "y")
    assert approved(picker)


def test_blanks_are_where_they_are() -> None:
    arg = "  arg      a  b" + " " * 90 + "EVIL   " + " " * 39 + "end"
    picker = reviewing(arg)
    screens = drawn(picker, 40, 20)
    assert [line for line in screens if line.strip()] == [
        "server evil would run:".ljust(40),
        arg[:40],
        f"{MARK}{arg[40:78]}",
        f"{MARK}{arg[78:116]}",
        f"{MARK}{arg[116:]}".ljust(40),
    ]


def test_no_argument_can_look_like_another_line() -> None:
    """What goes on has its mark in the first column, where nothing that a server says can be."""
    forged = "  arg      " + "x" * 27 + "  arg      --harmless" + " " * 20 + "server evil would run:"
    lines = drawn(reviewing(forged, f"  arg      {MARK}"), 40, 20)
    assert [line[:2] for line in lines if line.strip()] == ["se", "  ", MARK, MARK, "  "]


@pytest.mark.parametrize("ascii", [False, True])
def test_what_a_terminal_would_obey_or_hide_is_spelled(ascii: bool) -> None:
    hostile = "\x1b[2J\x1b]0;t\x07|\r\n|\u202e|\u200b|a\u0301|\ufe0f|\u3164|\u2800|\x9b1m|\U000e0041"
    picker = reviewing(f"  arg      {hostile}", ascii=ascii)
    [_, shown, *rest] = [line.rstrip() for line in drawn(picker, 200, 10)]
    assert shown == "  arg      " + hostile.encode("unicode_escape").decode()
    assert not any(rest)


def test_on_a_terminal_of_ascii_no_two_arguments_look_the_same() -> None:
    lines = drawn(reviewing("  arg      é…—", "  arg      ü", "  arg      ?", ascii=True), 60, 10)
    assert [line.split() for line in lines[1:4]] == [["arg", r"\xe9\u2026\u2014"], ["arg", r"\xfc"], ["arg", "?"]]
    long = drawn(reviewing("  arg      " + "x" * 100, ascii=True), 60, 10)
    assert [line[:2] for line in long if line.strip()] == ["se", "  ", "> "]


def test_a_resize_in_the_middle_skips_nothing() -> None:
    every = [chr(0x4E00 + number) for number in range(3_000)]
    picker = reviewing("  arg      " + "".join(every))
    seen = "".join(drawn(picker, 80, 10))
    for turn in range(400):
        size = [(80, 10), (40, 12), (200, 8), (21, 10)][turn % 4]
        seen += "".join(drawn(picker, *size))
        picker.keypress(size, " ")
        seen += "".join(drawn(picker, *size))
        picker.keypress(size, "y")
        if approved(picker):
            break
    assert approved(picker)
    assert set(every) <= set(seen)


@settings(max_examples=60, deadline=None)
@given(
    count=st.integers(0, 400),
    plain=st.integers(0, 300),
    steps=st.lists(
        st.one_of(
            st.sampled_from(["y", " ", " ", "down", "up", "page up", "end", "home", "enter"]),
            st.tuples(st.integers(1, 90), st.integers(1, 24)),
        ),
        max_size=40,
    ),
)
def test_whatever_is_pressed_what_is_approved_was_drawn(
    count: int, plain: int, steps: list[str | tuple[int, int]]
) -> None:
    every = [chr(0x4E00 + number) for number in range(count)]
    picker = reviewing("  arg      " + "x" * plain, "  arg      " + "".join(every))
    size = (40, 12)
    seen = ""
    for step in (*steps, (40, 12), *([" ", (40, 12)] * 60), "y"):
        if isinstance(step, tuple):
            size = step
            seen += "".join(drawn(picker, *size))
        elif isinstance(picker.state.dialog, TrustReview):
            picker.keypress(size, step)
        if approved(picker):
            break
    missing = set(every) - set(seen)
    assert not approved(picker) or not missing
