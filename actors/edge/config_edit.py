"""Edits of a configuration's text: each the smallest change that does it, checked before it is kept.

Theory of operation. A `Draft` holds a `Document` and, per edited entry, the entry's new text: an edit of one entry touches and
re-reads that entry alone, so a burst of toggles costs one walk of the file. Adding and removing work on the server map itself.
Which text is written follows from the keys that are there: a list is edited under the alias the person uses.

Every edit is checked against the pure meaning of it (`apply_edit`): what the new text reads as must be just that, or the edit is
refused. `Draft.finish` reads the whole new text once more and compares all of it.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from attrs import evolve

from ..model.config import Config, ServerEntry
from ..model.edits import AddServer, Edit, RemoveServer, SetEnabled, SetPin, SetTool, apply_edit
from ..model.errors import ConfigError, PlaybillError
from .config_entry import EXCLUDES, INCLUDES, PIN, entry_json, read_entry
from .config_read import SERVER_KEYS, Document, Reader
from .jsonc import Path, Source, items, locate, members, root, scan, show_path
from .span_edit import Change, add_item, add_member, apply, has_comment, remove, render_at, set_value

__all__ = ["Draft", "edit_text"]

_TOUCHED = {
    SetTool: ("tools", "disabledTools", "excludeTools", "enabledTools", "includeTools"),
    SetPin: ("tools",),
    SetEnabled: ("disabled", "enabled"),
}


class _Slice:
    """The text of one entry, changed step by step."""

    def __init__(self, text: str, at: int, file: str | None) -> None:
        self.at = at
        self.source: Source = scan(text, file)

    @property
    def text(self) -> str:
        return self.source.text[self.at :]

    def change(self, change: Change) -> None:
        self.source = scan(apply(self.source.text, change), self.source.file)

    def value(self, path: Path = ()) -> Any:
        """The value at a path; None when it is null or not there."""
        found = locate(self.source, path, self.at)
        return None if found is None else found.value

    def put(self, path: Path, value: Any) -> None:
        """Set a member, whether or not it and what it is in are there yet."""
        there = locate(self.source, path, self.at)
        if there is not None:
            self.change(set_value(there, value))
        elif len(path) > 1 and not isinstance(self.value(path[:-1]), dict):
            self.put(path[:-1], {path[-1]: value})
        else:
            within = locate(self.source, path[:-1], self.at)
            assert within is not None
            self.change(add_member(self.source, within.at, str(path[-1]), value))

    def drop(self, path: Path) -> None:
        """Remove a member."""
        within = locate(self.source, path[:-1], self.at)
        assert within is not None
        inner, _ = members(self.source, within.at)
        self.change(remove(self.source, within.at, [each.key for each in inner].index(path[-1])))

    def append(self, path: Path, item: str) -> None:
        """Add to a list, made if it is not there."""
        there = locate(self.source, path, self.at)
        if there is None or there.value is None:
            self.put(path, [item])
        else:
            self.change(add_item(self.source, there.at, item))

    def discard(self, path: Path, item: str, *, tidy: bool) -> None:
        """Remove from a list, as often as it is in it; what is left empty goes too if it is ``tidy``."""
        while item in (self.value(path) or ()):
            there = locate(self.source, path, self.at)
            assert there is not None
            inner, _ = items(self.source, there.at)
            self.change(remove(self.source, there.at, [each.value for each in inner].index(item)))
            if tidy:
                self._tidy(path)

    def _tidy(self, path: Path) -> None:
        """Remove an empty list, and the object around it if that is empty then, unless a comment is in it."""
        while path:
            there = locate(self.source, path, self.at)
            if there is None or there.value or has_comment(self.source, there.at, there.end):
                return
            self.drop(path)
            path = path[:-1]


def _last_there(slice_: _Slice, paths: Iterable[Path]) -> Path | None:
    """The last of the lists that are there: what is added there comes last in what is read."""
    found = None
    for path in paths:
        if isinstance(slice_.value(path), list):
            found = path
    return found


def _set_tool(slice_: _Slice, edit: SetTool, entry: ServerEntry) -> None:
    if edit.on:
        for path in EXCLUDES:
            # An empty list under an alias was there before us; ours is the first.
            slice_.discard(path, edit.bare, tidy=path == EXCLUDES[0])
        if entry.include is not None and edit.bare not in entry.include:
            into = _last_there(slice_, INCLUDES)
            assert into is not None
            slice_.append(into, edit.bare)
    elif entry.allows(edit.bare):
        fresh = EXCLUDES[1] if isinstance(slice_.value(("tools",)), list) else EXCLUDES[0]
        slice_.append(_last_there(slice_, EXCLUDES) or fresh, edit.bare)


def _set_pin(slice_: _Slice, edit: SetPin, entry: ServerEntry) -> None:
    if not edit.on:
        slice_.discard(PIN, edit.bare, tidy=True)
    elif edit.bare not in entry.pin:
        slice_.append(PIN, edit.bare)


def _set_enabled(slice_: _Slice, edit: SetEnabled, entry: ServerEntry) -> None:
    disabled, enabled = slice_.value(("disabled",)), slice_.value(("enabled",))
    if entry.disabled is not edit.on:
        return
    if not edit.on:
        if disabled is None and enabled is not None:
            slice_.put(("enabled",), False)
        else:
            slice_.put(("disabled",), True)
        return
    if disabled:
        inner, _ = members(slice_.source, slice_.at)
        if inner[-1].key == "disabled":
            slice_.drop(("disabled",))  # where we put it ourselves
        else:
            slice_.put(("disabled",), False)
    if enabled is False:
        slice_.put(("enabled",), True)


class Draft:
    """A configuration's text under edit.

    Args:
        reader: of the file; it reads each new text.
        document: the text as it is.
    """

    def __init__(self, reader: Reader, document: Document) -> None:
        self._reader = reader
        self._document = document
        self._texts: dict[str, str] = {}
        self.config: Config = document.config
        """What the text under edit says."""

    def edit(self, edit: Edit) -> None:
        """Do one edit, or leave everything as it is.

        Raises:
            UnknownServer, ServerExists: as `apply_edit`.
            ConfigError: the text does not let itself be edited so.
        """
        after = apply_edit(self.config, edit)
        if after is self.config:
            return
        if isinstance(edit, AddServer | RemoveServer):
            self._settle()
            self._edit_map(edit, after)
        else:
            self._edit_entry(edit, after)

    def finish(self) -> Document:
        """The whole new text, read and compared.

        Raises:
            ConfigError: it does not read as what it was meant to be: nothing of it may be written.
        """
        meant = self.config
        self._settle()
        _compare(meant, self._document.config, self._document)
        return self._document

    def _settle(self) -> None:
        """Put the edited entries into the text and read it."""
        if not self._texts:
            return
        source, parts, done = self._document.source, [], 0
        for each in self._document.entries:
            if each.key in self._texts:
                parts += (source.text[done : each.at], self._texts[each.key])
                done = each.end
        parts.append(source.text[done:])
        self._document = self._reader.read("".join(parts), self.config)
        self._texts = {}

    def _refuse(self, name: str, why: str, path: Path = ()) -> ConfigError:
        keys = (name,) if self._document.key is None else (self._document.key, name)
        there = next((each for each in self._document.entries if each.key == name), None)
        return self._document.source.fail(why, None if there is None else there.start, show_path((*keys, *path)))

    def _edit_entry(self, edit: SetTool | SetPin | SetEnabled, after: Config) -> None:
        name = edit.server
        there = self._document.member(name)
        if there is None:
            raise self._refuse(name, "this server is there twice; keep one before it is edited")
        source = self._document.source
        before = self._texts.get(name) or source.text[there.at : there.end]
        start = max(source.text.rfind("\n", 0, there.at), source.text.rfind("\r", 0, there.at)) + 1
        line = source.text[start : there.at]
        indent = line[: len(line) - len(line.lstrip(" \t"))]
        slice_ = _Slice(indent + before, len(indent), source.file)
        value = slice_.value()
        if not isinstance(value, dict):
            raise self._refuse(name, "this is not an object, and cannot be edited")
        touched = _TOUCHED[type(edit)]
        for problem in read_entry(name, value).problems:
            if problem.path and problem.path[0] in touched:
                raise self._refuse(name, f"cannot be edited: {problem.message}", problem.path)
        if isinstance(edit, SetPin) and isinstance(value.get("tools"), list):
            raise self._refuse(name, "cannot be edited: expected an object, found a list", ("tools",))
        entry, wanted = self.config.get(name), after.get(name)
        assert entry is not None
        assert wanted is not None
        match edit:
            case SetTool():
                _set_tool(slice_, edit, entry)
            case SetPin():
                _set_pin(slice_, edit, entry)
            case SetEnabled():
                _set_enabled(slice_, edit, entry)
        new = slice_.value()
        others = {key: each for key, each in value.items() if key not in touched}
        same = others == {key: each for key, each in new.items() if key not in touched}
        if not same or not _says(wanted, read_entry(name, new).entry):
            raise self._refuse(name, "the edit would not read as it was meant")
        self._texts[name] = slice_.text
        self.config = after

    def _edit_map(self, edit: AddServer | RemoveServer, after: Config) -> None:
        document, name = self._document, edit.server
        source = document.source
        there = document.member(name)
        if there is None and self.config.get(name) is not None:
            raise self._refuse(name, "this server is there twice; keep one before it is edited")
        if isinstance(edit, AddServer):
            try:
                value = entry_json(edit.entry)
            except ValueError as wrong:
                raise self._refuse(name, f"cannot be written: {wrong}") from None
            if there is not None:
                change = Change(there.at, there.end, render_at(source, there.start, value))
            elif document.at is not None:
                if document.bare and any(each.key == name for each in document.root):
                    raise self._refuse(name, "this key is there already, and is not a server")
                change = add_member(source, document.at, name, value, lines=True)
            elif document.key is not None:
                null = next(each for each in document.root if each.key == document.key)
                change = Change(null.at, null.end, render_at(source, null.start, {name: value}))
            else:
                change = add_member(source, root(source), SERVER_KEYS[0], {name: value}, lines=True)
        else:
            assert there is not None
            assert document.at is not None
            inner, _ = members(source, document.at)
            change = remove(source, document.at, [each.start for each in inner].index(there.start))
        read = self._reader.read(apply(source.text, change), self.config)
        _compare(after, read.config, read)
        self._document, self.config = read, read.config


def _says(meant: ServerEntry, read: ServerEntry) -> bool:
    """Whether two entries say the same, wherever they stand."""
    there = evolve(read, source=meant.source, line=meant.line, trusted=meant.trusted, error=meant.error)
    if meant.type != read.type and meant.source is None:
        meant = evolve(meant, type=read.type)  # an entry made in code may use another word for it
    return meant == there


def _compare(meant: Config, read: Config, document: Document) -> None:
    pairs = zip(meant.servers, read.servers, strict=False)
    if len(meant.servers) != len(read.servers) or not all(a is b or _says(a, b) for a, b in pairs):
        raise ConfigError("the edit would not read as it was meant; nothing was written", file=document.source.file)


def edit_text(text: str, edits: Iterable[Edit], file: str | None = None) -> tuple[str, list[PlaybillError | None]]:
    """Edit a text.

    Args:
        text: JSONC.
        edits: done in order; one that is refused does not stop the others.
        file: its path, for errors.

    Returns:
        The new text, and per edit None or why it was refused.

    Raises:
        ConfigError: the text cannot be read.
    """
    reader = Reader(file)
    draft = Draft(reader, reader.read(text))
    refused: list[PlaybillError | None] = []
    for edit in edits:
        try:
            draft.edit(edit)
        except PlaybillError as error:
            refused.append(error)
        else:
            refused.append(None)
    return draft.finish().source.text, refused
