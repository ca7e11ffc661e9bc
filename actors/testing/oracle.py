"""The judge of a run: a small model of what a host must do, held against what its client and its servers saw.

Theory of operation
    Nothing here looks into the host. Each rule is a function from a `History` to `Violation` values, and says which of the
    design's invariants it stands for:

    1 every call and every operation ends exactly once, by its deadline, at the instant it must
    2 snapshots only grow, and all readings of one agree
    3 a tool list is what was advertised; no tool vanishes
    4 what was switched last is what holds
    5 a toggle stops and starts nothing
    6 no reload and no edit by hand is lost; concurrent reloads are coalesced
    7 one server cannot hurt another: its timeline is the same with and without the others' faults (`compare`)
    8 a crash of a core actor reconnects nobody and loses nothing
    9 after closing nothing is left, and it took no longer than it may
    0 restarts: when each one comes, and when a server is parked (`restarts`, a model of its own)

    What holds on the wire only is in `spoiled`, what holds over HTTP only in `http_rules`.

    A violation of kind ``liveness`` is something that did not come to its end; all others are of kind ``correctness``.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from itertools import pairwise
from typing import Literal

from attrs import frozen

from .history import REFUSED, Asked, Called, History
from .http_rules import ANEW, REFUSALS, UNLIKE, misled
from .play import is_ours
from .restarts import restart_times, too_near
from .spoiled import unanswered

__all__ = ["Violation", "compare", "judge"]

CLOSE = 10.0
"""Virtual seconds that closing may take, besides servers that refuse to die."""

ANSWER = 12.0
"""Virtual seconds within which an operation must be answered, whatever struck the core actors."""


@frozen
class Violation:
    """A rule that a run broke.

    Args:
        kind: what sort of failure it is.
        invariant: of the design, by number; 0 for the rules of restarting.
        text: what was expected and what was seen, in one line.
    """

    kind: Literal["liveness", "correctness"]
    invariant: int
    text: str

    def __str__(self) -> str:
        return f"{self.kind}, invariant {self.invariant}: {self.text}"


def _wrong(invariant: int, text: str) -> Violation:
    return Violation("correctness", invariant, text)


def _stuck(invariant: int, text: str) -> Violation:
    return Violation("liveness", invariant, text)


def judge(history: History) -> list[Violation]:
    """All that was wrong in a run."""
    rules = (
        _calls,
        _operations,
        _registers,
        _snapshots,
        _losses,
        _lists,
        _processes,
        _parting,
        _loads,
        _convergence,
        restarts,
    )
    return [violation for rule in rules for violation in rule(history)]


def compare(with_faults: History, without: History) -> list[Violation]:
    """Hold the timelines of the servers that nothing happened to against those of a run in which nothing happened at all."""
    found = []
    for server in [each.name for each in with_faults.plan.servers]:
        if server in with_faults.plan.struck():
            continue
        seen, expected = with_faults.timeline(server), without.timeline(server)
        if seen != expected:
            at = next((n for n, (a, b) in enumerate(zip(seen, expected, strict=False)) if a != b), len(expected))
            first = seen[at] if at < len(seen) else "nothing more"
            other = expected[at] if at < len(expected) else "nothing more"
            found.append(_wrong(7, f"{server} was not struck, but had {first} where it has {other} without the faults"))
    return found


# Calls.


def _calls(history: History) -> Iterator[Violation]:
    lost = {(note.at, note.server) for note in history.notes if note.what in ("lost", "end")}
    sent = {note.detail: note for note in history.notes if note.what == "sent"}
    losses = {(note.server, note.connection): note.at for note in history.notes if note.what == "lost"}
    for call in (*history.calls, *history.last_calls):
        who = f"call {call.number} to {call.op.server}/{call.op.tool}"
        if call.end is None:
            yield _stuck(1, f"{who} never ended; its deadline was {call.op.timeout:g} s after {call.at:g}")
            continue
        if call.end > call.at + call.op.timeout:
            yield _wrong(
                1, f"{who} ended {call.end - call.at:g} s after it began; its deadline was {call.op.timeout:g} s"
            )
        yield from _outcome(history, call, who)
        if call.outcome == "ServerDied" and (call.end, call.op.server) not in lost:
            yield _wrong(1, f"{who} was told at {call.end:g} of a death that did not happen then")
        arrived = sent.get(f"t{call.number}")
        gone = None if arrived is None else losses.get((arrived.server, arrived.connection))
        if arrived is not None and gone is not None and arrived.at <= gone < call.end:
            yield _wrong(1, f"{who} ended at {call.end:g}, though its server had died at {gone:g}")
    yield from _exact_calls(history)
    for text in unanswered(history):
        yield _wrong(1, text)
    for text in misled(history):
        yield _wrong(1, text)
    yield from _refusals(history)


def _outcome(history: History, call: Called, who: str) -> Iterator[Violation]:
    if call.outcome == "ok":
        if call.reply != {"tool": call.op.tool, "token": f"t{call.number}"}:
            yield _wrong(1, f"{who} was answered {call.reply!r}, which is another's answer")
    elif call.outcome == "CallTimeout":
        if call.end != call.at + call.op.timeout:
            yield _wrong(1, f"{who} timed out at {call.end}, not at its deadline {call.at + call.op.timeout}")
    elif call.outcome == REFUSED:
        # Only an answer whose bytes were spoiled cannot be read, and then that is said.
        spoiled = {"garbage_frame", "long_frame", *REFUSALS}
        if not any(fault.server == call.op.server and fault.kind in spoiled for fault in history.plan.faults):
            yield _wrong(1, f"{who} was answered by an error that nobody made: {call.detail}")
    elif call.outcome != "cancelled" and not is_ours(call.outcome):
        yield _wrong(1, f"{who} ended with {call.outcome}, which may not leave a host: {call.detail}")
    if call in history.last_calls and call.outcome != "ok":
        yield _stuck(7, f"{who}, after all was well again, ended with {call.outcome}: {call.detail}")


def _exact_calls(history: History) -> Iterator[Violation]:
    """A call to a tool of a server that nothing happens to and that nobody touches: what it gets, and when, is known."""
    plan = history.plan
    touched = plan.disturbed() | plan.struck() | {op.server for op in plan.work if op.what in ("off", "on")}
    if any(fault.site == "coordinator" or fault.site == "mailbox" for fault in plan.faults):
        # The coordinator hands the servers over: what delays it at the beginning delays all of them.
        return
    for server in plan.servers:
        if server.name in touched:
            continue
        for call in history.calls:
            if (
                call.op.server != server.name
                or call.op.what != "call"
                or call.outcome == "cancelled"
                or call.end is None
            ):
                continue
            due = max(call.at, server.connect) + server.call
            late = due > call.at + call.op.timeout
            expected = "CallTimeout" if late else "ok"
            if due == call.at + call.op.timeout:
                continue
            if call.outcome != expected or (not late and abs(call.end - due) > 1e-9):
                yield _wrong(
                    7,
                    f"call {call.number} to {server.name}, which nothing happens to, should end at {due:g} with {expected}; "
                    f"it ended at {call.end:g} with {call.outcome} {call.detail}",
                )


def _refusals(history: History) -> Iterator[Violation]:
    """A call to a server that has died and is not ready again ends at once, as only a first start is waited for."""
    plan = history.plan
    revived = {op.server for op in plan.work if op.what == "revive"}
    for server in plan.servers:
        if server.name in plan.disturbed() | revived | _struck(history, ANEW):
            continue
        for begin, end in _downs(history, server.name):
            for call in history.calls:
                inside = call.op.server == server.name and begin < call.at < min(end, plan.heal_at)
                if inside and call.op.what == "call" and call.end is not None and call.end != call.at:
                    yield _wrong(
                        1,
                        f"call {call.number} to {server.name}, which had died at {begin:g}, ended {call.end - call.at:g} s "
                        f"after it began with {call.outcome}",
                    )


def _struck(history: History, kinds: frozenset[str]) -> frozenset[str]:
    """The servers that have a fault of these kinds, of a run over HTTP."""
    if history.plan.level != "http":
        return frozenset()
    return frozenset(fault.server for fault in history.plan.faults if fault.kind in kinds)


def _downs(history: History, server: str) -> Iterator[tuple[float, float]]:
    """From each death of a server to the first list of its next life."""
    began: float | None = None
    for note in history.of(server):
        if note.what in ("lost", "end") and began is None:
            began = note.at
        elif note.what == "listed" and began is not None:
            yield began, note.at
            began = None
    if began is not None:
        yield began, float("inf")


# Operations.


def _operations(history: History) -> Iterator[Violation]:
    for ask in history.asks:
        who = f"operation {ask.number} ({ask.op.what} {ask.op.server} {ask.op.tool}".rstrip() + ")"
        if ask.end is None:
            yield _stuck(1, f"{who} never ended")
        elif ask.outcome == "OperationTimeout" or ask.end > ask.at + ANSWER:
            yield _stuck(1, f"{who} was not answered within {ANSWER:g} s: {ask.outcome} {ask.detail}")
        elif ask.outcome != "ok" and not is_ours(ask.outcome):
            yield _wrong(1, f"{who} ended with {ask.outcome}, which may not leave a host: {ask.detail}")
        elif ask.outcome not in _MAY.get(ask.op.what, frozenset({"ok"})):
            yield _wrong(1, f"{who} ended with {ask.outcome}: {ask.detail}")
        if ask.snapshot is not None:
            yield from _shown(history, ask, who)


_UNAVAILABLE = frozenset({"ok", "ServerUnavailable"})
_MAY = {
    "restart": _UNAVAILABLE,
    "revive": _UNAVAILABLE,
    "remove": frozenset({"ok", "UnknownServer"}),
    "add": frozenset({"ok", "ServerExists"}),
    # A tool that only a faulty list had may be gone again.
    "off": frozenset({"ok", "UnknownTool"}),
    "on": frozenset({"ok", "UnknownTool"}),
    "pin": frozenset({"ok", "UnknownTool"}),
    "unpin": frozenset({"ok", "UnknownTool"}),
}
"""What an operation may end with; ``ok`` when it is not here."""


def _shown(history: History, ask: Asked, who: str) -> Iterator[Violation]:
    """The snapshot that an operation returns shows its effect."""
    assert ask.snapshot is not None
    model, op = ask.snapshot.model, ask.op
    if op.what in ("reload", "note"):
        missing = [f"note{n}" for n in range(ask.rows) if model.server(f"note{n}") is None]
        if missing:
            yield _wrong(6, f"{who} returned a snapshot without {missing}, which stood in the configuration before it")
        return
    if any(_overlap(ask, other) for other in history.asks if other is not ask and _same(ask, other)):
        return
    state = model.server(op.server)
    if op.what == "remove" and state is not None:
        yield _wrong(4, f"{who} returned a snapshot that still has the server")
    elif op.what == "add" and state is None:
        yield _wrong(4, f"{who} returned a snapshot without the server")
    elif op.what in ("off", "on"):
        tool = model.tool(op.server, op.tool)
        if tool is not None and tool.enabled != (op.what == "on"):
            yield _wrong(4, f"{who} returned a snapshot in which the tool is {'on' if tool.enabled else 'off'}")
        if tool is None and op.what == "off":
            yield _wrong(3, f"{who} returned a snapshot without the tool")
    elif op.what in ("disable", "enable") and state is not None:
        off = state.phase in ("disabled", "stopping")
        if off != (op.what == "disable"):
            yield _wrong(4, f"{who} returned a snapshot in which the server is {state.phase}")


def _same(one: Asked, other: Asked) -> bool:
    """Whether two operations write the same thing; a replaced entry has all its switches as new."""
    if one.op.server != other.op.server:
        return False
    if one.op.what in ("off", "on") and other.op.what in ("off", "on"):
        return one.op.tool == other.op.tool
    groups = ({"off", "on", "replace"}, {"disable", "enable", "replace"}, {"add", "remove"})
    return any(one.op.what in group and other.op.what in group for group in groups)


def _overlap(one: Asked, other: Asked) -> bool:
    last = float("inf")
    return one.at <= (last if other.end is None else other.end) and other.at <= (last if one.end is None else one.end)


def _registers(history: History) -> Iterator[Violation]:
    """Each switch ends as an operation left it that no later one followed (a register, linearizable)."""
    if history.last is None:
        return
    for ask in history.asks:
        others = [other for other in history.asks if other is not ask and _same(ask, other)]
        if ask.op.what not in ("off", "on", "add", "remove") or ask.outcome != "ok" or ask.end is None:
            continue
        if any(other.end is None or other.end >= ask.at for other in others):
            continue
        who = f"operation {ask.number} ({ask.op.what} {ask.op.server} {ask.op.tool})"
        there = history.last.model.server(ask.op.server) is not None
        tool = history.last.model.tool(ask.op.server, ask.op.tool)
        if ask.op.what in ("add", "remove") and there != (ask.op.what == "add"):
            yield _wrong(4, f"{who} was the last word, but the server is {'there' if there else 'not there'}")
        elif ask.op.what in ("off", "on") and tool is not None and tool.enabled != (ask.op.what == "on"):
            yield _wrong(4, f"{who} was the last word, but the tool is {'on' if tool.enabled else 'off'}")


# Snapshots.


def _snapshots(history: History) -> Iterator[Violation]:
    for before, after in pairwise(history.seen):
        if after.snapshot.version <= before.snapshot.version:
            yield _wrong(2, f"version {after.snapshot.version} was seen after {before.snapshot.version}")
        if after.snapshot.config_rev < before.snapshot.config_rev:
            yield _wrong(2, f"revision {after.snapshot.config_rev} was seen after {before.snapshot.config_rev}")
    for seen in history.seen:
        model, catalog = seen.snapshot.model, seen.snapshot.catalog
        wire = {(tool.server, tool.bare) for tool in catalog.tools}
        on_wire = {(s.name, tool.bare) for s in model.servers for tool in s.tools if tool.verdict == "on_wire"}
        if wire != on_wire:
            yield _wrong(2, f"at {seen.at:g} the catalog and the verdicts differ in {sorted(wire ^ on_wire)[:4]}")
        if len(catalog.trimmed) != model.trimmed_count():
            yield _wrong(2, f"at {seen.at:g} {len(catalog.trimmed)} are trimmed, and {model.trimmed_count()} counted")
        for state in model.servers:
            if state.phase == "ready" and not state.connected:
                yield _wrong(2, f"at {seen.at:g} {state.name} is ready and not connected")
            if (state.error is not None) == state.connected and state.phase in ("ready", "parked", "backing_off"):
                yield _wrong(2, f"at {seen.at:g} {state.name} is {state.phase} and its error is {state.error}")
    for (server, tool), verdict in history.whys.items():
        assert history.last is not None
        found = history.last.model.tool(server, tool)
        if found is not None and found.verdict != verdict:
            yield _wrong(2, f"{server}/{tool} is {found.verdict} in the snapshot, and {verdict} for `why`")


def _losses(history: History) -> Iterator[Violation]:
    """A loss is shown at its instant, however long what is left of the server takes to be cleared away."""
    if any(fault.site == "projector" for fault in history.plan.faults):
        return
    for note in history.notes:
        if note.what != "lost":
            continue
        shown = next((seen.snapshot for seen in reversed(history.seen) if seen.at <= note.at), None)
        state = None if shown is None else shown.model.server(note.server)
        if state is not None and state.connected:
            again = any(
                other.what == "connected" and other.server == note.server and other.at == note.at
                for other in history.notes
            )
            if not again:
                yield _wrong(2, f"{note.server} was lost at {note.at:g}, and is shown as {state.phase} after that")


def _lists(history: History) -> Iterator[Violation]:
    advertised = {each.name: {f"t{n}" for n in range(each.tools)} for each in history.plan.servers}
    known: set[str] = set()
    for seen in history.seen:
        for state in seen.snapshot.model.servers:
            expected = advertised.get(state.name)
            if expected is None:
                continue
            tools = {tool.bare for tool in state.tools}
            if state.list_state != "none":
                known.add(state.name)
            elif state.name in known:
                yield _wrong(3, f"at {seen.at:g} the list of {state.name} is forgotten")
            if state.name in known and expected - tools:
                yield _wrong(3, f"at {seen.at:g} {state.name} has lost {sorted(expected - tools)}")
            if odd := {bare for bare in tools - expected if not bare.startswith("extra")}:
                yield _wrong(3, f"at {seen.at:g} {state.name} has {sorted(odd)}, which it never advertised")


# Processes.


def _processes(history: History) -> Iterator[Violation]:
    for name, most in history.most_at_once.items():
        if most > 1:
            yield _wrong(9, f"{most} copies of {name} were alive at one time")
    for note in history.notes:
        if note.what == "open":
            yield _wrong(9, f"a response of {note.server} was left open when connection {note.connection} to it ended")
    for name, copies in history.left.items():
        yield _wrong(9, f"{copies} copies of {name} are alive after the host closed")
    if history.close_began is not None and history.closed is not None:
        deaf = max((fault.arg for fault in history.plan.faults if fault.site == "close"), default=0.0)
        if (took := history.closed - history.close_began) > CLOSE + deaf:
            yield _stuck(9, f"closing took {took:g} s")
    end = float("inf") if history.close_began is None else history.close_began
    for server in history.plan.servers:
        if server.name in history.plan.disturbed():
            continue
        notes = history.of(server.name)
        deaths = {note.connection for note in notes if note.what in ("lost", "fault")}
        for note in notes:
            if note.what == "end" and note.at < end and note.connection not in deaths:
                yield _wrong(5, f"{server.name} was stopped at {note.at:g}, though nobody asked for that")


def _parting(history: History) -> Iterator[Violation]:
    """A call in flight when the host closes ends by that, and is told so."""
    for call in history.parting:
        who = f"the call to {call.op.server} that was in flight when the host closed"
        if call.end is None or (history.closed is not None and call.end > history.closed):
            yield _stuck(9, f"{who} outlived the host")
        elif call.outcome not in ("ServerUnavailable", "HostClosed"):
            yield _wrong(9, f"{who} ended with {call.outcome}: {call.detail}")


def _loads(history: History) -> Iterator[Violation]:
    """At most two rounds for a burst of reloads, one for each edit, and one more for each crash of the coordinator."""
    bursts = Counter(ask.at for ask in history.asks if ask.op.what in ("reload", "note"))
    edits = [ask for ask in history.asks if ask.op.what not in ("reload", "note", "restart", "revive")]
    crashes = sum(fault.site in ("coordinator", "mailbox") for _, fault in history.struck)
    # Opening reads once, and what was under way at a crash is read again.
    most = 1 + sum(min(2, size) for size in bursts.values()) + len(edits) + 2 * crashes
    if history.loads > most:
        yield _wrong(6, f"the configuration was read {history.loads} times for work that needs {most} at most")


def _convergence(history: History) -> Iterator[Violation]:
    if history.healed_at is not None and history.converged_at is None:
        for name, why in history.unwell.items():
            yield _stuck(7, f"{name} was not well again a minute after the last fault: {why}")
    if history.readiness is not None and history.converged_at is not None and not history.readiness.satisfied:
        yield _wrong(2, f"all is well, but `ready` says {dict(history.readiness.missing)}")


def restarts(history: History) -> Iterator[Violation]:
    """The rules of restarting, against the model in `restarts.py`."""
    plan = history.plan
    revived = frozenset(op.server for op in plan.work if op.what == "revive")
    left_alone = [
        server.name
        for server in plan.servers
        if server.name not in revived | plan.disturbed() | _struck(history, UNLIKE)
    ]
    starts = {server.name: [n.at for n in history.of(server.name) if n.what == "spawn"] for server in plan.servers}
    for name in left_alone:
        others = [at for other, times in starts.items() if other != name for at in times]
        known = others if len(left_alone) == len(starts) else None
        for text in restart_times(plan, history.of(name), until=plan.heal_at, others=known):
            yield _wrong(0, f"{name}: {text}")
    for text in too_near([at for name in left_alone for at in starts[name][1:] if at < plan.heal_at]):
        yield _wrong(0, text)
