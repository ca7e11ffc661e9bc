"""What the command line says when something is wrong, and the code it ends with.

One line for a person, on stderr, never a traceback; every error has one row in `CODES`. With ``--json`` the same is one JSON
object on stdout, unless the answer is there already.
"""

from __future__ import annotations

import os
import traceback
from collections.abc import Iterator
from enum import IntEnum
from typing import Any

from ..model import errors as model
from .voice import diagnose, one_line

__all__ = ["CODES", "HOW_TO_ADD", "CliError", "Exit", "diagnose", "explain", "failure", "leaf_of", "one_line"]

HOW_TO_ADD = "`playbill add NAME -- COMMAND` adds a server, and makes the file"
"""What is said where there is no config, or nothing in it."""

SCHEMA = 1
"""The version of the JSON of a failure; it grows when a key changes or goes, not when one is added."""


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
    QUIT = 131
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
    model.UnknownPrompt: Exit.USAGE,
    model.ServerExists: Exit.USAGE,
    model.ConfigError: Exit.CONFIG,
    model.LoginFailed: Exit.SERVER,
    model.ServerUnavailable: Exit.SERVER,
    model.ServerDied: Exit.SERVER,
    model.CallTimeout: Exit.SERVER,
    model.ToolNotOffered: Exit.FAILURE,
    model.WriteFailed: Exit.FAILURE,
    model.OperationTimeout: Exit.FAILURE,
    model.PlaybillError: Exit.FAILURE,
}
"""Exception type → exit code; the first row an error is an instance of decides."""


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error


def leaf_of(error: BaseException) -> BaseException:
    """Of a group, the leaf that says most: an interruption, else one with a code of its own, else the first."""
    leaves = list(_leaves(error))
    for kinds in ((KeyboardInterrupt,), (CliError,), tuple(CODES)):
        for leaf in leaves:
            if isinstance(leaf, kinds):
                return leaf
    return leaves[0]


def explain(error: BaseException) -> tuple[Exit, str]:
    """The code and the line for an error.

    Args:
        error: anything a verb raised; of a group, `leaf_of` it.

    Returns:
        The exit code, and the line without the program's name; the line is empty for an interruption.
    """
    leaf = leaf_of(error)
    if isinstance(leaf, KeyboardInterrupt):
        return Exit.INTERRUPTED, ""
    if isinstance(leaf, CliError):
        return leaf.code, str(leaf)
    for kind, code in CODES.items():
        if isinstance(leaf, kind):
            more = f"; {HOW_TO_ADD}" if isinstance(leaf, model.ConfigError) and leaf.nothing else ""
            return code, f"{leaf}{more}"
    if os.environ.get("PLAYBILL_DEBUG"):
        traceback.print_exception(error)
    hint = "" if os.environ.get("PLAYBILL_DEBUG") else " (PLAYBILL_DEBUG=1 shows where; please report it)"
    return Exit.FAILURE, f"unexpected {type(leaf).__name__}: {leaf}{hint}"


def failure(code: int, message: str, error: BaseException | None = None) -> dict[str, Any]:
    """What ``--json`` prints when there is no answer.

    Args:
        code: the exit code.
        message: the line that a person reads.
        error: what was raised, if that is all there is to it.
    """
    leaf = None if error is None else leaf_of(error)
    known = leaf if isinstance(leaf, model.PlaybillError) else None
    keys = ("near", "file", "line", "column", "path")
    return {
        "schema": SCHEMA,
        "failed": {
            "exit_code": int(code),
            "kind": Exit(code).name.lower(),
            "error": None if known is None else type(known).__name__,
            "message": one_line(message),
            **{key: getattr(known, key, None) for key in keys},
        },
    }
