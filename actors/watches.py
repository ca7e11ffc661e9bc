"""Who wants to hear of changes of which resources; kept outside every actor, so that it outlives their incarnations.

Each watch holds the newest update only: a resource that changes a thousand times a second wakes a slow reader once a read.
"""

from __future__ import annotations

from collections.abc import Mapping

import trio
from attrs import define, field

from ..supervision import Cell
from .model.offers import ResourceUpdate

__all__ = ["Watch", "Watches"]


@define(eq=False)
class Watch:
    """One reader's wish to hear of one resource.

    Args:
        server, uri: of it.
        generation: of the incarnation that was asked last to tell; 0: none yet.
        teller: the connection that was.
        refused: why that one does not, or None.
        pending: the newest update that was not taken yet.
        ended: there will be no more.
        news: set when any of these changes.
    """

    server: str
    uri: str
    generation: int = 0
    teller: object = None
    refused: str | None = None
    pending: ResourceUpdate | None = None
    ended: bool = False
    news: trio.Event = field(factory=trio.Event)

    def tell(self) -> None:
        """Wake whoever waits for news."""
        self.news.set()
        self.news = trio.Event()

    def holds(self, uri: str) -> bool:
        """Whether a URI is its resource's, or of a part of it."""
        return uri == self.uri or uri.startswith(f"{self.uri.rstrip('/')}/")


class Watches:
    """All of them, by server."""

    def __init__(self) -> None:
        self._watches: dict[str, set[Watch]] = {}
        self._version = Cell(0)

    @property
    def version(self) -> int:
        """Grows whenever one comes or goes."""
        return self._version.value

    async def changed(self, version: int) -> None:
        """Wait until it is later than ``version``.

        Raises:
            trio.ClosedResourceError: the host closed.
        """
        await self._version.wait(lambda now: now > version)

    def add(self, server: str, uri: str) -> Watch:
        """A new one."""
        watch = Watch(server, uri)
        self._watches.setdefault(server, set()).add(watch)
        self._version.set(self._version.value + 1)
        return watch

    def remove(self, watch: Watch) -> None:
        """Nobody wants to hear of it any more."""
        watches = self._watches.get(watch.server, set())
        watches.discard(watch)
        if not watches:
            self._watches.pop(watch.server, None)
        if not watch.ended:
            self._version.set(self._version.value + 1)

    def uris(self, server: str) -> frozenset[str]:
        """What is to be told of a server."""
        return frozenset(watch.uri for watch in self._watches.get(server, ()))

    def fresh(self, server: str) -> frozenset[str]:
        """What is to be told of a server to somebody who was not answered yet."""
        return frozenset(watch.uri for watch in self._watches.get(server, ()) if not watch.generation)

    def followed(
        self, server: str, generation: int, teller: object, uris: frozenset[str], refused: Mapping[str, str]
    ) -> None:
        """A connection tells of these from now on, but for those that it refuses; what was before, nobody knows."""
        for watch in self._watches.get(server, ()):
            if watch.uri in uris:
                if watch.teller not in (None, teller) and watch.pending is None:
                    watch.pending = ResourceUpdate(server, watch.uri, generation, missed=True)
                watch.generation, watch.teller, watch.refused = generation, teller, refused.get(watch.uri)
                watch.tell()

    def updated(self, server: str, generation: int, uri: str, missed: bool = False) -> None:
        """A server says that a resource has changed; with ``missed`` it may have, and could not say so."""
        for watch in self._watches.get(server, ()):
            if watch.holds(uri) and not (missed and watch.pending is not None):
                watch.pending = ResourceUpdate(server, uri, generation, missed)
                watch.tell()

    def close(self) -> None:
        """End them all."""
        self._version.close()
        for watches in self._watches.values():
            for watch in watches:
                watch.ended = True
                watch.tell()
