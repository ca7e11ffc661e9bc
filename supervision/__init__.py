"""Supervision for trio: actors with mailboxes, and a supervisor that keeps them running. It knows nothing of MCP.

See ``docs/supervision.md`` for how it works and for an example.
"""

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
