"""The whole of mending: in which order, and what the root must be."""

from __future__ import annotations

from typing import Any

from ..profile import Profile
from .flaw import Unfit
from .fold import folded
from .hoist import hoisted
from .inline import count, inlined, root_inlined
from .keywords import ANNOTATIONS, IDS, REFS, TYPES, shortened
from .lint import lint
from .notes import Notes
from .pointers import refs_alone
from .strict_form import strictified
from .tidy import tidied

__all__ = ["MAX_MENDED", "mended"]

MAX_MENDED = 20_000
"""How many values a schema may hold and be mended: more than any model reads, and few enough to be done with soon."""


_Made = tuple[dict[str, Any], Notes]
_NOT_FOLLOWED = frozenset({"ref", "ref-dangling", "root-union"})
"""What may be wrong of a schema only because a reference in it is of a kind that needs more than a walk from the root."""


def _rooted(root: dict[str, Any], notes: Notes) -> dict[str, Any]:
    """A schema whose root is an object, where it does not say that it is something else."""
    given = root.get("type")
    if given == "object":
        return root
    names = [given] if isinstance(given, str) else given if isinstance(given, list) else []
    lowered = [name.lower() for name in names if isinstance(name, str)]
    known = [name for name in lowered if name in TYPES]
    if known and "object" not in known:
        message = f'the root of its input schema must be of type "object"; its type is {shortened(given)}'
        raise Unfit("root-type", (None, "type"), message)
    for key in ("enum", "const"):
        values = root.get(key) if key == "enum" else [root[key]] if key in root else None
        if isinstance(values, list) and values and not any(isinstance(each, dict) for each in values):
            raise Unfit("root-type", (None, key), f"its input schema must be an object; its {key} lists none")
    was = f"it was {shortened(given)}" if "type" in root else "it had none"
    # Arguments are always an object, so nothing that can be called is lost.
    notes.exact((None, "type"), f"is now object; {was}")
    rest = {key: value for key, value in root.items() if key != "type"}
    return {"type": "object", **rest}


def _pass(schema: dict[str, Any], profile: Profile, notes: Notes, *, refs: bool) -> dict[str, Any]:
    rules = profile.schema
    if not refs:
        schema = inlined(schema, notes)
    elif isinstance(schema.get("$ref"), str):
        schema = root_inlined(schema, notes)
    schema = tidied(_rooted(schema, notes), rules, notes)
    if not rules.root_unions:
        whole = folded(schema, notes)
        if whole is not schema:
            # Folding brings together what each branch could do without.
            schema = tidied(whole, rules, notes)
    if not rules.properties_key and "properties" not in schema:
        notes.exact(None, "properties: {} is now there")
        schema = {**schema, "properties": {}}
    return strictified(schema, notes) if profile.strict else schema


def _checked(schema: dict[str, Any], profile: Profile, *, refs: bool, notes: Notes | None = None) -> _Made:
    """A schema that keeps all rules.

    Raises:
        Unfit: it cannot be mended that way.
    """
    notes = Notes() if notes is None else notes
    made = _pass(schema, profile, notes, refs=refs)
    flaw = lint(made, profile)
    if flaw is not None:
        raise Unfit.of(flaw)
    return made, notes


def _referring(schema: dict[str, Any], profile: Profile) -> _Made:
    """The same where references may stand: as they are, else inlined, else, where they go round, in ``$defs``."""
    try:
        return _checked(schema, profile, refs=True)
    except Unfit as error:
        if error.flaw.rule not in _NOT_FOLLOWED:
            raise
        first = error
    try:
        # A reference of a kind that not everybody follows.
        return _checked(schema, profile, refs=False)
    except Unfit as error:
        if error.flaw.rule != "ref-cycle":
            raise (first if first.flaw.rule == "root-union" else error) from None
        cycle = error
    try:
        notes = Notes()
        return _checked(hoisted(schema, notes), profile, refs=True, notes=notes)
    except Unfit:
        raise (first if first.flaw.rule == "root-union" else cycle) from None


def _beside_refs(schema: dict[str, Any]) -> bool:
    """Whether anything but annotations stands beside a reference somewhere."""
    stack: list[Any] = [schema]
    while stack:
        each = stack.pop()
        if isinstance(each, dict):
            if isinstance(each.get("$ref"), str) and each.keys() - ANNOTATIONS - REFS - IDS - {"$schema"}:
                return True
            stack.extend(each.values())
        elif isinstance(each, list):
            stack.extend(each)
    return False


def mended(schema: dict[str, Any], profile: Profile) -> tuple[dict[str, Any], tuple[str, ...]]:
    """A schema that keeps the rules of a profile, accepting what the given one accepts as far as they can say it.

    Args:
        schema: of JSON that `judge` lets through; not changed.
        profile: whose rules.

    Returns:
        The schema, and one line for each thing that was changed.

    Raises:
        Unfit: it cannot be mended; why, and where.
    """
    if count(schema) > MAX_MENDED:
        flaw = lint(schema, profile)
        said = "" if flaw is None else f" ({flaw.rule}: {flaw.message})"
        raise Unfit("too-large", None, f"its input schema needs mending{said}, and holds more than {MAX_MENDED} values")
    made, notes = _referring(schema, profile) if profile.schema.refs else _checked(schema, profile, refs=False)
    if notes.translated and refs_alone(made) and _beside_refs(made):
        # In 2020-12, which it is in now, what stands beside a reference would count.
        made, notes = _checked(schema, profile, refs=False)
    if notes.translated and "$schema" in made:
        # By the draft it names, what was translated would mean nothing.
        made = {key: value for key, value in made.items() if key != "$schema"}
        notes.exact((None, "$schema"), "left out: its keywords are those of draft 2020-12 now")
    return made, notes.lines()
