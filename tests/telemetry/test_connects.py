"""Connects, restarts, sessions and operations, over scripted servers in virtual time."""

from __future__ import annotations

import json
import logging
import random
from pathlib import Path
from typing import Any

import pytest
import trio
from opentelemetry import trace
from opentelemetry.trace import SpanKind, StatusCode
from playbill.actors import ConfigError, Host, ServerDied, open_host
from playbill.actors.edge.config.file import FileStore
from playbill.actors.testing import Script, ScriptedServers
from playbill.actors.testing.kit import ServerKit
from playbill.supervision import Backoff, Intensity

from .conftest import USER, Watch, attributes, id_of, parent_of

BACKOFF = Backoff(base=1.0, max=30.0, jitter=0.0, reset_after=30.0)
INTENSITY = Intensity(restarts=2, window=600.0, then="park", park_retry=None)


async def phase(host: Host, name: str, phase: str) -> None:
    async for snapshot in host.changes():
        state = snapshot.model.server(name)
        if state is not None and state.phase == phase:
            return


async def test_a_connect_is_the_root_of_its_own_trace(watch: Watch) -> None:
    with USER.start_as_current_span("opening"):
        kit = ServerKit(a=["t", "u"], b=["t"])
        async with kit.open(kit.config()) as host:
            await host.ready(timeout=5)
            with USER.start_as_current_span("adding"):
                await host.plugin_remove("b")
                await host.plugin_add("b", "b")
                await host.ready(timeout=5)
                await host.restart("a")
                await phase(host, "a", "ready")
    connects = watch.spans("playbill.connect a") + watch.spans("playbill.connect b")
    assert len(connects) == 4
    for span in connects:
        assert parent_of(span) is None
        assert span.kind is SpanKind.INTERNAL
        assert span.status.status_code is StatusCode.UNSET
    first = attributes(connects[0])
    assert (first["playbill.server"], first["playbill.tools"]) == ("a", 2)
    assert first["playbill.generation"] != attributes(connects[1])["playbill.generation"]


async def test_each_connect_is_linked_to_the_one_before_of_the_same_server(watch: Watch) -> None:
    kit = ServerKit(a=["t"], b=["t"])
    async with kit.open(backoff=BACKOFF) as host:
        await host.ready(timeout=5)
        for _ in range(2):
            kit.kill("a")
            await phase(host, "a", "backing_off")
            await phase(host, "a", "ready")
    first, second, third = watch.spans("playbill.connect a")
    assert first.links == ()
    assert [link.context.span_id for link in second.links] == [id_of(first)]
    assert [link.context.span_id for link in third.links] == [id_of(second)]
    assert watch.span("playbill.connect b").links == ()
    assert len({span.get_span_context().trace_id for span in (first, second, third)}) == 3


async def test_a_restart_is_no_part_of_the_call_that_saw_the_death(watch: Watch) -> None:
    kit = ServerKit(a=Script(("t",), call_delay=60.0))
    async with kit.open(backoff=BACKOFF) as host:
        await host.ready(timeout=5)
        async with trio.open_nursery() as nursery:

            async def agent() -> None:
                with USER.start_as_current_span("agent"), pytest.raises(ServerDied):
                    await host.call_tool("a", "t", timeout=50)

            nursery.start_soon(agent)
            await trio.testing.wait_all_tasks_blocked()
            kit.kill("a")
        await phase(host, "a", "ready")
    assert [parent_of(span) for span in watch.spans("playbill.connect a")] == [None, None]
    assert parent_of(watch.span("tools/call t")) == id_of(watch.span("agent"))


async def test_restarts_are_counted_as_they_happen(watch: Watch) -> None:
    kit = ServerKit(a=["t"], b=["t"])
    async with kit.open(backoff=BACKOFF) as host:
        await host.ready(timeout=5)
        for _ in range(2):
            kit.kill("a")
            await phase(host, "a", "backing_off")
            await phase(host, "a", "ready")
        assert watch.values("playbill.server.restarts") == {"a": 2}
        await trio.sleep(100)  # its history is cleared
        kit.kill("a")
        await phase(host, "a", "backing_off")
        await phase(host, "a", "ready")
        assert watch.values("playbill.server.restarts") == {"a": 3}
        await host.restart("a")  # which is no restart after a death
        await phase(host, "a", "ready")
        assert watch.values("playbill.server.restarts") == {"a": 3}


async def test_a_server_that_cannot_be_connected_to_says_why_at_each_attempt(watch: Watch) -> None:
    kit = ServerKit(a=Script(refuse="it exited with code 3: password=hunter2hunter2"), b=["t"])
    async with kit.open(backoff=BACKOFF, intensity=INTENSITY) as host:
        await phase(host, "a", "parked")
    spans = watch.spans("playbill.connect a")
    assert [attributes(span)["error.type"] for span in spans] == ["connection_failed"] * 3
    assert spans[0].status.status_code is StatusCode.ERROR
    assert spans[0].status.description == "it exited with code 3: password=***"
    failed = watch.events("connect_failed")
    assert [(record.levelname, record.server, record.error_type) for record in failed] == [
        ("WARNING", "a", "connection_failed")
    ] * 3
    waits = watch.events("backing_off")
    assert [(record.attempt, record.attempts_allowed, record.retry_in) for record in waits] == [
        (1, 2, 1.0),
        (2, 2, 2.0),
    ]
    (parked,) = watch.events("parked")
    assert (parked.levelname, parked.server, parked.phase) == ("ERROR", "a", "parked")
    assert not hasattr(parked, "retry_in")
    assert parked.getMessage() == (
        "server a is parked after 2 restarts, and tried again only when it is asked for: "
        "it exited with code 3: password=***"
    )
    assert all("hunter2" not in text for record, text in zip(watch.records, watch.texts, strict=True) if ours(record))


async def test_a_login_that_is_wanted_has_its_own_type(watch: Watch) -> None:
    kit = ServerKit(a=Script(refuse="401 Unauthorized", needs_auth=True))
    async with kit.open() as host:
        await phase(host, "a", "needs_auth")
    assert attributes(watch.span("playbill.connect a"))["error.type"] == "needs_auth"
    assert watch.events("connect_failed")[0].phase == "needs_auth"


async def test_a_connect_that_is_given_up_is_cancelled(watch: Watch) -> None:
    kit = ServerKit(a=Script(("t",), connect_delay=60.0))
    async with kit.open() as host:
        await trio.sleep(1)
        await host.server_set_enabled("a", False)
        await phase(host, "a", "disabled")
    assert attributes(watch.span("playbill.connect a"))["error.type"] == "cancelled"
    assert watch.events("connect_failed") == []


async def test_a_session_lasts_from_ready_to_its_end(watch: Watch) -> None:
    kit = ServerKit(a=Script(("t",), connect_delay=5.0))
    async with kit.open(backoff=BACKOFF) as host:
        await host.ready(timeout=20)
        await trio.sleep(40)
        kit.kill("a", "exited with code 9")
        await phase(host, "a", "backing_off")
        await phase(host, "a", "ready")
        await trio.sleep(7)
    lost, closed = sorted(watch.points("mcp.client.session.duration"), key=lambda point: -point.sum)
    assert (lost.count, lost.sum, closed.sum) == (1, pytest.approx(40.0), pytest.approx(7.0))
    assert lost.attributes["error.type"] == "connection_lost"
    assert "error.type" not in closed.attributes
    assert watch.events("lost")[0].reason == "exited with code 9"
    assert watch.events("closed")[0].seconds == pytest.approx(7.0)
    assert [record.tools for record in watch.events("ready")] == [1, 1]


async def test_nothing_is_current_in_a_server_that_runs(watch: Watch) -> None:
    seen: list[Any] = []

    class Looking(ScriptedServers):
        def _say(self, name: str, what: str) -> None:
            seen.append((what, trace.get_current_span().get_span_context().span_id))
            super()._say(name, what)

    with USER.start_as_current_span("opening"):
        async with open_host(connect=(servers := Looking(a=["t"])), config=_config(servers)) as host:
            await host.ready(timeout=5)
    connect = id_of(watch.span("playbill.connect a"))
    assert seen == [("spawn", connect), ("connected", connect), ("end", 0)]


def ours(record: logging.LogRecord) -> bool:
    """Whether it is none of the supervisor's, who shows tracebacks as they are to those who look closely."""
    return not record.name.startswith("playbill.supervision")


def _config(servers: ScriptedServers) -> Any:
    from playbill.actors import Config

    return Config(servers.entries())


async def test_an_operation_is_a_span_below_what_its_caller_does(watch: Watch, tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"

    def write(*names: str) -> None:
        path.write_text(json.dumps({"mcpServers": {name: {"command": name} for name in names}}))

    write("a", "b")
    servers = ScriptedServers(a=["t"], b=["t"], c=["t"])
    async with open_host(store=FileStore(path), connect=servers, rng=random.Random(7)) as host:
        await host.ready(timeout=5)
        write("a", "c")
        with USER.start_as_current_span("agent") as agent:
            await host.reload()
        await host.tool_set_enabled("a", "t", False)
        path.write_text('{"mcpServers": {"a": {"command": "a", "env": {"TOKEN": "hunter2"}}')
        with pytest.raises(ConfigError):
            await host.reload()
        rev = host.snapshot().config_rev
    good, bad = watch.spans("playbill.reload")
    assert parent_of(good) == id_of(agent)
    assert attributes(good) == {"playbill.config.rev": 2}
    assert attributes(bad) == {"playbill.config.rev": rev, "error.type": "config_error"}
    assert bad.status.status_code is StatusCode.ERROR
    assert bad.status.description is not None
    assert str(path) in bad.status.description
    toggled = attributes(watch.span("playbill.tool_set_enabled"))
    assert toggled == {"playbill.server": "a", "playbill.config.rev": 3}
    second = watch.events("config_in_force")[0]
    assert (second.config_rev, second.started, second.stopped, second.replaced) == (2, 1, 1, 0)
    (refused,) = watch.events("config_refused")
    assert (refused.levelname, refused.error_type) == ("WARNING", "config_error")
    assert "hunter2" not in watch.everything()
