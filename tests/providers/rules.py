"""What each provider takes as ``tools``, written as a JSON Schema of that field, apart from the code that mends and lints.

`violations` runs it with `jsonschema`; nothing here imports what it checks.
"""

from __future__ import annotations

from functools import cache
from typing import Any

NAME = r"^[A-Za-z0-9_-]{1,64}\Z"
GEMINI_NAME = r"^[A-Za-z_][A-Za-z0-9_-]{0,62}\Z"
PORTABLE_NAME = GEMINI_NAME
KEY = r"^[A-Za-z0-9_.-]{1,64}\Z"
NOT_AT_THE_ROOT = ("oneOf", "anyOf", "allOf", "enum", "const", "not")
REFERENCES = ("$ref", "$dynamicRef", "$recursiveRef", "$defs", "definitions")

IS_ARRAY = {
    "required": ["type"],
    "properties": {"type": {"anyOf": [{"const": "array"}, {"type": "array", "contains": {"const": "array"}}]}},
}


def _none_of(*keys: str) -> dict[str, Any]:
    return {"not": {"anyOf": [{"required": [key]} for key in keys]}}


def _node(*, references: bool, booleans: bool, items: bool, keys: str | None, strict: bool) -> dict[str, Any]:
    """A schema at any depth."""
    here = {"$ref": "#/$defs/node"}
    properties: dict[str, Any] = {"type": "object", "additionalProperties": here}
    if keys is not None:
        properties["propertyNames"] = {"pattern": keys}
    several = {"type": "array", "minItems": 1, "items": here}
    open_or_closed = {"anyOf": [{"type": "boolean"}, here]}
    rules: dict[str, Any] = {
        "type": "object",
        "properties": {
            "properties": properties,
            "patternProperties": {"type": "object", "additionalProperties": here},
            "additionalProperties": open_or_closed,
            "unevaluatedProperties": open_or_closed,
            "items": here,
            "prefixItems": several,
            "contains": here,
            "anyOf": several,
            "oneOf": several,
            "allOf": several,
            "not": here,
            "if": here,
            "then": here,
            "else": here,
            "required": {"type": "array", "items": {"type": "string"}, "uniqueItems": True},
            "enum": {"type": "array", "minItems": 1},
            "description": {"type": "string"},
        },
    }
    every = [rules]
    if not references:
        every.append(_none_of(*REFERENCES))
    if items:
        every.append({"if": IS_ARRAY, "then": {"required": ["items"]}})
    if strict:
        closed = {"required": ["additionalProperties"], "properties": {"additionalProperties": {"const": False}}}
        is_object = {"required": ["properties"]}
        every.append({"if": is_object, "then": closed})
    schema: dict[str, Any] = {"allOf": every}
    return {"anyOf": [{"type": "boolean"}, schema]} if booleans else schema


def _parameters(*, root_unions: bool, properties: bool = False, keys: str | None = None) -> dict[str, Any]:
    """The schema of a tool's arguments: the root."""
    root: dict[str, Any] = {"type": "object", "required": ["type"], "properties": {"type": {"const": "object"}}}
    if properties:
        root["required"] = ["type", "properties"]
    if keys is not None:
        root["properties"]["properties"] = {"propertyNames": {"pattern": keys}}
    every = [root, {"$ref": "#/$defs/node"}]
    if not root_unions:
        every.append(_none_of(*NOT_AT_THE_ROOT))
    return {"allOf": every}


def _closed(required: list[str], **properties: Any) -> dict[str, Any]:
    return {"type": "object", "required": required, "properties": properties, "additionalProperties": False}


TEXT = {"type": "string"}
SAID = {"type": "string", "pattern": r"\S"}


@cache
def field(provider: str, *, portable: bool = False, strict: bool = False) -> Any:
    """The JSON Schema of a provider's ``tools``; with `portable`, its tools must suit every other provider too."""
    plain = {
        "openai": _parameters(root_unions=False, properties=True),
        "openai-responses": _parameters(root_unions=False, properties=True),
        "anthropic": _parameters(root_unions=False, keys=KEY),
        "bedrock": _parameters(root_unions=False, keys=KEY),
        "gemini": _parameters(root_unions=False),
        "mcp": {"type": "object", "required": ["type"], "properties": {"type": {"const": "object"}}},
    }
    parameters = _parameters(root_unions=False, properties=True, keys=KEY) if portable else plain[provider]
    name = {"type": "string", "pattern": PORTABLE_NAME if portable else GEMINI_NAME if provider == "gemini" else NAME}
    if provider == "mcp" and not portable:
        name = {"type": "string", "minLength": 1}
    text = SAID if portable or provider == "bedrock" else TEXT
    described = ["description"] if portable or provider == "bedrock" else []
    switch = {"const": True} if strict else {"const": False}
    tool: dict[str, Any]
    if provider == "openai":
        function = _closed(["name", "parameters", *described], name=name, description=text, parameters=parameters)
        if strict:
            function["required"].append("strict")
        function["properties"]["strict"] = switch
        tool = _closed(["type", "function"], type={"const": "function"}, function=function)
    elif provider == "openai-responses":
        required = ["type", "name", "parameters", "strict", *described]
        kind = {"const": "function"}
        tool = _closed(required, type=kind, name=name, description=text, parameters=parameters, strict=switch)
    elif provider == "anthropic":
        tool = _closed(["name", "input_schema", *described], name=name, description=text, input_schema=parameters)
    elif provider == "gemini":
        required = ["name", "parametersJsonSchema", *described]
        function = _closed(required, name=name, description=text, parametersJsonSchema=parameters)
        functions = {"type": "array", "minItems": 1, "maxItems": 128, "items": function}
        tool = _closed(["functionDeclarations"], functionDeclarations=functions)
    elif provider == "bedrock":
        schema = _closed(["json"], json=parameters)
        tool = _closed(
            ["toolSpec"],
            toolSpec=_closed(["name", "description", "inputSchema"], name=name, description=text, inputSchema=schema),
        )
    else:
        tool = _closed(
            ["name", "inputSchema", *described], name=name, title=TEXT, description=text, inputSchema=parameters
        )
    whole: dict[str, Any] = {"type": "array", "items": tool, "$defs": {"node": True}}
    if provider != "mcp" or portable:
        whole["$defs"]["node"] = _node(
            references=not portable and not strict,
            booleans=not portable and not strict and provider != "gemini",
            items=portable or strict or provider.startswith(("openai", "gemini")),
            keys=KEY if portable else None,
            strict=strict,
        )
    if provider.startswith("openai"):
        whole["maxItems"] = 128
    return whole


def violations(provider: str, tools: Any, *, portable: bool = False, strict: bool = False) -> list[str]:
    """What of a provider's rules its ``tools`` break, one line each."""
    from jsonschema import Draft202012Validator

    schema = field(provider, portable=portable, strict=strict)
    return [f"{each.json_path}: {str(each.message)[:300]}" for each in Draft202012Validator(schema).iter_errors(tools)]
