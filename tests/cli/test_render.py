"""What is printed: whole into a pipe, harmless on a terminal."""

from __future__ import annotations

import io
import json
import sys
from collections.abc import Callable
from typing import Any

import pytest
from playbill.actors.cli.errors import one_line
from playbill.actors.cli.render import Table, print_json, print_plain, print_text

WORDS = "\x1b[2J\x07a\tb\nc\x9b31m\u202e caf\u00e9"


class _Out(io.StringIO):
    encoding = "utf-8"  # type: ignore[assignment]

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.fixture(params=[True, False], ids=["terminal", "pipe"])
def terminal(request: pytest.FixtureRequest) -> bool:
    return bool(request.param)


def printed(monkeypatch: pytest.MonkeyPatch, terminal: bool, show: Callable[[Any], None], value: Any) -> str:
    out = _Out(terminal)
    with monkeypatch.context() as patch:
        patch.setattr(sys, "stdout", out)
        show(value)
    return out.getvalue()


def harmless(text: str) -> bool:
    return text.replace("\n", "").replace("\t", "").isprintable()


def test_a_tools_text_cannot_drive_a_terminal(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    text = printed(monkeypatch, terminal, print_text, WORDS)
    if terminal:
        assert harmless(text)
        assert "a\tb\nc" in text
        assert "caf\u00e9" in text
    else:
        assert text == WORDS + "\n"


def test_json_cannot_drive_a_terminal(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    text = printed(monkeypatch, terminal, print_json, {"a": WORDS})
    assert json.loads(text) == {"a": WORDS}
    assert harmless(text) == terminal


def test_json_is_readable_where_it_is_harmless(monkeypatch: pytest.MonkeyPatch, terminal: bool) -> None:
    assert printed(monkeypatch, terminal, print_json, "caf\u00e9") == '"caf\u00e9"\n'


def test_in_a_pipe_a_description_is_cut_and_nothing_else_and_no_line_ends_in_blanks() -> None:
    long, name = "word " * 100, "mcp__server__" + "n" * 50
    table = Table(
        ("WIRE NAME", "REASON", "DESCRIPTION", "MENDED"),
        ((name, "r" * 150, long, ""), ("b", "", "文字" * 100, "m"), ("c", "", "", "")),
    )
    out = io.StringIO()
    print_plain(table, out)
    heading, first, second, third = lines = out.getvalue().splitlines()
    assert all(line == line.rstrip() for line in lines)
    assert name in first
    assert "r" * 150 in first
    assert ("word " * 15 + "wo...").strip() in first
    assert long.strip() not in first
    assert "文字" * 30 not in second
    assert second.endswith(("...  m", "...   m"))
    assert third == "c"
    # One long cell makes its own line long, and no other.
    assert len(heading) < 300 > len(second)
    assert len(heading) == heading.index("MENDED") + len("MENDED") < 63 + 2 + 120 + 2 + 80 + 2 + 7


def test_a_line_takes_the_same_columns_on_every_terminal() -> None:
    assert one_line("x\N{HANGUL FILLER}y\N{VARIATION SELECTOR-16}") == "x y"
