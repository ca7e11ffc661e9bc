"""The keys of an entry as they are written, each with what its value must be: cattrs does the structuring.

Nothing is coerced: a number where a string belongs is an error that says so. cattrs runs twice at most: quickly, and if that
fails once more to collect everything that is wrong, with its path.
"""

from __future__ import annotations

import math
import operator
import re
from collections.abc import Callable, Iterable
from functools import cache, partial
from typing import TYPE_CHECKING, Any, NewType
from urllib.parse import urlsplit

from attrs import define, field, fields, frozen

from ...model.nearest import nearest
from ...model.protocol import version_wrong
from .jsonc_walk import Path

if TYPE_CHECKING:
    from cattrs import Converter

__all__ = [
    "ENTRY_KEYS",
    "TOOL_KEYS",
    "Headers",
    "Problem",
    "Written",
    "headers_of",
    "kind_of",
    "structure",
    "unsendable",
    "url_wrong",
]

_TYPES = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "streamablehttp": "http",
    "remote": "http",
    "sse": "sse",
}


_TOKEN = re.compile(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+\Z").match
_UNSENDABLE = re.compile(r"[^\t\x20-\x7e]").search


@frozen
class Problem:
    """What is wrong with an entry.

    Args:
        path: where in it.
        message: what, in one line without the place.
        twice: the key at ``path`` is there twice; its lines are to be named.
    """

    path: Path
    message: str
    twice: bool = False


class _Wrong(ValueError):
    def __init__(self, message: str, path: Path = ()) -> None:
        self.path = path
        super().__init__(message)


def kind_of(value: Any) -> str:
    """What a JSON value is, in words."""
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return "a string"
        case int() | float():
            if not _finite(value):
                return "an infinite number" if isinstance(value, float) else "a number that is too large"
            return f"the number {value:g}" if abs(value) < 1e15 else "a number"
        case list():
            return "a list"
        case _:
            return "an object"


def _command(value: Any) -> str:
    if isinstance(value, list):
        raise _Wrong("expected a string, found a list (put its first item here and the others into args)")
    if isinstance(value, dict) and isinstance(value.get("path"), str):
        raise _Wrong("expected a string, found an object (put its path here, and its args and env beside it)")
    return _string(value)


def _string(value: Any, path: Path = ()) -> str:
    if type(value) is not str:
        number = isinstance(value, (int, float))
        raise _Wrong(f"expected a string, found {kind_of(value)}{' (write it in quotes)' if number else ''}", path)
    if "\0" in value:
        raise _Wrong("a NUL character cannot be passed on", path)
    if not value.isascii():
        try:
            value.encode()
        except UnicodeEncodeError:
            raise _Wrong("half of a surrogate pair cannot be passed on", path) from None
    return value


def _strings(value: Any) -> tuple[str, ...]:
    if type(value) is not list:
        raise _Wrong(f"expected a list of strings, found {kind_of(value)}")
    return tuple(_string(each, (i,)) for i, each in enumerate(value))


def _mapping(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise _Wrong(f"expected an object of strings, found {kind_of(value)}")
    out = {_string(key, (key,)): _string(each, (key,)) for key, each in value.items() if each is not None}
    for key in out:
        if not key or "=" in key:
            raise _Wrong(f"{key!r} cannot be a name", (key,))
    return out


def _headers(value: Any) -> dict[str, str]:
    """As `_mapping`, and such as can be sent (RFC 9110, 5.1 and 5.5; in ASCII, as whatever else is not read alike)."""
    out = _mapping(value)
    for name, text in out.items():
        if not _TOKEN(name):
            raise _Wrong(f"{name!r} cannot be the name of a header", (name,))
        if (bad := unsendable(text)) is not None:
            raise _Wrong(f"{bad} cannot be sent in a header", (name,))
    return out


def headers_of(value: Any) -> Headers:
    """A mapping that came from elsewhere than a file, as headers.

    Raises:
        ValueError: it is none, or holds what cannot be sent; the message shows no value.
    """
    return Headers(_headers(value))


def unsendable(text: str) -> str | None:
    """What of a text cannot be sent in a header, in words and without the text; None when all can (RFC 9110, 5.5)."""
    bad = _UNSENDABLE(text)
    if bad is None:
        return None
    return "a line break" if bad[0] in "\r\n" else f"the character U+{ord(bad[0]):04X}"


def url_wrong(url: str) -> str | None:
    """Why a URL leads nowhere, in one line without its text; None when it may well lead somewhere.

    Args:
        url: with all that it refers to put in.
    """
    if not re.match(r"https?://", url, re.IGNORECASE):
        return "expected a URL that begins with http:// or https://"
    try:
        parts = urlsplit(url)
        host = parts.hostname
    except ValueError:
        return "expected a URL, found an IPv6 address in it that is none"
    try:
        port = parts.port
    except ValueError:
        return "expected a URL, found a port in it that is no number up to 65535"
    if not host:
        return "expected a URL, found no host in it"
    return "expected a URL, found the port 0 in it" if port == 0 else None


def _object(value: Any) -> dict[str, Any]:
    if not isinstance(value, dict):
        raise _Wrong(f"expected an object, found {kind_of(value)}")
    return value


def _bool(value: Any) -> bool:
    if type(value) is not bool:
        quoted = value if value in ("true", "false") else None
        raise _Wrong(
            f"expected true or false, found {kind_of(value)}" + (f" (write {quoted} without quotes)" if quoted else "")
        )
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not _finite(value):
        raise _Wrong(f"expected a number, found {kind_of(value)}")
    return value


def _finite(value: float) -> bool:
    try:
        return math.isfinite(value)
    except OverflowError:
        return False


Seconds = NewType("Seconds", float)


def _seconds(value: Any) -> float:
    """Below 1000 it is seconds, else milliseconds: both are written by hosts people come from."""
    number = _number(value)
    if number <= 0:
        raise _Wrong(f"expected a time above 0, found {kind_of(value)}")
    return number if number < 1000 else number / 1000


Command = NewType("Command", str)
Headers = NewType("Headers", dict[str, str])
Transport = NewType("Transport", str)
ProtocolVersion = NewType("ProtocolVersion", str)


def _transport(value: Any) -> str:
    text = _string(value)
    known = _TYPES.get(re.sub(r"[-_ ]", "", text).lower())
    if known is None:
        near = nearest(text, _TYPES)
        raise _Wrong(
            f"expected stdio, http or sse, found {text!r}" + (f" (did you mean {_TYPES[near]!r}?)" if near else "")
        )
    return known


def _protocol_version(value: Any) -> str:
    text = _string(value)
    if (wrong := version_wrong(text)) is not None:
        raise _Wrong(wrong)
    return text


@define(kw_only=True)
class _Tools:
    exclude: tuple[str, ...] = ()
    include: tuple[str, ...] | None = None
    pin: tuple[str, ...] = ()


@define(kw_only=True)
class Written:
    """An entry as it is written, key by key."""

    command: Command | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(factory=dict)
    cwd: str | None = None
    env_file: str | None = None
    type: Transport | None = None
    transport: Transport | None = None
    url: str | None = None
    server_url: str | None = None
    http_url: str | None = None
    headers: Headers = field(factory=lambda: Headers({}))
    headers_helper: str | None = None
    oauth: Any = None
    auth: Any = None
    protocol_version: ProtocolVersion | None = None
    disabled: bool = False
    enabled: bool = True
    is_active: bool = True
    timeout: Seconds | None = None
    connect_timeout: Seconds | None = None
    tools: _Tools = field(factory=_Tools)
    disabled_tools: tuple[str, ...] = ()
    exclude_tools: tuple[str, ...] = ()
    enabled_tools: tuple[str, ...] | None = None
    include_tools: tuple[str, ...] | None = None
    priority: float = 0


_RENAMED = {
    "env_file": "envFile",
    "server_url": "serverUrl",
    "http_url": "httpUrl",
    "headers_helper": "headersHelper",
    "protocol_version": "protocolVersion",
    "is_active": "isActive",
    "connect_timeout": "connectTimeout",
    "disabled_tools": "disabledTools",
    "exclude_tools": "excludeTools",
    "enabled_tools": "enabledTools",
    "include_tools": "includeTools",
}
ENTRY_KEYS: frozenset[str] = frozenset(_RENAMED.get(a.name) or a.name for a in fields(Written))
TOOL_KEYS = frozenset(a.name for a in fields(_Tools))


def _call(hook: Callable[[Any], Any], value: Any, _: Any) -> Any:
    return hook(value)


@cache  # made when an entry is first read: who opens a host of values reads none
def _converter(detailed: bool) -> Converter:
    from cattrs import Converter
    from cattrs.gen import make_dict_structure_fn, override

    converter = Converter(detailed_validation=detailed)
    plain: list[tuple[Any, Callable[[Any], Any]]] = [(str, _string), (bool, _bool), (float, _number)]
    for kind, hook in plain:
        converter.register_structure_hook(kind, partial(_call, hook))
    made: list[tuple[Any, Callable[[Any], Any]]] = [
        (Seconds, _seconds),
        (Command, _command),
        (Transport, _transport),
        (ProtocolVersion, _protocol_version),
        (tuple[str, ...], _strings),
        (dict[str, str], _mapping),
        (Headers, _headers),
    ]
    for kind, hook in made:
        converter.register_structure_hook_func(partial(operator.eq, kind), partial(_call, hook))
    tools = make_dict_structure_fn(_Tools, converter)
    converter.register_structure_hook(_Tools, lambda value, _: tools(_object(value), _Tools))
    renames = {name: override(rename=key) for name, key in _RENAMED.items()}
    converter.register_structure_hook(Written, make_dict_structure_fn(Written, converter, **renames))  # type: ignore[arg-type]
    return converter


def _leaves(error: BaseException, path: Path) -> Iterable[Problem]:
    from cattrs.errors import ClassValidationError

    if isinstance(error, ClassValidationError):
        with_notes, _ = error.group_exceptions()
        for each, note in with_notes:
            yield from _leaves(each, (*path, _RENAMED.get(note.name, note.name)))
    elif isinstance(error, _Wrong):
        yield Problem((*path, *error.path), str(error))


def structure(raw: dict[str, Any]) -> tuple[Written, list[Problem]]:
    """An entry's keys, each checked.

    Args:
        raw: the entry, without keys whose value is null.

    Returns:
        What is right, and what is wrong with the rest.
    """
    from cattrs.errors import ClassValidationError

    try:
        return _converter(False).structure(raw, Written), []
    except _Wrong:
        pass
    try:
        return _converter(True).structure(raw, Written), []
    except ClassValidationError as error:
        problems = list(_leaves(error, ()))
    bad = {problem.path[0] for problem in problems}
    return _converter(False).structure({key: value for key, value in raw.items() if key not in bad}, Written), problems
