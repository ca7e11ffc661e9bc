"""What the command line says when something is wrong, and the code it ends with.

One line for a person, on stderr, never a traceback; every error has one row in `CODES`.
"""

from __future__ import annotations

import contextlib
import os
import sys
import traceback
from collections.abc import Iterator
from enum import IntEnum

from ..model import errors as model

__all__ = ["CODES", "CliError", "Exit", "diagnose", "explain", "one_line"]


class Exit(IntEnum):
    """The exit codes, the same for every verb."""

    OK = 0
    FAILURE = 1
    USAGE = 2
    CONFIG = 3
    SERVER = 4
    BUDGET = 5
    CRASH = 10
    LIVENESS = 11
    CORRECTNESS = 12
    HANGUP = 129
    INTERRUPTED = 130
    PIPE = 141
    TERMINATED = 143


class CliError(Exception):
    """Something that ends a verb.

    Args:
        code: what the process ends with.
        message: one line.
    """

    def __init__(self, code: Exit, message: str) -> None:
        self.code = code
        super().__init__(message)


CODES: dict[type[Exception], Exit] = {
    model.UnknownServer: Exit.USAGE,
    model.UnknownTool: Exit.USAGE,
    model.ServerExists: Exit.USAGE,
    model.ConfigError: Exit.CONFIG,
    model.ServerUnavailable: Exit.SERVER,
    model.ServerDied: Exit.SERVER,
    model.CallTimeout: Exit.SERVER,
    model.ToolNotOffered: Exit.FAILURE,
    model.WriteFailed: Exit.FAILURE,
    model.OperationTimeout: Exit.FAILURE,
    model.PlaybillError: Exit.FAILURE,
}
"""Exception type → exit code; the first row an error is an instance of decides."""


def one_line(text: str) -> str:
    """A text on one line and without control characters, so that no server's words can drive the terminal."""
    return "".join(char if char.isprintable() else " " for char in " ".join(text.split()))


def diagnose(message: str) -> None:
    """Tell a person on stderr, in one line. A stderr that is gone is no reason to fail."""
    with contextlib.suppress(OSError, ValueError):
        print(f"playbill: {one_line(message)}", file=sys.stderr, flush=True)


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error


def explain(error: BaseException) -> tuple[Exit, str]:
    """The code and the line for an error.

    Args:
        error: anything a verb raised; of a group, the leaf that says most: one with a code of its own.

    Returns:
        The exit code, and the line without the program's name; the line is empty for an interruption.
    """
    leaves = list(_leaves(error))
    if any(isinstance(leaf, KeyboardInterrupt) for leaf in leaves):
        return Exit.INTERRUPTED, ""
    for leaf in leaves:
        if isinstance(leaf, CliError):
            return leaf.code, str(leaf)
    for leaf in leaves:
        for kind, code in CODES.items():
            if isinstance(leaf, kind):
                return code, str(leaf)
    if os.environ.get("PLAYBILL_DEBUG"):
        traceback.print_exception(error)
    first = leaves[0]
    hint = "" if os.environ.get("PLAYBILL_DEBUG") else " (PLAYBILL_DEBUG=1 shows where; please report it)"
    return Exit.FAILURE, f"unexpected {type(first).__name__}: {first}{hint}"
