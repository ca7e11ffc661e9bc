"""Restarts one after the other: children that die together are not started together.

To start a child may cost more than to run it. Many that begin at the same time slow each other down until they end at the same
time too, and so come back in a bunch for ever; whoever lives beside them has no processor left at each of these moments.
"""

from __future__ import annotations

from bisect import bisect_left, insort

__all__ = ["Pace"]


class Pace:
    """Which moments are taken.

    Args:
        spacing: seconds between two of them, at least; 0 shifts nothing.
    """

    def __init__(self, spacing: float) -> None:
        self._spacing = spacing
        self._taken: list[float] = []

    def book(self, when: float, now: float) -> float:
        """Take the first free moment.

        Args:
            when: the earliest that will do, in the time of the trio clock.
            now: that time.

        Returns:
            ``when``, or the first one later that is `spacing` from all that are taken.
        """
        if not self._spacing:
            return when
        taken = self._taken
        del taken[: bisect_left(taken, now - self._spacing)]
        at = bisect_left(taken, when - self._spacing)
        while at < len(taken) and taken[at] < when + self._spacing:
            when = max(when, taken[at] + self._spacing)
            at += 1
        insort(taken, when)
        return when
