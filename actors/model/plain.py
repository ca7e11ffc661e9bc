"""Other people's words in a line for a person: what servers call themselves and their tools, and what they say when they die.

Each function gives one line without control characters and of bounded length, whatever it is given.
"""

from __future__ import annotations

from .cells import steady

__all__ = ["LONGEST_NAME", "flat", "label", "line", "quoted", "short"]

LONGEST_NAME = 100
"""Characters of a name that are told; a name that a provider takes has 64 at most."""

_LONGEST_TEXT = 400
_LONGEST_LINE = 4_000
_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


def short(text: str, longest: int = LONGEST_NAME) -> str:
    """The text, or its beginning and an ellipsis, in ``longest`` characters; nothing else is changed."""
    return text if len(text) <= longest else text[: longest - 1] + _ELLIPSIS


def quoted(name: str) -> str:
    """A name in quotes: what cannot be seen of it spelled out, and a huge one cut."""
    return repr(short(name))


def flat(text: str, longest: int = _LONGEST_TEXT) -> str:
    """A text on one line: white space is one blank each, what cannot be seen a blank too, and a long one is cut."""
    text = short(" ".join(text[: 2 * longest].split()), longest)
    return text if text.isprintable() else "".join(char if char.isprintable() else " " for char in text)


def label(name: str) -> str:
    """A name without quotes, as `flat`; in quotes when nothing would be seen of it."""
    shown = flat(name, LONGEST_NAME).strip()
    return shown if steady(shown).strip() else quoted(name)


def line(text: str) -> str:
    """A sentence that holds what others said: as it is when it is one line already, else as `flat`; a huge one is cut."""
    return text if text.isprintable() and len(text) <= _LONGEST_LINE else flat(text, _LONGEST_LINE)
