"""The smallest edits of a JSONC text: set, add and remove at a place, touching only the bytes it takes.

Rules. A member that begins its own line gets neighbours on lines of their own, with its indentation and line end; otherwise
the neighbour comes on the same line, with the spacing that is there. A comment behind a value stays behind it. Removing takes
the member, one comma and its line if nothing else is on it; a comment outside the removed value always stays. A trailing comma
stays a habit of its container. So what an addition adds, a removal takes away to the byte, unless the container was empty and
not ``{}`` or ``[]``.
"""

from __future__ import annotations

import json
import re
from typing import Any, NamedTuple

from .jsonc import Source
from .jsonc_walk import Member, items, members

__all__ = [
    "Change",
    "add_item",
    "add_member",
    "apply",
    "dump",
    "has_comment",
    "remove",
    "render_at",
    "set_value",
    "wider",
]

_BREAK = re.compile(r"\r\n|\r|\n")
_COLON = re.compile(r'"([ \t]*:[ \t]*)$')


class Change(NamedTuple):
    """Put ``new`` in place of what is between two offsets."""

    at: int
    end: int
    new: str


def apply(text: str, change: Change) -> str:
    """The text after a change."""
    return text[: change.at] + change.new + text[change.end :]


def dump(value: Any, *, spaced: bool = True) -> str:
    """A JSON value on one line; what UTF-8 cannot hold is escaped."""
    separators = (", ", ": ") if spaced else (",", ":")
    out = json.dumps(value, ensure_ascii=False, separators=separators, allow_nan=False)
    if not out.isascii() and any("\ud800" <= char <= "\udfff" for char in out):
        return json.dumps(value, separators=separators, allow_nan=False)
    return out


def has_comment(source: Source, at: int, end: int) -> bool:
    """Whether there is a comment between two offsets."""
    return source.text[at:end] != source.bare[at:end]


def _spaced(source: Source) -> bool:
    return '": ' in source.json or '":' not in source.json


def _eol(source: Source) -> str:
    found = _BREAK.search(source.text)
    return found[0] if found else "\n"


def _indent(source: Source, at: int) -> str:
    """The white space that begins the line of an offset."""
    start = max(source.text.rfind("\n", 0, at), source.text.rfind("\r", 0, at)) + 1
    line = source.text[start:at].removeprefix("\ufeff")
    return line[: len(line) - len(line.lstrip(" \t"))]


def _inside(source: Source, at: int) -> tuple[list[Member], int]:
    inner, end = members(source, at) if source.json[at] == "{" else items(source, at)
    return inner, end - 1


def _own_line(source: Source, inner: list[Member], i: int, at: int) -> int | None:
    """The offset of the line break that the i-th member follows, when it begins its own line."""
    before = inner[i - 1].end if i else at + 1
    breaks = list(_BREAK.finditer(source.bare, before, inner[i].start))
    found = breaks[-1] if breaks else None
    if found is None or source.text[found.end() : inner[i].start].strip(" \t"):
        return None
    return found.start()


def _unit(source: Source, at: int, inner: list[Member]) -> str:
    """By how much a container's members are indented."""
    outer = _indent(source, at)
    if inner and _own_line(source, inner, len(inner) - 1, at) is not None:
        mine = _indent(source, inner[-1].start)
        if mine.startswith(outer) and mine != outer:
            return mine[len(outer) :]
    found = re.search(r'[\r\n]([ \t]+)"', source.bare)
    return found[1] if found else "  "


def _render(value: Any, *, indent: str, unit: str, eol: str, spaced: bool = True) -> str:
    """A JSON value with each member of an object on its own line, and lists on one.

    Args:
        value: any JSON value.
        indent: of the line it begins on.
        unit: what each level adds to it.
        eol: the line end.
        spaced: a space behind colons and commas.
    """
    if not isinstance(value, dict) or not value:
        return dump(value, spaced=spaced)
    inner = indent + unit
    colon = ": " if spaced else ":"
    lines = [
        f"{inner}{dump(key)}{colon}{_render(each, indent=inner, unit=unit, eol=eol, spaced=spaced)}"
        for key, each in value.items()
    ]
    return "{" + eol + f",{eol}".join(lines) + eol + indent + "}"


def render_at(source: Source, start: int, value: Any) -> str:
    """A value to stand behind the key that begins at ``start``: on lines of its own when the key begins one."""
    line = max(source.bare.rfind("\n", 0, start), source.bare.rfind("\r", 0, start)) + 1
    if not line or source.text[line:start].strip(" \t"):
        return dump(value, spaced=_spaced(source))
    indent = source.text[line:start]
    found = re.search(r'[\r\n]([ \t]+)"', source.bare)
    unit = found[1] if found else "  "
    return _render(value, indent=indent, unit=unit, eol=_eol(source), spaced=_spaced(source))


def set_value(member: Member, value: Any) -> Change:
    """Put a value in place of a member's."""
    return Change(member.at, member.end, dump(value))


def add_member(source: Source, at: int, key: str, value: Any, *, lines: bool = False) -> Change:
    """Add a member to the object that begins at ``at``, behind its last one.

    Args:
        source: the text.
        at: the offset of the brace.
        key, value: what to add; the key is not there yet.
        lines: the value's own members go on lines of their own where the new member does.
    """
    inner, close = _inside(source, at)
    between = _between(source, inner)
    unit = _unit(source, at, inner)
    own = _on_lines(source, inner, at)
    indent = _indent(source, inner[-1].start) if inner else _indent(source, at) + unit
    if lines and own:
        text = _render(value, indent=indent, unit=unit, eol=_eol(source), spaced=_spaced(source))
    else:
        text = dump(value, spaced=_spaced(source))
    return _insert(source, at, inner, close, dump(key) + between + text, indent if own else None)


def _between(source: Source, inner: list[Member]) -> str:
    """What a new member has between its key and its value: the same as the last one."""
    colon = _COLON.search(source.text[inner[-1].start : inner[-1].at]) if inner else None
    return colon[1] if colon else ": " if _spaced(source) else ":"


def wider(source: Source, inner: list[Member]) -> int | None:
    """By how many blanks the value of the last member stands further from its key than `add_member` would put it.

    Args:
        source: the text.
        inner: the members of an object; there are some.

    Returns:
        0 when it stands just so; None when it stands in another way.
    """
    colon = _COLON.search(source.text[inner[-1].start : inner[-1].at])
    usual = _between(source, inner[:-1])
    if colon is None or not colon[1].startswith(usual):
        return None
    more = colon[1][len(usual) :]
    return None if more.strip(" ") else len(more)


def add_item(source: Source, at: int, value: Any) -> Change:
    """Add an item to the end of the array that begins at ``at``."""
    inner, close = _inside(source, at)
    own = bool(inner) and _own_line(source, inner, len(inner) - 1, at) is not None
    return _insert(
        source, at, inner, close, dump(value, spaced=_spaced(source)), _indent(source, inner[-1].start) if own else None
    )


def _on_lines(source: Source, inner: list[Member], at: int) -> bool:
    if inner:
        return _own_line(source, inner, len(inner) - 1, at) is not None
    return _BREAK.search(source.text.strip("\ufeff \t\r\n")) is not None


def _insert(source: Source, at: int, inner: list[Member], close: int, new: str, indent: str | None) -> Change:
    """Put ``new`` behind the last member; on its own line when ``indent`` is given."""
    text, bare, eol = source.text, source.bare, _eol(source)
    if not inner:
        gap = text[at + 1 : close]
        end = at + 1 + len(gap.rstrip(" \t\r\n"))
        if end == at + 1:
            return Change(at + 1, close, new if indent is None else eol + indent + new + eol + _indent(source, at))
        if _BREAK.search(gap):
            # There are comments only, perhaps of the kind that ends with its line.
            return Change(end, end, eol + (indent or _indent(source, end)) + new)
        return Change(end, end, " " + new)
    last = inner[-1]
    comma = bare.find(",", last.end, close)
    if indent is None:
        gap = text[inner[-2].end : last.start].partition(",")[2] if len(inner) > 1 else ""
        sep = gap if len(inner) > 1 and not gap.strip(" \t") else " " if _spaced(source) else ""
        if comma >= 0:
            return Change(comma + 1, comma + 1, sep + new + ",")
        return Change(last.end, last.end, "," + sep + new)
    behind = comma + 1 if comma >= 0 else last.end
    stop = _BREAK.search(bare, behind, close)
    at_end = stop.start() if stop else behind + len(text[behind:close].rstrip(" \t"))
    if comma >= 0:
        return Change(at_end, at_end, eol + indent + new + ",")
    return Change(last.end, at_end, "," + text[last.end : at_end] + eol + indent + new)


def remove(source: Source, at: int, i: int) -> Change:
    """Remove the i-th member of the object or array that begins at ``at``.

    Args:
        source: the text.
        at: the offset of the bracket.
        i: its number, from 0, as `members` and `items` count.
    """
    text, bare = source.text, source.bare
    inner, close = _inside(source, at)
    mine = inner[i]
    following = inner[i + 1].start if i + 1 < len(inner) else close
    comma = bare.find(",", mine.end, following)
    stop = comma + 1 if comma >= 0 else mine.end
    if comma >= 0 and has_comment(source, mine.end, comma):
        return Change(mine.start, stop, text[mine.end : comma].strip(" \t"))
    line = _own_line(source, inner, i, at)
    after = _BREAK.search(bare, stop, following)
    rest = text[stop : after.start() if after else following]
    blank = not rest.strip(" \t")
    last = i + 1 == len(inner)
    if line is not None and blank and (last or after is not None):
        cut = (line, stop)  # the whole line
    elif line is not None or (i == 0 and last) or (not last and blank and after is None):
        cut = (mine.start, stop + len(rest) - len(rest.lstrip(" \t")))  # up to what comes next on the line
    else:
        cut = (len(text[: mine.start].rstrip(" \t")) if i else mine.start, stop)  # with the space before it
    if len(inner) == 1:
        left = text[at + 1 : cut[0]] + text[cut[1] : close]
        return Change(*cut, "") if left.strip(" \t\r\n") else Change(at + 1, close, "")
    if last and comma < 0:
        before = bare.find(",", inner[i - 1].end, mine.start)
        return Change(before, cut[1], text[before + 1 : cut[0]])
    return Change(*cut, "")
