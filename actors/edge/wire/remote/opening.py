"""`open_remote`: from a URL to an open wire, and back to nothing.

Which transport: the one that the entry's type says. Without a type it is streamable HTTP; if ``initialize`` is answered 400,
404 or 405 without a JSON-RPC error, the URL may be one of the older transport, and the connection is opened again over that
(specification 2026-07-28, Streamable HTTP, Backward Compatibility: HTTP+SSE). `session` does the second attempt.
"""

from __future__ import annotations

import functools
import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING

import trio

from ....model.mask import mask_text
from ....telemetry.log import Log
from ..sdk import load_sdk
from ..wire import HttpRefused, Launch, Wire
from .clients import open_clients
from .wire import RemoteWire

if TYPE_CHECKING:
    import httpx2

__all__ = ["open_remote"]

DELETE_SECONDS = 2.0
"""Within which a server takes leave of a session."""


@asynccontextmanager
async def open_remote(
    launch: Launch,
    scrub: Callable[[str], str],
    *,
    older: bool,
    max_message: int,
    renews_login: bool = False,
    transport: Callable[[], httpx2.AsyncBaseTransport] | None = None,
    native: bool = True,
    auth: httpx2.Auth | None = None,
) -> AsyncIterator[Wire]:
    """Open a wire to a URL. Leaving it ends the session and closes all connections, within a few seconds.

    Args:
        launch: with a ``url``.
        scrub: removes secrets from a text.
        older: over HTTP+SSE.
        max_message: longest message accepted, in bytes.
        renews_login: the next connection has another login than this one.
        transport: makes what stands in for the network; see `open_clients`.
        native: our conversations, or the SDK's transports.
        auth: gives each request its login.

    Raises:
        HttpRefused: on entering: the environment names certificates or a proxy that cannot be used, or there is no event stream
            (HTTP+SSE; streamable HTTP fails in the handshake).
    """
    await load_sdk()
    # The SDK and httpx2 are there only now: neither is imported by who does not connect to anything.
    import httpx2

    from .endpoint import Endpoint

    assert launch.url is not None
    wire = RemoteWire(scrub, renews_login=renews_login)
    try:
        opening = open_clients(launch.headers, transport, auth)
        clients = await opening.__aenter__()
    except (OSError, ValueError, ImportError, httpx2.InvalidURL) as error:
        raise HttpRefused(scrub(_unusable(error)), False, futile=True) from None
    try:
        if not native:
            from .sdk_streams import open_sdk_streams

            async with open_sdk_streams(launch, scrub, clients, older=older) as streams:
                yield streams
        elif older:
            from .older_sse import OlderSse, open_stream

            wire.legacy_only = True
            async with open_stream(wire, launch.url, clients, max_message=max_message) as (events, to):
                wire.make = functools.partial(OlderSse, wire, events, to, clients)
                yield wire
        else:
            from .streamable import StreamableHttp

            endpoint = Endpoint(launch.url)
            wire.make = functools.partial(StreamableHttp, wire, endpoint, clients, max_message=max_message)
            try:
                yield wire
            finally:
                if wire.graceful and endpoint.session is not None and (not wire.lost.is_set() or wire.renew):
                    with trio.move_on_after(DELETE_SECONDS, shield=True):
                        await _take_leave(endpoint, clients)
    finally:
        with trio.CancelScope(shield=True):  # bounded by itself
            await opening.__aexit__(None, None, None)


def _unusable(error: Exception) -> str:
    """Why no clients can be made of what the environment says, without the password that a proxy's URL may hold."""
    if isinstance(error, ImportError):
        return f"a proxy of the environment needs the package {_package_of(error)}, which is not installed"
    if not isinstance(
        error, (OSError, ValueError)
    ):  # it quotes the part that it stumbled over, which may be a password
        return "a proxy of the environment is no URL"
    said = " ".join(str(error).split())
    return f"proxies or certificates of the environment cannot be used: {mask_text(said)}"


def _package_of(error: ImportError) -> str:
    """The package that is missing; httpx2 replaces the error that knows its name with one that has it in its words."""
    cause: BaseException | None = error
    while cause is not None:
        if isinstance(cause, ImportError) and cause.name:
            return cause.name.partition(".")[0]
        cause = cause.__cause__ or cause.__context__
    quoted = re.search(r"'([\w.-]+)' package", str(error))
    return "that it names" if quoted is None else quoted[1]


async def _take_leave(endpoint: object, clients: object) -> None:
    import httpx2

    from .clients import Clients
    from .endpoint import Endpoint

    assert isinstance(endpoint, Endpoint)
    assert isinstance(clients, Clients)
    try:
        await endpoint.delete(clients.control)
    except httpx2.RequestError as error:
        kind = type(error).__name__
        Log("playbill.edge").info("the session could not be ended: %s", kind, event="session_left", error_type=kind)
