"""What each provider takes as ``tools``, written as a JSON Schema of that field, apart from the code that mends and lints.

`violations` runs it with `jsonschema`, and what no JSON Schema says (regular expressions, values against their type) as plain
checks of each schema in it; nothing here imports what it checks.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from functools import cache
from typing import Any

NAME = r"^[A-Za-z0-9_-]{1,64}\Z"
GEMINI_NAME = r"^[A-Za-z_][A-Za-z0-9_-]{0,62}\Z"
PORTABLE_NAME = GEMINI_NAME
KEY = r"^[A-Za-z0-9_.-]{1,64}\Z"
PARAMETERS = {"parameters", "input_schema", "parametersJsonSchema", "json", "inputSchema"}
ONE_SCHEMA = {
    *("items", "contains", "not", "if", "then", "else", "propertyNames", "contentSchema"),
    *("additionalProperties", "unevaluatedProperties", "unevaluatedItems"),
}
UNIONS = ("anyOf", "oneOf", "allOf", "$ref")
LOOKAROUND = re.compile(r"\(\?<?[=!]")
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


def parameters_of(tools: Any) -> Iterator[Any]:
    """The schemas of the arguments of all tools, whatever the provider wraps them in."""
    for each in tools if isinstance(tools, list) else [tools]:
        for key, value in each.items():
            if key in PARAMETERS and isinstance(value, dict) and "type" in value:
                yield value
            elif key in ("function", "functionDeclarations", "toolSpec", "inputSchema"):
                yield from parameters_of(value)


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """A schema and all inside it: by where JSON Schema has schemas, so that data in it is left alone."""
    if not isinstance(schema, dict):
        return
    yield schema
    for key, value in schema.items():
        if key in ("properties", "patternProperties", "dependentSchemas", "$defs", "definitions"):
            inner = list(value.values())
        elif key in ("anyOf", "oneOf", "allOf", "prefixItems"):
            inner = value
        elif key in ONE_SCHEMA:
            inner = [value]
        else:
            inner = []
        for each in inner:
            yield from nodes(each)


def odd_patterns(node: dict[str, Any]) -> Iterator[str]:
    """The regular expressions that OpenAI refuses: with lookaround, or which do not compile."""
    for pattern in [*([node["pattern"]] if "pattern" in node else ()), *node.get("patternProperties", ())]:
        if LOOKAROUND.search(re.sub(r"\\.", "", pattern)):
            yield f"lookaround in {pattern[:100]!r}"
        try:
            re.compile(pattern)
        except (re.error, OverflowError) as error:
            yield f"{pattern[:100]!r} does not compile: {error}"


def stray_values(node: dict[str, Any]) -> Iterator[str]:
    """The listed values that are not of the type beside them."""
    from jsonschema import Draft202012Validator

    if "type" in node:
        of_type = Draft202012Validator({"type": node["type"]})
        for value in [*node.get("enum", ()), *([node["const"]] if "const" in node else ())]:
            if not of_type.is_valid(value):
                yield f"{value!r:.100} is not of type {node['type']!r}"


def untyped(node: dict[str, Any], strict: bool) -> Iterator[str]:
    """A schema that lists values, or any at all in strict mode, and says no type."""
    if "type" in node or any(key in node for key in (("anyOf",) if strict else UNIONS)):
        return
    if strict or "enum" in node or "const" in node:
        yield f"no type: {node!r:.100}"


def violations(provider: str, tools: Any, *, portable: bool = False, strict: bool = False) -> list[str]:
    """What of a provider's rules its ``tools`` break, one line each."""
    from jsonschema import Draft202012Validator

    schema = field(provider, portable=portable, strict=strict)
    found = [f"{each.json_path}: {str(each.message)[:300]}" for each in Draft202012Validator(schema).iter_errors(tools)]
    if provider == "mcp" and not portable:
        return found
    meta = Draft202012Validator(Draft202012Validator.META_SCHEMA)
    openai = portable or strict or provider.startswith("openai")
    for parameters in parameters_of(tools):
        malformed = [f"{each.json_path}: {str(each.message)[:300]}" for each in meta.iter_errors(parameters)]
        found += malformed
        for node in [] if malformed else nodes(parameters):
            if openai:
                found += odd_patterns(node)
            if openai or provider == "gemini":
                found += stray_values(node)
            if portable or strict or provider == "gemini":
                found += untyped(node, strict)
    return found
