"""Regular expressions that every provider's validator can be expected to compile.

OpenAI checks a request's ``pattern``s before anything else, and refuses the whole request for one that its engine does not
know: it has no lookaround ('regex lookaround is not supported': litellm#40485, vercel/ai#21037, opencode#32073, Dokploy/mcp#45;
zod's ``email()`` makes one), and engines of its kind have no backreferences either. Whether the rest compiles there cannot be
asked here; Python's `re` answers for it, which knows a little more and a little less. What it does not compile is left out.
"""

from __future__ import annotations

import re
import warnings
from functools import lru_cache

__all__ = ["MAX_PATTERNS", "oddity"]

MAX_PATTERNS = 100_000
"""How many characters the regular expressions of one schema may have in all, where they are judged."""

_LONGEST = 1_000
_DEEPEST = 40  # groups in one another: far from where `re` runs out of stack

_GROUPS = (
    ("(?=", "lookaround"),
    ("(?!", "lookaround"),
    ("(?<=", "lookaround"),
    ("(?<!", "lookaround"),
    ("(?P=", "a backreference"),
    ("(?>", "an atomic group"),
    ("(?(", "a conditional group"),
)
_NAMED = re.compile(r"\(\?<(?=[A-Za-z_])")


def _screened(pattern: str) -> str | None:
    """What a regular expression has that not every engine knows, found without compiling it."""
    place, depth, in_class = 0, 0, False
    before = ""
    while place < len(pattern):
        each = pattern[place]
        if each == "\\":
            escaped = pattern[place + 1 : place + 2]
            if escaped in ("p", "P"):
                return "a class of Unicode properties"
            if not in_class and (escaped == "k" or "1" <= escaped <= "9"):
                return "a backreference"
            place, before = place + 2, ""
            continue
        if in_class:
            in_class = each != "]"
        elif each == "[":
            in_class = True
        elif each == "(":
            depth += 1
            if depth > _DEEPEST:
                return f"groups more than {_DEEPEST} deep"
            for start, what in _GROUPS:
                if pattern.startswith(start, place):
                    return what
        elif each == ")":
            depth -= 1
        elif each == "+" and before and before in "*+?}":
            return "a possessive quantifier"
        before = each
        place += 1
    return None


@lru_cache(maxsize=1_024)
def oddity(pattern: str) -> str | None:
    """What keeps a regular expression from being taken everywhere, in a few words, or None."""
    if len(pattern) > _LONGEST:
        return f"more than {_LONGEST} characters"
    found = _screened(pattern)
    if found is not None:
        return found
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # of what may mean something else one day
            re.compile(_NAMED.sub("(?P<", pattern))
    except Exception:  # besides its own error: numbers too large, and the like
        return "what does not compile"
    return None
