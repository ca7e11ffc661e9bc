"""The published values: one immutable snapshot that agent, picker and warnings all read."""

from __future__ import annotations

from typing import Literal

from attrs import field, frozen

from .catalog import Catalog
from .frozen import FrozenDict, freeze
from .status import ListState

__all__ = [
    "Phase",
    "PluginModel",
    "ServerState",
    "Snapshot",
    "ToolState",
    "Verdict",
    "Why",
]

Phase = Literal[
    "disabled", "untrusted", "invalid", "needs_auth", "starting", "ready", "backing_off", "parked", "stopping"
]
Verdict = Literal["excluded", "server_down", "quarantined", "over_budget", "on_wire"]


@frozen(kw_only=True)
class ToolState:
    """One tool of one server as the model holds it, whether or not it is sent to the provider.

    Args:
        bare: the server's own name of the tool.
        enabled: what the config's lists say (in ``include`` if there is one, not in ``exclude``).
        title, description, input_schema: as advertised.
        wire_name: the name it has, or would have, on the wire.
        verdict: the first that applies: ``excluded``, ``server_down``, ``quarantined``, ``over_budget``, ``on_wire``.
        reason: the verdict in words, or None when it is on the wire.
        rule, path: of a quarantined tool, which rule it breaks and where (a JSON path into its definition); else None.
        mended: what is sent otherwise than advertised, one line each.
    """

    bare: str
    enabled: bool
    title: str | None = None
    description: str | None = None
    input_schema: FrozenDict = field(factory=FrozenDict, converter=freeze)
    wire_name: str
    verdict: Verdict
    reason: str | None = None
    rule: str | None = None
    path: str | None = None
    mended: tuple[str, ...] = ()


@frozen(kw_only=True)
class ServerState:
    """One configured server as the model holds it.

    Args:
        name: the key in the config.
        command, args, url: as written, unexpanded, secrets masked.
        source: the file the entry comes from, or None.
        connected: the handshake is alive.
        phase: disabled, untrusted, invalid, needs_auth, starting, ready, backing_off, parked or stopping.
        error: why it is not connected (one line); None when connected or on the first attempt.
        list_error: why the newest listing failed, or None.
        list_state: none (no list yet), current, or stale (kept from before).
        tools: in the order advertised.
        restarts: since its history was last cleared.
        next_retry_at: trio clock time of the next attempt, or None.
        attempt: which of how many restarts is next, as (n, limit), or None.
        generation: of the incarnation it speaks of; 0 before the first.
        pid, protocol_version: while connected, else None.
        stderr_tail: captured at the last death, else empty.
    """

    name: str
    command: str | None = None
    args: tuple[str, ...] = ()
    url: str | None = None
    source: str | None = None
    connected: bool = False
    phase: Phase
    error: str | None = None
    list_error: str | None = None
    list_state: ListState = "none"
    tools: tuple[ToolState, ...] = ()
    restarts: int = 0
    next_retry_at: float | None = None
    attempt: tuple[int, int] | None = None
    generation: int = 0
    pid: int | None = None
    protocol_version: str | None = None
    stderr_tail: str = ""
    _index: dict[str, ToolState] = field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_index", {tool.bare: tool for tool in self.tools})

    def tool(self, bare: str) -> ToolState | None:
        """The tool of that bare name, or None."""
        return self._index.get(bare)


@frozen(kw_only=True)
class PluginModel:
    """Everything there is to know about the plugins, at one moment.

    Args:
        servers: in the order configured.
        config_error: why the config file as it is now cannot be used (one line), or None.
        config_warnings: one line each, of what was accepted in the config but looks wrong; and that changes of it are not
            noticed, when it is watched in vain.
        profile: the name of the profile that the catalog is made for.
        native_count, budget, wanted, trimmed: the figures behind the warning: native tools, the budget's cap (None = none),
            native and MCP tools that would be sent without it, and how many of those it dropped.
    """

    servers: tuple[ServerState, ...] = ()
    config_error: str | None = None
    config_warnings: tuple[str, ...] = ()
    profile: str = "portable"
    native_count: int = 0
    budget: int | None = None
    wanted: int = 0
    trimmed: int = 0
    _index: dict[str, ServerState] = field(init=False, eq=False, repr=False)

    def __attrs_post_init__(self) -> None:
        object.__setattr__(self, "_index", {server.name: server for server in self.servers})

    def server(self, name: str) -> ServerState | None:
        """The server of that name, or None."""
        return self._index.get(name)

    def tool(self, server: str, bare: str) -> ToolState | None:
        """The tool by origin, or None."""
        found = self._index.get(server)
        return None if found is None else found.tool(bare)

    def over_budget(self) -> bool:
        """Whether the budget is exceeded: more tools are wanted on the wire than it allows."""
        return self.budget is not None and self.wanted > self.budget

    def trimmed_count(self) -> int:
        """How many MCP tools the budget dropped."""
        return self.trimmed

    def budget_warning(self) -> str | None:
        """The warning for a person, or None when nothing is over the budget."""
        if not self.over_budget():
            return None
        return (
            f"{self.wanted} tools over the budget of {self.budget} — {self.trimmed} MCP tools were dropped "
            "from this session; disable some to make room"
        )


@frozen
class Snapshot:
    """The one value all readers read. Deeply immutable.

    Args:
        version: only grows.
        config_rev: the revision of the config it was projected from.
        model: every server and tool, with verdicts.
        catalog: what is sent to the provider.
    """

    version: int
    config_rev: int
    model: PluginModel
    catalog: Catalog


@frozen
class Why:
    """Why a tool is, or is not, on the wire: a value whose ``str`` is a sentence.

    Args:
        server, bare: the tool asked about.
        verdict: as in ``ToolState``, or ``unknown``.
        sentence: the answer in words.
    """

    server: str
    bare: str
    verdict: Verdict | Literal["unknown"]
    sentence: str

    def __str__(self) -> str:
        return self.sentence
