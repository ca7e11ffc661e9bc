"""Env files: ``KEY=VALUE`` lines."""

from __future__ import annotations

import re
from pathlib import Path

from .regular import read_regular

__all__ = ["decode_env_file", "parse_env_file", "read_env_file"]

_LINE = re.compile(r"(?:export[ \t]+)?([A-Za-z_][\w.-]*)[ \t]*=[ \t]*(.*)", re.ASCII)
_ESCAPE = re.compile(r"\\(.)", re.DOTALL)
_ESCAPES = {"n": "\n", "r": "\r", "t": "\t", '"': '"', "\\": "\\", "$": "$"}


def parse_env_file(text: str) -> dict[str, str]:
    r"""The variables of an env file.

    Lines are ``KEY=VALUE``, with ``export`` before it or not. Blank lines and lines that begin with ``#`` are skipped. A value
    in single quotes is taken as it is; in double quotes ``\n \r \t \" \\`` are read; either may go over several lines. Without
    quotes it ends at `` #`` or the end of the line, without the white space around it. Nothing in a value is expanded.

    Args:
        text: the file's.

    Raises:
        ValueError: a line is none of these; one line that gives its number and none of its text.
    """
    out: dict[str, str] = {}
    lines = text.removeprefix("\ufeff").replace("\r\n", "\n").split("\n")
    number = 0
    while number < len(lines):
        line = lines[number].strip()
        number += 1
        if not line or line.startswith("#"):
            continue
        found = _LINE.fullmatch(line)
        if found is None:
            raise ValueError(f"line {number}: expected KEY=VALUE")
        key, value = found[1], found[2]
        quote = value[:1]
        if quote not in ("'", '"') or not quote:
            out[key] = re.split(r"(?:^|[ \t])#", value, maxsplit=1)[0].rstrip()
            continue
        first = number
        rest = lines[number - 1][lines[number - 1].index(quote) + 1 :]
        while (end := _closing(rest, quote)) < 0:
            if number == len(lines):
                raise ValueError(f"line {first}: the quote does not end")
            rest += "\n" + lines[number]
            number += 1
        if rest[end + 1 :].strip() and not rest[end + 1 :].lstrip().startswith("#"):
            raise ValueError(f"line {number}: there is text behind the quote")
        inside = rest[:end]
        out[key] = (
            inside
            if quote == "'"
            else _ESCAPE.sub(lambda m: _ESCAPES.get(m[1], m[1] if m[1] in '"\\$' else m[0]), inside)
        )
    return out


def _closing(text: str, quote: str) -> int:
    at = 0
    while at < len(text):
        if text[at] == "\\" and quote == '"':
            at += 1
        elif text[at] == quote:
            return at
        at += 1
    return -1


def read_env_file(file: Path) -> dict[str, str]:
    """The variables of an env file.

    Args:
        file: its path.

    Raises:
        ValueError: it cannot be read; one line, without its path.
    """
    try:
        data = read_regular(file)
    except OSError as error:
        raise ValueError(f"cannot be read: {(error.strerror or str(error)).lower()}") from None
    return parse_env_file(decode_env_file(data))


def decode_env_file(data: bytes) -> str:
    """The text of an env file, with line ends as `parse_env_file` wants them.

    Raises:
        ValueError: it is no text; one line.
    """
    try:
        text = data.decode("utf-8").replace("\r\n", "\n").replace("\r", "\n")
    except UnicodeDecodeError:
        raise ValueError("cannot be read: it is not UTF-8") from None
    if "\0" in text:
        raise ValueError("cannot be read: it holds a NUL character")
    return text
