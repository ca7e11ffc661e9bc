"""Opening and closing, cancelled at every moment: it always ends, leaves nothing, and what the body raised leaves as it is."""

from __future__ import annotations

from typing import Any

import pytest
import trio
import trio.testing
from playbill.actors import Config, HostClosed, NativeTool, ServerEntry
from playbill.actors.testing import Script, ScriptedServers

from .conftest import ConfigFile, Open


@pytest.mark.parametrize("ticks", range(25))
async def test_cancelled_after_any_number_of_steps_it_ends_and_leaves_nothing(opened: Open, ticks: int) -> None:
    servers = ScriptedServers(a=["x"], b=Script(("y",), connect_delay=5))
    ended = trio.Event()

    async def program() -> None:
        try:
            async with opened(servers) as host:
                await host.ready(timeout=100)
                await trio.sleep_forever()
        finally:
            ended.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(program)
        for _ in range(ticks):
            await trio.lowlevel.checkpoint()
        nursery.cancel_scope.cancel()
    assert ended.is_set()
    assert servers.alive == {}


async def test_a_group_that_the_body_raises_leaves_as_that_very_object(opened: Open) -> None:
    for errors in ([ValueError("one")], [ValueError("one"), KeyError("two")]):
        group = ExceptionGroup("the body's", errors)
        with pytest.raises(ExceptionGroup) as raised:
            async with opened(ScriptedServers(a=["x"])):
                raise group
        assert raised.value is group


async def test_what_the_body_raises_while_it_is_cancelled_is_not_lost(opened: Open) -> None:
    with pytest.raises(ValueError, match="in the finally"):
        with trio.move_on_after(1):
            async with opened(ScriptedServers(a=["x"])):
                try:
                    await trio.sleep_forever()
                finally:
                    raise ValueError("in the finally")


async def test_closing_cuts_a_drain_that_is_under_way(opened: Open) -> None:
    servers = ScriptedServers(a=Script(("x",), call_delay=1000))
    async with trio.open_nursery() as nursery:
        async with opened(servers) as host:
            await host.ready(timeout=5)

            async def call() -> None:
                with pytest.raises(Exception, match=r"restarted|closed"):
                    await host.call("mcp__a__x", timeout=500)

            nursery.start_soon(call)
            await trio.testing.wait_all_tasks_blocked()
            await host.restart("a")
            start = trio.current_time()
        assert trio.current_time() == start
    assert servers.alive == {}


async def test_a_native_tool_of_a_closed_host_is_not_called(opened: Open) -> None:
    called: list[None] = []
    tool = NativeTool("t", "T.", {"type": "object"}, lambda: called.append(None))
    async with opened(ScriptedServers(), native_tools=[tool]) as host:
        pass
    with pytest.raises(HostClosed):
        await host.call("t")
    assert called == []


async def test_ready_does_not_wait_for_a_server_that_is_being_disabled(opened: Open) -> None:
    servers = ScriptedServers(a=["x"], b=Script(("y",), close_delay=5))
    async with opened(servers) as host:
        await host.ready(timeout=5)
        await host.server_set_enabled("b", False)
        start = trio.current_time()
        readiness = await host.ready(timeout=5)
        assert trio.current_time() == start
        assert readiness
        assert readiness.missing == {}


async def test_reviving_a_parked_server_during_its_slow_retry_clears_its_history(opened: Open) -> None:
    servers = ScriptedServers(a=Script(refuse="broken"))
    async with opened(servers) as host:
        await host.ready(timeout=200)
        servers.scripts["a"].connect_delay = 50
        spawns = servers.spawns["a"]
        while servers.spawns["a"] == spawns:
            await trio.sleep(1)
        assert host.snapshot().model.server("a").phase == "parked"
        snapshot = await host.revive("a")
        assert snapshot.model.server("a").phase == "starting"
        assert snapshot.model.server("a").restarts == 0


async def test_refusals_of_one_batch_are_errors_of_their_own(opened: Open, config_file: ConfigFile) -> None:
    config_file.write({"a": {"command": "a"}})
    raised: list[BaseException] = []
    async with opened(ScriptedServers(a=["x"]), config_file.store) as host:
        await host.ready(timeout=5)
        config_file.path.write_text("{")

        async def reload() -> None:
            try:
                await host.reload()
            except Exception as error:
                raised.append(error)

        async with trio.open_nursery() as nursery:
            for _ in range(5):
                nursery.start_soon(reload)
    assert len({id(error) for error in raised}) == 5
    assert len({str(error) for error in raised}) == 1


async def test_a_remove_that_was_written_is_not_done_again_to_its_successor(
    opened: Open, config_file: ConfigFile
) -> None:
    """The coordinator dies after it has written; another task's add comes before the remove is asked for again."""
    servers = ScriptedServers(a=["x"], b=["y"])
    config_file.write({"a": {"command": "a"}, "b": {"command": "b"}})
    left = config_file.crash_after_edit()
    async with opened(servers, config_file.store) as host:
        await host.ready(timeout=5)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(host.plugin_remove, "b")
            while left[0]:
                await trio.lowlevel.checkpoint()
            await host.plugin_add("b", "b", ["--new"])
        assert config_file.read()["mcpServers"]["b"] == {"command": "b", "args": ["--new"]}
        assert await host.ready(timeout=5)


async def test_an_add_that_was_written_is_a_success_though_it_was_removed_before_anybody_was_told(
    opened: Open, config_file: ConfigFile
) -> None:
    servers = ScriptedServers(a=["x"], c=["y"])
    config_file.write({"a": {"command": "a"}})
    left = config_file.crash_after_edit()
    async with opened(servers, config_file.store) as host:
        await host.ready(timeout=5)
        async with trio.open_nursery() as nursery:
            nursery.start_soon(host.plugin_add, "c", "c")
            while left[0]:
                await trio.lowlevel.checkpoint()
            await host.plugin_remove("c")
        assert list(config_file.read()["mcpServers"]) == ["a"]


async def test_a_server_that_announces_a_change_whenever_it_is_asked_is_asked_ever_more_rarely(opened: Open) -> None:
    servers = ScriptedServers(a=["x"])
    async with opened(servers) as host:
        await host.ready(timeout=5)
        connection = servers.live["a"]
        list_tools = connection.list_tools

        async def announcing() -> Any:
            connection.announce()
            return await list_tools()

        connection.list_tools = announcing  # type: ignore[method-assign]
        connection.announce()
        await trio.sleep(60)
        assert connection.lists < 25
        servers.scripts["a"].tools = Script(("x", "new")).tools
        await trio.sleep(6)
        assert [tool.bare for tool in host.snapshot().model.server("a").tools] == ["x", "new"]


async def test_stderr_can_be_read_while_a_server_hangs_in_its_handshake(opened: Open) -> None:
    servers = ScriptedServers(a=Script(connect_delay=50, says="Need to install: thing. Ok to proceed? (y)"))
    async with opened(servers) as host:
        await trio.sleep(1)
        assert host.stderr_tail("a").endswith("(y)")


async def test_a_string_where_a_list_of_arguments_is_meant_is_refused(opened: Open) -> None:
    async with opened(ScriptedServers(), Config()) as host:
        with pytest.raises(TypeError, match="list of strings"):
            await host.plugin_add("b", "b", "--verbose")
    with pytest.raises(TypeError):
        ServerEntry("a", command="a", type=5)  # type: ignore[arg-type]
