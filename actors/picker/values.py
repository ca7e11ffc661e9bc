"""The values of the picker: rows, events, operations, dialogs, and the state. All frozen, all plain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import Factory, field, frozen

from ..model.frozen import FrozenDict, freeze
from ..model.snapshot import Phase, Snapshot, Verdict
from .textline import TextLine

__all__ = [
    "Add",
    "AddForm",
    "Answer",
    "Check",
    "Details",
    "Dialog",
    "Done",
    "EmptyRow",
    "Event",
    "Failed",
    "FetchLog",
    "FetchReview",
    "HeaderRow",
    "Help",
    "Identity",
    "Key",
    "LogTail",
    "News",
    "NoticeRow",
    "Operation",
    "Pin",
    "Quit",
    "Reload",
    "Remove",
    "Resized",
    "Restart",
    "Review",
    "Revive",
    "Row",
    "ServerRow",
    "SetServer",
    "SetTool",
    "Status",
    "TextLine",
    "Tick",
    "Tone",
    "ToolRow",
    "Trust",
    "TrustReview",
]

Identity = tuple[str, ...]
"""What a row is of, whatever else changes: ``("header",)``, ``("config-error",)``, ``("warning", what)``, ``("server", name)``,
``("tool", server, bare)``, ``("empty", server)``, ``("no-servers",)``, ``("no-match",)``. Names in it are raw."""

Check = Literal["on", "off", "pending-on", "pending-off"]
"""A checkbox: what the config says, or the last wish while it is under way."""

Tone = Literal["good", "busy", "ask", "bad", "off"]
"""How it is with a server, for a colour: well, under way, waiting for a person, in trouble, not meant to run."""


# Rows.


@frozen(kw_only=True)
class HeaderRow:
    """The line above everything: how many there are of what.

    Args:
        identity: ``("header",)``.
        servers, ready: configured servers, and those of them that are ready.
        tools, on_wire: MCP tools known, and those of them that are on the wire.
        native: native tools, which always ship.
        budget: the cap on tools in force, or None.
        profile: what the catalog is made for.
        busy: operations under way.
        parts: the same in words, the most important first; a narrow screen shows the first ones.
    """

    identity: Identity = ("header",)
    servers: int
    ready: int
    tools: int
    on_wire: int
    native: int
    budget: int | None
    profile: str
    busy: int
    parts: tuple[str, ...]


@frozen(kw_only=True)
class NoticeRow:
    """A warning, or an error of the config.

    Args:
        identity: ``("config-error",)``, ``("warning", "budget")``, ``("warning", "limit")``, ``("warning", "config", n)``.
        kind: ``error`` or ``warning``.
        text: what it says.
        more: a second line, or None.
    """

    identity: Identity
    kind: Literal["error", "warning"]
    text: str
    more: str | None = None


@frozen(kw_only=True)
class ServerRow:
    """The head of a server's section.

    Args:
        identity: ``("server", name)``.
        name: as it can be shown; the raw one is in the identity.
        phase: as in the model; also the name of the glyph.
        tone: for a colour.
        check: whether it is meant to run.
        state: how it is in few words: ``ready``, ``retry in 12 s (4th of 5)``, ``parked``, ``needs login``, …
        count: ``X of Y tools on the wire``, ``no tools``; None while it has not listed.
        error: why it is not connected, or why its newest listing failed; or None.
        source: the file that its entry is from, or None.
        pending: what is under way with it (``removing``, ``restarting``, …), or None.
    """

    identity: Identity
    name: str
    phase: Phase
    tone: Tone
    check: Check
    state: str
    count: str | None
    error: str | None
    source: str | None
    pending: str | None


@frozen(kw_only=True)
class ToolRow:
    """One tool.

    Args:
        identity: ``("tool", server, bare)``.
        name: the bare name, as it can be shown.
        title: as its server titles it; None when it gives none, or the name again.
        description: the first line of it, or the empty string.
        check: whether the config's lists let it through.
        verdict: as in the model.
        label: the verdict in one or two words, for a narrow column: ``on the wire``, ``excluded``, ``over budget``, …
        words: the verdict in the words of `why`, less what the row says anyhow.
        pinned: the budget trims it last.
        pending: operations on it that are under way.
    """

    identity: Identity
    name: str
    title: str | None
    description: str
    check: Check
    verdict: Verdict
    label: str
    words: str
    pinned: bool
    pending: int


@frozen(kw_only=True)
class EmptyRow:
    """Where there would be rows: a server without tools, or that has not listed yet; no servers; nothing that matches.

    Args:
        identity: ``("empty", server)``, ``("no-servers",)`` or ``("no-match",)``.
        text: which it is.
    """

    identity: Identity
    text: str


Row = HeaderRow | NoticeRow | ServerRow | ToolRow | EmptyRow


# Operations: what the view asks the host for. Each is answered by one event of the same id.


@frozen
class SetTool:
    """`Host.tool_set_enabled`. Those of one tool are done in the order given, so that the last wish wins."""

    id: int
    server: str
    bare: str
    on: bool


@frozen
class SetServer:
    """`Host.server_set_enabled`; in order, as `SetTool`."""

    id: int
    server: str
    on: bool


@frozen
class Pin:
    """`Host.pin`; in order, as `SetTool`."""

    id: int
    server: str
    bare: str
    on: bool


@frozen
class Add:
    """`Host.plugin_add`: a command with arguments and variables, or a URL."""

    id: int
    server: str
    command: str | None = None
    args: tuple[str, ...] = ()
    env: Mapping[str, str] = field(factory=FrozenDict, converter=freeze)
    url: str | None = None


@frozen
class Remove:
    """`Host.plugin_remove`."""

    id: int
    server: str


@frozen
class Reload:
    """`Host.reload`."""

    id: int


@frozen
class Revive:
    """`Host.revive`."""

    id: int
    server: str


@frozen
class Restart:
    """`Host.restart`."""

    id: int
    server: str


@frozen
class Trust:
    """`Host.trust`, of what was shown and nothing else: refused when the server's seal is not this one any more.

    Args:
        id, server: as everywhere.
        seal: of the `Review` that the person saw.
    """

    id: int
    server: str
    seal: str


@frozen
class FetchLog:
    """`Host.stderr_tail`; answered by ``Answer(id, text)``."""

    id: int
    server: str


@frozen
class FetchReview:
    """What a server would run, for a person to review; answered by ``Answer(id, Review(…))``."""

    id: int
    server: str


@frozen
class Quit:
    """The picker is done. It is the last operation, and is not answered."""

    id: int


Operation = SetTool | SetServer | Pin | Add | Remove | Reload | Revive | Restart | Trust | FetchLog | FetchReview | Quit


# Events: what the view tells the reducer.


@frozen
class Review:
    """What a server would run.

    Args:
        lines: one thing a line, as `playbill trust` shows it.
        seal: a fingerprint of exactly that; an approval is of it.
    """

    lines: tuple[str, ...]
    seal: str


@frozen
class Key:
    """A key, by urwid's name for it: ``up``, ``page down``, ``enter``, ``esc``, ``tab``, ``ctrl u``, or what it types."""

    name: str


@frozen
class News:
    """A snapshot was published. An older one than the state's is ignored."""

    snapshot: Snapshot


@frozen
class Tick:
    """What time it is: trio's clock, in seconds."""

    now: float


@frozen
class Done:
    """An operation was done; the snapshot is one in which its effect is visible."""

    id: int
    snapshot: Snapshot


@frozen
class Failed:
    """An operation was refused, or came to nothing; the message is one line for a person (any string will do)."""

    id: int
    message: str


@frozen
class Answer:
    """What was fetched: text of a `FetchLog`, a `Review` of a `FetchReview`."""

    id: int
    payload: str | Review


@frozen
class Resized:
    """How many rows the list shows, for page up and page down."""

    rows: int


Event = Key | News | Tick | Done | Failed | Answer | Resized


# What is the person's own.


@frozen
class Status:
    """The line at the bottom.

    Args:
        text: what it says.
        kind: ``info``, ``ask`` (press a key again), or ``error``.
        since: when it was said, on the clock of `Tick`.
    """

    text: str
    kind: Literal["info", "ask", "error"] = "info"
    since: float = 0.0


@frozen
class Help:
    """The keys. ``top`` is the first line shown."""

    top: int = 0


@frozen
class Details:
    """All there is to say of a server or a tool. ``top`` is the first line shown."""

    identity: Identity
    top: int = 0


@frozen
class LogTail:
    """What a server wrote on stderr last.

    Args:
        server: of which.
        lines: None until it is there.
        error: why it cannot be had, or None.
        top: the first line shown; None follows the end.
    """

    server: str
    lines: tuple[str, ...] | None = None
    error: str | None = None
    top: int | None = None


@frozen
class TrustReview:
    """What a server would run, to be approved (``y`` or Enter) or not (any way out).

    Args:
        server: which.
        review: None until it is there: nothing can be approved before.
        error: why it cannot be had, or None.
        top: the first line shown.
    """

    server: str
    review: Review | None = None
    error: str | None = None
    top: int = 0


@frozen
class AddForm:
    """A server to be added.

    Args:
        name: its name.
        what: a command line (leading ``NAME=value`` are variables), or a URL.
        field: which of the two is being typed: 0 or 1.
        error: why it was refused, or None.
        sent: the id of the operation that adds it, while that is under way.
    """

    name: TextLine = Factory(TextLine)
    what: TextLine = Factory(TextLine)
    field: Literal[0, 1] = 0
    error: str | None = None
    sent: int | None = None


Dialog = Help | Details | LogTail | TrustReview | AddForm
