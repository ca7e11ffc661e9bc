"""Deeply read-only JSON: what a reader of a snapshot is handed can be changed by nobody.

``FrozenDict`` and ``FrozenList`` are subclasses of ``dict`` and ``list``, so that `json`, `jsonschema` and every provider's
SDK take them as they are; each way to change them raises ``TypeError``.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, NoReturn

__all__ = ["FrozenDict", "FrozenList", "alike", "freeze", "freeze_all", "thaw"]


def _refuse(self: object, *_: object, **__: object) -> NoReturn:
    raise TypeError(f"{type(self).__name__} is read-only: it is part of a snapshot that others read too (use thaw())")


class FrozenDict(dict[str, Any]):
    """A ``dict`` that cannot be changed after it was made; hashable when its values are."""

    __slots__ = ()
    __setitem__ = __delitem__ = __ior__ = _refuse
    clear = pop = popitem = setdefault = update = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(frozenset(self.items()))

    def __copy__(self) -> FrozenDict:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> FrozenDict:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild_dict, (tuple(self.items()),))


class FrozenList(list[Any]):
    """A ``list`` that cannot be changed after it was made; hashable when its items are."""

    __slots__ = ()
    __setitem__ = __delitem__ = __iadd__ = __imul__ = _refuse
    append = clear = extend = insert = pop = remove = reverse = sort = _refuse

    def __hash__(self) -> int:  # type: ignore[override]
        return hash(tuple(self))

    def __copy__(self) -> FrozenList:
        return self

    def __deepcopy__(self, memo: dict[int, Any]) -> FrozenList:
        return self

    def __reduce__(self) -> tuple[Any, ...]:
        return (_rebuild_list, (tuple(self),))


def _rebuild_dict(items: Iterable[tuple[str, Any]]) -> FrozenDict:
    return FrozenDict(items)


def _rebuild_list(items: Iterable[Any]) -> FrozenList:
    return FrozenList(items)


def freeze(value: Any) -> Any:
    """Make a deeply read-only copy of a JSON value.

    Args:
        value: any JSON value (nested dicts, lists, scalars). Frozen parts are reused, not copied.

    Returns:
        The same value built of ``FrozenDict``, ``FrozenList`` and scalars.

    Raises:
        RecursionError: when it nests deeper than Python's recursion limit.
    """
    if isinstance(value, (FrozenDict, FrozenList)):
        return value
    if isinstance(value, dict):
        return FrozenDict((str(key), freeze(item)) for key, item in value.items())
    if isinstance(value, (list, tuple)):
        return FrozenList(freeze(item) for item in value)
    return value


def freeze_all(values: Any) -> tuple[FrozenDict, ...]:
    """The objects of a JSON list, each `freeze`-d; of anything else, and of its other members, nothing."""
    if not isinstance(values, (list, tuple)):
        return ()
    return tuple(freeze(each) for each in values if isinstance(each, dict))


def thaw(value: Any) -> Any:
    """Make an ordinary, changeable copy of a frozen JSON value (the inverse of `freeze`)."""
    if isinstance(value, dict):
        return {key: thaw(item) for key, item in value.items()}
    if isinstance(value, list):
        return [thaw(item) for item in value]
    return value


def alike(one: Any, other: Any) -> bool:
    """Whether two values are the same JSON; unlike ``==``, for which ``1 == True == 1.0``. The order of keys does not count."""
    pending = [(one, other)]
    while pending:
        left, right = pending.pop()
        if left is right:
            continue
        if isinstance(left, dict) and isinstance(right, dict):
            if left.keys() != right.keys():
                return False
            pending += [(value, right[key]) for key, value in left.items()]
        elif isinstance(left, (list, tuple)) and isinstance(right, (list, tuple)):
            if len(left) != len(right):
                return False
            pending += zip(left, right, strict=True)
        elif type(left) is not type(right) or left != right or (isinstance(left, float) and repr(left) != repr(right)):
            return False  # the last, as 0.0 == -0.0
    return True
