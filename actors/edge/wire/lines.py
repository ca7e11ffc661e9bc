"""Bytes into lines, in linear time and bounded memory.

A server's stdout is one JSON message per line. A line may be very long (a 50 MB result) and may arrive in many small reads;
searching the whole buffer again for each read would be quadratic, so each byte is looked at once. A line over the cap is not
kept: it is skipped up to its newline, reported once, and the lines after it are delivered as if it had not been there.
"""

from __future__ import annotations

import re
from collections.abc import Callable

__all__ = ["DEFAULT_MAX_LINE", "HEAD_KEPT", "LineSplitter"]

DEFAULT_MAX_LINE = 64 * 1024 * 1024
"""Bytes; the newline does not count."""

HEAD_KEPT = 256
"""Bytes of a skipped line that are kept for its report."""


_BLANK_HEAD = re.compile(rb"\n\s")

_OBJECT = re.compile(rb"^[ \t\r\f\v]*\{", re.MULTILINE)

_NOT_BLANK = re.compile(rb"\S[^\n]*")


class LineSplitter:
    """Splits a byte stream at ``\\n``.

    Args:
        max_line: longest line delivered, in bytes without its newline.
        on_overlong: called once for each line that is longer, with its first `HEAD_KEPT` bytes, as soon as that is known.
    """

    def __init__(self, max_line: int = DEFAULT_MAX_LINE, on_overlong: Callable[[bytes], None] | None = None) -> None:
        self._max_line = max_line
        self._on_overlong = on_overlong
        self._partial = bytearray()
        self._skipping = False

    def feed(self, data: bytes) -> list[bytes]:
        """Take the next bytes of the stream, cut anywhere.

        Args:
            data: one or more bytes.

        Returns:
            The lines that are complete now, in order, without their newlines.
        """
        first, *rest = data.split(b"\n")
        if not rest:
            self._extend(first)
            return []
        lines: list[bytes] = []
        if self._partial or self._skipping:
            self._extend(first)
            first = bytes(self._partial)
            self._partial.clear()
        if not self._skipping:
            self._deliver(first, lines)
        self._skipping = False
        last = rest.pop()
        for line in rest:
            self._deliver(line, lines)
        self._extend(last)
        return lines

    def noise(self, data: bytes) -> tuple[int, bytes] | None:
        """Take the next bytes at one look, if no line that ends in them can be a message: none is an object.

        What servers print by mistake may be megabytes a second; a line of it is not worth a step of its own.

        Args:
            data: one or more bytes.

        Returns:
            How many lines that are not blank ended, and the last of them (or its beginning). None: nothing was taken, and the
            bytes are to be fed.
        """
        first = data.find(b"\n")
        if self._skipping or first < 0:
            return None
        begun = bytes(self._partial[:HEAD_KEPT])
        if begun and (not (head := begun.lstrip()) or head.startswith(b"{")):
            return None
        start, end = first + 1 if begun else 0, data.rindex(b"\n") + 1
        if len(self._partial) + len(data) > self._max_line:
            return None
        if b"{" in data and _OBJECT.search(data, start) is not None:
            return None
        count, last = _count(data, start, end)
        if begun:
            count, last = count + 1, last or begun + data[:first]
        self._partial = bytearray(data[end:])
        return count, last

    @property
    def partial(self) -> bytes:
        """The bytes after the last newline: at the end of the stream, a line that was never finished."""
        return bytes(self._partial)

    def _extend(self, piece: bytes) -> None:
        if self._skipping:
            return
        self._partial += piece
        if len(self._partial) > self._max_line:
            self._report(bytes(self._partial[:HEAD_KEPT]))
            self._partial = bytearray()  # not clear(): the memory is given back
            self._skipping = True

    def _deliver(self, line: bytes, lines: list[bytes]) -> None:
        if len(line) > self._max_line:
            self._report(line[:HEAD_KEPT])
        else:
            lines.append(line)

    def _report(self, head: bytes) -> None:
        if self._on_overlong is not None:
            self._on_overlong(head)


def _count(data: bytes, start: int, end: int) -> tuple[int, bytes]:
    """How many lines between two places are not blank, and the last of them, or empty."""
    if start == end:
        return 0, b""
    if data[start : start + 1].isspace() or _BLANK_HEAD.search(data, start, end) is not None:
        found = _NOT_BLANK.findall(data, start, end)
        return len(found), found[-1] if found else b""
    # None of them begins with a blank, so none is blank: several times as fast.
    last = max(start, data.rfind(b"\n", start, end - 1) + 1)
    return data.count(b"\n", start, end), data[last : end - 1]
