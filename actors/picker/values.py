"""The values of the picker: rows, events, operations, dialogs, and the state. All frozen, all plain."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Literal

from attrs import Factory, field, frozen

from ..model.frozen import FrozenDict, freeze
from ..model.snapshot import Snapshot
from .row_values import Check, EmptyRow, HeaderRow, Identity, NoticeRow, Row, ServerRow, Tone, ToolRow
from .textline import TextLine

__all__ = [
    "Add",
    "AddForm",
    "Answer",
    "Check",
    "Closed",
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
    "Notices",
    "Operation",
    "Paste",
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
    "Shown",
    "Status",
    "TextLine",
    "Tick",
    "Tone",
    "ToolRow",
    "Trust",
    "TrustReview",
]


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
class Paste:
    """A text was pasted: into a line that is typed it goes at once; anywhere else it is no keys."""

    text: str


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
class Closed:
    """The host has closed: what was under way is not heard of any more, and nothing else can be asked for."""


@frozen
class Resized:
    """How much there is room for: to be told before what is drawn by it.

    Args:
        rows: lines that the list shows, or the open dialog, for page up and page down.
        columns: of the screen: `dialog_lines` are wrapped to it; None: they are not wrapped.
    """

    rows: int
    columns: int | None = None


@frozen
class Shown:
    """Lines of the open dialog have been on the screen. A review is approved when all of its lines have been.

    Args:
        first, last: those of `dialog_lines` from one on up to, and without, another.
    """

    first: int
    last: int


Event = Key | Paste | News | Tick | Done | Failed | Answer | Resized | Closed | Shown


# What is the person's own.


@frozen
class Status:
    """The line at the bottom.

    Args:
        text: what it says.
        kind: ``info``, ``ask`` (press a key again), or ``error``.
        since: when it was said, on the clock of `Tick`.
        of: what the operation was on that it is the error of, or None.
        errors: of errors that came close together, what each says; else empty.
        under: the error that a question stands in front of, or None.
    """

    text: str
    kind: Literal["info", "ask", "error"] = "info"
    since: float = 0.0
    of: Identity | None = field(default=None, eq=False)
    errors: tuple[str, ...] = ()
    under: Status | None = None


@frozen
class Notices:
    """All warnings and errors, whole: the screen may have no room for them. ``top`` is the first line shown."""

    top: int = 0


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
        top: the first line shown; None follows the end. While it is one, ``lines`` stay as they are, or the text would move
            under the eyes of who reads it.
        newer: what was read since, while ``lines`` stay; or None.
    """

    server: str
    lines: tuple[str, ...] | None = None
    error: str | None = None
    top: int | None = None
    newer: tuple[str, ...] | None = None


@frozen
class TrustReview:
    """What a server would run, to be approved (``y``) or not (any way out).

    Args:
        server: which.
        review: None until it is there: nothing can be approved before.
        error: why it cannot be had, or None.
        top: the first line shown.
        seen: which places of the text (`wrap.Wrapped`) have been on the screen: it can be approved when all have.
    """

    server: str
    review: Review | None = None
    error: str | None = None
    top: int = 0
    seen: tuple[tuple[int, int], ...] = ()


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


Dialog = Help | Notices | Details | LogTail | TrustReview | AddForm
