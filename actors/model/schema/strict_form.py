"""A schema as OpenAI's strict mode wants it: every property required, no others, and only the keywords it knows.

What was optional takes null instead, and `unstrict` leaves that null out of the call. What it cannot say at all (maps with
any keys, values of any type) quarantines the tool, alone; constraints it cannot say are left out, and said.
"""

from __future__ import annotations

from typing import Any

from .agree import agreed
from .flaw import Link, Unfit
from .fold import folded
from .keywords import ANNOTATIONS, TYPES, inferred_type
from .merge import both, either, joined
from .notes import Notes
from .strict_rules import STRICT_FORMATS, STRICT_KEYWORDS

__all__ = ["strictified"]

_UNIONS = frozenset({"allOf", "oneOf"})


def _has(schema: dict[str, Any], name: str) -> bool:
    given = schema.get("type")
    return given == name or (isinstance(given, list) and name in given)


def _takes_null(schema: dict[str, Any]) -> bool:
    """Whether a schema in strict form takes null."""
    if "type" in schema and not _has(schema, "null"):
        return False
    if "const" in schema and schema["const"] is not None:
        return False
    if isinstance(schema.get("enum"), list) and None not in schema["enum"]:
        return False
    branches = schema.get("anyOf")
    return not isinstance(branches, list) or any(_takes_null(each) for each in branches)


def _nullable(schema: dict[str, Any]) -> dict[str, Any]:
    if _takes_null(schema):
        return schema
    if "anyOf" in schema and not schema.keys() - {"anyOf", "description", "title"}:
        return {**schema, "anyOf": [*schema["anyOf"], {"type": "null"}]}
    if "type" not in schema or "anyOf" in schema or "const" in schema:
        outside = {key: value for key, value in schema.items() if key in ("description", "title")}
        inside = {key: value for key, value in schema.items() if key not in outside}
        return {**outside, "anyOf": [inside, {"type": "null"}]}
    given = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    out = {**schema, "type": given if "null" in given else [*given, "null"]}
    if "enum" in schema and None not in schema["enum"]:
        out["enum"] = [*schema["enum"], None]
    return out


class _Stricter:
    def __init__(self, notes: Notes) -> None:
        self.notes = notes

    def united(self, schema: dict[str, Any], link: Link) -> dict[str, Any]:
        """Without ``allOf`` and ``oneOf``."""
        if "allOf" in schema:
            parts = schema["allOf"]
            schema = {key: value for key, value in schema.items() if key != "allOf"}
            apart: list[Any] = []
            for part in parts:
                if isinstance(part, dict):
                    part = {key: value for key, value in part.items() if key not in ANNOTATIONS or key not in schema}
                whole = joined(part, schema)
                if isinstance(whole, dict) and "allOf" not in whole:
                    schema = whole
                else:
                    apart.append(part)
            if any(_has(each, "object") for each in (schema, *apart) if isinstance(each, dict)) and apart:
                schema = folded({"type": "object", **schema, "allOf": apart}, self.notes, link)
            else:
                for _ in apart:
                    self.notes.wider((link, "allOf"), "a part is left out: strict mode has no allOf")
        if "oneOf" in schema:
            branches = schema["oneOf"]
            schema = {key: value for key, value in schema.items() if key != "oneOf"}
            whole = both(schema, {"anyOf": branches})
            if "allOf" in whole:
                self.notes.wider((link, "oneOf"), "left out: strict mode has no second union")
            else:
                self.notes.wider((link, "oneOf"), "is now anyOf")
                schema = whole
        return schema

    def schema(self, schema: dict[str, Any], link: Link) -> dict[str, Any]:
        """One schema and all inside it."""
        if schema.get("nullable") is not True or link is None:
            return self.form(schema, link)
        # OpenAPI 3.0, whose word for null strict mode does not know.
        made = self.form({key: value for key, value in schema.items() if key != "nullable"}, link)
        self.notes.wider((link, "nullable"), "is now said by its type: null")
        return _nullable(made)

    def form(self, schema: dict[str, Any], link: Link) -> dict[str, Any]:
        for _ in range(len(TYPES) * 8):
            if not schema.keys() & _UNIONS:
                break
            schema = self.united(schema, link)
        if "prefixItems" in schema:
            schema = self.mixed(schema, link)
        out: dict[str, Any] = {}
        for key, value in schema.items():
            if key in STRICT_KEYWORDS and (key != "format" or value in STRICT_FORMATS):
                out[key] = value
            elif key == "patternProperties" and value:
                raise Unfit("strict-map", (link, key), "strict mode cannot say properties by pattern")
            else:
                self.notes.wider((link, key), "left out: strict mode does not know it")
        if isinstance(out.get("items"), dict) and (_has(out, "array") or "type" not in out):
            out["items"] = self.schema(out["items"], (link, "items"))
        else:
            out.pop("items", None)
        if "anyOf" in out:
            out["anyOf"] = [self.schema(each, ((link, "anyOf"), place)) for place, each in enumerate(out["anyOf"])]
        if _has(out, "object") or "properties" in out:
            out = self.closed(out, link)
        else:
            for key in ("additionalProperties", "required"):
                if key in out:
                    self.notes.wider(
                        (link, key), "left out: it is said of an object, and this says of none that it is one"
                    )
                    del out[key]
        if "type" not in out:
            kind = inferred_type(out)
            if kind is not None:
                out = {"type": kind, **out}
        out = agreed(out, link, self.notes)
        if not out.keys() & {"type", "anyOf"}:
            raise Unfit("strict-untyped", link, "strict mode needs a type; this takes anything")
        return out

    def mixed(self, schema: dict[str, Any], link: Link) -> dict[str, Any]:
        """A tuple as an array of any of its items."""
        rest = schema.get("items")
        listed = [*schema["prefixItems"]]
        if isinstance(rest, dict) and rest.keys() - ANNOTATIONS:
            listed.append(rest)
            self.notes.wider((link, "prefixItems"), "is now items, in any order")
        else:
            self.notes.narrower((link, "prefixItems"), "is now items, in any order, and there are no others")
        kept = {key: value for key, value in schema.items() if key != "prefixItems"}
        return {**kept, "items": either(listed)}

    def closed(self, schema: dict[str, Any], link: Link) -> dict[str, Any]:
        """An object with all of its properties required and no others."""
        rest = schema.get("additionalProperties")
        properties = schema.get("properties")
        if isinstance(rest, dict) or (rest is True and link is not None):
            message = "strict mode cannot say an object of any keys"
            raise Unfit("strict-map", (link, "additionalProperties"), message)
        if not isinstance(properties, dict) or not properties:
            if rest is not False and link is not None:
                raise Unfit("strict-map", link, "strict mode cannot say an object of any keys")
            properties = {}
        if rest is not False:
            self.notes.narrower(link, "takes no other properties now, as strict mode wants")
        required = schema.get("required", ())
        made: dict[str, Any] = {}
        for name, value in properties.items():
            place = ((link, "properties"), name)
            strict = self.schema(value, place)
            if name not in required:
                nullable = _nullable(strict)
                if nullable is not strict:
                    self.notes.wider(place, "is required now, and may be null instead of left out")
                strict = nullable
            made[name] = strict
        return {**schema, "properties": made, "required": list(made), "additionalProperties": False}


def strictified(schema: dict[str, Any], notes: Notes) -> dict[str, Any]:
    """A schema in the form that strict mode takes.

    Args:
        schema: a root that keeps all other rules of a strict profile; not changed.
        notes: is told.

    Raises:
        Unfit: ``strict-map`` or ``strict-untyped``, when strict mode cannot say it.
    """
    return _Stricter(notes).schema(schema, None)
