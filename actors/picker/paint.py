"""From rows to lines: what goes where in how many columns. Pure.

A line is a list of segments, (attribute, text); every text is clipped to its place with an ellipsis, by columns and not by
characters, so that wide and combining ones keep the lines straight. A row takes one line; of a server up to two more
when it has an error, and what its state and its count take where there is no room for them beside its name.
"""

from __future__ import annotations

import re
from collections.abc import Hashable, Sequence
from typing import Literal

import urwid
from attrs import frozen

from ..model.cells import columns as columns_of
from ..model.cells import steady
from .palette import Glyphs
from .values import EmptyRow, HeaderRow, NoticeRow, Row, ServerRow, ToolRow
from .wrap import softly

__all__ = ["NARROW", "NOT", "Brush", "Line", "canvas_of", "shortened"]

Line = list[tuple[str, str]]

NARROW = 60
"""Columns below which there is no room for descriptions, and how a server is has a line of its own."""

NOT = "not on the wire: "
"""How `why` begins of such a tool: the row's column says so already."""

_WIDE = 100
_WIDEST_NAME = 32
_MOST_ERROR = 2  # lines
_LEAST_SOURCE = 10  # columns; of a path less says nothing
_BOXES = {"on": "[x]", "off": "[ ]", "pending-on": "[+]", "pending-off": "[-]"}


_SEPARATOR = re.compile(r"[/\\]")


def shortened(path: str, here: str, home: str) -> str:
    """A path as seen from a folder, or from home (``~/…``); as it is when it is in neither.

    Args:
        path: any.
        here, home: folders, or empty.
    """
    for folder, instead in ((here, ""), (home, "~/")):
        rest = path[len(folder) :]
        if len(folder) > 1 and path.startswith(folder) and _SEPARATOR.match(rest) is not None:
            return f"{instead}{rest[1:]}"
    return path


def _width(text: str) -> int:
    """Columns that a text takes as it is drawn."""
    return columns_of(text)


def _upto(text: str, columns: int) -> tuple[int, int]:
    """How many characters of a text fit in so many columns, and how many columns these take."""
    if text.isascii():
        return min(len(text), columns), min(len(text), columns)
    used = 0
    for at, char in enumerate(text):
        width = columns_of(char)
        if used + width > columns:
            return at, used
        used += width
    return len(text), used


@frozen
class Brush:
    """Paints rows for a width.

    Args:
        glyphs: which there are.
        columns: how many a line has.
        here, home: our working folder and the person's own, of which paths are shown without the beginning; or empty.
    """

    glyphs: Glyphs
    columns: int
    here: str = ""
    home: str = ""

    def row(self, row: Row, *, cursor: bool = False) -> list[Line]:
        """The lines of a row, each at most as wide as the screen. It may raise: a view says `broken` instead, and goes on.

        Args:
            row: any.
            cursor: whether the cursor is on it.
        """
        lines = self._row(row)
        return [self.cursor(line) for line in lines] if cursor else lines

    def broken(self, error: Exception) -> Line:
        """The line in place of a row that could not be made or painted."""
        said = "".join(char if char.isprintable() else " " for char in f"{type(error).__name__}: {error}")
        return self.fit([("playbill error", f"  this row cannot be shown: {said}")])

    def cursor(self, line: Line) -> Line:
        """The line with the cursor on it: all across."""
        text = "".join(text for _, text in line)
        return [("playbill cursor", text + " " * max(0, self.columns - self.width(text)))]

    def _row(self, row: Row) -> list[Line]:
        match row:
            case HeaderRow():
                return [self.header(row.parts)]
            case NoticeRow():
                said = [*self.wrapped(f" {row.text}"), *(self.wrapped(f" {row.more}") if row.more else ())]
                return [[(f"playbill {row.kind}", text)] for text in said]
            case ServerRow():
                return self._server(row)
            case ToolRow():
                return [self._tool(row)]
            case EmptyRow():
                return [[("playbill dim", text)] for text in self.wrapped(f"      {row.text}")]

    def header(self, parts: Sequence[str]) -> Line:
        """The title bar: as many parts as there is room for."""
        said = ""
        for part in parts:
            more = f"{said}{self.glyphs.dot if said else ' '}{part}"
            if said and self.width(more) > self.columns:
                break
            said = more
        return self.bar(said)

    def bar(self, text: str) -> Line:
        """A bar across, with a text."""
        text = self.clip(text, self.columns)
        return [("playbill title", text + " " * (self.columns - self.width(text)))]

    def _server(self, row: ServerRow) -> list[Line]:
        tone = f"playbill {row.tone}"
        state = row.pending or row.state
        glyph = self.glyphs.phases.get(row.phase, "?")
        room = self.columns - 7
        name = self.clip(row.name, max(8, room // 2))
        line: Line = [(tone, f" {glyph} "), ("playbill server", f"{_BOXES[row.check]} {name}")]
        said = self.glyphs.dot.join(each for each in (state, row.count) if each)
        kind = "playbill pending" if row.pending else tone
        used = sum(self.width(self.plain(text)) for _, text in line)
        # Its words are never cut: where there is no room for them beside its name they go below it.
        below = self.columns < NARROW or used + self.width(self.plain(f"  {said}")) > self.columns
        for each in (row.restarted, row.remote):  # what is only said where there is room
            more = said if each is None else f"{said}{self.glyphs.dot}{each}"
            if below:
                said = more if len(self.wrapped(f"      {more}")) == len(self.wrapped(f"      {said}")) else said
            elif used + self.width(self.plain(f"  {more}")) <= self.columns:
                said = more
        if not below:
            line.append((kind, f"  {said}"))
        if row.source:
            most = self.columns - used - 2 if below else self.columns // 3
            if most >= _LEAST_SOURCE:
                line = self._right(line, ("playbill dim", self._place(row.source, most)))
        lines = [self.fit(line)]
        if below:
            lines += [[(kind, text)] for text in self.wrapped(f"      {said}")]
        if row.error:
            lines += [[("playbill bad", text)] for text in self.several(f"      {row.error}", _MOST_ERROR)]
        return lines

    def _tool(self, row: ToolRow) -> Line:
        kind = {"on_wire": "playbill", "excluded": "playbill off", "server_down": "playbill off"}.get(
            row.verdict, "playbill warning"
        )
        box = "playbill pending" if row.check.startswith("pending") or row.pending else kind
        head: Line = [(box, f"   {_BOXES[row.check]} "), ("playbill ask", self.glyphs.pin if row.pinned else " ")]
        room = self.columns - 8
        if self.columns < NARROW:
            label = "" if row.verdict == "on_wire" else self.clip(row.label, room // 2)
            name = self.clip(row.name, room - self.width(label) - (1 if label else 0))
            return self._right([*head, (kind, name)], (kind, label)) if label else [*head, (kind, name)]
        # That a tool is on the wire is the rule, and needs no words; why one is not does.
        short = row.verdict == "on_wire" or self.columns < _WIDE or not row.words
        verdict = self.clip(row.label if short else row.words.removeprefix(NOT), self.columns // 2)
        column = min(_WIDEST_NAME, room // 4 if self.columns >= _WIDE else room // 3)
        name = self.clip(row.name, column)
        pad = " " * (column - self.width(name))
        what = ": ".join(each for each in (row.title, row.description) if each)
        left = room - self.width(name + pad) - self.width(verdict) - 3
        body: Line = [*head, (kind, name), ("playbill dim", f"{pad} {self.clip(what, left)}" if left > 4 else "")]
        return self._right(body, (kind if row.verdict != "on_wire" else "playbill dim", verdict))

    # Pieces.

    def width(self, text: str) -> int:
        """Columns that a text takes."""
        return _width(text)

    def plain(self, text: str) -> str:
        """A text as it can be drawn: one line, as wide on every terminal, and in ASCII if that is all there is."""
        text = steady(text)
        if self.glyphs.words:
            text = text.translate(self.glyphs.words).encode("ascii", "replace").decode()
        return text if text.isprintable() else "".join(char if char.isprintable() else " " for char in text)

    def clip(self, text: str, columns: int) -> str:
        """A text, cut to so many columns with an ellipsis at its end."""
        text = self.plain(text)
        if self.width(text) <= columns:
            return text
        more = self.glyphs.more
        if columns <= len(more):
            return more[: max(0, columns)]
        at, _ = _upto(text, columns - len(more))
        return text[:at].rstrip() + more

    def wrapped(self, text: str) -> list[str]:
        """A text on as many lines as it takes, each with its indentation: broken at blanks, else anywhere."""
        return [line for _, line in softly(self.plain(text), max(1, self.columns), self)]

    def several(self, text: str, most: int) -> list[str]:
        """The same on so many lines at most; an ellipsis ends what was cut."""
        lines = self.wrapped(text)
        if len(lines) <= most:
            return lines
        return [*lines[: most - 1], self.ended(lines[most - 1])] if most > 0 else []

    def ended(self, line: str) -> str:
        """A line with an ellipsis at its end, as more belongs there."""
        at, _ = _upto(line, max(0, self.columns - len(self.glyphs.more)))
        return self.clip(line[:at].rstrip() + self.glyphs.more, self.columns)

    def _place(self, path: str, columns: int) -> str:
        """A file in so many columns: as seen from here or from home; else its end, from a separator on if that can be."""
        text = self.plain(shortened(path, self.here, self.home))
        more = self.glyphs.more
        if self.width(text) <= columns:
            return text
        for at in (each.start() for each in _SEPARATOR.finditer(text)):
            if at and self.width(text[at:]) + len(more) <= columns:
                return more + text[at:]
        at = 0
        while self.width(text[at:]) > columns - (len(more) if at else 0) and at < len(text):
            at += 1
        return (more if at else "") + text[at:]

    def fit(self, line: Line) -> Line:
        """A line, cut to the screen."""
        fitted: Line = []
        left = self.columns
        for at, (kind, text) in enumerate(line):
            text = self.plain(text)
            width = self.width(text)
            if width > left or (width == left and any(self.width(self.plain(rest)) for _, rest in line[at + 1 :])):
                fitted.append(
                    (kind, self.clip(text + " " * (left + 1), left) if width <= left else self.clip(text, left))
                )
                return fitted
            fitted.append((kind, text))
            left -= width
        return fitted

    def _right(self, line: Line, end: tuple[str, str]) -> Line:
        """A line with a text at its right end, where there is room for both."""
        used = sum(self.width(self.plain(text)) for _, text in line)
        gap = self.columns - used - self.width(end[1])
        return [*line, ("playbill", " " * gap), end] if gap >= 1 else line


def canvas_of(lines: Sequence[Line], columns: int) -> urwid.TextCanvas:
    """Lines as urwid draws them, each filled up to so many columns; what is too long for that is cut.

    Args:
        lines: of segments; an attribute is a name of the palette.
        columns: of the canvas.
    """
    texts: list[bytes] = []
    attributes: list[list[tuple[Hashable, int]]] = []
    charsets: list[list[tuple[Literal["0", "U"] | None, int]]] = []
    for line in lines:
        text, left = b"", columns
        runs: list[tuple[Hashable, int]] = []
        sets: list[tuple[Literal["0", "U"] | None, int]] = []
        for kind, said in line:
            width = _width(said)
            if width > left:
                at, width = _upto(said, left)
                said = said[:at]
            encoded, charset = urwid.apply_target_encoding(said)
            if encoded:
                text += encoded
                runs.append((kind, len(encoded)))
                sets.extend(charset)
            left -= width
        if left > 0:
            text += b" " * left
            runs.append(("playbill", left))
            sets.append((None, left))
        texts.append(text)
        attributes.append(runs)
        charsets.append(sets)
    return urwid.TextCanvas(texts, attributes, charsets, maxcol=columns, check_width=False)
