"""What a file is that is not the configuration it should be, in words."""

from __future__ import annotations

import re
from typing import Any

from .entry import looks_like_server, read_entry
from .jsonc import Source
from .jsonc_walk import Member, Path, members, root, show_path

__all__ = [
    "SERVER_KEYS",
    "all_twice",
    "lines_of",
    "looks_confused",
    "no_servers",
    "not_a_map",
    "other_format",
    "twice",
]

SERVER_KEYS = ("mcpServers", "servers")
"""The keys of a server map; the first that is there counts."""

_CONFUSED = re.compile(r"mcp[-_. ]?servers?|servers?|context_servers", re.IGNORECASE)
_LAUNCH = frozenset(("command", "cmd", "url", "serverUrl", "httpUrl"))
_FURTHEST = 4
_MOST = 20
_TOML = re.compile(r"[ \t]*(\[\[?(?!true|false|null)[A-Za-z_][\w.\"' -]*\]\]?|[\w.-]+[ \t]*=[ \t]*[^=].*)[ \t]*")
_ENV = re.compile(r"(export +)?[A-Z][A-Z0-9_]*=.*")
_YAML = re.compile(r"(---|[\w.$-]+:([ \t].*)?)")
_FOREIGN_KEYS = re.compile(r"^[ \t]*\[?\[?(mcpServers|mcp_servers|servers|extensions)\b", re.MULTILINE)


def other_format(source: Source) -> str | None:
    """What the text is, when it is not JSON at all."""
    lines = (
        line
        for line in source.text.lstrip("\ufeff").splitlines()
        if line.strip() and not line.lstrip().startswith(("#", "//"))
    )
    first = next(lines, "")
    if first.lstrip().startswith("<") and not first.startswith("<<<"):
        return "not JSON: this looks like HTML or XML"
    if _ENV.fullmatch(first):
        return "not JSON: this looks like an env file; name it as the envFile of a server"
    kind = "TOML" if _TOML.fullmatch(first) else "YAML" if _YAML.match(first) else None
    if kind is None:
        return None
    key = _FOREIGN_KEYS.search(source.text)
    what = f"its {key[1]}" if key else "its servers"
    return f'not JSON: this looks like {kind}; copy {what} into a JSON file, under "mcpServers"'


def twice(found: list[Member]) -> dict[str, list[Member]]:
    """The members of each key that is there more than once."""
    by_key: dict[str, list[Member]] = {}
    for each in found:
        by_key.setdefault(each.key, []).append(each)
    return {key: there for key, there in by_key.items() if len(there) > 1}


def lines_of(source: Source, found: list[Member]) -> str:
    """On which lines members stand, in words; of very many the first ones and the last."""
    lines = [str(source.place(each.start)[0]) for each in (*found[:_MOST], *found[_MOST:][-1:])]
    if len(found) > len(lines):
        lines.insert(-1, "…")
    return f"lines {', '.join(lines)}"


def all_twice(source: Source) -> str:
    """Every key that is there twice, with its lines (nested ones too, as one mistake seldom comes alone)."""
    said: list[str] = []
    todo = [root(source)]
    for at in todo:
        inner, _ = members(source, at)
        said += [f"{key!r} ({lines_of(source, there)})" for key, there in twice(inner).items()]
        for each in inner:
            if isinstance(each.value, dict):
                todo.append(each.at)
    more = f"; and {len(said) - _MOST} more" if len(said) > _MOST else ""
    return f"a key is there twice: {'; '.join(said[:_MOST])}{more}"


def not_a_map(key: str, value: Any) -> str:
    """Why a value is no server map."""
    if not isinstance(value, list):
        return "expected an object of servers by name, found a plain value"
    message = "expected an object of servers by name, found a list"
    for i, each in enumerate(value):
        for problem in read_entry("", each).problems[:1]:
            message += f"; {show_path((key, i, *problem.path))}: {problem.message}"
    return message


def looks_confused(member: Member) -> bool:
    """Whether a member of the root is meant as a server map, under a key that is none."""
    return isinstance(member.value, dict | list) and _CONFUSED.fullmatch(member.key) is not None


def no_servers(source: Source, top: list[Member]) -> str:
    """The note on a file without servers.

    Raises:
        ConfigError: there is something in it that seems to be servers, in the wrong place.
    """
    said = {each.key: each.value for each in top}
    if looks_like_server(said):
        raise source.fail('this is one server; put it, under a name, into {"mcpServers": {…}}', root(source))
    for each in top:
        path = _servers_in(each.value, (each.key,))
        if path is not None or _CONFUSED.fullmatch(each.key):
            what = "a list" if isinstance(each.value, list) else "servers"
            found = f"found {what} under {show_path(path)}" if path else f"did you mean it by {each.key!r}?"
            raise source.fail(f"there is no mcpServers key here ({found})", each.start)
    keys = ", ".join(show_path((each.key,)) for each in top[:5]) or "nothing"
    return f"there is no mcpServers key in this file (found {keys}): no servers"


def _servers_in(value: Any, path: Path) -> Path | None:
    """The path of what seems to be a map or list of servers, from ``value`` on; a server key's own map comes first."""
    if len(path) > _FURTHEST:
        return None
    if isinstance(value, list):
        return path if any(_seems(item) for item in value) else None
    if not isinstance(value, dict):
        return None
    for key in SERVER_KEYS:
        inner = value.get(key)
        if isinstance(inner, dict) and (not inner or any(map(_seems, inner.values()))):
            return (*path, key)
    if any(_seems(item) for item in value.values()):
        return path
    deeper = (_servers_in(each, (*path, key)) for key, each in value.items())
    return next((found for found in deeper if found is not None), None)


def _seems(value: Any) -> bool:
    """Whether this may be meant as a server, in whatever host's words."""
    if not isinstance(value, dict):
        return False
    return bool(_LAUNCH & value.keys()) or looks_like_server(value.get("transport"))
