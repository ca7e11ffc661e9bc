"""The reference of the configuration: the keys that the reader knows, and the values they become."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import attrs
from playbill.actors.edge.config import keys
from playbill.actors.model.config import Config, InputSpec, ServerEntry

from .fields import annotation, field_table
from .pages import Undocumented, literal, page, table

__all__ = ["KEYS", "TOOL_KEYS", "config_page", "key_table"]

KEYS: Mapping[str, tuple[str, str]] = {
    # key: (the field of ServerEntry that it becomes, words)
    "command": ("command", "The program. No shell reads it. `${VAR}` is put in at every start."),
    "args": ("args", "Its arguments."),
    "env": ("env", "Variables of the server. A `null` is a variable that is not there."),
    "envFile": ("env_file", "A file of `KEY=VALUE` lines; what `env` says wins. Relative to the config's folder."),
    "cwd": ("cwd", "The server's folder, relative to the config's; without it, that folder."),
    "type": ("type", "Usually left out: a `command` means `stdio`, a `url` means `http`."),
    "transport": ("type", "Another name of `type`, which wins."),
    "url": ("url", "Where a remote server is: `http://` or `https://`."),
    "serverUrl": ("url", "Another name of `url`, which wins."),
    "httpUrl": ("url", "Another name of `url`; both others win."),
    "headers": ("headers", "Headers of a remote server: ASCII, each on one line."),
    "headersHelper": ("headers_helper", "A command line that prints more headers of it, as JSON, for each connection."),
    "oauth": ("oauth", "How it is logged in to: see [logging in](../login.md)."),
    "auth": ("oauth", "Another writing of `oauth`, which wins: an object with a `CLIENT_ID`."),
    "protocolVersion": (
        "protocol_version",
        "The newest version of the protocol to speak with it; for a server that asks by itself: `2025-11-25`.",
    ),
    "disabled": ("disabled", "`true`: configured, not run."),
    "enabled": ("disabled", "`false`: configured, not run."),
    "isActive": ("disabled", "`false`: configured, not run."),
    "tools": ("include, exclude, pin", "What is offered: the keys below; or a list of names, the only ones offered."),
    "disabledTools": ("exclude", "Another name of `tools.exclude`; both count."),
    "excludeTools": ("exclude", "Another name of `tools.exclude`; both count."),
    "enabledTools": ("include", "Another name of `tools.include`."),
    "includeTools": ("include", "Another name of `tools.include`."),
    "priority": ("priority", "The budget trims servers of lower priority first."),
    "timeout": ("timeout", "How long one call may take: below 1000 it is seconds, else milliseconds."),
    "connectTimeout": ("connect_timeout", "From the start to the first list of tools; read as `timeout` is."),
}
TOOL_KEYS: Mapping[str, tuple[str, str]] = {
    "exclude": ("exclude", "Tools that are not offered, by the server's own names; wins over `include`."),
    "include": ("include", "Only these are offered; `[]` offers none."),
    "pin": ("pin", "Tools that the budget trims last."),
}
_FROM_THE_FILE = ("server", "places", "error", "trusted", "source", "line", "name")
"""Fields of an entry that no key sets."""
_WORDS = {
    "str": "string",
    "Command": "string",
    "tuple[str, ...]": "list of strings",
    "dict[str, str]": "object of strings",
    "Headers": "object of strings",
    "Transport": "`stdio`, `http` or `sse`",
    "ProtocolVersion": "string",
    "bool": "`true` or `false`",
    "float": "number",
    "Any": "object, or `true` or `false`",
    "Seconds": "time",
    "_Tools": "object, or list of strings",
}


def _kind(cls: type, field: attrs.Attribute[Any]) -> str:
    written = annotation(cls, field.name).removesuffix(" | None")
    if written not in _WORDS:
        raise Undocumented(f"{field.name}: docs/tools/config_page.py has no word for the type {written}")
    return _WORDS[written]


def key_table(cls: type, said: Mapping[str, tuple[str, str]], names: Mapping[str, str], prefix: str = "") -> str:
    """The table of the keys that an object in the file may have.

    Args:
        cls: the attrs class that the reader structures it into.
        said: of each key, the field of `ServerEntry` it becomes and what it is.
        names: how a field is written in the file, where that is not its name.
        prefix: goes before each key.

    Raises:
        Undocumented: the reader knows a key that ``said`` does not have, or the other way round.
    """
    known = {names.get(field.name, field.name): field for field in attrs.fields(cls)}
    for key in known.keys() ^ said.keys():
        there = "the reader knows it" if key in known else "the reader does not know it"
        raise Undocumented(f"{prefix}{key}: {there}: see KEYS and TOOL_KEYS in docs/tools/config_page.py")
    fields = {field.name for field in attrs.fields(ServerEntry)}
    for key, (becomes, _) in said.items():
        for name in becomes.split(", "):
            if name not in fields:
                raise Undocumented(f"{prefix}{key}: ServerEntry has no field {name}")
    return table(
        ("key", "value", "`ServerEntry`", "meaning"),
        (
            (literal(prefix + key), _kind(cls, field), ", ".join(map(literal, said[key][0].split(", "))), said[key][1])
            for key, field in known.items()
        ),
    )


def _every_field_has_a_key() -> None:
    set_by = {name for becomes, _ in (*KEYS.values(), *TOOL_KEYS.values()) for name in becomes.split(", ")}
    for field in attrs.fields(ServerEntry):
        if field.init and field.name not in {*set_by, *_FROM_THE_FILE, "inputs"}:
            raise Undocumented(f"ServerEntry.{field.name}: no key of docs/tools/config_page.py becomes it")


def config_page() -> str:
    """The page, as it is to be.

    Raises:
        Undocumented: a key or a field has no words.
    """
    _every_field_has_a_key()
    return page(
        "# Configuration reference",
        "Every key and every field, from the code that reads them. How they work together is in"
        " [the configuration file](../config.md).",
        "## Keys of a server",
        key_table(keys.Written, KEYS, keys._RENAMED),
        "## Keys under `tools`",
        key_table(keys._Tools, TOOL_KEYS, {}, "tools."),
        "## `ServerEntry`",
        "One server as a value: what a program gives to `open_host(Config((…,)))` in place of a file, and what the reader makes"
        " of one.",
        field_table(ServerEntry, skip=("places",)),
        "## `Config`",
        field_table(Config),
        "## `InputSpec`",
        "An item of a file's `inputs`, for [whoever is asked for it](../config.md#inputs).",
        field_table(InputSpec),
    )
