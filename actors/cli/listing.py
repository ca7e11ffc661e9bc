"""The verb that starts nothing: `list` reads the config and shows what it says. It does not import ``mcp``."""

from __future__ import annotations

import re
import shlex
from collections.abc import Sequence
from typing import Any

from ..edge.auth.kept import login_kept
from ..edge.config.discover import Scope
from ..edge.config.here import look_here
from ..edge.config.trust import unapprovable
from ..model.config import Config, ServerEntry
from ..model.mask import mask_args, mask_text, mask_url
from ..model.phase import WORDS
from ..model.why import typed
from .configs import load, near, place
from .errors import HOW_TO_ADD, Exit, diagnose
from .render import columns_used, print_json, print_table

__all__ = [
    "about_untrusted",
    "how_to_log_in",
    "how_to_trust",
    "kind",
    "list_servers",
    "none_in",
    "waiting_for_trust",
    "what_runs",
    "what_runs_json",
]

SCHEMA = 1

NEEDS_LOGIN = WORDS["needs_auth"]

_LONGEST = 4096
"""Characters of one text that are shown; masking looks at each of them many times."""

_LONGEST_LINE = 20_000
"""Characters of arguments that are shown on one line."""

_ELLIPSIS = "\N{HORIZONTAL ELLIPSIS}"


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
            (
                *(entry.name, kind(entry), what_runs(entry), _tools(entry), _state(entry)),
                *(_environment(entry), near(place(entry))),
            )
            for entry in config.servers
        ]
        columns = ("SERVER", "KIND", "RUNS", "TOOLS", "STATE", "ENVIRONMENT", "SOURCE")
        print_table(columns_used(columns, rows, keep=4))
    else:
        diagnose(none_in(config))
    for warning in () if quiet else config.warnings:
        diagnose(f"warning: {warning}")
    invalid = [entry.error for entry in config.servers if entry.error is not None]
    if unread is not None:
        invalid.append(unread)
    for error in invalid:
        diagnose(error)
    if not quiet:
        for entry in config.servers:
            if _state(entry) == NEEDS_LOGIN:
                diagnose(f"server {entry.name!r}: {NEEDS_LOGIN}{how_to_log_in(entry.name)}")
    for each in [] if quiet else about_untrusted([entry for entry in config.servers if _state(entry) == "untrusted"]):
        diagnose(each)
    return Exit.CONFIG if invalid else Exit.OK


def about_untrusted(entries: Sequence[ServerEntry]) -> list[str]:
    """What is said of the servers that a project brings and nobody approved; of several that can be, in one line."""
    can = [entry for entry in entries if unapprovable(entry) is None]
    if len(can) < 2:
        return [f"server {entry.name!r}: {how_to_trust(entry)}" for entry in entries]
    return [waiting_for_trust([entry.name for entry in can])] + [
        f"server {entry.name!r}: {how_to_trust(entry)}" for entry in entries if unapprovable(entry) is not None
    ]


def waiting_for_trust(names: Sequence[str]) -> str:
    """What is said of several servers that a project brings and nobody approved."""
    shown = ", ".join(map(repr, names))
    return (
        f"{len(names)} servers come with the project and are not started: `playbill trust --all` shows them ({shown})"
    )


def none_in(config: Config) -> str:
    """What is said of a config without servers: where that is, and how to add one."""
    return f"{near(config.path) if config.path else 'the config'}: no servers; {HOW_TO_ADD.partition(',')[0]}"


def how_to_trust(entry: ServerEntry) -> str:
    """What is said of a server that a project brings and nobody approved, or nobody can."""
    never = unapprovable(entry)
    return f"untrusted — {never or f'run `playbill trust {shlex.quote(entry.name)}`'}"


def how_to_log_in(name: str) -> str:
    """What is said behind that a server needs a login."""
    line = typed("login", name)
    return "" if line is None else f" — run `{line}`"


def kind(entry: ServerEntry) -> str:
    """As `ServerEntry.kind`."""
    return entry.kind


def what_runs(entry: ServerEntry) -> str:
    """What is run or reached, on one line, with its secrets masked, and cut where it is very long."""
    if entry.command is not None:
        args, more = _shown_args(entry.args)
        line = shlex.join([mask_text(_cut(entry.command)), *args])
        return f"{line} {_ELLIPSIS} {more} more" if more else line
    return "" if entry.url is None else mask_url(_cut(entry.url))


def what_runs_json(entry: ServerEntry) -> dict[str, Any]:
    """What is run or reached, as JSON, with its secrets masked; a text that is very long is cut."""
    return {
        "command": None if entry.command is None else mask_text(_cut(entry.command)),
        "args": list(mask_args(map(_cut, entry.args))),
        "url": None if entry.url is None else mask_url(_cut(entry.url)),
    }


def _shown_args(args: Sequence[str]) -> tuple[Sequence[str], int]:
    """As many arguments as one line has room for, with their secrets masked; and how many there are besides."""
    shown: list[str] = []
    room = _LONGEST_LINE
    for arg in args:
        if room <= 0:
            break
        shown.append(_cut(arg))
        room -= len(shown[-1]) + 1
    return mask_args(shown), len(args) - len(shown)


def _cut(text: str) -> str:
    """A text cut where it is very long, before anything looks at each of its characters.

    It ends behind a whole word: half of one might be half of a secret, which nothing would know for one any more.
    """
    if len(text) <= _LONGEST:
        return text
    head = text[:_LONGEST]
    words = re.search(r"\s\S*\Z", head)
    kept = head[: words.start()] if words is not None else ""
    return f"{kept}{_ELLIPSIS} ({len(text)} characters)"


def _environment(entry: ServerEntry) -> str:
    """The names of the variables that an entry takes from the environment, and never what they hold."""
    if entry.error is not None:
        return ""
    found = look_here(entry).variables()
    return ", ".join(name if there else f"{name} (not set)" for name, there in found.items())


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
    if not entry.trusted:
        return "untrusted"
    kept = login_kept(entry)
    return "" if kept is None else "logged in" if kept == "kept" else NEEDS_LOGIN


def _as_json(entry: ServerEntry) -> dict[str, Any]:
    return {
        "name": entry.name,
        "kind": kind(entry),
        **what_runs_json(entry),
        "headers": list(entry.headers),
        "protocol_version": entry.protocol_version,
        "environment": [
            {"name": name, "set": there} for name, there in look_here(entry).variables().items() if entry.error is None
        ],
        "disabled": entry.disabled,
        "trusted": entry.trusted,
        "login": login_kept(entry) if entry.error is None else None,
        "exclude": list(entry.exclude),
        "include": None if entry.include is None else list(entry.include),
        "pin": list(entry.pin),
        "priority": entry.priority,
        "source": entry.source,
        "line": entry.line,
        "problem": entry.error,
    }
