"""What must hold of calls whose HTTP response was struck: rules of the oracle for runs over HTTP.

A refusal, or an answer that is none, costs its call and nothing else; what breaks the connection ends all calls; a login that
is wanted is no crash. And whoever no longer waits for a response has closed it: that call holds no connection.
"""

from __future__ import annotations

from collections.abc import Iterator

from .history import REFUSED, Called, History
from .strikes import Note

__all__ = ["ANEW", "FATES", "REFUSALS", "UNLIKE", "misled"]

_REFUSED, _DIED, _LATE = frozenset({REFUSED}), frozenset({"ServerDied"}), frozenset({"CallTimeout"})
_OK = frozenset({"ok"})

FATES: dict[str, frozenset[str]] = {
    **dict.fromkeys(("reset", "closed", "crash", "down", "flaky", "cut"), _DIED),
    **dict.fromkeys(("hang", "stall"), _LATE),
    **dict.fromkeys(("slice", "bandwidth", "latency", "jitter"), _OK | _LATE),
    **dict.fromkeys(("status", "throttled", "forbidden", "redirect", "accepted", "html"), _REFUSED),
    **dict.fromkeys(("garbage_frame", "long_frame", "cut_stream", "end_stream"), _REFUSED),
    "duplicate_frame": _OK,
    "unauthorized": frozenset({"ServerUnavailable"}),
    "session_lost": _DIED | _REFUSED,
}
"""The kind that struck a call → what its caller gets. A session that is lost is none in 2026-07-28, and the 404 a refusal."""

REFUSALS = frozenset(kind for kind, fates in FATES.items() if REFUSED in fates)
"""The kinds that cost one call."""

ANEW = frozenset({"crash", "down", "flaky", "session_lost"})
"""The kinds after which a session may be opened anew at once, for which calls wait."""

UNLIKE = ANEW | {"throttled", "unauthorized", "forbidden"}
"""The kinds after which a server is not started again by the ordinary rules: at once, when it says, or not at all."""


def misled(history: History) -> Iterator[str]:
    """What was wrong, one line each; nothing of a run that was not over HTTP."""
    if history.plan.level != "http":
        return
    calls = {f"t{call.number}": call for call in history.calls}
    for note in history.notes:
        if note.what == "struck":
            token, kind = note.detail.split()
            if token in calls:
                yield from _fate(history, note, kind, calls[token])
    yield from _needless(history)
    yield from _kept(history, calls)


def _fate(history: History, struck: Note, kind: str, call: Called) -> Iterator[str]:
    if call.end is None or call.outcome in ("cancelled", *FATES[kind]):
        return
    plan, server = history.plan, call.op.server
    if call.outcome == "CallTimeout" and kind in ("cut_stream", "end_stream", *ANEW):
        return  # whether the server is well is asked first; a new session may be waited for
    others = [
        note
        for note in history.of(server)
        if note.what == "fault" and call.at <= note.at <= call.end and note.detail.split()[1] != kind
    ]
    if server in plan.disturbed() or others or history.struck:
        return
    yield f"call {call.number} to {server}, struck by {kind} at {struck.at:g}, ended with {call.outcome} {call.detail}"


def _needless(history: History) -> Iterator[str]:
    """Connections that were lost, though nothing but single answers had gone wrong in them."""
    mild = {f"call_reply {kind}" for kind, fates in FATES.items() if fates <= _REFUSED | _OK | _LATE}
    for note in history.notes:
        if note.what != "lost" or history.struck:
            continue
        faults = [
            each.detail
            for each in history.of(note.server)
            if each.what == "fault" and each.at <= note.at and each.connection == note.connection
        ]
        earlier = any(f.server == note.server and f.kind in ANEW for f in history.plan.faults)
        if set(faults) <= mild and not earlier:
            yield f"{note.server} was lost at {note.at:g} ({note.detail}), though no more than {sorted(set(faults))} had struck"


def _kept(history: History, calls: dict[str, Called]) -> Iterator[str]:
    """Calls that ended before their response, which was not closed then."""
    left: dict[str, float] = {}
    for note in history.notes:
        if note.what == "left":
            left.setdefault(note.detail, note.at)
    for note in history.notes:
        token = note.detail.split()[0] if note.what == "struck" else ""
        call = calls.get(token)
        if call is None or call.end is None or not note.detail.endswith((" hang", " stall")):
            continue
        if left.get(token, float("inf")) > call.end:
            yield f"call {call.number} to {call.op.server} ended at {call.end:g}, and its response was not closed then"
