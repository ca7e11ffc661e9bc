"""JSONC at C speed, with the offset of everything.

Theory of operation. A text is *blanked*: its BOM, its comments and its trailing commas become spaces of equal length, so that
what is left is JSON in which every offset is that of the text as written. The standard library's C scanner reads it; we only
walk the one or two objects whose members' places matter, and let the scanner jump over each value. Nothing is located
before somebody asks: a line or a column is counted from an offset, a path is walked to its span.

Accepted: RFC 8259 JSON, ``//`` and ``/* */`` comments, one trailing comma in an object or array, a UTF-8 byte-order mark, any
of the three line ends. Refused: NaN and Infinity, UTF-16, anything after the value. A key that occurs twice in an object is
kept in sight (`Twice`): what it means is for the reader to say.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Mapping, Sequence
from json import JSONDecodeError, JSONDecoder
from json.decoder import scanstring
from typing import Any, NamedTuple, NoReturn

from attrs import frozen

from ..model.errors import ConfigError
from .jsonc_errors import ConstantFound, explain, place

__all__ = [
    "Member",
    "Nested",
    "Path",
    "Source",
    "Twice",
    "decode",
    "finish",
    "items",
    "locate",
    "members",
    "parse",
    "place",
    "root",
    "scan",
    "show_path",
]

Path = tuple[str | int, ...]

_STRING = r'"(?:[^"\\\r\n]++|\\[^\r\n])*+"'
_STRING_AT = re.compile(_STRING).match
_PLAIN = re.compile(rf'(?:[^"]++|{_STRING})*+').match
_COMMENT_MARK = re.compile(r"/[/*]").search
_COMMENT = re.compile(r"//[^\r\n]*+|/\*(?:[^*]++|\*(?!/))*+\*/").match
_LAST_COMMA = re.compile(r",[ \t\r\n]*+[}\]]").search
_SPACE = re.compile(r"[ \t\r\n]*+").match
_KEY = re.compile(r'[ \t\r\n]*+"([^"\\\x00-\x1f]*+)"[ \t\r\n]*+:[ \t\r\n]*+').match
_NEXT = re.compile(r"[ \t\r\n]*+([,}\]])").match


class Twice(dict[str, Any]):
    """An object of which some keys occur more than once (the last one counts); ``twice`` names them."""

    twice: tuple[str, ...] = ()


class Nested(list["Member"]):
    """The members of an object that was walked instead of read."""


def _object(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    out = dict(pairs)
    if len(out) == len(pairs):
        return out
    keys = [key for key, _ in pairs]
    again = Twice(out)
    again.twice = tuple(dict.fromkeys(key for key in keys if keys.count(key) > 1))
    return again


def _constant(name: str) -> NoReturn:
    raise ConstantFound(name)


_decoder = JSONDecoder(object_pairs_hook=_object, parse_constant=_constant)
_value_at = _decoder.raw_decode


class Member(NamedTuple):
    """One member of an object, or one item of an array, by offsets into the text.

    Args:
        key: its key; of an array's item, its index.
        start: where it begins: the key's quote, or the value of an item.
        at, end: where its value begins, and the offset behind it.
        value: the value read.
    """

    key: Any
    start: int
    at: int
    end: int
    value: Any


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

    def fail(self, message: str, at: int | None = None, path: str | None = None) -> ConfigError:
        """A `ConfigError` that points to an offset."""
        line, column = (None, None) if at is None else place(self.text, at)
        return ConfigError(message, file=self.file, line=line, column=column, path=path)


def decode(data: bytes, file: str | None = None) -> str:
    """The text of a file's bytes; a BOM stays in it, so that encoding it gives the same bytes back.

    Args:
        data: the whole file.
        file: its path, for errors.

    Raises:
        ConfigError: it is empty, UTF-16 or UTF-32, or not UTF-8 (with the place of the first wrong byte).
    """
    for mark, name in (
        (b"\xff\xfe\0\0", "UTF-32"),
        (b"\0\0\xfe\xff", "UTF-32"),
        (b"\xff\xfe", "UTF-16"),
        (b"\xfe\xff", "UTF-16"),
    ):
        if data.startswith(mark):
            raise ConfigError(f"the file is {name}; save it as UTF-8", file=file, line=1, column=1)
    if b"\0" in data[:2] and data.strip(b"\0"):
        raise ConfigError("the file is UTF-16; save it as UTF-8", file=file, line=1, column=1)
    try:
        text = data.decode("utf-8")
    except UnicodeDecodeError as bad:
        line, column = place(data[: bad.start].decode("utf-8"), bad.start)
        found = f"the file is not UTF-8 (byte 0x{data[bad.start]:02x}); save it as UTF-8"
        raise ConfigError(found, file=file, line=line, column=column) from None
    if not text.strip("\ufeff \t\r\n\0"):
        raise ConfigError("the file is empty", file=file, line=1, column=1)
    return text


def _past_string(text: str, known: int, at: int) -> int:
    """``at`` when it is outside of every string, else the offset behind the string it is in.

    ``known`` is an offset before it that is outside. No string goes over a line (a text where one does is refused by the scanner), so
    only the line of ``at`` has to be looked at.
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
        if text[max(0, at - 200) : at].rstrip(" \t\r\n")[-1:] not in ("[", "{", ",", ":"):
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


def _read(source: Source, at: int) -> tuple[Any, int]:
    try:
        return _value_at(source.json, at)
    except (ValueError, ConstantFound, RecursionError):
        raise explain(source.text, source.json, _value_at, source.file) from None


def root(source: Source) -> int:
    """The offset of the text's value (which is not read).

    Raises:
        ConfigError: there is none.
    """
    found = _SPACE(source.json)
    at = found.end() if found else 0
    if at == len(source.json):
        raise source.fail("there is nothing in the file but comments", 0)
    return at


def finish(source: Source, end: int) -> None:
    """Check that nothing follows the value that ends at ``end``.

    Raises:
        ConfigError: something does.
    """
    rest = _SPACE(source.json, end)
    if rest is not None and rest.end() != len(source.json):
        raise explain(source.text, source.json, _value_at, source.file)


def members(
    source: Source, at: int, known: Mapping[str, tuple[Any, ...]] | None = None, nested: Collection[str] = ()
) -> tuple[list[Member], int]:
    """The members of the object that begins at ``at``, those of a key that occurs twice included.

    Args:
        source: the text.
        at: the offset of its brace.
        known: per key the text of an object and what it was read as: where that very text stands again it is not read again.
        nested: keys whose value, when it is an object, is not read but walked: it becomes a `Nested`.

    Returns:
        The members in order, and the offset behind the closing brace.

    Raises:
        ConfigError: the text is wrong here or before here.
    """
    text, json = source.text, source.json
    out: list[Member] = []
    close = _NEXT(json, at + 1)
    if close is not None and close[1] == "}":
        return out, close.end()
    pos = at + 1
    try:
        while True:
            head = _KEY(json, pos)
            if head is not None:
                key, start, value_at = head[1], head.start(1) - 1, head.end()
            else:
                key, start, value_at = _odd_key(json, pos)
            kept = known.get(key) if known is not None else None
            if kept is not None and text.startswith(kept[0], value_at):
                value, end = kept[1], value_at + len(kept[0])
            elif key in nested and json.startswith("{", value_at):
                inner, end = members(source, value_at, known)
                value = Nested(inner)
            else:
                value, end = _value_at(json, value_at)
            out.append(Member(key, start, value_at, end, value))
            after = _NEXT(json, end)
            if after is None or after[1] == "]":
                raise JSONDecodeError("", json, end)
            pos = after.end()
            if after[1] == "}":
                return out, pos
    except (ValueError, ConstantFound, RecursionError):
        raise explain(text, json, _value_at, source.file) from None


def _odd_key(json: str, pos: int) -> tuple[str, int, int]:
    space = _SPACE(json, pos)
    start = space.end() if space else pos
    if not json.startswith('"', start):
        raise JSONDecodeError("", json, start)
    key, end = scanstring(json, start + 1)
    space = _SPACE(json, end)
    colon = space.end() if space else end
    if not json.startswith(":", colon):
        raise JSONDecodeError("", json, colon)
    space = _SPACE(json, colon + 1)
    return key, start, space.end() if space else colon + 1


def items(source: Source, at: int) -> tuple[list[Member], int]:
    """The items of the array that begins at ``at``, and the offset behind its closing bracket.

    Raises:
        ConfigError: the text is wrong here or before here.
    """
    json = source.json
    out: list[Member] = []
    close = _NEXT(json, at + 1)
    if close is not None and close[1] == "]":
        return out, close.end()
    pos = at + 1
    try:
        while True:
            space = _SPACE(json, pos)
            start = space.end() if space else pos
            value, end = _value_at(json, start)
            out.append(Member(len(out), start, start, end, value))
            after = _NEXT(json, end)
            if after is None or after[1] == "}":
                raise JSONDecodeError("", json, end)
            pos = after.end()
            if after[1] == "]":
                return out, pos
    except (ValueError, ConstantFound, RecursionError):
        raise explain(json, _value_at, source.file) from None


def parse(text: str, file: str | None = None) -> Any:
    """The value of a whole JSONC text.

    Args:
        text: JSONC.
        file: its path, for errors.

    Raises:
        ConfigError: it is not JSONC, with line and column.
    """
    source = scan(text, file)
    value, end = _read(source, root(source))
    finish(source, end)
    return value


def locate(source: Source, path: Sequence[str | int], at: int | None = None) -> Member | None:
    """The member at a path, or None when there is none; of a key that occurs twice the last, which is the one that counts.

    Args:
        source: the text.
        path: keys and indexes from the value at ``at``; empty for that value itself.
        at: the offset of the value to start from; None for the root.
    """
    where = root(source) if at is None else at
    found: Member | None = None
    for step in path:
        opener = source.json[where]
        inner = members(source, where)[0] if opener == "{" else items(source, where)[0] if opener == "[" else []
        found = next((each for each in reversed(inner) if each.key == step and type(each.key) is type(step)), None)
        if found is None:
            return None
        where = found.at
    if found is None:
        value, end = _read(source, where)
        found = Member("", where, where, end, value)
    return found


def show_path(path: Sequence[str | int]) -> str:
    """A path as people write it: ``mcpServers.github.args[2]``; odd keys are quoted."""
    out = ""
    for step in path:
        if isinstance(step, int):
            out += f"[{step}]"
        elif re.fullmatch(r"[\w$-]+", step):
            out += f".{step}" if out else step
        else:
            out += f"[{step!r}]"
    return out
