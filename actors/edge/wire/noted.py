"""What a connection knows of a request that is noted: how the server is reached, and what it answered with."""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...telemetry import names
from ...telemetry.notes import current
from .remote.failures import HttpFailed
from .rpc import ConnectionClosed

if TYPE_CHECKING:
    from mcp.shared.exceptions import MCPError

    from .wire import Wire

__all__ = ["failed", "goes_over", "refused"]


def goes_over(wire: Wire, version: str | None) -> None:
    """The request that this task makes goes over that wire.

    Args:
        wire: to whom.
        version: of the protocol, or None when that is not agreed on.
    """
    note = current()
    if note is None:
        return
    note.update(wire.peer)
    note.put(names.PROTOCOL, version)
    session = wire.session_id
    if session is not None:
        note.put(names.SESSION, names.session_digest(session))


def refused(error: MCPError) -> None:
    """The request that this task makes was answered with an error. What the server says of it is not told: it may quote us."""
    note = current()
    if note is None:
        return
    if isinstance(error, ConnectionClosed):
        note.fail("connection_lost")
    elif isinstance(error, HttpFailed):
        note.fail("http_failed" if error.meaning is None else str(error.meaning.status))
    else:
        note.put(names.STATUS, str(error.code))
        note.fail(str(error.code))


def failed(kind: str) -> None:
    """The request that this task makes came to nothing for another reason."""
    if (note := current()) is not None:
        note.fail(kind)
