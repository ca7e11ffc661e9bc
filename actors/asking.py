"""What servers ask of the embedding program: its handlers at work, whatever they do and however much is asked.

Theory of operation
    An `Asking` is the embedder as one incarnation of a server meets it. A handler runs in a task of the host's own, neither in
    the connection's nor in that of a call: what the server waits for is only its outcome. So a handler that raises, hangs or
    cannot be cancelled keeps nobody but the request that asked.

    =====================================================  ===========================================================
    a question                                             becomes
    =====================================================  ===========================================================
    of what has no handler                                 refused (and it was never announced)
    beyond ``at_once`` of one server                       waits for its turn
    beyond ``at_once`` + ``waiting`` of one server         refused at once
    whose handler raises, or leaves a scope open           refused; the program's log has the error, the server its name
    whose handler raises ``mcp.MCPError``                  refused with its code, message and data
    that is not answered within ``timeout``                refused; the handler is cancelled
    whose asker is gone (dead, or has cancelled it)        nothing; the handler is cancelled
    whose handler raises KeyboardInterrupt                 refused, and the host ends with it
    =====================================================  ===========================================================

    A handler that does not let itself be cancelled keeps its turn until it ends: no server has more than ``at_once`` of them
    running. What a server tells (its log) goes through a queue that drops its oldest; one task of the incarnation empties it.

    While a question is open, the idle limits of the calls that are in flight to that server stand still: it cannot answer
    them before it is answered. Their total limits do not.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Awaitable, Callable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any, Literal, cast

import trio
from attrs import define, field

from .model.amount import amount
from .model.client import Asker, ClientHandlers, LogMessage, Root, as_root
from .model.plain import quoted
from .natives import in_child
from .ports import ClientRefused, Patience, Question
from .telemetry.log import Log

__all__ = ["NOBODY", "Asking"]

_LOG = Log("playbill.client")

NOBODY = ClientHandlers()
"""Answers nothing."""

MAX_TOLD = 256
"""Log messages that wait for the handler; beyond, the oldest is dropped."""

MAX_TOLD_CHARS = 4_000_000
"""The same of their characters together, so that large ones take no more room; the newest is kept in any case."""

TELL_SECONDS = 10.0
"""Within which a handler takes what it need not answer, at most."""

MAX_ROOTS = 1000


@define(eq=False)
class _Job:
    """One handler at work.

    Args:
        scope: around it.
        done: it has ended, or was given up.
        value, error: what it came to.
        left_open: it left a cancel scope or a nursery open.
    """

    scope: trio.CancelScope = field(factory=trio.CancelScope)
    done: trio.Event = field(factory=trio.Event)
    value: Any = None
    error: BaseException | None = None
    left_open: bool = False


class Asking:
    """The embedder, as one incarnation of a server meets it; fulfils `ports.Client`.

    Args:
        handlers: the embedder's.
        server, generation: who asks.
        nursery: gives the nursery that handlers run in.
    """

    def __init__(
        self, handlers: ClientHandlers, server: str, generation: int, nursery: Callable[[], trio.Nursery]
    ) -> None:
        self.handlers = handlers
        self.asker = Asker(server, generation)
        self._nursery = nursery
        self._turns, self._turn_to_tell = trio.Semaphore(handlers.at_once), trio.Semaphore(1)
        self._open = 0
        self._closed = False
        self._jobs: set[_Job] = set()
        self._calls: set[Patience] = set()
        self._told: deque[tuple[int, str, tuple[Any, ...]]] = deque()
        self._told_chars = 0
        self._dropped = 0
        self._telling = False

    def met(self, protocol_version: str | None) -> None:
        """As `ports.Client`."""
        self.asker = Asker(self.asker.server, self.asker.generation, protocol_version)

    # ── questions ────────────────────────────────────────────────────────────────────────────────────────────────────

    async def ask(self, question: Question, params: Any) -> Any:
        """As `ports.Client`. A checkpoint."""
        await trio.lowlevel.checkpoint()
        handler: Any = getattr(self.handlers, question)
        if handler is None:
            raise ClientRefused(f"{question} is not supported", code=-32601)
        if question == "roots" and not callable(handler):
            return handler  # as values
        work = cast("Callable[..., Awaitable[Any]]", handler)
        if self._open >= self.handlers.at_once + self.handlers.waiting:
            raise ClientRefused("too many questions at once")
        self._begin()
        try:
            # The asker as it is now: another one when the handshake is done.
            given = (self.asker,) if question == "roots" else (self.asker, params)
            job = await self._run(question, lambda: work(*given), self.handlers.timeout, self._turns)
        finally:
            self._end()
        if job is None:
            raise ClientRefused(f"the {question} handler gave no answer within {self.handlers.timeout:g} s")
        if job.error is not None or job.left_open:
            raise _refusal(question, job, self.asker.server)
        return _roots(job.value) if question == "roots" else job.value

    def _begin(self) -> None:
        self._open += 1
        for call in self._calls:
            call.hold()

    def _end(self) -> None:
        self._open -= 1
        if not self._open:
            for call in self._calls:
                call.heard()

    @contextmanager
    def holding(self, patience: Patience) -> Iterator[None]:
        """As `ports.Client`."""
        self._calls.add(patience)
        if self._open:
            patience.hold()
        try:
            yield
        finally:
            self._calls.discard(patience)

    async def _run(
        self, what: str, work: Callable[[], Awaitable[Any]], seconds: float, turns: trio.Semaphore
    ) -> _Job | None:
        """Run a handler by its deadline; None when that was over first."""
        with trio.move_on_after(seconds):
            await turns.acquire()
            job = _Job()
            try:
                self._nursery().start_soon(self._work, job, work, turns, name=f"playbill: {what} handler")
            except BaseException:
                turns.release()
                raise
            self._jobs.add(job)
            try:
                if self._closed:
                    job.scope.cancel()
                await job.done.wait()
                return job
            finally:
                job.scope.cancel()
                self._jobs.discard(job)
        return None

    async def _work(self, job: _Job, work: Callable[[], Awaitable[Any]], turns: trio.Semaphore) -> None:
        async def handle() -> Any:
            return await work()

        job.error = RuntimeError("it was cancelled")
        try:
            with job.scope:
                outcome = await in_child(handle())
                job.value, job.error, job.left_open = outcome.value, outcome.error, outcome.left_open
                if any(isinstance(each, KeyboardInterrupt) for each in _leaves(outcome.error)):
                    raise KeyboardInterrupt  # somebody wants the program to end
        except Exception as error:  # a nursery left open, of which trio complains
            job.error = error
        finally:
            turns.release()
            job.done.set()

    # ── what is only told ────────────────────────────────────────────────────────────────────────────────────────────

    def tell(self, notice: Literal["logging", "elicitation_complete"], *said: Any) -> None:
        """As `ports.Client`."""
        if self._closed or getattr(self.handlers, notice) is None:
            return
        size = amount(said)
        while self._told and (len(self._told) >= MAX_TOLD or self._told_chars + size > MAX_TOLD_CHARS):
            self._next_told()
            self._dropped += 1
        self._told.append((size, notice, said))
        self._told_chars += size
        if not self._telling:
            self._telling = True
            self._nursery().start_soon(self._tell_all)

    def _next_told(self) -> tuple[str, tuple[Any, ...]]:
        size, notice, said = self._told.popleft()
        self._told_chars -= size
        return notice, said

    async def _tell_all(self) -> None:
        try:
            while self._told and not self._closed:
                notice, said = self._next_told()
                if notice == "logging":
                    level, data, logger = said
                    said = (LogMessage(level, data, logger, self._dropped),)
                    self._dropped = 0
                handler = getattr(self.handlers, notice)
                await self._tell(notice, lambda handler=handler, said=said: handler(self.asker, *said))  # type: ignore[misc]
        finally:
            self._telling = False

    async def _tell(self, notice: str, work: Callable[[], Awaitable[Any]]) -> None:
        seconds = min(self.handlers.timeout, TELL_SECONDS)
        job = await self._run(notice, work, seconds, self._turn_to_tell)
        if job is None:
            _LOG.warning("the %s handler did not end within %g s", notice, seconds, server=self.asker.server)
        elif job.error is not None and not self._closed:
            _LOG.failed(job.error, "the %s handler failed", notice, server=self.asker.server)

    def close(self) -> None:
        """As `ports.Client`."""
        self._closed = True
        self._told.clear()
        self._told_chars = 0
        for job in self._jobs:
            job.scope.cancel()


def _refusal(question: Question, job: _Job, server: str) -> ClientRefused:
    """What the server is told of a handler that failed: no word of the error itself, which is the program's own affair."""
    from mcp.shared.exceptions import MCPError

    error = job.error
    if isinstance(error, MCPError):
        return ClientRefused(error.message, error.code, error.data)
    if isinstance(error, ClientRefused):
        return error
    what = type(next(_leaves(error))).__name__ if error is not None else "it left a cancel scope or a nursery open"
    _LOG.failed(error, "the %s handler failed: %s", question, what, server=server)
    return ClientRefused(f"the {question} handler failed ({what})")


def _roots(value: Any) -> tuple[Root, ...]:
    try:
        if isinstance(value, (str, bytes)):
            raise TypeError("roots are a list of Root or of URIs")
        return tuple(as_root(each) for each in islice(value, MAX_ROOTS))
    except Exception as error:  # a generator of the embedder's may raise anything
        _LOG.warning("the roots handler returned no roots: %s", error)
        raise ClientRefused(f"the roots handler returned no roots, but {quoted(type(value).__name__)}") from None


def _leaves(error: BaseException | None) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    elif error is not None:
        yield error
