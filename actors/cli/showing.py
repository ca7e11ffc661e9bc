"""The verb that shows what there is: `tools` starts the servers, waits for them and lists every tool with its verdict."""

from __future__ import annotations

from typing import Any

import trio

from ..edge.config.discover import Scope
from ..model.about import ServerInfo
from ..model.config import Config
from ..model.frozen import thaw
from ..model.phase import WORDS
from ..model.plain import LONGEST_NAME, flat, short
from ..model.snapshot import PluginModel, ServerState, Snapshot
from ..model.why import each_why
from .configs import load
from .errors import Exit, diagnose
from .hosting import opened
from .interrupt import run
from .listing import about_untrusted, how_to_log_in, none_in
from .options import host_options
from .render import columns_used, print_json, print_table, summary
from .waiting import settle

__all__ = ["show_tools", "verdict", "why_not_ready"]

SCHEMA = 1
"""The version of the JSON; it grows when a key changes or goes, not when one is added."""

TIMEOUT = 30.0


def show_tools(
    path: str | None,
    *,
    scope: Scope | None = None,
    as_json: bool = False,
    quiet: bool = False,
    timeout: float | None = None,
    profile: str | None = None,
    budget: int | None = None,
) -> int:
    """Start all servers, wait until each is ready or has failed, and list every tool.

    Args:
        path, scope: of the config, as in `configs.open_store`.
        as_json: print JSON instead of tables.
        quiet: say only what makes the exit code.
        timeout: seconds to wait for servers; None = 30.
        profile, budget: as in `open_host`; None = as there.

    Returns:
        `Exit.CONFIG` when an entry is invalid, `Exit.SERVER` when a server that should run is not ready, `Exit.BUDGET` when
        tools were trimmed, else `Exit.OK`: the first that applies. The listing is printed in each case.

    Raises:
        ConfigError: the config cannot be read.
        CliError: there is no such profile.
    """
    config = load(path, scope)
    options = host_options(profile, budget)

    async def verb() -> int:
        async with opened(config, **options) as host:
            snapshot = await settle(host, TIMEOUT if timeout is None else timeout)
            now = trio.current_time()
            if as_json:
                print_json(_tools_json(config, snapshot, now))
            else:
                _print_tools(snapshot, now)
            code, lines = verdict(config, snapshot.model, quiet=quiet)
            for line in lines:
                diagnose(line)
            return code

    return run(verb)


def verdict(
    config: Config, model: PluginModel, *, quiet: bool = False, of_tools: bool = True
) -> tuple[Exit, list[str]]:
    """What ``tools`` ends with, and a line for each thing that is wrong; unless quiet, also for what only looks wrong.

    Without ``of_tools`` nothing is said of how many there are.
    """
    invalid = [entry.error for entry in config.servers if entry.error is not None]
    down = [
        f"server {server.name!r} is not ready: {why_not_ready(server)}"
        for server, entry in ((server, config.get(server.name)) for server in model.servers)
        if entry is not None and entry.runnable and server.phase != "ready"
    ]
    over = ["; ".join(each for each in (model.budget_warning(), model.budget_details()) if each)]
    over = [each for each in over if each and of_tools]
    near = model.limit_warning() if of_tools else None
    unread = [model.config_error] if model.config_error else []
    code = Exit.CONFIG if invalid or unread else Exit.SERVER if down else Exit.BUDGET if over else Exit.OK
    asked = [config.get(server.name) for server in model.servers if server.phase == "untrusted"]
    untrusted = about_untrusted([entry for entry in asked if entry is not None])
    empty = [] if model.servers else [none_in(config)]
    if quiet:
        return code, [*unread, *invalid, *down, *over]
    return code, [
        *unread,
        *(f"warning: {each}" for each in model.config_warnings),
        *invalid,
        *down,
        *untrusted,
        *empty,
        *over,
        *([f"warning: {near}"] if near else []),
    ]


def _next_step(server: ServerState) -> str:
    """What is said behind the reason of a server that wants a login."""
    if server.url is None or "oauth." in (server.error or ""):  # the reason says what to write
        return ""
    if server.logs_in:
        return how_to_log_in(server.name)
    if any(name.lower() == "authorization" for name in server.headers):
        return " — the token of its Authorization header was refused: renew it, or remove the header"
    return " — its entry has no login (oauth: false, or a headers helper): mend what it gives, or remove that"


def why_not_ready(server: ServerState) -> str:
    """Why a server is not ready, in words."""
    if server.error:
        how = _next_step(server) if server.phase == "needs_auth" else ""
        return f"{WORDS[server.phase]}: {server.error}{how}"
    if server.phase == "starting":
        return "its tools are not in yet" if server.connected else "it has not answered yet"
    return server.list_error or WORDS[server.phase]


def _print_tools(snapshot: Snapshot, now: float) -> None:
    servers = []
    for server in snapshot.model.servers:
        sent = sum(tool.verdict == "on_wire" for tool in server.tools)
        count = f"{sent} of {len(server.tools)}" if server.tools or server.list_state != "none" else ""
        pid = "" if server.pid is None else str(server.pid)
        servers.append(
            (
                short(server.name),
                WORDS[server.phase],
                count,
                pid,
                str(server.restarts or ""),
                server.error or server.list_error or "",
            )
        )
    print_table(columns_used(("SERVER", "PHASE", "ON THE WIRE", "PID", "RESTARTS", "ERROR"), servers, keep=3))
    tools = [
        (
            tool.wire_name,
            _tool_label(server.name, tool.bare),
            tool.verdict,
            why.reason or "",
            flat("; ".join(tool.mended)),
            summary(tool.description),
        )
        for server, tool, why in each_why(snapshot, now)
    ]
    if tools:
        print()
        print_table(columns_used(("WIRE NAME", "TOOL", "VERDICT", "REASON", "MENDED", "DESCRIPTION"), tools, keep=3))


def _tool_label(server: str, bare: str) -> str:
    """``SERVER/TOOL``; of a huge one the beginnings of both, as one such name makes every row that wide."""
    if len(server) + len(bare) < LONGEST_NAME:
        return f"{server}/{bare}"
    head = short(server, LONGEST_NAME // 2)
    return f"{head}/{short(bare, LONGEST_NAME - len(head) - 1)}"


def _tools_json(config: Config, snapshot: Snapshot, now: float) -> dict[str, Any]:
    model = snapshot.model
    reasons = {(server.name, tool.bare): why.reason for server, tool, why in each_why(snapshot, now)}
    return {
        "schema": SCHEMA,
        "config": config.path,
        "digest": snapshot.catalog.digest,
        "profile": model.profile,
        "budget": {"tools": model.budget, "wanted": model.wanted, "trimmed": model.trimmed_count()},
        "warning": model.budget_warning(),
        "limit_warning": model.limit_warning(),
        "servers": [
            {
                "name": server.name,
                "phase": server.phase,
                "connected": server.connected,
                "error": server.error,
                "list_error": server.list_error,
                "pid": server.pid,
                "protocol_version": server.protocol_version,
                "info": info_json(server.info),
                "restarts": server.restarts,
                "source": server.source,
                "tools": [
                    {
                        "tool": tool.bare,
                        "wire_name": tool.wire_name,
                        "enabled": tool.enabled,
                        "verdict": tool.verdict,
                        "reason": reasons[server.name, tool.bare],
                        "rule": tool.rule,
                        "path": tool.path,
                        "mended": list(tool.mended),
                        "title": tool.title,
                        "description": tool.description,
                        "input_schema": thaw(tool.input_schema),
                    }
                    for tool in server.tools
                ],
            }
            for server in model.servers
        ],
    }


def info_json(info: ServerInfo | None) -> dict[str, Any] | None:
    """What a server says of itself, as JSON."""
    if info is None:
        return None
    return {
        "name": info.name,
        "version": info.version,
        "title": info.title,
        "description": info.description,
        "website_url": info.website_url,
        "icons": [thaw(icon) for icon in info.icons],
        "instructions": info.instructions,
    }
