"""Servers coming and going: connects as spans, sessions as durations, and what the supervisor decides as records.

Theory of operation. A connect is a span of its own, the root of a trace: it belongs to no caller, though one may have asked for
it or wait for it. It is linked to the connect before it, so that the lives of one server can be followed backwards. It ends
when the first list is in; from then on nothing is current in the actor's task, and what it asks later is each its own trace.
"""

from __future__ import annotations

import logging
from types import TracebackType
from typing import TYPE_CHECKING

import trio

from ..model.plain import label
from . import names
from .log import Log
from .notes import INTERNAL, Note, record

if TYPE_CHECKING:
    from opentelemetry.trace import SpanContext

    from ..model.status import Lifecycle

__all__ = ["Connects", "Incarnate", "decided", "over_budget"]

_LOG = Log("playbill.server")
_CATALOG = Log("playbill.catalog")


class Connects:
    """The connects of one server, each with a link to the one before."""

    def __init__(self) -> None:
        self.before: SpanContext | None = None

    def incarnate(self, server: str, generation: int) -> Incarnate:
        """One connection, from its being opened to its end; to be entered in the task that opens it.

        Args:
            server: its name.
            generation: of the incarnation.
        """
        return Incarnate(self, server, generation)


class Incarnate:
    """One connection. See `Connects.incarnate`."""

    def __init__(self, of: Connects, server: str, generation: int) -> None:
        self._of = of
        self._server = server
        self._generation = generation
        attributes: dict[str, names.Value] = {names.SERVER: label(server), names.GENERATION: generation}
        name = names.span_name("playbill.connect", server)
        self._note = Note(name, attributes, kind=INTERNAL, root=True, link=of.before)
        self._ready_at: float | None = None

    def __enter__(self) -> Incarnate:
        self._note.__enter__()
        self._of.before = self._note.span_context or self._of.before
        return self

    def ready(self, tools: int, protocol_version: str | None) -> None:
        """It is connected, and its first list is in.

        Args:
            tools: how many are on it.
            protocol_version: as negotiated.
        """
        self._note.put(names.TOOLS, tools)
        self._note.put(names.PROTOCOL, protocol_version)
        self._note.end()
        self._ready_at = trio.current_time()
        _LOG.info(
            "server %s is ready with %d tools after %.3f s",
            label(self._server),
            tools,
            self._note.seconds,
            event="ready",
            server=self._server,
            phase="ready",
            generation=self._generation,
            tools=tools,
            protocol_version=protocol_version,
            seconds=self._note.seconds,
        )

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._ready_at is None:
            if error is None:  # asked to stop before it was ready
                self._note.fail("cancelled")
            self._note.end(error)
            if error is not None:
                self._tell("connect_failed", "server %s cannot be connected to: %s", error, self._note.seconds)
            return
        seconds = trio.current_time() - self._ready_at
        ended = None if error is None else names.error_type(error)
        record(names.SESSION_DURATION, seconds, self._note.attributes, ended)
        if error is None:
            _LOG.info(
                "server %s is closed after %.3f s",
                label(self._server),
                seconds,
                event="closed",
                server=self._server,
                generation=self._generation,
                seconds=seconds,
            )
        else:
            self._tell("lost", "server %s was lost: %s", error, seconds)

    def _tell(self, event: str, words: str, error: BaseException, seconds: float) -> None:
        kind = names.error_type(error)
        if kind == "cancelled":
            return
        renewed = kind == "session_ended"  # it is opened anew at once
        if not _LOG.enabled(logging.INFO if renewed else logging.WARNING):
            return
        reason = names.error_words(error) or kind
        tell = _LOG.info if renewed else _LOG.warning
        tell(
            words,
            label(self._server),
            reason,
            event=event,
            server=self._server,
            phase="needs_auth" if kind == "needs_auth" else None,
            generation=self._generation,
            error_type=kind,
            reason=reason,
            seconds=seconds,
        )


def decided(server: str, lifecycle: Lifecycle, now: float) -> None:
    """The supervisor has come to a decision on a server that died.

    Args:
        server: its name.
        lifecycle: ``backing_off`` or ``parked``; else nothing is said.
        now: trio clock time.
    """
    backing_off = lifecycle.stage == "backing_off"
    if not backing_off and lifecycle.stage != "parked":
        return
    tell, level = (_LOG.info, logging.INFO) if backing_off else (_LOG.error, logging.ERROR)
    if not _LOG.enabled(level):
        return  # masking takes longer than all the rest
    again = None if lifecycle.next_retry_at is None else max(0.0, lifecycle.next_retry_at - now)
    when = "only when it is asked for" if again is None else f"in {again:.1f} s"
    words = "server %s is parked after %d restarts, and tried again %s: %s"
    if backing_off:
        words = "server %s is restarted, for the %d. time, %s: %s"
    reason = names.safe_words(lifecycle.error or "unknown")
    tell(
        words,
        label(server),
        lifecycle.restarts + backing_off,
        when,
        reason,
        event=lifecycle.stage,
        server=server,
        phase=lifecycle.stage,
        generation=lifecycle.generation,
        attempt=None if lifecycle.attempt is None else lifecycle.attempt[0],
        attempts_allowed=None if lifecycle.attempt is None else lifecycle.attempt[1],
        retry_in=again,
        reason=reason,
    )


def over_budget(warning: str | None, budget: int | None, wanted: int, trimmed: int) -> None:
    """The catalog has begun to exceed its budget, or (no warning) does so no longer."""
    tell = _CATALOG.info if warning is None else _CATALOG.warning
    tell(
        "%s",
        warning or "the catalog is within its budget again",
        event="within_budget" if warning is None else "over_budget",
        budget=budget,
        wanted=wanted,
        trimmed=trimmed,
    )
