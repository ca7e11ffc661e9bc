"""The terminal that the pictures are taken of: what a program writes is read back in its colours, and waits end."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import pytest
from rich.style import Style
from rich.text import Text
from tools.picture import Screen
from tools.terminal import Terminal


def program(code: str) -> Sequence[str]:
    return [sys.executable, "-ISc", code]


def shown(code: str) -> tuple[int, Screen]:
    """What a program has on a terminal of 20 × 3 when it ends, and its exit code."""
    env = {"PATH": os.defpath, "PYTHONUTF8": "1", "LANG": "C.UTF-8"}
    with Terminal(program(code), columns=20, rows=3, env=env) as terminal:
        return terminal.finish(), terminal.screen()


def coloured(line: Text) -> list[tuple[str, str | None]]:
    """The pieces of a line with the names of their colours."""
    found = []
    for span in line.spans:
        assert isinstance(span.style, Style)
        colour = span.style.color
        found.append((line.plain[span.start : span.end], None if colour is None else colour.name))
    return found


def test_each_kind_of_colour_is_read_as_it_is_written() -> None:
    code = r"print('\x1b[33ma\x1b[93mb\x1b[32mc\x1b[92md\x1b[38;2;1;2;3me\x1b[0mf\x1b[2mg\x1b[0m', end='')"
    exit_code, screen = shown(code)
    assert exit_code == 0
    pieces = coloured(screen[0])
    assert pieces[:5] == [
        ("a", "yellow"), ("b", "bright_yellow"), ("c", "green"), ("d", "bright_green"), ("e", "#010203"),
    ]  # fmt: skip
    plain, faint = pieces[5], pieces[6]
    assert plain == ("f", None)
    assert faint[0] == "g"
    assert faint[1] is not None, "faint text is another grey"


def test_a_character_of_two_columns_is_one_character() -> None:
    exit_code, screen = shown("print('日本x', end=''); raise SystemExit(3)")
    assert exit_code == 3
    assert screen[0].plain.rstrip() == "日本x"
    assert [line.cell_len for line in screen] == [20, 20, 20]


def test_what_is_typed_reaches_the_program_and_what_never_appears_is_told_with_the_screen() -> None:
    code = "print('ready'); print('heard', input())"
    with Terminal(program(code), columns=20, rows=4, env={"PATH": os.defpath}) as terminal:
        terminal.wait_for(lambda text: "ready" in text, "the program")
        terminal.press("word\n")
        terminal.wait_for(lambda text: "heard word" in text, "what was typed")
        assert terminal.finish() == 0
        with pytest.raises(TimeoutError, match=r"(?s)a wonder did not appear.*heard word"):
            terminal.wait_for(lambda text: "a wonder" in text, "a wonder")


def test_a_program_that_is_left_is_ended() -> None:
    with Terminal(program("print('ready'); input()"), columns=20, rows=3, env={"PATH": os.defpath}) as terminal:
        terminal.wait_for(lambda text: "ready" in text, "the program")
        process = terminal._process
    assert process.returncode is not None


def test_a_program_that_does_not_want_to_end_is_killed(monkeypatch: pytest.MonkeyPatch) -> None:
    code = "import signal; signal.signal(signal.SIGTERM, signal.SIG_IGN); print('ready'); input(); input()"
    with Terminal(program(code), columns=20, rows=3, env={"PATH": os.defpath}) as terminal:
        terminal.wait_for(lambda text: "ready" in text, "the program")
        process = terminal._process
        wait = process.wait
        monkeypatch.setattr(process, "wait", lambda seconds=None: wait(None if seconds is None else 0.1))
    assert process.returncode == -9
