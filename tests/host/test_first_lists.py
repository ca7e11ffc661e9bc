"""A call by a wire name that no list has yet waits for the servers it may be of, and for no other."""

from __future__ import annotations

import math

import pytest
import trio
from playbill.actors import CallTimeout, Config, ServerEntry, ServerUnavailable, ToolNotOffered, UnknownTool
from playbill.actors.model.naming import wire_name
from playbill.actors.testing import Script, ScriptedServers

from .conftest import Open


@pytest.mark.parametrize("server", ["plain", "my server", "a__b", "x" * 60, "é", "_", ""])
async def test_it_waits_whatever_its_server_is_called(opened: Open, server: str) -> None:
    servers = ScriptedServers(**{server: Script(("x", "y" * 80), connect_delay=3)})
    for bare in ("x", "y" * 80):
        async with opened(servers) as host:
            start = trio.current_time()
            assert await host.call(wire_name(server, bare))
            assert trio.current_time() - start == pytest.approx(3)


async def test_it_waits_for_the_first_of_several_that_has_it(opened: Open) -> None:
    servers = ScriptedServers(a=Script(("q",), connect_delay=math.inf), a__b=Script(("x", "off"), connect_delay=3))
    entries = (
        ServerEntry("a", command="a", connect_timeout=1000),
        ServerEntry("a__b", command="ab", exclude=("off",)),
    )
    async with opened(servers, Config(entries)) as host:
        start = trio.current_time()
        assert await host.call(wire_name("a__b", "x"))
        assert trio.current_time() - start == pytest.approx(3)
        assert host.snapshot().model.server("a").list_state == "none"
    async with opened(servers, Config(entries)) as host:
        with pytest.raises(ToolNotOffered, match="exclude"):
            await host.call(wire_name("a__b", "off"), timeout=20)
        with pytest.raises(CallTimeout):  # the other one may have it yet
            await host.call(wire_name("a__b", "none"), timeout=20)


async def test_a_name_is_unknown_when_all_that_may_have_it_have_listed(opened: Open) -> None:
    servers = ScriptedServers(a=Script(("q",), connect_delay=7), a__b=Script(("x",), connect_delay=3))
    async with opened(servers) as host:
        start = trio.current_time()
        with pytest.raises(UnknownTool):
            await host.call(wire_name("a__b", "none"))
        assert trio.current_time() - start == pytest.approx(7)


@pytest.mark.parametrize("off", ["a", "a__b"])
async def test_one_that_is_off_keeps_nobody_from_the_others(opened: Open, off: str) -> None:
    servers = ScriptedServers(a=Script(("b__x",), connect_delay=3), a__b=Script(("x",), connect_delay=3))
    entries = [ServerEntry(name, command="run", disabled=name == off) for name in ("a", "a__b")]
    async with opened(servers, Config(entries)) as host:
        start = trio.current_time()
        name = wire_name("a", "b__x") if off == "a__b" else wire_name("a__b", "x")
        assert await host.call(name)
        assert trio.current_time() - start == pytest.approx(3)
    async with opened(servers, Config(entries)) as host:
        with pytest.raises(ServerUnavailable, match=f"server '{off}' is unavailable: it is disabled"):
            await host.call(wire_name("a__b", "none"))
