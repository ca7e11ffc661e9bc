"""A server's own times: logins, lists, pauses, probation, closing."""

from __future__ import annotations

import itertools
import math
from typing import Any

import pytest
import trio
from playbill.actors import (
    ServerEntry,
    ServerUnavailable,
)
from playbill.actors.testing import Script, ScriptedServers

from .conftest import ConfigFile, Open

PLAIN = {"a": {"command": "a"}}


class Crash(Exception):
    """A defect of ours: nothing that the code expects."""


async def test_a_server_that_wants_a_login_is_not_tried_again_until_asked(opened: Open) -> None:
    servers = ScriptedServers(a=Script(("x",), refuse="401: log in first", needs_auth=True), b=["y"])
    async with opened(servers) as host:
        await host.ready(require=["b"], timeout=5)
        start = trio.current_time()
        readiness = await host.ready(timeout=1000)
        assert trio.current_time() == start
        assert readiness.missing["a"].startswith("needs_auth: 401")
        with pytest.raises(ServerUnavailable, match="login"):
            await host.call_tool("a", "x")
        await trio.sleep(1000)
        assert servers.spawns == {"a": 1, "b": 1}
        servers.scripts["a"].refuse = None
        await host.restart("a")
        assert await host.ready(timeout=5)


async def test_a_relist_that_is_never_answered_is_given_up_and_tried_again(opened: Open) -> None:
    servers = ScriptedServers(a=["x"])
    async with opened(servers) as host:
        await host.ready(timeout=5)
        script = servers.scripts["a"]
        script.list_delay = math.inf
        servers.live["a"].announce()
        await trio.sleep(40)
        state = host.snapshot().model.server("a")
        assert (state.phase, state.list_state) == ("ready", "stale")
        assert "no answer within 30 s" in state.list_error
        script.list_delay = 0
        script.tools = Script(("x", "late")).tools
        await trio.sleep(40)
        assert [tool.bare for tool in host.snapshot().model.server("a").tools] == ["x", "late"]
        assert servers.spawns == {"a": 1}


async def test_a_change_announced_while_the_list_is_fetched_is_fetched_too(opened: Open) -> None:
    servers = ScriptedServers(a=["x"])
    async with opened(servers) as host:
        await host.ready(timeout=5)
        script = servers.scripts["a"]
        script.list_delay = 1
        servers.live["a"].announce()
        await trio.sleep(0.5)
        script.tools = Script(("x", "late")).tools
        servers.live["a"].announce()
        await trio.sleep(5)
        assert [tool.bare for tool in host.snapshot().model.server("a").tools] == ["x", "late"]


async def test_a_server_that_never_stops_announcing_is_listed_all_the_same(opened: Open) -> None:
    servers = ScriptedServers(a=["x"])
    async with opened(servers) as host:
        await host.ready(timeout=5)
        servers.scripts["a"].tools = Script(("x", "late")).tools
        with trio.move_on_after(3):
            while True:
                servers.live["a"].announce()
                await trio.sleep(0.01)
        assert [tool.bare for tool in host.snapshot().model.server("a").tools] == ["x", "late"]


async def test_a_list_that_keeps_failing_is_asked_for_less_and_less_often(opened: Open) -> None:
    servers = ScriptedServers(a=["x"])
    asked: list[float] = []
    async with opened(servers) as host:
        await host.ready(timeout=5)
        script, connection = servers.scripts["a"], servers.live["a"]
        list_tools = connection.list_tools

        async def noted() -> Any:
            asked.append(trio.current_time())
            assert len(asked) < 1000
            await trio.sleep(0.001)
            return await list_tools()

        connection.list_tools = noted  # type: ignore[method-assign]
        script.list_error = "internal error"
        connection.announce()
        await trio.sleep(300)
        gaps = [later - earlier for earlier, later in itertools.pairwise(asked)]
        assert gaps[0] == pytest.approx(1, abs=0.2)
        assert max(gaps) == pytest.approx(30, abs=1)
        assert len(asked) < 20


async def test_a_parked_server_that_recovered_is_no_longer_on_probation(opened: Open) -> None:
    servers = ScriptedServers(a=["x"], b=["y"])
    async with opened(servers) as host:
        await host.ready(timeout=5)
        script = servers.scripts["a"]
        script.refuse = "broken"
        servers.live["a"].lose("broken")
        await trio.testing.wait_all_tasks_blocked()
        assert not await host.ready(timeout=200)
        assert host.snapshot().model.server("a").phase == "parked"
        script.refuse = None
        await trio.sleep(400)
        assert host.snapshot().model.server("a").phase == "ready"
        # It has long been healthy: the next death is a first one, and its tools stay on the wire while it connects.
        catalog = host.snapshot().catalog
        script.connect_delay = 5
        servers.live["a"].lose("once")
        await trio.sleep(3)
        assert host.snapshot().model.server("a").phase == "starting"
        assert host.snapshot().catalog is catalog
        assert len(catalog.tools) == 2


async def test_the_next_start_uses_the_times_as_they_are_configured_now(opened: Open, config_file: ConfigFile) -> None:
    servers = ScriptedServers(a=Script(("x",), connect_delay=20))
    config_file.write({"a": {"command": "a", "connectTimeout": 5}})
    async with opened(servers, config_file.store) as host:
        assert not await host.ready(timeout=5.1)
        config_file.write({"a": {"command": "a", "connectTimeout": 50}})
        await host.reload()
        assert servers.spawns == {"a": 1}
        assert await host.ready(timeout=30)
        assert servers.spawns == {"a": 2}


async def test_closing_is_over_after_ten_seconds_though_a_connection_takes_longer_to_leave(opened: Open) -> None:
    class Reluctant(ScriptedServers):
        def __call__(self, entry: ServerEntry, **keys: Any) -> Any:
            opening = super().__call__(entry, **keys)
            leave = opening.__class__.__aexit__

            class Slow(opening.__class__):  # type: ignore[name-defined,misc]
                async def __aexit__(self, *raised: Any) -> Any:
                    try:
                        await trio.sleep(14)
                    finally:
                        await leave(self, *raised)

            opening.__class__ = Slow
            return opening

    servers = Reluctant(a=["x"])
    async with opened(servers) as host:
        await host.ready(timeout=5)
        start = trio.current_time()
    assert trio.current_time() - start == pytest.approx(10)
    assert servers.alive == {}
