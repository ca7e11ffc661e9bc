"""What is printed: whole into a pipe, harmless on a terminal."""

from __future__ import annotations

import io
import json
import sys

import pytest
from playbill.actors.cli.render import print_json, print_text

WORDS = "\x1b[2J\x07a\tb\nc\x9b31m\u202e caf\u00e9"


class _Out(io.StringIO):
    encoding = "utf-8"

    def __init__(self, terminal: bool) -> None:
        super().__init__()
        self._terminal = terminal

    def isatty(self) -> bool:
        return self._terminal


@pytest.fixture(params=[True, False], ids=["terminal", "pipe"])
def out(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> _Out:
    out = _Out(request.param)
    monkeypatch.setattr(sys, "stdout", out)
    return out


def harmless(text: str) -> bool:
    return text.replace("\n", "").replace("\t", "").isprintable()


def test_a_tools_text_cannot_drive_a_terminal(out: _Out) -> None:
    print_text(WORDS)
    if out.isatty():
        assert harmless(out.getvalue())
        assert "a\tb\nc" in out.getvalue()
        assert "caf\u00e9" in out.getvalue()
    else:
        assert out.getvalue() == WORDS + "\n"


def test_json_cannot_drive_a_terminal(out: _Out) -> None:
    print_json({"a": WORDS})
    assert json.loads(out.getvalue()) == {"a": WORDS}
    assert harmless(out.getvalue()) == out.isatty()


def test_json_is_readable_where_it_is_harmless(out: _Out) -> None:
    print_json("caf\u00e9")
    assert out.getvalue() == '"caf\u00e9"\n'
