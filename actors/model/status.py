"""What is known of a running server: its supervisor's word (`Lifecycle`) and its actor's word (`Report`), both values.

A generation is a number unique in the host, one for each incarnation of a server actor. A report is believed only while
the lifecycle is at the same generation.
"""

from __future__ import annotations

from typing import Any, Literal

from attrs import field, frozen

from .about import ServerInfo
from .frozen import FrozenDict, alike, freeze, freeze_all
from .offers import NOTHING_OFFERED, Offers

__all__ = ["Lifecycle", "ListState", "Report", "ServerStatus", "Stage", "ToolDef"]

Stage = Literal["starting", "running", "backing_off", "parked", "stopping"]
ListState = Literal["none", "current", "stale"]


@frozen(kw_only=True, eq=False)
class ToolDef:
    """One tool as its server advertised it, with its schema read-only.

    Args:
        bare: the server's own name of the tool.
        title, description: for people and for the model; None when not given.
        input_schema, output_schema: JSON Schema as advertised; by default an object of any members, and None.
        annotations: the protocol's ToolAnnotations object (``readOnlyHint`` …), or None.
        icons: the protocol's Icon objects.
        meta: what the server attached, or None.
    """

    bare: str = field(kw_only=False)
    title: str | None = None
    description: str | None = None
    input_schema: FrozenDict = field(default=FrozenDict(type="object"), converter=freeze)
    output_schema: FrozenDict | None = field(default=None, converter=freeze)
    annotations: FrozenDict | None = field(default=None, converter=freeze)
    icons: tuple[FrozenDict, ...] = field(default=(), converter=freeze_all)
    meta: FrozenDict | None = field(default=None, converter=freeze)
    # What `tool.prepare` made of it, by profile: judging and hashing a long list at once would hold up the rest.
    prepared_memo: dict[Any, Any] = field(init=False, factory=dict, repr=False)

    def __eq__(self, other: object) -> bool:
        """Whether it is the same definition, as JSON: what only Python takes for equal (``1 == True``) is another one."""
        if self is other:
            return True
        if not isinstance(other, ToolDef):
            return NotImplemented
        return (
            (self.bare, self.title, self.description) == (other.bare, other.title, other.description)
            and alike(self.input_schema, other.input_schema)
            and alike(self.output_schema, other.output_schema)
            and alike(self.annotations, other.annotations)
            and alike(self.icons, other.icons)
            and alike(self.meta, other.meta)
        )

    def __hash__(self) -> int:
        return hash((self.bare, self.title, self.description))


@frozen(kw_only=True)
class Lifecycle:
    """The supervisor's word on one server.

    Args:
        stage: where its actor is; ``starting`` until the actor runs, ``running`` afterwards (connected or not).
        generation: of the incarnation that runs, or of the last one that ran; 0 before the first.
        restarts: how often it was restarted since its history was last cleared.
        restarted_at: trio clock time of the last of these, or None.
        first: no death yet in this history: calls wait for it instead of failing.
        next_retry_at: trio clock time of the next attempt (``backing_off``, ``parked``), else None.
        asked: the server itself asked to be left alone until then.
        attempt: which of how many restarts is next, as (n, limit), or None.
        error: one line of the last death, or None.
        probation: a parked server is being tried again by itself; it counts as parked until it is ready.
    """

    stage: Stage
    generation: int = 0
    restarts: int = 0
    restarted_at: float | None = None
    first: bool = True
    next_retry_at: float | None = None
    asked: bool = False
    attempt: tuple[int, int] | None = None
    error: str | None = None
    probation: bool = False


@frozen(kw_only=True)
class Report:
    """A server actor's word on itself, of one generation.

    Args:
        generation: of the incarnation that says it.
        connected: the handshake is alive.
        ready: its first list is in; when it is not connected any more: it was, and has been lost.
        list_error: one line why the newest listing failed, or None.
        pid: of the server process, or None.
        protocol_version: as negotiated, or None.
        kind: how it was reached last, where that is something else than its entry says; else None.
        info: what it says of itself; None while it is not connected: the board keeps what it said last.
        needs_auth: it refused us for want of a login.
        error: one line why it is not connected, or None.
        futile: that will not pass by itself: the entry, or what it refers to, must be mended.
        stderr_tail: captured at death (secrets scrubbed), else empty.
    """

    generation: int
    connected: bool = False
    ready: bool = False
    list_error: str | None = None
    pid: int | None = None
    protocol_version: str | None = None
    kind: str | None = None
    info: ServerInfo | None = None
    needs_auth: bool = False
    error: str | None = None
    futile: bool = False
    stderr_tail: str = ""


@frozen(kw_only=True)
class ServerStatus:
    """The joined latest values of one server, as the projection reads them.

    Args:
        lifecycle: the supervisor's word, or None before it was handed over.
        report: the actor's word; None when none of the current generation was made.
        tools: the last good list of this run, in the order advertised; None when there has been none.
        tools_generation: the generation that reported `tools`; another one than the report's makes the list stale.
        offers: its resources and prompts.
    """

    lifecycle: Lifecycle | None = None
    report: Report | None = None
    tools: tuple[ToolDef, ...] | None = None
    tools_generation: int = 0
    offers: Offers = NOTHING_OFFERED
