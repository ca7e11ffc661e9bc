"""The edits of a configuration, as values, and what each does to a `Config`: pure.

A file editor must bring a text from one whose reading is ``config`` to one whose reading is ``apply_edit(config, edit)``; but a
tool that is the last of an allow-list it may hide by taking it out there.
"""

from __future__ import annotations

from attrs import evolve, frozen

from .config import Config, ServerEntry
from .errors import ServerExists, UnknownServer
from .nearest import nearest

__all__ = ["AddServer", "Edit", "RemoveServer", "SetEnabled", "SetPin", "SetTool", "apply_edit"]


@frozen
class AddServer:
    """Add an entry; ``replace`` says whether one of that name may be there already (it keeps its place)."""

    entry: ServerEntry
    replace: bool = False

    @property
    def server(self) -> str:
        return self.entry.name


@frozen
class RemoveServer:
    """Remove an entry."""

    server: str


@frozen
class SetTool:
    """Enable or disable one tool: enabling edits whichever list hides it."""

    server: str
    bare: str
    on: bool


@frozen
class SetPin:
    """Pin or unpin one tool."""

    server: str
    bare: str
    on: bool


@frozen
class SetEnabled:
    """Let a server run, or keep it configured but not run."""

    server: str
    on: bool


Edit = AddServer | RemoveServer | SetTool | SetPin | SetEnabled


def _with(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    return names if name in names else (*names, name)


def _without(names: tuple[str, ...], name: str) -> tuple[str, ...]:
    return tuple(each for each in names if each != name)


def _edited(entry: ServerEntry, edit: SetTool | SetPin | SetEnabled) -> ServerEntry:
    match edit:
        case SetEnabled(on=on):
            return evolve(entry, disabled=not on)
        case SetPin(bare=bare, on=on):
            return evolve(entry, pin=_with(entry.pin, bare) if on else _without(entry.pin, bare))
        case SetTool(bare=bare, on=True):
            include = entry.include
            if include is not None:
                include = _with(include, bare)
            return evolve(entry, include=include, exclude=_without(entry.exclude, bare))
        case SetTool(bare=bare):
            if not entry.allows(bare):
                return entry
            return evolve(entry, exclude=_with(entry.exclude, bare))


def apply_edit(config: Config, edit: Edit) -> Config:
    """What a configuration is after one edit.

    Args:
        config: before.
        edit: one of this module's values.

    Returns:
        The configuration after it; the very same object when it changes nothing.

    Raises:
        ServerExists: an added name is there and ``replace`` is False.
        UnknownServer: the name is not configured.
    """
    there = config.get(edit.server)
    if isinstance(edit, AddServer):
        if there is None:
            return evolve(config, servers=(*config.servers, edit.entry))
        if not edit.replace:
            raise ServerExists(edit.server, config.path)
        return evolve(config, servers=tuple(edit.entry if e is there else e for e in config.servers))
    if there is None:
        raise UnknownServer(edit.server, nearest(edit.server, (e.name for e in config.servers)), config.path)
    if isinstance(edit, RemoveServer):
        return evolve(config, servers=tuple(e for e in config.servers if e is not there))
    after = _edited(there, edit)
    if after == there:
        return config
    return evolve(config, servers=tuple(after if e is there else e for e in config.servers))
