"""What a file is that is not the configuration it should be, in words."""

from __future__ import annotations

import re
from typing import Any

from .entry import looks_like_server, read_entry
from .jsonc import Source
from .jsonc_errors import place
from .jsonc_walk import Member, members, root, show_path

__all__ = ["SERVER_KEYS", "all_twice", "no_servers", "not_a_map", "other_format"]

SERVER_KEYS = ("mcpServers", "servers")
"""The keys of a server map; the first that is there counts."""

_CONFUSED = re.compile(r"mcp[-_. ]?servers?|servers?", re.IGNORECASE)
_TOML = re.compile(r"[ \t]*(\[\[?(?!true|false|null)[A-Za-z_][\w.\"' -]*\]\]?|[\w.-]+[ \t]*=[ \t]*[^=].*)[ \t]*")
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
    kind = "TOML" if _TOML.fullmatch(first) else "YAML" if _YAML.match(first) else None
    if kind is None:
        return None
    key = _FOREIGN_KEYS.search(source.text)
    what = f"its {key[1]}" if key else "its servers"
    return f'not JSON: this looks like {kind}; copy {what} into a JSON file, under "mcpServers"'


def all_twice(source: Source) -> str:
    """Every key that is there twice, with its lines (nested ones too, as one mistake seldom comes alone)."""
    said: list[str] = []
    todo = [root(source)]
    while todo:
        inner, _ = members(source, todo.pop(0))
        keys = [each.key for each in inner]
        for key in dict.fromkeys(each for each in keys if keys.count(each) > 1):
            lines = [str(place(source.text, each.start)[0]) for each in inner if each.key == key]
            said.append(f"{key!r} (lines {', '.join(lines)})")
        for each in inner:
            if isinstance(each.value, dict):
                todo.append(each.at)
    return f"a key is there twice: {'; '.join(said)}"


def not_a_map(value: Any) -> str:
    """Why a value is no server map."""
    if not isinstance(value, list):
        return "expected an object of servers by name, found a plain value"
    message = "expected an object of servers by name, found a list"
    for i, each in enumerate(value):
        for problem in read_entry("", each).problems[:1]:
            message += f"; {show_path((i, *problem.path))}: {problem.message}"
    return message


def no_servers(source: Source, top: list[Member]) -> str:
    """The note on a file without servers.

    Raises:
        ConfigError: there is something in it that seems to be servers, in the wrong place.
    """
    for each in top:
        value, what = each.value, ""
        path: tuple[str, ...] = (each.key,)
        if isinstance(value, list) and any(looks_like_server(item) for item in value):
            what = "a list"
        elif isinstance(value, dict):
            inner = next((key for key in SERVER_KEYS if isinstance(value.get(key), dict)), None)
            if inner is not None:
                path, what = (each.key, inner), "servers"
            elif any(looks_like_server(item) for item in value.values()):
                what = "servers"
        if what or _CONFUSED.fullmatch(each.key):
            found = f"found {what} under {show_path(path)}" if what else f"did you mean it by {each.key!r}?"
            raise source.fail(f"there is no mcpServers key here ({found})", each.start)
    keys = ", ".join(show_path((each.key,)) for each in top[:5]) or "nothing"
    return f"there is no mcpServers key in this file (found {keys}): no servers"
