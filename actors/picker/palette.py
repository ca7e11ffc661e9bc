"""Colours and glyphs: names for what is drawn, and what each looks like with many colours, with 16, with none, and in ASCII.

No meaning is in a colour alone: each also has a glyph or a word, and bold, underlined or standing out where there is no colour.
"""

from __future__ import annotations

from collections.abc import Mapping

from attrs import frozen

__all__ = ["ASCII", "PALETTE", "UNICODE", "Glyphs"]

PALETTE: tuple[tuple[str, str, str, str, str, str], ...] = (
    # name, 16 colours: text and ground, none, 256 colours: text and ground
    ("playbill", "default", "default", "default", "default", "default"),
    ("playbill header", "white,bold", "dark blue", "standout", "#fff,bold", "#006"),
    ("playbill error", "light red,bold", "default", "bold", "#f66,bold", "default"),
    ("playbill warning", "yellow", "default", "bold", "#fd6", "default"),
    ("playbill server", "default,bold", "default", "bold", "default,bold", "default"),
    ("playbill good", "dark green", "default", "default", "#6d6", "default"),
    ("playbill busy", "dark cyan", "default", "default", "#6cd", "default"),
    ("playbill ask", "yellow,bold", "default", "underline", "#fd6,bold", "default"),
    ("playbill bad", "light red", "default", "bold", "#f66", "default"),
    ("playbill off", "dark gray", "default", "default", "g58", "default"),
    ("playbill dim", "dark gray", "default", "default", "g58", "default"),
    ("playbill pending", "dark cyan,bold", "default", "bold", "#6cd,bold", "default"),
    ("playbill title", "white,bold", "dark blue", "standout", "#fff,bold", "#006"),
    ("playbill status", "default", "default", "default", "default", "default"),
    ("playbill key", "default,bold", "default", "bold", "default,bold", "default"),
    ("playbill cursor", "black", "light gray", "standout", "#000", "#ddd"),
    ("playbill caret", "default,standout", "default", "standout", "default,standout", "default"),
)
"""For `urwid.MainLoop` or `Screen.register_palette`. The names begin so, to be none of an embedding program's own."""


@frozen
class Glyphs:
    """The characters that are not words.

    Args:
        phases: one for each phase of a server.
        pin: before a pinned tool.
        more: where a text was cut.
        dot: between parts of a line.
        rule: what a line across is made of.
        words: characters that our own texts use, and what stands for them; empty when all can be drawn.
    """

    phases: Mapping[str, str]
    pin: str
    more: str
    dot: str
    rule: str
    words: Mapping[int, str]


UNICODE = Glyphs(
    {
        "ready": "●",
        "starting": "◌",
        "stopping": "◌",
        "backing_off": "↻",
        "parked": "■",
        "needs_auth": "◆",
        "untrusted": "▲",
        "invalid": "✗",
        "disabled": "○",
    },
    pin="↑",
    more="…",
    dot=" · ",
    rule="─",
    words={},
)

ASCII = Glyphs(
    {
        "ready": "*",
        "starting": "~",
        "stopping": "~",
        "backing_off": "%",
        "parked": "#",
        "needs_auth": "!",
        "untrusted": "?",
        "invalid": "x",
        "disabled": "-",
    },
    pin="^",
    more="...",
    dot=" | ",
    rule="-",
    words=str.maketrans(
        {"—": "-", "–": "-", "…": "...", "·": "|", "×": "x", "’": "'", "“": '"', "”": '"', "→": "->", "↳": ">"}
    ),
)
