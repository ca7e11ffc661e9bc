"""What a provider takes as tools: its limits, as values, each with where it is written.

A catalog is made for one profile: tools are judged, mended or quarantined for it, once, in the projection. The default,
``portable``, is the strictest of all providers' in every point, so that its catalog can be sent to any of them.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from fnmatch import fnmatchcase
from typing import Any

from attrs import evolve, field, frozen
from attrs.validators import ge, optional

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

    Each flag says that something may stand; what may not is mended where that keeps its meaning.

    Args:
        root_unions: ``oneOf``, ``anyOf``, ``allOf``, ``enum``, ``const`` and ``not`` may stand at the root.
        refs: ``$ref`` may stand anywhere, into ``$defs`` or to the root; else it is inlined.
        booleans: ``true`` and ``false`` may stand for schemas; as ``additionalProperties`` they always may.
        properties_key: an object at the root may do without ``properties``.
        malformed: a keyword may hold what draft 2020-12 does not let it hold (``required: null``).
        untyped: a schema whose ``enum``, ``const``, ``properties`` or ``items`` says its type may do without ``type``.
        bare_arrays: an array may do without ``items``.
        loose_required: ``required`` may name what is no property.
        any_pattern: a regular expression may be of any kind; else it has no lookaround and the like, and compiles.
        stray_values: ``enum`` and ``const`` may list values that are not of the ``type`` beside them.
        property_name: what the name of a property matches as a whole (a regular expression); None: anything.
        deep_names: ``property_name`` holds below the root too.
        max_depth: levels of schemas that may lie in one another, the root being the first; None: no limit.
        max_properties: properties in all; None: no limit.
        max_enum: values of all enums together; None: no limit.
        max_text: characters of all names of properties and values of enums together; None: no limit.
    """

    root_unions: bool = True
    refs: bool = True
    booleans: bool = True
    properties_key: bool = True
    malformed: bool = True
    untyped: bool = True
    bare_arrays: bool = True
    loose_required: bool = True
    any_pattern: bool = True
    stray_values: bool = True
    property_name: str | None = None
    deep_names: bool = False
    max_depth: int | None = None
    max_properties: int | None = None
    max_enum: int | None = None
    max_text: int | None = None

    @property
    def limited(self) -> bool:
        """Whether any count is limited."""
        return any(getattr(self, limit) is not None for limit in _LIMITS)

    def covers(self, other: SchemaRules) -> bool:
        """Whether what keeps these rules keeps the other ones too; False also where that cannot be told."""
        if any(getattr(self, flag) and not getattr(other, flag) for flag in _FLAGS):
            return False
        named = other.property_name is not None
        if named and (self.property_name != other.property_name or (other.deep_names and not self.deep_names)):
            return False
        return all(_within(getattr(self, limit), getattr(other, limit)) for limit in _LIMITS)


_FLAGS = (
    "root_unions",
    "refs",
    "booleans",
    "properties_key",
    "malformed",
    "untyped",
    "bare_arrays",
    "loose_required",
    "any_pattern",
    "stray_values",
)
_LIMITS = ("max_depth", "max_properties", "max_enum", "max_text")


def _within(ours: int | None, theirs: int | None) -> bool:
    return theirs is None or (ours is not None and ours <= theirs)


@frozen(kw_only=True, cache_hash=True)
class Profile:
    """What one provider, or all of them, take as tools.

    Args:
        name: what it is asked for by.
        max_tools: how many tools a request may have; None: no limit stated.
        tool_name: what a tool's name matches as a whole (a regular expression).
        description: a tool must have a description that is not empty.
        max_description: how many characters of it are sent, at least 1; what is longer is cut. None, as in every profile here:
            all of them. OpenAI refused more than 1,024 in 2025 (docs/profiles.md), and not everywhere.
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
    max_description: int | None = field(default=None, validator=optional(ge(1)))
    schema: SchemaRules = field(factory=SchemaRules)
    strict: bool = False
    refused: tuple[Refused, ...] = ()
    source: str = ""

    def refusing(self, patterns: Iterable[str], reason: str) -> Profile:
        """This profile, refusing further tools by name (patterns of `fnmatch`), for the reason given."""
        return evolve(self, refused=(*self.refused, *(Refused(pattern, reason) for pattern in patterns)))

    def in_strict_mode(self) -> Profile:
        """This profile with OpenAI's strict mode on; only OpenAI's own endpoints know it.

        Returns:
            A profile of the same limits for names and counts, whose schemas keep the strict rules too.
        """
        name = self.name if self.strict else f"{self.name.removesuffix('-strict')}-strict"
        rules = evolve(self.schema, refs=False, **_STRICT_RULES, **_STRICT_LIMITS)
        return evolve(self, name=name, strict=True, schema=rules, source=f"{self.source}; {_STRICT_SOURCE}")

    def name_flaw(self, wire_name: str) -> str | None:
        """Why a tool cannot have that name here, or None."""
        if re.fullmatch(self.tool_name, wire_name) is None:
            return f"profile {self.name!r} takes names that match {self.tool_name}"
        return self.refusal(wire_name)

    def refusal(self, wire_name: str) -> str | None:
        """Why a tool of that name is refused outright, or None."""
        for each in self.refused:
            if fnmatchcase(wire_name, each.pattern):
                return each.reason
        return None


_STRICT_RULES: dict[str, Any] = {
    "booleans": False,
    "malformed": False,
    "untyped": False,
    "bare_arrays": False,
    "loose_required": False,
    "any_pattern": False,
    "stray_values": False,
}
_STRICT_LIMITS: dict[str, Any] = {"max_depth": 10, "max_properties": 5_000, "max_enum": 1_000, "max_text": 120_000}
_STRICT_SOURCE = "OpenAI, guide to structured outputs, supported schemas (depth, counts, keywords), 2026-11"

_KEY = r"[A-Za-z0-9_.-]{1,64}"
"""What Anthropic's servers answer with when a property is called otherwise."""

_OPENAI = SchemaRules(
    root_unions=False, properties_key=False, malformed=False, bare_arrays=False, any_pattern=False, stray_values=False
)
_ANTHROPIC = SchemaRules(root_unions=False, malformed=False, property_name=_KEY)
_GEMINI = SchemaRules(
    root_unions=False,
    malformed=False,
    booleans=False,
    untyped=False,
    bare_arrays=False,
    loose_required=False,
    stray_values=False,
)

PORTABLE = Profile(
    name="portable",
    max_tools=128,
    tool_name=r"[A-Za-z_][A-Za-z0-9_-]{0,62}",
    description=True,
    schema=SchemaRules(
        root_unions=False,
        refs=False,
        booleans=False,
        properties_key=False,
        malformed=False,
        untyped=False,
        bare_arrays=False,
        loose_required=False,
        any_pattern=False,
        stray_values=False,
        property_name=_KEY,
        deep_names=True,
    ),
    source="the strictest of all providers' below in every point, 2026-11",
)

_OPENAI_CHAT = Profile(
    name="openai",
    max_tools=128,
    schema=_OPENAI,
    source="openai 3.57.0 FunctionDefinition (name); array_above_max_length (128); zed#42393 and langchainjs#9804 (root "
    "unions); apify-mcp-server#36 (items); litellm#40485, vercel/ai#21037 (regular expressions), 2026-11",
)

PROFILES: dict[str, Profile] = {
    each.name: each
    for each in (
        PORTABLE,
        _OPENAI_CHAT,
        evolve(_OPENAI_CHAT, name="openai-responses", source="as openai; openai 3.57.0 FunctionToolParam, 2026-11"),
        _OPENAI_CHAT.in_strict_mode(),
        Profile(
            name="anthropic",
            tool_name=r"[A-Za-z0-9_-]{1,64}",
            schema=_ANTHROPIC,
            source="anthropic 2.14.0 ToolParam (root object); claude-code#40075 (root unions) and #586 (draft 2020-12); "
            "appstore-connect-mcp#2 (names of properties, at the root), 2026-11",
        ),
        Profile(
            name="anthropic-managed",
            tool_name=r"[A-Za-z0-9_-]{1,64}",
            description=True,
            schema=evolve(_ANTHROPIC, refs=False, deep_names=True),
            source="anthropic 2.14.0 BetaManagedAgentsCustomToolParams (description is required); managed agents reject "
            "$ref and other names of properties, 2026-11",
        ),
        Profile(
            name="gemini",
            max_tools=128,
            tool_name=r"[A-Za-z_][A-Za-z0-9_-]{0,62}",
            schema=_GEMINI,
            source="google-genai 3.6.1 FunctionDeclaration (parametersJsonSchema); gemini-cli#6704 (63), 2026-11",
        ),
        Profile(
            name="vertex",
            max_tools=128,
            tool_name=r"[A-Za-z_][A-Za-z0-9_-]{0,62}",
            schema=_GEMINI,
            source="as gemini; Vertex AI, function calling (128 declarations), 2026-11",
        ),
        Profile(
            name="bedrock",
            description=True,
            schema=_ANTHROPIC,
            source="botocore 1.44.8 ToolSpecification (name; description of at least 1 character; root object); the rest "
            "as anthropic, whose checks its models' errors quote, 2026-11",
        ),
        Profile(
            name="xai",
            max_tools=128,
            schema=_OPENAI,
            source="xai-sdk 1.21.0 (128); schemas as openai, whose API it speaks, 2026-11",
        ),
        Profile(
            name="vscode",
            max_tools=128,
            schema=SchemaRules(malformed=False, bare_arrays=False),
            source="VS Code documentation (128); vscode#246119 (items), 2026-11",
        ),
        Profile(name="windsurf", max_tools=100, source="Windsurf documentation, 2026-11"),
        Profile(name="cursor", max_tools=40, source="secondary sources (about 40), 2026-11"),
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
