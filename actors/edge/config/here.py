"""What an entry comes to on this machine, as it is now: all that it lacks, and what it takes from our environment.

An expansion ends at the first thing that is missing. Here what is missing is made up, one thing after the other, so that a
person is told of all of it at once. Nothing is started, and no value is kept but to be looked at by `check`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping

from attrs import evolve, field, frozen

from ...model.config import ServerEntry
from .expand import NOT_SET, ONLY_AN_EDITOR, Expanded, ExpandError, InputMissing, expand

__all__ = ["Here", "look_here"]

_STAND_IN = "x"
"""The value of what is missing, so that what is missing besides is found too."""

_MOST = 100
"""Things that are missing for one entry: who refers to more has seen enough."""


@frozen
class Here:
    """An entry on this machine.

    Args:
        expanded: what it comes to, made-up values in it where something is missing; None when it comes to nothing.
        lacks: what is missing or wrong, in the order in which it was found.
        taken: where a variable of our environment is referred to, and its name; none that is made up.
    """

    expanded: Expanded | None = field(repr=False)
    lacks: tuple[ExpandError, ...] = ()
    taken: tuple[tuple[str, str], ...] = ()

    def variables(self) -> dict[str, bool]:
        """The variables of our environment that the entry refers to, each once, and whether it is set."""
        found = dict.fromkeys((name for _, name in self.taken), True)
        unset = (each.name for each in self.lacks if each.reason == NOT_SET)
        return found | dict.fromkeys(unset, False)


def look_here(entry: ServerEntry, environ: Mapping[str, str] | None = None) -> Here:
    """Expand an entry with what there is here. Reads its env file; touches nothing else, and never raises.

    Args:
        entry: as written.
        environ: our environment; None for that of the process.
    """
    ours = os.environ if environ is None else environ
    outer = dict(ours)
    inputs: dict[str, str | None] = {}
    lacks: list[ExpandError] = []
    for _ in range(_MOST):
        try:
            done = expand(entry, environ=outer, inputs=inputs)
        except ExpandError as error:
            lacks.append(error)
            if isinstance(error, InputMissing):
                inputs[error.spec.id] = _STAND_IN
            elif error.reason in (NOT_SET, ONLY_AN_EDITOR) and ":" not in error.name and error.name not in outer:
                outer[error.name] = _STAND_IN
            elif error.path == "envFile" and entry.env_file is not None:
                entry = evolve(entry, env_file=None)  # what it sets is unknown
            else:
                break
        else:
            return Here(done, tuple(lacks), tuple(each for each in done.taken if each[1] in ours))
    return Here(None, tuple(lacks))
