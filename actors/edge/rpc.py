"""JSON-RPC 2.0 as `PipeDispatcher` uses it: the cell of a pending request, and messages to and from bytes."""

from __future__ import annotations

import logging
import re
from collections import deque
from typing import Any

import trio
from mcp.shared.dispatcher import ProgressFnT, coerce_request_id
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, ErrorData
from pydantic_core import to_json

__all__ = ["CLOSED", "LOG", "MAX_PROGRESS", "Call", "ConnectionClosed", "encode", "error_data", "meant_for"]

LOG = logging.getLogger("playbill.edge")

MAX_PROGRESS = 256
"""Progress notifications waiting for one caller; beyond, the oldest is dropped."""

CLOSED = ErrorData(code=CONNECTION_CLOSED, message="Connection closed")
"""The outcome of what was pending when the connection ended; told from a server's own error by its identity."""

_RESPONSE_HEAD = re.compile(
    rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,18}|"[^"\\]{1,100}")\s*,\s*"[re]'
)
"""The beginning of a response, as far as its ``result`` or ``error``; a request would go on with ``method``."""


class ConnectionClosed(MCPError):
    """The connection ended before the response; unlike an error of the same code that a server sent."""

    def __init__(self) -> None:
        super().__init__(code=CONNECTION_CLOSED, message="Connection closed")


class Call:
    """A one-shot cell: one pending request and the task that waits for it.

    Args:
        on_progress: run in the waiting task for each item appended to `progress`, or None.
    """

    __slots__ = ("on_progress", "outcome", "progress", "task")

    def __init__(self, on_progress: ProgressFnT | None) -> None:
        self.task: trio.lowlevel.Task | None = None
        self.outcome: dict[str, Any] | ErrorData | None = None
        self.on_progress = on_progress
        self.progress: deque[tuple[float, float | None, str | None]] | None = None
        if on_progress is not None:
            self.progress = deque(maxlen=MAX_PROGRESS)

    def settle(self, outcome: dict[str, Any] | ErrorData) -> None:
        """Give it its outcome; the first one stays. Never waits."""
        if self.outcome is None:
            self.outcome = outcome
            self.wake()

    def wake(self) -> None:
        """Have the waiting task look again: there is an outcome, or progress."""
        task, self.task = self.task, None
        if task is not None:
            trio.lowlevel.reschedule(task)

    async def wait(self) -> dict[str, Any] | ErrorData:
        """Wait for the outcome, and run the progress callbacks meanwhile. A checkpoint unless it is settled already."""
        while True:
            if self.progress:
                assert self.on_progress is not None
                try:
                    await self.on_progress(*self.progress.popleft())
                except Exception:
                    LOG.exception("a progress callback raised")
            elif self.outcome is not None:
                return self.outcome
            else:
                self.task = trio.lowlevel.current_task()
                await trio.lowlevel.wait_task_rescheduled(self._abort)

    def _abort(self, _: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
        self.task = None
        return trio.lowlevel.Abort.SUCCEEDED


def encode(message: dict[str, Any]) -> bytes:
    """One message as a line, its newline included.

    Raises:
        ValueError: there is something in it that JSON cannot say.
    """
    try:
        return to_json(message, inf_nan_mode="null") + b"\n"
    except Exception as error:
        raise ValueError(f"it cannot be written as JSON: {error}") from error


def error_data(error: Any) -> ErrorData:
    """The ``error`` of a response, whatever it is."""
    if isinstance(error, dict) and isinstance(error.get("code"), int) and isinstance(error.get("message"), str):
        return ErrorData(code=error["code"], message=error["message"], data=error.get("data"))
    text = error if isinstance(error, str) else to_json(error, inf_nan_mode="null").decode("utf-8", "replace")
    return ErrorData(code=INTERNAL_ERROR, message=f"invalid error response: {text[:200]}")


def meant_for(head: bytes) -> Any:
    """The id of the request that a line was to be the response to, from its beginning; None when it does not look like one."""
    match = _RESPONSE_HEAD.match(head)
    return None if match is None else coerce_request_id(match[1].decode("utf-8", "replace").strip('"'))
