"""Which line of what a program wrote before it died tells why: a pure choice among the lines of its stderr.

That is seldom the very last one. Node ends with its version, Rust with a note, Go with its goroutines, npm with where its log
is. So, the last line counts that looks like an error, else the last that is not blank. What is certain (a panic) is looked for
in all that is kept, what may be one of many messages of a log only near the end.
"""

from __future__ import annotations

import re
from collections.abc import Sequence

__all__ = ["telling_line"]

_NEAR = 40
"""Lines at the end among which any error counts."""

_LOOKED_AT = 500
"""Characters of a line that are looked at."""

_CERTAIN = re.compile(r"(?:^|\s)(?:panic|fatal error): |^thread '.*' (?:\(\d+\) )?panicked at |^Exception in thread ")
_ERROR = re.compile(
    r"(?<![\w.$])[\w.$]*(?:Error|Exception)(?: \[\w+\])?(?::|$)"  # ValueError: …  TypeError [ERR_X]: …  java.io.IOException
    r"|^(?:ERROR|FATAL|CRITICAL)\b|[\s\[|](?:ERROR|FATAL|CRITICAL)[\s\]|:]"
    r"|\blevel=[\"']?(?:error|fatal)\b|[\"']level[\"']: ?[\"'](?:error|fatal)[\"']",
)
_ANY_CASE = re.compile(r"(?:^|[\s\[(])(?:error|fatal|exception|unhandled rejection)\s*[:!\]]", re.IGNORECASE)
_FRAME = re.compile(r"(?:at |File \"|from |\d+: )")  # of a stack
_PANICKED = re.compile(r"thread '.*panicked at .*:$")
_NPM = re.compile(r"npm (?:ERR!|error)(?: (.*))?$")
_NPM_FACTS = re.compile(r"(?:code|errno|syscall|path|command|cwd|signal|dest|A complete log)\b")


def telling_line(text: str) -> str:
    """The line of a text that most probably says why its writer ended; empty when there is none.

    Args:
        text: what it wrote on stderr, as far as it was kept.
    """
    lines = [line for each in text.splitlines() if (line := each.strip()) != ""]
    for at in range(len(lines) - 1, -1, -1):
        # Of groups of exceptions, Python draws the frame.
        line = lines[at][:_LOOKED_AT].lstrip("|+- ")
        if _NPM.match(line) is not None:
            return _of_npm(lines, at)
        if _CERTAIN.search(line) or (at >= len(lines) - _NEAR and _is_error(line)):
            return _whole(lines, at)
    return lines[-1] if lines else ""


def _is_error(line: str) -> bool:
    return _FRAME.match(line) is None and (_ERROR.search(line) is not None or _ANY_CASE.search(line) is not None)


def _whole(lines: Sequence[str], at: int) -> str:
    """The line; with the next one, where a panic has its message there."""
    line = lines[at].lstrip("|+- ")
    more = _PANICKED.match(line) is not None and at + 1 < len(lines)
    return f"{line} {lines[at + 1]}" if more else line


def _of_npm(lines: Sequence[str], last: int) -> str:
    """Of the lines in which npm says what is wrong, the last of which is given, the first that does not say a detail."""
    first = last
    while first > 0 and _NPM.match(lines[first - 1]) is not None:
        first -= 1
    for line in lines[first : last + 1]:
        said = _NPM.match(line)
        if said is not None and said[1] and not _NPM_FACTS.match(said[1]):
            return line
    return lines[last]
