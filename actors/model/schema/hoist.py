"""References of any kind turned into the kind that every profile with references takes: to the root, or into ``$defs``.

It is for schemas that refer to themselves, which cannot be inlined: zod writes ``#/properties/node``, others an anchor, or a
name in percents. Each target gets a name in ``$defs``, where it is said again; nothing else changes. Schemas inside that have
an ``$id`` of their own, and references that depend on how they were reached (``$dynamicRef``), are left alone.
"""

from __future__ import annotations

import re
from typing import Any
from urllib.parse import unquote

from .flaw import Link, Unfit
from .inline import MAX_GROWTH, Lookup, count, shape_of
from .keywords import LIST, MAP, SCHEMA, shortened
from .notes import Notes

__all__ = ["hoisted"]

_PLAIN = re.compile(r"[A-Za-z0-9_.-]+")
_ODD = re.compile(r"[^A-Za-z0-9_.-]+")
_LONGEST_NAME = 60
_ANCHORS = frozenset({"$anchor", "$dynamicAnchor", "$recursiveAnchor"})


class _Hoister:
    def __init__(self, root: dict[str, Any]) -> None:
        self.root = root
        self.lookup = Lookup(root)
        self.places: dict[int, str] = {id(root): "#"}  # by identity of a target: the reference to it
        self.waiting: list[tuple[str, Any, Link]] = []  # targets that get a name
        given = root.get("$defs")
        self.taken = set(given) if isinstance(given, dict) else set()
        for key in ("definitions", "$defs"):
            named = root.get(key)
            for name, each in named.items() if isinstance(named, dict) else ():
                if isinstance(each, dict) and _PLAIN.fullmatch(name):
                    self.places[id(each)] = f"#/{key}/{name}"

    def name(self, reference: str) -> str:
        last = unquote(reference).rsplit("/", 1)[-1].rsplit("#", 1)[-1]
        plain = _ODD.sub("_", last)[:_LONGEST_NAME].strip("_") or "part"
        name, number = plain, 1
        while name in self.taken:
            number += 1
            name = f"{plain}_{number}"
        self.taken.add(name)
        return name

    def reference(self, reference: str, link: Link) -> str:
        contents, _ = self.lookup.look_up(reference, link, self.lookup.resolver())
        known = self.places.get(id(contents))
        if known is None:
            name = self.name(reference)
            known = self.places[id(contents)] = f"#/$defs/{name}"
            self.waiting.append((name, contents, link))
        return known

    def walk(self, schema: Any, link: Link) -> Any:
        """A schema with its references turned; ids are for the whole alone."""
        if not isinstance(schema, dict):
            return schema
        out: dict[str, Any] = {}
        for key, value in schema.items():
            shape = shape_of(key, value)
            here = (link, key)
            if key in ("$dynamicRef", "$recursiveRef") or (link is not None and key in ("$id", "id")):
                message = f"its input schema refers to itself, and its {key} keeps that from being said in $defs"
                raise Unfit("ref-cycle", here, message)
            if key == "$ref" and isinstance(value, str):
                out[key] = self.reference(value, here)
            elif key in _ANCHORS:
                continue
            elif shape == SCHEMA:
                out[key] = self.walk(value, here)
            elif shape == MAP and isinstance(value, dict):
                out[key] = {name: self.walk(each, (here, name)) for name, each in value.items()}
            elif shape == LIST and isinstance(value, list):
                out[key] = [self.walk(each, (here, place)) for place, each in enumerate(value)]
            else:
                out[key] = value
        return out


def hoisted(root: dict[str, Any], notes: Notes) -> dict[str, Any]:
    """A schema whose references all go to the root or into its definitions.

    Args:
        root: the schema; not changed.
        notes: is told.

    Raises:
        Unfit: ``ref-cycle`` when a reference or an id in it is not of the simple kind; ``ref-remote``, ``ref-dangling``;
            ``too-large`` when saying the targets again adds too much.
    """
    hoister = _Hoister(root)
    out = hoister.walk(root, None)
    given = out.get("$defs")
    named: dict[str, Any] = dict(given) if isinstance(given, dict) else {}
    grown = 0
    for name, schema, link in hoister.waiting:  # grows while it is read
        grown += count(schema)
        if grown > MAX_GROWTH:
            raise Unfit("too-large", link, "the targets of its references are too large to be said in $defs")
        named[name] = hoister.walk(schema, link)
        notes.exact(link, f"is said in $defs now, as {shortened(name)}")
    return {**out, "$defs": named} if named else out
