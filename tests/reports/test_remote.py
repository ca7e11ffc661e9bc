"""Servers over HTTP: sessions that are gone, back ends that restart, tokens that are dead, answers that are too much."""

from __future__ import annotations

import base64
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
import trio
from playbill.actors import CallTimeout, Config, Host, ServerDied, ServerEntry, Snapshot, open_host, result_for_provider
from playbill.actors.edge.config.file import FileStore
from playbill.actors.edge.wire.sdk import import_sdk
from playbill.actors.model.snapshot import ServerState
from playbill.actors.testing.http import HttpServerKit
from playbill.supervision import Backoff, Intensity

from ..faulty_http.server import Web, deed, serving
from .conftest import PATIENCE, said, virtual_time

import_sdk()

BACKOFF = Backoff(base=0.01, max=0.1)
MANY = Intensity(restarts=1000, window=60.0, then="park", park_retry=None)


def opened(*webs: Web) -> Any:
    servers = tuple(ServerEntry(f"web{n}", url=web.url) for n, web in enumerate(webs))
    return open_host(Config(servers), backoff=BACKOFF, intensity=MANY)


async def until(host: Host, holds: Any, name: str = "web0") -> ServerState:
    def state(snapshot: Snapshot) -> ServerState:
        found = snapshot.model.server(name)
        assert found is not None
        return found

    with trio.fail_after(PATIENCE):
        async for snapshot in host.changes():
            if holds(state(snapshot)):
                return state(snapshot)
    raise AssertionError("the host closed")


@pytest.mark.parametrize("knows_gets", [True, False])
async def test_b075_a_server_that_is_deployed_anew_is_recovered_from_with_its_new_tools(knows_gets: bool) -> None:
    web = Web()
    web.knows_gets = knows_gets
    async with trio.open_nursery() as nursery:
        await nursery.start(web.run)
        async with opened(web) as host:
            assert await host.ready(timeout=PATIENCE)
            assert said(await host.call_tool("web0", "echo", timeout=PATIENCE)) == "{}"
            web.stop()
            web.forget()
            web.tools = ["other"]
            await nursery.start(web.run)
            # Idle or not, nobody has to restart anything.
            await until(host, lambda state: state.phase == "ready" and [tool.bare for tool in state.tools] == ["other"])
            assert [tool.bare for tool in host.snapshot().catalog.tools] == ["other"]
            assert said(await host.call_tool("web0", "other", timeout=PATIENCE)) == "{}"
        web.stop()


async def test_b075_sessions_that_are_lost_behind_an_address_that_stays_are_opened_anew() -> None:
    async with serving(Web()) as web, opened(web) as host:
        assert await host.ready(timeout=PATIENCE)
        web.forget()
        web.tools = ["echo", "other"]
        with pytest.raises(ServerDied, match="the session has ended: HTTP 404"):
            await host.call_tool("web0", "echo", timeout=PATIENCE)
        assert said(await host.call_tool("web0", "other", timeout=PATIENCE)) == "{}"


async def test_b077_a_back_end_that_answers_503_while_it_restarts_and_has_lost_its_sessions_is_recovered_from() -> None:
    web = Web()
    web.annotations["echo"] = {"readOnlyHint": True}
    async with serving(web), opened(web) as host:
        assert await host.ready(timeout=PATIENCE)
        web.deeds["tools/call"] = [deed(status=503, headers={"Retry-After": "0"}) for _ in range(5)]
        web.forget()
        # Five times unavailable, then a session that is not known, then good.
        result = await host.call_tool("web0", "echo", {"a": 1}, timeout=PATIENCE, retry=6)
        assert said(result) == '{"a": 1}'
        assert web.seen["tools/call"] == 7
        state = host.snapshot().model.server("web0")
        assert state is not None
        assert (state.restarts, len(web.sessions)) == (0, 1)


@pytest.mark.parametrize("status", [401, 403])
async def test_b101_a_token_that_was_rejected_is_not_sent_again_and_again(status: int) -> None:
    async with serving(Web()) as web, opened(web) as host:
        assert await host.ready(timeout=PATIENCE)
        await web.until(lambda web: web.streams)
        web.deeds["*"] = deed(status=status, headers={"WWW-Authenticate": "Bearer"})
        web.streams[0].ended.set()
        if status == 403:  # of a stream, that says nothing of the calls
            web.forget()
            await host.restart("web0")
        await until(host, lambda state: state.phase == "needs_auth")
        await web.until(lambda web: web.open == 0)
        before = Counter(web.seen)
        assert not await host.ready(timeout=0.2)
        assert web.seen == before


async def test_b102_streams_of_one_origin_that_are_cut_at_once_are_each_opened_once_with_the_login_there_is() -> None:
    async with serving(Web()) as one, serving(Web()) as two, serving(Web()) as three, opened(one, two, three) as host:
        assert await host.ready(timeout=PATIENCE)
        webs = (one, two, three)
        for web in webs:
            await web.until(lambda web: web.streams)
        for web in webs:
            web.streams[0].ended.set()
        for web in webs:
            await web.until(lambda web: web.seen["GET"] == 2)
            assert web.seen["initialize"] == 1
        assert await host.ready(timeout=PATIENCE)


IMAGE = base64.b64encode(b"\x89PNG\r\n\x1a\n" + bytes(30_000)).decode()


async def test_b093_an_image_that_is_mirrored_as_structured_content_is_delivered_once() -> None:
    block = {"type": "image", "data": IMAGE, "mimeType": "image/png"}
    async with serving(Web()) as web, opened(web) as host:
        assert await host.ready(timeout=PATIENCE)
        result = {"content": [block], "structuredContent": {"result": block}}
        answer = await host.call_tool("web0", "do", {"do": "result", "result": result}, timeout=PATIENCE)
        for provider in ("openai", "anthropic", "gemini"):
            sent = json.dumps(result_for_provider(answer, provider, call_id="1", name="do"), default=str)
            assert sent.count(IMAGE[:200]) <= 1


ODD = [
    {"content": [{"type": "video", "data": "AAAA", "mimeType": "video/mp4"}]},
    {"content": [{"type": "resource_link", "uri": "file:///a", "name": "a"}]},
    {"content": [{"text": "no type"}]},
    {"content": [{"type": "image", "data": "AAAA", "mimeType": "image/x-odd; q=1"}]},
    {"content": None},
    {},
    {"isError": True},
]


@pytest.mark.parametrize("result", ODD)
async def test_b095_content_nobody_knows_is_an_answer_and_ends_no_turn(result: dict[str, Any]) -> None:
    async with serving(Web()) as web, opened(web) as host:
        assert await host.ready(timeout=PATIENCE)
        answer = await host.call_tool("web0", "do", {"do": "result", "result": result}, timeout=PATIENCE)
        assert answer.is_error or answer.content or result == {}
        for provider in ("openai", "anthropic", "gemini"):
            assert result_for_provider(answer, provider, call_id="1", name="do")
        assert said(await host.call_tool("web0", "echo", timeout=PATIENCE)) == "{}"
        state = host.snapshot().model.server("web0")
        assert state is not None
        assert state.restarts == 0


def nested(levels: int) -> str:
    return '{"a":' * levels + "1" + "}" * levels


@pytest.mark.parametrize("how", ["10,000 levels", "100,000 nodes", "68 MB"])
async def test_b096_an_answer_that_is_too_much_is_a_tool_error_and_costs_nothing_else(how: str) -> None:
    async with serving(Web()) as web, opened(web) as host:
        assert await host.ready(timeout=PATIENCE)
        web.deeds["tools/call"] = {
            "10,000 levels": [deed(status=200, body=_answer(nested(10_000)))],
            "100,000 nodes": [deed(status=200, body=_answer(json.dumps({str(n): n for n in range(100_000)})))],
            "68 MB": [deed("large", size=68_000_000)],
        }[how]
        answer = await host.call_tool("web0", "echo", timeout=2 * PATIENCE)
        if how == "100,000 nodes":
            assert answer.structured_content is not None
        else:
            assert answer.is_error
            assert ("is longer than" if how == "68 MB" else "not valid JSON") in said(answer)
        assert said(await host.call_tool("web0", "echo", timeout=PATIENCE)) == "{}"
        state = host.snapshot().model.server("web0")
        assert state is not None
        assert (state.phase, state.restarts) == ("ready", 0)


def _answer(structured: str) -> str:
    # The id of the first call: discover, initialize and tools/list come before it.
    return f'{{"jsonrpc": "2.0", "id": 4, "result": {{"content": [], "structuredContent": {structured}}}}}'


@pytest.mark.parametrize("kind", ["legacy", "modern", "sse"])
@pytest.mark.parametrize("how", ["hang", "stall"])
async def test_b053_a_call_that_is_swallowed_over_http_can_be_cancelled_and_the_session_goes_on(
    kind: str, how: str
) -> None:
    async with serving(Web(kind)) as web, opened(web) as host:
        assert await host.ready(timeout=PATIENCE)
        sessions, asked = web.sessions.copy(), web.seen["initialize"] + web.seen["server/discover"]
        async with trio.open_nursery() as nursery:
            nursery.start_soon(host.call_tool, "web0", "do", {"do": how})
            await web.until(lambda web: web.waiting == 1)
            with trio.fail_after(PATIENCE):
                assert said(await host.call_tool("web0", "echo", {"n": 1}, timeout=PATIENCE)) == '{"n": 1}'
            nursery.cancel_scope.cancel()
        await web.until(lambda web: web.waiting == 0)  # its response is closed
        if kind != "modern":  # where that says it all
            await web.until(lambda web: len(web.cancelled) == 1)
        assert said(await host.call_tool("web0", "echo", {"n": 2}, timeout=PATIENCE)) == '{"n": 2}'
        assert host.snapshot().model.servers[0].restarts == 0
        assert web.sessions == sessions
        assert web.seen["initialize"] + web.seen["server/discover"] == asked


@virtual_time
async def test_b055_calls_over_http_have_a_limit_of_their_own_and_reaching_it_costs_no_restart(tmp_path: Path) -> None:
    path = tmp_path / "mcp.json"
    path.write_text('{"mcpServers": {"a": {"url": "http://a.test/mcp", "timeout": 5, "connectTimeout": 20}}}')
    kit = HttpServerKit()
    kit.add("a", ["x"], connect_delay=15)
    async with kit.open(store=FileStore(path)) as host:
        assert await host.ready(timeout=30), "the limit for calls is none for the start"
        assert trio.current_time() == pytest.approx(15)
        for kind in ("hang", "stall"):
            kit.fail("a", "call_reply", kind)
            began = trio.current_time()
            with pytest.raises(CallTimeout):
                await host.call_tool("a", "x")
            assert trio.current_time() - began == pytest.approx(5)
        assert not (await host.call_tool("a", "x")).is_error
        assert host.snapshot().model.servers[0].restarts == 0
        assert kit.scripted.spawns["a"] == 1
        path.write_text(path.read_text().replace('"timeout": 5', '"timeout": 5000'))  # milliseconds, from 1000 on
        await host.reload()
        kit.fail("a", "call_reply", "hang")
        began = trio.current_time()
        with pytest.raises(CallTimeout):
            await host.call_tool("a", "x")
        assert trio.current_time() - began == pytest.approx(5)
