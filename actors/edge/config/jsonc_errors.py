"""What is wrong with a JSONC text, for people: the scanner's verdict in plain words, with its line and column.

Only runs once a text has turned out to be wrong, so it may be slow.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from json import JSONDecodeError
from typing import Any

from ...model.errors import ConfigError

__all__ = ["ConstantFound", "explain", "line_starts", "place"]

_BREAK = re.compile(r"\r\n|\r|\n")
_TOKEN = re.compile(r'"(?:[^"\\\r\n]++|\\[^\r\n])*+"?|[\[\]{}]')
_CONSTANT = re.compile(r'(?:[^"NI]++|"(?:[^"\\]++|\\.)*+")*+').match
_DIGITS = re.compile(r"\d{640,}")
_WORD = re.compile(r"[\w$.+-]+").match
_QUOTES = "\u201c\u201d\u201e\u201f\u2018\u2019\u00ab\u00bb"
_INVISIBLE = "\u200b\u200c\u200d\u2060\ufeff\u00ad"
_DEEP = 200


class ConstantFound(Exception):
    """The scanner met NaN, Infinity or -Infinity."""


def line_starts(text: str) -> list[int]:
    """The offset at which each line begins."""
    return [0, *(each.end() for each in _BREAK.finditer(text))]


def place(text: str, at: int) -> tuple[int, int]:
    """The 1-based line and column (in characters) of an offset; a byte-order mark takes no column."""
    before = text[:at]
    line, start = 1, 0
    for each in _BREAK.finditer(before):
        line += 1
        start = each.end()
    # The first half of a line end that is cut in two by the offset is still on its own line.
    column = at - start + 1
    if line == 1 and text.startswith("\ufeff") and at > 0:
        column -= 1
    return line, column


def _openers(json: str, until: int) -> list[int]:
    """The offsets of the brackets that are open at an offset."""
    stack: list[int] = []
    for each in _TOKEN.finditer(json, 0, until):
        if each[0] in "[{":
            stack.append(each.start())
        elif each[0] in "]}" and stack:
            stack.pop()
    return stack


def _deep(json: str) -> int:
    depth = 0
    for each in _TOKEN.finditer(json):
        depth += (each[0] in "[{") - (each[0] in "]}")
        if depth > _DEEP:
            return each.start()
    return 0


def _found(json: str, at: int) -> str:
    if at >= len(json):
        return "the end of the file"
    word = _WORD(json, at)
    return repr(word[0][:30] if word else json[at])


def _string_start(json: str, at: int) -> int:
    for each in _TOKEN.finditer(json):
        if each.start() <= at <= each.end() and each[0][0] == '"':
            return each.start()
    return at


def _hint(json: str, at: int, *, key: bool) -> str:
    char = json[at : at + 1]
    word = _WORD(json, at)
    if json.startswith(("<<<<<<<", "=======", ">>>>>>>"), at):
        return " (a merge that was not finished)"
    if json.startswith("```", at):
        return " (leave out the ``` lines around it)"
    if char and char in _QUOTES:
        return f" (U+{ord(char):04X}: strings are written in plain double quotes)"
    if char and (char.isspace() or char in _INVISIBLE):
        return f" (U+{ord(char):04X}: only plain spaces, tabs and line ends may stand here)"
    if char == "'":
        return " (strings are written in double quotes)"
    if json.startswith("/*", at):
        return " (this comment does not end)"
    if char == "#":
        return " (a comment begins with //)"
    if word is not None and word[0] in ("True", "False", "None"):
        return f" (write {'null' if word[0] == 'None' else word[0].lower()})"
    if key and word is not None:
        return " (keys are written in double quotes)"
    return ""


def _say(text: str, json: str, message: str, at: int) -> tuple[str, int]:
    """The scanner's message in our words (they differ between Python versions), and the offset it is about."""
    if message.startswith("Unterminated string"):
        line, column = place(text, at)
        return f"unterminated string starting at line {line} column {column}", at
    if message.startswith("Invalid control character"):
        if json[at : at + 1] in "\r\n":
            start = _string_start(json, at)
            line, column = place(text, start)
            return f"unterminated string starting at line {line} column {column}", start
        return f"a string holds the control character U+{ord(json[at]):04X}; write it as an escape", at
    if message.startswith("Invalid \\"):
        at = at if json[at : at + 1] == "\\" else json.rfind("\\", 0, at + 1)
        return f"bad escape {json[at : at + 2]} in a string (double each backslash: \\\\)", at
    if message.startswith("Extra data"):
        return f"extra data after the end of the value: {_found(json, at)}", at
    if message.startswith("Illegal trailing comma"):
        at = len(json) - len(json[at + 1 :].lstrip(" \t\r\n"))
    if message.startswith(("Expecting ',' delimiter", "Expecting ':' delimiter")):
        found, hint = _found(json, at), _hint(json, at, key=False)
        if "':'" in message:
            return f"expected ':' after the key, found {found}{hint}", at
        stack = _openers(json, at)
        if stack and at >= len(json):
            line, column = place(text, stack[-1])
            return f"the file ends before the {json[stack[-1]]!r} of line {line} column {column} is closed", at
        close = "}" if stack and json[stack[-1]] == "{" else "]"
        return f"expected ',' or {close!r}, found {found}{hint}", at
    key = message.startswith("Expecting property name")
    what = "a key in double quotes" if key else "a value"
    if at >= len(json):
        stack = _openers(json, at)
        if stack:
            line, column = place(text, stack[-1])
            return f"the file ends before the {json[stack[-1]]!r} of line {line} column {column} is closed", at
    return f"expected {what}, found {_found(json, at)}{_hint(json, at, key=key)}", at


def explain(text: str, json: str, value_at: Callable[[str, int], tuple[Any, int]], file: str | None) -> ConfigError:
    """Read a blanked text once more from its beginning and say why it is not JSON.

    Args:
        text: as written.
        json: the text with comments and trailing commas blanked.
        value_at: the scanner: reads the value at an offset.
        file: the path, for the error.
    """
    start = len(json) - len(json.lstrip(" \t\r\n"))
    try:
        _, end = value_at(json, start)
        rest = len(json) - len(json[end:].lstrip(" \t\r\n"))
        message, at = _say(text, json, "Extra data", rest)
    except JSONDecodeError as bad:
        message, at = _say(text, json, bad.msg, bad.pos)
    except ConstantFound as bad:
        stop = _CONSTANT(json)
        at = stop.end() if stop else start
        at -= json[at - 1 : at] == "-"
        message = f"{bad} is not JSON; expected a number"
    except RecursionError:
        message, at = "nested too deeply", _deep(json)
    except ValueError:
        digits = _DIGITS.search(json)
        message, at = "a number has too many digits", digits.start() if digits else start
    line, column = place(text, at)
    return ConfigError(message, file=file, line=line, column=column)
