"""What happened in a run, as a client of the host could see it, and what the scripted servers saw. Written by `play`."""

from __future__ import annotations

from typing import Any

from attrs import define, field, frozen

from ..host import Readiness
from ..model.snapshot import Snapshot
from .faults import Fault
from .plans import Op, Plan
from .strikes import Note

__all__ = ["REFUSED", "Asked", "Called", "History", "Seen"]

REFUSED = "is_error"
"""The outcome of a call whose answer is a result that says it is an error."""


@define
class Called:
    """One call.

    Args:
        number: its place in the plan's work; with 't' before it, the token that was sent along.
        op: as planned.
        at, end: trio clock seconds; ``end`` is None while it has not ended.
        outcome: ``ok``, ``cancelled``, `REFUSED`, or the name of the error's class; empty while it has not ended.
        detail: the error in words.
        reply: what was answered.
    """

    number: int
    op: Op
    at: float
    end: float | None = None
    outcome: str = ""
    detail: str = ""
    reply: Any = None


@define
class Asked:
    """One operation; fields as of `Called`, and the snapshot that it returned.

    Args:
        rows: how many rows had been added to the stored configuration by hand when it was asked.
    """

    number: int
    op: Op
    at: float
    end: float | None = None
    outcome: str = ""
    detail: str = ""
    snapshot: Snapshot | None = None
    rows: int = 0


@frozen
class Seen:
    """A snapshot that a reader of `Host.changes` was given, and when."""

    at: float
    snapshot: Snapshot


@define
class History:
    """A whole run.

    Args:
        plan: what was played.
        calls, asks: all of them, in the order begun.
        seen: what the reader of the changes saw.
        notes: what the servers saw.
        struck: the faults of core actors that did strike, with their times.
        healed_at: when the last fault was withdrawn; None: it did not come to that.
        converged_at: when all was well again after that, or None.
        readiness: what the host said of its servers then.
        unwell: server → why it was not well, when they did not converge.
        last_calls: one call to each enabled tool, after all was well.
        parting: calls, one to each ready server, that would hang for ever and are in flight when the host closes.
        last: the last snapshot.
        whys: (server, tool) → the verdict of `Host.why`, of the last snapshot.
        close_began, closed: when the host was told to close, and when it had.
        left: server → copies still alive after it closed.
        most_at_once: server → the most copies that were ever alive at one time.
        loads: how often the stored configuration was read.
    """

    plan: Plan
    calls: list[Called] = field(factory=list)
    asks: list[Asked] = field(factory=list)
    seen: list[Seen] = field(factory=list)
    notes: list[Note] = field(factory=list)
    struck: list[tuple[float, Fault]] = field(factory=list)
    healed_at: float | None = None
    converged_at: float | None = None
    readiness: Readiness | None = None
    unwell: dict[str, str] = field(factory=dict)
    last_calls: list[Called] = field(factory=list)
    parting: list[Called] = field(factory=list)
    last: Snapshot | None = None
    whys: dict[tuple[str, str], str] = field(factory=dict)
    close_began: float | None = None
    closed: float | None = None
    left: dict[str, int] = field(factory=dict)
    most_at_once: dict[str, int] = field(factory=dict)
    loads: int = 0

    def of(self, server: str) -> list[Note]:
        """The notes of one server."""
        return [note for note in self.notes if note.server == server]

    def timeline(self, server: str) -> list[tuple[Any, ...]]:
        """All that concerns one server before the heal, by time: what it saw, its phases, what its callers got.

        What happens at one instant has no order in it, as that would be chance.
        """
        until = self.plan.heal_at
        # What others have decides what of a server fits the budget: that is the budget's purpose.
        apart = {each.number for each in self.calls if each.op.what == "wire" and self.plan.budget is not None}
        tokens = {f"t{number}" for number in apart}
        happened: list[tuple[Any, ...]] = [
            (note.at, note.what, note.connection, note.detail)
            for note in self.of(server)
            if note.at < until and not (note.what in ("sent", "replied") and note.detail in tokens)
        ]
        happened += [
            (each.end or until, "call", each.number, each.outcome)
            for each in self.calls
            if each.op.server == server and (each.end is None or each.end < until) and each.number not in apart
        ]
        happened += [
            (each.end or until, "ask", each.number, each.outcome)
            for each in self.asks
            if each.op.server == server and (each.end is None or each.end < until)
        ]
        happened += [(at, "phase", 0, phase) for at, phase in self._phases(server) if at < until]
        return sorted(happened)

    def _phases(self, server: str) -> list[tuple[float, str]]:
        by_instant: dict[float, str] = {}
        for each in self.seen:
            state = each.snapshot.model.server(server)
            by_instant[each.at] = "absent" if state is None else state.phase
        changes: list[tuple[float, str]] = []
        for at, phase in by_instant.items():
            if not changes or changes[-1][1] != phase:
                changes.append((at, phase))
        return changes
