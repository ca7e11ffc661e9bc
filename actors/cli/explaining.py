"""The verb that explains: `why` says of a tool, or of a server, why it is, or is not, there for the model.

Theory of operation. Whether a tool is on the wire depends first on the config, then on its server, and only then on the
other servers: the budget keeps what ranks before it. So as little as possible is started: nothing when the config alone
answers; else the tool's server; only when that has it on the wire, the servers whose tools may rank before it; and only
when it is over the budget, all, so that what is said of the budget counts them all.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import trio
from attrs import evolve

from ..edge.config.discover import Scope
from ..model.about import calls_itself
from ..model.budget import Budget, server_order
from ..model.config import Config, ConfigState, ServerEntry
from ..model.errors import UnknownTool
from ..model.naming import PREFIX, wire_name
from ..model.plain import quoted
from ..model.projection import project
from ..model.snapshot import Snapshot, Why
from ..model.status import ServerStatus, ToolDef
from ..model.why import WhyServer, each_why, why, why_server
from .configs import load
from .errors import CliError, Exit, diagnose
from .hosting import opened
from .interrupt import run
from .names import also_named, by_wire_name, listed, mentioned, near_tool, no_tool, subject
from .options import host_options
from .render import print_json, print_text
from .showing import info_json, why_not_ready
from .waiting import settle

if TYPE_CHECKING:
    from ..host import Host

__all__ = ["explain_name"]

SCHEMA = 1
"""The version of the JSON; it grows when a key changes or goes, not when one is added."""

TIMEOUT = 30.0


def explain_name(
    path: str | None,
    name: str,
    tool: str | None = None,
    *,
    scope: Scope | None = None,
    as_json: bool = False,
    timeout: float | None = None,
    profile: str | None = None,
    budget: int | None = None,
) -> int:
    """Explain a tool or a server, and start only what the answer needs.

    Args:
        path, scope: of the config, as in `configs.open_store`.
        name: ``SERVER/TOOL``, a wire name, or ``SERVER``.
        tool: of that server, or None when the name says all.
        as_json: print the answer in parts.
        timeout: seconds to wait for servers; None = 30.
        profile, budget: as in `open_host`; None = as there.

    Returns:
        `Exit.OK` when it is answered; `Exit.SERVER` when it is, but a server that should run is not ready.

    Raises:
        CliError: the server has no such tool, ``SERVER/`` is not one, or the profile is unknown.
        UnknownServer, UnknownTool: there is none of that name.
        ConfigError: the config cannot be read.
    """
    config = load(path, scope)
    options = host_options(profile, budget)
    entry: ServerEntry | None = None
    bare: str | None = None
    if tool is not None:
        entry, bare = subject(config, name, tool)
        name = f"{entry.name}/{bare}"
        if (answer := _from_config(entry, bare, options)) is not None:
            return _print(config, answer, name, as_json)
    elif mentioned(config, name) is not None or not name.startswith(PREFIX):
        entry, bare = subject(config, name, None, nameless=True)
        answer = _from_config(entry, bare, options)
        if answer is not None:
            if bare == "" and bare not in listed(entry):
                raise no_tool(name)  # more likely a slip than a tool that nobody can tell is there
            return _print(config, answer, name, as_json)
    elif config.error is not None:
        raise config.error  # the server may be in there

    async def verb() -> int:
        until = trio.current_time() + (TIMEOUT if timeout is None else timeout)
        if entry is None:
            answer, asked, others = await _by_wire_name(config, name, options, until)
        else:
            answer, asked, others = await _in_stages(config, entry, bare, options, until)
        if bare == "" and answer.missing:
            raise no_tool(name)
        code = _print(config, answer, name, as_json)
        for line in others:
            diagnose(line)
        return code if asked and not others else Exit.SERVER

    return run(verb)


class _Answer:
    """What is said: of one tool, or of a server and each of its tools that there is something to say of."""

    def __init__(self, snapshot: Snapshot, server: str, bare: str | None) -> None:
        try:
            now: float | None = trio.current_time()
        except RuntimeError:
            now = None
        self.tool: Why | None = None if bare is None else why(snapshot, server, bare, now)
        self.server: WhyServer = why_server(snapshot, server, now)
        self.tools: list[Why] = []
        if bare is None:
            self.tools = [about for state, _, about in each_why(snapshot, now) if state.name == server]
        there = snapshot.model.server(server)
        self.info = None if there is None else there.info
        self.listed = there is not None and there.list_state != "none"
        self.missing = self.listed and self.tool is not None and self.tool.verdict == "unknown"
        self.verdicts = {each.verdict for each in ([self.tool] if self.tool is not None else self.tools)}


def _from_config(entry: ServerEntry, bare: str | None, options: dict[str, Any]) -> _Answer | None:
    """The answer, if it is the same whatever the server would say: it is not to run, or its lists exclude the tool."""
    if entry.runnable and (bare is None or entry.allows(bare)):
        return None
    # As if it had listed just this tool: then nothing but the config speaks against it.
    status = ServerStatus() if bare is None else ServerStatus(tools=(ToolDef(bare),))
    state = ConfigState(1, Config((entry,)))
    profile = {"profile": options["profile"]} if "profile" in options else {}
    answer = _Answer(project(state, {entry.name: status}, (), Budget(None), **profile), entry.name, bare)
    if answer.tool is not None:
        answer.tool = evolve(answer.tool, mended=())  # what was made up here is mended, not what the server has
    return answer


async def _in_stages(
    config: Config, entry: ServerEntry, bare: str | None, options: dict[str, Any], until: float
) -> tuple[_Answer, bool, list[str]]:
    """The answer, whether the server asked about is ready, and a line for each other one that is needed and is not."""
    servers: tuple[ServerEntry, ...] = (entry,)
    async with opened(Config(servers, config.path), **options) as host:
        while True:
            snapshot = await _settled(host, until, servers)
            answer = _Answer(snapshot, entry.name, bare)
            needed = _needed(config, entry, bare, answer, servers)
            if len(needed) == len(servers):
                break
            servers = needed
            await host.apply(Config(servers, config.path))
    others = [each for each in servers if each is not entry]
    return answer, not _unready(snapshot, [entry]), _unready(snapshot, others)


def _needed(
    config: Config, entry: ServerEntry, bare: str | None, answer: _Answer, servers: tuple[ServerEntry, ...]
) -> tuple[ServerEntry, ...]:
    """The servers that must run for the answer to be final, given what it is while these do."""
    if "over_budget" in answer.verdicts:
        return config.servers
    if "on_wire" not in answer.verdicts:
        return servers
    order = server_order([each.priority for each in config.servers])
    rank = {config.servers[index].name: at for at, index in enumerate(order)}
    pinned = bare is not None and bare in entry.pin

    def before(other: ServerEntry) -> bool:
        earlier = rank[other.name] < rank[entry.name]
        return other.runnable and (earlier and bool(other.pin) if pinned else earlier or bool(other.pin))

    return tuple(each for each in config.servers if each in servers or before(each))


async def _by_wire_name(
    config: Config, name: str, options: dict[str, Any], until: float
) -> tuple[_Answer, bool, list[str]]:
    """The answer about a wire name that does not tell its server: all servers are asked."""
    async with opened(Config(config.servers, config.path), **options) as host:
        snapshot = await _settled(host, until, config.servers)
        found = by_wire_name(snapshot.model, name)
        if found is None:
            raise UnknownTool(name, near_tool(snapshot.model, name))
        answer = _Answer(snapshot, *found)
    return answer, True, _unready(snapshot, config.servers)


async def _settled(host: Host, until: float, servers: tuple[ServerEntry, ...]) -> Snapshot:
    return await settle(host, max(until - trio.current_time(), 0.001), [each.name for each in servers])


def _unready(snapshot: Snapshot, servers: list[ServerEntry] | tuple[ServerEntry, ...]) -> list[str]:
    """A line for each server that should run and is not ready: with it, the answer might be another one."""
    states = [snapshot.model.server(entry.name) for entry in servers if entry.runnable]
    return [
        f"server {state.name!r} is not ready, so its tools are not counted: {why_not_ready(state)}"
        for state in states
        if state is not None and state.phase != "ready"
    ]


def _print(config: Config, answer: _Answer, name: str, as_json: bool) -> Exit:
    tool = answer.tool
    if tool is not None and answer.missing:
        raise CliError(Exit.USAGE, str(tool))
    also = also_named(config, name) if tool is None else None
    if as_json:
        more = {} if tool is not None else {"also": None if also is None else f"{also[0].name}/{also[1]}"}
        print_json({"schema": SCHEMA, "config": config.path, **_json(answer), **more})
    elif tool is not None:
        print_text(str(tool))
    else:
        print_text(str(answer.server))
        if answer.info is not None and (itself := calls_itself(answer.info)) is not None:
            print_text(f"server {quoted(answer.server.server)} calls itself {itself}")
        for each in answer.tools:
            if each.verdict != "on_wire" or each.mended:
                print_text(str(each))
        if also is not None:
            print_text(_also(name, *also))
    return Exit.OK


def _also(name: str, entry: ServerEntry, bare: str) -> str:
    """That the name of a server is also that of a tool, and how that one is asked for."""
    wire = wire_name(entry.name, bare)
    form = f"{entry.name}/{bare}"
    what, other = ("wire name", form) if name == wire else ("name", wire)
    tool = f"tool {quoted(bare)} of server {quoted(entry.name)}"
    return f"{quoted(name)} is also the {what} of {tool}, if it has one: ask for it as {quoted(other)}"


def _json(answer: _Answer) -> dict[str, Any]:
    server = answer.server
    if answer.tool is not None:
        return {**_tool_json(answer.tool), "phase": server.phase}
    return {
        "server": server.server,
        "tool": None,
        "phase": server.phase,
        "sentence": server.sentence,
        "error": server.error,
        "retry_in": server.retry_in,
        "info": info_json(answer.info),
        "verdicts": dict(server.tools),
        "tools": [_tool_json(each) for each in answer.tools],
    }


def _tool_json(tool: Why) -> dict[str, Any]:
    return {
        "server": tool.server,
        "tool": tool.bare,
        "verdict": tool.verdict,
        "sentence": tool.sentence,
        "reason": tool.reason,
        "wire_name": tool.wire_name,
        "mended": list(tool.mended),
        "file": tool.file,
        "line": tool.line,
        "rank": tool.rank,
        "wanted": tool.wanted,
        "budget": tool.budget,
        "rule": tool.rule,
        "path": tool.path,
        "error": tool.error,
        "retry_in": tool.retry_in,
    }
