"""A value with some of its fields changed, for values that change many times a second."""

from __future__ import annotations

from collections.abc import Callable
from operator import attrgetter
from typing import Any, TypeVar

from attrs import fields

__all__ = ["changer"]

T = TypeVar("T")


def changer(kind: type[T]) -> Callable[..., T]:
    """What does as `attrs.evolve`, for one class: its fields are looked up once, and not at each change.

    Args:
        kind: an attrs class of two fields or more.
    """
    given = [each for each in fields(kind) if each.init]  # type: ignore[arg-type]
    names, read = [each.alias for each in given], attrgetter(*(each.name for each in given))

    def change(value: T, /, **changes: Any) -> T:
        return kind(**{**dict(zip(names, read(value), strict=True)), **changes})

    return change
