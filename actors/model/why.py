"""Why a tool is, or is not, on the wire: the snapshot's answer as a sentence for a person."""

from __future__ import annotations

from .nearest import nearest
from .phase import DOWN_PHASES
from .snapshot import ServerState, Snapshot, ToolState, Why
from .wire import ToolRef

__all__ = ["why"]


def _hint(near: str | None) -> str:
    return "" if near is None else f"; did you mean {near!r}?"


def _retry(server: ServerState) -> str:
    """What happens next to a server that is down."""
    if server.phase == "parked":
        times = "once" if server.restarts == 1 else f"{server.restarts} times"
        if server.next_retry_at is None:
            return f"; it was restarted {times} and is not retried by itself: revive it"
        return f"; it was restarted {times} and is retried now and then: revive it to try now"
    return {
        "needs_auth": "; log in and restart it",
        "disabled": "; enable it",
        "untrusted": "; trust it to let it start",
        "invalid": "; correct the entry and reload",
    }.get(server.phase, "")


def _not_ready(server: ServerState) -> str:
    """What to add of a tool on the wire whose server cannot answer now."""
    if server.phase == "ready":
        return ""
    error = f" after {server.error}" if server.error else ""
    attempt = "" if server.attempt is None else f", attempt {server.attempt[0]} of {server.attempt[1]}"
    return f"; but its server is {server.phase.replace('_', ' ')}{error}{attempt}, so a call may fail"


def _over(snapshot: Snapshot, tool: ToolState, server: str) -> str:
    model, trimmed = snapshot.model, snapshot.catalog.trimmed
    budget = model.budget if model.budget is not None else 0
    rank = model.wanted - trimmed.index(ToolRef(server, tool.bare))  # the first to go is the last in rank
    head = f"it is number {rank} of {model.wanted} tools and the budget is {budget}"
    if model.native_count >= budget:
        return f"{head}, which native tools alone fill: raise the budget"
    more = rank - budget
    return f"{head}: disable {more} tool{'s' if more > 1 else ''} before it, pin it, or raise its server's priority"


def _sentence(snapshot: Snapshot, server: ServerState, tool: ToolState) -> str:
    head = f"tool {tool.bare!r} of server {server.name!r} is"
    if tool.verdict == "on_wire":
        return f"{head} on the wire as {tool.wire_name!r}{_not_ready(server)}"
    if tool.verdict == "over_budget":
        return f"{head} not on the wire: {_over(snapshot, tool, server.name)}"
    if tool.verdict == "server_down":
        return f"{head} not on the wire: {tool.reason}{_retry(server)}"
    if tool.verdict == "quarantined":
        return f"{head} quarantined: {tool.reason}"
    return f"{head} not on the wire: {tool.reason}"


def _unknown_tool(server: ServerState, bare: str) -> str:
    if server.list_state == "none":
        error = server.error or server.list_error
        state = f"{server.phase.replace('_', ' ')}{f': {error}' if error else ''}"
        after = _retry(server) if server.phase in DOWN_PHASES else ""
        return f"server {server.name!r} has not listed its tools yet; it is {state}{after}"
    hint = _hint(nearest(bare, (tool.bare for tool in server.tools)))
    return f"server {server.name!r} has no tool named {bare!r}{hint}"


def why(snapshot: Snapshot, server: str, bare: str) -> Why:
    """Explain one tool from one snapshot, so that the answer agrees with everything else read from it.

    Args:
        snapshot: the one to explain.
        server: the name of a server, configured or not.
        bare: the server's own name of a tool, known or not.

    Returns:
        The verdict and a sentence; the verdict is ``unknown`` when there is no such server or tool, and then the
        sentence names the nearest one.
    """
    there = snapshot.model.server(server)
    if there is None:
        hint = _hint(nearest(server, (each.name for each in snapshot.model.servers)))
        return Why(server, bare, "unknown", f"no server named {server!r} is configured{hint}")
    tool = there.tool(bare)
    if tool is None:
        return Why(server, bare, "unknown", _unknown_tool(there, bare))
    return Why(server, bare, tool.verdict, _sentence(snapshot, there, tool))
