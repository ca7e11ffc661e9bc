"""The callboard: the latest value of everything the cast has to say, kept outside every actor.

Theory of operation
    Three tables, each with one writer: ``config`` (the coordinator), per server the supervisor's `Lifecycle` joined with
    the server actor's `Report` and last good list, and per server the open `Line` that calls go through (the server actor).
    Values are replaced, never changed, and whoever restarts reads back what was last said: a crash of an actor loses
    nothing that is written here. Each change grows `version`; who wants to know waits for a later one. Latest values are
    conflated: nobody is told of what was already replaced. ``seen`` is what the newest snapshot was projected from (the
    projector's; at first the house's). The profiles that views are made for are here too, so that server actors judge a new
    list for them before it is published; whoever drops a view need not say so.

    A report is believed only of the generation that the lifecycle is at, so that the last words of a replaced
    incarnation change nothing.
"""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any
from weakref import WeakKeyDictionary

from ..supervision import Cell
from .line import Line
from .model.changing import changer
from .model.config import ConfigState
from .model.offers import Offers
from .model.profile import Profile
from .model.seen import Seen
from .model.status import Lifecycle, Report, ServerStatus, ToolDef
from .ports import Opening
from .watches import Watches

__all__ = ["Board"]

_NOTHING = ServerStatus()

_status, _report, _offers = changer(ServerStatus), changer(Report), changer(Offers)

PROFILES_AHEAD = 15
"""Profiles of views that lists are judged for beforehand; with the host's own as many as a definition remembers."""


class Board:
    """The tables that coordinator, server actors, projector and calls meet through.

    Args:
        config: the first configuration.
    """

    def __init__(self, config: ConfigState) -> None:
        self.config = config
        self.statuses: dict[str, ServerStatus] = {}
        self.lines: dict[str, Line] = {}
        self.openings: dict[str, Opening] = {}
        self.notices: dict[str, str] = {}
        self.seen: Seen | None = None
        self.watches = Watches()
        self._viewers: WeakKeyDictionary[object, Profile] = WeakKeyDictionary()
        self._changed = Cell(0)
        self._projected = Cell(-1)

    @property
    def version(self) -> int:
        """Grows with each change of any table."""
        return self._changed.value

    def _touch(self) -> None:
        self._changed.set(self._changed.value + 1)

    # The coordinator's table.

    def set_config(self, state: ConfigState) -> None:
        """Store the configuration in force and forget all that was known of servers it no longer names."""
        self.config = state
        for name in [name for name in self.statuses if state.config.get(name) is None]:
            del self.statuses[name]
        self._touch()

    # The supervisor's and the server actors' table.

    def status(self, name: str) -> ServerStatus:
        """What is known of a server; an empty status when nothing is."""
        return self.statuses.get(name, _NOTHING)

    def set_lifecycle(self, name: str, lifecycle: Lifecycle | None) -> None:
        """Store the supervisor's word; None: it has no such child any more. Ignored for a name not configured."""
        if self.config.config.get(name) is None:
            return
        self._put(name, _status(self.status(name), lifecycle=lifecycle))

    def report(self, name: str, report: Report, tools: tuple[ToolDef, ...] | None = None) -> None:
        """Store a server actor's word.

        Args:
            name: the server.
            report: what it says; ignored when its generation is not the one that the lifecycle is at, or that is being stopped.
            tools: a list that has just come in; None keeps the last good one.
        """
        status = self.status(name)
        life = status.lifecycle
        if life is None or life.generation != report.generation or life.stage == "stopping":
            return
        before = status.report
        if before is not None:
            tail = report.stderr_tail or before.stderr_tail
            info = before.info if report.info is None else report.info
            if tail is not report.stderr_tail or info is not report.info:
                report = _report(report, stderr_tail=tail, info=info)
        if tools is None:
            self._put(name, _status(status, report=report))
            return
        # The same list again stays the same object: the projection's memo goes by identity first.
        kept = status.tools if tools == status.tools else tools
        self._put(name, _status(status, report=report, tools=kept, tools_generation=report.generation))

    def offer(self, name: str, generation: int, **said: Any) -> None:
        """Store what a server actor says of resources or prompts.

        Args:
            name: the server.
            generation: ignored when it is not the one that the lifecycle is at, or that is being stopped.
            said: fields of `Offers`; the others stay.
        """
        status = self.status(name)
        life = status.lifecycle
        if life is not None and life.generation == generation and life.stage != "stopping":
            self._put(name, _status(status, offers=_offers(status.offers, **said)))

    def _put(self, name: str, status: ServerStatus) -> None:
        if status != self.statuses.get(name):
            self.statuses[name] = status
            self._touch()

    # What ails the host itself.

    def set_notice(self, about: str, text: str | None) -> None:
        """Say in one line what is wrong with a part of the host; None: nothing any more."""
        if text == self.notices.get(about):
            return
        if text is None:
            del self.notices[about]
        else:
            self.notices[about] = text
        self._touch()

    # The lines.

    def open_line(self, line: Line) -> None:
        """Let calls through to a server that is ready."""
        self.lines[line.server] = line
        self._touch()

    def close_line(self, line: Line) -> None:
        """No more calls through this line; another incarnation's line is left alone."""
        if self.lines.get(line.server) is line:
            del self.lines[line.server]
            self._touch()

    def set_opening(self, name: str, opening: Opening | None, before: Opening | None = None) -> None:
        """Say whose process a server is, for its stderr; None, and only if it is still ``before``: nobody's any more."""
        if opening is not None:
            self.openings[name] = opening
        elif self.openings.get(name) is before:
            del self.openings[name]

    # The profiles of views.

    def view_for(self, viewer: object, profile: Profile) -> None:
        """Say that lists will be read for a profile, for as long as the viewer lives."""
        self._viewers[viewer] = profile

    def profiles(self, own: Profile) -> tuple[Profile, ...]:
        """What new lists are judged for: the host's own profile, and those of living views, at most `PROFILES_AHEAD`."""
        others = [profile for profile in dict.fromkeys(self._viewers.values()) if profile != own]
        return (own, *others[:PROFILES_AHEAD])

    # The readers.

    async def changed(self, version: int) -> None:
        """Wait until the board is later than ``version``.

        Raises:
            trio.ClosedResourceError: the host closed.
        """
        await self._changed.wait(lambda now: now > version)

    def changes(self) -> AsyncIterator[int]:
        """The version now, then each later one, conflated. Ends when the host closes."""
        return self._changed.changes()

    def mark_projected(self, version: int) -> None:
        """Say that all up to ``version`` is in the published snapshot (the projector)."""
        if version > self._projected.value:
            self._projected.set(version)

    async def projected(self, version: int) -> None:
        """Wait until the board as it was at ``version`` is published.

        Raises:
            trio.ClosedResourceError: the host closed.
        """
        await self._projected.wait(lambda seen: seen >= version)

    def close(self) -> None:
        """End all waiting; what is written stays readable."""
        self._changed.close()
        self._projected.close()
        self.watches.close()
