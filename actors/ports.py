"""What the cast needs of the outside world, as protocols: the edge fulfils them, the house joins the two.

The cast (server, coordinator, projector) never imports the edge; a test or a fault kit may hand it anything of this shape.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Any, Protocol

from attrs import frozen

from .beyond import (
    Client,
    ClientRefused,
    Expired,
    Expiry,
    Library,
    Patience,
    Progress,
    PromptListing,
    Question,
    RequestFailed,
    ResourceListing,
    Shelf,
)
from .model.config import Config, ServerEntry
from .model.edits import Edit
from .model.errors import PlaybillError
from .model.status import ToolDef

__all__ = [
    "OUTPUT_INVALID",
    "RESTART_SPACING",
    "RETRY_AFTER",
    "Client",
    "ClientRefused",
    "Connect",
    "Connection",
    "ConnectionFailed",
    "ConnectionLost",
    "Edited",
    "Era",
    "EraMemory",
    "Expired",
    "Expiry",
    "Library",
    "ListFailed",
    "Listing",
    "LoginChanged",
    "Loss",
    "NoSites",
    "Opening",
    "Patience",
    "Progress",
    "PromptListing",
    "Question",
    "RequestFailed",
    "ResourceListing",
    "Shelf",
    "Sites",
    "Store",
]

Era = str
"""``modern`` (server/discover, 2026-07-28 on) or ``legacy`` (initialize, up to 2025-11-25)."""

EraMemory = dict[str, Era]
"""Server name → the era it was last met in; owned by the host, so that it outlives every incarnation."""

RETRY_AFTER = "playbill/retryAfter"
"""In ``_meta`` of the result of a call that the server refused for now: the seconds after which it may be tried again."""

RESTART_SPACING = 0.05
"""Seconds between two restarts of servers: with a new process each, about as long as one of two cores is busy with a start."""

OUTPUT_INVALID = "playbill/outputInvalid"
"""In ``_meta`` of the result of a call: why its structured content is not what the tool's output schema says, in one line."""


class ConnectionFailed(Exception):
    """A connection could not be made.

    Args:
        reason: one line, with the telling stderr line when there is one; no expanded secret in it.
        stderr_tail: what the process wrote on stderr, scrubbed, or empty.
        needs_auth: it was refused for want of a login.
        retry_after: seconds the server asks us to wait before the next attempt, or None.
        futile: another attempt is of no use until the entry, or what it refers to (a command, a folder, a variable), is mended.
    """

    def __init__(
        self,
        reason: str,
        *,
        stderr_tail: str = "",
        needs_auth: bool = False,
        retry_after: float | None = None,
        futile: bool = False,
    ) -> None:
        self.reason = reason
        self.stderr_tail = stderr_tail
        self.needs_auth = needs_auth
        self.retry_after = retry_after
        self.futile = futile
        super().__init__(reason)


class ConnectionLost(Exception):
    """The connection ended (or was closed by us) before the answer came; ``reason`` is one line."""

    def __init__(self, reason: str) -> None:
        self.reason = reason
        super().__init__(reason)


class ListFailed(Exception):
    """A listing failed though the connection lives.

    Args:
        reason: one line.
        retry_after: seconds the server asks us to wait before the next attempt, or None.
        code: of JSON-RPC, when it said one.
    """

    def __init__(self, reason: str, *, retry_after: float | None = None, code: int | None = None) -> None:
        self.reason = reason
        self.retry_after = retry_after
        self.code = code
        super().__init__(reason)


@frozen
class Loss:
    """How a connection was lost.

    Args:
        reason: one line.
        needs_auth: the server wants a login.
        renew: only the session has ended; a new connection may be made at once.
        once: with ``renew``: it wants a login, and another one may help; if the one before was lost so too, none will.
    """

    reason: str
    needs_auth: bool = False
    renew: bool = False
    once: bool = False


@frozen
class Listing:
    """A complete tool list.

    Args:
        tools: in the order advertised, each bare name once.
        problems: one line each, of tools or pages that had to be left out.
    """

    tools: tuple[ToolDef, ...]
    problems: tuple[str, ...] = ()


class Connection(Protocol):
    """One live MCP connection: the handshake is done."""

    @property
    def pid(self) -> int | None:
        """The server process, or None when there is none."""
        ...

    @property
    def protocol_version(self) -> str | None:
        """As negotiated."""
        ...

    @property
    def kind(self) -> str | None:
        """How the server is reached, where that is something else than its entry says (``sse``); else None."""
        ...

    # It may have a `library` (`Library`), an `info` (`ServerInfo`), and ``async roots_changed()`` besides; the host looks. And
    # ``async call_directly(bare, arguments, expiry, meta)``: `call_tool` by an `Expiry` instead of the caller's scope,
    # for less; it raises `Expired` as well.

    async def list_tools(self) -> Listing:
        """All pages of the tool list.

        Raises:
            ConnectionLost: the connection ended first.
            ListFailed: the server answered with an error or nonsense.
        """
        ...

    async def call_tool(
        self,
        bare: str,
        arguments: Mapping[str, Any],
        progress: Progress | None,
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> Any:
        """Call a tool in the caller's own task, which also owns the deadline; cancelling it tells the server.

        Args:
            bare: the server's own name of the tool.
            arguments: as JSON values.
            progress: awaited for each progress notification, or None.
            meta: for the request's ``_meta``; passed only when the caller gave one.

        Returns:
            An ``mcp`` ``CallToolResult``; a JSON-RPC error answer is one with ``is_error``.

        Raises:
            ConnectionLost: the connection ended before the answer.
        """
        ...

    async def wait_lost(self) -> str:
        """Wait until the connection is lost by itself; returns why, in one line."""
        ...

    @property
    def loss(self) -> Loss | None:
        """How it was lost by itself; None while it was not. Never waits."""
        ...

    def stderr_tail(self) -> str:
        """What the process wrote on stderr last (bounded, scrubbed); empty when there is none. Never waits."""
        ...


class Opening(Protocol):
    """A connection to be entered and left in one task; it owns the process behind it."""

    async def __aenter__(self) -> Connection: ...
    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> bool | None: ...

    def stderr_tail(self) -> str:
        """As `Connection.stderr_tail`, also while it is being opened and after it could not be. Never waits."""
        ...


class Connect(Protocol):
    """Opens connections."""

    def __call__(
        self, entry: ServerEntry, *, eras: EraMemory, on_list_changed: Callable[[], None], client: Client | None = None
    ) -> Opening:
        """Expand, spawn, shake hands.

        Args:
            entry: what to run, unexpanded.
            eras: read and updated under ``entry.name``.
            on_list_changed: called, never waiting, for each tools/list_changed.
            client: what the server may ask of us; None for nothing.

        Entering raises `ConnectionFailed`; it has no time limit of its own: the caller's scope is the limit. Leaving closes
        the connection and ends the whole process group, by its own deadlines, even when cancelled.
        """
        ...


LoginChanged = Callable[[str], Awaitable[None]]
"""Of a server's name: returns once there is another login for it than the one it refused; never where none can be had."""


class Sites(Protocol):
    """Named places in the core actors at which a fault kit may strike; a host that is not under test has none."""

    async def hit(self, site: str, who: str) -> None:
        """Called by an actor that comes to a site.

        Args:
            site: ``coordinator``, ``projector`` or ``mailbox``.
            who: the actor.

        Raises:
            Exception: the actor is to crash here.
        """
        ...


class NoSites:
    """Sites at which nothing ever happens."""

    async def hit(self, site: str, who: str) -> None:
        """Nothing happens; not a checkpoint."""


@frozen
class Edited:
    """What a `Store` did.

    Args:
        config: the configuration as it now is in the store (also when nothing was written).
        refused: per edit, in order: None when it holds now, else why it was refused.
        wrote: whether anything was written.
    """

    config: Config
    refused: tuple[PlaybillError | None, ...]
    wrote: bool


class Store(Protocol):
    """Where the configuration lives. Synchronous: a file is called in a worker thread, a value in memory is not."""

    def load(self, previous: Config | None = None) -> Config:
        """Read the configuration anew; entries equal to those of ``previous`` are the same objects.

        Raises:
            ConfigError: it cannot be read. When only one of several files cannot be, `Config.error` says so instead.
        """
        ...

    def put(self, config: Config) -> None:
        """Replace the whole configuration by a value.

        Raises:
            ConfigError: this store is a file, which is only ever edited.
        """
        ...

    def approve(self, name: str, shown: ServerEntry | None) -> bool:
        """Let an entry be started from now on, if it reads as it was shown; False when there is no such entry.

        Args:
            name: the entry's.
            shown: the entry as whoever approves it was shown it; None when no such server was.

        Raises:
            ConfigError: the configuration cannot be read, or the entry would run something else now.
            WriteFailed: the approval cannot be kept.
        """
        ...

    def fingerprint(self) -> str | None:
        """A hash of the text as it now is, or None when there is none (in memory, or it cannot be read). Never raises."""
        ...

    def answered(self) -> str | None:
        """The `fingerprint` of the text that the last `load` or `edit` answered from, or refused.

        None when there was none. Never raises. The text may be another one by now.
        """
        ...

    def watched(self) -> Collection[Path]:
        """The files whose change can change what `load` returns; none for a value in memory. Never raises."""
        ...

    def edit(self, edits: Sequence[Edit], previous: Config | None = None) -> Edited:
        """Re-read, apply all edits in order, and write at most once.

        Raises:
            ConfigError: it cannot be read; nothing is written.
            WriteFailed: it cannot be written; it is as before.
        """
        ...
