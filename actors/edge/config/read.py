"""From the text of a configuration file to a `Config`, and to the places of its entries for the editor.

Theory of operation. The root object is walked member by member; the server map inside it too, so that the text of each entry
is known. A `Reader` remembers per name the text, and what it was read as: an entry whose text stands there again is neither
parsed nor structured again, and is the very same `ServerEntry`. So a re-read costs one walk. (Such an entry keeps the ``line``
at which it was first read; where lists hide tools, `Config.line` says where it stands now. One that is wrong is placed anew
each time.)

A file that cannot be read at all is a `ConfigError`; an entry that is wrong fails alone: it is in the result, with its
``error``.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Collection, Mapping
from typing import Any, NamedTuple

from attrs import evolve, frozen

from ...model.config import Config, InputSpec, Places, ServerEntry
from ...model.errors import ConfigError
from .entry import EntryRead, Problem, looks_like_server, read_entry
from .inputs import read_inputs
from .jsonc import Source, scan
from .jsonc_walk import Member, Nested, finish, locate, members, root, show_path
from .places import FilePlaces
from .shape import SERVER_KEYS, all_twice, lines_of, looks_confused, no_servers, not_a_map, other_format, twice

__all__ = ["Document", "Reader", "Trusts", "read_config"]

_INPUTS = "inputs"

Trusts = Callable[[ServerEntry], bool]
"""Whether an entry may be started without asking."""


class _Kept(NamedTuple):
    """What an entry's text was read as. The first two are what `members` wants."""

    text: str
    value: Any
    read: EntryRead
    entry: ServerEntry


@frozen(eq=False)
class Document:
    """A configuration's text, read.

    Args:
        source: the text.
        root: the members of the root object.
        key: the key of the server map; None for a bare map, and when there is no server key.
        bare: the root itself is the server map.
        at: the offset of the server map; None when there is none (or null).
        entries: its members, those of a name that occurs twice included.
        config: what it says.
    """

    source: Source
    root: list[Member]
    key: str | None
    bare: bool
    at: int | None
    entries: list[Member]
    config: Config

    def member(self, name: str) -> Member | None:
        """The entry of that name, by its place; None also when it is there twice."""
        found = [each for each in self.entries if each.key == name]
        return found[0] if len(found) == 1 else None


class Reader:
    """Reads one file again and again.

    Args:
        file: its path, for errors and as the entries' ``source``; None for a text without a file.
        trusts: asked for each entry that starts a process; None trusts all.
    """

    def __init__(self, file: str | None = None, trusts: Trusts | None = None) -> None:
        self._file = file
        self._trusts = trusts
        self._kept: Mapping[str, _Kept] = {}

    def read(self, text: str, previous: Config | None = None) -> Document:
        """Read a text.

        Args:
            text: the whole of it.
            previous: entries equal to its entries are the same objects in the result.

        Raises:
            ConfigError: it is not JSONC, has another shape, or its server map is there twice.
        """
        source = scan(text, self._file)
        start = _root(source)
        known = self._kept
        top, end = members(source, start, known, SERVER_KEYS)
        finish(source, end)
        key = self._server_key(source, top)
        bare = key is None and any(looks_like_server(each.value) for each in top)
        warnings: list[str] = []
        at: int | None = None
        entries: list[Member] = []
        if key is not None:
            there = next(each for each in top if each.key == key)
            if there.value is not None:
                at, entries = there.at, there.value
        elif bare:
            at = start
            entries = [each for each in top if isinstance(each.value, dict)]
        else:
            warnings.append(no_servers(source, top))
        warnings += self._beside(source, top, key, bare)
        declared, wrong = _inputs(top, bare)
        config = self._config(source, key, entries, declared, warnings + wrong, previous)
        return Document(source, top, key, bare, at, entries, config)

    def _server_key(self, source: Source, top: list[Member]) -> str | None:
        """Which key holds the servers: the first that is there, one whose value is null only for want of another."""
        null: str | None = None
        for key in SERVER_KEYS:
            there = [each for each in top if each.key == key]
            if len(there) > 1:
                raise source.fail(all_twice(source), there[1].start, key)
            if there and isinstance(there[0].value, Nested):
                return key
            if there and there[0].value is None:
                null = null or key
            elif there:
                raise source.fail(not_a_map(key, there[0].value), there[0].at, key)
        return null

    def _beside(self, source: Source, top: list[Member], key: str | None, bare: bool) -> list[str]:
        """What to warn of among the other keys of the root."""
        out = []
        keys = [each.key for each in top]
        if not bare and len(set(keys)) < len(keys):
            out += [
                f"{show_path((name,))}: this key is there twice ({lines_of(source, there)})"
                for name, there in twice(top).items()
            ]
        if key == SERVER_KEYS[0] and SERVER_KEYS[1] in keys:
            out.append(f"{SERVER_KEYS[1]}: not read, because {key} is there too")
        if key is not None:
            confused = [each.key for each in top if each.key not in SERVER_KEYS and looks_confused(each)]
            out += [f"{show_path((name,))}: not read, because {key} is there too" for name in dict.fromkeys(confused)]
        if bare:
            out += [
                f"{show_path((each.key,))}: not read as a server: it has neither a command nor a url"
                for each in top
                if (isinstance(each.value, list) and each.key != _INPUTS)
                or (each.value is None and each.key in SERVER_KEYS)
            ]
        return out

    def _config(
        self,
        source: Source,
        key: str | None,
        found: list[Member],
        declared: tuple[InputSpec, ...],
        warnings: list[str],
        previous: Config | None,
    ) -> Config:
        text = source.text
        eol = "\n" if "\n" in text else "\r"
        prefix: tuple[str, ...] = () if key is None else (key,)
        kept: dict[str, _Kept] = {}
        entries: dict[str, ServerEntry] = {}
        line_at, line = 0, 1
        before = self._kept
        was = previous.servers if previous is not None else ()
        again: dict[str, list[Member]] | None = None
        for i, each in enumerate(found):
            name = each.key
            if name in entries:
                again = twice(found) if again is None else again
                if there := again.pop(name, None):
                    entries[name] = _twice(source, prefix, entries[name], there)
                kept.pop(name, None)
                continue
            old = before.get(name)
            line += text.count(eol, line_at, each.start)
            line_at = each.start
            if old is not None and each.value is old.value:
                raw, read, entry = old.text, old.read, old.entry
                if entry.inputs != declared:
                    entry = evolve(entry, inputs=declared)
            else:
                raw = text[each.at : each.end]
                read = read_entry(name, each.value, source=self._file, line=line, inputs=declared)
                entry = read.entry
                if read.problems:
                    entry = evolve(entry, error=_errors(source, prefix, each, read.problems))
            if self._trusts is not None and entry.starts_something:
                trusted = self._trusts(entry)
                if trusted != entry.trusted:
                    entry = evolve(entry, trusted=trusted)
            if previous is not None and not (i < len(was) and was[i] is entry):
                entry = _reuse(previous.get(name), entry)
            if read.warnings:
                warnings += [f"{show_path((*prefix, name, *w.path))}: {w.message}" for w in read.warnings]
            if old is not None and each.value is old.value and entry is old.entry:
                kept[name] = old
            elif not read.problems:
                kept[name] = _Kept(raw, each.value, read, entry)
            entries[name] = entry
        self._kept = kept
        servers = tuple(entries.values())
        places: Places | None = None
        if any(entry.exclude or entry.include is not None for entry in servers):
            # Else nobody is told a line, and a text that only moved is the same configuration.
            places = None if previous is None else previous.places
            if not (isinstance(places, FilePlaces) and places.source.text == text):
                places = FilePlaces(source, found)
        if (
            previous is not None
            and previous.places is places
            and len(servers) == len(was)
            and all(map(operator.is_, servers, was))
            and previous.path == self._file
            and previous.warnings == tuple(warnings)
        ):
            return previous
        return Config(servers, self._file, tuple(warnings), places=places)


def _inputs(top: list[Member], bare: bool) -> tuple[tuple[InputSpec, ...], list[str]]:
    """What the root says about inputs; in a bare map, an object of that key is a server."""
    there = [each.value for each in top if each.key == _INPUTS and not (bare and isinstance(each.value, dict))]
    return read_inputs(there[-1]) if there else ((), [])


def _twice(source: Source, prefix: tuple[str, ...], entry: ServerEntry, there: list[Member]) -> ServerEntry:
    lines = lines_of(source, there)
    path = show_path((*prefix, entry.name))
    wrong = source.fail(f"this server is there {len(there)} times ({lines}); keep one", there[-1].start, path)
    return evolve(entry, error=str(wrong))


def _reuse(old: ServerEntry | None, new: ServerEntry) -> ServerEntry:
    """The old entry if it says the same; where it stands does not count, unless it is wrong: that is told."""
    if old is None or old is new:
        return new
    if old.line != new.line and new.error is None:
        return old if old == evolve(new, line=old.line) else new
    return old if old == new else new


def _root(source: Source) -> int:
    start = root(source)
    opener = source.json[start]
    if opener == "{":
        return start
    kind = other_format(source)
    if kind is not None:
        raise source.fail(kind, start)
    value = locate(source, ())  # a syntax error comes before a wrong shape
    if value is not None and opener == '"' and source.json[value.end :].lstrip().startswith(":"):
        raise source.fail("the outermost braces are missing: put { before this, and } at the end", start)
    if value is not None:
        finish(source, value.end)
    found = "a list" if opener == "[" else "a plain value"
    raise source.fail(f'expected an object with "mcpServers" in it, found {found}', start)


def _errors(source: Source, prefix: tuple[str, ...], entry: Member, problems: Collection[Problem]) -> str:
    """All that is wrong with an entry in one line, each with its place."""
    said: dict[str, None] = {}
    for problem in problems:
        there = locate(source, problem.path, entry.at) if problem.path else entry
        at = entry.start if there is None else there.at if problem.path else there.start
        path = show_path((*prefix, entry.key, *problem.path))
        message = problem.message
        if problem.twice:
            inner, _ = members(source, _parent_at(source, entry, problem))
            there_too = [each for each in inner if each.key == problem.path[-1]]
            message += f" ({lines_of(source, there_too)})"
            at = there_too[-1].start
        file = None if said else source.file
        line, column = source.place(at)
        said[str(ConfigError(message, file=file, line=line, column=column, path=path))] = None
    return "; ".join(said)


def _parent_at(source: Source, entry: Member, problem: Problem) -> int:
    """The offset of the object that holds the last step of a problem's path."""
    parent = locate(source, problem.path[:-1], entry.at) if problem.path[:-1] else entry
    return entry.at if parent is None else parent.at


def read_config(text: str, file: str | None = None, previous: Config | None = None) -> Config:
    """What a configuration's text says.

    Args:
        text: JSONC.
        file: its path, for errors and as the entries' ``source``.
        previous: entries equal to its entries are the same objects in the result.

    Raises:
        ConfigError: it cannot be read.
    """
    return Reader(file).read(text, previous).config
