"""From the bytes of a JSONC file to a text that is JSON, with every offset where it was.

Theory of operation. A text is *blanked*: its BOM, its comments and its trailing commas become spaces of equal length, so that
what is left is JSON in which every offset is that of the text as written (`jsonc_walk` reads it). Comments and commas are
looked for, not lexed up to: each one found is kept if it is outside of every string, and only its own line says whether it is.

Accepted: RFC 8259 JSON, ``//`` and ``/* */`` comments, one trailing comma in an object or array, a UTF-8 byte-order mark, any
of the three line ends. Refused: UTF-16 and whatever else is not UTF-8.
"""

from __future__ import annotations

import re
from bisect import bisect_right

from attrs import field, frozen

from ...model.errors import ConfigError
from .jsonc_errors import line_starts, place

__all__ = ["Source", "decode", "scan"]

_STRING = r'"(?:[^"\\\r\n]++|\\[^\r\n])*+"'
_STRING_AT = re.compile(_STRING).match
_PLAIN = re.compile(rf'(?:[^"]++|{_STRING})*+').match
_COMMENT_MARK = re.compile(r"/[/*]").search
_COMMENT = re.compile(r"//[^\r\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/").match
_LAST_COMMA = re.compile(r",[ \t\r\n]*+[}\]]").search
# The longer mark first: it begins like a shorter one.
_MARKS = ((b"\xff\xfe\0\0", "UTF-32"), (b"\0\0\xfe\xff", "UTF-32"), (b"\xff\xfe", "UTF-16"), (b"\xfe\xff", "UTF-16"))


@frozen(eq=False)
class Source:
    """A text and its blanked forms, all of one length.

    Args:
        text: as written, with its BOM if it has one.
        bare: without comments and BOM; trailing commas are still there. A line break in it is never inside a comment.
        json: without trailing commas too.
        file: the path for errors, or None.
    """

    text: str
    bare: str
    json: str
    file: str | None = None
    _starts: list[int] = field(init=False, factory=list, repr=False)

    def place(self, at: int) -> tuple[int, int]:
        """The 1-based line and column of an offset; a byte-order mark takes no column. Cheap when asked again and again."""
        if not self._starts:
            self._starts.extend(line_starts(self.text))
        line = bisect_right(self._starts, at)
        column = at - self._starts[line - 1] + 1
        return line, column - (line == 1 and at > 0 and self.text.startswith("\ufeff"))

    def fail(self, message: str, at: int | None = None, path: str | None = None) -> ConfigError:
        """A `ConfigError` that points to an offset."""
        line, column = (None, None) if at is None else self.place(at)
        return ConfigError(message, file=self.file, line=line, column=column, path=path)


def decode(data: bytes, file: str | None = None) -> str:
    """The text of a file's bytes; a BOM stays in it, so that encoding it gives the same bytes back.

    Args:
        data: the whole file.
        file: its path, for errors.

    Raises:
        ConfigError: it is empty, UTF-16 or UTF-32, or not UTF-8 (with the place of the first wrong byte).
    """
    for mark, name in _MARKS:
        if data.startswith(mark):
            raise ConfigError(f"the file is {name}; save it as UTF-8", file=file, line=1, column=1)
    if b"\0" in data[:2] and data.strip(b"\0"):
        raise ConfigError("the file is UTF-16; save it as UTF-8", file=file, line=1, column=1)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as bad:
        before = data[: bad.start].decode("utf-8")
        line, column = place(before, len(before))
        found = f"the file is not UTF-8 (byte 0x{data[bad.start]:02x}); save it as UTF-8"
        raise ConfigError(found, file=file, line=line, column=column) from None
    if not text.strip("\ufeff \t\r\n\0"):
        raise ConfigError("the file is empty", file=file, line=1, column=1)
    return text


def _past_string(text: str, known: int, at: int) -> int:
    """``at`` when it is outside of every string, else the offset behind the string it is in.

    ``known`` is an offset before it that is outside. No string goes over a line (a text where one does is refused by the
    scanner), so only the line of ``at`` has to be looked at.
    """
    start = max(known, text.rfind("\n", known, at) + 1)
    plain = _PLAIN(text, start, at)
    stop = plain.end() if plain else at
    if stop == at:
        return at
    string = _STRING_AT(text, stop)
    return string.end() if string else len(text)


def _without_comments(text: str) -> str:
    parts: list[str] = []
    done = 0
    if text.startswith("\ufeff"):
        parts.append(" ")
        done = 1
    known = done
    while (mark := _COMMENT_MARK(text, known)) is not None:
        known = _past_string(text, known, mark.start())
        if known != mark.start():
            continue
        comment = _COMMENT(text, known)
        if comment is None:
            break  # it does not end: the scanner says so
        parts += (text[done:known], " " * (comment.end() - known))
        done = known = comment.end()
    parts.append(text[done:])
    return "".join(parts)


def _without_commas(text: str) -> str:
    parts: list[str] = []
    done = known = 0
    while (comma := _LAST_COMMA(text, known)) is not None:
        at = comma.start()
        known = _past_string(text, known, at)
        if known != at:
            continue
        known = at + 1
        # A comma with no value before it stays, and is an error.
        before = at - 1
        while before >= 0 and text[before] in " \t\r\n":
            before -= 1
        if text[max(0, before)] not in "[{,:":
            parts += (text[done:at], " ")
            done = known
    parts.append(text[done:])
    return "".join(parts)


def scan(text: str, file: str | None = None) -> Source:
    """Blank a text. Never fails: what is wrong with it shows when it is read.

    Args:
        text: JSONC.
        file: its path, for errors.
    """
    bare = _without_comments(text)
    return Source(text, bare, _without_commas(bare), file)
