"""Where requests go, what their headers say, and for how long a server may hold up what nobody waits for."""

from __future__ import annotations

import httpx2
import pytest
import trio
from playbill.actors import ServerDied
from playbill.actors.edge.wire.remote import conversation, streamable
from playbill.actors.edge.wire.remote.endpoint import Endpoint
from playbill.actors.edge.wire.remote.older_sse import endpoint_at
from playbill.actors.edge.wire.wire import HttpRefused

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


@pytest.mark.parametrize("moment", ["GET", "tools/call"])
async def test_over_sse_too_it_is_told_where_a_redirect_leads(on_stage: OnStage, moment: str) -> None:
    told = "HTTP 307: not followed to https://elsewhere.example/sse; if that is it, use its URL"
    async with serving(Web("sse")) as web:
        elsewhere = deed(status=307, headers={"Location": "https://elsewhere.example/sse?key=abc"})
        if moment == "GET":
            web.deeds["GET"] = elsewhere
        async with on_stage(web, backoff=FOR_ONE_LIFE, type="sse") as stage:
            if moment == "GET":
                assert (await stage.until(lambda state: state.phase == "backing_off")).error == told
            else:
                await stage.ready()
                web.deeds[moment] = elsewhere
                assert said(await stage.call()) == f"The call failed: {told}"


@pytest.mark.parametrize("host", ["a..b", "a" * 70 + ".example"])
async def test_a_name_that_cannot_be_looked_up_is_told_in_a_line(
    on_stage: OnStage, host: str, caplog: pytest.LogCaptureFixture
) -> None:
    async with serving(Web()) as web, on_stage(web, backoff=FOR_ONE_LIFE, url=f"http://{host}/mcp") as stage:
        state = await stage.until(lambda state: state.phase == "backing_off")
        told = "ConnectError: its host is no name that can be looked up"
        assert state.error == f"the request to {host} failed: {told}"
    assert not [each for each in caplog.records if each.exc_info]


@pytest.mark.parametrize(
    ("url", "location", "followed"),
    [
        ("http://web/mcp", "https://web/mcp", True),  # the upgrade that many servers ask for
        ("http://web:80/mcp", "https://web:443/mcp", True),
        ("http://web/mcp", "https://web:8443/mcp", False),
        ("http://web:8080/mcp", "https://web/mcp", False),
        ("http://web/mcp", "https://other/mcp", False),
        ("https://web/mcp", "http://web/mcp", False),  # its opposite
        ("http://web/mcp", "http://user:pw@web/mcp", False),
    ],
)
async def test_an_upgrade_from_http_to_https_is_followed_with_headers_and_body(
    url: str, location: str, followed: bool
) -> None:
    seen: list[tuple[str, str, str | None, bytes]] = []

    def answer(request: httpx2.Request) -> httpx2.Response:
        seen.append((request.method, str(request.url), request.headers.get("authorization"), request.content))
        return httpx2.Response(307, headers={"Location": location}) if len(seen) == 1 else httpx2.Response(200)

    headers = {"Authorization": "Bearer t"}
    async with (
        httpx2.AsyncClient(headers=headers, transport=httpx2.MockTransport(answer)) as client,
        Endpoint(url).post(client, b"{}") as response,
    ):
        assert response.status_code == (200 if followed else 307)
    assert [each[0] for each in seen] == ["POST"] * (2 if followed else 1)
    assert {each[2:] for each in seen} == {("Bearer t", b"{}")}
    if followed:
        assert seen[1][1] == str(httpx2.URL(location))


async def test_cookies_are_bounded_and_the_oldest_go_first(on_stage: OnStage) -> None:
    async with serving(Web()) as web, on_stage(web) as stage:
        await stage.ready()

        async def sent() -> list[str]:
            await stage.call()
            found: list[str] = web.headers[-1].get("cookie", "").split("; ")
            return found

        for first in range(0, 60, 20):
            # One header for each: they cannot be joined with commas.
            cookies = "\r\nSet-Cookie: ".join(f"c{n}=v" for n in range(first, first + 20))
            web.deeds["tools/call"] = [deed(status=500, headers={"Set-Cookie": cookies})]
            await stage.call()
        assert await sent() == [f"c{n}=v" for n in range(10, 60)]
        # Set anew is new.
        web.deeds["tools/call"] = [deed(status=500, headers={"Set-Cookie": "c10=w\r\nSet-Cookie: c60=v"})]
        await stage.call()
        assert sorted(await sent()) == sorted(["c10=w", *(f"c{n}=v" for n in range(12, 61))])
        large = "\r\nSet-Cookie: ".join(f"l{n}={'x' * 3000}" for n in range(10))
        web.deeds["tools/call"] = [deed(status=500, headers={"Set-Cookie": large})]
        await stage.call()
        assert [each.partition("=")[0] for each in await sent()] == [f"l{n}" for n in range(5, 10)]


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
            assert state.error == f"the event stream names an endpoint elsewhere: http://127.0.0.1:{other.port}"
        assert not other.headers


@pytest.mark.parametrize(
    ("url", "named", "to"),
    [
        ("http://web/sse", "/mcp?session=1", "http://web/mcp?session=1"),
        ("http://web:80/sse", "http://WEB/mcp", "http://web:80/mcp"),
        ("https://web/sse", "https://web:443/mcp", "https://web/mcp"),
        ("http://me:pw@web/sse", "http://web:80/mcp", "http://me:pw@web/mcp"),
        ("http://me:pw@web/sse", "mcp", "http://me:pw@web/mcp"),
        ("http://me:pw@web/sse", "http://you@web/mcp", "http://me:pw@web/mcp"),
        ("http://web/sse", "https://web/mcp", None),
        ("http://web/sse", "http://you:pw@web:81/mcp", None),
        ("http://web/sse", "http://web:99999/mcp", None),
        ("http://web/sse", "http://[web/mcp", None),
    ],
)
def test_an_endpoint_of_the_older_transport_is_of_the_same_origin_and_keeps_our_user(
    url: str, named: str, to: str | None
) -> None:
    if to is not None:
        assert endpoint_at(url, named) == to
    else:
        with pytest.raises(HttpRefused, match="names an endpoint elsewhere") as refused:
            endpoint_at(url, named)
        assert "pw" not in str(refused.value)


async def test_a_user_of_the_url_is_sent_to_the_endpoint_that_is_named_without_it(on_stage: OnStage) -> None:
    async with serving(Web("sse")) as web:
        url = web.url.replace("http://", "http://me:pw@")
        async with on_stage(web, type="sse", url=url) as stage:
            await stage.ready()
        assert {each.get("authorization") for each in web.headers} == {"Basic bWU6cHc="}


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
        web.deeds["tools/call"] = deed("hang")
        for goal in range(1, calls + 1):
            async with trio.open_nursery() as nursery:
                nursery.start_soon(stage.call)
                await web.until(lambda web, goal=goal: web.seen["tools/call"] == goal)
                nursery.cancel_scope.cancel()
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


@pytest.mark.parametrize("id_", ["7", "é7 ☃", "\x017", " 7 "])
async def test_a_stream_is_resumed_after_an_event_of_any_id(
    on_stage: OnStage, monkeypatch: pytest.MonkeyPatch, id_: str
) -> None:
    monkeypatch.setattr(streamable, "RESUME_FIRST", 0.01)
    async with serving(Web()) as web, on_stage(web) as stage:
        await stage.ready()
        await web.until(lambda web: web.streams)
        answer = '{"jsonrpc": "2.0", "id": 4, "result": {"content": [{"type": "text", "text": "resumed"}]}}'
        web.deeds["tools/call"] = [deed("break_off", said=f"id: {id_}\ndata:")]
        web.deeds["GET"] = [deed("end", said=f"id: 8\ndata: {answer}")]
        assert said(await stage.call()) == "resumed"
        # The server here reads headers as Latin-1; the specification of events says UTF-8.
        named = [each["last-event-id"] for each in web.headers if "last-event-id" in each]
        assert named[0].encode("latin-1").decode() == id_.strip()
