"""One entry of a configuration: from what is written to a `ServerEntry` and back.

Keys of other hosts are read as what they mean there; a key we do not know stays in the file and is at most warned about. What is
wrong is collected, each with its path inside the entry; the fields that are right are kept all the same.

Which key of a list counts: all that are there, joined in the order of `EXCLUDES` and `INCLUDES`.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable
from typing import Any, NewType

from attrs import define, evolve, field, frozen
from cattrs import Converter
from cattrs.errors import ClassValidationError
from cattrs.gen import make_dict_structure_fn, override

from ..model.config import ServerEntry
from ..model.nearest import nearest
from .jsonc import Path, Twice, show_path

__all__ = ["EXCLUDES", "INCLUDES", "PIN", "EntryRead", "Problem", "entry_json", "looks_like_server", "read_entry"]

EXCLUDES: tuple[Path, ...] = (("tools", "exclude"), ("disabledTools",), ("excludeTools",))
INCLUDES: tuple[Path, ...] = (("tools", "include"), ("enabledTools",), ("includeTools",))
PIN: Path = ("tools", "pin")

_URLS = ("url", "serverUrl", "httpUrl")
_TYPES = {
    "stdio": "stdio",
    "local": "stdio",
    "http": "http",
    "streamablehttp": "http",
    "remote": "http",
    "sse": "sse",
}
# Keys that mean one of ours in another host, but are not read: what reads past them runs the wrong thing.
_FOREIGN = {
    "working_directory": "cwd",
    "workingDirectory": "cwd",
    "workdir": "cwd",
    "cmd": "command",
    "executable": "command",
    "arguments": "args",
    "envs": "env",
    "environment": "env",
    "env_file": "envFile",
    "server_type": "type",
    "uri": "url",
    "link": "url",
    "endpoint": "url",
    "baseUrl": "url",
}
_RUNS_WRONG = {"working_directory", "workingDirectory", "workdir", "arguments", "envs", "environment", "env_file"}
# Keys other hosts write that change nothing here: kept, and not worth a warning.
_QUIET = frozenset(
    [
        "$schema",
        "_comment",
        "alwaysAllow",
        "authProviderType",
        "autoApprove",
        "autoStart",
        "comment",
        "desc",
        "description",
        "dev",
        "displayName",
        "from_gallery",
        "gallery",
        "icon",
        "iconPath",
        "id",
        "label",
        "name",
        "note",
        "notes",
        "oauth",
        "scope",
        "server_type",
        "tags",
        "title",
        "trust",
        "version",
    ]
)


@frozen
class Problem:
    """What is wrong with an entry, and where in it."""

    path: Path
    message: str


@frozen
class EntryRead:
    """What an entry was read as: ``entry`` without a place or error, what is wrong with it, and what looks wrong."""

    entry: ServerEntry
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()


class _Wrong(ValueError):
    def __init__(self, message: str, path: Path = ()) -> None:
        self.path = path
        super().__init__(message)


def _kind(value: Any) -> str:
    match value:
        case None:
            return "null"
        case bool():
            return str(value).lower()
        case str():
            return "a string"
        case int() | float():
            return f"the number {value:g}" if abs(value) < 1e15 else "a number"
        case list():
            return "a list"
        case _:
            return "an object"


def _string(value: Any, path: Path = ()) -> str:
    if type(value) is not str:
        number = isinstance(value, (int, float))
        raise _Wrong(f"expected a string, found {_kind(value)}{' (write it in quotes)' if number else ''}", path)
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
        raise _Wrong(f"expected a list of strings, found {_kind(value)}")
    return tuple(_string(each, (i,)) for i, each in enumerate(value))


def _mapping(value: Any) -> dict[str, str]:
    if not isinstance(value, dict):
        raise _Wrong(f"expected an object of strings, found {_kind(value)}")
    out = {_string(key, (key,)): _string(each, (key,)) for key, each in value.items() if each is not None}
    for key, each in out.items():
        if not key or "=" in key:
            raise _Wrong(f"{key!r} cannot be a name", (key,))
    return out


def _bool(value: Any) -> bool:
    if type(value) is not bool:
        raise _Wrong(f"expected true or false, found {_kind(value)}")
    return value


def _number(value: Any) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not _finite(value):
        raise _Wrong(f"expected a number, found {_kind(value)}")
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
        raise _Wrong(f"expected a time above 0, found {_kind(value)}")
    return number if number < 1000 else number / 1000


Transport = NewType("Transport", str)


def _transport(value: Any) -> str:
    text = _string(value)
    known = _TYPES.get(re.sub(r"[-_ ]", "", text).lower())
    if known is None:
        near = nearest(text, _TYPES)
        raise _Wrong(
            f"expected stdio, http or sse, found {text!r}" + (f" (did you mean {_TYPES[near]!r}?)" if near else "")
        )
    return known


@define(kw_only=True)
class _Tools:
    exclude: tuple[str, ...] = ()
    include: tuple[str, ...] | None = None
    pin: tuple[str, ...] = ()


@define(kw_only=True)
class _Written:
    """An entry as it is written, key by key."""

    command: str | None = None
    args: tuple[str, ...] = ()
    env: dict[str, str] = field(factory=dict)
    cwd: str | None = None
    env_file: str | None = None
    type: Transport | None = None
    transport: Transport | None = None
    url: str | None = None
    server_url: str | None = None
    http_url: str | None = None
    headers: dict[str, str] = field(factory=dict)
    disabled: bool = False
    enabled: bool = True
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
    "connect_timeout": "connectTimeout",
    "disabled_tools": "disabledTools",
    "exclude_tools": "excludeTools",
    "enabled_tools": "enabledTools",
    "include_tools": "includeTools",
}
_KEYS = frozenset(_RENAMED.get(a.name, a.name) for a in _Written.__attrs_attrs__)  # type: ignore[attr-defined]
_TOOL_KEYS = frozenset(a.name for a in _Tools.__attrs_attrs__)  # type: ignore[attr-defined]


def _converter(detailed: bool) -> Converter:
    converter = Converter(detailed_validation=detailed)
    hooks: list[tuple[Any, Callable[[Any], Any]]] = [
        (str, _string),
        (bool, _bool),
        (float, _number),
        (Seconds, _seconds),
        (Transport, _transport),
        (tuple[str, ...], _strings),
        (dict[str, str], _mapping),
    ]
    for kind, hook in hooks:
        converter.register_structure_hook_func(lambda t, k=kind: t == k, lambda value, _, h=hook: h(value))
    converter.register_structure_hook(_Tools, make_dict_structure_fn(_Tools, converter))
    renames = {name: override(rename=key) for name, key in _RENAMED.items()}
    converter.register_structure_hook(_Written, make_dict_structure_fn(_Written, converter, **renames))  # type: ignore[arg-type]
    return converter


_fast = _converter(False)
_detailed = _converter(True)


def _leaves(error: BaseException, path: Path) -> Iterable[Problem]:
    if isinstance(error, ClassValidationError):
        with_notes, _ = error.group_exceptions()
        for each, note in with_notes:
            yield from _leaves(each, (*path, _RENAMED.get(note.name, note.name)))
    elif isinstance(error, _Wrong):
        yield Problem((*path, *error.path), str(error))


def _written(raw: dict[str, Any]) -> tuple[_Written, list[Problem]]:
    try:
        return _fast.structure(raw, _Written), []
    except _Wrong:
        pass
    try:
        return _detailed.structure(raw, _Written), []
    except ClassValidationError as error:
        problems = list(_leaves(error, ()))
    bad = {problem.path[0] for problem in problems}
    return _fast.structure({key: value for key, value in raw.items() if key not in bad}, _Written), problems


def looks_like_server(value: Any) -> bool:
    """Whether a JSON value has the shape of an entry: an object with a command or a URL."""
    return isinstance(value, dict) and any(isinstance(value.get(key), str) for key in ("command", *_URLS))


def _twice(raw: dict[str, Any], path: Path) -> Iterable[Problem]:
    if isinstance(raw, Twice):
        yield from (Problem((*path, key), "this key is there twice") for key in raw.twice)
    for key, value in raw.items():
        if key in ("env", "headers", "tools") and isinstance(value, Twice):
            yield from _twice(value, (*path, key))


def _unknown(raw: dict[str, Any]) -> Iterable[tuple[str, str | None]]:
    """The keys that are not ours, each with the one that may be meant."""
    for key, value in raw.items():
        if key in _KEYS or key in _QUIET or key.startswith(("_", "$", "x-")):
            continue
        if key in _FOREIGN:
            yield key, _FOREIGN[key]
        elif isinstance(value, str) and value.startswith(("http://", "https://")):
            yield key, "url"
        else:
            yield key, nearest(key, _KEYS)


def _missing(raw: dict[str, Any], unknown: dict[str, str | None]) -> str:
    for key, value in raw.items():
        if isinstance(value, dict):
            inner = next((each for each in ("command", *_URLS) if each in value), None)
            if inner is not None:
                return f"there is no command and no url here (found {key}.{inner})"
    for key, meant in unknown.items():
        if meant in ("command", "url"):
            return f"there is no command and no url here (did you mean {meant!r} by {key!r}?)"
    return "there is no command and no url here"


def _joined(lists: Iterable[tuple[str, ...] | None]) -> tuple[str, ...] | None:
    there = [each for each in lists if each is not None]
    return tuple(dict.fromkeys(name for each in there for name in each)) if there else None


def read_entry(name: str, value: Any) -> EntryRead:
    """Read one entry.

    Args:
        name: its key.
        value: its JSON value.
    """
    if not isinstance(value, dict):
        return EntryRead(ServerEntry(name), (Problem((), f"expected an object, found {_kind(value)}"),))
    raw = {key: each for key, each in value.items() if each is not None}
    warnings: list[Problem] = []
    if "transport" in raw and not isinstance(raw["transport"], str):
        del raw["transport"]
    tools = raw.get("tools")
    if isinstance(tools, list):
        warnings.append(Problem(("tools",), "a list here is not read (write tools.exclude or tools.include)"))
        del raw["tools"]
    elif isinstance(tools, dict):
        raw["tools"] = {key: each for key, each in tools.items() if each is not None}
        for key in tools.keys() - _TOOL_KEYS:
            warnings.append(Problem(("tools", key), "unknown key" + _mean(nearest(key, _TOOL_KEYS))))
    written, problems = _written(raw)
    problems += _twice(value, ())
    unknown = dict(_unknown(raw))
    for key, meant in unknown.items():
        if key in _RUNS_WRONG:
            problems.append(Problem((key,), f"unknown key{_mean(meant)}"))
        else:
            warnings.append(Problem((key,), f"unknown key{_mean(meant)}"))
    transport = written.type or written.transport
    url = next((each for each in (written.url, written.server_url, written.http_url) if each is not None), None)
    url_key = next((key for key in _URLS if key in raw), "url")
    command = written.command
    bad = {problem.path[0] for problem in problems if problem.path}
    if command is not None and url is not None:
        used, other = ("url", "command") if transport in ("http", "sse") else ("command", "url")
        warnings.append(Problem((), f"there is a command and a url here: the {used} is used, the {other} is not"))
        command, url = (None, url) if used == "url" else (command, None)
    if command is None and url is None:
        if not bad & {"command", *_URLS}:
            problems.append(Problem((), _missing(value, unknown)))
    elif transport == "stdio" and command is None:
        problems.append(Problem((), "its type is stdio, but there is no command here"))
    elif transport in ("http", "sse") and url is None:
        problems.append(Problem((), f"its type is {transport}, but there is no url here"))
    if command is not None and not command.strip():
        problems.append(Problem(("command",), "expected a program, found an empty string"))
    elif command is not None and not written.args and re.fullmatch(r"[\w.-]+ .*\S.*", command):
        warnings.append(Problem(("command",), "this is more than one word (put the rest into args)"))
    if url is not None and not re.match(r"https?://|\$\{", url, re.IGNORECASE):
        problems.append(Problem((url_key,), "expected a URL that begins with http:// or https://"))
    lists = (written.tools.include, written.enabled_tools, written.include_tools)
    entry = ServerEntry(
        name,
        command=command,
        args=written.args,
        env=written.env,
        cwd=written.cwd,
        env_file=written.env_file,
        type=transport,
        url=url,
        headers=written.headers,
        disabled=written.disabled or not written.enabled,
        include=_joined(lists),
        exclude=_joined((written.tools.exclude, written.disabled_tools, written.exclude_tools)) or (),
        pin=tuple(dict.fromkeys(written.tools.pin)),
        priority=written.priority,
        timeout=written.timeout,
        connect_timeout=written.connect_timeout,
    )
    return EntryRead(entry, tuple(problems), tuple(warnings))


def _mean(key: str | None) -> str:
    return f" (did you mean {key!r}?)" if key is not None else ""


def _time(seconds: float) -> float:
    """A time as it is written: `_seconds` reads it back."""
    return seconds if seconds < 1000 else seconds * 1000


def entry_json(entry: ServerEntry) -> dict[str, Any]:
    """An entry as it is written: only keys that say something, in the usual order.

    Raises:
        ValueError: it cannot be written so that it reads the same (an in-memory server, an entry with an error, both a command
            and a URL …).
    """
    if entry.server is not None:
        raise ValueError("a server that is an object in memory cannot be written to a file")
    tools = {
        "include": None if entry.include is None else list(entry.include),
        "exclude": list(entry.exclude) or None,
        "pin": list(entry.pin) or None,
    }
    keys: dict[str, Any] = {
        "type": entry.type,
        "command": entry.command,
        "args": list(entry.args) or None,
        "env": dict(entry.env) or None,
        "cwd": entry.cwd,
        "envFile": entry.env_file,
        "url": entry.url,
        "headers": dict(entry.headers) or None,
        "disabled": entry.disabled or None,
        "timeout": None if entry.timeout is None else _time(entry.timeout),
        "connectTimeout": None if entry.connect_timeout is None else _time(entry.connect_timeout),
        "priority": entry.priority or None,
        "tools": {key: value for key, value in tools.items() if value is not None} or None,
    }
    out = {key: value for key, value in keys.items() if value is not None}
    read = read_entry(entry.name, out)
    if read.problems:
        first = read.problems[0]
        raise ValueError(f"{show_path(first.path)}: {first.message}" if first.path else first.message)
    same = evolve(entry, type=read.entry.type, source=None, line=None, error=None, trusted=True)
    if same != read.entry:
        raise ValueError("it cannot be written so that it reads the same")
    return out
