"""Which rows of a long list are on the screen: only those are ever made or painted.

Theory of operation
    What is kept between two drawings is where the cursor's row was: its place in the list, and the screen line it began at.
    When the cursor moves, it moves on the screen, and the list follows only at the edges; when rows come and go above it, it
    stays on its line. A window is filled from the cursor upwards and downwards, and closed up where the list ends.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeVar

from attrs import define

__all__ = ["Window"]

T = TypeVar("T")


@define
class Window:
    """A window on a list.

    Args:
        at: where in the list the cursor was.
        line: on which line of the window its row began.
        painted: how many rows the last drawing made.
    """

    at: int = 0
    line: int = 0
    painted: int = 0

    def lines(
        self, count: int, first: int, cursor: int, height: int, paint: Callable[[int], Sequence[T]], *, moved: bool
    ) -> list[T]:
        """The lines on the screen, at most as many as it is high.

        Args:
            count: of the list's rows.
            first: the first row that belongs to the list; those before it are shown elsewhere.
            cursor: the row that must be seen.
            height: of the window, in lines.
            paint: makes the lines of one row, at least one.
            moved: whether the cursor was moved to another row; else it stays on its line.
        """
        self.painted = 0
        if height <= 0 or count <= first:
            self.at, self.line = cursor, 0
            return []
        made: dict[int, Sequence[T]] = {}

        def row(at: int) -> Sequence[T]:
            if at not in made:
                made[at] = paint(at)
                self.painted += 1
            return made[at]

        cursor = min(max(cursor, first), count - 1)
        own = row(cursor)
        line = self._line(cursor, first, count, height, row) if moved else self.line
        line = max(0, min(line, height - len(own)))
        above: list[T] = []
        up = cursor - 1
        while up >= first and len(above) < line:
            above[:0] = row(up)
            up -= 1
        line = min(line, len(above))
        below: list[T] = []
        down = cursor + 1
        while down < count and len(below) < height - line - len(own):
            below.extend(row(down))
            down += 1
        # The list ends before the window does: what is above comes down.
        wanted = height - len(own) - len(below)
        while up >= first and len(above) < wanted:
            above[:0] = row(up)
            up -= 1
        line = max(line, min(wanted, len(above)))
        self.at, self.line = cursor, line
        return [*above[len(above) - line :], *own, *below][:height]

    def _line(self, cursor: int, first: int, count: int, height: int, row: Callable[[int], Sequence[T]]) -> int:
        """On which line a cursor that was moved is: as far from where it was as the rows between are high."""
        if not first <= self.at < count or abs(cursor - self.at) >= height:
            return 0 if cursor < self.at else height
        if cursor < self.at:
            return self.line - sum(len(row(at)) for at in range(cursor, self.at))
        return self.line + sum(len(row(at)) for at in range(self.at, cursor))
