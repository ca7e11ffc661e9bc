"""One entry of a configuration: from what is written to a `ServerEntry` and back.

Keys of other hosts are read as what they mean there; a key we do not know stays in the file and is at most warned about.
What is wrong is collected, each with its path inside the entry; the fields that are right are kept all the same.

Which key of a list counts: all that are there, joined in the order of `EXCLUDES` and `INCLUDES`. A ``tools`` that is a list of
names is an allow-list, as in hosts that write it so; with ``"*"`` in it, it allows all.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from difflib import SequenceMatcher
from typing import Any

from attrs import evolve, frozen

from ...model.config import InputSpec, ServerEntry
from ...model.nearest import nearest
from .jsonc_walk import Path, Twice, show_path
from .keys import ENTRY_KEYS, TOOL_KEYS, Problem, Written, kind_of, structure, url_wrong
from .oauth_keys import oauth_json, read_oauth

__all__ = [
    "EXCLUDES",
    "INCLUDES",
    "PIN",
    "EntryRead",
    "Problem",
    "allow_list",
    "entry_json",
    "looks_like_server",
    "read_entry",
]

EXCLUDES: tuple[Path, ...] = (("tools", "exclude"), ("disabledTools",), ("excludeTools",))
INCLUDES: tuple[Path, ...] = (("tools", "include"), ("enabledTools",), ("includeTools",), ("tools",))
PIN: Path = ("tools", "pin")

_URLS = ("url", "serverUrl", "httpUrl")
# Words for keys of ours without which a server runs wrongly.
_WORDS_FOR = {
    "cwd": "working_directory workingDirectory working_dir workingDir workdir work_dir workDir current_directory",
    "args": "arg argument arguments argv",
    "env": "environment environments envs enviroment enviroments env_vars envVars environmentVariables environment_variables",
    "envFile": "env_file envfile env-file dotenv dotEnv dotenv_file dotenvFile",
}
_RUNS_WRONG = {word: key for key, words in _WORDS_FOR.items() for word in words.split()}
# Keys that mean one of ours in another host, but are not read: what reads past them runs the wrong thing.
_FOREIGN = {
    **_RUNS_WRONG,
    "cmd": "command",
    "executable": "command",
    "server_type": "type",
    "uri": "url",
    "link": "url",
    "requestInit": "headers",
    "http_headers": "headers",
    "httpHeaders": "headers",
    "bearer_token_env_var": "headers",
    "transportType": "type",
    "endpoint": "url",
    "baseUrl": "url",
}
_ALIKE = 0.8
_LAUNCHES = {"args": list, "env": dict, "cwd": str, "envFile": str}
# Backspace and form feed are in no path or option; a tab or line end is in none that begins with a drive.
_SLIP = re.compile(r"^[A-Za-z]:[^\b\f\r\n\t]*[\b\f\r\n\t]|[\b\f]").search
# Keys other hosts write that change nothing here: kept, and not worth a warning.
_QUIET_WORDS = """alwaysAllow authProviderType autoApprove autoStart comment desc description dev displayName from_gallery
fromGalleryId gallery
icon iconPath id installSource isTrusted label logoUrl longRunning name note notes provider providerUrl registryUrl
sandbox sandboxEnabled scope server_type source start_on_launch tags title trust version watchPaths"""
_QUIET = frozenset(_QUIET_WORDS.split())


@frozen
class EntryRead:
    """What an entry was read as: ``entry`` without its error, what is wrong with it, and what looks wrong."""

    entry: ServerEntry
    problems: tuple[Problem, ...] = ()
    warnings: tuple[Problem, ...] = ()


def looks_like_server(value: Any) -> bool:
    """Whether a JSON value has the shape of an entry: an object with a command or a URL."""
    return isinstance(value, dict) and any(isinstance(value.get(key), str) for key in ("command", *_URLS))


def allow_list(tools: Any) -> tuple[str, ...] | None:
    """What a ``tools`` that is a list allows; None when it is not one of names, or allows all."""
    if not isinstance(tools, list) or not tools or "*" in tools:
        return None
    return tuple(tools) if all(type(each) is str for each in tools) else None


def _twice(raw: dict[str, Any], path: Path) -> Iterable[Problem]:
    if isinstance(raw, Twice):
        yield from (Problem((*path, key), "this key is there twice", twice=True) for key in raw.twice)
    for key, value in raw.items():
        if key in ("env", "headers", "tools") and isinstance(value, Twice):
            yield from _twice(value, (*path, key))


def _unknown(raw: dict[str, Any]) -> Iterable[tuple[str, str | None]]:
    """The keys that are not ours, each with the one that may be meant."""
    for key, value in raw.items():
        if key in ENTRY_KEYS or key in _QUIET or key.startswith(("_", "$", "x-")):
            continue
        if value == "":
            continue  # a form that somebody left empty
        if key in _FOREIGN:
            meant: str | None = _FOREIGN[key]
        elif isinstance(value, str) and value.startswith(("http://", "https://")):
            meant = "url"
        else:
            meant = nearest(key, ENTRY_KEYS)
        # What is there already was not meant by another key too.
        there = _URLS if meant == "url" else (meant,)
        yield key, None if any(each in raw for each in there) and key not in _RUNS_WRONG else meant


def _misspelt(key: str, meant: str | None, value: Any) -> bool:
    """Whether a key is a launch key with a slip of the pen in it, and none of another program, by what is behind it too."""
    if meant not in _LAUNCHES or not isinstance(value, _LAUNCHES[meant]):
        return False
    return SequenceMatcher(None, key.casefold(), meant.casefold()).ratio() >= _ALIKE


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


def _conflicts(raw: dict[str, Any], command: str | None) -> Iterable[Problem]:
    """Keys that say different things, each with what counts; ``command`` when that is what is run."""
    if command is not None and raw.get("headers"):
        yield Problem(("headers",), "not read: a server with a command gets none")
    if command is not None and raw.get("headersHelper"):
        yield Problem(("headersHelper",), "not read: a server with a command gets no headers")
    if command is not None and isinstance(raw.get("oauth"), dict):
        yield Problem(("oauth",), "not read: a server with a command is not logged in to")
    first, *others = [key for key in _URLS if key in raw] or [""]
    for key in others:
        if raw[key] != raw[first]:
            yield Problem((key,), f"not read, because {first} is there too")
    if isinstance(raw.get("type"), str) and raw.get("transport", raw["type"]) != raw["type"]:
        yield Problem(("transport",), "not read, because type is there too")
    said = [(key, raw[key] is not (key == "disabled")) for key in ("disabled", "enabled", "isActive") if key in raw]
    if len({runs for _, runs in said}) == 2:
        stops = next(key for key, runs in said if not runs)
        other = next(key for key, runs in said if runs)
        yield Problem((other,), f"does not count, because {stops} stops the server")


def _slips(written: Written) -> Iterable[Problem]:
    """Backslashes that were not doubled, and made a character of their own: ``C:\\bin`` is nothing with a ``b`` in it."""
    texts = (written.command or "", written.cwd or "", *written.args, *written.env.values())
    if all(map(str.isprintable, texts)):
        return  # nearly always, and much quicker
    paths: list[Path] = [("command",), ("cwd",), *(("args", i) for i in range(len(written.args)))]
    paths += [("env", key) for key in written.env]
    for path, text in zip(paths, texts, strict=True):
        if (found := _SLIP(text)) is not None:
            what = f"this holds the control character U+{ord(found[0][-1]):04X}"
            yield Problem(path, f"{what} (in JSON a backslash is written as two: \\\\)")


def _joined(lists: Iterable[tuple[str, ...] | None]) -> tuple[str, ...] | None:
    there = [each for each in lists if each is not None]
    return tuple(dict.fromkeys(name for each in there for name in each)) if there else None


def read_entry(
    name: str,
    value: Any,
    *,
    source: str | None = None,
    line: int | None = None,
    inputs: tuple[InputSpec, ...] = (),
) -> EntryRead:
    """Read one entry.

    Args:
        name: its key.
        value: its JSON value.
        source, line, inputs: of the entry; what is beside it in its file.
    """
    if not isinstance(value, dict):
        bare = ServerEntry(name, source=source, line=line, inputs=inputs)
        return EntryRead(bare, (Problem((), f"expected an object, found {kind_of(value)}"),))
    raw = {key: each for key, each in value.items() if each is not None}
    warnings: list[Problem] = []
    if "transport" in raw and not isinstance(raw["transport"], str):
        del raw["transport"]
    tools = raw.get("tools")
    allowed: tuple[str, ...] | None = None
    if isinstance(tools, list):
        allowed = allow_list(tools)
        if not tools:
            warnings.append(Problem(("tools",), "an empty list is not read (write tools.include: [] to allow none)"))
        elif allowed is None and "*" not in tools:
            warnings.append(
                Problem(("tools",), "a list that is not of names is not read (write tools.exclude or tools.include)")
            )
        del raw["tools"]
    elif isinstance(tools, dict):
        raw["tools"] = {key: each for key, each in tools.items() if each is not None}
        for key in tools.keys() - TOOL_KEYS:
            warnings.append(Problem(("tools", key), "unknown key" + _mean(nearest(key, TOOL_KEYS))))
    login_key = (
        "auth" if "oauth" not in raw and isinstance(raw.get("auth"), dict) and "CLIENT_ID" in raw["auth"] else "oauth"
    )
    written, problems = structure(raw)
    oauth, wrong_login, odd_login = read_oauth(raw.get(login_key), login_key)
    problems += wrong_login
    warnings += odd_login
    if "auth" in raw and login_key != "auth":
        warnings.append(
            Problem(("auth",), "not read" + (": oauth is there too" if "oauth" in raw else " (write oauth)"))
        )
    problems += _twice(value, ())
    unknown = dict(_unknown(raw))
    for key, meant in unknown.items():
        if key in _RUNS_WRONG or _misspelt(key, meant, raw[key]):
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
    warnings += _conflicts(raw, command)
    warnings += _slips(written)
    if command is not None and command.startswith(("http://", "https://")):
        problems.append(Problem(("command",), "expected a program, found a URL (did you mean 'url'?)"))
    if command is not None and not command.strip():
        problems.append(Problem(("command",), "expected a program, found an empty string"))
    elif command is not None and not written.args and re.fullmatch(r"[\w.-]+ .*\S.*", command):
        warnings.append(Problem(("command",), "this is more than one word (put the rest into args)"))
    if written.headers_helper is not None and not written.headers_helper.strip():
        problems.append(Problem(("headersHelper",), "expected a command, found an empty string"))
    if url is not None and not re.match(r"(https?://.*)?\$\{", url, re.IGNORECASE | re.DOTALL):
        wrong = url_wrong(url)
        if wrong is not None:
            problems.append(Problem((url_key,), wrong))
    lists = (written.tools.include, written.enabled_tools, written.include_tools, allowed)
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
        headers_helper=written.headers_helper if url is not None else None,
        oauth=oauth if url is not None else None,
        protocol_version=written.protocol_version,
        disabled=written.disabled or not written.enabled or not written.is_active,
        include=_joined(lists),
        exclude=_joined((written.tools.exclude, written.disabled_tools, written.exclude_tools)) or (),
        pin=tuple(dict.fromkeys(written.tools.pin)),
        priority=written.priority,
        timeout=written.timeout,
        connect_timeout=written.connect_timeout,
        inputs=inputs,
        source=source,
        line=line,
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
        "headersHelper": entry.headers_helper,
        "oauth": oauth_json(entry),
        "protocolVersion": entry.protocol_version,
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
    same = evolve(entry, type=read.entry.type, source=None, line=None, error=None, trusted=True, inputs=())
    if same != read.entry:
        raise ValueError("it cannot be written so that it reads the same")
    return out
