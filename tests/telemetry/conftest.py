"""Shared by the tests of what is told: an OpenTelemetry SDK in memory, and all records of our loggers.

The provider is put in force for one test by assignment: the API lets a program do that once only. There is one tracer provider
for all tests; what the ``mcp`` SDK keeps is put back after each, or tests elsewhere would find its spans. The modules in
`VIRTUAL` run in virtual time.
"""

from __future__ import annotations

import inspect
import json
import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import opentelemetry.metrics._internal as metrics_api
import pytest
import trio
import trio.testing
from opentelemetry import trace
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter

EXPORTER = InMemorySpanExporter()
PROVIDER = TracerProvider(shutdown_on_exit=False)
PROVIDER.add_span_processor(SimpleSpanProcessor(EXPORTER))
USER = PROVIDER.get_tracer("the program")


def _virtually(main: Any, *, clock: object = None, instruments: Any = ()) -> Any:
    return trio.run(main, clock=trio.testing.MockClock(autojump_threshold=0), instruments=instruments)


VIRTUAL = {"test_calls.py", "test_connects.py", "test_gauges.py", "test_broken_backends.py"}


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Say which tests run in virtual time."""
    for item in items:
        here = item.path.parent == Path(__file__).parent and item.path.name in VIRTUAL
        if here and inspect.iscoroutinefunction(getattr(item, "function", None)):
            item.add_marker(pytest.mark.trio(run=_virtually))


class Watch(logging.Handler):
    """What was told: spans that ended, metrics, and records with their text."""

    def __init__(self) -> None:
        super().__init__(logging.DEBUG)
        self.records: list[logging.LogRecord] = []
        self.texts: list[str] = []
        self.reader = InMemoryMetricReader()
        self.meters = MeterProvider([self.reader], shutdown_on_exit=False)

    def emit(self, record: logging.LogRecord) -> None:
        """Keep it."""
        self.records.append(record)
        self.texts.append(self.format(record))

    def spans(self, name: str | None = None) -> list[ReadableSpan]:
        """Those that ended, in that order."""
        return [span for span in EXPORTER.get_finished_spans() if name in (None, span.name)]

    def span(self, name: str) -> ReadableSpan:
        """The only one of that name."""
        names = [span.name for span in self.spans()]
        assert names.count(name) == 1, names
        return self.spans(name)[0]

    def points(self, name: str) -> list[Any]:
        """The data points of a metric; none when there is no such metric."""
        data = self.reader.get_metrics_data()
        return [
            point
            for resource in (data.resource_metrics if data is not None else ())
            for scope in resource.scope_metrics
            for metric in scope.metrics
            if metric.name == name
            for point in metric.data.data_points
        ]

    def values(self, name: str) -> dict[Any, Any]:
        """The data points of a metric without a distribution, by the value of their one attribute."""
        return {next(iter(point.attributes.values()), None): point.value for point in self.points(name)}

    def events(self, event: str) -> list[Any]:
        """The records of one kind of happening."""
        return [record for record in self.records if getattr(record, "event", None) == event]

    def everything(self) -> str:
        """All that was told, in one text."""
        data = self.reader.get_metrics_data()
        return "\n".join(
            [
                *(span.to_json() for span in self.spans()),
                "" if data is None else data.to_json(),
                *self.texts,
                *(json.dumps(vars(record), default=repr) for record in self.records),
            ]
        )


@pytest.fixture
def watch(monkeypatch: pytest.MonkeyPatch) -> Iterator[Watch]:
    """An SDK is in force, and all that our loggers say is kept."""
    seen = Watch()
    EXPORTER.clear()
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", PROVIDER)
    monkeypatch.setattr("mcp.shared._otel._tracer", PROVIDER.get_tracer("mcp-python-sdk"))
    monkeypatch.setattr(metrics_api, "_METER_PROVIDER", seen.meters)
    logger = logging.getLogger("playbill")
    level = logger.level
    logger.addHandler(seen)
    logger.setLevel(logging.DEBUG)
    yield seen
    logger.setLevel(level)
    logger.removeHandler(seen)


def attributes(span: ReadableSpan) -> dict[str, Any]:
    """Of a span."""
    return dict(span.attributes or {})


def parent_of(span: ReadableSpan) -> int | None:
    """The id of the span that it is a child of; None: it is a root."""
    return None if span.parent is None else span.parent.span_id


def id_of(span: Any) -> int:
    """The id of a span."""
    found: int = span.get_span_context().span_id
    return found
