"""The login in each request: where the token goes and where not, what is read of a refusal."""

from __future__ import annotations

import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx2
import pytest
import trio
from playbill.actors import Config, ServerEntry, open_host
from playbill.actors.edge.auth.bearer import Bearer
from playbill.actors.edge.auth.keeper import Keeper
from playbill.actors.edge.auth.logins import open_logins
from playbill.actors.edge.auth.record import Client, Record, key_of
from playbill.actors.edge.auth.store import LoginStore
from playbill.actors.edge.auth.web import LoginUnavailable
from playbill.actors.edge.config.expand import Expanded
from playbill.actors.edge.wire.remote.endpoint import send
from playbill.actors.model.oauth import OAuth

from ..faulty_http.server import Web, deed, serving

SERVER = "https://mcp.example/mcp"
KEY = "k" * 32


def keeper(folder: Path, nursery: trio.Nursery, **more: object) -> Keeper:
    found = Keeper(LoginStore(folder), KEY, SERVER, OAuth(), nursery.start_soon)
    found.take(Record(access_token="tok-1", **more))  # type: ignore[arg-type]
    return found


class Server:
    """Answers as it is told, and remembers what was sent to it."""

    def __init__(self, answer: Callable[[httpx2.Request], httpx2.Response]) -> None:
        self.sent: list[tuple[str, str | None]] = []
        self.answer = answer

    def __call__(self, request: httpx2.Request) -> httpx2.Response:
        self.sent.append((str(request.url), request.headers.get("authorization")))
        return self.answer(request)

    def client(self, auth: Bearer) -> httpx2.AsyncClient:
        return httpx2.AsyncClient(transport=httpx2.MockTransport(self), auth=auth)


@pytest.mark.parametrize(
    ("url", "carried"),
    [
        (SERVER, True),
        ("https://MCP.example:443/other?x=1", True),
        ("http://mcp.example/mcp", False),
        ("https://mcp.example:8443/mcp", False),
        ("https://mcp.example.evil/mcp", False),
        ("https://evil.example/mcp", False),
    ],
)
async def test_a_token_goes_to_the_origin_of_its_server_alone(folder: Path, url: str, carried: bool) -> None:
    async with trio.open_nursery() as nursery:
        server = Server(lambda _: httpx2.Response(401))
        async with server.client(Bearer(keeper(folder, nursery))) as client:
            await client.get(url)
        assert {bearer for _, bearer in server.sent} == {"Bearer tok-1" if carried else None}


@pytest.mark.parametrize(
    ("server", "to", "sent"),
    [
        (SERVER, "https://mcp.example/other", ["Bearer tok-1", "Bearer tok-1"]),
        (SERVER, "https://evil.example/mcp", ["Bearer tok-1"]),
        (SERVER, "https://mcp.example:8443/mcp", ["Bearer tok-1"]),
        ("http://127.0.0.1/mcp", "https://127.0.0.1/mcp", ["Bearer tok-1", None]),  # an upgrade is followed
    ],
)
async def test_a_redirect_that_is_followed_takes_the_token_to_no_other_origin(
    folder: Path, server: str, to: str, sent: list[str | None]
) -> None:
    async with trio.open_nursery() as nursery:
        found = Keeper(LoginStore(folder), KEY, server, OAuth(), nursery.start_soon)
        found.take(Record(access_token="tok-1"))
        moved = Server(
            lambda request: httpx2.Response(307, headers={"location": to} if str(request.url) == server else {})
        )
        transport = httpx2.MockTransport(moved)
        async with (
            httpx2.AsyncClient(transport=transport, auth=Bearer(found)) as client,
            send(client, "POST", server, {}, b"{}"),
        ):
            pass
        assert moved.sent == list(zip((server, to), sent, strict=False))


@pytest.mark.parametrize("moment", ["initialize", "tools/list", "tools/call"])
async def test_a_server_that_redirects_elsewhere_sends_the_token_nowhere(folder: Path, moment: str) -> None:
    async with serving(Web()) as other, serving(Web()) as web:
        web.deeds[moment] = deed(status=307, headers={"Location": other.url})
        LoginStore(folder).write(key_of(web.url, OAuth()), Record(access_token="tok-1"))
        async with open_host(Config((ServerEntry("web", url=web.url),)), login_folder=folder) as host:
            if moment == "tools/call":
                await host.ready(timeout=30)
                said = await host.call_tool("web", "echo", {}, timeout=30)
                assert "not followed to" in str(said.content)
            await web.until(lambda web: web.seen[moment] > 0)
            async for snapshot in host.changes():
                if moment == "tools/call" or "not followed" in str(snapshot.model.servers[0].error):
                    break
        assert {each.get("authorization") for each in web.headers} == {"Bearer tok-1"}
        assert other.headers == []


async def test_a_refusal_whose_body_never_ends_is_not_read(folder: Path) -> None:
    """The client would else read it before it sends the request again."""
    read = 0

    async def endless() -> AsyncIterator[bytes]:
        nonlocal read
        while True:
            read += 1
            yield b"x" * 1024
            await trio.lowlevel.checkpoint()

    store = LoginStore(folder)
    async with trio.open_nursery() as nursery:
        found = keeper(folder, nursery)
        store.write(KEY, Record(access_token="tok-2"))

        def answer(request: httpx2.Request) -> httpx2.Response:
            fits = request.headers["authorization"] == "Bearer tok-2"
            return httpx2.Response(200) if fits else httpx2.Response(401, content=endless())

        server = Server(answer)
        async with server.client(Bearer(found)) as client:
            with trio.fail_after(30):
                assert (await client.post(SERVER, content=b"{}")).status_code == 200
    assert read < 10


async def test_a_login_by_another_process_is_found_when_a_token_is_refused(folder: Path) -> None:
    async with trio.open_nursery() as nursery:
        found = keeper(folder, nursery)
        LoginStore(folder).write(KEY, Record(access_token="tok-2"))
        server = Server(lambda request: httpx2.Response(200 if "2" in request.headers["authorization"] else 401))
        async with server.client(Bearer(found)) as client:
            assert (await client.get(SERVER)).status_code == 200
        assert server.sent == [(SERVER, "Bearer tok-1"), (SERVER, "Bearer tok-2")]


async def test_an_authorisation_server_that_cannot_be_reached_is_told_without_the_tokens(folder: Path) -> None:
    """Also the refresh token stays: nobody knows what became of it."""
    record = Record(
        access_token="tok-1",
        refresh_token="ref-1",
        token_endpoint="http://127.0.0.1:9/token",
        client=Client(id="c"),
        expires_at=time.time() - 1,
    )
    store = LoginStore(folder)
    store.write(KEY, record)
    async with trio.open_nursery() as nursery:
        found = Keeper(store, KEY, SERVER, OAuth(), nursery.start_soon)
        found.take(record)
        server = Server(lambda _: httpx2.Response(200))
        async with server.client(Bearer(found)) as client:
            with pytest.raises(LoginUnavailable) as caught:
                await client.get(SERVER)
    assert str(caught.value) == (
        "the login is not to be had now: 127.0.0.1:9 cannot be asked: "
        "the connection is refused, or there is no such host"
    )
    assert server.sent == []
    assert store.read(KEY) == record


async def test_where_nobody_has_logged_in_a_refusal_makes_no_folder(folder: Path) -> None:
    async with trio.open_nursery() as nursery:
        found = Keeper(LoginStore(folder), KEY, SERVER, OAuth(), nursery.start_soon)
        server = Server(lambda _: httpx2.Response(401))
        async with server.client(Bearer(found)) as client:
            assert (await client.get(SERVER)).status_code == 401
        assert len(server.sent) == 1
    assert not folder.exists()


async def test_a_server_under_the_same_name_elsewhere_gets_another_login(folder: Path) -> None:
    def launch(url: str) -> Expanded:
        return Expanded(command=None, args=(), env={}, cwd=None, url=url, headers={}, secrets=set())

    async with open_logins(folder) as logins:
        await logins.login_for("web", launch(SERVER))
        mine = logins._of["web"]
        await logins.login_for("web", launch("https://evil.example/mcp"))
        assert logins._of["web"].key != mine.key
        await logins.login_for("other", launch(SERVER))
        assert logins._of["other"] is mine
        assert await logins.login_for("web", launch("http://mcp.example/mcp")) is None


async def test_all_that_need_a_renewal_wait_for_the_same_one(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    taken = 0
    locked = LoginStore.locked

    def counted(self: LoginStore, key: str, *more: float) -> object:
        nonlocal taken
        taken += 1
        return locked(self, key, *more)

    monkeypatch.setattr(LoginStore, "locked", counted)
    async with trio.open_nursery() as nursery:
        found = keeper(folder, nursery)
        LoginStore(folder).write(KEY, Record(access_token="tok-2"))
        server = Server(lambda request: httpx2.Response(200 if "2" in request.headers["authorization"] else 401))
        async with server.client(Bearer(found)) as client, trio.open_nursery() as calls:
            for _ in range(20):
                calls.start_soon(client.get, SERVER)
        assert len(server.sent) == 40
    assert taken == 1
