"""A host for the length of a verb: what happens in it is told with ``--verbose``, and a slow end is not a silent one."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio

from .. import open_host
from ..model.config import Config
from ..model.errors import UnknownServer
from ..model.plain import quoted
from .voice import Voice, detail, one_line, voice
from .waiting import working

if TYPE_CHECKING:
    from .. import Event, Gap
    from ..host import Host

__all__ = ["opened"]

_OURS = "playbill"
"""The logger above all of ours."""

_SHOWN = {
    *("ready", "closed", "connect_failed", "lost", "backing_off", "parked"),
    *("config_in_force", "config_refused", "over_budget", "within_budget", "call"),
}
"""Records of what a verb shows in its own way."""


@asynccontextmanager
async def opened(source: Config | Path | None, **options: Any) -> AsyncIterator[Host]:
    """Open a host as `open_host` does.

    With ``--verbose`` it is told what happens to the servers, and in the end all that those wrote on stderr that are not
    ready. Else only what is logged as a warning or worse, and not even that with ``--quiet``.

    Args:
        source, options: of `open_host`.
    """
    ending = trio.Event()
    with _logged(voice()):
        async with working(lambda: "stopping the servers", ending), open_host(source, **options) as host:
            try:
                async with _told(host):
                    yield host
            finally:
                ending.set()


@asynccontextmanager
async def _told(host: Host) -> AsyncIterator[None]:
    """Tell what happens in a host while the block runs, if a person wants to know."""
    if not voice().verbose:
        yield
        return
    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(_tell, host, host.events())
            yield
            nursery.cancel_scope.cancel()
    finally:
        for server in host.snapshot().model.servers:
            if server.phase != "ready":
                _tail(host, server.name)


def _tail(host: Host, name: str) -> None:
    """Show all that is kept of what a server wrote on stderr."""
    with suppress(UnknownServer):  # it is being removed
        for line in host.stderr_tail(name).splitlines():
            voice().say(f"{one_line(name)} | {one_line(line)}".rstrip())


async def _tell(host: Host, events: AsyncIterator[Event | Gap]) -> None:
    """Tell each event, those too that came before anybody listened. A checkpoint."""
    from .. import Gap

    told = 0
    early = [each for server in host.snapshot().model.servers for each in host.journal(server.name)]
    for event in sorted(early, key=lambda each: each.seq):
        detail(_words(event))
        told = event.seq
    async for each in events:
        if isinstance(each, Gap):
            detail(f"{each.missed} events were too fast to be told")
        elif each.seq > told:
            detail(_words(each))


def _words(event: Event) -> str:
    more = f": {event.detail}" if event.detail else ""
    return f"server {quoted(event.name)}: {event.kind.replace('_', ' ')}{more}"


class _Handler(logging.Handler):
    """Says what is logged in one line, without a traceback."""

    def __init__(self, said: Voice) -> None:
        super().__init__(logging.INFO if said.verbose else logging.ERROR if said.quiet else logging.WARNING)
        self._said = said

    def emit(self, record: logging.LogRecord) -> None:
        """Say it. A message that cannot be made is told as it was given; what happens to servers is told as it is shown."""
        if getattr(record, "event", None) in _SHOWN:
            return
        try:
            text = record.getMessage()
        except Exception:
            text = str(record.msg)
        self._said.say(f"playbill: {record.levelname.lower()}: {one_line(text)}")


@contextmanager
def _logged(said: Voice) -> Iterator[None]:
    """What our loggers tell goes where all else is said, for the length of the block."""
    logger, handler, level = logging.getLogger(_OURS), _Handler(said), logging.getLogger(_OURS).level
    logger.addHandler(handler)
    if said.verbose:
        logger.setLevel(logging.INFO)
    try:
        yield
    finally:
        logger.setLevel(level)
        logger.removeHandler(handler)
