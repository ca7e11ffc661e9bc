"""The published values: one immutable snapshot that agent, picker and warnings all read."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import Any, Literal

from attrs import field, frozen

from .frozen import FrozenDict, freeze
from .status import ListState

__all__ = [
    "Budget",
    "Catalog",
    "NativeTool",
    "Phase",
    "PluginModel",
    "ServerState",
    "Snapshot",
    "ToolRef",
    "ToolState",
    "Verdict",
    "Why",
    "WireTool",
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
    """

    bare: str
    enabled: bool
    title: str | None = None
    description: str | None = None
    input_schema: FrozenDict = field(factory=FrozenDict, converter=freeze)
    wire_name: str
    verdict: Verdict
    reason: str | None = None


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


@frozen
class ToolRef:
    """A tool by where it comes from: server name and bare tool name."""

    server: str
    bare: str


@frozen(kw_only=True)
class WireTool:
    """One tool as it is sent to a provider; ``server`` is None for a native tool."""

    wire_name: str
    server: str | None
    bare: str
    title: str | None = None
    description: str | None = None
    input_schema: FrozenDict = field(factory=FrozenDict, converter=freeze)


@frozen
class Catalog:
    """The wire catalog: native tools as given, then MCP tools by wire name.

    Args:
        version: of the snapshot in which this catalog took the place of another one.
        tools: what is sent.
        trimmed: the victims of the budget, the first to go first.
        digest: hex SHA-256 of the tools' canonical JSON: equal if and only if the bytes are.
    """

    version: int
    tools: tuple[WireTool, ...]
    trimmed: tuple[ToolRef, ...]
    digest: str
    _index: dict[str, WireTool] = field(init=False, factory=dict, eq=False, repr=False)

    def tool(self, wire_name: str) -> WireTool | None:
        """The tool of that wire name, or None."""
        if not self._index:
            # Made by the first who asks: with thousands of tools it would be a third of what publishing costs. The
            # update is one step, so that a reader in another thread sees none of it or all of it.
            self._index.update({tool.wire_name: tool for tool in self.tools})
        return self._index.get(wire_name)


@frozen(kw_only=True)
class PluginModel:
    """Everything there is to know about the plugins, at one moment.

    Args:
        servers: in the order configured.
        config_error: why the config file as it is now cannot be used (one line), or None.
        config_warnings: one line each, of what was accepted in the config but looks wrong; and that changes of it are not
            noticed, when it is watched in vain.
        native_count, budget, wanted, trimmed: the figures behind the warning: native tools, the budget's cap (None = none),
            native and MCP tools that would be sent without it, and how many of those it dropped.
    """

    servers: tuple[ServerState, ...] = ()
    config_error: str | None = None
    config_warnings: tuple[str, ...] = ()
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


def _cap(_: object, __: object, value: int | None) -> None:
    if value is not None and value < 0:
        raise ValueError(f"a budget is 0 or more tools, not {value}")


@frozen
class Budget:
    """A soft cap on what is sent: native tools always ship, MCP tools are trimmed lowest priority first.

    Args:
        tools: the most native and MCP tools together, or None for no cap.

    Raises:
        ValueError: when it is negative.
    """

    tools: int | None = field(default=100, validator=_cap)


def _native_name(_: object, __: object, value: str) -> None:
    if value.startswith("mcp__"):
        raise ValueError(f"native tool {value!r}: names that begin with mcp__ are those of MCP tools")


@frozen
class NativeTool:
    """A tool of the embedding program itself; it always ships.

    Args:
        name: its wire name; may not begin with ``mcp__``.
        description: for the model.
        input_schema: JSON Schema of its arguments; the root is an object.
        handler: called with the arguments as keywords; sync (run in a worker thread) or async.

    Raises:
        ValueError: when the name begins with ``mcp__``.
    """

    name: str = field(validator=_native_name)
    description: str
    input_schema: FrozenDict = field(converter=freeze)
    handler: Callable[..., Any] | Callable[..., Awaitable[Any]] = field(eq=False)


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
