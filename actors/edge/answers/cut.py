"""So many characters of text in all, and a line that says how many were cut."""

from __future__ import annotations

from collections.abc import Sequence
from unicodedata import combining

from .media import Taken
from .pieces import Note, Structured, Text

__all__ = ["Part", "boundary", "fit", "marker"]

Part = Text | Note | Structured | Taken

_JOINERS = "\u200d\ufe0e\ufe0f\u20e3"
_LOOK_BACK = 32


def marker(cut: int, of: int) -> str:
    """What stands where text was cut.

    Args:
        cut, of: characters.
    """
    return f"[… {cut:,} of {of:,} characters cut]"


def _continues(text: str, place: int) -> bool:
    here = text[place]
    return (
        here in _JOINERS or text[place - 1] == "\u200d" or combining(here) != 0 or "\U0001f3fb" <= here <= "\U0001f3ff"
    )


def boundary(text: str, limit: int) -> int:
    """The last place, at most `limit`, where a text can be cut without leaving half of what a reader sees as a character."""
    place = min(limit, len(text))
    if place == len(text):
        return place
    for back in range(min(place, _LOOK_BACK)):
        if not _continues(text, place - back):
            return place - back
    return place


def fit(parts: Sequence[Part], max_chars: int) -> list[Part]:
    """The parts with at most so many characters of text; media are not counted, and notes go before text.

    Args:
        parts: in order.
        max_chars: characters, and one more for each part, to join it with the next. The marker is within them, but is
            there even when they are fewer than it takes.
    """
    texts = {place: part.text for place, part in enumerate(parts) if not isinstance(part, Taken)}
    of = sum(map(len, texts.values()))
    if of + len(texts) - 1 <= max_chars:
        return list(parts)
    room = max_chars - len(marker(of, of)) - 1
    kept: dict[int, str] = {}
    for_notes = room // 2  # a flood of them leaves room for what the tool said
    for place, text in texts.items():
        if isinstance(parts[place], Note) and len(text) < for_notes:
            kept[place] = text
            for_notes -= len(text) + 1
            room -= len(text) + 1
    for place, text in texts.items():
        if not isinstance(parts[place], Note):
            kept[place] = text[: boundary(text, max(0, room))]
            room -= len(kept[place]) + 1
            if kept[place] != text:
                break
    cut = of - sum(map(len, kept.values()))
    out: list[Part] = []
    told = False
    for place, part in enumerate(parts):
        text = kept.get(place, "")
        if isinstance(part, Taken) or text == part.text:
            out.append(part)
            continue
        if text.strip():
            out.append(Text(text))
        if not told:
            out.append(Note(marker(cut, of)))
            told = True
    return out
