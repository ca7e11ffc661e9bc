"""What is drawn of a text, and how many columns of a terminal that takes."""

from __future__ import annotations

from playbill.actors.model.cells import columns, steady


def test_what_terminals_agree_about_is_left_as_it_is() -> None:
    for text in ("abc", "e\u0301", "文字", "가", "हिन्दी", "می\u200cخواهم", "🇩🇪", "é"):
        assert steady(text) == text
    assert steady("👩‍👩‍👧") == "👩👩👧"
    assert steady("a\u3164b") == "a b"
    assert steady(steady("❤️\u00ad👍🏽")) == steady("❤️\u00ad👍🏽") == "❤👍"


def test_columns_are_the_sum_over_the_characters() -> None:
    assert [columns(each) for each in ("abc", "文字", "e\u0301", "\u1100\u1161", "", "👩👩👧", "🇩🇪")] == [
        3,
        4,
        1,
        2,
        0,
        6,
        2,
    ]
