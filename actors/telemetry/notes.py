"""A note: one thing that is going on, told as a span and, where it has one, a duration.

Theory of operation. A note is entered and left in one task. While it is open it is the task's current span, so that requests
carry it to the server, and it can be found by `current` in whatever the task calls: what is learned further down (the request's
id, the protocol's version) is put on it there. What comes too late is dropped. Nothing here waits or raises.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping
from contextvars import ContextVar, Token
from types import TracebackType
from typing import TYPE_CHECKING, Any

import trio

from .backend import harmless, meter, tracer
from .gauges import instruments
from .names import ERROR, Value, error_type, error_words, for_metric

if TYPE_CHECKING:
    from opentelemetry.trace import Span, SpanContext

__all__ = ["NOTHING", "Note", "alone", "current", "record", "recording"]

_current: ContextVar[Note | None] = ContextVar("what this task is doing", default=None)

CLIENT, INTERNAL = "CLIENT", "INTERNAL"


def recording() -> bool:
    """Whether an SDK records anything."""
    return tracer() is not None or meter() is not None


def current() -> Note | None:
    """The note that this task has open, or None."""
    return _current.get()


class Note:
    """One thing that is going on.

    Args:
        name: of the span.
        attributes: known from the start; samplers see these.
        kind: ``CLIENT`` or ``INTERNAL``.
        duration: the name of the histogram that its duration goes to, or None.
        root: it is no part of what the task, or whoever started it, was doing.
        link: the span of what it follows upon, or None.

    Attributes:
        error: its ``error.type``, or None while all is well.
    """

    def __init__(
        self,
        name: str,
        attributes: Mapping[str, Value],
        *,
        kind: str = CLIENT,
        duration: str | None = None,
        root: bool = False,
        link: SpanContext | None = None,
    ) -> None:
        self.name = name
        self.attributes: dict[str, Value] = dict(attributes)
        self.error: str | None = None
        self.seconds = 0.0
        self._kind = kind
        self._duration = duration
        self._root = root
        self._link = link
        self._span: Span | None = None
        self._attached: object = None
        self._token: Token[Note | None] | None = None
        self._words: str | None = None
        self._began = 0.0
        self._open = False

    def put(self, name: str, value: Value | None) -> None:
        """Put an attribute on it; None, or on one that has ended: nothing happens."""
        if value is not None and self._open:
            self.attributes[name] = value

    def update(self, attributes: Mapping[str, Value]) -> None:
        """Put several attributes on it, as `put`."""
        if self._open:
            self.attributes.update(attributes)

    def fail(self, type: str, words: str | None = None) -> None:
        """It has failed; the first failure that is said stays.

        Args:
            type: the ``error.type``.
            words: one line without secrets, or None.
        """
        if self.error is None and self._open:
            self.error, self._words = type, words

    @property
    def span_context(self) -> SpanContext | None:
        """Of its span, for a link to it."""
        return None if self._span is None else self._span.get_span_context()

    def __enter__(self) -> Note:
        self._began = trio.current_time()
        self._open = True
        self._token = _current.set(self)
        self._begin()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.end(error)

    def end(self, error: BaseException | None = None) -> None:
        """End it, in the task that entered it. Again: nothing happens."""
        if not self._open:
            return
        self.seconds = trio.current_time() - self._began
        if error is not None:
            self.fail(error_type(error), error_words(error))
        self._open = False
        if self._token is not None:
            _current.reset(self._token)
        self._detach()
        self._end()
        self._measure()

    @harmless
    def _begin(self) -> None:
        found = tracer()
        if found is None:
            return
        from opentelemetry import context, trace

        parent = context.Context() if self._root else None
        links = [] if self._link is None else [trace.Link(self._link)]
        kind = trace.SpanKind[self._kind]
        self._span = found.start_span(self.name, parent, kind, attributes=dict(self.attributes), links=links)
        self._attached = context.attach(trace.set_span_in_context(self._span, parent))

    @harmless
    def _detach(self) -> None:
        if self._attached is not None:
            from opentelemetry import context

            token: Any = self._attached
            context.detach(token)

    @harmless
    def _end(self) -> None:
        span = self._span
        if span is None:
            return
        try:
            if span.is_recording():
                span.update_name(self.name)
                span.set_attributes(dict(self.attributes))
                if self.error is not None:
                    from opentelemetry.trace import StatusCode

                    span.set_attribute(ERROR, self.error)
                    span.set_status(StatusCode.ERROR, self._words)
        finally:
            span.end()

    def _measure(self) -> None:
        if self._duration is not None:
            record(self._duration, self.seconds, self.attributes, self.error)


@harmless
def record(duration: str, seconds: float, attributes: Mapping[str, Value], error: str | None) -> None:
    """Record a duration, with those of the attributes that go with a metric."""
    found = instruments()
    if found is not None:
        found.durations[duration].record(
            seconds, for_metric(attributes if error is None else {**attributes, ERROR: error})
        )


class _Nothing(Note):
    """What stands for a note when nobody records: nothing happens."""

    def __init__(self) -> None:
        super().__init__("", {})

    def __enter__(self) -> Note:
        return self

    def end(self, error: BaseException | None = None) -> None:
        """Nothing happens."""


NOTHING = _Nothing()
"""One for all: it remembers nothing."""


class alone:
    """A block in which no span is current, nor any note: tasks that are started in it are no part of what goes on around it."""

    def __enter__(self) -> None:
        self._token = _current.set(None)
        self._attached: Any = None
        self._begin()

    @harmless
    def _begin(self) -> None:
        # Nobody has a span where nobody has imported this.
        if "opentelemetry.context" in sys.modules:
            from opentelemetry import context

            self._attached = context.attach(context.Context())

    @harmless
    def _end(self) -> None:
        if self._attached is not None:
            from opentelemetry import context

            context.detach(self._attached)

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        _current.reset(self._token)
        self._end()
