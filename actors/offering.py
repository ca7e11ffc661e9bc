"""What a server offers besides tools, followed for one incarnation: its lists, and the resources that somebody watches.

A list is fetched once the server is ready, and again when it says that it changed: announcements settle first. One that fails
is tried again with growing pauses, keeps the last good one, and says why. Nothing here makes a server any less ready: whatever
is wrong with its resources, its tools work.
"""

from __future__ import annotations

import math
from collections.abc import Awaitable, Callable
from typing import Any, Protocol

import trio

from .board import Board
from .ports import ConnectionLost, Library, ListFailed, Shelf

__all__ = ["Offering", "Times"]


class Times(Protocol):
    """In seconds, as in `ServerSettings`."""

    @property
    def list_timeout(self) -> float:
        """Of one listing."""
        ...

    @property
    def settle(self) -> float:
        """A list is fetched when announcements have been silent for this long,"""
        ...

    @property
    def settle_max(self) -> float:
        """and at the latest this long after the first."""
        ...

    @property
    def relist_pause(self) -> float:
        """The first pause after a listing that failed,"""
        ...

    @property
    def relist_pause_max(self) -> float:
        """and the longest."""
        ...

    @property
    def unchanged_pause_max(self) -> float:
        """The longest pause before the next listing after ones that brought nothing new."""
        ...


class _Changes:
    """Announcements that a list has changed."""

    def __init__(self) -> None:
        self._told = trio.Event()
        self._at = -math.inf

    def tell(self) -> None:
        self._at = trio.current_time()
        self._told.set()

    async def settled(self, times: Times) -> None:
        """Wait for an announcement, and until there is none for a while."""
        await self._told.wait()
        latest = trio.current_time() + times.settle_max
        while (quiet := min(self._at + times.settle, latest)) > trio.current_time():  # noqa: ASYNC110
            await trio.sleep_until(quiet)
        self._told = trio.Event()


class Offering:
    """Follows one incarnation's library.

    Args:
        name, generation: of the server.
        library: its connection's.
        board: where the lists go, and the watches are.
        times: of the lists.
    """

    def __init__(self, name: str, generation: int, library: Library, board: Board, times: Times) -> None:
        self._name = name
        self._generation = generation
        self._library = library
        self._board = board
        self._times = times
        self._agreed: set[str] = set()
        self._asked_for: set[str] = set()
        self._refused: dict[str, str] = {}
        self._changes: dict[Shelf, _Changes] = {"resources": _Changes(), "prompts": _Changes()}

    async def run(self, nursery: trio.Nursery | None = None) -> None:
        """Follow it until cancelled, or until the connection is lost. A checkpoint.

        Args:
            nursery: for its tasks, to be cancelled with it; None for one of its own.
        """
        if nursery is None:
            async with trio.open_nursery() as own:
                await self.run(own)
            return
        watches = self._board.watches
        self._library.listen(
            lambda shelf: self._changes[shelf].tell(),
            lambda uri, missed: watches.updated(self._name, self._generation, uri, missed),
        )
        has = self._library.has
        # What a server does not declare is empty for as long as the connection lives: nobody need wait for news of it.
        if "resources" in has:
            nursery.start_soon(self._follow, "resources", self._list_resources)
        else:
            self._report(resources=(), templates=(), resources_error=None, resources_generation=self._generation)
        if "prompts" in has:
            nursery.start_soon(self._follow, "prompts", self._list_prompts)
        else:
            self._report(prompts=(), prompts_error=None, prompts_generation=self._generation)
        await self._follow_watches(nursery)

    async def _list_resources(self) -> tuple[dict[str, Any], bool]:
        listing = await self._library.list_resources()
        before = self._board.status(self._name).offers
        return {
            "resources": before.resources if before.resources == listing.resources else listing.resources,
            "templates": before.templates if before.templates == listing.templates else listing.templates,
            "resources_error": "; ".join(listing.problems) or None,
        }, listing.again

    async def _list_prompts(self) -> tuple[dict[str, Any], bool]:
        listing = await self._library.list_prompts()
        before = self._board.status(self._name).offers
        return {
            "prompts": before.prompts if before.prompts == listing.prompts else listing.prompts,
            "prompts_error": "; ".join(listing.problems) or None,
        }, False

    def _report(self, **said: Any) -> None:
        self._board.offer(self._name, self._generation, **said)

    async def _follow(self, shelf: Shelf, fetch: Callable[[], Awaitable[tuple[dict[str, Any], bool]]]) -> None:
        times, changes = self._times, self._changes[shelf]
        after_failure, wait = times.relist_pause, 0.0
        last: dict[str, Any] | None = None
        while True:
            try:
                with trio.fail_after(times.list_timeout):
                    said, again = await fetch()
            except ConnectionLost:
                return
            except (ListFailed, trio.TooSlowError) as error:
                reason = getattr(error, "reason", f"no answer within {times.list_timeout:g} s")
                self._report(**{f"{shelf}_error": reason})
                after_failure = max(after_failure, getattr(error, "retry_after", None) or 0.0)
                await trio.sleep(after_failure)
                after_failure = min(2 * after_failure, times.relist_pause_max)
                continue
            self._report(**said, **{f"{shelf}_generation": self._generation})
            if again:
                await trio.sleep(after_failure)
                after_failure = min(2 * after_failure, times.relist_pause_max)
                continue
            after_failure = times.relist_pause
            # A server that announces a change whenever it is asked must not be asked for ever at full speed.
            wait = 0.0 if said != last else min(max(2 * wait, times.settle), times.unchanged_pause_max)
            last = said
            await changes.settled(times)
            await trio.sleep(wait)

    async def _follow_watches(self, nursery: trio.Nursery) -> None:
        watches, name = self._board.watches, self._name
        while True:
            version, uris, fresh = watches.version, watches.uris(name), watches.fresh(name)
            # Who asks anew for what was refused is not told what another was told.
            self._refused = {uri: why for uri, why in self._refused.items() if uri in uris - fresh}
            wanted = uris - self._agreed - self._asked_for - self._refused.keys()
            if wanted:
                self._asked_for |= wanted
                nursery.start_soon(self._follow_some, wanted)
            if self._agreed - uris:
                nursery.start_soon(self._unfollow_others)
            # Also when there is only one more reader of what is followed already.
            watches.followed(name, self._generation, self, fresh & self._agreed, {})
            try:
                await watches.changed(version)
            except trio.ClosedResourceError:
                return

    async def _follow_some(self, uris: frozenset[str]) -> None:
        """Each is answered for itself: one that the server says nothing to keeps no other waiting."""

        def told(uri: str, refused: str | None) -> None:
            self._asked_for.discard(uri)
            if refused is None:
                self._agreed.add(uri)
            else:
                self._refused[uri] = refused
            why = {} if refused is None else {uri: refused}
            self._board.watches.followed(self._name, self._generation, self, frozenset({uri}), why)

        seconds = self._times.list_timeout
        try:
            with trio.move_on_after(seconds) as limit:
                await self._library.follow(uris, told)
        except ConnectionLost:
            return
        if limit.cancelled_caught:
            for uri in uris & self._asked_for:
                told(uri, f"no answer within {seconds:g} s")
        await self._unfollow_others()

    async def _unfollow_others(self) -> None:
        """Have nothing told that nobody watches any more."""
        gone = frozenset(self._agreed - self._board.watches.uris(self._name))
        if gone:
            self._agreed -= gone
            with trio.move_on_after(self._times.list_timeout):
                await self._library.unfollow(gone)
