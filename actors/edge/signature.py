"""A native tool from a Python function: its signature, read by pydantic, is the schema and checks the arguments.

`checked` does the reading; it is imported when a signature is first read, as pydantic costs half of what trio does.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Mapping
from functools import partial
from typing import Any, overload

from ..model.native import NativeTool

__all__ = ["native_tool"]


@overload
def native_tool(
    handler: Callable[..., Any],
    *,
    name: str | None = None,
    description: str | None = None,
    input_schema: Mapping[str, Any] | None = None,
) -> NativeTool:
    """Make a native tool of a function."""


@overload
def native_tool(
    handler: None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    input_schema: Mapping[str, Any] | None = None,
) -> Callable[[Callable[..., Any]], NativeTool]:
    """Make what makes a native tool of a function."""


def native_tool(
    handler: Callable[..., Any] | None = None,
    *,
    name: str | None = None,
    description: str | None = None,
    input_schema: Mapping[str, Any] | None = None,
) -> NativeTool | Callable[[Callable[..., Any]], NativeTool]:
    """Make a native tool of a function; also a decorator, with and without parentheses.

    The arguments that a model gives are checked against the signature before the handler runs, and become what it is annotated
    with (models, enums, dates …). Wrong ones are a tool error that says which and why. `NativeTool.handler` is the function.

    Args:
        handler: a function, method, partial or callable object, sync or async. What a partial binds is not the model's to give.
        name: its wire name; None: the function's.
        description: for the model; None: the docstring.
        input_schema: JSON Schema of the arguments; they are then passed as they come, and the signature is not read. None: made
            from the signature by pydantic, with what ``Annotated[…, Field(description=…)]`` says.

    Raises:
        ValueError: there is no name, or no description; the handler is not callable or yields; it takes ``*args`` or
            ``**kwargs``, or is an unbound method; an annotation cannot be resolved, or pydantic makes no schema of it.
    """
    frame = sys._getframe(1)
    names = dict(frame.f_locals)  # where the annotations of a function inside a function may be defined
    del frame

    def make(handler: Callable[..., Any]) -> NativeTool:
        if not callable(handler):
            raise ValueError(f"a native tool is made of something callable, not of {handler!r}")
        inner = _inner(handler)
        called = name if name is not None else getattr(inner, "__name__", type(inner).__name__)
        if called == "<lambda>":
            raise ValueError("a native tool made of a lambda needs a name: native_tool(…, name=…)")
        about = description if description is not None else _doc(inner)
        if not about.strip():
            raise ValueError(
                f"native tool {called!r} has neither a docstring nor a description, and that is what a model chooses it by"
            )
        written = _written(inner)
        if inspect.isgeneratorfunction(written) or inspect.isasyncgenfunction(written):
            raise ValueError(f"native tool {called!r} yields, and a call has one result; return a list")
        if input_schema is not None:
            return NativeTool(called, about, input_schema, handler)
        from .checked import read

        schema, bind = read(called, handler, written, names)
        return NativeTool(called, about, schema, handler, bind=bind)

    return make if handler is None else make(handler)


def _inner(handler: Any) -> Any:
    """What a partial is of."""
    while isinstance(handler, partial):
        handler = handler.func
    return handler


def _written(inner: Any) -> Any:
    """The function in which the parameters of a callable are written."""
    if inspect.isclass(inner):
        return inspect.unwrap(inner.__init__)
    if inspect.isroutine(inner):
        return inspect.unwrap(getattr(inner, "__func__", inner))
    return inspect.unwrap(type(inner).__call__)


def _doc(inner: Any) -> str:
    if inspect.isclass(inner) or inspect.isroutine(inner):
        return inspect.getdoc(inner) or ""
    # Not `getdoc` of its method: what has no docstring inherits one from the class of all classes.
    return inspect.cleandoc(type(inner).__call__.__doc__ or "") or inspect.getdoc(type(inner)) or ""
