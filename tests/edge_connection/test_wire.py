"""Reasons: one line, and nothing in it drives a terminal."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from playbill.actors.edge.wire.wire import one_line
from playbill.actors.model.config import ServerEntry
from playbill.actors.ports import ConnectionFailed

from .conftest import Connector


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("  two\n\tlines\r\n", "two lines"),
        ("\x1b[31mred\x1b[0m and \x1b[2Jgone", "red and gone"),
        ("\x1b]0;a title\x07said \x1b]8;;http://x\x1b\\it", "said it"),
        ("bell\x07 nul\x00 del\x7f c1\x85\x9b31m \u202eback", "bell nul del c1 back"),
        ("half \ud800 a character, caf\u00e9 \U0001f600", "half a character, caf\u00e9 \U0001f600"),
        ("\x1b", ""),
    ],
)
def test_a_line_holds_no_control_characters(text: str, line: str) -> None:
    assert " ".join(one_line(text).split()) == line
    assert one_line(text).isprintable()


def test_a_long_line_is_cut() -> None:
    assert one_line("abcdef", 4) == "abc…"


async def test_the_reason_of_a_death_is_clean(
    fake: Callable[..., ServerEntry], connect: Connector, patience: Callable[[], Any]
) -> None:
    entry = fake(say="\x1b[31mno licence\x1b]0;title\x07 at all\x07", exit_at_once=3)
    with patience(), pytest.raises(ConnectionFailed) as caught:
        async with connect(entry):
            pass
    assert caught.value.reason == "the server exited with code 3: no licence at all"
