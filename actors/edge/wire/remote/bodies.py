"""Bodies of responses, within limits: how large, and how long after what mattered of them has come.

What reads a body is a stack of generators, and one that is left before its end is left open. So reading is ended by cancelling
it from within: that passes through all of them.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import trio

if TYPE_CHECKING:
    import httpx2

__all__ = ["TooLarge", "drain", "excerpt", "is_events", "is_json", "read_whole"]

_EXCERPT = 16 * 1024
_EXCERPT_SECONDS = 3.0
_DRAIN_SECONDS = 0.5


class TooLarge(Exception):
    """A body is longer than it may be."""


def _kind(response: httpx2.Response) -> str:
    kind: str = response.headers.get("content-type", "")
    return kind.partition(";")[0].strip().lower()


def is_json(response: httpx2.Response) -> bool:
    """Whether it is declared as JSON."""
    return _kind(response) == "application/json"


def is_events(response: httpx2.Response) -> bool:
    """Whether it is declared as an event stream."""
    return _kind(response) == "text/event-stream"


async def read_whole(response: httpx2.Response, most: int) -> bytes:
    """The body.

    Args:
        response: not read yet.
        most: bytes, after decompression.

    Raises:
        TooLarge: it is longer.
        httpx2.RequestError: it broke off.
    """
    parts: list[bytes] = []
    size = 0
    with trio.CancelScope() as enough:
        async for part in response.aiter_bytes():
            size += len(part)
            if size > most:
                enough.cancel()
            else:
                parts.append(part)
    if size > most:
        raise TooLarge
    return b"".join(parts)


async def excerpt(response: httpx2.Response) -> bytes:
    """The beginning of the body of a refusal, whatever becomes of the rest. Raises nothing."""
    import httpx2

    parts: list[bytes] = []
    size = 0
    with trio.move_on_after(_EXCERPT_SECONDS) as enough, contextlib.suppress(httpx2.RequestError):
        async for part in response.aiter_bytes():
            if size < _EXCERPT:
                parts.append(part)
            size += len(part)
            if size >= _EXCERPT:
                enough.cancel()
    return b"".join(parts)[:_EXCERPT]


async def drain(response: httpx2.Response) -> None:
    """Read what follows the answer, which is nothing, so that the connection can be used again. Raises nothing."""
    import httpx2

    with trio.move_on_after(_DRAIN_SECONDS), contextlib.suppress(httpx2.RequestError, httpx2.StreamError):
        async for _ in response.aiter_raw():
            pass
