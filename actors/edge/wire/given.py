"""Wires over a transport that the embedder gives: any async context manager that yields a pair of the SDK's message streams.

A transport made by a generator can be entered once only, and a server is connected to again whenever it was lost. So what is
best given is a function that makes one (``lambda: stdio_client(…)``); of a transport itself that cannot be entered twice, the
second attempt says so.
"""

from __future__ import annotations

import weakref
from collections.abc import AsyncIterator, Callable
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from typing import Any

import trio

from .stream_wire import StreamWire, leaf_of
from .wire import Refused, Wire, one_line

__all__ = ["is_transport", "open_given"]


@asynccontextmanager
async def _one_shot() -> AsyncIterator[None]:
    yield


_ONE_SHOT: type[Any] = type(_one_shot())
_entered: weakref.WeakSet[Any] = weakref.WeakSet()


def is_transport(server: Any) -> bool:
    """Whether a server value is a transport, or a function that makes one, and not a server object."""
    if hasattr(server, "_lowlevel_server") or hasattr(server, "create_initialization_options"):
        return False
    return callable(server) or hasattr(server, "__aenter__")


@asynccontextmanager
async def open_given(server: Any, scrub: Callable[[str], str]) -> AsyncIterator[Wire]:
    """Enter a transport; leaving leaves it.

    Args:
        server: the transport, or a function without arguments that makes one.
        scrub: removes secrets from a text.

    Raises:
        Refused: on entering: it is none, or cannot be entered again.
        Exception: what the transport raises, possibly in groups.
    """
    transport: Any = server if isinstance(server, AbstractAsyncContextManager) or not callable(server) else server()
    if not hasattr(transport, "__aenter__"):
        raise Refused(f"the server function gave no transport but {type(transport).__name__}")
    if isinstance(transport, _ONE_SHOT):
        if transport in _entered:
            raise Refused(
                "this transport can be entered only once: give a function that makes it, so that it can be opened again"
            )
        _entered.add(transport)
    wire: StreamWire | None = None
    body: BaseException | None = None
    try:
        async with transport as streams:
            wire = StreamWire(scrub, *streams)
            try:
                yield wire
            except BaseException as error:
                body = error
                raise
    except Exception as error:
        # What the transport itself raised is the reason, and not the end of the streams that came of it.
        if wire is not None and (body is None or isinstance(body, trio.Cancelled)):
            wire.reason = one_line(scrub(f"the transport raised {leaf_of(error)}"))
        raise
