"""Why a tool is, or is not, on the wire: the snapshot's answer as a sentence for a person, and in parts for a program.

The words are made here and nowhere else: ``Host.why``, the command line, the picker and the error of a refused call say the
same of a tool, because each asks this module about the snapshot that it reads.

A sentence is one line without control characters and of bounded length, whatever servers call themselves and their tools,
and whatever they say when they die.
"""

from __future__ import annotations

import math
import shlex
from collections.abc import Iterator, Mapping
from typing import Any

from attrs import frozen

from .naming import PREFIX
from .nearest import nearest
from .phase import DOWN_PHASES, predicate
from .plain import LONGEST_NAME, flat, quoted
from .snapshot import Phase, ServerState, Snapshot, ToolState, Why
from .wire import ToolRef

__all__ = ["TOLD", "WhyServer", "each_why", "restarted", "typed", "why", "why_server"]

_MENDED_TOLD = 3


def _hint(near: str | None) -> str:
    return "" if near is None else f"; did you mean {quoted(near)}?"


def _plural(count: int, what: str) -> str:
    return f"{count} {what}{'' if count == 1 else 's'}"


def _retry_in(server: ServerState, now: float | None) -> float | None:
    """Seconds until a server is tried again, or None when it is not, or nobody knows what time it is."""
    if now is None or server.next_retry_at is None:
        return None
    return max(0.0, server.next_retry_at - now)


def _in(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f" in {math.ceil(seconds)} s" if seconds <= 120 else f" in {math.ceil(seconds / 60)} min"


def typed(verb: str, name: str) -> str | None:
    """The command line that does something to a server, if its name can be typed; else None."""
    return f"playbill {verb} {shlex.quote(name)}" if name.isprintable() and len(name) <= LONGEST_NAME else None


def _wait(server: ServerState, now: float | None) -> str:
    """When a server is tried again, and if that is what it asked for; empty when nobody knows."""
    wait = _in(_retry_in(server, now))
    return f"{wait}{TOLD}" if wait and server.retry_asked else wait


TOLD = " as the server asks"
"""Behind the time of a retry that a server itself named (Retry-After)."""


def _ago(seconds: float) -> str:
    for most, unit, size in ((120, "s", 1), (7200, "min", 60)):
        if seconds <= most:
            return f"{max(0, math.floor(seconds / size))} {unit} ago"
    return f"{math.floor(seconds / 3600)} h ago"


def _times(count: int) -> str:
    return "once" if count == 1 else f"{count} times"


def restarted(server: ServerState, now: float | None = None) -> str | None:
    """How often a server was restarted since its history was cleared, and when last; None when it was not.

    Args:
        server: which.
        now: as in `why`.
    """
    if not server.restarts:
        return None
    said = f"restarted {_times(server.restarts)}"
    if now is None or server.restarted_at is None:
        return said
    return f"{said}, {'' if server.restarts == 1 else 'last '}{_ago(now - server.restarted_at)}"


def _command(verb: str, name: str) -> str:
    line = typed(verb, name)
    return "" if line is None else f" (`{line}`)"


def _logging_in(server: ServerState) -> str:
    if server.logs_in:
        return f"log in{_command('login', server.name)}"
    return f"{'log in' if server.url is None else 'correct its login (the headers of its entry)'} and restart it"


def _after(server: ServerState, now: float | None) -> str:
    """What happens next to a server that is down, and what can be done about it."""
    if server.futile:
        wait = _wait(server, now)
        return f"; mend that and revive it{f' (next retry{wait})' if wait else ''}"
    if server.phase == "parked":
        times = _times(server.restarts)
        if server.next_retry_at is None:
            return f"; it was restarted {times} and is not retried by itself: revive it"
        wait = _wait(server, now)
        when = f"next retry{wait}" if wait else "is retried now and then"
        return f"; it was restarted {times}{', ' if wait else ' and '}{when}: revive it to try now"
    return {
        "needs_auth": f"; {_logging_in(server)}",
        "disabled": "; enable it",
        "stopping": "; enable it",
        "untrusted": f"; trust it to let it start{_command('trust', server.name)}",
        "invalid": "; correct the entry and reload",
    }.get(server.phase, "")


def _state(server: ServerState, now: float | None) -> str:
    """What a server that is not ready is doing: ``is backing off (attempt 2 of 5 in 3 s): exit 1``."""
    error = f": {flat(server.error)}" if server.error else ""
    attempt = "" if server.attempt is None else f"attempt {server.attempt[0]} of {server.attempt[1]}"
    wait = _wait(server, now) if server.phase == "backing_off" else ""
    if wait and not attempt:
        attempt = "next retry"
    return f"{predicate(server.phase)}{f' ({attempt}{wait})' if attempt else ''}{error}"


def _doing(server: ServerState, now: float | None) -> str:
    """What state a server is in, why, and what comes next: ``is parked: exit 1; …``."""
    if server.phase in DOWN_PHASES:
        error = f": {flat(server.error)}" if server.error else ""
        state = f"{predicate(server.phase)}{error}{_after(server, now)}"
    elif server.phase == "starting" and not server.error:
        state = f"{predicate(server.phase)}: " + (
            "its tools are not in yet" if server.connected else "it has not answered yet"
        )
    else:
        state = _state(server, now)
    return state + (f"; of its newest tool list: {flat(server.list_error)}" if server.list_error else "")


def _mended(changes: tuple[str, ...]) -> str:
    if not changes:
        return ""
    told = "; ".join(map(flat, changes[:_MENDED_TOLD]))
    more = len(changes) - _MENDED_TOLD
    return f"; mended: {told}{f'; and {more} more' if more > 0 else ''}"


def _rank(snapshot: Snapshot, ref: ToolRef) -> int | None:
    """Of a tool over the budget, which it is in the order of who is kept: the first to go is the last."""
    at = snapshot.catalog.victim(ref)
    return None if at is None else snapshot.model.wanted - at


def _at(file: str | None, line: int | None) -> str:
    return "" if file is None else f" ({file}{'' if line is None else f':{line}'})"


_BEHIND = "over the "  # how the projection begins its words of a tool behind the cut; others fit no cut at all


def _over(snapshot: Snapshot, reason: str, rank: int) -> str:
    """Of a tool behind the cut: which it is, and what would bring it in front."""
    model = snapshot.model
    head = f"it is number {rank} of {model.wanted} tools"
    move = "pin it, or raise its server's priority"
    if model.cut_by == "tokens" or model.budget is None:
        return f"{head}, {reason}: disable tools before it, {move}"
    asked = model.budget_asked is None or model.budget == model.budget_asked
    cap = f"the budget is {model.budget}" if asked else f"profile {model.profile!r} takes {model.budget}"
    if not model.budget:
        return f"{head} and {cap}: raise it"
    if model.native_count >= model.budget:
        return f"{head} and {cap}, which native tools alone fill{': raise the budget' if asked else ''}"
    return f"{head} and {cap}: disable {_plural(rank - model.budget, 'tool')} before it, {move}"


def _known(snapshot: Snapshot, server: ServerState, tool: ToolState, now: float | None) -> Why:
    """The answer about a tool that the model has."""
    more: dict[str, Any] = {}
    reason = flat(tool.reason or "")
    state = "not on the wire"
    tail = ""
    if tool.verdict == "on_wire":
        state = f"on the wire as {quoted(tool.wire_name)}"
        tail = _mended(tool.mended)
        if server.phase != "ready":
            more.update(error=server.error, retry_in=_retry_in(server, now))
            tail += f"; but its server {_state(server, now)}, so a call may fail"
    elif tool.verdict == "excluded":
        if not tool.enabled:  # by the config, that is, and not by a view
            more.update(file=server.source, line=snapshot.lines(server.name, tool.bare))
            reason = flat(f"{reason}{_at(more['file'], more['line'])}")
    elif tool.verdict == "server_down":
        reason = f"{reason}{_after(server, now)}"
        more.update(error=server.error, retry_in=_retry_in(server, now))
    elif tool.verdict == "quarantined":
        state = "quarantined"
        more.update(rule=tool.rule, path=tool.path)
        if tool.rule:
            reason = f"{reason} (rule {tool.rule}{f', at {flat(tool.path)}' if tool.path else ''})"
    elif not reason.startswith(_BEHIND) or (rank := _rank(snapshot, ToolRef(server.name, tool.bare))) is None:
        reason = f"{reason}: raise the budget"
        more.update(budget=snapshot.model.token_budget)
    else:
        reason = _over(snapshot, reason, rank)
        by_tokens = snapshot.model.cut_by == "tokens"
        budget = snapshot.model.token_budget if by_tokens else snapshot.model.budget
        more.update(rank=rank, wanted=snapshot.model.wanted, budget=budget)
    head = f"tool {quoted(tool.bare)} of server {quoted(server.name)} is {state}"
    on_wire = tool.verdict == "on_wire"
    return Why(
        server.name,
        tool.bare,
        tool.verdict,
        f"{head}{tail}" if on_wire else f"{head}: {reason}",
        reason=None if on_wire else reason,
        wire_name=tool.wire_name,
        mended=tool.mended,
        **more,
    )


def _by_wire_name(snapshot: Snapshot, name: str) -> str | None:
    """What a name is, if it is one of the catalog's and not a server's own name of a tool."""
    if name.startswith(PREFIX):
        for server in snapshot.model.servers:
            for tool in server.tools:
                if tool.wire_name == name:
                    return f"that is the wire name of tool {quoted(tool.bare)} of server {quoted(server.name)}"
        return None
    found = snapshot.catalog.tool(name)
    return "that is a native tool, which always ships" if found is not None and found.server is None else None


def _unknown_server(snapshot: Snapshot, name: str) -> tuple[str, str | None]:
    near = nearest(name, (each.name for each in snapshot.model.servers))
    return f"no server named {quoted(name)} is configured{_hint(near)}", near


def _unknown(snapshot: Snapshot, server: ServerState, bare: str, now: float | None) -> Why:
    """The answer about a tool that its server is not known to have."""
    head = f"server {quoted(server.name)} "
    if server.list_state == "none":
        reason = f"{head}has not listed its tools yet; it {_doing(server, now)}"
        error = server.error or server.list_error
        more: dict[str, Any] = {"error": error, "retry_in": _retry_in(server, now)}
    else:
        other = _by_wire_name(snapshot, bare)
        near = nearest(bare, (tool.bare for tool in server.tools)) if other is None else None
        reason = f"{head}has no tool named {quoted(bare)}{f'; {other}' if other else _hint(near)}"
        more = {"nearest": near}
    return Why(server.name, bare, "unknown", reason, reason=reason, **more)


def why(snapshot: Snapshot, server: str, bare: str, now: float | None = None) -> Why:
    """Explain one tool from one snapshot, so that the answer agrees with everything else read from it.

    Args:
        snapshot: the one to explain.
        server: the name of a server, configured or not.
        bare: the server's own name of a tool, known or not.
        now: the clock that the snapshot's times are of (trio's), in seconds, for the time until the next retry; None when
            it is not known, and then no such time is told.

    Returns:
        The verdict and a sentence; the verdict is ``unknown`` when there is no such server or tool, and then the
        sentence names the nearest one. The wire name of a tool, or a native tool's name, is told to be that.
    """
    there = snapshot.model.server(server)
    if there is None:
        reason, near = _unknown_server(snapshot, server)
        other = _by_wire_name(snapshot, bare)
        if other is not None:
            reason = f"{reason}; as for {quoted(bare)}, {other}"
        return Why(server, bare, "unknown", reason, reason=reason, nearest=near)
    tool = there.tool(bare)
    if tool is None:
        return _unknown(snapshot, there, bare, now)
    return _known(snapshot, there, tool, now)


def each_why(snapshot: Snapshot, now: float | None = None) -> Iterator[tuple[ServerState, ToolState, Why]]:
    """Explain every tool of the model, server by server in the order shown.

    Args:
        snapshot, now: as in `why`.
    """
    for server in snapshot.model.servers:
        for tool in server.tools:
            yield server, tool, _known(snapshot, server, tool, now)


@frozen(kw_only=True)
class WhyServer:
    """Why a server is as it is: a value whose ``str`` is a sentence, of the same kind as `Why`.

    Args:
        server: the name asked about.
        phase: as in ``ServerState``, or None when no such server is configured.
        sentence: the answer in words.
        error: why it is not connected, or why its newest listing failed, or None.
        retry_in: seconds until it is tried again, or None.
        tools: how many of its tools have each verdict.
        nearest: the name that was perhaps meant, or None.
    """

    server: str
    phase: Phase | None
    sentence: str
    error: str | None = None
    retry_in: float | None = None
    tools: Mapping[str, int]
    nearest: str | None = None

    def __str__(self) -> str:
        return self.sentence


_COUNTED = {
    "excluded": "excluded",
    "server_down": "waiting for it",
    "quarantined": "quarantined",
    "over_budget": "over the budget",
}


def _counted(server: ServerState, tools: Mapping[str, int]) -> str:
    """What there is of its tools, in words."""
    if server.list_state == "none":
        return ""
    if not server.tools:
        return "it has no tools"
    held = [f"{count} {_COUNTED[verdict]}" for verdict, count in tools.items() if verdict in _COUNTED]
    wired = f"{tools.get('on_wire', 0)} of {_plural(len(server.tools), 'tool')} on the wire"
    return ", ".join([wired, *held])


def why_server(snapshot: Snapshot, name: str, now: float | None = None) -> WhyServer:
    """Explain one server: what state it is in, why, what comes next, and how many of its tools are sent.

    Args:
        snapshot, now: as in `why`.
        name: of a server, configured or not.
    """
    server = snapshot.model.server(name)
    if server is None:
        sentence, near = _unknown_server(snapshot, name)
        return WhyServer(server=name, phase=None, sentence=sentence, tools={}, nearest=near)
    verdicts = [tool.verdict for tool in server.tools]
    tools: dict[str, int] = {
        verdict: verdicts.count(verdict) for verdict in ("on_wire", *_COUNTED) if verdict in verdicts
    }
    counted = _counted(server, tools)
    return WhyServer(
        server=name,
        phase=server.phase,
        sentence=f"server {quoted(name)} {_doing(server, now)}{f'; {counted}' if counted else ''}",
        error=server.error or server.list_error,
        retry_in=_retry_in(server, now),
        tools=tools,
    )
