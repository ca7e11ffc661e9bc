"""Errors without the groups that nurseries put them in."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

import trio

__all__ = ["ungrouped"]


@contextmanager
def ungrouped(*ignored: type[BaseException]) -> Iterator[None]:
    """Let an error of the block leave it as itself.

    One that came while the block was cancelled wins over the cancellation, as everywhere in trio.

    Args:
        ignored: errors that do not count.

    Raises:
        BaseException: the only error; of several what is no `Exception` (an interruption), else a group of them, flat.
    """
    try:
        yield
    except BaseException as error:
        leaves = [each for each in _leaves(error) if not isinstance(each, ignored)]
        cancelled = [each for each in leaves if isinstance(each, trio.Cancelled)]
        errors = [each for each in leaves if not isinstance(each, trio.Cancelled)]
        if not leaves:
            return
        if not errors:
            raise cancelled[0] from None
        first = next((each for each in errors if not isinstance(each, Exception)), errors[0])
        if len(errors) == 1 or not isinstance(first, Exception):
            if first is error:
                raise
            raise first from first.__cause__
        raise BaseExceptionGroup("the picker broke", errors) from None


def _leaves(error: BaseException) -> Iterator[BaseException]:
    if isinstance(error, BaseExceptionGroup):
        for each in error.exceptions:
            yield from _leaves(each)
    else:
        yield error
