"""What a server says of itself is bounded, and plain on a terminal, whatever it says."""

from __future__ import annotations

import pytest
from playbill.actors.model.about import (
    LONGEST_INSTRUCTIONS,
    LONGEST_NAME,
    MAX_ICON_CHARS,
    MAX_ICONS,
    ServerInfo,
    calls_itself,
    server_info,
)


def test_what_is_no_text_is_not_said() -> None:
    said = {"name": 3, "version": None, "title": [], "websiteUrl": {}, "icons": "x", "description": "  "}
    assert server_info(said, 7) == ServerInfo()
    assert calls_itself(ServerInfo()) is None


def test_texts_are_cut_and_have_no_control_characters() -> None:
    info = server_info(
        {"name": "a\x1b[31m\nb", "title": "t" * 10_000}, "one\r\n\x1b]0;two\x07\u202ethree" + "x" * 100_000
    )
    assert info.name == "a [31m b"
    assert info.title is not None
    assert len(info.title) == LONGEST_NAME
    assert info.instructions is not None
    assert len(info.instructions) == LONGEST_INSTRUCTIONS
    assert info.instructions.startswith("one\n ]0;two  three")


@pytest.mark.parametrize(
    ("url", "kept"),
    [
        ("https://example.com/a", True),
        ("HTTP://example.com", True),
        ("javascript:alert(1)", False),
        ("file:///etc/passwd", False),
        ("", False),
    ],
)
def test_a_website_is_one_of_the_web(url: str, kept: bool) -> None:
    assert server_info({"websiteUrl": url}).website_url == (url if kept else None)


def test_icons_are_few_and_not_huge() -> None:
    huge = {"src": "x" * (MAX_ICON_CHARS + 1)}
    info = server_info({"icons": [huge, 3, {"src": "data:,", "mimeType": "image/png", "odd": 1}]})
    assert [dict(icon) for icon in info.icons] == [{"src": "data:,", "mimeType": "image/png"}]
    assert len(server_info({"icons": [{"src": "data:,"}] * 100}).icons) == MAX_ICONS


def test_it_is_told_in_a_line() -> None:
    info = ServerInfo(name="everything", title="Everything", version="2.0", website_url="https://example.com")
    assert calls_itself(info) == "'Everything' 2.0 (https://example.com)"
    assert calls_itself(ServerInfo(name="plain")) == "'plain'"
