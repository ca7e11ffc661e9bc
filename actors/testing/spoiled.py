"""What must hold of calls whose bytes were spoiled, or cut off: rules of the oracle for runs on the wire.

What comes twice, in pieces, or with lines in between that are no messages, is answered all the same. And a server that reads
no more is found out by the next thing that is said to it.
"""

from __future__ import annotations

from collections.abc import Iterator

from .faults import NOISE
from .history import History

__all__ = ["DAWDLE", "FOUND_OUT", "HARMLESS", "unanswered"]

HARMLESS = frozenset({"slice", "duplicate_frame", *NOISE}) - {"glued_line"}
"""The kinds that cost no more than time; half a line costs the line that it is glued to."""

DAWDLE = 1.0
"""Virtual seconds that an answer in pieces may take longer."""

FOUND_OUT = 0.25
"""Virtual seconds from a write that fails to the loss of the connection: what a server still says is read first."""


def unanswered(history: History) -> Iterator[str]:
    """What was wrong, one line each; nothing of a run that was not on the wire."""
    if history.plan.level != "wire":
        return
    yield from _harmless(history)
    yield from _deaf(history)


def _harmless(history: History) -> Iterator[str]:
    """Calls to servers that nothing worse than that had happened to by then."""
    plan = history.plan
    core = min((at for at, _ in history.struck), default=float("inf"))
    for server in plan.servers:
        if server.name in plan.disturbed():
            continue
        faults = [note for note in history.of(server.name) if note.what == "fault"]
        harm = min((note.at for note in faults if note.detail.split()[1] not in HARMLESS), default=core)
        switched = any(op.server == server.name and op.what in ("off", "on") for op in plan.work)
        for call in history.calls:
            due = max(call.at, server.connect + DAWDLE) + server.call + DAWDLE
            if call.op.server != server.name or call.op.what != "call" or due > call.at + call.op.timeout:
                continue
            if call.end is None or call.end >= min(harm, core) or call.outcome in ("ok", "cancelled"):
                continue
            if not (switched and call.outcome == "ToolNotOffered"):
                kinds = sorted({note.detail for note in faults if note.at <= call.end})
                yield (
                    f"call {call.number} to {server.name}, which nothing worse than {kinds} had happened to, ended with "
                    f"{call.outcome} {call.detail}"
                )


def _deaf(history: History) -> Iterator[str]:
    """Calls to servers that had closed their stdin, in connections that were not known to be lost."""
    for note in history.notes:
        if note.what != "deaf" or note.server in history.plan.disturbed():  # being stopped, it is told nothing more
            continue
        over = min(
            (
                other.at
                for other in history.of(note.server)
                if other.connection == note.connection and other.what in ("lost", "end")
            ),
            default=float("inf"),
        )
        for call in history.calls:
            if call.op.server != note.server or not note.at < call.at < over or call.end is None:
                continue
            if call.outcome in ("ok", "CallTimeout") and call.end > call.at + FOUND_OUT:
                yield (
                    f"call {call.number} to {call.op.server}, which had closed its stdin at {note.at:g}, ended with "
                    f"{call.outcome} after {call.end - call.at:g} s"
                )
