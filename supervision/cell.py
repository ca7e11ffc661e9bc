"""A cell: the latest value of something, read without waiting, watched without a queue.

Theory of operation. A cell holds one value and a version. Setting is synchronous: it stores, counts and wakes who waits.
Whoever wakes looks at the cell as it then is, so a slow reader skips values instead of slowing the writer or filling a
queue; and as there is no wait between looking and parking, no wake-up is lost.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable
from typing import Generic, TypeVar

import trio

__all__ = ["Cell"]

T = TypeVar("T")


class Cell(Generic[T]):
    """The latest value of one writer for any number of readers, all in one trio loop.

    Args:
        initial: the value at version 0.
    """

    __slots__ = ("_closed", "_parked", "value", "version")

    value: T
    """The latest value: a plain attribute, to be read at any time, also after `close`. Change it with `set` only."""
    version: int
    """How often it was set."""

    def __init__(self, initial: T) -> None:
        self.value = initial
        self.version = 0
        self._closed = False
        self._parked = trio.lowlevel.ParkingLot()

    def set(self, value: T) -> None:
        """Store a value and wake who waits. Never waits; each call counts, also with an equal value.

        Raises:
            trio.ClosedResourceError: the cell is closed.
        """
        if self._closed:
            raise trio.ClosedResourceError("the cell is closed")
        self.value = value
        self.version += 1
        if self._parked:
            self._parked.unpark_all()

    def close(self) -> None:
        """End the iterators and the waits, once they have seen the last value. Again: nothing happens."""
        self._closed = True
        self._parked.unpark_all()

    async def wait(self, predicate: Callable[[T], bool]) -> T:
        """Wait for a value that suits; the current one is looked at first.

        Args:
            predicate: called in the waiter's task. A value replaced before the waiter runs is not seen.

        Returns:
            The first value seen for which the predicate holds.

        Raises:
            trio.ClosedResourceError: the cell is closed and its last value does not suit.
        """
        await trio.lowlevel.checkpoint()
        while not predicate(self.value):
            if self._closed:
                raise trio.ClosedResourceError("the cell is closed")
            await self._parked.park()
        return self.value

    def changes(self) -> AsyncIterator[T]:
        """Iterate over the current value, then over the latest one each time it was set since; ends after `close`.

        It needs no closing itself; each iterator is for one task.
        """
        return _Changes(self)

    async def _after(self, version: int) -> None:
        """Wait until the version is another one; raises StopAsyncIteration when that cannot be any more."""
        if self.version != version or self._closed:
            await trio.lowlevel.checkpoint()  # else parking is one
        while self.version == version:
            if self._closed:
                raise StopAsyncIteration
            await self._parked.park()


class _Changes(AsyncIterator[T]):
    __slots__ = ("_cell", "_seen")

    def __init__(self, cell: Cell[T]) -> None:
        self._cell = cell
        self._seen = -1

    async def __anext__(self) -> T:
        await self._cell._after(self._seen)
        self._seen = self._cell.version
        return self._cell.value
