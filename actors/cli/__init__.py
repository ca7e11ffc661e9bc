"""The command line. `main` is the console script; nothing else in Playbill imports this package."""

from __future__ import annotations

import os
import sys

__all__ = ["main"]

_EXTRA = ("cyclopts", "rich")


def main() -> None:
    """Run the command line on ``sys.argv`` and end the process with one of `errors.Exit`'s codes.

    Raises:
        SystemExit: always.
    """
    _open_what_is_closed()
    try:
        for name in _EXTRA:
            __import__(name)
        from .app import run

        code = run(sys.argv[1:])
    except ModuleNotFoundError as error:
        if (error.name or "").partition(".")[0] not in _EXTRA:
            raise
        how = "install playbill with its extra 'cli' (in a clone: pip install '.[cli]')"
        print(f"playbill: the command line needs {error.name}: {how}", file=sys.stderr)
        code = 2
    except KeyboardInterrupt:
        code = 130
    sys.exit(code)


def _open_what_is_closed() -> None:
    """Where a shell closed a standard stream (``>&-``), what goes there goes nowhere: the same as with ``>/dev/null``."""
    for fd, name in enumerate(("stdin", "stdout", "stderr")):
        if getattr(sys, name) is None:
            # Left free, the number would be that of the next file that is opened.
            handle = os.open(os.devnull, os.O_RDWR)
            if handle != fd:
                os.dup2(handle, fd)
                os.close(handle)
            os.set_inheritable(fd, True)
            setattr(sys, name, open(fd, "r" if fd == 0 else "w", encoding="utf-8", errors="backslashreplace"))  # noqa: PTH123, SIM115
