"""Supervision for trio: actors with mailboxes, and a supervisor that keeps them running. It knows nothing of MCP.

See ``docs/supervision.md`` for how it works and for an example.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .actor import Context
    from .cell import Cell
    from .errors import ActorDown, Escalated, MailboxFull, StartFailed, Stuck
    from .mailbox import Mailbox, MailboxStatistics
    from .probe import ChildState, Counts, Event, Gap, TreeNode
    from .ref import Latch, Ref
    from .reply import Ask
    from .spec import Backoff, ChildSpec, Intensity, Restart, Shutdown
    from .supervisor import Supervisor

__all__ = [
    "ActorDown",
    "Ask",
    "Backoff",
    "Cell",
    "ChildSpec",
    "ChildState",
    "Context",
    "Counts",
    "Escalated",
    "Event",
    "Gap",
    "Intensity",
    "Latch",
    "Mailbox",
    "MailboxFull",
    "MailboxStatistics",
    "Ref",
    "Restart",
    "Shutdown",
    "StartFailed",
    "Stuck",
    "Supervisor",
    "TreeNode",
]

# Imported when first asked for, as in `playbill.actors`: who wants a `Backoff` does not pay for supervisors.
_HOME = {
    "ActorDown": "errors",
    "Ask": "reply",
    "Backoff": "spec",
    "Cell": "cell",
    "ChildSpec": "spec",
    "ChildState": "probe",
    "Context": "actor",
    "Counts": "probe",
    "Escalated": "errors",
    "Event": "probe",
    "Gap": "probe",
    "Intensity": "spec",
    "Latch": "ref",
    "Mailbox": "mailbox",
    "MailboxFull": "errors",
    "MailboxStatistics": "mailbox",
    "Ref": "ref",
    "Restart": "spec",
    "Shutdown": "spec",
    "StartFailed": "errors",
    "Stuck": "errors",
    "Supervisor": "supervisor",
    "TreeNode": "probe",
}


def __getattr__(name: str) -> Any:
    home = _HOME.get(name)
    if home is None:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{home}", __name__), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
