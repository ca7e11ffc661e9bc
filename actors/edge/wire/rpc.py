"""JSON-RPC 2.0 as `PipeDispatcher` uses it: the cell of a pending request, and messages to and from bytes."""

from __future__ import annotations

import json
import math
import re
from collections import deque
from collections.abc import Callable
from typing import Any

import trio
from mcp.shared.dispatcher import ProgressFnT, coerce_request_id
from mcp.shared.exceptions import MCPError
from mcp_types import CONNECTION_CLOSED, INTERNAL_ERROR, REQUEST_TIMEOUT, ErrorData
from pydantic_core import from_json, to_json

from ...telemetry.log import Log

__all__ = [
    "CLOSED",
    "LATE",
    "LOG",
    "MAX_PROGRESS",
    "MAX_PROGRESS_BUSY",
    "Call",
    "ConnectionClosed",
    "decode",
    "encode",
    "error_data",
    "finite",
    "meant_for",
]

LOG = Log("playbill.edge")

MAX_PROGRESS = 256
"""Progress notifications waiting for one caller; beyond, the oldest is dropped."""

MAX_PROGRESS_BUSY = 16
"""The same while its callback runs: a slow one is told the newest, and the result does not wait for more than these."""

CLOSED = ErrorData(code=CONNECTION_CLOSED, message="Connection closed")
"""The outcome of what was pending when the connection ended; told from a server's own error by its identity."""

LATE = ErrorData(code=REQUEST_TIMEOUT, message="Request timed out")
"""The outcome of what has waited until its deadline; told by its identity."""

_RESPONSE_HEAD = re.compile(
    rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?"id"\s*:\s*(\d{1,18}|"[^"\\]{1,100}")\s*,\s*"[re]'
)
"""The beginning of a response, as far as its ``result`` or ``error``; a request would go on with ``method``."""

_ESCAPE = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|u([dD][89a-fA-F][0-9a-fA-F]{2})|.)"
)
"""One escape in a JSON text, a pair of surrogates as one; the group is there for a surrogate without its other half."""


class ConnectionClosed(MCPError):
    """The connection ended before the response; unlike an error of the same code that a server sent."""

    def __init__(self) -> None:
        super().__init__(code=CONNECTION_CLOSED, message="Connection closed")


class Call:
    """A one-shot cell: one pending request and the task that waits for it.

    Args:
        on_progress: run in the waiting task for each item given to `tell`, or None.
        heard: called in the same step for each of them, never waiting, or None.
    """

    __slots__ = ("_busy", "_progress", "heard", "on_progress", "outcome", "task")

    def __init__(self, on_progress: ProgressFnT | None, heard: Callable[[], None] | None = None) -> None:
        self.task: trio.lowlevel.Task | None = None
        self.outcome: dict[str, Any] | ErrorData | None = None
        self.on_progress = on_progress
        self.heard = heard
        self._progress: deque[tuple[float, float | None, str | None]] | None = None
        self._busy = False

    def tell(self, progress: float, total: float | None, message: str | None) -> None:
        """Have the callback run with this; in vain once there is an outcome, which no flood may hold up. Never waits."""
        if self.outcome is not None:
            return
        if self.heard is not None:
            self.heard()
        if self.on_progress is None:
            return
        if self._progress is None:
            self._progress = deque(maxlen=MAX_PROGRESS)
        while self._busy and len(self._progress) >= MAX_PROGRESS_BUSY:
            self._progress.popleft()
        self._progress.append((progress, total, message))
        self.wake()

    def settle(self, outcome: dict[str, Any] | ErrorData) -> None:
        """Give it its outcome; the first one stays. Never waits."""
        if self.outcome is None:
            self.outcome = outcome
            self.wake()

    def expire(self) -> None:
        """Its deadline is past."""
        self.settle(LATE)

    def wake(self) -> None:
        """Have the waiting task look again: there is an outcome, or progress."""
        task, self.task = self.task, None
        if task is not None:
            trio.lowlevel.reschedule(task)

    async def wait(self) -> dict[str, Any] | ErrorData:
        """Wait for the outcome, and run the progress callbacks meanwhile. A checkpoint unless it is settled already."""
        while True:
            if self._progress:
                assert self.on_progress is not None
                self._busy = True
                try:
                    await self.on_progress(*self._progress.popleft())
                except Exception:
                    LOG.exception("a progress callback raised")
                finally:
                    self._busy = False
            elif self.outcome is not None:
                return self.outcome
            else:
                self.task = trio.lowlevel.current_task()
                await trio.lowlevel.wait_task_rescheduled(self._abort)

    def _abort(self, _: trio.lowlevel.RaiseCancelT) -> trio.lowlevel.Abort:
        self.task = None
        return trio.lowlevel.Abort.SUCCEEDED


def decode(line: bytes) -> Any:
    """A line as JSON, leniently: one bad string or a deep schema must not cost all the rest of its message.

    Bytes that are not UTF-8 and surrogates without their other half become U+FFFD; what nests deeper than the fast parser
    takes, and integers of more digits than it takes, are left to the standard library.

    Raises:
        ValueError: it is no JSON, or nests deeper than Python's stack.
    """
    try:
        return from_json(line)
    except ValueError:
        if not line.lstrip().startswith(b"{"):  # no message, however it is read: most of what servers print by mistake
            raise
    text = line.decode("utf-8", "replace")
    if "\\ud" in text or "\\uD" in text:
        text = _ESCAPE.sub(lambda found: found[0] if found[1] is None else "\N{REPLACEMENT CHARACTER}", text)
    try:
        return from_json(text)
    except ValueError as error:
        reason = error
    try:
        return json.loads(text, parse_int=_integer)
    except (ValueError, RecursionError):
        raise reason from None


def _integer(digits: str) -> int | float:
    try:
        return int(digits)
    except ValueError:  # more digits than Python converts
        return float(digits)


def finite(number: Any) -> float | None:
    """A JSON number as a float; None when it is no number, or none that a float can hold."""
    if isinstance(number, bool) or not isinstance(number, (int, float)):
        return None
    try:
        value = float(number)
    except OverflowError:
        return None
    return value if math.isfinite(value) else None


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
    try:
        text = error if isinstance(error, str) else to_json(error, inf_nan_mode="null").decode("utf-8", "replace")
    except ValueError:  # it nests deeper than that can write
        text = f"a {type(error).__name__}"
    return ErrorData(code=INTERNAL_ERROR, message=f"invalid error response: {text[:200]}")


def meant_for(head: bytes) -> Any:
    """The id of the request that a line was to be the response to, from its beginning; None when it does not look like one."""
    match = _RESPONSE_HEAD.match(head)
    return None if match is None else coerce_request_id(match[1].decode("utf-8", "replace").strip('"'))
