"""The embedding program's own tools, as values, and whether a provider would take them."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from attrs import field, frozen

from .frozen import FrozenDict, freeze
from .naming import PREFIX
from .plain import flat
from .profile import Profile
from .status import ToolDef

if TYPE_CHECKING:
    from .schema.fit import Fit

__all__ = ["Bind", "NativeTool", "check_natives", "fit_native"]

Bind = Callable[[Mapping[str, Any]], tuple[tuple[Any, ...], Mapping[str, Any]]]
"""From the arguments that a model gave to the handler's positional and keyword ones; ValueError in words for the model."""


def _native_name(_: object, __: object, value: Any) -> None:
    if not isinstance(value, str) or not value:
        raise ValueError(f"a native tool's name is a string that is not empty, not {value!r}")
    if value.startswith(PREFIX):
        raise ValueError(f"native tool {value!r}: names that begin with {PREFIX} are those of MCP tools")


def _callable(tool: NativeTool, _: object, value: Any) -> None:
    if not callable(value):
        raise ValueError(f"native tool {tool.name!r}: its handler is not callable, but {value!r}")


def _schema(value: Any) -> FrozenDict:
    if not isinstance(value, Mapping):
        raise ValueError(f"a native tool's input schema is a mapping, not {value!r}")
    try:
        return FrozenDict(freeze(dict(value)))
    except RecursionError:
        raise ValueError("a native tool's input schema nests too deep, or holds itself") from None


@frozen
class NativeTool:
    """A tool of the embedding program itself; it always ships. `native_tool` makes one from a function.

    Args:
        name: its wire name; may not begin with ``mcp__``.
        description: for the model.
        input_schema: JSON Schema of its arguments; the root is an object.
        handler: called with the arguments as keywords; sync (run in a worker thread) or async (in a child task).
        bind: checks the arguments and turns them into the handler's; None: they are its keywords as they are.

    Raises:
        ValueError: the name is empty or begins with ``mcp__``; or the schema is no mapping or the handler not callable.
    """

    name: str = field(validator=_native_name)
    description: str
    input_schema: FrozenDict = field(converter=_schema)
    handler: Callable[..., Any] | Callable[..., Awaitable[Any]] = field(eq=False, validator=_callable)
    bind: Bind | None = field(default=None, eq=False, repr=False, kw_only=True)


def fit_native(tool: NativeTool, profile: Profile) -> Fit:
    """Judge a native tool for a profile, and mend it, as an MCP tool would be. Pure and total."""
    from .schema.fit import fit  # judging is half of the package, and who has no native tools yet does not pay for it

    return fit(ToolDef(tool.name, description=tool.description, input_schema=tool.input_schema), tool.name, profile)


def check_natives(natives: Sequence[NativeTool], profile: Profile) -> None:
    """Refuse native tools that a provider would refuse: they always ship, so one of them would cost the whole request.

    Args:
        natives: in the order they are sent.
        profile: what the catalog is made for.

    Raises:
        TypeError: one is no `NativeTool`.
        ValueError: two have one name; a name, a description or a schema is not one that the profile takes and cannot be
            mended; or they are more than it takes.
    """
    seen: set[str] = set()
    for tool in natives:
        if not isinstance(tool, NativeTool):
            raise TypeError(
                f"native_tools holds {flat(repr(tool), 100)}: make a tool of a function with native_tool(function)"
            )
        if tool.name in seen:
            raise ValueError(f"native tool {tool.name!r} is given twice")
        seen.add(tool.name)
        reason = profile.name_flaw(tool.name)
        if reason is not None:
            raise ValueError(f"native tool {tool.name!r}: {reason}")
        flaw = fit_native(tool, profile).flaw
        if flaw is not None:
            place = f" at {flaw.path}" if flaw.path else ""
            raise ValueError(
                f"native tool {tool.name!r}: profile {profile.name!r} cannot take it: {flaw} ({flaw.rule}{place})"
            )
    if profile.max_tools is not None and len(seen) > profile.max_tools:
        raise ValueError(f"{len(seen)} native tools are given, and profile {profile.name!r} takes {profile.max_tools}")
