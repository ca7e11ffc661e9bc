"""Structured results against the schema that their tool declares: reported, never fatal, and in bounded time.

A server writes both the schema and the result, so together they may be made to be checked for ever. So each step of the
check counts, that of the schema itself too, by what it has to look at; one that needs more than `MAX_STEPS` is given up:
nothing is reported then, nor of results or schemas that are too large, or schemas that cannot be used. Regular expressions are
not tried (one of thirty characters can take years): they are taken for fulfilled, and where that may be the very reason of a
report, as within ``not``, there is none. Of a schema with ``patternProperties`` nothing is reported.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import fields

from ..frozen import FrozenDict
from ..plain import flat

__all__ = ["MAX_STEPS", "OutputChecks"]

MAX_STEPS = 20_000
SCHEMA_STEPS = 40_000
"""The same for a look at the schema itself, which is taken once."""

LOOKED_AT_A_STEP = 16
"""Values that are merely compared, or looked up, in the time of a step."""

COMPARED_AT_ONCE, TOLD_A_STEP = 4096, 1024
"""Characters that are compared in the time of such a value, and that a complaint may have in that of a step."""

MAX_VALUES = 20_000
"""Values, at any depth, of a result or a schema that is looked at."""

MAX_CHARS = 1_000_000
"""Characters of all its strings together."""

KEPT = 256
"""Schemas whose checks are kept ready."""


class _GivenUp(Exception):
    """It takes too long."""


class OutputChecks:
    """Checks results; remembers what it made of each schema."""

    def __init__(self) -> None:
        self._made: dict[int, tuple[FrozenDict, Callable[[Any], str | None]]] = {}

    def problem(self, schema: FrozenDict | None, given: bool, value: Any) -> str | None:
        """What is wrong with a structured result, in one line; None when nothing is known to be.

        Args:
            schema: the tool's output schema, or None.
            given: whether there is a structured result.
            value: it.
        """
        if schema is None:
            return None
        if not given:
            return "the tool has an output schema, but its result has no structured content"
        known = self._made.get(id(schema))
        if known is None or known[0] is not schema:
            if len(self._made) >= KEPT:
                self._made.clear()
            # Whatever a schema makes of it: references to nothing, endless ones, keywords of wrong types.
            try:
                check = _check_for(schema)
            except Exception:
                check = _nothing_known
            known = self._made[id(schema)] = (schema, check)
        if _larger(value, MAX_VALUES):
            return None
        try:
            return known[1](value)
        except Exception:
            return None


def _larger(value: Any, most: int) -> bool:
    left, chars = [value], MAX_CHARS
    while left:
        each = left.pop()
        most -= 1
        if isinstance(each, str):
            chars -= len(each)
        elif isinstance(each, (Mapping, list, tuple)):
            if len(each) > most:
                return True
            if isinstance(each, Mapping):
                chars -= sum(map(len, each))
                left.extend(each.values())
            else:
                left.extend(each)
        if most < 0 or chars < 0:
            return True
    return False


def _uses(value: Any, key: str) -> bool:
    left = [value]
    while left:
        each = left.pop()
        if isinstance(each, Mapping):
            if key in each:
                return True
            left.extend(each.values())
        elif isinstance(each, (list, tuple)):
            left.extend(each)
    return False


def _nothing_known(value: Any) -> str | None:
    return None


def _check_for(schema: FrozenDict) -> Callable[[Any], str | None]:
    """A check for one schema. Only a tool with an output schema has ``jsonschema`` loaded."""
    if _larger(schema, MAX_VALUES) or _uses(schema, "patternProperties"):
        return _nothing_known
    from jsonschema import validators  # type: ignore[import-untyped]
    from referencing import Registry

    kind: Any = validators.validator_for(schema, default=validators.Draft202012Validator)
    of_schemas = _counted_kind(validators.validator_for(kind.META_SCHEMA, default=kind))
    _steps.left = SCHEMA_STEPS
    if next(of_schemas(kind.META_SCHEMA).iter_errors(schema), None) is not None:
        return _nothing_known
    counted = _counted_kind(kind)

    def check(value: Any) -> str | None:
        _steps.left = MAX_STEPS
        error = next(counted(schema, registry=Registry()).iter_errors(value), None)
        if error is None:
            return None
        where = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in error.absolute_path)
        return flat(f"its structured content is not as its output schema says: ${where}: {error.message[:300]}", 400)

    return check


class _Steps:
    left = 0
    untried = 0
    """Regular expressions that were taken for fulfilled."""

    def take(self, steps: int) -> None:
        self.left -= steps
        if self.left < 0:
            raise _GivenUp


_steps = _Steps()

_TURNING = frozenset({"not", "oneOf", "if", "contains", "disallow"})
"""Keywords that may refuse a value for what it fulfils."""

_SEARCHED = frozenset({"enum", "const", "dependentRequired", "dependencies"})
"""Keywords whose value may be looked at in all its depth."""


def _looked_at(name: str, asked: Any, value: Any) -> int:
    """How many values a keyword looks at by itself, at most."""
    looked_at = len(value) if isinstance(value, (dict, list)) else 0
    if isinstance(asked, (dict, list)):
        looked_at += _count(asked) if name in _SEARCHED else len(asked)
    return looked_at


def _count(value: Any) -> int:
    left, count = [value], 0
    while left:
        each = left.pop()
        count += 1 + (len(each) // COMPARED_AT_ONCE if isinstance(each, str) else 0)
        if isinstance(each, (dict, list)):
            left.extend(each.values() if isinstance(each, dict) else each)
    return count


def _cost_of_pairs(name: str, value: Any) -> int:
    """In steps: what is compared each with each."""
    if name.startswith("unevaluated") and isinstance(value, (dict, list)):
        return len(value) ** 2
    if name != "uniqueItems" or not isinstance(value, list):
        return 0
    if all(isinstance(each, str) for each in value):  # these are sorted
        return _count(value) // LOOKED_AT_A_STEP
    return len(value) ** 2 // 2


@functools.cache
def _counted_kind(kind: Any) -> Any:
    """A kind of validator whose every step counts."""
    from jsonschema import validators

    def counted(name: str, keyword: Callable[..., Any]) -> Callable[..., Iterator[Any]]:
        def check(validator: Any, asked: Any, value: Any, schema: Any) -> Iterator[Any]:
            _steps.take(1 + _looked_at(name, asked, value) // LOOKED_AT_A_STEP)
            _steps.take(_cost_of_pairs(name, value))
            for error in keyword(validator, asked, value, schema) or ():
                _steps.take(len(error.message) // TOLD_A_STEP)
                yield error

        return check

    def untried(validator: Any, asked: Any, value: Any, schema: Any) -> Iterator[Any]:
        _steps.take(1)
        if isinstance(value, str):
            _steps.untried += 1
        return iter(())

    def turning(check: Callable[..., Iterator[Any]]) -> Callable[..., Iterator[Any]]:
        def certain(*given: Any) -> Iterator[Any]:
            before = _steps.untried
            errors = list(check(*given))
            if errors and _steps.untried != before:
                raise _GivenUp
            return iter(errors)

        return certain

    keywords = {name: counted(name, keyword) for name, keyword in kind.VALIDATORS.items()}
    keywords |= {name: turning(check) for name, check in keywords.items() if name in _TURNING}
    keywords["pattern"] = untried
    made: Any = validators.extend(kind, keywords)
    taken_over = [(each.name, each.alias) for each in fields(made) if each.init]

    def evolve(self: Any, **changes: Any) -> Any:
        # The library's own would leave the counting to the plain kind wherever a part of a schema has a ``$schema`` of its own.
        schema = changes.setdefault("schema", self.schema)
        if validators.validator_for(schema, default=kind) is not kind:
            raise _GivenUp
        for name, alias in taken_over:
            if alias not in changes:
                changes[alias] = getattr(self, name)
        return made(**changes)

    made.evolve = evolve
    return made
