"""What a caller gives with a call: refused where it is written, as inside it would be a defect of ours."""

from __future__ import annotations

from collections.abc import Mapping

__all__ = ["check_call", "check_names"]


def check_names(*given: object) -> None:
    """Refuse, where it is written, what can name nothing: inside, it would be a defect of ours."""
    for name in given:
        if not isinstance(name, str):
            raise TypeError(f"a name is a string, not {name!r}")


def check_call(arguments: object, timeout: object, meta: object = None) -> None:
    """Refuse arguments, a timeout and a ``meta`` that are none, with TypeError or ValueError."""
    if meta is not None and not (isinstance(meta, Mapping) and all(isinstance(key, str) for key in meta)):
        raise TypeError(f"meta is a mapping with strings as keys, not {meta!r}")
    if arguments is not None and not (
        isinstance(arguments, Mapping) and all(isinstance(key, str) for key in arguments)
    ):
        raise TypeError(f"arguments are a mapping with strings as keys, not {arguments!r}")
    if timeout is not None and not (isinstance(timeout, (int, float)) and timeout >= 0):
        raise ValueError(f"timeout is a number of seconds, 0 or more, not {timeout!r}")
