"""What was mended, in lines for a person; and whether a change kept exactly what a schema accepts."""

from __future__ import annotations

from attrs import define, field

from .flaw import Link, path_text

__all__ = ["NARROWER", "Notes"]

NARROWER = "(narrower)"
"""How a line ends whose change lets the schema accept less than before."""

_MOST_LINES = 40


@define
class Notes:
    """The changes to one schema.

    Args:
        inexact: how many of them changed what the schema accepts, to more or to less.
        translated: a keyword of an older draft is now one of 2020-12.
    """

    inexact: int = field(default=0, init=False)
    translated: bool = field(default=False, init=False)
    _lines: dict[str, None] = field(factory=dict, init=False)
    _left_out: int = field(default=0, init=False)

    def exact(self, link: Link, text: str) -> None:
        """Note a change after which the schema accepts the same."""
        if len(self._lines) >= _MOST_LINES:
            self._left_out += 1
            return
        self._lines[f"{path_text(link)}: {text}"] = None

    def wider(self, link: Link, text: str) -> None:
        """Note a change after which it accepts all that it accepted, and maybe more."""
        self.inexact += 1
        self.exact(link, text)

    def narrower(self, link: Link, text: str) -> None:
        """Note a change after which it may accept less."""
        self.inexact += 1
        self.exact(link, f"{text} {NARROWER}")

    def lines(self) -> tuple[str, ...]:
        """All of it, in order, each once; beyond a number that a person reads only how many there are."""
        more = (f"and {self._left_out} changes more",) if self._left_out else ()
        return (*self._lines, *more)
