"""Authorization servers that say what no sound one says, and visitors of the open port that are no browser."""

from __future__ import annotations

import gzip
import json
import logging
from typing import Any

import pytest
import trio
from mcp.shared.auth import OAuthMetadata
from playbill.actors import OAuth
from playbill.actors.edge.auth import answer, client, grant
from playbill.actors.edge.auth import callback as loopback
from playbill.actors.edge.auth.challenge import read_challenge
from playbill.actors.edge.auth.discovery import Found
from playbill.actors.edge.auth.record import Client, read_record, record_json, union
from playbill.actors.edge.auth.refused import LoginRefused
from playbill.actors.edge.auth.urls import refusal, resource_of
from playbill.actors.edge.auth.web import LoginUnavailable, Web
from playbill.actors.edge.wire.remote import clients

from .said import ISSUER, Said, metadata

HUGE = "1" + "0" * 400


async def tokens(body: str | bytes, status: int = 200) -> dict[str, Any]:
    said = body.encode() if isinstance(body, str) else body
    return await grant.tokens(Said(token=(status, said)), f"{ISSUER}/token", Client(id="c"), grant.Proof(), {})


@pytest.mark.parametrize(
    ("said", "lasts"),
    [
        ("60", 60.0),
        ('"60"', 60.0),
        ("1e400", 1e9),
        (HUGE, None),
        ("NaN", None),
        ('"nan"', None),
        ("0", None),
        ("-5", None),
        ("true", None),
        ("null", None),
        ('"soon"', None),
        ("[1]", None),
    ],
)
async def test_a_life_of_a_token_that_is_none_is_as_good_as_none_said(said: str, lasts: float | None) -> None:
    assert (await tokens(f'{{"access_token": "a", "expires_in": {said}}}')).get("expires_in") == lasts


@pytest.mark.parametrize("status", [302, 403, 404, 408, 425, 429, 500, 503])
async def test_a_token_endpoint_that_cannot_answer_now_says_nothing_of_the_login(status: int) -> None:
    with pytest.raises(LoginUnavailable, match=f"gives no token now: HTTP {status}"):
        await tokens("<html>", status)


@pytest.mark.parametrize(
    ("status", "said", "error"),
    [
        (400, "<html>", "HTTP 400"),
        (401, '{"error": "\\u001b[31m"}', "HTTP 401"),
        (403, '{"error": "access_denied"}', "access_denied"),
        (200, '{"error": "bad_refresh_token"}', None),
    ],
)
async def test_a_token_endpoint_that_says_no_is_believed(status: int, said: str, error: str | None) -> None:
    with pytest.raises(LoginRefused, match=r"gives no token: |something else than a token") as refused:
        await tokens(said, status)
    assert getattr(refused.value, "error", None) == error


async def test_a_page_in_the_place_of_a_token_says_nothing_of_the_login() -> None:
    with pytest.raises(LoginUnavailable, match="answers with something else than a token"):
        await tokens("<html>maintenance</html>")


def test_scopes_are_what_can_be_one_wherever_they_come_from() -> None:
    assert union("a \x1b[31mb \ud800 c\u202e é d") == "a d"
    assert read_challenge(['Bearer scope="a \x1b[2J\x07"']).scope == "a"
    assert union("\x1b") is None


async def test_scopes_that_were_granted_write_nothing_on_a_terminal() -> None:
    said = await tokens('{"access_token": "a", "scope": "use \\u001b]0;gone\\u0007 \\ud800"}')
    assert said["scope"] == "use"


def found(**more: Any) -> Found:
    said = OAuthMetadata.model_validate(metadata(**more))
    return Found(ISSUER, f"{ISSUER}/authorize", f"{ISSUER}/token", f"{ISSUER}/register", None, None, None, said)


@pytest.mark.parametrize("said", ['{"client_id": "\\ud800"}', '{"client_id": "c", "client_secret": "\\ud800"}'])
async def test_a_registration_that_no_request_could_hold_is_none(said: str) -> None:
    with pytest.raises(LoginRefused, match="cannot be used"):
        await client.register(Said(register=(201, said.encode())), found(), "http://127.0.0.1:1/callback", None)


async def test_a_secret_that_ends_beyond_all_time_does_not_end() -> None:
    said = f'{{"client_id": "c", "client_secret": "s", "client_secret_expires_at": {HUGE}}}'
    made = await client.register(Said(register=(201, said.encode())), found(), "http://127.0.0.1:1/callback", None)
    assert made.secret_ends is not None
    assert made.secret_ends > 1e11


@pytest.mark.parametrize(
    ("redirect", "kind"),
    [("http://127.0.0.1:1/callback", "native"), ("https://app.example/in", "web"), ("app.example:/in", "native")],
)
async def test_a_client_says_of_which_kind_its_redirect_is(redirect: str, kind: str) -> None:
    web = Said(register=(201, {"client_id": "c"}))
    await client.register(web, found(), redirect, None)
    assert web.asked[0][1]["application_type"] == kind


HERE = (
    *("127.0.0.2", "127.1", "0.0.0.0", "2130706433", "0x7f000001", "0177.0.0.1", "127.0.0.1.", "localhost."),
    *("auth.localhost", "[::]", "[::ffff:127.0.0.1]", "[::1%25lo]"),
)
ELSEWHERE = ("auth.example", "192.0.2.1", "localhost.example", "[2001:db8::1]", "1.127")


@pytest.mark.parametrize(("host", "here"), [*((each, True) for each in HERE), *((each, False) for each in ELSEWHERE)])
def test_a_server_elsewhere_leads_to_this_machine_in_no_writing(host: str, here: bool) -> None:
    assert (refusal(f"https://{host}:8443/token", "https://mcp.example/mcp") is not None) == here
    assert refusal(f"https://{host}:8443/token", "http://127.0.0.1:1/mcp") is None
    assert refusal(f"https://{host}:8443/token", f"https://{host}/mcp") is None


def test_the_resource_of_a_server_is_named_as_its_metadata_will_name_it() -> None:
    assert resource_of("HTTPS://Example.com:443/mcp?k=v#x") == "https://example.com/mcp"
    assert resource_of("https://example.com") == "https://example.com"
    assert resource_of("https://example.com/mcp/") == "https://example.com/mcp/"
    assert resource_of("http://[::1]:80/mcp") == "http://[::1]/mcp"
    assert resource_of("https://example.com:8443/MCP") == "https://example.com:8443/MCP"


@pytest.mark.parametrize(
    "how",
    [
        {"access_token": "a\r\nx: y"},
        {"access_token": "é"},
        {"expires_at": float("nan")},
        {"expires_at": 10**400},
        {"issued_at": float("inf")},
        {"client": {"id": 5}},
        {"client": {"id": "c", "secret": ["s"]}},
        {"client": {"id": "c", "secret_ends": "x"}},
        {"client": {"id": "c", "registered": "no"}},
        {"client": "c"},
    ],
)
def test_a_file_that_holds_what_no_login_is_made_of_is_no_login(how: dict[str, Any]) -> None:
    assert read_record({"version": 1, "access_token": "a", **how}) is None


def test_what_a_client_shows_of_itself_is_in_no_repr() -> None:
    shown = grant._Shown({"client_secret": "hush"}, {"authorization": "Basic hush"})
    assert "hush" not in repr(shown)


@pytest.mark.parametrize(
    "head",
    [
        b"GET /\t/[ HTTP/1.1",
        b"GET /callback?state=[&x=%ff HTTP/1.1",
        b"GET /callback/?state=s&code=c HTTP/1.1",
        b"GET http://127.0.0.1/callback?state=s HTTP/1.1",
        b"GET //x/callback?state=s HTTP/1.1",
        b"GET /favicon.ico HTTP/1.1",
        b"\xff\xfe \x00",
        b"",
    ],
)
async def test_no_visitor_of_the_open_port_ends_a_login(head: bytes) -> None:
    async with loopback.open_callback() as callback:
        callback.fits = lambda path: answer.has_state(path, "s")
        port = int(callback.redirect_uri.rpartition(":")[2].partition("/")[0])

        async def visit(head: bytes) -> bytes:
            async with await trio.open_tcp_stream("127.0.0.1", port) as stream:
                await stream.send_all(head + b"\r\n\r\n")
                return bytes(await stream.receive_some())

        with trio.fail_after(30):
            assert (await visit(head)).startswith(b"HTTP/1.1 400 ")
            assert (await visit(b"GET /callback?state=s&code=c HTTP/1.1")).startswith(b"HTTP/1.1 200 ")
            assert await callback.wait() == "/callback?state=s&code=c"


@pytest.mark.parametrize("redirect", ["https://evil.example/in", "http://evil.example/in", "http://127.0.0.1:99999/"])
async def test_no_port_is_opened_for_a_redirect_to_elsewhere(redirect: str) -> None:
    """As a variable can bring it into a config."""
    with pytest.raises(LoginRefused, match="its redirect is"):
        async with loopback.open_callback(redirect):
            pass


def test_a_redirect_is_listened_for_where_it_leads() -> None:
    assert loopback._place("http://[::1]:81/in") == ("::1", 81)
    assert loopback._place("http://localhost:81/in") == ("127.0.0.1", 81)


@pytest.fixture
async def odd(nursery: trio.Nursery) -> str:
    """URL of a server that answers all with a page compressed twice, and a cookie."""
    page = gzip.compress(gzip.compress(b" " * 1000))
    head = (
        "HTTP/1.1 200 OK\r\nset-cookie: a=hush-1\r\ncontent-encoding: gzip, gzip\r\n"
        f"content-length: {len(page)}\r\nconnection: close\r\n\r\n"
    )

    async def serve(stream: trio.SocketStream) -> None:
        async with stream:
            await stream.receive_some()
            await stream.send_all(head.encode() + page)

    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    nursery.start_soon(trio.serve_listeners, serve, [listener])
    return f"http://127.0.0.1:{listener.socket.getsockname()[1]}/"


async def test_an_answer_that_grows_and_grows_is_not_unpacked(odd: str) -> None:
    with pytest.raises(LoginUnavailable, match="DecodingError"):
        await Web().get(odd)


async def test_the_http_client_says_nothing_of_a_login_to_any_log(
    odd: str, caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    for writer in clients._WRITERS:
        monkeypatch.setattr(logging.getLogger(writer), "filters", [])  # as in a program that connected to nothing yet
    caplog.set_level(logging.DEBUG)
    with pytest.raises(LoginUnavailable):
        await Web().get(odd)
    assert [each.getMessage() for each in caplog.records if each.name.startswith("http")] == []


def test_a_record_of_a_client_reads_as_it_was_written() -> None:
    made = {"id": "c", "secret": "s", "method": "none", "redirect_uri": "r", "secret_ends": 5.0, "registered": True}
    read = read_record({"version": 1, "client": made})
    assert read is not None
    assert json.loads(json.dumps(record_json(read)))["client"] == made


def test_a_grant_of_a_client_names_no_secret_of_the_config() -> None:
    settings = OAuth(client_id="c", client_secret="hush")
    assert "hush" not in repr(grant.proof_of(settings, Client(id="c"), ISSUER))
