"""What servers advertise that some provider refuses."""

from __future__ import annotations

from typing import Any

from playbill.actors.model.status import ToolDef

TEXT = {"type": "string"}

NASTY_SCHEMAS: dict[str, dict[str, Any]] = {
    "root union": {"type": "object", "anyOf": [{"properties": {"a": TEXT}}, {"properties": {"b": TEXT}}]},
    "refs": {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"type": "object", "properties": {"x": TEXT}}},
    },
    "cycle": {
        "type": "object",
        "properties": {"a": {"$ref": "#/$defs/A"}},
        "$defs": {"A": {"type": "object", "properties": {"next": {"$ref": "#/$defs/A"}}}},
    },
    "dangling": {"type": "object", "properties": {"a": {"$ref": "#/$defs/None"}}},
    "booleans": {"type": "object", "properties": {"a": True, "b": {"type": "array", "items": True}}},
    "required null": {"type": "object", "properties": {"a": TEXT}, "required": None},
    "required unknown": {"type": "object", "properties": {"a": TEXT}, "required": ["a", "b", "a"]},
    "no properties": {"type": "object"},
    "no type": {"properties": {"a": TEXT}},
    "not an object": {"type": "array", "items": TEXT},
    "bare array": {"type": "object", "properties": {"a": {"type": "array"}, "b": {"type": ["array", "null"]}}},
    "untyped": {"type": "object", "properties": {"a": {"enum": ["x", "y"]}, "b": {"properties": {"c": TEXT}}}},
    "key with spaces": {"type": "object", "properties": {"a b": TEXT, "$c": TEXT, "é": TEXT, "": TEXT}},
    "empty union": {"type": "object", "properties": {"a": {"anyOf": []}, "b": {"enum": []}}},
    "malformed": {"type": "object", "properties": {"a": "string", "b": {"type": "str"}, "c": None}},
    "old draft": {
        "$schema": "http://json-schema.org/draft-04/schema#",
        "id": "http://example.invalid/s",
        "type": "object",
        "definitions": {"A": TEXT},
        "properties": {"a": {"$ref": "#/definitions/A"}, "n": {"type": "integer", "exclusiveMinimum": True}},
    },
    "nullable": {"type": "object", "properties": {"a": {"type": "string", "nullable": True, "default": None}}},
    "closed": {"type": "object", "properties": {"a": TEXT}, "required": ["a"], "additionalProperties": False},
    "map": {"type": "object", "properties": {"a": {"type": "object", "additionalProperties": {"type": "number"}}}},
    "tuple": {"type": "object", "properties": {"a": {"type": "array", "items": [TEXT, {"type": "number"}]}}},
}

NASTY_TOOLS = [
    *(ToolDef(name, description=f"Has: {name}.", input_schema=schema) for name, schema in NASTY_SCHEMAS.items()),
    ToolDef("no description", input_schema={"type": "object"}),
    ToolDef("mcp__nasty__twice", description="Named as if it were ours."),
    ToolDef("Case", description="Upper."),
    ToolDef("case", description="Lower."),
    ToolDef("line\nend\x00\u202e", title="\u200b", description="Hostile\x00 name."),
    ToolDef("\ud800", description="No Unicode."),
    ToolDef("deep", description="Deep.", input_schema={"type": "object", "properties": {"a": TEXT}}),
]
