"""What pydantic makes of a function's signature: the schema of a native tool, and what checks its arguments.

Why pydantic itself and not the SDK's ``func_metadata``: that one makes a pydantic model of the parameters, so it refuses
parameters whose names begin with ``_``, knows no positional-only ones, turns ``*args`` into a parameter called ``args``, lets
unknown arguments pass unseen, and belongs to the SDK's server half (its import costs a web server). ``TypeAdapter`` of a
function keeps all of a signature; but it *calls* the function to validate, so that an error of the handler cannot be told from
one of its arguments. So the adapter is made of a stand-in with the same signature, which returns what it was given.
"""

from __future__ import annotations

import inspect
import json
from collections.abc import Mapping
from functools import partial
from typing import Any, get_type_hints

from pydantic import PydanticSchemaGenerationError, PydanticUserError, TypeAdapter, ValidationError
from pydantic.json_schema import GenerateJsonSchema
from pydantic_core import ArgsKwargs, PydanticSerializationError, to_jsonable_python

from ..model.native import Bind
from ..model.nearest import nearest

__all__ = ["read"]

_ERRORS_TOLD = 10
"""How many wrong arguments one answer names."""

_UNKNOWN = "unexpected_keyword_argument"


class _Schema(GenerateJsonSchema):
    """Without titles that repeat the names, which only cost tokens; a default that is no JSON is left out without a warning."""

    def field_title_should_be_set(self, schema: Any) -> bool:
        return False

    def encode_default(self, dft: Any) -> Any:
        encoded = super().encode_default(dft)
        # JSON has no NaN and no infinities: pydantic leaves one as it is, and makes null of one inside a default.
        try:
            exact = to_jsonable_python(dft, inf_nan_mode="constants", fallback=lambda _: None)
            for each in (encoded, exact):
                json.dumps(each, allow_nan=False, ensure_ascii=False).encode()
        except Exception:
            raise PydanticSerializationError("it holds a number, or text, that JSON does not have") from None
        return encoded

    def emit_warning(self, kind: Any, detail: str) -> None:
        return


def _parameters(tool: str, handler: Any, written: Any) -> list[inspect.Parameter]:
    """The parameters that are the model's to give."""
    try:
        parameters = list(inspect.signature(handler).parameters.values())
    except (ValueError, TypeError, NameError) as error:
        raise ValueError(
            f"native tool {tool!r}: its signature cannot be read: {error}; give it an input_schema"
        ) from None
    for each in parameters:
        if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
            stars = "*" if each.kind is each.VAR_POSITIONAL else "**"
            raise ValueError(
                f"native tool {tool!r} takes {stars}{each.name}, of which no schema can be made; "
                "name its parameters, or give it an input_schema"
            )
    if parameters and parameters[0].name in ("self", "cls") and handler is written and "." in written.__qualname__:
        raise ValueError(f"native tool {tool!r} is a method without its object; make it of a bound one")
    bound: set[str] = set()
    while isinstance(handler, partial):
        bound |= handler.keywords.keys()
        handler = handler.func
    return [each for each in parameters if each.name not in bound]


def read(tool: str, handler: Any, written: Any, names: dict[str, Any]) -> tuple[dict[str, Any], Bind]:
    """The schema of a signature, and what checks arguments against it.

    Args:
        tool: its name, for errors.
        handler: what is called.
        written: the function in which its parameters are written.
        names: where annotations may be defined besides the function's globals.

    Raises:
        ValueError: as `native_tool`.
    """
    parameters = _parameters(tool, handler, written)
    hints = _hints(tool, parameters, written, names)

    def stand_in(**arguments: Any) -> dict[str, Any]:
        return arguments

    alike: Any = stand_in
    alike.__signature__ = inspect.Signature(
        [each.replace(kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints.get(each.name, Any)) for each in parameters]
    )
    alike.__annotations__ = {each.name: hints.get(each.name, Any) for each in parameters}
    try:
        adapter: TypeAdapter[dict[str, Any]] = TypeAdapter(alike)
        schema = adapter.json_schema(schema_generator=_Schema)
    except Exception as error:
        raise ValueError(f"native tool {tool!r}: {_culprit(hints)}{_reason(error)}") from None
    by_place = [each.name for each in parameters if each.kind is each.POSITIONAL_ONLY]
    known = [each.name for each in parameters]

    def bind(arguments: Mapping[str, Any]) -> tuple[tuple[Any, ...], Mapping[str, Any]]:
        try:
            found = dict(adapter.validate_python(ArgsKwargs((), dict(arguments))))
        except ValidationError as error:
            raise ValueError(_told(error, known)) from None
        return tuple(found.pop(each) for each in by_place), found

    return schema, bind


def _hints(tool: str, parameters: list[inspect.Parameter], written: Any, names: dict[str, Any]) -> dict[str, Any]:
    """What each parameter is annotated with, as objects; what a function returns is not looked at."""
    around = getattr(written, "__globals__", {})
    hints: dict[str, Any] = {}
    for each in parameters:
        if each.annotation is each.empty:
            continue

        def alone() -> None: ...

        alone.__annotations__ = {each.name: each.annotation}
        try:
            try:
                found = get_type_hints(alone, around, include_extras=True)
            except NameError:
                found = get_type_hints(alone, around, names, include_extras=True)
        except Exception as error:
            raise ValueError(
                f"native tool {tool!r}: parameter {each.name!r}: its annotation cannot be resolved: {error}"
            ) from None
        hints |= found
    return hints


def _culprit(hints: Mapping[str, Any]) -> str:
    """Which parameter is the one that pydantic makes no schema of; empty when it is none alone."""
    for name, hint in hints.items():
        try:
            TypeAdapter(hint).json_schema(schema_generator=_Schema)
        except Exception:
            return f"parameter {name!r}: "
    return ""


def _reason(error: Exception) -> str:
    if isinstance(error, PydanticSchemaGenerationError):
        what = error.message.partition(". ")[0]
        return f"{what}; make it a dataclass, a TypedDict or a pydantic model, or give an input_schema"
    text = error.message if isinstance(error, PydanticUserError) else str(error)
    return text.split("\n")[0].strip() or type(error).__name__


def _told(error: ValidationError, known: list[str]) -> str:
    """What is wrong with the arguments, in one line that a model can act on."""
    lines = []
    wrong = error.errors(include_url=False, include_context=False)
    for each in wrong[:_ERRORS_TOLD]:
        path = ".".join(map(str, each["loc"]))
        kind = each["type"]
        if kind == _UNKNOWN and len(each["loc"]) == 1:
            near = nearest(path, known)
            there_are = f"its arguments are {', '.join(known)}" if known else "it takes no arguments"
            lines.append(f"{path} is unknown" + (f", did you mean {near}?" if near else f", {there_are}"))
        elif kind.startswith("missing"):
            lines.append(f"{path} is missing")
        else:
            lines.append(f"{path}: {each['msg']}")
    if len(wrong) > _ERRORS_TOLD:
        lines.append(f"and {len(wrong) - _ERRORS_TOLD} more")
    return "the arguments do not fit: " + "; ".join(lines)
