"""What state a server is in, from its entry and its status: phase, error, and how fresh its list is.

Two values meet here: what the configuration wants (the entry) and what is (the supervisor's lifecycle and the actor's
report). A report of another generation than the lifecycle's speaks of an incarnation that is gone; it is dropped.

    the entry says                        →  phase
    disabled                              →  stopping while its child still stops, else disabled
    wrong                                 →  invalid, whoever wrote it: nobody can approve what cannot be read
    not trusted                           →  untrusted
    (else it is meant to run)
    the report says needs_auth            →  needs_auth
    lifecycle: none, starting             →  starting (on probation: parked)
               running                    →  ready when the report says connected and ready, else as starting; starting
                                             too when it says ready alone: it was, and has been lost
               backing_off, parked        →  the same
               stopping                   →  starting: a restart or a replacement waits behind it
"""

from __future__ import annotations

from .config import ServerEntry
from .snapshot import Phase
from .status import ListState, Report, ServerStatus

__all__ = [
    "DOWN_PHASES",
    "WORDS",
    "error_of",
    "list_state_of",
    "live_report",
    "offers_state_of",
    "phase_of",
    "predicate",
]

DOWN_PHASES: frozenset[Phase] = frozenset({"parked", "needs_auth", "disabled", "untrusted", "invalid", "stopping"})
"""Phases in which no tool of the server is on the wire.

``stopping`` is shown only of a disabled server whose child has not ended yet. It belongs here: otherwise the tools of a
server that is being disabled would leave the catalog, come back while it drains, and leave again.
"""

WORDS: dict[Phase, str] = {
    "disabled": "disabled",
    "untrusted": "untrusted",
    "invalid": "invalid",
    "needs_auth": "needs login",
    "starting": "starting",
    "ready": "ready",
    "backing_off": "backing off",
    "parked": "parked",
    "stopping": "stopping",
}
"""What a person reads for a phase, everywhere: in the picker, in `why`, in tables and in what is told of changes."""


def predicate(phase: Phase) -> str:
    """What a sentence says of a server: ``is backing off``, ``needs login``."""
    words = WORDS[phase]
    return words if words.startswith("needs ") else f"is {words}"


def live_report(status: ServerStatus) -> Report | None:
    """The report, if it is of the incarnation that the lifecycle speaks of, and that one is not being stopped."""
    life, report = status.lifecycle, status.report
    if life is None or report is None or report.generation != life.generation or life.stage == "stopping":
        return None
    return report


def phase_of(entry: ServerEntry, status: ServerStatus) -> Phase:
    """The phase of a server, by the table at the top.

    Args:
        entry: as configured.
        status: what is known of it; an empty one when nothing is.
    """
    stage = None if status.lifecycle is None else status.lifecycle.stage
    if entry.disabled:
        return "stopping" if stage == "stopping" else "disabled"
    if entry.error is not None:
        return "invalid"
    if not entry.trusted:
        return "untrusted"
    report = live_report(status)
    if report is not None and report.needs_auth:
        return "needs_auth"
    if stage == "running" and report is not None and report.connected and report.ready:
        return "ready"
    if stage == "backing_off" or stage == "parked":
        return stage
    if status.lifecycle is not None and status.lifecycle.probation and not (report is not None and report.ready):
        # Else its tools would come back for the time of each slow retry, and reshuffle the catalog.
        return "parked"
    return "starting"


def error_of(phase: Phase, entry: ServerEntry, status: ServerStatus) -> str | None:
    """Why a server is not connected, in one line; None when it is, or while its first attempt goes on.

    Args:
        phase: from `phase_of`.
        entry, status: as there.
    """
    if entry.error is not None:
        return entry.error
    life, report = status.lifecycle, live_report(status)
    if life is None or (report is not None and report.connected):
        return None
    if life.first and phase == "starting":
        return None
    if report is not None and report.error is not None:
        return report.error
    return life.error


def list_state_of(status: ServerStatus) -> ListState:
    """How fresh the tool list is: ``current`` only from the live incarnation, when its newest listing did not fail."""
    if status.tools is None:
        return "none"
    report = live_report(status)
    if report is None or not report.connected or report.list_error is not None:
        return "stale"
    return "current" if status.tools_generation == report.generation else "stale"


def offers_state_of(status: ServerStatus, generation: int, error: str | None) -> ListState:
    """As `list_state_of`, of a list of resources or prompts.

    Args:
        status: of the server.
        generation: of the incarnation that gave the list; 0: there has been none.
        error: why the newest listing failed.
    """
    if not generation:
        return "none"
    report = live_report(status)
    connected = report is not None and report.connected and generation == report.generation
    return "current" if connected and error is None else "stale"
