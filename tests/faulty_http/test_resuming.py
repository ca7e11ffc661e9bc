"""Streams that break off before the response and are resumed, whatever the server says of its events or to the request."""

from __future__ import annotations

import pytest
import trio
from playbill.actors import ServerDied, ServerUnavailable

from .conftest import FOR_ONE_LIFE, OnStage, said
from .server import Web, deed, serving

ANSWER = '{"jsonrpc": "2.0", "id": 4, "result": {"content": [{"type": "text", "text": "resumed"}]}}'
"""To the first call that was begun after a host was ready."""


def breaks_off(event_id: str = "7", retry: str = "1") -> list[dict[str, object]]:
    return [deed("break_off", said=f"id: {event_id}\nretry: {retry}\ndata:")]


def goes_on() -> dict[str, object]:
    return deed("end", said=f"id: 8\ndata: {ANSWER}")


async def test_calls_that_resume_their_streams_leave_room_for_all_else(on_stage: OnStage) -> None:
    async with serving(Web()) as web, on_stage(web) as stage:
        await stage.ready()
        await web.until(lambda web: web.streams)
        web.deeds["tools/call"] = deed("end", said="id: 7\nretry: 1\ndata:")
        web.deeds["GET"] = deed("stall")
        async with trio.open_nursery() as nursery:
            for _ in range(40):
                nursery.start_soon(stage.call)
            await web.until(lambda web: web.waiting == 40)
            web.tools = ["echo", "new"]
            await web.announce()
            await stage.until(lambda state: [tool.bare for tool in state.tools] == ["echo", "new"])
            nursery.cancel_scope.cancel()


@pytest.mark.parametrize("retry", ["-5", "-1" + "0" * 400, "0"])
async def test_a_stream_that_may_be_resumed_in_no_time_is_resumed(on_stage: OnStage, retry: str) -> None:
    async with serving(Web()) as web, on_stage(web) as stage:
        await stage.ready()
        await web.until(lambda web: web.streams)
        web.deeds["tools/call"], web.deeds["GET"] = breaks_off(retry=retry), [goes_on()]
        assert said(await stage.call()) == "resumed"


@pytest.mark.parametrize("status", [500, 429, 503])
async def test_a_stream_that_cannot_be_resumed_for_a_while_is_asked_for_again(on_stage: OnStage, status: int) -> None:
    async with serving(Web()) as web, on_stage(web) as stage:
        await stage.ready()
        await web.until(lambda web: web.streams)
        refusal = deed(status=status, headers={"Retry-After": "0"})
        web.deeds["tools/call"], web.deeds["GET"] = breaks_off(), [refusal, refusal, goes_on()]
        assert said(await stage.call()) == "resumed"
        assert web.seen["tools/call"] == 1


async def test_a_stream_that_cannot_be_resumed_costs_its_call_which_is_not_made_again(on_stage: OnStage) -> None:
    web = Web()
    web.annotations["echo"] = {"readOnlyHint": True}
    async with serving(web), on_stage(web) as stage:
        await stage.ready()
        await web.until(lambda web: web.streams)
        refusal = deed(status=429, headers={"Retry-After": "0"})
        web.deeds["tools/call"], web.deeds["GET"] = breaks_off(), [refusal] * 5
        result = await stage.host.call_tool("bad", "echo", timeout=30.0, retry=2)
        assert said(result).startswith("The call failed: its event stream ended without a response")
        web.deeds["tools/call"], web.deeds["GET"] = breaks_off(), [deed(status=410)]
        result = await stage.host.call_tool("bad", "echo", timeout=30.0, retry=2)
        assert said(result).endswith("and it cannot be resumed: HTTP 410 Gone")
        assert web.seen["tools/call"] == 2
        assert (stage.state().phase, stage.state().restarts) == ("ready", 0)


async def test_a_stream_that_cannot_be_resumed_without_a_login_says_so(on_stage: OnStage) -> None:
    async with serving(Web()) as web, on_stage(web) as stage:
        await stage.ready()
        await web.until(lambda web: web.streams)
        web.deeds["tools/call"], web.deeds["GET"] = breaks_off(), [deed(status=401)]
        with pytest.raises(ServerUnavailable, match="HTTP 401 Unauthorized: it wants a login"):
            await stage.call()
        await stage.until(lambda state: state.phase == "needs_auth")


async def test_a_stream_that_cannot_be_resumed_as_its_session_has_ended_says_so(on_stage: OnStage) -> None:
    async with serving(Web()) as web, on_stage(web, backoff=FOR_ONE_LIFE) as stage:
        await stage.ready()
        await web.until(lambda web: web.streams)
        web.deeds["tools/call"], web.deeds["GET"] = breaks_off(), [deed(status=404)]
        with pytest.raises(ServerDied, match="the session has ended: HTTP 404"):
            await stage.call()
        assert said(await stage.call()) == "{}"
        assert stage.state().restarts == 0


async def test_an_event_id_that_fits_no_header_costs_no_more_than_its_call(on_stage: OnStage) -> None:
    async with serving(Web()) as web, on_stage(web, backoff=FOR_ONE_LIFE) as stage:
        await stage.ready()
        await web.until(lambda web: web.streams)
        web.deeds["tools/call"] = breaks_off(event_id="7\x0b7")
        result = await stage.call()
        assert said(result).endswith("and it cannot be resumed: its event id fits no header")
        assert said(await stage.call()) == "{}"
        assert (stage.state().phase, stage.state().restarts) == ("ready", 0)


@pytest.mark.parametrize("event_id", ["7\x0b7", "é7"])
async def test_a_stream_of_changes_whose_event_id_is_odd_is_opened_again(on_stage: OnStage, event_id: str) -> None:
    async with serving(Web()) as web, on_stage(web, backoff=FOR_ONE_LIFE) as stage:
        await stage.ready()
        await web.until(lambda web: web.streams)
        old = web.streams[0]
        await old.event(f"id: {event_id}\ndata:")
        old.ended.set()
        await web.until(lambda web: web.streams and web.streams[0] is not old)
        assert (stage.state().phase, stage.state().restarts) == ("ready", 0)
