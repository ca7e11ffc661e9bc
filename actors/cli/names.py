"""The names that a person gives: which server, and which tool of it, as far as the config alone can tell."""

from __future__ import annotations

from collections.abc import Iterable

from ..model.config import Config, ServerEntry
from ..model.errors import UnknownServer
from ..model.naming import wire_name
from ..model.nearest import nearest
from ..model.snapshot import PluginModel
from .errors import CliError, Exit

__all__ = [
    "also_named",
    "by_wire_name",
    "listed",
    "mentioned",
    "near_tool",
    "no_tool",
    "origin_of",
    "subject",
    "unknown",
]


def origin_of(config: Config, name: str) -> tuple[ServerEntry, str] | None:
    """The server and the bare tool that a name speaks of, as far as the config alone can tell.

    Args:
        config: the servers.
        name: ``SERVER/TOOL`` (server and tool may hold slashes: the longest server name wins), or a wire name.

    Returns:
        The entry and the tool's name, or None when only the servers' lists can tell.
    """
    fits = [entry for entry in config.servers if name.startswith(f"{entry.name}/")]
    if fits:
        entry = max(fits, key=lambda each: len(each.name))
        return entry, name[len(entry.name) + 1 :]
    for entry in config.servers:
        prefix = f"mcp__{entry.name}__"
        if name.startswith(prefix) and wire_name(entry.name, bare := name[len(prefix) :]) == name:
            return entry, bare
    return None


def listed(entry: ServerEntry) -> list[str]:
    """The tools that an entry names, in whichever list: all that is known of them without the server."""
    return list(dict.fromkeys([*(entry.include or ()), *entry.exclude, *entry.pin]))


def _by_listed_name(entries: Iterable[ServerEntry], name: str) -> tuple[ServerEntry, str] | None:
    """The tool of a wire name that does not tell its server, if some list names it."""
    for entry in entries:
        for bare in listed(entry):
            if wire_name(entry.name, bare) == name:
                return entry, bare
    return None


def mentioned(config: Config, name: str) -> tuple[ServerEntry, str | None] | None:
    """The server, or the tool of it, that a name is of, as far as the config alone can tell; else None.

    Args:
        config: the servers.
        name: a server, ``SERVER/TOOL``, or a wire name.
    """
    entry = config.get(name)
    return (entry, None) if entry is not None else origin_of(config, name) or _by_listed_name(config.servers, name)


def also_named(config: Config, name: str) -> tuple[ServerEntry, str] | None:
    """The tool that a name would be of, were it not a server's own name; None when there is none, or no such server.

    A project's config may name a server as it likes, also like the wire name of another one's tool.
    """
    found = None if config.get(name) is None else origin_of(config, name) or _by_listed_name(config.servers, name)
    return found if found is not None and (found[1] or "" in listed(found[0])) else None


def subject(config: Config, name: str, tool: str | None, *, nameless: bool = False) -> tuple[ServerEntry, str | None]:
    """The server, or the tool of it, that is meant.

    Args:
        config: the servers.
        name: a server; or, without ``tool``, one tool: ``SERVER/TOOL``, or its wire name.
        tool: the tool, by bare or wire name.
        nameless: ``SERVER/`` is the tool whose name is empty, not a slip.

    Returns:
        The entry, and the tool's bare name or None for the whole server.

    Raises:
        UnknownServer: there is no such server.
        ConfigError: there is none in the files that can be read, and one cannot be.
        CliError: only the running server could tell which tool it is.
    """
    names = [entry.name for entry in config.servers]
    entry = config.get(name)
    if tool is not None:
        if entry is None:
            if origin_of(config, name) is not None:
                raise CliError(Exit.USAGE, f"{name!r} is a tool already: name one at a time, not {tool!r} too")
            raise unknown(config, name, nearest(name, names))
        if not tool:
            raise no_tool(f"{name}/")
        own = origin_of(Config((entry,)), tool) if tool.startswith("mcp__") else None
        return own or _by_listed_name([entry], tool) or (entry, tool)
    found = mentioned(config, name)
    if found is not None:
        if found[1] == "" and not nameless:
            raise no_tool(name)
        return found
    if name.startswith("mcp__"):
        raise CliError(Exit.USAGE, f"which tool {name!r} is, only its server can tell: name it SERVER/TOOL")
    server, slash, bare = name.partition("/")
    near = nearest(server, names) if slash else nearest(name, names)
    raise unknown(config, server if slash else name, f"{near}/{bare}" if near and slash else near)


def by_wire_name(model: PluginModel, name: str) -> tuple[str, str] | None:
    """The server and the bare name of the tool that has this wire name, or None."""
    for server in model.servers:
        for tool in server.tools:
            if tool.wire_name == name:
                return server.name, tool.bare
    return None


def near_tool(model: PluginModel, name: str) -> str | None:
    """The nearest name of a tool: ``SERVER/TOOL`` of a bare name that fits, else a wire name like it, or None."""
    tools = [(server.name, tool) for server in model.servers for tool in server.tools]
    for server, tool in tools:
        if tool.bare == name:
            return f"{server}/{tool.bare}"
    return nearest(name, [tool.wire_name for _, tool in tools])


def no_tool(name: str) -> CliError:
    """What is raised of a ``SERVER/`` that is no tool."""
    return CliError(Exit.USAGE, f"{name!r} names no tool: write SERVER/TOOL, or only the server")


def unknown(config: Config, name: str, near: str | None) -> Exception:
    """What is raised of a server that is not there: that, or that a file which may have it cannot be read."""
    one = len({entry.source for entry in config.servers}) == 1
    return config.error or UnknownServer(name, near, config.path if one else None)
