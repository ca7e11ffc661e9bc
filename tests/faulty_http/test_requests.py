"""Where requests go, what their headers say, and for how long a server may hold up what nobody waits for."""

from __future__ import annotations

import pytest
import trio
from playbill.actors import CallTimeout, ServerDied
from playbill.actors.edge.wire.remote import conversation, streamable

from .conftest import FOR_ONE_LIFE, OnStage, said
from .server import Web, deed, serving


async def test_a_redirect_is_followed_within_the_origin_and_no_further(on_stage: OnStage) -> None:
    async with serving(Web()) as other, serving(Web()) as web, on_stage(web) as stage:
        await stage.ready()
        web.deeds["tools/call"] = [deed(status=307, headers={"Location": web.url})]
        assert said(await stage.call(a=1)) == '{"a": 1}'
        assert web.seen["tools/call"] == 2
        # The same host, another port: somebody else, who must not see the headers.
        web.deeds["tools/call"] = [deed(status=307, headers={"Location": other.url})]
        assert f"not followed to {other.url}" in said(await stage.call(a=1))
        assert not other.headers


async def test_a_cookie_of_the_handshake_is_sent_with_calls_too(on_stage: OnStage) -> None:
    async with serving(Web()) as web:
        web.deeds["initialize"] = [deed(status=307, headers={"Location": web.url, "Set-Cookie": "lb=7"})]
        async with on_stage(web) as stage:
            await stage.ready()
            await stage.call()
            await stage.call()
            assert [each.get("cookie") for each in web.headers if "session-1" in each.get("mcp-session-id", "")][
                -2:
            ] == [
                "lb=7",
                "lb=7",
            ]


async def test_the_handshake_of_the_older_era_does_not_name_the_version_of_the_probe(on_stage: OnStage) -> None:
    async with serving(Web()) as web, on_stage(web) as stage:
        await stage.ready()
        probe, initialize, then = (each.get("mcp-protocol-version") for each in web.headers[:3])
        assert (probe, initialize, then) == ("2026-07-28", None, "2025-11-25")


async def test_an_endpoint_that_is_elsewhere_is_none(on_stage: OnStage) -> None:
    async with serving(Web()) as other, serving(Web("sse")) as web:
        web.deeds["GET"] = deed("stall", said=f"event: endpoint\ndata: {other.url}")
        async with on_stage(web, type="sse", backoff=FOR_ONE_LIFE) as stage:
            state = await stage.until(lambda state: state.phase == "backing_off")
            assert state.error == "the event stream names no endpoint"
        assert not other.headers


async def test_a_session_that_the_server_has_ended_is_not_ended_again(on_stage: OnStage) -> None:
    async with serving(Web()) as web, on_stage(web) as stage:
        await stage.ready()
        web.forget()
        with pytest.raises(ServerDied):
            await stage.call()
        await stage.call()
        assert web.seen["DELETE"] == 0


async def test_notices_that_are_never_taken_make_way_for_later_ones(
    on_stage: OnStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(conversation, "NOTE_SECONDS", 1.0)
    async with serving(Web()) as web, on_stage(web) as stage:
        await stage.ready()
        web.deeds["notifications/cancelled"] = deed("hang")
        calls = conversation.COURIERS + 1
        for _ in range(calls):
            with pytest.raises(CallTimeout):
                await stage.call("do", timeout=0.01, do="hang")
        await web.until(lambda web: len(web.cancelled) == calls)


async def test_a_stream_is_resumed_before_long_whatever_the_server_asks_for(
    on_stage: OnStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streamable, "RESUME_MOST", 0.05)
    async with serving(Web()) as web, on_stage(web) as stage:
        await stage.ready()
        answer = '{"jsonrpc": "2.0", "id": 4, "result": {"content": [{"type": "text", "text": "resumed"}]}}'
        web.deeds["tools/call"] = [deed("break_off", said="id: 7\nretry: 999999999\ndata:")]
        await web.until(lambda web: web.streams)
        web.deeds["GET"] = [deed("end", said=f"id: 8\ndata: {answer}")]
        with trio.fail_after(20):
            assert said(await stage.call()) == "resumed"
