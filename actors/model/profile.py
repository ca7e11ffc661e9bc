"""What a provider takes as tools: its limits, as values, each with where it is written.

A catalog is made for one profile: tools are judged, mended or quarantined for it, once, in the projection. The default,
``portable``, is the strictest of all providers' in every point, so that its catalog can be sent to any of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase

from attrs import evolve, field, frozen

from .nearest import nearest

__all__ = ["PORTABLE", "PROFILES", "Profile", "Refused", "SchemaRules", "find_profile"]


@frozen
class Refused:
    """Tools that a provider, or one path to it, refuses outright.

    Args:
        pattern: of wire names, as in `fnmatch` (case counts): ``*`` stands for any characters.
        reason: one line, for a person.
    """

    pattern: str
    reason: str


@frozen(kw_only=True)
class SchemaRules:
    """What a provider takes in an input schema. The defaults take everything that is JSON with an object at its root.

    Args:
        root_unions: ``oneOf``, ``anyOf``, ``allOf``, ``enum``, ``const`` and ``not`` may stand at the root.
        refs: ``$ref`` may stand anywhere; else it is inlined.
        booleans: ``true`` and ``false`` may stand for schemas.
        properties_key: an object at the root may do without ``properties``.
        property_name: what the name of a property matches as a whole (a regular expression); None: anything.
        max_depth: levels of objects and arrays that properties may nest; None: no limit.
        max_properties: properties in all; None: no limit.
        max_enum: values of all enums together; None: no limit.
    """

    root_unions: bool = True
    refs: bool = True
    booleans: bool = True
    properties_key: bool = True
    property_name: str | None = None
    max_depth: int | None = None
    max_properties: int | None = None
    max_enum: int | None = None


@frozen(kw_only=True, cache_hash=True)
class Profile:
    """What one provider, or all of them, take as tools.

    Args:
        name: what it is asked for by.
        max_tools: how many tools a request may have; None: no limit stated.
        tool_name: what a tool's name matches as a whole (a regular expression).
        description: a tool must have a description that is not empty.
        schema: what an input schema may hold.
        strict: input schemas are those of OpenAI's strict mode: every property required, no others; what was optional
            may be null, and a null that the model sends for it is left out of the call.
        refused: tools that are quarantined by their wire name.
        source: where it is written, with its date.
    """

    name: str
    max_tools: int | None = None
    tool_name: str = r"[A-Za-z0-9_-]{1,64}"
    description: bool = False
    schema: SchemaRules = field(factory=SchemaRules)
    strict: bool = False
    refused: tuple[Refused, ...] = ()
    source: str = ""

    def refusing(self, patterns: Iterable[str], reason: str) -> Profile:
        """This profile, refusing further tools by name (patterns of `fnmatch`), for the reason given."""
        return evolve(self, refused=(*self.refused, *(Refused(pattern, reason) for pattern in patterns)))

    def name_flaw(self, wire_name: str) -> str | None:
        """Why a tool cannot have that name here, or None."""
        if re.fullmatch(self.tool_name, wire_name) is None:
            return f"profile {self.name!r} takes names that match {self.tool_name}"
        for each in self.refused:
            if fnmatchcase(wire_name, each.pattern):
                return each.reason
        return None


_OBJECT = SchemaRules(root_unions=False)

PORTABLE = Profile(
    name="portable",
    max_tools=128,
    tool_name=r"[A-Za-z_][A-Za-z0-9_-]{0,62}",
    description=True,
    schema=SchemaRules(
        root_unions=False, refs=False, booleans=False, properties_key=False, property_name=r"[\w.-]{1,64}"
    ),
    source="the strictest of all below, 2026-11",
)

PROFILES: dict[str, Profile] = {
    each.name: each
    for each in (
        PORTABLE,
        Profile(
            name="openai",
            max_tools=128,
            schema=SchemaRules(root_unions=False, properties_key=False),
            source="openai 3.57.0; zed#42393 and langchainjs#9804 (root unions); array_above_max_length (128), 2026-11",
        ),
        Profile(name="mcp", tool_name=r"(?s).+", source="Model Context Protocol 2026-07-28, server/tools"),
    )
}
"""All profiles by name."""


def find_profile(profile: Profile | str) -> Profile:
    """The profile of that name, or the one given.

    Raises:
        ValueError: there is none of that name; the nearest one is named.
    """
    if isinstance(profile, Profile):
        return profile
    found = PROFILES.get(profile)
    if found is None:
        near = nearest(profile, PROFILES)
        hint = f"; did you mean {near!r}?" if near else ""
        raise ValueError(f"there is no profile {profile!r}{hint} (they are: {', '.join(PROFILES)})")
    return found
