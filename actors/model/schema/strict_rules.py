"""What OpenAI's strict mode asks of each schema, and the counts that it and others limit.

Source: OpenAI's guide to structured outputs, "Supported schemas" (2026-11), which names the types, the keywords that may
stand and those that may not; strict function calling takes the same.
"""

from __future__ import annotations

from typing import Any

from attrs import define

from ..profile import SchemaRules
from .flaw import Link

__all__ = ["STRICT_FORMATS", "STRICT_KEYWORDS", "Tally", "strict_flaw"]

STRICT_KEYWORDS = frozenset(
    {
        "$schema",
        "additionalProperties",
        "anyOf",
        "const",
        "description",
        "enum",
        "exclusiveMaximum",
        "exclusiveMinimum",
        "format",
        "items",
        "maxItems",
        "maximum",
        "minItems",
        "minimum",
        "multipleOf",
        "pattern",
        "properties",
        "required",
        "title",
        "type",
    }
)
"""All that may stand; named there as refused: allOf, not, dependentRequired, dependentSchemas, if, then, else."""

STRICT_FORMATS = frozenset({"date", "date-time", "duration", "email", "hostname", "ipv4", "ipv6", "time", "uuid"})
"""The values of ``format`` that it knows."""

_LONG_ENUM = 250  # values that are text; of more of them the characters are limited too
_ENUM_TEXT = 15_000  # characters of all of them together

_Found = tuple[str, Link, str]


def strict_flaw(schema: dict[str, Any], link: Link) -> _Found | None:
    """The first rule of strict mode that one schema breaks, without those inside it."""
    for key in schema:
        if key not in STRICT_KEYWORDS:
            return "strict-keyword", (link, key), f"strict mode does not know {key}"
    if schema.get("format", "date") not in STRICT_FORMATS:
        return "strict-keyword", (link, "format"), "strict mode does not know this format"
    values = schema.get("enum")
    if isinstance(values, list) and len(values) > _LONG_ENUM:
        texts = [each for each in values if isinstance(each, str)]
        if len(texts) > _LONG_ENUM and sum(map(len, texts)) > _ENUM_TEXT:
            message = f"an enum of more than {_LONG_ENUM} values has more than {_ENUM_TEXT} characters"
            return "too-large", (link, "enum"), message
    if not ("type" in schema or "anyOf" in schema):
        return "strict-untyped", link, "strict mode needs a type; this takes anything"
    given = schema.get("type")
    if given == "object" or (isinstance(given, list) and "object" in given) or "properties" in schema:
        if schema.get("additionalProperties") is not False:
            return "strict-open", link, "strict mode needs additionalProperties to be false"
        properties = schema.get("properties")
        if not isinstance(properties, dict):
            return "strict-open", link, "strict mode needs the properties of every object"
        required = schema.get("required")
        if not isinstance(required, list) or set(required) != properties.keys():
            return "strict-required", link, "strict mode needs every property to be required"
    return None


@define
class Tally:
    """Counts what a profile limits over a whole schema.

    Args:
        rules: the limits.
    """

    rules: SchemaRules
    _properties: int = 0
    _enums: int = 0
    _text: int = 0

    def count(self, schema: dict[str, Any], link: Link, depth: int) -> _Found | None:
        """Add one schema, without those inside it.

        Args:
            schema, link: the schema and where it is.
            depth: the levels of schemas down to it, itself included; branches of a union are on its level.

        Returns:
            The limit that is passed now, or None.
        """
        rules = self.rules
        properties = schema.get("properties")
        if isinstance(properties, dict):
            self._properties += len(properties)
            self._text += sum(map(len, properties))
        values = schema.get("enum")
        if isinstance(values, list):
            self._enums += len(values)
            self._text += sum(len(each) for each in values if isinstance(each, str))
        if isinstance(schema.get("const"), str):
            self._text += len(schema["const"])
        for limit, count, what in (
            (rules.max_depth, depth, "levels deep"),
            (rules.max_properties, self._properties, "properties"),
            (rules.max_enum, self._enums, "values of enums"),
            (rules.max_text, self._text, "characters of names and values of enums"),
        ):
            if limit is not None and count > limit:
                return "too-large", link, f"its input schema has more than {limit} {what}"
        return None
