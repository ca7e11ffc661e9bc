"""What is a secret is in no error, in no snapshot and in no record of a log, whoever writes it."""

from __future__ import annotations

import logging
import shlex
import sys
from typing import Literal

import pytest
import trio
from playbill.actors import Config, ServerEntry, ServerUnavailable, open_host
from playbill.actors.edge.config.expand import expand
from playbill.actors.edge.wire.remote import helper
from playbill.actors.edge.wire.remote.helper import headers_from
from playbill.actors.edge.wire.session import make_connect
from playbill.actors.edge.wire.wire import HttpRefused

from .conftest import FOR_ONE_LIFE, PATIENCE, OnStage
from .server import Web, deed, serving

TOKEN = "a1b2c3d4e5f6a7b8c9d0e1f2a3b4c5d6e7f8"


@pytest.mark.parametrize("dispatcher", ["auto", "sdk"])
@pytest.mark.parametrize("kind", ["legacy", "modern", "sse"])
async def test_neither_a_session_id_nor_a_url_is_in_a_record_of_the_http_client(
    kind: str, dispatcher: Literal["auto", "sdk"], caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(logging.DEBUG)
    async with serving(Web(kind)) as web:
        entry = ServerEntry("web", url=f"{web.url}?key={TOKEN}", type="sse" if kind == "sse" else "http")
        async with open_host(Config((entry,)), connect=make_connect(dispatcher=dispatcher)) as host:
            assert await host.ready(timeout=PATIENCE)
            await host.call_tool("web", "echo", timeout=PATIENCE)
            if kind != "sse":
                # A body that is read long after its headers, and broken off.
                web.deeds["tools/call"] = [deed("break_off")]
                await host.call_tool("web", "echo", timeout=PATIENCE)
        assert any("session-1" in each.get("mcp-session-id", "") for each in web.headers) == (kind == "legacy")
    said = [f"{record.name}: {record.getMessage()}" for record in caplog.records]
    assert not [each for each in said if TOKEN in each or "session-1" in each or "session=1" in each]


def test_what_others_say_through_the_same_http_client_is_still_logged(caplog: pytest.LogCaptureFixture) -> None:
    from playbill.actors.edge.wire.remote.clients import ours

    caplog.set_level(logging.DEBUG)
    assert not ours.get()
    for name in ("httpx2", "httpcore2.connection", "httpcore2.http11"):
        logging.getLogger(name).debug("somebody else's")
    assert len(caplog.records) == 3


async def test_a_call_refused_for_want_of_a_login_is_one_over_the_transports_of_the_sdk_too() -> None:
    async with serving(Web()) as web:
        entry = ServerEntry("web", url=web.url)
        async with open_host(Config((entry,)), backoff=FOR_ONE_LIFE, connect=make_connect(dispatcher="sdk")) as host:
            assert await host.ready(timeout=PATIENCE)
            web.deeds["tools/call"] = [deed(status=401)]
            with pytest.raises(ServerUnavailable, match="login"):
                await host.call_tool("web", "echo", timeout=PATIENCE)
            with trio.fail_after(PATIENCE):
                async for snapshot in host.changes():
                    state = snapshot.model.server("web")
                    if state is not None and state.phase == "needs_auth":
                        break
            assert "401" in str(state.error)


async def test_a_handshake_refused_for_want_of_a_login_is_one_over_the_transports_of_the_sdk_too() -> None:
    async with serving(Web()) as web:
        web.deeds["*"] = deed(status=401)
        entry = ServerEntry("web", url=web.url)
        async with open_host(Config((entry,)), backoff=FOR_ONE_LIFE, connect=make_connect(dispatcher="sdk")) as host:
            with trio.fail_after(PATIENCE):
                async for snapshot in host.changes():
                    state = snapshot.model.server("web")
                    if state is not None and state.phase == "needs_auth":
                        break


async def test_where_a_redirect_leads_is_shown_as_the_url_itself_is(on_stage: OnStage) -> None:
    web = Web()
    web.path = f"/s/{TOKEN}/mcp"
    async with serving(web):
        web.deeds["*"] = deed(status=301, headers={"Location": f"{web.path}/?key={TOKEN}#{TOKEN}"})
        async with on_stage(web, backoff=FOR_ONE_LIFE) as stage:
            state = await stage.until(lambda state: state.error)
            assert f"not followed to http://127.0.0.1:{web.port}/s/***/mcp/" in str(state.error)
            assert TOKEN not in str(state)


async def test_a_header_of_any_name_is_in_no_error(on_stage: OnStage) -> None:
    async with serving(Web()) as web:
        wrong = '{"jsonrpc": "2.0", "id": 1, "error": {"code": -5, "message": "bad value hushhush77"}}'
        web.deeds["tools/list"] = deed(status=400, body=wrong)
        async with on_stage(web, backoff=FOR_ONE_LIFE, headers={"X-Vault": "id=hushhush77"}) as stage:
            state = await stage.until(lambda state: state.error)
            assert "bad value ***" in str(state.error)
            assert "hushhush77" not in str(state)


def test_what_of_headers_is_a_secret() -> None:
    headers = {
        "X-Plain": "hushhush",
        "X-Parts": 'first=abcd1;second="efgh2" ijkl3==',
        "Proxy-Login": "Bearer zyxw9",
        "X-Short": "abc",
        "Accept": "application/json",
        "user-agent": "probe/1.0",
        "CONTENT-TYPE": "text/plain",
    }
    secrets = expand(ServerEntry("web", url="http://web/mcp", headers=headers)).secrets
    assert {"hushhush", headers["X-Parts"], "abcd1", "efgh2", "ijkl3", "Bearer zyxw9", "zyxw9"} <= secrets
    # What is everywhere is none: `Bearer`, and the names of parts.
    assert not secrets & {"abc", "application/json", "probe/1.0", "text/plain", "Bearer", "first", "second"}


async def said_by(script: str) -> str:
    """What is told of a helper that fails."""
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(script)}"
    with pytest.raises(HttpRefused) as refused, trio.fail_after(PATIENCE):
        await headers_from(command, name="web", url="http://web/mcp", cwd=None, env={})
    return str(refused.value)


async def test_what_looks_like_a_secret_on_stderr_of_a_helper_is_masked() -> None:
    said = await said_by("import sys; sys.exit('error: no login with Authorization: Bearer abcdef123456')")
    assert "error: no login" in said
    assert "abcdef123456" not in said
    assert "***" in said


async def test_a_helper_may_say_much_on_stderr_and_its_last_words_count() -> None:
    said = await said_by("import sys; sys.stderr.write('x' * 300_000 + '\\n'); sys.exit('error: the vault is closed')")
    assert said == "headersHelper ended with 1: error: the vault is closed"


async def test_a_helper_that_says_much_on_stderr_gives_its_headers_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(helper, "HELPER_SECONDS", PATIENCE)
    script = "import sys; sys.stderr.write('x' * 300_000); print('{\"X-A\": \"b1234\"}')"
    command = f"{shlex.quote(sys.executable)} -c {shlex.quote(script)}"
    with trio.fail_after(PATIENCE):
        given = await headers_from(command, name="web", url="http://web/mcp", cwd=None, env={})
    assert given == {"X-A": "b1234"}
