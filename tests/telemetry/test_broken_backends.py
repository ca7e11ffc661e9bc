"""Whatever is wrong with an SDK, an exporter or a handler: calls, connects and reloads go on."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from typing import Any

import opentelemetry.metrics._internal as metrics_api
import pytest
from opentelemetry import trace
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.sampling import Sampler
from playbill.actors.telemetry import backend
from playbill.actors.testing.kit import ServerKit
from playbill.supervision import Backoff

from .conftest import USER, Watch

BACKOFF = Backoff(base=1.0, max=30.0, jitter=0.0, reset_after=30.0)


class Defect(Exception):
    """Of the program's."""


class AtStart(SpanProcessor):
    """Fails as a span begins."""

    def on_start(self, span: Any, parent_context: Any = None) -> None:
        """Fail."""
        raise Defect


class AtEnd(SpanProcessor):
    """Fails as a span ends."""

    def on_end(self, span: Any) -> None:
        """Fail."""
        raise Defect


class NoSample(Sampler):
    """Fails when it is asked."""

    def should_sample(self, *args: Any, **kwargs: Any) -> Any:
        """Fail."""
        raise Defect

    def get_description(self) -> str:
        """Of no use."""
        return "fails"


class NoProvider:
    """Fails at all that is asked of it."""

    def __getattr__(self, name: str) -> Any:
        raise Defect


def _with(processor: SpanProcessor) -> TracerProvider:
    provider = TracerProvider(shutdown_on_exit=False)
    provider.add_span_processor(processor)
    return provider


@pytest.fixture
def afresh(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """What was broken in one test is not in the next."""
    backend._complained.clear()
    for source in (backend._tracing, backend._metering):
        monkeypatch.setattr(source, "_broken", False)
    yield
    backend._complained.clear()


async def _everything_works() -> None:
    kit = ServerKit(a=["t"])
    async with kit.open(backoff=BACKOFF) as host:
        before = trace.get_current_span()
        await host.ready(timeout=5)
        assert await host.call("mcp__a__t", {"x": 1}, timeout=5) == {"tool": "t", "arguments": {"x": 1}}
        kit.kill("a")
        async for snapshot in host.changes():
            if snapshot.model.servers[0].restarts == 1 and snapshot.model.servers[0].phase == "ready":
                break
        await host.tool_set_enabled("a", "t", False)
        assert trace.get_current_span() is before


@pytest.mark.parametrize(
    "provider",
    [_with(AtStart()), _with(AtEnd()), TracerProvider(NoSample(), shutdown_on_exit=False), NoProvider()],
    ids=["on_start", "on_end", "sampler", "provider"],
)
@pytest.mark.usefixtures("afresh")
async def test_spans_that_cannot_be_recorded_cost_nothing_else(
    watch: Watch, monkeypatch: pytest.MonkeyPatch, provider: Any
) -> None:
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", provider)
    with USER.start_as_current_span("agent"):
        await _everything_works()
    assert len(watch.events("telemetry_failed")) == 1  # and not at each span
    assert watch.points("mcp.client.operation.duration")


@pytest.mark.usefixtures("afresh")
async def test_metrics_that_cannot_be_recorded_cost_nothing_else(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(metrics_api, "_METER_PROVIDER", NoProvider())
    await _everything_works()
    assert watch.spans("tools/call t")


@pytest.mark.usefixtures("afresh")
async def test_a_provider_in_the_environment_that_is_not_there_is_looked_for_once(
    watch: Watch, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    monkeypatch.setenv("OTEL_PYTHON_TRACER_PROVIDER", "nowhere")
    logging.getLogger("opentelemetry").setLevel(logging.CRITICAL)
    try:
        await _everything_works()
    finally:
        logging.getLogger("opentelemetry").setLevel(logging.NOTSET)
    assert len(watch.events("telemetry_failed")) == 1


async def test_a_handler_that_raises_costs_nothing_else(watch: Watch) -> None:
    class Broken(logging.Handler):
        def emit(self, record: logging.LogRecord) -> None:
            raise Defect

    broken = Broken()
    logging.getLogger("playbill").addHandler(broken)
    try:
        await _everything_works()
    finally:
        logging.getLogger("playbill").removeHandler(broken)


async def test_a_provider_that_is_set_late_is_used_from_then_on(watch: Watch, monkeypatch: pytest.MonkeyPatch) -> None:
    late = trace._TRACER_PROVIDER
    monkeypatch.setattr(trace, "_TRACER_PROVIDER", None)
    async with ServerKit(a=["t"]).open() as host:
        await host.ready(timeout=5)
        await host.call("mcp__a__t", timeout=5)
        monkeypatch.setattr(trace, "_TRACER_PROVIDER", late)
        await host.call("mcp__a__t", timeout=5)
    assert [span.name for span in watch.spans()] == ["tools/call t"]
