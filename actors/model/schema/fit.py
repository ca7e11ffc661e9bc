"""The one question the projection asks about a tool: what of it can be sent under a profile, or why nothing can."""

from __future__ import annotations

import re

from attrs import frozen

from ..frozen import FrozenDict, freeze
from ..profile import Profile
from ..status import ToolDef
from .flaw import ROOT, Flaw, Unfit
from .lint import lint
from .mend import mended
from .sound import judge

__all__ = ["Fit", "Flaw", "fit"]


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


_NOTHING = FrozenDict()
_WORDS = re.compile(r"[A-Za-z0-9]+")


def _flawed(rule: str, path: str, message: str, shown: FrozenDict = _NOTHING) -> Fit:
    return Fit(None, _NOTHING, shown, (), Flaw(rule, path, message))


def _described(tool: ToolDef) -> str:
    """A description for a tool that has none: its title, else its name in words."""
    if tool.title is not None and tool.title.strip():
        return tool.title
    words = " ".join(_WORDS.findall(tool.bare))[:200]
    return f"{words[:1].upper()}{words[1:]}." if words else "A tool without a description."


def _cut(text: str, longest: int) -> str:
    """A text cut where a word ends, unless that is far back, with a sign of it."""
    room = text[: longest - 1]
    end = len(room) if text[longest - 1].isspace() else max(room.rfind(space) for space in " \n\t")
    return room[: end if end > longest // 3 else None].rstrip() + "…"


def _fit(tool: ToolDef, wire_name: str, profile: Profile) -> Fit:
    message = judge(tool)
    if message is not None:
        return _flawed("unsound", ROOT, message)
    schema = tool.input_schema
    refusal = profile.refusal(wire_name) if profile.refused else None
    if refusal is not None:
        return _flawed("refused-name", "name", f"profile {profile.name!r} refuses {wire_name}: {refusal}", schema)
    description = tool.description
    changes: tuple[str, ...] = ()
    if profile.description and (description is None or not description.strip()):
        description = _described(tool)
        changes = (f"description: was empty; is now {description[:60]!a}",)
    longest = profile.max_description
    if longest is not None and description is not None and len(description) > longest:
        changes = (*changes, f"description: cut from {len(description)} characters to at most {longest}")
        description = _cut(description, longest)
    if lint(schema, profile) is None:
        return Fit(description, schema, schema, changes)
    try:
        made, mends = mended(schema, profile)
    except Unfit as error:
        flaw = error.flaw
        return _flawed(flaw.rule, flaw.path, flaw.message, schema)
    return Fit(description, freeze(made), schema, (*changes, *mends))


def fit(tool: ToolDef, wire_name: str, profile: Profile) -> Fit:
    """Judge a tool for a profile, and mend it where that keeps its meaning. Pure and total: it never raises.

    Args:
        tool: as its server advertised it; not changed.
        wire_name: what it is called on the wire.
        profile: who is to take it.

    Returns:
        What is sent: the very schema it was given, if that keeps the rules. What `fit` lets through keeps them, so fitting
        it again changes nothing. See docs/profiles.md for every rule and mend.
    """
    try:
        return _fit(tool, wire_name, profile)
    except Exception as error:
        shown = tool.input_schema if judge(tool) is None else _NOTHING
        return _flawed("unusable", ROOT, f"its definition cannot be judged: {type(error).__name__}", shown)
