"""Importing the ``mcp`` SDK without stopping the host: it takes about a second, so a thread does it, once."""

from __future__ import annotations

import importlib
import logging
import sys

import trio

__all__ = ["import_sdk", "load_sdk"]

_MODULES = ("mcp.client.session", "anyio._backends._trio", f"{__package__}.meeting")
"""The second one anyio imports at its first use, which would be on the loop: 0.1 s and more."""

_turn: trio.lowlevel.RunVar[trio.CapacityLimiter] = trio.lowlevel.RunVar("importing mcp")


async def load_sdk() -> None:
    """Have the SDK imported, and what of ours is built on it.

    Raises:
        ImportError: it is not installed, or broken.
    """
    found = sys.modules.get(_MODULES[0])
    # One that a thread is importing just now would be waited for, on the loop.
    if found is not None and not getattr(found.__spec__, "_initializing", False):
        import_sdk()  # the rest is quick, and a thread would look idle to a virtual clock
        await trio.lowlevel.checkpoint()
        return
    try:
        limiter = _turn.get()
    except LookupError:
        limiter = trio.CapacityLimiter(1)  # the others wait for their turn without a thread
        _turn.set(limiter)
    await trio.to_thread.run_sync(import_sdk, limiter=limiter)


def import_sdk() -> None:
    """The same at once, for as long as it takes: for a program that has nothing else to do yet."""
    if _MODULES[-1] in sys.modules:
        return
    # The SDK logs tracebacks of what is reported here as a reason; with no logging set up, Python would print them.
    for name in ("mcp", "client"):
        logging.getLogger(name).addHandler(logging.NullHandler())
    for name in _MODULES:
        importlib.import_module(name)
