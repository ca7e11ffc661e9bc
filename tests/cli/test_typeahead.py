"""Keys that are typed before the screen is there: a real terminal (a pty) in place of stdin."""

from __future__ import annotations

import os
import pty
import select
import sys
import termios
from collections.abc import Iterator

import pytest
from playbill.actors.cli.typeahead import unechoed


@pytest.fixture
def keyboard(monkeypatch: pytest.MonkeyPatch) -> Iterator[int]:
    """Where a person types; stdin is the other end of it."""
    ours, theirs = pty.openpty()
    with os.fdopen(theirs, "r") as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        yield ours
    os.close(ours)


def echoed(keyboard: int) -> bytes:
    return os.read(keyboard, 100) if select.select([keyboard], [], [], 0.2)[0] else b""


def test_what_is_typed_is_not_echoed_and_is_handed_over_with_what_was_typed_before(keyboard: int) -> None:
    before = termios.tcgetattr(sys.stdin)
    os.write(keyboard, b"/lo")
    assert echoed(keyboard) == b"/lo"
    with unechoed() as typed:
        os.write(keyboard, b"g\x1b[B ")
        assert echoed(keyboard) == b""
        assert typed() == b"/log\x1b[B "
        assert termios.tcgetattr(sys.stdin) == before
        os.write(keyboard, b"x")
        assert typed() == b""
    assert echoed(keyboard) == b"x"
    assert termios.tcgetattr(sys.stdin) == before


def test_the_terminal_is_put_back_whatever_happens(keyboard: int) -> None:
    before = termios.tcgetattr(sys.stdin)
    with pytest.raises(KeyboardInterrupt), unechoed():
        raise KeyboardInterrupt
    assert termios.tcgetattr(sys.stdin) == before


def test_without_a_terminal_nothing_is_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    with open(os.devnull) as stdin, monkeypatch.context() as patch:
        patch.setattr(sys, "stdin", stdin)
        with unechoed() as typed:
            assert typed() == b""
        patch.setattr(sys, "stdin", None)
        with unechoed() as typed:
            assert typed() == b""
