"""The command line. `main` is the console script; nothing else in Playbill imports this package."""

from __future__ import annotations

import sys

__all__ = ["main"]

_EXTRA = ("cyclopts", "rich")


def main() -> None:
    """Run the command line on ``sys.argv`` and end the process with one of `errors.Exit`'s codes.

    Raises:
        SystemExit: always.
    """
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
