"""Secrets out of what is shown: a command, its arguments and a URL as a person may read them.

This works on what is written in a configuration, unexpanded, so it goes by appearance: flags, keys and query parameters
whose name says that a secret follows, credentials in URLs, ``Bearer …``, and tokens of well-known form. A ``${VAR}``
reference is not a secret and stays readable; the default in ``${VAR:-default}`` may be one. When in doubt it masks: a
masked port is a nuisance, a shown password is a leak. Masking what is masked changes nothing.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache
from itertools import pairwise

__all__ = ["MASK", "looks_secret", "mask_args", "mask_text", "mask_url"]

MASK = "***"

_WORDS = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SECRET_WORDS = frozenset(
    {
        *("accesskey", "accesstoken", "apikey", "apitoken", "auth", "authorization", "authtoken", "bearer"),
        *("clientsecret", "cookie", "credential", "credentials", "jwt", "pass", "passcode", "passphrase", "passwd"),
        *("password", "privatekey", "pwd", "secret", "secretkey", "secrets", "token"),
    }
)
_SECRET_PAIRS = frozenset({("api", "key"), ("access", "key"), ("private", "key"), ("account", "key"), ("pass", "word")})
# "tokens" is as often a number of them as a list of them; these tell which.
_COUNTING = frozenset(
    {"budget", "context", "count", "input", "limit", "max", "min", "num", "number", "output", "per", "total"}
)
# What comes last says what the value is: the name of a file that holds a token is no secret.
_HARMLESS_ENDS = frozenset(
    {
        *(
            "count",
            "dir",
            "directory",
            "endpoint",
            "env",
            "expiry",
            "file",
            "length",
            "limit",
            "method",
            "mode",
            "name",
        ),
        *("path", "provider", "size", "ttl", "type", "uri", "url"),
    }
)
_SECRET_ENDS = ("apikey", "passwd", "password", "secret", "token")  # of words run together: ``githubtoken``
_QUERY_WORDS = frozenset({"key", "sig", "signature", "code"})

_REFERENCE = re.compile(r"\$\{[^{}]*\}")
_FLAG = re.compile(r"--?[A-Za-z][A-Za-z_-]*(?:[=:].*)?", re.DOTALL)
_SCHEMED = re.compile(r"((?:Bearer|Basic)\s+)(\S+)", re.IGNORECASE)
_BARE_FLAG = re.compile(r"--?[A-Za-z][\w.-]*")
_GLUED_LONG = re.compile(
    r"(--?(?:api[-_]?key|access[-_]?token|auth[-_]?token|password|passwd|secret|token))(?=[A-Z0-9]|[a-z]+\d)([^=:\s]+)"
)
_GLUED_SHORT = re.compile(r"(-p)(?=[^=:/]*[A-Za-z])(?=[^=:/]*[^A-Za-z=:/-])([^=:/\s]{4,})")
_KEYED = re.compile(r"(?<![\w.-])(-{0,2}[A-Za-z_][\w.-]*)([\"']?\s*[=:]\s*)([\"']?)((?:Bearer |Basic |Token )?)", re.I)
_FLAG_IN_TEXT = re.compile(r"(?<!\S)(--?[A-Za-z][\w.-]*)(\s+)(?!-)(\S+)")
_SCHEME_WORD = re.compile(r"\b(Bearer|Basic)(\s+)([A-Za-z0-9+/=._~$\{\}:-]{6,})", re.IGNORECASE)
_USERINFO = re.compile(r"(\b[A-Za-z][A-Za-z0-9+.-]{0,20}://)([^/?#\s\"'@]*(?:@[^/?#\s\"'@]*)*)@")
_USERINFO_SLASHED = re.compile(
    r"(\b[A-Za-z][A-Za-z0-9+.-]{0,20}://)([^/?#\s\"':@\[]*:(?!\d*(?:[/?#\s\"']|$))[^\s\"'@]*)@"
)
_USERINFO_PARTS = re.compile(r":|(?:\$\{[^{}]*\}|[^:$]|\$)+")
_QUERY = re.compile(r"([?&;#])([^=&;#?\s]+)=([^&;#\s\"']*)")
_KNOWN = re.compile(
    r"(?<![A-Za-z0-9])"
    r"(gh[pousr]_|github_pat_|glpat-|sk-|[sr]k_(?:live|test)_|xox[a-z]-|xapp-|gsk_|tvly-|ntn_|lin_api_|figd_|dop_v1_|SG\."
    r"|shp(?:at|ca|pa|ss)_|sbp_|PMAK-|xai-|whsec_|ya29\.|AIza|AKIA|ASIA|eyJ"
    r"|(?:npm_|pypi-|hf_|r8_)(?=[a-z_-]*[A-Z0-9]))"  # also how names of packages and settings begin
    r"([A-Za-z0-9_.+/=-]{4,})"
)
_PATH_TOKEN = re.compile(r"(?<=/)(?=[A-Za-z_~-]*\d)(?=[\d_~-]*[A-Za-z])[A-Za-z0-9_~-]{32,}(?=[/?#]|$)")
_DEFAULTED = re.compile(r"(\$\{[^{}]*?:-)([^{}]*)(\})")


def _words(name: str) -> list[str]:
    return [word.lower() for word in _WORDS.findall(name)]


def looks_secret(name: str) -> bool:
    """Whether the name of a flag, a variable, a header or a query parameter says that its value is a secret.

    Args:
        name: with or without leading dashes, in any style of writing (``--api-key``, ``API_KEY``, ``apiKey``).
    """
    words = _words(name)
    if not words or words[-1] in _HARMLESS_ENDS:
        return False
    if words == ["key"] or words[-1].endswith(_SECRET_ENDS):
        return True
    if any(word in _SECRET_WORDS for word in words) or any(pair in _SECRET_PAIRS for pair in pairwise(words)):
        return "tokens" not in words or not _COUNTING.intersection(words)
    return "tokens" in words and not _COUNTING.intersection(words)


def _hide(value: str) -> str:
    """Mask a whole value, but for its references."""
    out: list[str] = []
    at = 0
    for match in _REFERENCE.finditer(value):
        if match.start() > at:
            out.append(MASK)
        out.append(_DEFAULTED.sub(lambda m: m[1] + (MASK if m[2] else "") + m[3], match[0]))
        at = match.end()
    if at < len(value):
        out.append(MASK)
    return "".join(out)


def _query(match: re.Match[str]) -> str:
    separator, name, value = match.groups()
    if looks_secret(name) or _QUERY_WORDS.intersection(_words(name)[-1:]):
        return f"{separator}{name}={_hide(value)}"
    return match[0]


def _keyed(text: str) -> str:
    """Mask the value of each ``key=value`` and ``key: value`` whose key looks secret."""
    out: list[str] = []
    at = 0
    for match in _KEYED.finditer(text):
        start = match.end()
        if match.start() < at or text.startswith("//", start) or not looks_secret(match[1]):
            continue
        quote = match[3]
        if quote:
            end = text.find(quote, start)
            end = len(text) if end < 0 else end
        elif ":" in match[2] and match.start() == 0:
            end = len(text)  # a header line: all of it
        else:
            end = start
            while end < len(text) and not text[end].isspace() and text[end] not in "&;,\"'":
                end += 1
        if end > start:
            out.append(text[at:start] + _hide(text[start:end]))
            at = end
    out.append(text[at:])
    return "".join(out)


def mask_text(text: str) -> str:
    """Mask what looks like a secret anywhere in a text.

    Args:
        text: any text, such as one argument or a line of a shell.

    Returns:
        The text with each secret replaced by ``MASK``.
    """
    text = _USERINFO.sub(lambda m: f"{m[1]}{_hide_userinfo(m[2])}@", text)
    text = _USERINFO_SLASHED.sub(lambda m: f"{m[1]}{_hide_userinfo(m[2])}@", text)
    text = _QUERY.sub(_query, text)
    text = _keyed(text)
    text = _FLAG_IN_TEXT.sub(lambda m: m[1] + m[2] + _hide(m[3]) if looks_secret(m[1]) else m[0], text)
    text = _SCHEME_WORD.sub(lambda m: m[1] + m[2] + _hide(m[3]), text)
    return _KNOWN.sub(lambda m: m[1] + MASK, text)


def _hide_userinfo(userinfo: str) -> str:
    """Mask user and password, each but for its references; the colon between them stays."""
    return "".join(part if part == ":" else _hide(part) for part in _USERINFO_PARTS.findall(userinfo))


@lru_cache(maxsize=4096)
def mask_url(url: str) -> str:
    """Mask the secrets of a URL: its user info, secret-looking query values, and long random parts of its path.

    Args:
        url: as written; it need not be a valid one.
    """
    return _PATH_TOKEN.sub(MASK, mask_text(url))


def mask_args(args: Iterable[str]) -> tuple[str, ...]:
    """Mask the secrets among the arguments of a command.

    Args:
        args: as written, unexpanded.

    Returns:
        As many arguments, each readable but for its secrets; also the one that follows a flag such as ``--token``.
    """
    return _masked(tuple(args))


@lru_cache(maxsize=4096)  # a row is made anew with each word of its server, and its arguments are the same ones
def _masked(args: tuple[str, ...]) -> tuple[str, ...]:
    out: list[str] = []
    follows = False
    for arg in args:
        if follows and not _FLAG.fullmatch(arg):
            out.append(_hide(arg))
            follows = False
            continue
        follows = arg.casefold() == "bearer" or (_BARE_FLAG.fullmatch(arg) is not None and looks_secret(arg))
        glued = _GLUED_LONG.fullmatch(arg) or _GLUED_SHORT.fullmatch(arg) or _SCHEMED.fullmatch(arg)
        if glued is not None:
            out.append(glued[1] + _hide(glued[2]))
            follows = False
        else:
            out.append(mask_text(arg))
    return tuple(out)
