"""Nobody records: nothing is imported for it, nothing is made, and a caller's own trace goes on all the same."""

from __future__ import annotations

import json
import logging
import subprocess
import sys
from typing import Any

import pytest
from opentelemetry import context, trace
from opentelemetry.trace import NonRecordingSpan, SpanContext, TraceFlags
from playbill.actors import Config, open_host
from playbill.actors.telemetry import notes
from playbill.actors.telemetry.calls import calling, running, server_request
from playbill.actors.telemetry.operations import operating

from .test_real_servers import PATIENCE, said, stdio

IMPORTS = """
import sys, trio
import playbill.actors
from playbill.actors.testing.kit import ServerKit

async def main():
    kit = ServerKit(a=["t"])
    async with kit.open() as host:
        await host.ready(timeout=10)
        await host.call("mcp__a__t", timeout=10)
        await host.tool_set_enabled("a", "t", False)

trio.run(main)
print([name for name in sys.modules if name.split(".")[0] in ("opentelemetry", "mcp", "mcp_types")])
"""


def test_nothing_is_imported_for_it() -> None:
    done = subprocess.run([sys.executable, "-c", IMPORTS], capture_output=True, text=True)
    assert (done.returncode, done.stdout, done.stderr) == (0, "[]\n", "")


async def test_nothing_is_made(monkeypatch: pytest.MonkeyPatch) -> None:
    made: list[str] = []
    monkeypatch.setattr(notes.Note, "__enter__", lambda self: made.append(self.name))
    assert trace.get_tracer_provider().__class__.__name__ == "ProxyTracerProvider"
    monkeypatch.setattr(logging.getLogger("playbill"), "level", logging.WARNING)
    for note in (calling("a", "t"), running("t"), server_request("initialize", "a"), operating("reload")):
        assert note is notes.NOTHING
        with note:
            assert notes.current() is None
    assert made == []


async def test_a_trace_of_the_caller_reaches_the_server_without_an_sdk() -> None:
    given = SpanContext(0x4BF92F3577B34DA6A3CE929D0E0E4736, 0xF067AA0BA902B7, True, TraceFlags(1))
    async with open_host(Config((stdio(),))) as host:
        await host.ready(timeout=PATIENCE)
        token = context.attach(trace.set_span_in_context(NonRecordingSpan(given)))
        try:
            told: Any = json.loads(said(await host.call_tool("local", "meta", timeout=PATIENCE)))
        finally:
            context.detach(token)
    assert told["call"] == {"traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"}
    assert [meta for _, meta in told["before"] if meta and "traceparent" in meta] == []


async def test_what_runs_for_the_host_carries_no_trace_of_its_opener() -> None:
    given = SpanContext(0x4BF92F3577B34DA6A3CE929D0E0E4736, 0xF067AA0BA902B7, True, TraceFlags(1))
    token = context.attach(trace.set_span_in_context(NonRecordingSpan(given)))
    try:
        async with open_host(Config((stdio(),))) as host:
            await host.ready(timeout=PATIENCE)
            context.attach(context.Context())
            told: Any = json.loads(said(await host.call_tool("local", "meta", timeout=PATIENCE)))
    finally:
        context.detach(token)
    assert [meta for _, meta in told["before"] if meta and "traceparent" in meta] == []
