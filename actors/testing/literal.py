"""A plan as a text to paste, and back: the literal a report prints, and the files under ``tests/regressions``.

Reading evaluates nothing: only the five kinds of value a plan is made of, tuples, numbers, strings and None are understood.
"""

from __future__ import annotations

import ast
import math
from typing import Any

import attrs

from .faults import Fault, FaultPlan
from .plans import Op, Plan, ServerPlan

__all__ = ["literal", "parse"]

_KINDS: dict[str, type[Any]] = {each.__name__: each for each in (Plan, ServerPlan, FaultPlan, Fault, Op)}


def literal(value: object, indent: int = 0) -> str:
    """Write a plan, or a part of one, as Python; what is as by default is left out.

    Args:
        value: a plan, a part of it, a tuple of parts, or a plain value.
        indent: columns that it stands in.
    """
    inner = " " * (indent + 4)
    if isinstance(value, tuple):
        if not value:
            return "()"
        items = "".join(f"{inner}{literal(each, indent + 4)},\n" for each in value)
        return f"(\n{items}{' ' * indent})"
    kind: type[Any] = type(value)
    if kind.__name__ not in _KINDS:
        return repr(value)
    parts = [
        (each.name, part)
        for each in attrs.fields(kind)
        if (part := getattr(value, each.name)) != each.default and part != FaultPlan()
    ]
    name = kind.__name__
    if isinstance(value, (Plan, FaultPlan)):
        lines = "".join(f"{inner}{key}={literal(each, indent + 4)},\n" for key, each in parts)
        return f"{name}(\n{lines}{' ' * indent})" if lines else f"{name}()"
    return f"{name}({', '.join(f'{key}={each!r}' for key, each in parts)})"


def parse(text: str) -> Plan:
    """Read a plan that `literal` (or ``repr``) wrote; comments may stand around it.

    Raises:
        ValueError: it is something else; the line is named.
    """
    try:
        plan = _value(ast.parse(text.strip(), mode="eval").body)
    except SyntaxError as error:
        raise ValueError(f"line {error.lineno or 1}: this is not a plan") from None
    if not isinstance(plan, Plan):
        raise ValueError("line 1: this is not a plan")
    return plan


def _value(node: ast.expr) -> Any:
    match node:
        case ast.Constant(value=value):
            return value
        case ast.Name(id="inf"):
            return math.inf
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_value(operand)
        case ast.Tuple(elts=elements):
            return tuple(_value(each) for each in elements)
        case ast.Call(func=ast.Name(id=name), args=args, keywords=keywords) if name in _KINDS:
            named = {each.arg: _value(each.value) for each in keywords if each.arg is not None}
            try:
                return _KINDS[name](*(_value(each) for each in args), **named)
            except TypeError as error:
                raise ValueError(f"line {node.lineno}: {error}") from None
        case _:
            raise ValueError(f"line {node.lineno}: this is not a part of a plan: {ast.unparse(node)[:60]}")
