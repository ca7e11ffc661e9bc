"""What a shell completes when the tab key is pressed: names that the config tells. No server is started for it.

The library calls these while a line is being typed: what is wrong with the config is no matter then, and there is nothing to
complete.
"""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from cyclopts.completion import CompletionContext

    from ..model.config import Config, ServerEntry

__all__ = ["files", "profiles", "servers", "subjects", "tools", "verbs"]

Pairs = Iterator[tuple[str, str]]


def servers(context: CompletionContext) -> Pairs:
    """The servers of the config, each with what it runs."""
    from .listing import what_runs

    for entry in _config(context).servers:
        if _typed(context, entry.name):
            yield entry.name, what_runs(entry)[:60]


def subjects(context: CompletionContext) -> Pairs:
    """The servers, and their tools as far as the config names them: in its lists and pins."""
    yield from servers(context)
    for entry in _config(context).servers:
        yield from _tools(entry, f"{entry.name}/")


def tools(context: CompletionContext) -> Pairs:
    """The tools that the config names of the server that is typed already."""
    typed = context.get("NAME")
    entry = _config(context).get(typed.raw) if typed is not None and typed.raw else None
    if entry is not None:
        yield from _tools(entry, "")


def profiles(context: CompletionContext) -> Pairs:
    """What a catalog can be made for."""
    from ..model.profile import PROFILES

    yield from ((name, "") for name in PROFILES)


def verbs(context: CompletionContext) -> Pairs:
    """The verbs."""
    from .verbs import app

    for name in app:
        if not name.startswith("-"):
            yield name, (app[name].help or "").splitlines()[0]


def files(context: CompletionContext) -> Pairs:
    """The folders and JSON files that go on from what is typed."""
    typed = context.incomplete
    head = typed[: typed.rfind("/") + 1]
    for each in sorted(Path(head or ".").expanduser().iterdir()):
        if each.is_dir():
            yield f"{head}{each.name}/", ""
        elif each.suffix in (".json", ".jsonc"):
            yield f"{head}{each.name}", ""


def _typed(context: CompletionContext, name: str) -> bool:
    """Whether a name can be typed and is not on the line already: where several can be given, none is wanted twice."""
    return _plain(name) and name not in [token.value for token in context.argument.tokens]


def _plain(name: str) -> bool:
    """Whether a shell can be given a name as it is: on one line, with nothing that drives a terminal, and no option."""
    return name.isprintable() and not name.startswith("-")


def _tools(entry: ServerEntry, before: str) -> Pairs:
    from .names import listed

    for bare in listed(entry):
        if _plain(f"{before}{bare}"):
            yield f"{before}{bare}", "" if entry.allows(bare) else "excluded"


def _config(context: CompletionContext) -> Config:
    from .configs import load

    def value(name: str) -> Any:
        typed = context.get(name)
        return None if typed is None else typed.raw

    return load(value("--config"), value("--scope"))
