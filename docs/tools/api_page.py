"""The reference of the public names: which they are, for Sphinx's autodoc to fill from the docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import ModuleType

import playbill.actors
import playbill.actors.testing
import playbill.supervision
import playbill.supervision.testing

from .pages import Undocumented, page

__all__ = ["VALUES", "api_page"]

VALUES: Mapping[str, str] = {
    "playbill.actors.PORTABLE": "The profile of a host that is told no other: what every provider takes.",
    "playbill.actors.PROFILES": "The profiles by name, for ``open_host(profile=…)``.",
    "playbill.supervision.testing.Verdict": "``ok``, ``crash`` or ``liveness``: how a simulation came to its end.",
}
"""What a public value is: unlike a class or a function it has no docstring."""


def _directive(module: ModuleType, name: str) -> str:
    thing = getattr(module, name)
    path = f"{module.__name__}.{name}"
    if inspect.isclass(thing):
        # What two packages offer is described once more, and indexed once.
        again = module is playbill.actors and name in playbill.supervision.__all__
        return f".. autoclass:: {path}\n   :members:\n" + ("   :no-index:\n" if again else "")
    if inspect.isfunction(thing):
        return f".. autofunction:: {path}\n"
    if path not in VALUES:
        raise Undocumented(f"{path}: see VALUES in docs/tools/api_page.py")
    return f".. py:data:: {path}\n\n   {VALUES[path]}\n"


def _part(module: ModuleType, heading: str) -> str:
    body = "\n".join(_directive(module, name) for name in module.__all__)
    return f"## `{module.__name__}`\n\n{heading}\n\n```{{eval-rst}}\n{body}```"


def api_page() -> str:
    """The page, as it is to be."""
    return page(
        "# API reference",
        "The public names, from their docstrings. Everything that is not listed may change.",
        _part(playbill.actors, "What a program that embeds Playbill uses."),
        _part(playbill.supervision, "Actors under supervisors, by themselves: see [supervision](../supervision.md)."),
        _part(playbill.actors.testing, "Servers that fail on purpose: see [testing](../testing.md)."),
        _part(playbill.supervision.testing, "A trio program as a function of a seed: see [testing](../testing.md)."),
    )
