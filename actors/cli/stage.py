"""Where the demo is shown: on a terminal with colours and pauses, plainly in a pipe, or not at all for JSON.

A stage also keeps the claims: what was said to be true, whether it was found true, and how it was found.
"""

from __future__ import annotations

import sys
from typing import Any, TextIO

from attrs import define, field, frozen

from .errors import one_line
from .render import Table, print_plain, rich_table

__all__ = ["Claim", "PlainStage", "RichStage", "Stage", "stage_for"]


@frozen
class Claim:
    """One thing the demo says, held against what was seen.

    Args:
        act: in which act, from 1.
        claim: what is said.
        held: whether it was so.
        detail: what was seen.
    """

    act: int
    claim: str
    held: bool
    detail: str


@define
class Stage:
    """A stage that shows nothing and keeps the claims."""

    claims: list[Claim] = field(factory=list)
    number: int = 0
    pause: float = 0.0

    def act(self, title: str, words: str) -> None:
        """Begin the next act."""
        self.number += 1

    def say(self, text: str) -> None:
        """Tell what is seen."""

    def show(self, table: Table) -> None:
        """Show a table."""

    def claim(self, text: str, held: bool, detail: str = "") -> None:
        """Hold a claim against what was seen, and keep it."""
        self._told(claim := Claim(self.number, text, bool(held), one_line(detail)))
        self.claims.append(claim)

    def end(self, seconds: float) -> None:
        """Say how it went."""

    def _told(self, claim: Claim) -> None:
        pass

    @property
    def false(self) -> list[Claim]:
        """The claims that did not hold."""
        return [claim for claim in self.claims if not claim.held]

    def verdict(self, seconds: float) -> str:
        """How it went, in one line."""
        count, false = len(self.claims), len(self.false)
        if false:
            return f"{false} of {count} claims false, after {seconds:.1f} s"
        return f"{count} claims, all true, in {seconds:.1f} s"


@define
class PlainStage(Stage):
    """A stage for pipes and files."""

    file: TextIO = field(factory=lambda: sys.stdout)

    def act(self, title: str, words: str) -> None:
        """Begin the next act."""
        self.number += 1
        self._print(f"\n{self.number}. {title}\n   {words}")

    def say(self, text: str) -> None:
        """Tell what is seen."""
        self._print(f"   {one_line(text)}")

    def show(self, table: Table) -> None:
        """Show a table."""
        print_plain(table, self.file)

    def end(self, seconds: float) -> None:
        """Say how it went."""
        self._print(f"\n{self.verdict(seconds)}")

    def _told(self, claim: Claim) -> None:
        detail = f" ({claim.detail})" if claim.detail else ""
        self._print(f"   {'ok   ' if claim.held else 'FALSE'} {claim.claim}{detail}")

    def _print(self, text: str) -> None:
        print(text, file=self.file, flush=True)


@define
class RichStage(Stage):
    """A stage for a terminal."""

    pause: float = 0.6
    console: Any = None

    def __attrs_post_init__(self) -> None:
        from rich.console import Console

        if self.console is None:
            self.console = Console(highlight=False)

    def act(self, title: str, words: str) -> None:
        """Begin the next act."""
        from rich.padding import Padding
        from rich.text import Text

        self.number += 1
        self.console.print()
        self.console.print(Text.assemble((f" {self.number} ", "bold reverse"), "  ", (title, "bold")))
        self.console.print(Padding(Text(words, style="dim"), (0, 0, 0, 5)))

    def say(self, text: str) -> None:
        """Tell what is seen."""
        self._line(one_line(text), "", "", "")

    def show(self, table: Table) -> None:
        """Show a table."""
        from rich.padding import Padding

        self.console.print(Padding(rich_table(table), (0, 0, 0, 5)))

    def end(self, seconds: float) -> None:
        """Say how it went."""
        from rich.text import Text

        self.console.print()
        self.console.print(Text(self.verdict(seconds), style="bold red" if self.false else "bold green"))

    def _told(self, claim: Claim) -> None:
        fancy = not self.console.options.ascii_only
        mark = ("✔" if claim.held else "✘") if fancy else ("ok" if claim.held else "FALSE")
        self._line(claim.claim, claim.detail, mark, "green" if claim.held else "bold red")

    def _line(self, text: str, detail: str, mark: str, style: str) -> None:
        from rich.table import Table as Grid
        from rich.text import Text

        # A grid, so that a long line wraps under itself.
        grid = Grid.grid(padding=(0, 1))
        grid.add_column(width=4, justify="right")
        grid.add_column(overflow="fold")
        grid.add_row(Text(mark, style=style), Text.assemble(text, "  " if detail else "", (detail, "dim")))
        self.console.print(grid)


def stage_for(*, silent: bool) -> Stage:
    """The stage that fits stdout; for a play that nobody watches one that shows nothing."""
    if silent:
        return Stage()
    return RichStage() if sys.stdout.isatty() else PlainStage()
