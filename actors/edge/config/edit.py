"""Edits of a configuration's text: each the smallest change that does it, checked before it is kept.

Theory of operation. A `Draft` holds a `Document` and, per edited entry, the entry's new text: an edit of one entry touches and
re-reads that entry alone (`slice`), so a burst of toggles costs one walk of the file. Adding and removing work on the
server map itself.

Every edit is checked against the pure meaning of it (`apply_edit`): what the new text reads as must be just that, or the edit
is refused. `Draft.finish` reads the whole new text once more and compares all of it.
"""

from __future__ import annotations

from collections.abc import Iterable

from attrs import evolve

from ...model.config import Config, ServerEntry
from ...model.edits import AddServer, Edit, RemoveServer, SetPin, SetTool, apply_edit
from ...model.errors import ConfigError, PlaybillError
from .entry import entry_json, read_entry
from .jsonc_walk import Path, members, root, show_path
from .read import Document, Reader
from .shape import SERVER_KEYS
from .slice import TOUCHED, EntryEdit, Slice, edit_slice
from .span_edit import Change, add_member, apply, remove, render_at

__all__ = ["Draft", "edit_text"]


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
        try:
            if isinstance(edit, AddServer | RemoveServer):
                self._settle()
                self._edit_map(edit, after)
            else:
                self._edit_entry(edit, after)
        except RecursionError:
            raise self._refuse(edit.server, "nested too deeply to be edited") from None

    def edit_all(self, edits: Iterable[Edit]) -> tuple[PlaybillError | None, ...]:
        """Do each edit that can be done; for each, why not, or None."""
        refused: list[PlaybillError | None] = []
        for edit in edits:
            try:
                self.edit(edit)
            except PlaybillError as error:
                refused.append(error)
            else:
                refused.append(None)
        return tuple(refused)

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
        source, done = self._document.source, 0
        parts: list[str] = []
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

    def _edit_entry(self, edit: EntryEdit, after: Config) -> None:
        name = edit.server
        there = self._document.member(name)
        if there is None:
            raise self._refuse(name, "this server is there twice; keep one before it is edited")
        source = self._document.source
        before = self._texts.get(name) or source.text[there.at : there.end]
        start = max(source.text.rfind("\n", 0, there.at), source.text.rfind("\r", 0, there.at)) + 1
        line = source.text[start : there.at]
        indent = line[: len(line) - len(line.lstrip(" \t"))]
        slice_ = Slice(indent + before, len(indent), source.file)
        value = slice_.value()
        if not isinstance(value, dict):
            raise self._refuse(name, "this is not an object, and cannot be edited")
        touched = TOUCHED[type(edit)]
        for problem in read_entry(name, value).problems:
            if problem.path and problem.path[0] in touched:
                raise self._refuse(name, f"cannot be edited: {problem.message}", problem.path)
        if isinstance(edit, SetPin) and isinstance(value.get("tools"), list):
            raise self._refuse(name, "cannot be edited: expected an object, found a list", ("tools",))
        entry, wanted = self.config.get(name), after.get(name)
        assert entry is not None
        assert wanted is not None
        edit_slice(slice_, edit, entry)
        new = slice_.value()
        read = read_entry(name, new).entry
        if isinstance(edit, SetTool) and not edit.on and read.exclude == entry.exclude:
            # Taken out of the allow-list instead: as much is allowed (`slice`).
            wanted = evolve(entry, include=tuple(each for each in entry.include or () if each != edit.bare))
            after = evolve(after, servers=tuple(wanted if each.name == name else each for each in after.servers))
        others = {key: each for key, each in value.items() if key not in touched}
        same = others == {key: each for key, each in new.items() if key not in touched}
        if not same or not _says(wanted, read):
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
    there = evolve(
        read,
        source=meant.source,
        line=meant.line,
        trusted=meant.trusted,
        error=meant.error,
        inputs=meant.inputs,
    )
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
    refused = list(draft.edit_all(edits))
    return draft.finish().source.text, refused
