"""Walking JSONC: values at C speed, and the offset of every member that is asked for.

Theory of operation. The standard library's C scanner reads the blanked text (`jsonc`). We only walk the one or two objects
whose members' places matter, and let the scanner jump over each value. Nothing is located before somebody asks: a line or a
column is counted from an offset, a path is walked to its span.

NaN and Infinity are refused, and anything after the value. A key that occurs twice in an object is kept in sight (`Twice`):
what it means is for the reader to say.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Collection, Mapping, Sequence
from json import JSONDecodeError, JSONDecoder
from typing import Any, NamedTuple, NoReturn

from .jsonc import Source, scan
from .jsonc_errors import ConstantFound, explain

__all__ = ["Member", "Nested", "Path", "Twice", "finish", "items", "locate", "members", "parse", "root", "show_path"]

Path = tuple[str | int, ...]

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
    keys = Counter(key for key, _ in pairs)
    again = Twice(out)
    again.twice = tuple(key for key, times in keys.items() if times > 1)
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
    key, end = _value_at(json, start)
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
        raise explain(source.text, json, _value_at, source.file) from None


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
