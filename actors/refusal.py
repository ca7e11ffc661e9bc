"""Why a call to a server that has no open line is refused at once."""

from __future__ import annotations

from .model.config import ServerEntry
from .model.phase import predicate
from .model.plain import flat
from .model.status import ServerStatus
from .operations import not_meant_to_run

__all__ = ["refusal"]


def refusal(entry: ServerEntry | None, status: ServerStatus) -> str | None:
    """Why a call to a server that has no open line is refused at once, or None when it should wait.

    Args:
        entry: as configured, or None.
        status: what is known of it.
    """
    if entry is None:
        return "it is not configured any more"
    if not entry.runnable:
        return not_meant_to_run(entry)
    report, lifecycle = status.report, status.lifecycle
    if lifecycle is None:
        return None
    current = report if report is not None and report.generation == lifecycle.generation else None
    if current is not None and current.needs_auth:
        return f"it {predicate('needs_auth')}: {flat(current.error or 'unknown')}"
    if current is not None and current.error is not None and lifecycle.stage == "running":
        return f"it has ended and is being cleared away: {flat(current.error)}"
    if lifecycle.stage in ("starting", "running", "stopping") and lifecycle.first:
        return None
    if lifecycle.stage == "parked" and current is not None and current.futile:
        return f"it is parked: {flat(current.error or 'unknown')}; mend that and revive it"
    cause = flat(lifecycle.error or (current.error if current is not None else None) or "unknown")
    return {
        "backing_off": f"it is waiting to be restarted after: {cause}",
        "parked": f"it is parked after {lifecycle.restarts} restarts: {cause}",
    }.get(lifecycle.stage, f"it is being restarted after: {cause}")
