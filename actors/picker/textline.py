"""A line that is being typed."""

from __future__ import annotations

from attrs import evolve, frozen

__all__ = ["LONGEST", "TextLine"]

LONGEST = 4_000
"""Characters of the longest line, unless another limit is given."""


@frozen
class TextLine:
    """A line that is being typed.

    Args:
        text: so far.
        caret: before which character the next one goes.
    """

    text: str = ""
    caret: int = 0

    def pasted(self, text: str, longest: int = LONGEST) -> TextLine:
        """The line with a text at the caret, in one line; of a line that would be too long, as much as it takes."""
        text = " ".join(text[: 2 * longest].split("\n")).replace("\r", "")
        text = "".join(each if each.isprintable() else " " for each in text)[: max(0, longest - len(self.text))]
        return TextLine(self.text[: self.caret] + text + self.text[self.caret :], self.caret + len(text))

    def typed(self, key: str, longest: int = LONGEST) -> TextLine | None:
        """The line after a key, or None when the key is none that edits a line; one too long takes no more."""
        text, at = self.text, self.caret
        if len(key) == 1 and key.isprintable():
            return TextLine(text[:at] + key + text[at:], at + 1) if len(text) < longest else self
        match key:
            case "backspace":
                return TextLine(text[: max(0, at - 1)] + text[at:], max(0, at - 1))
            case "delete":
                return TextLine(text[:at] + text[at + 1 :], at)
            case "left":
                return evolve(self, caret=max(0, at - 1))
            case "right":
                return evolve(self, caret=min(len(text), at + 1))
            case "home" | "ctrl a":
                return evolve(self, caret=0)
            case "end" | "ctrl e":
                return evolve(self, caret=len(text))
            case "ctrl u":
                return TextLine(text[at:], 0)
            case "ctrl w":
                kept = text[:at].rstrip().rpartition(" ")
                start = len(kept[0]) + len(kept[1])
                return TextLine(text[:start] + text[at:], start)
        return None
