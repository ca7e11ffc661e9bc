"""Keywords that hold what draft 2020-12 does not let them hold: what is plainly meant, or nothing.

A keyword that is left out accepts more than before, never less. What might mean several things is not guessed: a property that
is no schema (``"a": 5``) quarantines its tool.
"""

from __future__ import annotations

from typing import Any

from .flaw import Link, Unfit
from .keywords import ANNOTATIONS, LIST, MAP, SHAPES, TYPES, is_form, shortened
from .merge import both
from .notes import Notes

__all__ = ["repaired", "type_names"]

_TYPE_NAMES = {
    "bool": "boolean",
    "dict": "object",
    "double": "number",
    "float": "number",
    "int": "integer",
    "list": "array",
    "none": "null",
    "str": "string",
}
"""What types are called elsewhere."""


_MOST_SPELLED = 8  # values of a list that a message shows


def _type_name(value: Any) -> str | None:
    if value is None:
        return "null"
    if not isinstance(value, str):
        return None
    name = value.lower()
    name = _TYPE_NAMES.get(name, name)
    return name if name in TYPES else None


def _type(value: Any) -> Any:
    if isinstance(value, str):
        return _type_name(value)
    if not isinstance(value, list) or not value:
        return None
    names = [_type_name(each) for each in value]
    if None in names:
        return None
    distinct = list(dict.fromkeys(names))
    return distinct if len(distinct) > 1 else distinct[0]


def type_names(value: Any) -> tuple[str, ...]:
    """The types that a ``type`` means, as mending reads it; none when it is left out or says nothing that can be read."""
    made = _type(value)
    return () if made is None else (made,) if isinstance(made, str) else tuple(made)


def _required(value: Any) -> Any:
    if not isinstance(value, list):
        return None
    return list(dict.fromkeys(each for each in value if isinstance(each, str)))


def _named_schemas(key: str, value: dict[str, Any], link: Link, notes: Notes) -> dict[str, Any]:
    kept: dict[str, Any] = {}
    for name, schema in value.items():
        if schema is None:
            notes.exact(((link, key), name), "null said nothing; it takes anything")
            schema = {}
        elif not isinstance(schema, (dict, bool)):
            raise Unfit("malformed", ((link, key), name), f"a schema cannot be {shortened(schema)}")
        kept[name] = schema
    return kept


def _listed_schemas(key: str, value: list[Any], link: Link) -> list[Any]:
    for place, schema in enumerate(value):
        if not isinstance(schema, (dict, bool)):
            raise Unfit("malformed", ((link, key), place), f"a schema cannot be {shortened(schema)}")
    return value


def _tuple(schema: dict[str, Any], link: Link, notes: Notes) -> None:
    """The tuples of older drafts: a list of ``items``, and ``additionalItems`` for the rest."""
    value = schema.pop("items")
    rest = schema.pop("additionalItems", None)
    if value and "prefixItems" not in schema:
        schema["prefixItems"] = _listed_schemas("items", value, link)
        notes.translated = True
        notes.exact((link, "items"), "a list of items is now prefixItems")
        if isinstance(rest, (dict, bool)):
            schema["items"] = rest
    else:
        notes.wider((link, "items"), "left out: it cannot be a list")


def _bound(schema: dict[str, Any], key: str, link: Link, notes: Notes) -> None:
    """``exclusiveMaximum: true`` of draft 4, which turns ``maximum`` into an exclusive one."""
    limit = "maximum" if key == "exclusiveMaximum" else "minimum"
    if schema[key] is True and is_form(limit, schema.get(limit, "")):
        schema[key] = schema.pop(limit)
        notes.translated = True
        notes.exact((link, key), f"true, as in draft 4, is now the {limit}")
    else:
        alone = f"true, as in draft 4, says nothing without a {limit}"
        notes.exact((link, key), f"left out: {alone if schema[key] else 'false, as in draft 4, says nothing'}")
        del schema[key]


def _dependencies(schema: dict[str, Any], link: Link, notes: Notes) -> None:
    """``dependencies`` of drafts before 2019: in 2020-12 two keywords, one for names and one for schemas."""
    value = schema.pop("dependencies")
    here = (link, "dependencies")
    if not isinstance(value, dict):
        notes.wider(here, f"left out: it cannot be {shortened(value)}")
        return
    given = schema.get("dependentRequired")
    names: dict[str, list[str]] = {**given} if isinstance(given, dict) else {}
    given = schema.get("dependentSchemas")
    schemas: dict[str, Any] = {**given} if isinstance(given, dict) else {}
    said = False
    for name, each in value.items():
        if isinstance(each, (dict, bool)):
            schemas[name] = both(schemas[name], each) if isinstance(schemas.get(name), (dict, bool)) else each
        else:
            listed = [each] if isinstance(each, str) else each  # one name alone: draft 3
            if not isinstance(listed, list) or not all(isinstance(one, str) for one in listed):
                notes.wider((here, name), f"left out: it cannot be {shortened(each)}")
                continue
            old = names.get(name)
            names[name] = list(dict.fromkeys([*(old if isinstance(old, list) else ()), *listed]))
        said = True
    if names:
        schema["dependentRequired"] = names
    if schemas:
        schema["dependentSchemas"] = schemas
    if said:
        notes.translated = True
        notes.exact(here, "is now dependentRequired and dependentSchemas")


def _spelled(value: Any) -> str:
    """A value for a message, a short list with what it lists."""
    if not isinstance(value, list) or not 0 < len(value) <= _MOST_SPELLED:
        return shortened(value)
    return f"[{', '.join(map(shortened, value))}]"


def repaired(schema: dict[str, Any], link: Link, notes: Notes) -> dict[str, Any]:
    """A schema whose own keywords are all well formed; those inside it are not looked at.

    Args:
        schema: not changed.
        link: where it is.
        notes: is told.

    Returns:
        The same object when nothing is wrong.

    Raises:
        Unfit: ``malformed``, when it cannot be told what is meant.
    """
    wrong = [key for key, value in schema.items() if not is_form(key, value)]
    if not wrong:
        return schema
    out = dict(schema)
    for key in wrong:
        if key not in out or is_form(key, out[key]):
            continue
        value = out[key]
        shape = SHAPES.get(key)
        if key == "items" and isinstance(value, list):
            _tuple(out, link, notes)
            continue
        if key == "dependencies":
            _dependencies(out, link, notes)
            continue
        if key in ("exclusiveMaximum", "exclusiveMinimum") and isinstance(value, bool):
            _bound(out, key, link, notes)
            continue
        made: Any = None
        if key == "type":
            made = _type(value)
        elif key == "required":
            made = _required(value)
        elif shape == MAP and isinstance(value, dict):
            out[key] = _named_schemas(key, value, link, notes)
            continue
        elif shape == LIST and isinstance(value, list) and value:
            _listed_schemas(key, value, link)
        elif shape is not None and value and not isinstance(value, (str, int, float)):
            raise Unfit("malformed", (link, key), f"{key} cannot be {shortened(value)}")
        if made is None:
            note = notes.exact if key in ANNOTATIONS or key == "$schema" else notes.wider
            note((link, key), f"left out: it cannot be {shortened(value)}")
            del out[key]
        else:
            notes.exact((link, key), f"{_spelled(value)} is now {_spelled(made)}")
            out[key] = made
    return out
