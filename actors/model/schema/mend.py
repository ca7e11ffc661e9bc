"""The whole of mending: in which order, and what the root must be."""

from __future__ import annotations

from typing import Any

from ..profile import Profile
from .flaw import Unfit
from .fold import folded
from .inline import count, inlined, root_inlined
from .keywords import TYPES, shortened
from .lint import lint
from .notes import Notes
from .strict_form import strictified
from .tidy import tidied

__all__ = ["MAX_MENDED", "mended"]

MAX_MENDED = 20_000
"""How many values a schema may hold and be mended: more than any model reads, and few enough to be done with soon."""


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
    notes = Notes()
    made = _pass(schema, profile, notes, refs=profile.schema.refs)
    flaw = lint(made, profile)
    if flaw is not None and flaw.rule == "ref" and profile.schema.refs:
        # A reference of a kind that not everybody follows.
        notes = Notes()
        made = _pass(schema, profile, notes, refs=False)
        flaw = lint(made, profile)
    if flaw is not None:
        raise Unfit.of(flaw)
    if notes.translated and "$schema" in made:
        # By the draft it names, what was translated would mean nothing.
        made = {key: value for key, value in made.items() if key != "$schema"}
        notes.exact((None, "$schema"), "left out: its keywords are those of draft 2020-12 now")
    return made, notes.lines()
