"""The verb that starts nothing: `list` reads the config and shows what it says. It does not import ``mcp``."""

from __future__ import annotations

import shlex
from pathlib import Path
from typing import Any

from ..model.config import ServerEntry
from ..model.mask import mask_args, mask_text, mask_url
from .configs import load, place
from .errors import Exit, diagnose
from .render import columns_used, print_json, print_table

__all__ = ["list_servers"]

SCHEMA = 1


def list_servers(path: str | None, *, as_json: bool = False) -> int:
    """List the servers of a config.

    Args:
        path: of the config; None = where `open_host` would look.
        as_json: print JSON instead of a table.

    Returns:
        `Exit.OK`, or `Exit.CONFIG` when an entry is invalid: the others are listed all the same.

    Raises:
        ConfigError: the config is missing or cannot be read.
    """
    config = load(path)
    if as_json:
        servers = [_as_json(entry) for entry in config.servers]
        print_json(
            {"schema": SCHEMA, "config": config.path, "warnings": list(config.warnings), "servers": servers},
        )
    elif config.servers:
        rows = [
            (entry.name, kind(entry), _what(entry), _tools(entry), _state(entry), _near(place(entry)))
            for entry in config.servers
        ]
        print_table(columns_used(("SERVER", "KIND", "RUNS", "TOOLS", "STATE", "SOURCE"), rows, keep=4))
    else:
        diagnose(f"{config.path or 'the config'}: no servers")
    for warning in config.warnings:
        diagnose(f"warning: {warning}")
    invalid = [entry.error for entry in config.servers if entry.error is not None]
    for error in invalid:
        diagnose(error)
    return Exit.CONFIG if invalid else Exit.OK


def kind(entry: ServerEntry) -> str:
    """How a server is reached: ``stdio``, ``http``, ``sse``, ``memory``, or ``?`` when the entry does not say."""
    if entry.server is not None:
        return "memory"
    if entry.command is not None:
        return "stdio"
    if entry.url is not None:
        return "sse" if (entry.type or "").lower() == "sse" else "http"
    return "?"


def _what(entry: ServerEntry) -> str:
    """What is run or reached, on one line, with its secrets masked."""
    if entry.command is not None:
        return shlex.join([mask_text(entry.command), *mask_args(entry.args)])
    return "" if entry.url is None else mask_url(entry.url)


def _tools(entry: ServerEntry) -> str:
    """What the lists let through; how many tools there are only the server knows."""
    if entry.include is not None:
        return f"only {sum(map(entry.allows, entry.include))}"
    return f"all but {len(entry.exclude)}" if entry.exclude else "all"


def _state(entry: ServerEntry) -> str:
    if entry.error is not None:
        return "invalid"
    if entry.disabled:
        return "disabled"
    return "" if entry.trusted else "untrusted"


def _near(where: str) -> str:
    """A place as seen from the folder we are in, where that is shorter."""
    here = f"{Path.cwd()}/"
    return where.removeprefix(here)


def _as_json(entry: ServerEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "kind": kind(entry),
        "command": None if entry.command is None else mask_text(entry.command),
        "args": list(mask_args(entry.args)),
        "url": None if entry.url is None else mask_url(entry.url),
        "disabled": entry.disabled,
        "trusted": entry.trusted,
        "exclude": list(entry.exclude),
        "include": None if entry.include is None else list(entry.include),
        "pin": list(entry.pin),
        "priority": entry.priority,
        "source": entry.source,
        "line": entry.line,
        "problem": entry.error,
    }
