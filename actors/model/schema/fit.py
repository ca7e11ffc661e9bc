"""The one question the projection asks about a tool: what of it can be sent under a profile, or why nothing can."""

from __future__ import annotations

import json

from attrs import frozen

from ..frozen import FrozenDict
from ..profile import Profile
from ..status import ToolDef
from .sound import judge

__all__ = ["Fit", "Flaw", "fit"]


@frozen
class Flaw:
    """Why a tool is quarantined; its ``str`` is one line for a person.

    Args:
        rule: the rule it breaks, in one word with dashes (``ref-cycle``).
        path: where, as a JSON path into its definition (``inputSchema.properties.a``), or empty.
        message: what is wrong.
    """

    rule: str
    path: str
    message: str

    def __str__(self) -> str:
        return self.message


@frozen
class Fit:
    """What can be sent of a tool.

    Args:
        description: what is sent as its description, or None.
        input_schema: what is sent as its schema.
        shown: its schema as advertised, for people; empty when that is no JSON.
        changes: one line each, of what was mended.
        flaw: why it cannot be sent; then the rest is not used.
    """

    description: str | None
    input_schema: FrozenDict
    shown: FrozenDict
    changes: tuple[str, ...] = ()
    flaw: Flaw | None = None


def fit(tool: ToolDef, wire_name: str, profile: Profile) -> Fit:
    """Judge a tool for a profile, and mend it where that keeps its meaning. Pure and total: it never raises.

    Args:
        tool: as its server advertised it.
        wire_name: what it is called on the wire.
        profile: who is to take it.
    """
    message = judge(tool)
    if message is not None:
        return Fit(None, FrozenDict(), FrozenDict(), (), Flaw("unsound", "inputSchema", message))
    schema = tool.input_schema
    if schema.get("type") != "object":
        # Every provider wants the type spelled out at the root.
        given = json.dumps(schema["type"])[:40] if "type" in schema else "none"
        message = f'the root of its input schema must be of type "object"; its type is {given}'
        return Fit(None, FrozenDict(), schema, (), Flaw("root-type", "inputSchema.type", message))
    return Fit(tool.description, tool.input_schema, tool.input_schema)
