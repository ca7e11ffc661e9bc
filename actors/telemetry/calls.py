"""Calls and requests as notes: what a caller asks of a tool, and what the host asks of a server by itself."""

from __future__ import annotations

import logging
from collections.abc import Mapping
from typing import Any

from . import names
from .log import Log
from .notes import INTERNAL, NOTHING, Note, current, recording

__all__ = ["again", "calling", "finished", "resolved", "running", "server_request", "watched"]

_LOG = Log("playbill.calls")


class _Call(Note):
    """The call of a tool; logged when it ends."""

    def end(self, error: BaseException | None = None) -> None:
        super().end(error)
        if not _LOG.enabled(logging.DEBUG):
            return
        server, tool = self.attributes.get(names.SERVER), self.attributes.get(names.TOOL)
        of = f"{server}/{tool}" if server is not None else tool
        _LOG.debug(
            "call of %s %s after %.3f s",
            of,
            "ended" if self.error is None else f"failed ({self.error})",
            self.seconds,
            event="call",
            server=server,
            tool=tool,
            seconds=self.seconds,
            error_type=self.error,
            attempts=self.attributes.get(names.ATTEMPTS),
        )


def watched() -> bool:
    """Whether anybody is told of calls."""
    return recording() or _LOG.enabled(logging.DEBUG)


def calling(server: str | None, tool: str) -> Note:
    """A call, from its being asked for to its outcome, whatever it waits for; to be entered in the caller's task.

    Args:
        server: whose tool it is, or None when that is not known yet; `resolved` says so.
        tool: its bare name, or the name it was called by.
    """
    if not watched():
        return NOTHING
    name = names.span_name("tools/call", None if server is None else tool)
    return _Call(name, names.call_attributes(server, tool), duration=names.OPERATION_DURATION)


def resolved(server: str, bare: str) -> None:
    """The call that this task makes is of that tool."""
    note = current()
    if note is not None and note.attributes.get(names.SERVER) is None:
        note.name = names.span_name("tools/call", bare)
        note.update(names.call_attributes(server, bare))


def again(attempts: int) -> None:
    """The call that this task makes is made for the so-manieth time."""
    if (note := current()) is not None:
        note.put(names.ATTEMPTS, attempts)


def finished(result: Any) -> None:
    """The call that this task makes has a result; one that says so is an error of the tool."""
    note = current()
    if note is not None and getattr(result, "is_error", False):
        note.fail("tool_error")


def running(tool: str) -> Note:
    """The call of a native tool: a step of the program's own."""
    if not watched():
        return NOTHING
    return _Call(names.span_name("execute_tool", tool), names.native_attributes(tool), kind=INTERNAL)


def server_request(method: str, server: str | None, params: Mapping[str, Any] | None = None) -> Note:
    """A request that is no call of a tool: a handshake, a listing, something read.

    Args:
        method: of MCP.
        server: whom it is sent to, or None when that is not known.
        params: of the request.
    """
    if not recording():
        return NOTHING
    made = names.request_attributes(method, server, params)
    prompt = made.get(names.PROMPT)
    return Note(
        names.span_name(method, None if prompt is None else str(prompt)), made, duration=names.OPERATION_DURATION
    )
