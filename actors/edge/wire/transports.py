"""The only place that chooses a transport: an entry in, an open `Wire` out."""

from __future__ import annotations

import functools
from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from typing import TYPE_CHECKING, Any

from ...model.config import ServerEntry
from ...model.diff import transport_kind
from .given import is_transport, open_given
from .lines import DEFAULT_MAX_LINE
from .spawn import Handover
from .stdio import open_stdio
from .streams import open_memory
from .wire import Launch, Wire

if TYPE_CHECKING:
    import httpx2

__all__ = ["TESTED_SDK", "native_is_tested", "open_wire"]

TESTED_SDK = "2.3"
"""The minor version of ``mcp`` whose `Dispatcher` protocol `PipeDispatcher` was compared with the SDK's own."""


@functools.cache
def native_is_tested() -> bool:
    """Whether the installed SDK is the minor version our dispatcher was tested with."""
    import importlib.metadata

    return ".".join(importlib.metadata.version("mcp").split(".")[:2]) == TESTED_SDK


def open_wire(
    entry: ServerEntry,
    launch: Launch,
    scrub: Callable[[str], str],
    *,
    warden: Handover | None = None,
    native: bool = True,
    max_line: int = DEFAULT_MAX_LINE,
    older: bool = False,
    auth: Any = None,
    network: Callable[[], httpx2.AsyncBaseTransport] | None = None,
) -> AbstractAsyncContextManager[Wire]:
    """Choose and open the transport of an entry.

    Args:
        entry: says which kind.
        launch: the same, expanded.
        scrub: removes secrets from a text.
        warden: has a reaper forked for each process (but on Windows); None: one for this connection alone.
        native: our dispatchers, or the SDK's, as over stdio always on Windows.
        max_line: longest message, in bytes.
        older: over the older HTTP transport, where the entry leaves that open.
        auth: of a remote server: an ``httpx2.Auth`` that gives each request its login.
        network: makes what stands in for the network below HTTP clients; see `remote.clients`.

    Raises:
        SpawnFailed: on entering: a process could not be started.
        HttpRefused: on entering: there is no such connection.
    """
    kind = transport_kind(entry)
    if kind == "memory":
        return open_given(entry.server, scrub) if is_transport(entry.server) else open_memory(entry.server, scrub)
    if launch.url is not None:
        from .remote.opening import open_remote

        return open_remote(
            launch,
            scrub,
            older=older or kind == "sse",
            max_message=max_line,
            renews_login=entry.headers_helper is not None,
            transport=network,
            native=native,
            auth=auth,
        )
    return open_stdio(launch, scrub, warden=warden, native=native, max_line=max_line)
