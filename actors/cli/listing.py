"""The verb that starts nothing: `list` reads the config and shows what it says. It does not import ``mcp``."""

from __future__ import annotations

import shlex
from typing import Any

from ..edge.config.discover import Scope
from ..model.config import ServerEntry
from ..model.mask import mask_args, mask_text, mask_url
from .configs import load, near, place
from .errors import Exit, diagnose
from .render import columns_used, print_json, print_table

__all__ = ["how_to_trust", "kind", "list_servers", "what_runs"]

SCHEMA = 1


def list_servers(path: str | None, *, scope: Scope | None = None, as_json: bool = False, quiet: bool = False) -> int:
    """List the servers of a config.

    Args:
        path, scope: of the config, as in `configs.open_store`.
        as_json: print JSON instead of a table.
        quiet: no warnings.

    Returns:
        `Exit.OK`, or `Exit.CONFIG` when an entry or one of two files is invalid: the others are listed all the same.

    Raises:
        ConfigError: the config is missing or cannot be read.
    """
    config = load(path, scope)
    unread = None if config.error is None else str(config.error)
    if as_json:
        servers = [_as_json(entry) for entry in config.servers]
        print_json(
            {
                "schema": SCHEMA,
                "config": config.path,
                "error": unread,
                "warnings": list(config.warnings),
                "servers": servers,
            },
        )
    elif config.servers:
        rows = [
            (entry.name, kind(entry), what_runs(entry), _tools(entry), _state(entry), near(place(entry)))
            for entry in config.servers
        ]
        print_table(columns_used(("SERVER", "KIND", "RUNS", "TOOLS", "STATE", "SOURCE"), rows, keep=4))
    else:
        diagnose(f"{config.path or 'the config'}: no servers")
    for warning in () if quiet else config.warnings:
        diagnose(f"warning: {warning}")
    invalid = [entry.error for entry in config.servers if entry.error is not None]
    if unread is not None:
        invalid.append(unread)
    for error in invalid:
        diagnose(error)
    for entry in () if quiet else config.servers:
        if _state(entry) == "untrusted":
            diagnose(f"server {entry.name!r}: {how_to_trust(entry.name)}")
    return Exit.CONFIG if invalid else Exit.OK


def how_to_trust(name: str) -> str:
    """What is said of a server that a project brings and nobody approved."""
    return f"untrusted — run `playbill trust {shlex.quote(name)}`"


def kind(entry: ServerEntry) -> str:
    """How a server is reached: ``stdio``, ``http``, ``sse``, ``memory``, or ``?`` when the entry does not say."""
    if entry.server is not None:
        return "memory"
    if entry.command is not None:
        return "stdio"
    if entry.url is not None:
        return "sse" if (entry.type or "").lower() == "sse" else "http"
    return "?"


def what_runs(entry: ServerEntry) -> str:
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
