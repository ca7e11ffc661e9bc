"""The configuration as values: what `mcp.json` says, after reading and before anything runs.

Nothing here touches a file, a process or a clock. Strings are as written: ``${VAR}`` is expanded by the edge, at every
(re)connect, and never appears expanded in a value of this module.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from typing import Any, Protocol

from attrs import field, frozen

from .errors import ConfigError
from .frozen import FrozenDict, freeze
from .oauth import OAuth
from .protocol import version_wrong

__all__ = ["Config", "ConfigState", "InputSpec", "Places", "ServerEntry"]


def _entries(value: Iterable[ServerEntry]) -> tuple[ServerEntry, ...]:
    return tuple(value)


def _specs(value: Iterable[InputSpec]) -> tuple[InputSpec, ...]:
    return tuple(value)


def _strings(value: Any) -> tuple[str, ...]:
    if isinstance(value, str):
        raise TypeError(f"a list of strings is needed here, not the one string {value!r}")
    return tuple(value)


def _strings_or_none(value: Any) -> tuple[str, ...] | None:
    return None if value is None else _strings(value)


def _fits(entry: ServerEntry) -> None:
    """Refuse what no configuration can mean, where it is written, and not later in an actor."""
    for key in ("command", "cwd", "env_file", "type", "url", "headers_helper", "protocol_version"):
        value = getattr(entry, key)
        if value is not None and type(value) is not str:
            raise TypeError(f"{key} of server {entry.name!r} is a string, not {value!r}")
    if entry.protocol_version is not None and (wrong := version_wrong(entry.protocol_version)) is not None:
        raise ValueError(f"protocol_version of server {entry.name!r}: {wrong}")
    if entry.oauth is not None and not isinstance(entry.oauth, OAuth):
        raise TypeError(f"oauth of server {entry.name!r} is an OAuth, not a {type(entry.oauth).__name__}")
    lists = (entry.args, entry.exclude, entry.pin, entry.include or ())
    for value in itertools.chain((entry.name,), *lists, entry.env.values(), entry.headers.values()):
        if type(value) is not str:
            raise TypeError(f"server {entry.name!r} has {value!r} where only strings can be")


@frozen
class InputSpec:
    """What a file declares about an ``${input:ID}``, for whoever is asked to supply it.

    Args:
        id: as it is referred to.
        type: ``promptString``, ``pickString``, ``command``, as written; None when the file does not declare this input.
        description: words for a person, or None.
        password: the value must not be shown while it is typed.
        default: what counts when nobody supplies it, or None.
        options: what can be chosen, of a ``pickString``.
    """

    id: str
    type: str | None = None
    description: str | None = None
    password: bool = False
    default: str | None = None
    options: tuple[str, ...] = ()


class Places(Protocol):
    """Where in its files a configuration says what it says: looked for when somebody asks, as few ever do.

    It is no part of an entry and of nothing made from one, so that a line more at the top of a file is a line more, and not
    thousands of values to be made anew.
    """

    def line(self, server: str, bare: str | None = None) -> int | None:
        """The 1-based line of an entry, or of what in it keeps a tool from being offered, as near as it is known.

        Args:
            server: a configured name.
            bare: a tool that the entry's lists do not let through.
        """
        ...


@frozen(kw_only=True)
class ServerEntry:
    """One server of the configuration.

    Args:
        name: the key under ``mcpServers``; any characters.
        command: the program of a server over stdio; in it and in all below ``${VAR}`` is unexpanded.
        args: the program's arguments.
        env: the program's variables, besides the few it inherits.
        cwd: the program's folder; None = the folder of the config file, or our own when there is no file.
        env_file: a file of ``KEY=VALUE`` lines with more variables; what ``env`` says wins.
        type: ``stdio``, ``http`` or ``sse``; None = what ``command`` or ``url`` means.
        url: where a remote server is.
        headers: what is sent with each request to a remote server.
        headers_helper: a command line that prints more headers of it, as JSON, for each connection.
        oauth: how it is logged in to, where that cannot be found out; None: as the server says, if it wants a login.
        protocol_version: the newest version of the protocol to speak with it, such as ``2025-11-25``; with one of before
            2026-07-28 it is shaken hands with in the way of these, without a probe. None = the newest that both know.
        server: a server as a value, compared by identity: an SDK ``MCPServer`` or low-level ``Server``, run in memory; an SDK
            ``Transport``; or a function without arguments that makes one, for each connection.
        disabled: configured, but not to be run.
        include: when not None, only these bare tool names are enabled.
        exclude: these bare tool names are not enabled; wins over ``include``.
        pin: bare tool names that the budget trims last.
        priority: the budget trims servers of lower priority first.
        timeout: seconds one call may take; None = the host's default.
        connect_timeout: seconds from spawn to the first tool list; None = the host's default.
        inputs: what the entry's file declares about ``${input:ID}``; no reason to start a server anew.
        source: the file the entry comes from; None for one made in code.
        line: its 1-based line there when it was read first (where it stands now says ``Config.line``); None for one made in
            code.
        error: why the entry cannot be used (one line), or None. Such an entry is shown as ``invalid`` and never started.
        trusted: False keeps it from being started until ``Host.trust(name)``.

    Raises:
        TypeError: something is not a string, or a string where a list of strings is meant.
        ValueError: ``protocol_version`` is none that is known.
    """

    name: str = field(kw_only=False)
    command: str | None = None
    args: tuple[str, ...] = field(default=(), converter=_strings)
    env: FrozenDict = field(factory=FrozenDict, converter=freeze)
    cwd: str | None = None
    env_file: str | None = None
    type: str | None = None
    url: str | None = None
    headers: FrozenDict = field(factory=FrozenDict, converter=freeze)
    headers_helper: str | None = None
    oauth: OAuth | None = None
    protocol_version: str | None = None
    server: Any = field(default=None, eq=id)
    disabled: bool = False
    include: tuple[str, ...] | None = field(default=None, converter=_strings_or_none)
    exclude: tuple[str, ...] = field(default=(), converter=_strings)
    pin: tuple[str, ...] = field(default=(), converter=_strings)
    priority: float = 0
    timeout: float | None = None
    connect_timeout: float | None = None
    inputs: tuple[InputSpec, ...] = field(default=(), converter=_specs)
    source: str | None = None
    line: int | None = None
    error: str | None = None
    trusted: bool = True
    # `diff.launch_key`, once it was asked for: a reload compares every entry, and nearly all are the objects of before.
    launch_key_memo: Any = field(init=False, default=None, eq=False, repr=False)
    lists_memo: Any = field(init=False, default=None, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        _fits(self)

    @property
    def runnable(self) -> bool:
        """Whether this server is meant to run: valid, trusted and not disabled."""
        return self.error is None and self.trusted and not self.disabled

    @property
    def starts_something(self) -> bool:
        """Whether to run it starts a program that its file names."""
        return self.command is not None or self.headers_helper is not None

    @property
    def logs_in(self) -> bool:
        """Whether somebody can log in to it (OAuth): it is remote, and its entry gives it no login of another kind."""
        if self.url is None or any(name.lower() == "authorization" for name in self.headers):
            return False
        return self.headers_helper is None if self.oauth is None else self.oauth.enabled

    @property
    def kind(self) -> str:
        """How it is reached: ``stdio``, ``http``, ``sse``, ``memory``, or ``?`` when the entry does not say."""
        if self.server is not None:
            return "memory"
        if self.command is not None:
            return "stdio"
        if self.url is None:
            return "?"
        return "sse" if (self.type or "").lower() == "sse" else "http"

    def allows(self, bare: str) -> bool:
        """Whether the lists let a tool through: in ``include`` if there is one, and not in ``exclude``.

        The one place where ``enabled`` is derived; everything else reads it from the model.
        """
        included, excluded = self._lists()
        return (included is None or bare in included) and bare not in excluded

    def excludes(self, bare: str) -> bool:
        """Whether a tool is in ``exclude``."""
        return bare in self._lists()[1]

    def _lists(self) -> tuple[frozenset[str] | None, frozenset[str]]:
        memo: tuple[frozenset[str] | None, frozenset[str]] | None = self.lists_memo
        if memo is None:
            memo = (None if self.include is None else frozenset(self.include), frozenset(self.exclude))
            object.__setattr__(self, "lists_memo", memo)
        return memo


@frozen
class Config:
    """A whole configuration: its servers in the order written.

    Args:
        servers: the entries; a name occurs once.
        path: the file that a new server goes to, or None when it lives in memory only.
        warnings: one line each, of what was accepted but looks wrong.
        error: of a configuration of several files: why one of them cannot be used as it is now. What it said before stands
            in for it (nothing, if it was never read); the others are in force as they are now.
        places: where it says what it says, when it has lists that hide tools; else None: each entry where its own ``line``
            says. Configurations that differ in it alone are equal.
    """

    servers: tuple[ServerEntry, ...] = field(default=(), converter=_entries)
    path: str | None = None
    warnings: tuple[str, ...] = ()
    error: ConfigError | None = field(default=None, eq=str)
    places: Places | None = field(default=None, eq=False, repr=False)
    _index: dict[str, ServerEntry] = field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        index = {entry.name: entry for entry in self.servers}
        if len(index) != len(self.servers):
            names = [entry.name for entry in self.servers]
            twice = next(name for name in names if names.count(name) > 1)
            raise ValueError(f"server {twice!r} is configured twice")
        object.__setattr__(self, "_index", index)

    def get(self, name: str) -> ServerEntry | None:
        """The entry of that name, or None."""
        return self._index.get(name)

    def line(self, server: str, bare: str | None = None) -> int | None:
        """As `Places.line`; None also for a name that is not configured."""
        entry = self._index.get(server)
        if self.places is None or entry is None:
            return None if entry is None else entry.line
        return self.places.line(server, bare)


@frozen
class ConfigState:
    """The coordinator's cell: the config in force, its revision, and why a newer text was refused.

    Args:
        rev: grows by one with each change of config in force.
        config: the last good configuration.
        error: one line why the file as it is now cannot be used, or None.
    """

    rev: int
    config: Config
    error: str | None = None
