"""How many columns of a terminal a text takes, and the text made such that terminals agree about it.

Terminals count character by character, as `wcwidth` does, and differ where several make up one sign: some draw a family of
emoji, a flag or a hand with a colour as one sign, others as its parts, and a filler of Hangul as two columns, one or none.
`steady` takes out what makes the difference; of what is left `columns` is the sum over the characters.
"""

from __future__ import annotations

import unicodedata
from functools import lru_cache

__all__ = ["columns", "steady"]

_FILLERS = "\N{HANGUL CHOSEONG FILLER}\N{HANGUL JUNGSEONG FILLER}\N{HANGUL FILLER}\N{HALFWIDTH HANGUL FILLER}"
_UNSTEADY = {
    **dict.fromkeys(map(ord, _FILLERS), " "),
    0x00AD: None,  # SOFT HYPHEN
    0x200D: None,  # ZERO WIDTH JOINER: makes one picture of two; between letters it only changes their shape
    0xFE0E: None,  # VARIATION SELECTOR-15: as text
    0xFE0F: None,  # VARIATION SELECTOR-16: as a picture
    0x2065: None,  # ignorable by default, and not assigned; so are the next ones
    **dict.fromkeys(range(0xFFF0, 0xFFF9)),
    **dict.fromkeys(range(0x1F3FB, 0x1F400)),  # the colours of a skin
}


def steady(text: str) -> str:
    """A text that takes the same columns on every terminal: pictures in their parts, blanks for fillers."""
    return text if text.isascii() else text.translate(_UNSTEADY)


def columns(text: str) -> int:
    """The columns that a steady, printable text takes."""
    return len(text) if text.isascii() else sum(map(_of, text))


@lru_cache(4096)
def _of(char: str) -> int:
    if "\u1160" <= char <= "\u11ff" or "\ud7b0" <= char <= "\ud7ff":
        return 0  # vowels and finals of Hangul, drawn into the initial before them
    kind = unicodedata.category(char)
    if kind in ("Mn", "Me"):
        return 0
    if kind == "Cf":  # of these, the signs that span the digits behind them are seen
        return 1 if "\u0600" <= char <= "\u0605" or char in "\u06dd\u070f\u08e2" else 0
    return 2 if unicodedata.east_asian_width(char) in "WF" else 1
