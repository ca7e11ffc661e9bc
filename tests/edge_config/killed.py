"""A process that makes writers of one file: each a fork, which is cheap, of a process that has all modules.

Run as ``killed.py FILE``. Each line of its input is one writer:

- ``free``: it writes as fast as it can, one toggle after the other, and says its process id; who reads that kills it;
- ``step N``: it does one toggle and kills itself just before its N-th step that touches the file system.

When it is dead, the line that comes out says ``killed``, or ``done`` when it got to its end.
"""

from __future__ import annotations

import os
import signal
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from playbill.actors.edge.config import atomic
from playbill.actors.edge.config.file import FileStore
from playbill.actors.model.edits import SetTool

STEPS: list[tuple[Any, str]] = [
    *((atomic.os, name) for name in ("open", "write", "fchmod", "fsync", "close", "unlink")),
    *((Path, name) for name in ("replace", "unlink")),
]


def free(path: str) -> None:
    """Toggle for ever."""
    store = FileStore(path, lock_timeout=60)
    print(os.getpid(), flush=True)
    on = False
    while True:
        store.edit([SetTool("a", "t", on)])
        on = not on


def step(path: str, last: int) -> None:
    """Toggle once, or die on the way."""
    left = [last]

    def counted(real: Callable[..., Any]) -> Callable[..., Any]:
        def call(*args: Any, **keys: Any) -> Any:
            left[0] -= 1
            if left[0] == 0:
                os.kill(os.getpid(), signal.SIGKILL)
            return real(*args, **keys)

        return call

    store = FileStore(path, lock_timeout=60)
    store.load()
    for place, name in STEPS:
        setattr(place, name, counted(getattr(place, name)))
    store.edit([SetTool("a", "t", False)])


def main() -> None:
    """Make writers until there are no more lines."""
    print("ready", flush=True)
    for line in sys.stdin:
        pid = os.fork()
        if not pid:
            try:
                what, *number = line.split()
                step(sys.argv[1], int(number[0])) if what == "step" else free(sys.argv[1])
            finally:
                os._exit(0)
        print("killed" if os.WIFSIGNALED(os.waitpid(pid, 0)[1]) else "done", flush=True)


if __name__ == "__main__":
    main()
