"""Texts on the lines of a screen: wrapped before they are scrolled, so that top, page and end count what is seen.

Two ways. Prose is broken at blanks, and keeps its indentation. What is to be approved is broken where the line ends and nowhere
else: each of its characters has a place, blanks too, and a line that goes on begins with a mark that no other line begins with.

How wide a character is, is up to whoever draws: a `Look`. So what is wrapped here fits there.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Callable, Iterator, Sequence
from typing import Protocol

from attrs import field, frozen

from ..model.cells import columns

__all__ = ["PLAIN", "Look", "Wrapped", "exactly", "fitting", "joined", "softly", "spelled", "whole"]

GOES_ON = "↳ "
"""Before a line of a review that goes on with the one above."""

# Letters and signs that Unicode calls visible and a screen shows as blanks.
_BLANK = frozenset(
    "\N{HANGUL FILLER}\N{HANGUL CHOSEONG FILLER}\N{HALFWIDTH HANGUL FILLER}\N{BRAILLE PATTERN BLANK}\U0001d159"
)


class Look(Protocol):
    """What a screen shows of a text."""

    def width(self, text: str) -> int:
        """Columns that a printable text takes."""
        ...

    def plain(self, text: str) -> str:
        """A text as it is drawn: the same, unless the screen lacks some of its characters."""
        ...


class _Plain:
    """A screen that has all characters, each as wide as Unicode says."""

    def width(self, text: str) -> int:
        """As in `Look`."""
        return columns(text)

    def plain(self, text: str) -> str:
        """As in `Look`."""
        return text


PLAIN: Look = _Plain()
"""For a picker that nobody told what it is drawn on."""


@frozen
class Wrapped:
    """Texts on lines.

    Args:
        lines: as they are drawn.
        starts: where each begins, in characters of all the texts, one behind the other with a break after each. That is the
            same place whatever the width.
        end: where the last one ends.
    """

    lines: tuple[str, ...]
    starts: tuple[int, ...] = field(repr=False)
    end: int

    def at(self, place: int) -> int:
        """The line that has a place of the texts: the last one that begins there or before."""
        return max(0, bisect_right(self.starts, place) - 1)

    def span(self, first: int, last: int) -> tuple[int, int]:
        """The places of the lines from one on up to, and without, another."""
        return self.starts[first], self.starts[last] if last < len(self.starts) else self.end


def whole(texts: Sequence[str], columns: int | None, cut: Callable[[str, int], Iterator[tuple[int, str]]]) -> Wrapped:
    """Texts on lines of so many columns; None: each is a line, however long.

    Args:
        texts: each one line, without control characters.
        columns: of the screen.
        cut: breaks one text into (where it begins, as it is drawn).
    """
    lines: list[str] = []
    starts: list[int] = []
    base = 0
    for text in texts:
        for at, shown in [(0, text)] if columns is None else cut(text, max(1, columns)):
            lines.append(shown)
            starts.append(base + at)
        base += len(text) + 1
    return Wrapped(tuple(lines), tuple(starts), base)


def fitting(text: str, at: int, columns: int, look: Look) -> int:
    """How many characters of a text, from one on, fit in so many columns."""
    if text.isascii():
        return max(0, min(len(text) - at, columns))
    count = used = 0
    for char in text[at : at + 2 * columns + 8]:  # some take no column
        used += 1 if char.isascii() else look.width(char)
        if used > columns:
            break
        count += 1
    # Several characters in a row may be wider than each alone.
    while count and look.width(text[at : at + count]) > columns:
        count -= 1
    return count


def softly(text: str, columns: int, look: Look) -> Iterator[tuple[int, str]]:
    """A text on as many lines as it takes, each with its indentation: broken at blanks, else anywhere."""
    blanks = len(text) - len(text.lstrip(" "))
    indent = " " * min(blanks, columns // 2)
    at, lead, least = 0, "", blanks + 1
    while True:
        count = fitting(text, at, columns - len(lead), look)
        if at + count >= len(text):
            yield at, lead + text[at:]
            return
        blank = text.rfind(" ", at + least, at + count + 1)
        cut = blank if blank > 0 else at + max(1, count)  # at least a character: it must end
        yield at, (lead + text[at:cut]).rstrip()
        while cut < len(text) and text[cut] == " ":
            cut += 1
        if cut >= len(text):
            return
        at, lead, least = cut, indent, 1


def exactly(text: str, columns: int, look: Look) -> Iterator[tuple[int, str]]:
    """A text on as many lines as it takes, with all of its characters and blanks, broken where a line is full."""
    at, lead = 0, ""
    while True:
        count = max(1, fitting(text, at, columns - look.width(lead), look))
        yield at, lead + text[at : at + count]
        at += count
        if at >= len(text):
            return
        # Where there is hardly room for a mark, there is none: such a line says less, and is not approved.
        lead = look.plain(GOES_ON) if columns > 2 * look.width(GOES_ON) else ""


def spelled(text: str, look: Look) -> str:
    """A text that shows what is in it: characters that nobody would see, or take for others, by their numbers."""
    if text.isascii() and text.isprintable():
        return text
    return "".join(char if _seen(char, look) else char.encode("unicode_escape").decode() for char in text)


def _seen(char: str, look: Look) -> bool:
    return char.isprintable() and (
        char.isascii() or (look.plain(char) == char and look.width(char) > 0 and char not in _BLANK)
    )


def joined(spans: Sequence[tuple[int, int]], span: tuple[int, int]) -> tuple[tuple[int, int], ...]:
    """Spans that do not touch, in their order, with one more."""
    start, end = span
    before = [each for each in spans if each[1] < start]
    after = [each for each in spans if each[0] > end]
    among = [each for each in spans if each[1] >= start and each[0] <= end]
    return (
        *before,
        (min([start, *(each[0] for each in among)]), max([end, *(each[1] for each in among)])),
        *after,
    )
