"""Text that is pasted, gathered from keys: a terminal tells where it begins and ends (bracketed paste, xterm's mode 2004)."""

from __future__ import annotations

__all__ = ["Pasting"]

_MOST = 65_536
"""Characters of a paste that are kept; what comes after them is dropped."""

_GAP = 3.0
"""Seconds without a key after which a paste is over whose end got lost: keys are keys again."""

_TEXT = {"enter": "\n", "tab": "\t"}


class Pasting:
    """A paste that is under way, or none."""

    def __init__(self) -> None:
        self._parts: list[str] | None = None
        self._length = 0
        self._last = 0.0

    def take(self, key: str, now: float) -> tuple[bool, str | None]:
        """Look at a key.

        Args:
            key: as urwid names it.
            now: seconds; only differences count.

        Returns:
            Whether the key belongs to a paste, so that it is nothing else; and the text of one that is over with this key, or
            is found to have been over before it.
        """
        before = None
        if self._parts is not None and now - self._last > _GAP:
            before = self._end()
        self._last = now
        if key == "end paste":
            return True, self._end() if before is None else before
        if self._parts is None:
            if key != "begin paste":
                return False, before
            self._parts, self._length = [], 0
        elif self._length < _MOST:
            text = key if len(key) == 1 else _TEXT.get(key, "")
            self._parts.append(text)
            self._length += len(text)
        return True, before

    def _end(self) -> str | None:
        parts, self._parts = self._parts, None
        return None if parts is None else "".join(parts)
