"""The published values: one immutable snapshot that agent, picker and warnings all read."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from attrs import field, frozen

from .about import ServerInfo
from .catalog import Catalog
from .frozen import FrozenDict, freeze
from .offers import Prompt, Resource, ResourceTemplate
from .plain import label, quoted
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

_WANTED = ("on_wire", "over_budget")


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
        pinned: the config pins it: the budget drops it after those that are not.
        output_schema, annotations, meta: as advertised (JSON Schema, ToolAnnotations, ``_meta``), or None; never sent.
        icons: as advertised, each an Icon of the protocol; never sent.
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
    pinned: bool = False
    output_schema: FrozenDict | None = None
    annotations: FrozenDict | None = None
    icons: tuple[FrozenDict, ...] = ()
    meta: FrozenDict | None = None


@frozen(kw_only=True)
class ServerState:
    """One configured server as the model holds it.

    Args:
        name: the key in the config.
        kind: how it is reached: ``stdio``, ``http``, ``sse``, ``memory``, or ``?`` when the entry does not say; of
            a URL without a ``type`` how it was reached last.
        command, args, url: as written, unexpanded, secrets masked.
        headers: the names of those that are sent to a remote server; what they hold is told nowhere.
        logs_in: when it wants a login, somebody can log in to it (OAuth); else its login is what the entry gives it.
        source: the file the entry comes from, or None.
        connected: the handshake is alive.
        phase: disabled, untrusted, invalid, needs_auth, starting, ready, backing_off, parked or stopping.
        error: why it is not connected (one line); None when connected or on the first attempt.
        futile: it is parked for what will not pass by itself: its entry, or what that refers to (a command, a folder, a
            variable), must be mended first.
        list_error: why the newest listing failed, or None.
        list_state: none (no list yet), current, or stale (kept from before).
        tools: in the order advertised.
        resources, templates, prompts: what it offers besides, in the order advertised; kept from before as the tools are.
        resources_state, prompts_state: as ``list_state``; current also when the server has nothing of the kind.
        resources_error, prompts_error: why the newest listing failed, or what was left out of it, or None.
        restarts: since its history was last cleared.
        restarted_at: trio clock time of the last of these, or None.
        next_retry_at: trio clock time of the next attempt, or None.
        retry_asked: the server itself asked to be left alone until then (Retry-After).
        attempt: which of how many restarts is next, as (n, limit), or None.
        generation: of the incarnation it speaks of; 0 before the first.
        pid, protocol_version: while connected, else None.
        stderr_tail: captured at the last death, else empty.
        info: what it says of itself, with its instructions; kept from before as the tools are. None before the first time.
    """

    name: str
    kind: str = "?"
    command: str | None = None
    args: tuple[str, ...] = ()
    url: str | None = None
    headers: tuple[str, ...] = ()
    logs_in: bool = False
    source: str | None = None
    connected: bool = False
    phase: Phase
    error: str | None = None
    futile: bool = False
    list_error: str | None = None
    list_state: ListState = "none"
    tools: tuple[ToolState, ...] = ()
    restarts: int = 0
    restarted_at: float | None = None
    next_retry_at: float | None = None
    retry_asked: bool = False
    attempt: tuple[int, int] | None = None
    generation: int = 0
    pid: int | None = None
    protocol_version: str | None = None
    stderr_tail: str = ""
    resources: tuple[Resource, ...] = ()
    templates: tuple[ResourceTemplate, ...] = ()
    prompts: tuple[Prompt, ...] = ()
    resources_state: ListState = "none"
    prompts_state: ListState = "none"
    resources_error: str | None = None
    prompts_error: str | None = None
    info: ServerInfo | None = None
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
        native_count, budget, wanted, trimmed: the figures behind the warning: native tools, the cap in force (the lower one of
            the budget's and the profile's; None = none), native and MCP tools that would be sent without it, and how many of
            those were dropped.
        budget_asked, limit: the cap that the budget asks for, and the number of tools that the profile takes; None = none.
        token_budget, tokens: the budget's cap on tokens, and the tokens of all tools that would be sent without a budget; None
            when there is no such cap.
        cut_by: which cap dropped tools; None when none did.
    """

    servers: tuple[ServerState, ...] = ()
    config_error: str | None = None
    config_warnings: tuple[str, ...] = ()
    profile: str = "portable"
    native_count: int = 0
    budget: int | None = None
    wanted: int = 0
    trimmed: int = 0
    budget_asked: int | None = None
    limit: int | None = None
    token_budget: int | None = None
    tokens: int | None = None
    cut_by: Literal["tools", "tokens"] | None = None
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
        """Whether the budget is exceeded: more tools, or tokens, are wanted on the wire than it allows."""
        return self._too_many() or self._too_long()

    def _too_many(self) -> bool:
        return self.budget is not None and self.wanted > self.budget

    def _too_long(self) -> bool:
        return self.token_budget is not None and self.tokens is not None and self.tokens > self.token_budget

    def trimmed_count(self) -> int:
        """How many MCP tools the budget dropped."""
        return self.trimmed

    def budget_warning(self) -> str | None:
        """The warning for a person, or None when nothing is over the budget."""
        if not self.over_budget():
            return None
        what = f"{self.wanted} tools over the budget of {self.budget}"
        if self._too_long() and (self.cut_by == "tokens" or not self._too_many()):
            what = f"{self.tokens} tokens of tools over the budget of {self.token_budget}"
        return f"{what} — {self.trimmed} MCP tools were dropped from this session; disable some to make room"

    def largest(self, count: int = 3) -> tuple[tuple[str, int], ...]:
        """The servers that want most tools on the wire, with how many: at most ``count``, the largest first."""
        wants = [(server.name, sum(tool.verdict in _WANTED for tool in server.tools)) for server in self.servers]
        return tuple(sorted((each for each in wants if each[1]), key=lambda each: -each[1])[:count])

    def budget_details(self) -> str | None:
        """A second line to `budget_warning`: the largest servers, huge names cut; None without a warning or a server."""
        largest = self.largest() if self.over_budget() else ()
        return f"mostly from {', '.join(f'{label(name)} ({count})' for name, count in largest)}" if largest else None

    def limit_warning(self) -> str | None:
        """The warning that the number of tools the profile takes is near, or was to be exceeded; None: neither.

        Said of 90 % of it and more, and of a budget above it; one line.
        """
        if self.limit is None:
            return None
        takes = f"the {self.limit} tools that profile {quoted(self.profile)} takes"
        if self.native_count > self.limit:
            return f"{self.native_count} native tools are more than {takes}: it will refuse every request"
        said = []
        if self.budget_asked is not None and self.budget_asked > self.limit:
            said.append(f"the budget of {self.budget_asked} is above {takes}: {self.limit} are sent at most")
        sent = self.wanted - self.trimmed
        if 10 * sent >= 9 * self.limit and sent:
            said.append(f"{sent} of {takes}: {self.limit - sent or 'no'} more fit")
        return "; ".join(said) or None


def _nowhere(server: str, bare: str | None) -> int | None:
    return None


@frozen
class Snapshot:
    """The one value all readers read. Deeply immutable.

    Args:
        version: only grows.
        config_rev: the revision of the config it was projected from.
        model: every server and tool, with verdicts.
        catalog: what is sent to the provider.
        lines: of a server, and a tool that the config excludes, the 1-based line of the file that says so, or None. Two
            snapshots that differ in it alone are equal.
    """

    version: int
    config_rev: int
    model: PluginModel
    catalog: Catalog
    lines: Callable[[str, str | None], int | None] = field(default=_nowhere, eq=False, repr=False)


@frozen
class Why:
    """Why a tool is, or is not, on the wire: a value whose ``str`` is a sentence.

    What follows the sentence says the same in parts, for programs; each is None where it does not apply.

    Args:
        server, bare: the tool asked about.
        verdict: as in ``ToolState``, or ``unknown``.
        sentence: the answer in words, on one line and without control characters.
        reason: what of it says why, and what can be done; None when the tool is on the wire.
        wire_name: the name it has, or would have, on the wire.
        mended: what is sent otherwise than advertised, one line each.
        file, line: where the config excludes it: the file, and the line there of the item (or of the list, or the entry).
        rank, wanted, budget: of a tool over the budget: which in the order of who is kept (None: it fits no cut, because
            alone it is too large), of how many, and the cap in force: on tools, or on tokens when that is what cut.
        rule, path: of a quarantined tool: the rule it breaks, and where (a JSON path into its definition).
        error: why its server is not connected, when that matters here.
        retry_in: seconds until its server is tried again.
        nearest: the name that was perhaps meant, of a server or a tool.
    """

    server: str
    bare: str
    verdict: Verdict | Literal["unknown"]
    sentence: str
    reason: str | None = field(default=None, kw_only=True)
    wire_name: str | None = field(default=None, kw_only=True)
    mended: tuple[str, ...] = field(default=(), kw_only=True)
    file: str | None = field(default=None, kw_only=True)
    line: int | None = field(default=None, kw_only=True)
    rank: int | None = field(default=None, kw_only=True)
    wanted: int | None = field(default=None, kw_only=True)
    budget: int | None = field(default=None, kw_only=True)
    rule: str | None = field(default=None, kw_only=True)
    path: str | None = field(default=None, kw_only=True)
    error: str | None = field(default=None, kw_only=True)
    retry_in: float | None = field(default=None, kw_only=True)
    nearest: str | None = field(default=None, kw_only=True)

    def __str__(self) -> str:
        return self.sentence
