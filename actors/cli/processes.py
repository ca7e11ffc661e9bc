"""Which processes there are: enough to hold the demo to its word."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import trio

__all__ = ["alive", "children", "poll"]

_EVERY = 0.02


def alive(pid: int) -> bool:
    """Whether there is a process of that number, a zombie too."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


def children() -> set[int]:
    """The pids of our own children, zombies too; empty where there is no ``/proc`` to read them from."""
    ours, found = os.getpid(), set()
    for entry in Path("/proc").glob("[0-9]*/stat"):
        try:
            text = entry.read_text(encoding="utf-8", errors="replace")
        except OSError:  # it ended while we looked
            continue
        # The name in parentheses may hold anything; what follows the last one is: state, parent, …
        if int(text.rpartition(")")[2].split()[1]) == ours:
            found.add(int(entry.parent.name))
    return found


async def poll(holds: Callable[[], bool], wait: float) -> bool:
    """Look again and again until something holds, for what nobody announces: the end of a process that is not ours to wait for.

    Args:
        holds: looks, without waiting.
        wait: seconds at most.

    Returns:
        Whether it holds in the end.
    """
    with trio.move_on_after(wait):
        while not holds():  # noqa: ASYNC110 – there is no event to wait for
            await trio.sleep(_EVERY)
    return holds()
