"""The reference of the public names: which they are, for Sphinx's autodoc to fill from the docstrings."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from types import ModuleType

import playbill.actors
import playbill.actors.picker
import playbill.actors.picker.values
import playbill.actors.testing
import playbill.supervision
import playbill.supervision.testing

from .pages import Undocumented, page

__all__ = ["VALUES", "api_page"]

VALUES: Mapping[str, str] = {
    "playbill.actors.PORTABLE": "The profile of a host that is told no other: what every provider takes.",
    "playbill.actors.PROFILES": "The profiles by name, for ``open_host(profile=…)``.",
    "playbill.actors.picker.PALETTE": "The styles of the picker, to be registered with urwid's screen.",
    "playbill.actors.picker.values.Check": "``on``, ``off``, or a wish under way: ``pending-on``, ``pending-off``.",
    "playbill.actors.picker.values.Dialog": "What can be open over the list: any of the dialogs.",
    "playbill.actors.picker.values.Event": "What `reduce` is told: any of the events.",
    "playbill.actors.picker.values.Identity": "What a row is of, whatever else changes, such as ``('tool', 'files', 'read')``.",
    "playbill.actors.picker.values.Operation": "What `reduce` asks for: any of the operations; each is answered by its id.",
    "playbill.actors.picker.values.Row": "What `visible` holds: any of the rows.",
    "playbill.actors.picker.values.Tone": "How a server is, for a colour: ``good``, ``busy``, ``ask``, ``bad``, ``off``.",
    "playbill.supervision.testing.Verdict": "``ok``, ``crash`` or ``liveness``: how a simulation came to its end.",
}
"""What a public value is: unlike a class or a function it has no docstring."""


def _directive(module: ModuleType, name: str) -> str:
    thing = getattr(module, name)
    path = f"{module.__name__}.{name}"
    if inspect.isclass(thing):
        # A name that two packages offer is described in both, and indexed once: a reference in words is to one of them.
        again = module in (playbill.actors, playbill.actors.picker.values) and name in playbill.supervision.__all__
        # What a host can do is written in two classes.
        whole = "   :inherited-members:\n" if thing is playbill.actors.Host else ""
        return f".. autoclass:: {path}\n   :members:\n{whole}" + ("   :no-index:\n" if again else "")
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
        _part(playbill.actors.picker, "The picker, to be embedded or drawn anew: see [the picker](../picker.md)."),
        _part(playbill.actors.picker.values, "What its `reduce` takes and returns, and its rows."),
        _part(playbill.supervision, "Actors under supervisors, by themselves: see [supervision](../supervision.md)."),
        _part(playbill.actors.testing, "Servers that fail on purpose: see [testing](../testing.md)."),
        _part(playbill.supervision.testing, "A trio program as a function of a seed: see [testing](../testing.md)."),
    )
