"""Calls that are made again: only where they were asked to be, and by tools that say it does no harm; over HTTP and stdio."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from playbill.actors import CallTimeout, Config, Host, ServerDied, ServerUnavailable, open_host
from playbill.actors.model.status import ToolDef
from playbill.actors.ports import RETRY_AFTER
from playbill.actors.testing import Script, ScriptedServers
from playbill.actors.testing.http import HttpServerKit

from ..reports.conftest import opened, virtual_time
from .conftest import FOR_ONE_LIFE, OnStage, said
from .server import Web, deed, serving

READ_ONLY = {"readOnlyHint": True}


@pytest.mark.parametrize("hints", [READ_ONLY, {"idempotentHint": True}])
async def test_a_call_that_is_lost_is_made_again_where_it_was_asked_to_be(
    on_stage: OnStage, hints: dict[str, bool]
) -> None:
    web = Web()
    web.annotations["echo"] = hints
    async with serving(web), on_stage(web) as stage:
        await stage.ready()
        web.deeds["tools/call"] = [deed("close"), deed("reset")]
        result = await stage.host.call_tool("bad", "echo", {"a": 1}, retry=2, timeout=30)
        assert said(result) == '{"a": 1}'
        assert web.seen["tools/call"] == 3


@pytest.mark.parametrize(("hints", "retry"), [(READ_ONLY, 0), ({}, 3), ({"destructiveHint": False}, 3)])
async def test_no_other_call_is_made_again(on_stage: OnStage, hints: dict[str, bool], retry: int) -> None:
    web = Web()
    web.annotations["echo"] = hints
    async with serving(web), on_stage(web) as stage:
        await stage.ready()
        web.deeds["tools/call"] = [deed("close")]
        with pytest.raises(ServerDied):
            await stage.host.call_tool("bad", "echo", retry=retry, timeout=30)
        await stage.until(lambda state: state.phase == "ready" and state.restarts == 1)
        assert web.seen["tools/call"] == 1


async def test_a_call_that_is_refused_for_now_is_made_again_and_no_more_often_than_asked(on_stage: OnStage) -> None:
    web = Web()
    web.annotations["echo"] = READ_ONLY
    async with serving(web), on_stage(web) as stage:
        await stage.ready()
        busy = deed(status=503, headers={"Retry-After": "0"})
        web.deeds["tools/call"] = [busy, busy]
        assert said(await stage.host.call_tool("bad", "echo", retry=2, timeout=30)) == "{}"
        web.deeds["tools/call"] = [busy, busy]
        result = await stage.host.call_tool("bad", "echo", retry=1, timeout=30)
        assert said(result).startswith("The call failed: HTTP 503 Service Unavailable")
        assert web.seen["tools/call"] == 5


async def test_a_tool_error_is_an_answer_and_is_not_asked_for_again(on_stage: OnStage) -> None:
    web = Web()
    web.annotations["echo"] = READ_ONLY
    async with serving(web), on_stage(web) as stage:
        await stage.ready()
        web.deeds["tools/call"] = deed("result", result={"content": [{"type": "text", "text": "no"}], "isError": True})
        assert (await stage.host.call_tool("bad", "echo", retry=3, timeout=30)).is_error
        assert web.seen["tools/call"] == 1


@pytest.mark.parametrize("told", [0, 0.5, -1, 1e9, "soon"])
async def test_a_server_cannot_have_its_tool_called_again(on_stage: OnStage, told: object) -> None:
    web = Web()
    web.annotations["echo"] = READ_ONLY
    async with serving(web), on_stage(web) as stage:
        await stage.ready()
        meta = {RETRY_AFTER: told, "kept": 1}
        web.deeds["tools/call"] = deed("result", result={"content": [], "isError": True, "_meta": meta})
        result = await stage.host.call_tool("bad", "echo", retry=3, timeout=30)
        assert (result.is_error, result.meta, web.seen["tools/call"]) == (True, {"kept": 1}, 1)


async def test_a_refusal_that_lasts_longer_than_the_call_may_is_its_answer(on_stage: OnStage) -> None:
    web = Web()
    web.annotations["echo"] = READ_ONLY
    async with serving(web), on_stage(web) as stage:
        await stage.ready()
        web.deeds["tools/call"] = [deed(status=503, headers={"Retry-After": "60"})]
        result = await stage.host.call_tool("bad", "echo", retry=1, timeout=30)
        assert said(result).startswith("The call failed: HTTP 503 Service Unavailable; it asks to wait 60 s")
        assert web.seen["tools/call"] == 1


@virtual_time
async def test_a_pause_that_a_server_asks_for_is_no_silence() -> None:
    kit = HttpServerKit(search=Script((ToolDef("find", annotations=READ_ONLY),)))
    async with kit.open() as host:
        assert await host.ready(timeout=10)
        kit.fail("search", "call_reply", "throttled", arg=120)
        began = trio.current_time()
        result = await host.call_tool("search", "find", retry=1)
        assert not result.is_error
        assert 120 <= trio.current_time() - began < 130


async def test_repetitions_end_with_the_callers_deadline(on_stage: OnStage) -> None:
    web = Web()
    web.annotations["echo"] = READ_ONLY
    async with serving(web), on_stage(web, backoff=FOR_ONE_LIFE) as stage:
        await stage.ready()
        web.deeds["tools/call"] = deed("close")
        with pytest.raises(CallTimeout):
            await stage.host.call_tool("bad", "echo", retry=9, timeout=0.5)
        assert web.seen["tools/call"] == 1


async def test_a_server_that_wants_a_login_is_not_asked_again(on_stage: OnStage) -> None:
    web = Web()
    web.annotations["echo"] = READ_ONLY
    async with serving(web), on_stage(web) as stage:
        await stage.ready()
        web.deeds["tools/call"] = deed(status=401)
        with pytest.raises(ServerUnavailable, match="it needs login: HTTP 401"):
            await stage.host.call_tool("bad", "echo", retry=5, timeout=30)
        assert web.seen["tools/call"] == 1


async def _dies_once(host: Host, servers: ScriptedServers, **options: Any) -> Any:
    """Call a tool whose server dies under the first call."""
    results: list[Any] = []

    async def call() -> None:
        try:
            results.append(await host.call_tool("a", "read", {"n": 1}, timeout=60, **options))
        except ServerDied as died:
            results.append(died)

    async with trio.open_nursery() as nursery:
        servers.scripts["a"].call_delay = 5.0
        nursery.start_soon(call)
        await trio.sleep(1)
        servers.scripts["a"].call_delay = 0.0
        servers.live["a"].lose("exited with code 1")
    return results[0]


@virtual_time
async def test_a_call_to_a_process_that_dies_is_made_again_too_where_it_was_asked_to_be() -> None:
    tool = ToolDef("read", annotations=READ_ONLY)
    servers = ScriptedServers(a=Script((tool,)))
    async with opened(servers) as host:
        assert await host.ready(timeout=10)
        assert isinstance(await _dies_once(host, servers), ServerDied)
        assert await host.ready(timeout=60)
        assert not isinstance(await _dies_once(host, servers, retry=1), ServerDied)
        assert servers.spawns["a"] == 3


@pytest.mark.parametrize("retry", [-1, 1.5, True, "2"])
async def test_a_number_of_repetitions_that_is_none_is_refused(retry: object, on_stage: OnStage) -> None:
    async with open_host(Config()) as host:
        with pytest.raises(ValueError, match="retry is a number of repetitions"):
            await host.call("mcp__a__b", retry=retry)  # type: ignore[arg-type]
        with pytest.raises(ValueError, match="retry is a number of repetitions"):
            await host.call_tool("a", "b", retry=retry)  # type: ignore[arg-type]
