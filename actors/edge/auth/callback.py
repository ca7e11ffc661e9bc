"""The loopback redirect (RFC 8252, 7.3): a port of 127.0.0.1 that takes one answer from the browser, and is closed.

What is no answer of this login (another path, another state, no HTTP) is refused and changes nothing: any page that a browser
shows can ask for it. No word of a request comes back in a response.
"""

from __future__ import annotations

import contextlib
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from functools import partial
from urllib.parse import urlsplit

import trio

from ..config.oauth_keys import is_loopback
from .refused import LoginRefused

__all__ = ["Callback", "open_callback"]

HOST = "127.0.0.1"
PATH = "/callback"
HEAD_SECONDS = 10.0
LONGEST_HEAD = 32 * 1024
AT_ONCE = 8

_PAGE = (
    '<!doctype html><meta charset="utf-8"><title>Playbill</title>'
    '<body style="font:16px system-ui;margin:4em auto;max-width:30em">{}</body>'
)
_TAKEN = _PAGE.format(
    "<h1>Thank you.</h1><p>The answer was handed over: see the terminal for what comes of it. This page can be closed.</p>"
)
_DENIED = _PAGE.format("<h1>Not logged in.</h1><p>The answer is a no: see the terminal. This page can be closed.</p>")
_REFUSED = _PAGE.format(
    "<h1>Nothing was done.</h1><p>This is no answer to the login that is under way: see the terminal.</p>"
)


class Callback:
    """An open loopback redirect.

    Attributes:
        redirect_uri: what the authorization server is to redirect to.
        fits: whether a path and query are an answer of this login.
        denies: whether such an answer is a no.
        stranger: called when an answer of another login came, the first time.
    """

    def __init__(self, redirect_uri: str) -> None:
        self.redirect_uri = redirect_uri
        self.fits: Callable[[str], bool] = lambda path: False
        self.denies: Callable[[str], bool] = lambda path: False
        self.stranger: Callable[[], None] | None = None
        self._path = urlsplit(redirect_uri).path or "/"
        self._answer: str | None = None
        self._answered = trio.Event()
        self._limit = trio.CapacityLimiter(AT_ONCE)

    async def wait(self) -> str:
        """Wait for the answer: the path and query that the browser asked for."""
        await self._answered.wait()
        assert self._answer is not None
        return self._answer

    async def serve(self, stream: trio.SocketStream) -> None:
        """Take one request. Raises nothing."""
        with contextlib.suppress(trio.BrokenResourceError, trio.ClosedResourceError, trio.BusyResourceError):
            async with stream, self._limit:
                with trio.move_on_after(HEAD_SECONDS):
                    path = await self._asked(stream)
                    if path is None or not self._is_answer(path):
                        self._say_stranger(path)
                        await _respond(stream, "400 Bad Request", _REFUSED)
                    else:
                        self._answer = path
                        with trio.move_on_after(1):
                            await _respond(stream, "200 OK", _DENIED if self.denies(path) else _TAKEN)
                        self._answered.set()

    def _is_answer(self, path: str) -> bool:
        return self._answer is None and path.partition("?")[0] == self._path and self.fits(path)

    def _say_stranger(self, path: str | None) -> None:
        """Once: any page can ask for this as often as it likes."""
        if path is None or self.stranger is None or self._answer is not None:
            return
        where, _, query = path.partition("?")
        if where == self._path and "state=" in query:
            say, self.stranger = self.stranger, None
            say()

    async def _asked(self, stream: trio.SocketStream) -> str | None:
        """The path of a GET, or None."""
        head = bytearray()
        while b"\r\n\r\n" not in head:
            part = await stream.receive_some(4096)
            head += part
            if not part or len(head) > LONGEST_HEAD:
                return None
        words = head.split(b"\r\n", 1)[0].split(b" ")
        if len(words) != 3 or words[0] != b"GET" or not words[1].startswith(b"/") or words[1].startswith(b"//"):
            return None
        return words[1].decode("ascii", "replace")


async def _respond(stream: trio.SocketStream, status: str, page: str) -> None:
    body = page.encode()
    head = (
        f"HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\ncontent-length: {len(body)}\r\n"
        "connection: close\r\ncache-control: no-store\r\nreferrer-policy: no-referrer\r\n"
        "content-security-policy: default-src 'none'; style-src 'unsafe-inline'\r\nx-content-type-options: nosniff\r\n\r\n"
    )
    await stream.send_all(head.encode() + body)


def _place(redirect_uri: str) -> tuple[str, int]:
    """Address and port of a redirect on loopback."""
    try:
        parts = urlsplit(redirect_uri)
        port = parts.port or 80
    except ValueError:
        raise LoginRefused("its redirect is no URL") from None
    if parts.scheme != "http" or not is_loopback(redirect_uri):
        raise LoginRefused("its redirect is not to this machine: http://127.0.0.1:PORT/… or http://localhost:PORT/…")
    return "::1" if parts.hostname == "::1" else HOST, port


@asynccontextmanager
async def open_callback(redirect_uri: str | None = None, *, usual: str | None = None) -> AsyncIterator[Callback]:
    """Listen on 127.0.0.1 for the answer; leaving closes the port.

    Args:
        redirect_uri: on loopback, with the port to listen on; None: any port.
        usual: the same, where another port will do if that one is taken.

    Raises:
        LoginRefused: the port is taken, or the redirect is not one to this machine.
    """
    listeners: list[trio.SocketListener] = []
    wanted = redirect_uri or usual
    if wanted is not None:
        host, port = _place(wanted)
        try:
            listeners = await trio.open_tcp_listeners(port, host=host)
        except OSError as error:
            if redirect_uri is not None:
                raise LoginRefused(f"port {port} cannot be listened on: {error.strerror or error}") from None
    if not listeners:
        listeners = await trio.open_tcp_listeners(0, host=HOST)
        wanted = f"http://{HOST}:{listeners[0].socket.getsockname()[1]}{PATH}"
    assert wanted is not None
    callback = Callback(wanted)
    raised: BaseException | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(partial(trio.serve_listeners, callback.serve, listeners))
        try:
            yield callback
        except BaseException as error:
            raised = error  # raised again below, so that the nursery does not wrap it
        nursery.cancel_scope.cancel()
    if raised is not None:
        raise raised
