"""The fields of an attrs class, each with what its docstring's `Args:` say about it.

A field that `__init__` takes and the docstring does not name is an error: so none is added without a word.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterable
from typing import Any

import attrs

from .pages import Undocumented, literal, table

__all__ = ["annotation", "arguments", "defaults", "field_table", "signature"]


def annotation(cls: type, name: str) -> str:
    """A field's type as it is written in the source. (`Attribute.type` is something else once cattrs was there.)"""
    written = (inspect.get_annotations(base) for base in cls.__mro__)
    return str(next(each[name] for each in written if name in each))


def arguments(cls: type) -> dict[str, str]:
    """What the `Args:` of a class's docstring say, by name; one line of it may name several, with commas.

    Args:
        cls: any class.
    """
    text = inspect.cleandoc(cls.__doc__ or "")
    found = re.search(r"^Args:\n((?:[ ]+.*\n?|\n)*)", text, re.MULTILINE)
    said: dict[str, str] = {}
    names: list[str] = []
    for line in (found[1] if found else "").splitlines():
        head = re.match(r" {4}(\w+(?:, \w+)*): (.*)", line)
        if head:
            names = head[1].split(", ")
            said.update(dict.fromkeys(names, head[2].strip()))
        elif line.strip():
            said.update({name: f"{said[name]} {line.strip()}" for name in names})
    return said


def defaults(field: attrs.Attribute[Any]) -> str:
    """A field's default as it would be written; empty when it has none."""
    if field.default is attrs.NOTHING:
        return ""
    if isinstance(field.default, attrs.Factory):  # type: ignore[arg-type]
        return repr(field.default.factory())
    return repr(field.default)


def signature(cls: type) -> str | None:
    """How an attrs class is called, as a person would write it: its fields with their defaults. None for another class.

    Args:
        cls: any class.
    """
    if not attrs.has(cls):
        return None
    parts = []
    for each in attrs.fields(cls):
        if each.init:
            if each.kw_only and "*" not in parts:
                parts.append("*")
            own = isinstance(each.default, attrs.Factory) and each.default.takes_self  # type: ignore[arg-type]
            written = "…" if own else defaults(each)
            parts.append(f"{each.alias}: {annotation(cls, each.name)}{f' = {written}' if written else ''}")
    return f"({', '.join(parts)})"


def field_table(cls: type, *, skip: Iterable[str] = ()) -> str:
    """The table of all fields that a program may give.

    Args:
        cls: an attrs class.
        skip: fields that are of no use to a program.

    Raises:
        Undocumented: the docstring does not name one of them, or names one that is not there.
    """
    said, left_out = arguments(cls), set(skip)
    taken = [field for field in attrs.fields(cls) if field.init and field.name not in left_out]
    for field in taken:
        if field.name not in said:
            raise Undocumented(f"{cls.__name__}.{field.name}: the Args of {cls.__name__}'s docstring do not name it")
    for name in said.keys() - {field.name for field in attrs.fields(cls)}:
        raise Undocumented(f"{cls.__name__}.{name}: the docstring names it, and there is no such field")
    return table(
        ("field", "type", "default", "meaning"),
        (
            (
                literal(field.name),
                literal(annotation(cls, field.name)),
                literal(defaults(field)) if defaults(field) else "(needed)",
                said[field.name].replace("``", "`"),
            )
            for field in taken
        ),
    )
