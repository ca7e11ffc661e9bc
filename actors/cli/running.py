"""The verb that keeps a host open: `run` tells every change of the catalog and of the servers, as they happen.

It is the smallest embedding: open a host that watches its config, read its snapshots, do something else meanwhile.
"""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from subprocess import CompletedProcess
from typing import Any, TextIO

import trio
from attrs import evolve, field, frozen

from ..edge.config.discover import Scope
from ..edge.config.watch import can_watch
from ..host import Host
from ..model.phase import WORDS
from ..model.snapshot import ServerState, Snapshot
from .configs import open_store, openable
from .errors import HOW_TO_ADD, CliError, Exit, diagnose, one_line
from .hosting import opened
from .interrupt import run
from .options import host_options
from .voice import voice
from .waiting import settle

__all__ = ["Told", "changes_of", "is_again", "run_host", "words_of"]

_FURTHER = " (further tries are told with --verbose)"

SCHEMA = 1
"""The version of each JSON line; it grows when a key changes or goes, not when one is added."""


def run_host(
    path: str | None,
    command: Sequence[str] = (),
    *,
    scope: Scope | None = None,
    as_json: bool = False,
    quiet: bool = False,
    watch: bool | None = None,
    timeout: float | None = None,
    profile: str | None = None,
    budget: int | None = None,
) -> int:
    """Keep a host open and tell what changes, until a signal, or until a command has ended.

    Args:
        path, scope: of the config, as in `configs.open_store`.
        command: a program and its arguments to run meanwhile, on our own terminal; the host ends with it.
        as_json: one JSON object a line instead of words.
        quiet: only changes of the catalog.
        timeout: seconds that the command is held back until each server is ready or has failed twice; None = not at all.
        watch: whether to reload when the config changes; None: if what watches is installed, and say so if it is not.
        profile, budget: what the catalog is made for.

    Returns:
        Without a command only a signal ends it; else the command's own exit code, 128 + N when signal N ended it.

    Raises:
        CliError: the command cannot be run, or an option is wrong.
        ConfigError: the config cannot be read.
    """
    open_store(path, scope)  # says what is wrong with the two options
    options = host_options(profile, budget)
    if watch is None and not (watch := can_watch()) and not quiet:
        diagnose("the config is not watched: that needs the extra 'watch' (in a clone: pip install '.[watch]')")
    # What the command prints is its own; ours goes beside it.
    out = sys.stderr if command else sys.stdout
    if as_json:
        voice().lines = out

    async def verb() -> int:
        where = None if path is None else Path(openable(path))
        async with opened(where, scope=scope, watch=bool(watch), **options) as host:
            if not host.snapshot().model.servers and not quiet:
                diagnose(f"there are no servers in the config; {HOW_TO_ADD.partition(',')[0]}")
            async with trio.open_nursery() as nursery:
                nursery.start_soon(_tell, host, out, as_json, quiet)
                if command and timeout is not None:
                    await settle(host, timeout)
                code = await _meanwhile(command)
                nursery.cancel_scope.cancel()
            return code

    return run(verb)


async def _meanwhile(command: Sequence[str]) -> int:
    """Run the command to its end, or wait for ever. A checkpoint."""
    if not command:
        await trio.sleep_forever()
    try:
        # When we are cancelled it is asked to end, and killed when it does not within five seconds.
        done: CompletedProcess[bytes] = await trio.run_process(list(command), stdin=None, check=False)
    except OSError as error:
        raise CliError(Exit.USAGE, f"{one_line(command[0])!r} cannot be run: {error.strerror}") from None
    return done.returncode if done.returncode >= 0 else 128 - done.returncode


async def _tell(host: Host, out: TextIO, as_json: bool, quiet: bool) -> None:
    """Print what changes from one snapshot to the next, for ever. A checkpoint."""
    told, all_of_it = Told(), as_json or voice().verbose
    failing: dict[str, str | None] = {}
    async for snapshot in host.changes():
        told, changes = changes_of(told, snapshot)
        for change in changes:
            if (quiet and change["event"] != "catalog") or (is_again(failing, change) and not all_of_it):
                continue
            more = "" if all_of_it or change.get("phase") != "backing_off" else _FURTHER
            voice().draw("")
            print(json.dumps({"schema": SCHEMA, **change}) if as_json else f"{words_of(change)}{more}", file=out)
        out.flush()


def is_again(failing: dict[str, str | None], change: dict[str, Any]) -> bool:
    """Whether a change is but one more try of a server that fails as before, which a person has heard of.

    Args:
        failing: the servers that were told to be failing, and of what; brought up to date.
        change: the next one of `changes_of`.
    """
    if change["event"] != "server":
        return False
    name, phase, error = change["name"], change["phase"], change["error"]
    if phase == "starting":
        return name in failing
    if phase == "backing_off":
        again = name in failing and failing[name] == error
        failing[name] = error
        return again
    failing.pop(name, None)
    return False


@frozen
class Told:
    """What was told already.

    Args:
        snapshot: the last one that was looked at, or None.
        servers: phase and error of each server.
    """

    snapshot: Snapshot | None = None
    servers: Mapping[str, tuple[str, str | None]] = field(factory=dict)


def changes_of(told: Told, snapshot: Snapshot) -> tuple[Told, list[dict[str, Any]]]:
    """What there is to tell of a snapshot. Pure.

    Args:
        told: what was told already.
        snapshot: the one now.

    Returns:
        What is told then, and the changes: of servers, then of the config, then of the catalog; each a JSON object with its
        kind under ``event``.
    """
    before, model = told.snapshot, snapshot.model
    servers = {server.name: (server.phase, server.error) for server in model.servers}
    changes = [_server(server) for server in model.servers if told.servers.get(server.name) != servers[server.name]]
    changes += [
        {"event": "server", "name": name, "phase": None, "error": None} for name in told.servers if name not in servers
    ]
    if model.config_error != (None if before is None else before.model.config_error):
        changes.append({"event": "config", "error": model.config_error})
    catalog = snapshot.catalog
    if before is None or before.catalog is not catalog:
        changes.append(
            {
                "event": "catalog",
                "version": snapshot.version,
                "digest": catalog.digest,
                "tools": len(catalog.tools),
                **_difference(before, snapshot),
                "warning": model.budget_warning(),
            }
        )
    return evolve(told, snapshot=snapshot, servers=servers), changes


def _server(server: ServerState) -> dict[str, Any]:
    return {"event": "server", "name": server.name, "phase": server.phase, "error": server.error}


def _difference(before: Snapshot | None, snapshot: Snapshot) -> dict[str, Any]:
    if before is None:
        return {
            "added": [tool.wire_name for tool in snapshot.catalog.tools],
            "removed": [],
            "changed": [],
            "trimmed": [],
        }
    diff = before.catalog.diff(snapshot.catalog)
    return {
        "added": list(diff.added),
        "removed": list(diff.removed),
        "changed": list(diff.changed),
        "trimmed": [f"{ref.server}/{ref.bare}" for ref in diff.trimmed_now],
    }


def words_of(change: dict[str, Any]) -> str:
    """A change of `changes_of` in one line for a person."""
    say: dict[str, Callable[[dict[str, Any]], str]] = {
        "server": _of_server,
        "config": _of_config,
        "catalog": _of_catalog,
    }
    return one_line(say[change["event"]](change))


def _of_server(change: dict[str, Any]) -> str:
    if change["phase"] is None:
        return f"server {change['name']}: removed"
    error = f": {change['error']}" if change["error"] else ""
    return f"server {change['name']}: {WORDS[change['phase']]}{error}"


def _of_config(change: dict[str, Any]) -> str:
    return f"config: {change['error'] or 'it can be read again'}"


def _of_catalog(change: dict[str, Any]) -> str:
    parts = [
        f"{sign} {', '.join(change[key])}"
        for sign, key in (("+", "added"), ("-", "removed"), ("~", "changed"), ("trimmed", "trimmed"))
        if change[key]
    ]
    count = change["tools"]
    difference = f" ({'; '.join(parts)})" if parts else ""
    warning = f"; {change['warning']}" if change["warning"] else ""
    return f"catalog: {count} tool{'' if count == 1 else 's'}{difference}{warning}"
