"""The `Connect` of a real host: `make_connect` with a watcher behind it."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from ...ports import Connect
from .session import make_connect
from .warden import open_warden

__all__ = ["open_connect"]


@asynccontextmanager
async def open_connect() -> AsyncIterator[Connect]:
    """A `Connect` for as long as servers run; its watcher process is started with the first one, and ends on leaving."""
    async with open_warden() as warden:
        yield make_connect(warden=warden)
