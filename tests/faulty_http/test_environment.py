"""Proxies and certificates come from the environment; TLS is verified."""

from __future__ import annotations

import shutil
import ssl
import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
import trio
from playbill.actors.model.config import ServerEntry
from playbill.actors.ports import ConnectionFailed

from ..edge_connection.conftest import Connector
from .server import Web, serving

VARIABLES = ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "NO_PROXY", "SSL_CERT_FILE", "SSL_CERT_DIR")


@pytest.fixture(autouse=True)
def bare(monkeypatch: pytest.MonkeyPatch) -> None:
    """None of the variables is set."""
    for name in VARIABLES:
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.lower(), raising=False)


@pytest.fixture
def connect() -> Connector:
    return Connector()


class Proxy:
    """Hands everything on to one server, and notes what it was asked for."""

    def __init__(self, to: int) -> None:
        self.to = to
        self.asked: list[str] = []

    async def __call__(self, stream: trio.SocketStream) -> None:
        data = await stream.receive_some()
        self.asked.append(data.split(b"\r\n")[0].decode())
        _, _, rest = data.partition(b"http://far.example")
        path = rest or data
        async with await trio.open_tcp_stream("127.0.0.1", self.to) as server, trio.open_nursery() as nursery:
            await server.send_all(b"POST " + path if data.startswith(b"POST") else data)
            nursery.start_soon(self._pump, server, stream, nursery.cancel_scope)
            await self._pump(stream, server, nursery.cancel_scope)

    async def _pump(self, source: trio.SocketStream, to: trio.SocketStream, scope: trio.CancelScope) -> None:
        try:
            async for data in source:
                await to.send_all(data.replace(b"http://far.example", b""))
        except (trio.BrokenResourceError, trio.ClosedResourceError):
            pass
        scope.cancel()


@asynccontextmanager
async def proxying(to: int) -> AsyncIterator[tuple[Proxy, int]]:
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_tcp_listeners(0, host="127.0.0.1")
        proxy = Proxy(to)
        nursery.start_soon(trio.serve_listeners, proxy, listeners)
        yield proxy, listeners[0].socket.getsockname()[1]
        nursery.cancel_scope.cancel()


async def test_a_proxy_of_the_environment_is_used_but_for_what_it_is_not_for(
    connect: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with serving(Web()) as web, proxying(web.port) as (proxy, port):
        web.deeds["GET"] = {"status": 405}
        monkeypatch.setenv("HTTP_PROXY", f"http://127.0.0.1:{port}")
        with trio.fail_after(20):
            async with connect(ServerEntry("far", url="http://far.example/mcp")) as connection:
                assert (await connection.list_tools()).tools
        assert proxy.asked[0].startswith("POST http://far.example/mcp ")
        asked = len(proxy.asked)
        monkeypatch.setenv("NO_PROXY", "127.0.0.1")
        with trio.fail_after(20):
            async with connect(ServerEntry("near", url=web.url)) as connection:
                assert (await connection.list_tools()).tools
        assert len(proxy.asked) == asked


async def test_a_proxy_that_is_none_is_told(connect: Connector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HTTP_PROXY", "gopher://127.0.0.1:1")
    with pytest.raises(ConnectionFailed, match="proxies or certificates of the environment cannot be used"):
        async with connect(ServerEntry("far", url="http://far.example/mcp")):
            pytest.fail("there is no way to it")


@pytest.mark.parametrize("name", ["HTTP_PROXY", "ALL_PROXY"])
@pytest.mark.parametrize(
    "proxy",
    ["http://user:hunter2", "http://user:hun/ter2@proxy:80", "http://us:hunter2#w@h:9", "http://user:x@h:hunter2"],
)
async def test_a_proxy_that_is_no_url_is_told_without_its_password(
    connect: Connector, monkeypatch: pytest.MonkeyPatch, name: str, proxy: str
) -> None:
    monkeypatch.setenv(name, proxy)
    with pytest.raises(ConnectionFailed, match="a proxy of the environment is no URL") as failed:
        async with connect(ServerEntry("far", url="http://far.example/mcp")):
            pytest.fail("there is no way to it")
    assert failed.value.futile
    assert "hun" not in str(failed.value)


async def test_a_proxy_of_another_scheme_is_told_without_its_password(
    connect: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTP_PROXY", "htp://hunter1:hunter2@h:1")
    with pytest.raises(ConnectionFailed, match="cannot be used: Unknown scheme") as failed:
        async with connect(ServerEntry("far", url="http://far.example/mcp")):
            pytest.fail("there is no way to it")
    assert "hunter" not in str(failed.value)


async def test_a_proxy_that_needs_a_package_is_told_with_its_name(
    connect: Connector, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "socksio", None)  # not installed, wherever this runs
    monkeypatch.setenv("ALL_PROXY", "socks5://user:hunter2@127.0.0.1:1080")
    with pytest.raises(ConnectionFailed, match="a proxy of the environment needs the package socksio") as failed:
        async with connect(ServerEntry("far", url="http://far.example/mcp")):
            pytest.fail("there is no way to it")
    assert failed.value.futile
    assert "hunter2" not in str(failed.value)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A self-signed certificate for 127.0.0.1, with its key; and another one of that name, ``old.pem``."""
    folder = tmp_path_factory.mktemp("tls")
    openssl = shutil.which("openssl")
    assert openssl is not None, "these tests need openssl"
    name = ["-subj", "/CN=127.0.0.1", "-addext", "subjectAltName=IP:127.0.0.1"]
    made = [
        openssl,
        "req",
        "-x509",
        "-newkey",
        "ec",
        "-pkeyopt",
        "ec_paramgen_curve:prime256v1",
        "-nodes",
        "-days",
        "2",
    ]
    subprocess.run(
        [*made, *name, "-keyout", folder / "key.pem", "-out", folder / "cert.pem"], check=True, capture_output=True
    )
    subprocess.run(
        [*made, *name, "-keyout", folder / "old.key", "-out", folder / "old.pem"], check=True, capture_output=True
    )
    (folder / "both.pem").write_text((folder / "key.pem").read_text() + (folder / "cert.pem").read_text())
    return folder


@asynccontextmanager
async def over_tls(web: Web, folder: Path) -> AsyncIterator[str]:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(folder / "both.pem")
    async with trio.open_nursery() as nursery:
        listeners = await trio.open_ssl_over_tcp_listeners(0, context, host="127.0.0.1")

        async def serve(stream: trio.SSLStream[trio.SocketStream]) -> None:
            try:
                await stream.do_handshake()
            except trio.BrokenResourceError:
                return
            await web._connection(stream)  # type: ignore[arg-type]

        nursery.start_soon(trio.serve_listeners, serve, listeners)
        yield f"https://127.0.0.1:{listeners[0].transport_listener.socket.getsockname()[1]}/mcp"
        nursery.cancel_scope.cancel()


async def test_a_certificate_nobody_vouches_for_is_refused_and_one_of_the_environment_is_taken(
    connect: Connector, certificate: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    web = Web()
    async with over_tls(web, certificate) as url:
        with trio.fail_after(20), pytest.raises(ConnectionFailed, match="certificate verify failed"):
            async with connect(ServerEntry("web", url=url)):
                pytest.fail("nobody vouches for it")
        assert not web.seen
        monkeypatch.setenv("SSL_CERT_FILE", str(certificate / "cert.pem"))
        with trio.fail_after(20):
            async with connect(ServerEntry("web", url=url)) as connection:
                assert (await connection.list_tools()).tools


@pytest.mark.parametrize("variable", ["SSL_CERT_FILE", "SSL_CERT_DIR"])
async def test_a_certificate_that_is_renewed_in_its_place_is_read_again(
    connect: Connector, certificate: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, variable: str
) -> None:
    # OpenSSL finds a file of a folder by the hash of its subject.
    asked = ["openssl", "x509", "-noout", "-hash", "-in", certificate / "cert.pem"]
    hashed = subprocess.run(asked, check=True, capture_output=True, text=True).stdout.strip()
    file = tmp_path / f"{hashed}.0"
    shutil.copy(certificate / "old.pem", file)
    monkeypatch.setenv(variable, str(file if variable == "SSL_CERT_FILE" else tmp_path))
    web = Web()
    async with over_tls(web, certificate) as url:
        with trio.fail_after(20), pytest.raises(ConnectionFailed, match="certificate verify failed"):
            async with connect(ServerEntry("web", url=url)):
                pytest.fail("it is vouched for by another")
        shutil.copy(certificate / "cert.pem", file)
        with trio.fail_after(20):
            async with connect(ServerEntry("web", url=url)) as connection:
                assert (await connection.list_tools()).tools


async def test_certificates_that_are_not_there_are_told(connect: Connector, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", "/no/such/file.pem")
    with pytest.raises(ConnectionFailed, match="proxies or certificates of the environment cannot be used"):
        async with connect(ServerEntry("web", url="https://127.0.0.1:9/mcp")):
            pytest.fail("there are none")
