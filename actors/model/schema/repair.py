"""Keywords that hold what draft 2020-12 does not let them hold: what is plainly meant, or nothing.

A keyword that is left out accepts more than before, never less. What might mean several things is not guessed: a property that
is no schema (``"a": 5``) quarantines its tool.
"""

from __future__ import annotations

from typing import Any

from .flaw import Link, Unfit
from .keywords import LIST, MAP, SHAPES, TYPES, is_form, shortened
from .notes import Notes

__all__ = ["repaired"]

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
        notes.exact((link, key), f"true, as in draft 4, is now the {limit}")
    else:
        notes.exact((link, key), "left out: false, as in draft 4, says nothing")
        del schema[key]


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
            notes.wider((link, key), f"left out: it cannot be {shortened(value)}")
            del out[key]
        else:
            notes.exact((link, key), f"{shortened(value)} is now {shortened(made)}")
            out[key] = made
    return out
