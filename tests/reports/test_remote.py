"""Servers over HTTP: sessions that are gone, back ends that restart, tokens that are dead, answers that are too much."""

from __future__ import annotations

import base64
import json
from collections import Counter
from typing import Any

import pytest
import trio
from playbill.actors import Config, Host, ServerDied, ServerEntry, Snapshot, open_host, result_for_provider
from playbill.actors.model.snapshot import ServerState
from playbill.supervision import Backoff, Intensity

from ..faulty_http.server import Web, deed, serving
from .conftest import PATIENCE, said

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
