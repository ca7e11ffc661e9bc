"""Native tools at work: one call of a handler, from the model's arguments to a result, whatever the handler does.

Theory of operation
    An async handler runs in a task that is a child of its caller's and ends with the call. So what a handler opens and does not
    close (a cancel scope, a nursery) is left in that task, and not around all that the caller does next. A sync one runs in a
    worker thread, together with all that its arguments and its result take; an awaitable that it returns is awaited as an async
    handler is. A thread cannot be ended from outside: when the call is cancelled or its time is over the thread is left to
    itself, and what it comes to is dropped.

    Such threads are the tool's own cost. Each tool may have `THREADS` of them; the next call of it waits for one until its own
    deadline. So handlers that hang take no thread from another tool, nor from the host's work on files.

    =============================================  =======================================================
    a handler, or what it is given or returns      becomes
    =============================================  =======================================================
    arguments that do not fit the signature        a tool error; the handler is not run
    returns what has a JSON form                   a result (see `edge.results`)
    returns anything else                          a tool error
    raises, whatever it be (also SystemExit)       a tool error
    KeyboardInterrupt                              itself: somebody wants the program to end
    leaves a cancel scope or a nursery open        a tool error; tasks in the nursery are cancelled
    is cancelled with its caller                   ``trio.Cancelled``, and no other error beside it
    a ``Cancelled`` though nobody cancelled it     a tool error
    is not done at the call's deadline             a tool error (`Natives.late`)
    =============================================  =======================================================
"""

from __future__ import annotations

import inspect
import math
import threading
from collections.abc import Awaitable, Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any

import trio
from attrs import frozen

from .model.errors import CallTimeout
from .model.native import NativeTool

if TYPE_CHECKING:
    from mcp.types import CallToolResult

__all__ = ["THREADS", "Natives", "Outcome", "in_child"]

THREADS = 40
"""Calls of one sync tool that run at once; also how many of its threads can hang at most."""

_ERRORS_TOLD = 10
"""How many errors of a group are told."""


@frozen
class _Promise:
    """An awaitable that a sync handler returned."""

    value: Awaitable[Any]


@frozen
class Outcome:
    """What an awaitable came to.

    Args:
        value: what it returned.
        error: what it raised, or None.
        left_open: it has left a cancel scope or a nursery open.
    """

    value: Any
    error: BaseException | None
    left_open: bool


class Natives:
    """Runs native tools.

    Args:
        tools: with different names.
        threads: how many calls of one sync tool run at once.
    """

    def __init__(self, tools: Sequence[NativeTool], threads: int = THREADS) -> None:
        self._tools = {tool.name: tool for tool in tools}
        self._threads = {tool.name: trio.CapacityLimiter(threads) for tool in tools}

    def find(self, name: str) -> NativeTool | None:
        """The tool of that name, ready to run, or None.

        What results are made of is imported when a tool is found for the first time, which may take a second: now, so that
        no handler pays for it with the time that its call has.
        """
        tool = self._tools.get(name)
        if tool is not None:
            from .edge.results import ready

            ready()
        return tool

    async def run(self, tool: NativeTool, arguments: Mapping[str, Any]) -> CallToolResult:
        """Run one call to its end; it has no deadline of its own. A checkpoint.

        Args:
            tool: one of them.
            arguments: as the model gave them.

        Returns:
            The result, or the tool error.

        Raises:
            trio.Cancelled: the call was cancelled.
            KeyboardInterrupt: while the handler ran.
        """
        try:
            if _is_async(tool.handler):
                await trio.lowlevel.checkpoint()
                made = _attempt(tool, arguments)
            else:
                made = await self._in_thread(tool, arguments)
            if isinstance(made, _Promise):
                outcome = await in_child(made.value)
                if outcome.left_open:
                    left = RuntimeError("it left a cancel scope or a nursery open")
                    raise BaseExceptionGroup("", [left] if outcome.error is None else [outcome.error, left])
                if outcome.error is not None:
                    raise outcome.error
                return _converted(tool, outcome.value)
            return made
        except BaseException as error:
            passed_on = _passed_on(error)
            if passed_on is None:
                return _failed(tool, error)
            raise passed_on from None

    def late(self, tool: NativeTool, late: CallTimeout) -> CallToolResult:
        """The tool error of a call that its deadline ended."""
        from .edge.results import error_result

        busy = self._threads[tool.name]
        full = f" ({busy.borrowed_tokens:g} calls of it have not ended yet, as many as may run)"
        return error_result(f"{late}{full if busy.available_tokens == 0 else ''}; what it had begun may have been done")

    async def _in_thread(self, tool: NativeTool, arguments: Mapping[str, Any]) -> CallToolResult | _Promise:
        given_up = threading.Event()

        def visit() -> CallToolResult | _Promise | BaseException:
            try:
                made = _attempt(tool, arguments)
            except BaseException as error:
                # As a value: some errors, such as StopIteration, do not get through a task as what they are.
                return error
            if isinstance(made, _Promise) and given_up.is_set() and inspect.iscoroutine(made.value):
                made.value.close()  # nobody will await it
            return made

        try:
            made: CallToolResult | _Promise | BaseException = await trio.to_thread.run_sync(
                visit, abandon_on_cancel=True, limiter=self._threads[tool.name], thread_name=f"playbill: {tool.name}"
            )
        finally:
            given_up.set()
        if isinstance(made, BaseException):
            passed_on = _passed_on(made)
            if passed_on is not None:
                raise passed_on
            return _failed(tool, made)
        return made


async def in_child(promise: Awaitable[Any]) -> Outcome:
    """Await in a task of its own, so that scopes which it leaves open are nobody else's."""
    outcomes: list[Outcome] = []

    async def child() -> None:
        value: Any = None
        error: BaseException | None = None
        finished = False
        try:
            with trio.CancelScope():  # as it is closed, trio puts away the scopes left open in it, and says so
                try:
                    value = await promise
                except BaseException as raised:
                    error = raised
                finished = True
        except RuntimeError:
            if not finished:
                raise
            outcomes.append(Outcome(value, error, True))
        else:
            outcomes.append(Outcome(value, error, False))

    try:
        async with trio.open_nursery() as nursery:
            nursery.start_soon(child)
    except BaseException as error:
        # What it came to counts, though it came too late, or left a nursery open, of which trio complains here.
        if not outcomes or any(isinstance(each, KeyboardInterrupt) for each in _leaves(error)):
            raise
    return outcomes[0]


def _is_async(handler: Callable[..., Any]) -> bool:
    """Whether calling it only makes a coroutine."""
    while isinstance(handler, partial):
        handler = handler.func
    kind: Any = type(handler)
    return inspect.iscoroutinefunction(handler) or inspect.iscoroutinefunction(kind.__call__)


def _attempt(tool: NativeTool, arguments: Mapping[str, Any]) -> CallToolResult | _Promise:
    """Check the arguments, call the handler, and make of what it returns a result, unless that must be awaited first."""
    from .edge.results import error_result

    by_place: tuple[Any, ...] = ()
    by_name = arguments
    if tool.bind is not None:
        try:
            by_place, by_name = tool.bind(arguments)
        except ValueError as error:
            return error_result(str(error))
    value = tool.handler(*by_place, **by_name)
    return _Promise(value) if inspect.isawaitable(value) else _converted(tool, value)


def _converted(tool: NativeTool, value: Any) -> CallToolResult:
    from .edge.results import error_result, to_result

    try:
        return to_result(value)
    except Exception as error:
        return error_result(f"tool {tool.name!r} returned what is no result: {_line(error, with_type=False)}")


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error


def _passed_on(error: BaseException) -> BaseException | None:
    """What of a handler's error is not the tool's affair but its caller's, or None."""
    leaves = list(_leaves(error))
    for each in leaves:
        if isinstance(each, KeyboardInterrupt):
            return each
    if trio.current_effective_deadline() == -math.inf:
        for each in leaves:
            if isinstance(each, trio.Cancelled):
                return each
    return None


def _failed(tool: NativeTool, error: BaseException) -> CallToolResult:
    from .edge.results import error_result

    leaves = list(_leaves(error))
    lines = [_line(each) for each in leaves[:_ERRORS_TOLD]]
    if len(leaves) > _ERRORS_TOLD:
        lines.append(f"and {len(leaves) - _ERRORS_TOLD} more")
    return error_result("; ".join(lines))


def _line(error: BaseException, with_type: bool = True) -> str:
    kind = type(error).__name__
    try:
        text = str(error)
    except Exception:
        text = "(it cannot be put into words)"
    if not with_type:
        return text or kind
    return f"{kind}: {text}" if text else kind
