"""Importing what does the requests of a login: it brings the HTTP client and parts of the SDK, so a thread does it."""

from __future__ import annotations

import importlib
import sys

import trio

from ..wire.sdk import load_sdk

__all__ = ["imported"]


async def imported(module: str) -> None:
    """Have a module of this package imported. A checkpoint."""
    await load_sdk()
    name = f"{__package__}.{module}"
    if name not in sys.modules:
        await trio.to_thread.run_sync(importlib.import_module, name)
