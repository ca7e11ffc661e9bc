"""A server that only an edit, or the environment, can mend is parked at its first attempt: with the reason, and what to do."""

from __future__ import annotations

import pytest
import trio
from playbill.actors.model.config import Config, ServerEntry
from playbill.actors.testing import Script, ScriptedServers

from .conftest import Open


async def test_it_is_parked_at_once_and_says_what_to_do(opened: Open) -> None:
    servers = ScriptedServers(good=["x"])
    async with opened(servers, Config((*servers.entries(), ServerEntry("gone", command="nowhere")))) as host:
        start = trio.current_time()
        readiness = await host.ready(timeout=200)
        assert trio.current_time() - start < 0.1
        assert readiness.missing["gone"].startswith("parked: command not found: nowhere")
        state = host.snapshot().model.server("gone")
        assert (state.phase, state.futile, servers.spawns["gone"]) == ("parked", True, 1)
        said = str(host.why("gone", "tool"))
        assert "is parked: command not found: nowhere; mend that and revive it (next retry in 5 min)" in said
        assert "restarted" not in said
        assert not host.snapshot().model.server("good").futile


async def test_what_was_mended_meanwhile_is_found_by_the_slow_retry_or_by_revive(opened: Open) -> None:
    servers = ScriptedServers(good=["x"])
    async with opened(servers, Config((*servers.entries(), ServerEntry("gone", command="nowhere")))) as host:
        await host.ready(timeout=200)
        await trio.sleep(299)
        assert servers.spawns["gone"] == 1
        await trio.sleep(2)
        assert servers.spawns["gone"] == 2
        assert host.snapshot().model.server("gone").futile
        servers.scripts["gone"] = Script(("y",))
        await trio.sleep(300)
        assert host.snapshot().model.server("gone").phase == "ready"
        assert not host.snapshot().model.server("gone").futile
        del servers.scripts["gone"]
        await host.restart("gone")
        await host.ready(timeout=5)
        servers.scripts["gone"] = Script(("y",))
        await host.revive("gone")
        assert await host.ready(timeout=5)


async def test_a_program_that_goes_while_it_is_upgraded_is_tried_again_as_after_any_death(opened: Open) -> None:
    servers = ScriptedServers(tool=["x"])
    async with opened(servers) as host:
        await host.ready(timeout=5)
        script = servers.scripts.pop("tool")
        died = trio.current_time()
        servers.live["tool"].lose("exited with code 0")
        await trio.sleep(1.5)
        assert host.snapshot().model.server("tool").phase == "backing_off"
        servers.scripts["tool"] = script
        await trio.sleep(5)
        state = host.snapshot().model.server("tool")
        assert (state.phase, state.restarts) == ("ready", 3)
        assert died + 1.5 < state.restarted_at < died + 6.5


@pytest.mark.parametrize("futile", [True, False])
async def test_only_what_says_so_is_futile(opened: Open, futile: bool) -> None:
    servers = ScriptedServers(a=Script(refuse="no", futile=futile))
    async with opened(servers) as host:
        await trio.sleep(0.3)
        assert host.snapshot().model.server("a").phase == ("parked" if futile else "backing_off")
