"""Trio as a guest in an asyncio program, and a bridge of two functions: `Guest.run` leads into trio, `in_asyncio` back.

Copy it. What one must know:

- Both run in one thread, turn by turn. So there is nothing to lock, and what is not async (``host.snapshot()``) may be called
  from anywhere. What is async is called across.
- A loop has one guest at a time, and must outlive it: leaving ``async with Guest(…)`` waits for trio's end, however often
  the waiting task is cancelled meanwhile. (A host ends within 10 s, whatever its servers do.)
- Ctrl-C is asyncio's: `asyncio.run` cancels its main task, and what that awaits is cancelled in trio too. Trio is told to
  leave the wake-up file descriptor of signals alone: asyncio (with ``add_signal_handler``) and uvloop need it.
- When trio ends by itself (a host whose core broke) all that waits for it is told at once: calls end with `RuntimeError`, and
  the task in the block is cancelled there, and gets the reason where it leaves the block.
- Context variables are those of the task that calls, as they are then.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import Any, Generic, TypeVar

import outcome
import trio

__all__ = ["Guest", "in_asyncio"]

T = TypeVar("T")


class Guest(Generic[T]):
    """Trio, in the asyncio program that enters this, and one trio context in it that is open as long as this is.

    Args:
        context: such as ``open_host(…)``; it is entered and left in trio.

    Attributes:
        value: what the context gave.
    """

    value: T

    def __init__(self, context: AbstractAsyncContextManager[T]) -> None:
        self._context = context
        self._scope = trio.CancelScope()
        self._leaving = self._told = False

    async def __aenter__(self) -> Guest[T]:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.current_task()
        self._open: asyncio.Future[None] = self._loop.create_future()
        self._ended: asyncio.Future[outcome.Outcome[None]] = self._loop.create_future()
        trio.lowlevel.start_guest_run(
            self._main,
            run_sync_soon_threadsafe=self._loop.call_soon_threadsafe,
            run_sync_soon_not_threadsafe=self._loop.call_soon,
            done_callback=self._ended.set_result,
            host_uses_signal_set_wakeup_fd=True,
        )
        try:
            either: list[asyncio.Future[Any]] = [self._open, self._ended]
            await asyncio.wait(either, return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError:
            await self.__aexit__(None, None, None)
            raise
        if self._ended.done():
            self._ended.result().unwrap()  # it could not be opened, and this says why
        self._ended.add_done_callback(self._tell)
        return self

    def _tell(self, _: object) -> None:
        """Trio ended: nobody in the block may go on as if it had not."""
        if not self._leaving and self._task is not None:
            self._told = True
            self._task.cancel("trio has ended")

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._leaving = True
        self._scope.cancel()
        given_up = await _settled(self._ended)
        # The cancellation that was ours is none: the reason takes its place.
        ours = self._told and self._task is not None and not self._task.uncancel()
        self._ended.result().unwrap()
        if ours and (kind is None or issubclass(kind, asyncio.CancelledError)):
            raise RuntimeError("trio has ended")
        if given_up is not None and not ours:
            raise given_up

    async def _main(self) -> None:
        with self._scope:
            async with self._context as self.value, trio.open_nursery() as self._nursery:
                self._scope = self._nursery.cancel_scope  # from now on: the context itself is left in order
                self._open.set_result(None)
                await trio.sleep_forever()

    async def run(self, function: Callable[..., Awaitable[Any]], *args: Any, **kwargs: Any) -> Any:
        """Call a trio function from asyncio. When this is cancelled, so is the call; and this ends when the call has.

        Raises:
            RuntimeError: trio has ended, or does before the call.
            Exception: what the function raises, also while it is cancelled.
        """
        if self._ended.done():
            raise RuntimeError("trio has ended")
        answer: asyncio.Future[outcome.Outcome[Any]] = self._loop.create_future()
        scope = trio.CancelScope()

        async def call() -> None:
            result: outcome.Outcome[Any] = outcome.Error(RuntimeError("trio ended before the call did"))
            try:
                with scope:
                    result = outcome.Value(await function(*args, **kwargs))
                if scope.cancelled_caught:
                    result = outcome.Value(None)
            except Exception as error:
                result = outcome.Error(error)
            finally:
                answer.set_result(result)

        self._nursery.start_soon(call)
        given_up = await _settled(answer, scope.cancel, self._ended)
        if not answer.done():
            raise RuntimeError("trio ended before the call did")
        value = answer.result().unwrap()
        if given_up is not None:
            raise given_up
        return value


async def _settled(
    future: asyncio.Future[Any], cancel: Callable[[], None] = lambda: None, *or_else: asyncio.Future[Any]
) -> asyncio.CancelledError | None:
    """Wait until a future is done, or another one, in any case. Being cancelled meanwhile is passed on, and returned."""
    given_up = None
    while not any(each.done() for each in (future, *or_else)):
        try:
            await asyncio.wait([future, *or_else], return_when=asyncio.FIRST_COMPLETED)
        except asyncio.CancelledError as error:
            given_up = error
            cancel()
    return given_up


async def in_asyncio(function: Callable[..., Awaitable[T]], *args: Any, **kwargs: Any) -> T:
    """Call an asyncio function from trio, in a guest run. When this is cancelled, so is the call; and this ends when it has.

    Raises:
        RuntimeError: the task was cancelled from the asyncio side.
        Exception: what the function raises, also while it is cancelled.
    """
    task = asyncio.ensure_future(function(*args, **kwargs))
    done = trio.Event()
    task.add_done_callback(lambda _: done.set())
    try:
        await done.wait()
    except trio.Cancelled:
        task.cancel()
        with trio.CancelScope(shield=True):
            await done.wait()
        if not task.cancelled():
            task.result()
        raise
    if task.cancelled():
        raise RuntimeError("the asyncio task was cancelled")
    return task.result()
