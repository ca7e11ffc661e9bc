"""What becomes of a login when the file, the disk or the host is not as it should be."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import httpx2
import pytest
import trio
from attrs import evolve
from playbill.actors import Config, HostClosed, OAuth, ServerEntry, open_host
from playbill.actors.edge.auth import keeper as keeping
from playbill.actors.edge.auth.bearer import Bearer
from playbill.actors.edge.auth.challenge import Challenge
from playbill.actors.edge.auth.keeper import Keeper
from playbill.actors.edge.auth.record import Client, Record
from playbill.actors.edge.auth.store import LoginStore, StoreFailed
from playbill.actors.edge.auth.web import LoginUnavailable

from .conftest import PATIENCE
from .said import ISSUER, SERVER, Said, metadata

KEY = "k" * 32
BY_ITSELF = OAuth(grant="client_credentials", client_id="c", client_secret="s-1234", issuer=ISSUER)


def granted(n: int) -> tuple[int, Any]:
    return 200, {"access_token": f"tok-{n}", "refresh_token": f"ref-{n}", "expires_in": 3600}


RECORD = Record(
    access_token="tok-1",
    refresh_token="ref-1",
    token_endpoint=f"{ISSUER}/token",
    issuer=ISSUER,
    client=Client(id="c"),
)


@pytest.fixture
def web(monkeypatch: pytest.MonkeyPatch) -> Said:
    said = Said(**{".well-known/oauth-authorization-server": (200, metadata())})
    said.answers["/.well-known/oauth-protected-resource"] = [
        (200, {"resource": SERVER, "authorization_servers": [ISSUER]})
    ]
    monkeypatch.setattr(keeping, "_web", lambda: said)
    return said


@contextmanager
def failing(*names: str) -> Iterator[None]:
    """What a store does not do, such as ``write`` when its disk is full."""

    def fails(*_: Any) -> Any:
        raise StoreFailed("No space left on device")

    with pytest.MonkeyPatch.context() as patch:
        for name in names:
            patch.setattr(LoginStore, name, fails)
        yield


async def opened(folder: Path, nursery: trio.Nursery, settings: OAuth | None = None) -> Keeper:
    keeper = Keeper(LoginStore(folder), KEY, SERVER, settings or OAuth(), nursery.start_soon)
    await keeper.load()
    return keeper


def asked(web: Said) -> list[Any]:
    """The refresh tokens that were used, in order."""
    return [form.get("refresh_token") for path, form in web.asked if path == "/token"]


async def test_a_full_disk_costs_no_login_and_has_no_refresh_token_used_twice(
    folder: Path, nursery: trio.Nursery, web: Said
) -> None:
    LoginStore(folder).write(KEY, RECORD)
    web.answers["/token"] = [granted(2), granted(3), granted(4)]
    keeper = await opened(folder, nursery)
    with failing("write"):
        assert await keeper.another("tok-1", Challenge()) == "tok-2"
        await keeper.load()  # as a new connection does
        assert await keeper.token() == "tok-2"
        assert await keeper.another("tok-2", Challenge()) == "tok-3"
    assert LoginStore(folder).read(KEY) == RECORD
    assert await keeper.another("tok-3", Challenge()) == "tok-4"
    assert asked(web) == ["ref-1", "ref-2", "ref-3"]
    assert LoginStore(folder).read(KEY) == keeper.record


@pytest.mark.parametrize(
    ("in_file", "good", "sent"),
    [
        ("tok-1", "tok-3", ["tok-1", "tok-3"]),
        ("tok-2", "tok-2", ["tok-1", "tok-2"]),
        # What another process got has ended as well: as when a server forgets all tokens at once.
        ("tok-2", "tok-3", ["tok-1", "tok-2", "tok-3"]),
        # A new one that is refused is the end, however often one could be had.
        ("tok-1", "none", ["tok-1", "tok-3"]),
        ("tok-2", "none", ["tok-1", "tok-2", "tok-3"]),
    ],
)
async def test_a_login_has_ended_only_when_a_new_token_is_refused(
    folder: Path, nursery: trio.Nursery, web: Said, in_file: str, good: str, sent: list[str]
) -> None:
    LoginStore(folder).write(KEY, RECORD)
    web.answers["/token"] = [granted(3), granted(4)]
    keeper = await opened(folder, nursery)
    LoginStore(folder).write(KEY, evolve(RECORD, access_token=in_file))
    seen: list[str] = []

    def server(request: httpx2.Request) -> httpx2.Response:
        seen.append(request.headers["authorization"].removeprefix("Bearer "))
        return httpx2.Response(200 if seen[-1] == good else 401)

    async with httpx2.AsyncClient(transport=httpx2.MockTransport(server), auth=Bearer(keeper)) as client:
        status = (await client.get(SERVER)).status_code
    assert (seen, status) == (sent, 200 if good == sent[-1] else 401)
    assert keeper.refused == (None if status == 200 else sent[-1])


async def test_what_could_not_be_written_gives_way_to_what_another_process_wrote(
    folder: Path, nursery: trio.Nursery, web: Said
) -> None:
    LoginStore(folder).write(KEY, RECORD)
    web.answers["/token"] = [granted(2)]
    keeper = await opened(folder, nursery)
    with failing("write"):
        assert await keeper.another("tok-1", Challenge()) == "tok-2"
    LoginStore(folder).write(KEY, Record(access_token="tok-9"))
    assert await keeper.another("tok-2", Challenge()) == "tok-9"
    LoginStore(folder).forget(KEY)
    await keeper.load()
    assert keeper.record is None


async def test_client_credentials_need_no_folder_that_can_be_written(
    folder: Path, nursery: trio.Nursery, web: Said
) -> None:
    """As in a container whose disk is for reading only."""
    web.answers["/token"] = [(200, {"access_token": "tok-1"}), (200, {"access_token": "tok-2"})]
    keeper = await opened(folder, nursery, BY_ITSELF)
    with failing("_make"):
        assert await keeper.another(None, Challenge()) == "tok-1"
        await keeper.load()
        assert await keeper.token() == "tok-1"
        assert await keeper.another("tok-1", Challenge()) == "tok-2"
    assert not folder.exists()


async def test_a_person_s_login_is_not_renewed_where_nothing_can_be_kept(
    folder: Path, nursery: trio.Nursery, web: Said
) -> None:
    """Its refresh token would be used up, and what came for it lost with the process."""
    LoginStore(folder).write(KEY, RECORD)
    keeper = await opened(folder, nursery)
    with failing("_make"), pytest.raises(LoginUnavailable, match="No space left on device"):
        await keeper.another("tok-1", Challenge())
    assert asked(web) == []


@pytest.mark.parametrize(
    ("registered", "error", "left"),
    [
        (False, "invalid_client", "ref-1"),
        (False, "unauthorized_client", "ref-1"),
        (False, "invalid_grant", None),
        (True, "invalid_client", None),
        (True, "invalid_scope", "ref-1"),
    ],
)
async def test_a_client_of_the_config_that_is_wrong_now_costs_no_refresh_token(
    folder: Path, nursery: trio.Nursery, web: Said, registered: bool, error: str, left: str | None
) -> None:
    """What is wrong is the config, which can be mended; a client that registered itself registers anew."""
    LoginStore(folder).write(KEY, evolve(RECORD, client=Client(id="c", registered=registered)))
    web.answers["/token"] = [(400, {"error": error})]
    keeper = await opened(folder, nursery)
    assert await keeper.another("tok-1", Challenge()) is None
    kept = LoginStore(folder).read(KEY)
    assert kept is not None
    assert kept.refresh_token == left
    assert (kept.client is None) == (registered and error == "invalid_client")


async def test_a_server_that_wants_ever_other_scopes_fills_no_disk(
    folder: Path, nursery: trio.Nursery, web: Said
) -> None:
    LoginStore(folder).write(KEY, RECORD)
    keeper = await opened(folder, nursery)
    for n in range(40):
        assert await keeper.more("tok-1", Challenge(None, f"{n}-{'x' * 500}", "insufficient_scope")) is None
    kept = LoginStore(folder).read(KEY)
    assert kept is not None
    assert kept.wanted is not None
    assert 500 < len(kept.wanted) <= 4096


async def test_a_file_that_could_not_be_read_is_looked_at_again_though_nobody_wrote_it(
    folder: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(keeping, "POLL_SECONDS", 0.01)
    LoginStore(folder).write(KEY, RECORD)
    read, looks = LoginStore.read, 0

    def unreadable(store: LoginStore, key: str) -> Record | None:
        nonlocal looks
        looks += 1
        return None if looks < 4 else read(store, key)

    monkeypatch.setattr(LoginStore, "read", unreadable)
    keeper = await opened(folder, nursery)
    with trio.fail_after(PATIENCE):
        await keeper.changed(None)
    assert keeper.record == RECORD


async def test_a_renewal_that_is_ended_before_it_began_holds_up_nobody(
    folder: Path, nursery: trio.Nursery, monkeypatch: pytest.MonkeyPatch
) -> None:
    begun, closes = trio.Event(), trio.CancelScope()

    async def never(module: str) -> None:
        begun.set()
        await trio.sleep_forever()

    async def renewal(renew: Any, *args: Any) -> None:
        with closes:
            await renew(*args)

    monkeypatch.setattr(keeping, "imported", never)
    keeper = Keeper(LoginStore(folder), KEY, SERVER, OAuth(), lambda *args: nursery.start_soon(renewal, *args))
    keeper.take(RECORD)
    said: list[str] = []

    async def ask() -> None:
        with pytest.raises(LoginUnavailable) as failed:
            await keeper.another("tok-1", Challenge())
        said.append(str(failed.value))

    with trio.fail_after(PATIENCE):
        async with trio.open_nursery() as callers:
            callers.start_soon(ask)
            await begun.wait()
            closes.cancel()
    assert said == ["the login is not to be had now: it could not be renewed in time"]
    assert keeper.flying is None


async def test_a_host_that_closes_ends_a_login_and_its_port(folder: Path) -> None:
    ports: list[int] = []
    said: list[BaseException] = []

    async def serve(stream: trio.SocketStream) -> None:
        async with stream:
            head = await stream.receive_some()
            path = head.split()[1].decode()
            base = f"http://127.0.0.1:{port}"
            answers: dict[str, Any] = {
                "/.well-known/oauth-authorization-server": metadata(
                    issuer=base, **{f"{each}_endpoint": f"{base}/x" for each in ("authorization", "token")}
                )
                | {"registration_endpoint": f"{base}/register"},
                "/register": {"client_id": "c"},
            }
            await stream.send_all(_answer(answers.get(path)))

    (listener,) = await trio.open_tcp_listeners(0, host="127.0.0.1")
    port = listener.socket.getsockname()[1]
    shown = trio.Event()

    def open_url(url: str) -> None:
        ports.append(int(url.partition("127.0.0.1%3A")[2].partition("%2F")[0]))
        shown.set()

    async with trio.open_nursery() as nursery:
        nursery.start_soon(trio.serve_listeners, serve, [listener])
        entry = ServerEntry("web", url=f"http://127.0.0.1:{port}/mcp", disabled=True)
        with trio.fail_after(PATIENCE):
            async with trio.open_nursery() as logins, open_host(Config((entry,)), login_folder=folder) as host:

                async def log_in() -> None:
                    try:
                        await host.login("web", open_url=open_url)
                    except HostClosed as error:
                        said.append(error)

                logins.start_soon(log_in)
                await shown.wait()
        assert [type(each) for each in said] == [HostClosed]
        with pytest.raises(OSError, match="failed"):
            await trio.open_tcp_stream("127.0.0.1", ports[0])
        nursery.cancel_scope.cancel()


def _answer(said: Any) -> bytes:
    body = b"" if said is None else json.dumps(said).encode()
    status = "404 Not Found" if said is None else "200 OK"
    return f"HTTP/1.1 {status}\r\ncontent-length: {len(body)}\r\nconnection: close\r\n\r\n".encode() + body
