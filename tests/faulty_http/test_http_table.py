"""What a server can do wrong over HTTP, row by row: what its caller sees and by when, and that a neighbour does not.

The rows are those of a study of what an SDK's client makes of them: a status that is lost, a session that is never opened anew,
a connection that dies of one request, calls that fill the pool.
"""

from __future__ import annotations

import pytest
import trio
from playbill.actors import CallTimeout, ServerDied, ServerUnavailable
from playbill.actors.edge.wire import link
from playbill.actors.edge.wire.remote import conversation, streamable

from .conftest import FOR_ONE_LIFE, OnStage, said
from .server import Web, deed, serving

# ── statuses ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["legacy", "modern"])
async def test_a_burst_of_calls_answered_401_is_one_need_for_a_login_and_no_restart(
    on_stage: OnStage, kind: str
) -> None:
    async with serving(Web(kind)) as web, on_stage(web) as stage:
        await stage.ready()
        web.deeds["tools/call"] = deed(status=401, headers={"WWW-Authenticate": "Bearer"})
        refused = []

        async def call() -> None:
            with pytest.raises(ServerUnavailable) as error:
                await stage.call()
            refused.append(error.value.reason)

        async with trio.open_nursery() as nursery:
            for _ in range(50):
                nursery.start_soon(call)
        assert set(refused) == {"it needs login: HTTP 401 Unauthorized: it wants a login"}
        state = await stage.until(lambda state: state.phase == "needs_auth")
        assert (state.restarts, state.error) == (0, "HTTP 401 Unauthorized: it wants a login")
        await web.until(lambda web: web.open == 0)
        before = web.seen.copy()
        await stage.goes_on(50)
        assert web.seen == before  # nobody knocks again by itself
        assert stage.phases.count("needs_auth") == 1
        web.deeds.clear()
        await stage.host.restart("bad")
        await stage.ready()
        assert said(await stage.call(a=1)) == '{"a": 1}'


@pytest.mark.parametrize("moment", ["*", "initialize", "tools/list"])
async def test_a_login_that_is_wanted_at_the_start_is_waited_for(on_stage: OnStage, moment: str) -> None:
    async with serving(Web()) as web:
        web.deeds[moment] = deed(status=401)
        async with on_stage(web) as stage:
            state = await stage.until(lambda state: state.phase == "needs_auth")
            assert (state.restarts, state.error) == (0, "HTTP 401 Unauthorized: it wants a login")
            assert web.seen["initialize"] <= 1


@pytest.mark.parametrize("moment", ["*", "initialize", "tools/list"])
@pytest.mark.parametrize("kind", ["legacy", "modern"])
async def test_a_403_with_a_challenge_before_the_first_list_is_a_login_that_is_not_enough(
    on_stage: OnStage, moment: str, kind: str
) -> None:
    async with serving(Web(kind)) as web:
        web.deeds["server/discover" if (kind, moment) == ("modern", "initialize") else moment] = deed(
            status=403, headers={"WWW-Authenticate": 'Bearer error="insufficient_scope"'}
        )
        async with on_stage(web) as stage:
            state = await stage.until(lambda state: state.phase == "needs_auth")
            assert (state.restarts, state.error) == (0, "HTTP 403 Forbidden: the login is not enough")


async def test_a_403_of_one_call_is_that_calls_own(on_stage: OnStage) -> None:
    async with serving(Web()) as web, on_stage(web) as stage:
        await stage.ready()
        result = await stage.call("do", status=403, headers={"WWW-Authenticate": "Bearer"})
        assert result.is_error
        assert said(result) == "The call failed: HTTP 403 Forbidden: the login is not enough"
        assert said(await stage.call()) == "{}"
        assert (stage.state().phase, stage.state().restarts) == ("ready", 0)


@pytest.mark.parametrize("status", [500, 502, 429, 503, 400, 418])
async def test_a_status_of_one_call_is_named_and_costs_only_that_call(on_stage: OnStage, status: int) -> None:
    async with serving(Web()) as web, on_stage(web) as stage:
        await stage.ready()
        result = await stage.call("do", status=status)
        assert result.is_error
        assert said(result).startswith(f"The call failed: HTTP {status} ")
        assert said(await stage.call()) == "{}"
        assert (stage.state().phase, stage.state().restarts) == ("ready", 0)


@pytest.mark.parametrize("status", [429, 503])
@pytest.mark.parametrize("moment", ["*", "tools/list"])
async def test_a_server_that_says_when_is_tried_again_then_and_not_before(
    on_stage: OnStage, status: int, moment: str
) -> None:
    async with serving(Web()) as web:
        web.deeds[moment] = deed(status=status, headers={"Retry-After": "500"})
        async with on_stage(web) as stage:
            state = await stage.until(lambda state: state.phase == "backing_off")
            assert state.error is not None
            assert f"HTTP {status}" in state.error
            assert "it asks to wait 500 s" in state.error
            assert state.next_retry_at is not None
            assert state.next_retry_at > trio.current_time() + 400


async def test_a_server_that_is_unavailable_for_a_while_is_ready_afterwards(on_stage: OnStage) -> None:
    async with serving(Web()) as web:
        web.deeds["*"] = [deed(status=503, headers={"Retry-After": "0"}) for _ in range(3)]
        async with on_stage(web) as stage:
            await stage.ready()
            assert said(await stage.call()) == "{}"


# ── sessions ─────────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("with_get", [True, False])
async def test_a_session_that_ended_is_opened_anew_at_once_and_is_no_crash(on_stage: OnStage, with_get: bool) -> None:
    web = Web()
    if not with_get:
        web.deeds["GET"] = deed(status=405)
    async with serving(web), on_stage(web, backoff=FOR_ONE_LIFE) as stage:
        await stage.ready()
        web.forget()
        with pytest.raises(ServerDied) as error:
            await stage.call()
        assert error.value.reason == "the session has ended: HTTP 404"
        assert said(await stage.call(a=1)) == '{"a": 1}'
        assert (stage.state().phase, stage.state().restarts, len(web.sessions)) == ("ready", 0, 1)


async def test_a_server_that_forgets_sessions_against_the_letter_is_understood(on_stage: OnStage) -> None:
    async with serving(Web()) as web, on_stage(web, backoff=FOR_ONE_LIFE) as stage:
        await stage.ready()
        error = '{"code": -32000, "message": "Bad Request: No valid session ID provided"}'
        body = f'{{"jsonrpc": "2.0", "error": {error}, "id": null}}'
        web.deeds["tools/call"] = [deed(status=400, body=body)]
        with pytest.raises(ServerDied, match="the session has ended: HTTP 400"):
            await stage.call()
        assert said(await stage.call()) == "{}"
        assert stage.state().restarts == 0


async def test_sessions_that_end_again_and_again_are_crashes(on_stage: OnStage) -> None:
    async with serving(Web()) as web, on_stage(web, backoff=FOR_ONE_LIFE) as stage:
        await stage.ready()
        for _ in range(2):
            web.forget()
            with pytest.raises(ServerDied):
                await stage.call()
            await stage.until(lambda state: state.error or (state.phase == "ready" and web.sessions))
        state = await stage.until(lambda state: state.phase == "backing_off")
        assert state.error == "the session has ended: HTTP 404"


async def test_a_method_that_is_not_found_ends_no_session(on_stage: OnStage) -> None:
    async with serving(Web()) as web, on_stage(web) as stage:
        await stage.ready()
        body = '{"jsonrpc": "2.0", "id": 1, "error": {"code": -32601, "message": "Method not found"}}'
        assert (await stage.call("do", status=404, body=body)).is_error
        assert said(await stage.call()) == "{}"
        assert (stage.state().restarts, len(web.sessions)) == (0, 1)


@pytest.mark.parametrize("what", ["hang", "stall"])
@pytest.mark.parametrize("kind", ["legacy", "modern", "sse"])
async def test_a_server_that_is_restarted_on_the_same_port_is_ready_again_by_itself(
    on_stage: OnStage, kind: str, what: str
) -> None:
    web = Web(kind)
    async with trio.open_nursery() as nursery:
        await nursery.start(web.run)
        async with on_stage(web) as stage:
            await stage.ready()
            ended = []

            async def call() -> None:
                with pytest.raises(ServerDied):
                    await stage.call("do", do=what)
                ended.append(1)

            async with trio.open_nursery() as calls:
                for _ in range(10):
                    calls.start_soon(call)
                await web.until(lambda web: web.waiting == 10)
                web.stop()
            assert len(ended) == 10
            await stage.until(lambda state: not state.connected)
            web.forget()
            web.tools = ["echo", "do", "new"]
            await nursery.start(web.run)
            state = await stage.until(lambda state: state.phase == "ready" and len(state.tools) == 3)
            assert state.error is None
            assert said(await stage.call("new", a=1)) == '{"a": 1}'
            assert len(web.sessions) == (1 if kind == "legacy" else 0)
        web.stop()


# ── the network ──────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("what", "reason"),
    [("reset", "ReadError"), ("close", "RemoteProtocolError"), ("cut", "RemoteProtocolError")],
)
async def test_a_connection_that_breaks_is_told_and_mended_and_the_call_is_made_once(
    on_stage: OnStage, what: str, reason: str
) -> None:
    async with serving(Web()) as web, on_stage(web) as stage:
        await stage.ready()
        with pytest.raises(ServerDied, match=reason):
            await stage.call("do", do=what)
        await stage.until(lambda state: state.phase == "ready" and state.restarts == 1)
        assert web.seen["tools/call"] == 1
        assert said(await stage.call()) == "{}"


async def test_nobody_listening_is_told_with_the_address(on_stage: OnStage) -> None:
    async with serving(Web()) as web:
        pass
    async with on_stage(web, backoff=FOR_ONE_LIFE) as stage:
        state = await stage.until(lambda state: state.phase == "backing_off")
        assert state.error is not None
        assert f"127.0.0.1:{web.port}" in state.error
        assert "ConnectError" in state.error


@pytest.mark.parametrize(
    ("how", "words"),
    [
        (deed("truncate"), "not valid JSON"),
        (deed("html"), "HTTP 200 with text/html"),
        (deed("break_off"), "ended without a response"),
        (deed("end"), "ended without a response"),
        (deed(status=202), "HTTP 202: the server"),
        (deed("result", result=None), "its result is null"),
        (
            deed(status=307, headers={"Location": "https://elsewhere.example/mcp?key=abc"}),
            "https://elsewhere.example/mcp;",
        ),
    ],
)
@pytest.mark.parametrize("kind", ["legacy", "modern"])
async def test_an_answer_that_is_none_costs_only_its_call(
    on_stage: OnStage, kind: str, how: dict[str, object], words: str
) -> None:
    async with serving(Web(kind)) as web, on_stage(web) as stage:
        await stage.ready()
        web.deeds["tools/call"] = [how]
        result = await stage.call()
        assert result.is_error
        assert words in said(result)
        assert "abc" not in said(result)
        assert said(await stage.call()) == "{}"
        assert (stage.state().phase, stage.state().restarts) == ("ready", 0)


async def test_a_stream_with_ids_that_breaks_off_is_resumed(on_stage: OnStage) -> None:
    async with serving(Web()) as web, on_stage(web) as stage:
        await stage.ready()
        answer = '{"jsonrpc": "2.0", "id": %s, "result": {"content": [{"type": "text", "text": "resumed"}]}}'
        web.deeds["tools/call"] = [deed("break_off", said="id: 7\nretry: 1\ndata:")]
        await web.until(lambda web: web.streams)
        web.deeds["GET"] = [deed("end", said=f"id: 8\ndata: {answer % 4}")]
        assert said(await stage.call()) == "resumed"
        assert [each["last-event-id"] for each in web.headers if "last-event-id" in each] == ["7"]
        assert stage.state().restarts == 0


async def test_a_server_that_stalls_costs_its_callers_their_deadlines_and_no_more(on_stage: OnStage) -> None:
    async with serving(Web()) as web, on_stage(web) as stage:
        await stage.ready()
        for what in ("hang", "stall"):
            with pytest.raises(CallTimeout):
                await stage.call("do", timeout=0.2, do=what)
        await web.until(lambda web: web.waiting == 0)
        assert said(await stage.call()) == "{}"
        assert (stage.state().phase, stage.state().restarts) == ("ready", 0)


# ── idle death ───────────────────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("kind", ["legacy", "modern", "sse"])
async def test_the_end_of_an_idle_server_is_noticed(on_stage: OnStage, kind: str) -> None:
    web = Web(kind)
    async with trio.open_nursery() as nursery:
        await nursery.start(web.run)
        async with on_stage(web, backoff=FOR_ONE_LIFE) as stage:
            await stage.ready()
            await web.until(lambda web: web.streams)
            web.stop()
            state = await stage.until(lambda state: state.phase == "backing_off")
            assert state.error


@pytest.mark.parametrize("kind", ["legacy", "modern"])
async def test_an_idle_server_that_offers_no_stream_is_pinged(
    on_stage: OnStage, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(link, "PING_EVERY", 0.05)
    web = Web(kind)
    web.deeds["GET"] = deed(status=405)
    body = '{"jsonrpc": "2.0", "id": "listen-1", "error": {"code": -32601, "message": "Method not found"}}'
    web.deeds["subscriptions/listen"] = deed(status=404, body=body)
    async with trio.open_nursery() as nursery:
        await nursery.start(web.run)
        async with on_stage(web, backoff=FOR_ONE_LIFE) as stage:
            await stage.ready()
            ping = "ping" if kind == "legacy" else "server/discover"
            await web.until(lambda web: web.seen[ping] > 3)
            assert stage.state().restarts == 0
            web.stop()
            state = await stage.until(lambda state: state.phase == "backing_off")
            # The end came between two pings or during one: nobody listens, or the connection was closed. Both are told.
            assert str(state.error).startswith(f"the request to 127.0.0.1:{web.port} failed: ")


async def test_an_idle_server_that_answers_no_ping_is_lost(on_stage: OnStage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(link, "PING_EVERY", 0.05)
    monkeypatch.setattr(link, "PING_WITHIN", 0.2)
    async with serving(Web()) as web:
        web.deeds["ping"] = deed("hang")
        async with on_stage(web, backoff=FOR_ONE_LIFE) as stage:
            state = await stage.until(lambda state: state.phase == "backing_off")
            assert state.error == "it has not answered a ping within 0.2 s"


@pytest.mark.parametrize("kind", ["legacy", "modern", "sse"])
async def test_a_list_that_changes_is_fetched_again(on_stage: OnStage, kind: str) -> None:
    async with serving(Web(kind)) as web, on_stage(web) as stage:
        await stage.ready()
        await web.until(lambda web: web.streams)
        web.tools = ["echo", "new"]
        await web.announce()
        await stage.until(lambda state: [tool.bare for tool in state.tools] == ["echo", "new"])


async def test_a_list_that_changed_while_the_stream_was_away_is_fetched_again(on_stage: OnStage) -> None:
    async with serving(Web()) as web, on_stage(web) as stage:
        await stage.ready()
        await web.until(lambda web: web.streams)
        web.tools = ["echo", "new"]
        web.streams[0].ended.set()
        await stage.until(lambda state: [tool.bare for tool in state.tools] == ["echo", "new"])
        assert stage.state().restarts == 0


# ── messages that hang ───────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_server_that_never_takes_initialized_is_usable(
    on_stage: OnStage, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streamable, "INITIALIZED_SECONDS", 0.05)
    async with serving(Web()) as web:
        web.deeds["notifications/initialized"] = deed("hang")
        async with on_stage(web) as stage:
            await stage.ready()
            assert web.waiting == 1
            assert said(await stage.call()) == "{}"


async def test_a_session_is_ended_when_the_host_closes(on_stage: OnStage) -> None:
    async with serving(Web()) as web:
        async with on_stage(web) as stage:
            await stage.ready()
            assert len(web.sessions) == 1
        assert web.sessions == set()
        await web.until(lambda web: web.open == 0)


@pytest.mark.parametrize("kind", ["legacy", "modern"])
async def test_a_thousand_cancelled_calls_leave_the_pool_usable(on_stage: OnStage, kind: str) -> None:
    async with serving(Web(kind)) as web, on_stage(web) as stage:
        await stage.ready()
        for _ in range(10):
            async with trio.open_nursery() as nursery:
                for _ in range(100):
                    nursery.start_soon(stage.call, "do", 30.0)
                web.deeds["tools/call"] = deed("hang")
                await web.until(lambda web: web.waiting == 100)
                nursery.cancel_scope.cancel()
            await web.until(lambda web: web.waiting == 0)
        web.deeds.clear()
        assert said(await stage.call()) == "{}"
        assert (stage.state().phase, stage.state().restarts) == ("ready", 0)
        if kind == "legacy":
            await web.until(lambda web: len(web.cancelled) == 1000)
        else:
            assert not web.cancelled  # the end of the stream says so


async def test_more_calls_than_there_are_connections_leave_room_for_all_else(on_stage: OnStage) -> None:
    async with serving(Web()) as web, on_stage(web) as stage:
        await stage.ready()
        web.deeds["tools/call"] = deed("hang")
        async with trio.open_nursery() as nursery:
            for _ in range(150):
                nursery.start_soon(stage.call)
            await web.until(lambda web: web.waiting == 100)
            web.tools = ["echo", "new"]
            await web.until(lambda web: web.streams)
            await web.announce()
            await stage.until(lambda state: [tool.bare for tool in state.tools] == ["echo", "new"])
            nursery.cancel_scope.cancel()
        web.deeds.clear()
        assert said(await stage.call()) == "{}"


async def test_notices_that_hang_hold_up_no_call(on_stage: OnStage, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(conversation, "NOTE_SECONDS", 60.0)
    async with serving(Web()) as web, on_stage(web) as stage:
        await stage.ready()
        web.deeds["notifications/cancelled"] = deed("hang")
        for _ in range(50):
            with pytest.raises(CallTimeout):
                await stage.call("do", timeout=0.01, do="hang")
        assert said(await stage.call()) == "{}"


# ── the older transport ──────────────────────────────────────────────────────────────────────────────────────────────


async def test_a_url_of_the_older_transport_is_found_out(on_stage: OnStage) -> None:
    async with serving(Web("sse")) as web, on_stage(web) as stage:
        await stage.ready()
        assert said(await stage.call(a=1)) == '{"a": 1}'
        assert (stage.state().restarts, stage.state().kind) == (0, "sse")
        posts = web.seen["initialize"]
        await stage.host.restart("bad")
        await stage.until(
            lambda state: state.phase == "ready" and web.seen["initialize"] == posts + 1
        )  # it is remembered


async def test_a_url_that_is_neither_is_told_with_both_reasons(on_stage: OnStage) -> None:
    async with serving(Web()) as web:
        web.deeds["*"] = deed(status=404)
        async with on_stage(web, backoff=FOR_ONE_LIFE) as stage:
            state = await stage.until(lambda state: state.phase == "backing_off")
            assert state.error == "HTTP 404 Not Found"
            web.deeds["GET"] = deed(status=406)
            await stage.host.restart("bad")
            state = await stage.until(
                lambda state: state.error != "HTTP 404 Not Found" and state.phase == "backing_off"
            )
            assert state.error == "HTTP 404 Not Found; over SSE: HTTP 406 Not Acceptable"


async def test_an_entry_with_a_type_is_taken_at_its_word(on_stage: OnStage) -> None:
    async with serving(Web("sse")) as web, on_stage(web, type="http", backoff=FOR_ONE_LIFE) as stage:
        state = await stage.until(lambda state: state.phase == "backing_off")
        assert state.error == "HTTP 405 Method Not Allowed"
        assert web.seen["GET"] == 0


async def test_a_stream_that_names_no_endpoint_is_given_up(on_stage: OnStage, monkeypatch: pytest.MonkeyPatch) -> None:
    from playbill.actors.edge.wire.remote import older_sse

    monkeypatch.setattr(older_sse, "ENDPOINT_SECONDS", 0.05)
    async with serving(Web("sse")) as web:
        web.deeds["GET"] = deed("stall")
        async with on_stage(web, type="sse", backoff=FOR_ONE_LIFE) as stage:
            state = await stage.until(lambda state: state.phase == "backing_off")
            assert state.error == "the event stream names no endpoint"


async def test_over_sse_a_post_that_fails_or_hangs_costs_only_its_call(on_stage: OnStage) -> None:
    async with serving(Web("sse")) as web, on_stage(web, type="sse") as stage:
        await stage.ready()
        result = await stage.call("do", status=500)
        assert said(result) == "The call failed: HTTP 500 Internal Server Error"
        async with trio.open_nursery() as nursery:
            nursery.start_soon(stage.call, "do", 30.0)
            web.deeds["tools/call"] = [deed("hang")]
            await web.until(lambda web: web.waiting == 1)
            assert said(await stage.call()) == "{}"
            nursery.cancel_scope.cancel()
        assert stage.state().restarts == 0
