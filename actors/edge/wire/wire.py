"""What every transport looks like from above: a dispatcher, and the knowledge of how it ended."""

from __future__ import annotations

import re
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, Protocol

import trio

if TYPE_CHECKING:
    from mcp.shared.dispatcher import Dispatcher
    from pydantic import ValidationError

__all__ = ["HttpLogin", "HttpRefused", "Launch", "LoginFor", "Refused", "Wire", "explain_validation", "one_line"]


class Launch(Protocol):
    """An entry with its variables expanded, ready to be run or connected to."""

    command: str | None
    args: tuple[str, ...]
    env: Mapping[str, str]
    cwd: str | None
    url: str | None
    headers: Mapping[str, str]
    secrets: set[str]


class HttpLogin(Protocol):
    """The login of a remote server: an ``httpx2.Auth``, and what must not be shown, now."""

    @property
    def auth(self) -> Any:
        """An ``httpx2.Auth``."""
        ...

    @property
    def secrets(self) -> Callable[[], set[str]]:
        """Tells what must not be shown, now."""
        ...


LoginFor = Callable[[str, Any], Awaitable[HttpLogin | None]]
"""Of a server's name and its launch, with all its headers: the login that its requests carry, or None."""


class HttpRefused(Exception):
    """A server refused the connection itself; the message is one line.

    Args:
        reason: that line.
        needs_auth: it wants a login.
        futile: the next attempt fails of the same, unless what we were given for it is mended.

    Attributes:
        retry_after: seconds it asks us to wait, or None.
    """

    def __init__(self, reason: str, needs_auth: bool, futile: bool = False) -> None:
        self.needs_auth = needs_auth
        self.futile = futile
        self.retry_after: float | None = None
        super().__init__(reason)


class Refused(Exception):
    """The handshake failed; the message is one line.

    Args:
        died_of_probe: the server read a ``server/discover``, and then ended.
        retry_after: seconds it asks us to wait, or None.
    """

    def __init__(self, reason: str, died_of_probe: bool = False, retry_after: float | None = None) -> None:
        self.died_of_probe = died_of_probe
        self.retry_after = retry_after
        super().__init__(reason)


class Wire:
    """One open transport. Subclasses fill in what theirs can tell.

    Args:
        scrub: takes a text and returns it without secrets.

    Attributes:
        pid: of the server process, or None.
        lost: set when it ended by itself; `reason` is then one line, scrubbed.
        needs_auth: it was refused for want of a login.
        renew: only the session has ended: a new connection may be made at once.
        once: as `Loss.once`.
        legacy_only: it can only be shaken hands with in the way of before 2026-07-28.
        offers: the version to shake hands with in that way, and in no other; None: whatever both know.
        not_streamable: its peer may be one of the older HTTP transport.
        plain: whether a request is only what JSON-RPC says of it: there are no headers to it.
        graceful: whether leaving it gives a process the time to end by itself.
        older: it goes over the older HTTP transport, which the entry did not say.
        peer: how and where the server is reached, as attributes of what is noted (`names.peer_of`).
        on_missed: called, never waiting, when something that the server announced may not have come.
        on_lost: called, never waiting, when `lost` was set.
    """

    pid: int | None = None

    def __init__(self, scrub: Callable[[str], str] = str) -> None:
        self.scrub = scrub
        self.lost = trio.Event()
        self.reason = ""
        self.needs_auth = False
        self.renew = False
        self.once = False
        self.legacy_only = False
        self.offers: str | None = None
        self.not_streamable = False
        self.graceful = False
        self.plain = False
        self.older = False
        self.peer: Mapping[str, str | int | float | bool] = {}
        self.on_missed: Callable[[], None] = lambda: None
        self.on_lost: Callable[[], None] = lambda: None

    def dispatcher(self, on_list_changed: Callable[[], None]) -> Dispatcher[Any]:
        """Make the dispatcher, once; not before the SDK is imported.

        Args:
            on_list_changed: for a dispatcher that can take tools/list_changed by itself.
        """
        raise TypeError(f"{type(self).__name__} is no complete wire")

    def lose(self, reason: str) -> None:
        """Record that it ended, and why; the first reason stays."""
        if not self.lost.is_set():
            self.reason = one_line(self.scrub(reason))
            self.lost.set()
            self.on_lost()

    @property
    def session_id(self) -> str | None:
        """The id that a server over HTTP gave this session, or None."""
        return None

    def idle_since(self) -> float | None:
        """The trio clock time since which nothing was heard, and nobody waits; None when it notices its end by itself."""
        return None

    def dispatcher_ended(self) -> None:
        """The dispatcher's ``run`` returned; a wire that has no better source of its end takes this for it."""
        self.lose("the server closed the connection")

    def stderr_tail(self) -> str:
        """The end of the process's stderr, scrubbed; empty where there is none."""
        return ""

    def last_words(self) -> str:
        """The line that may explain a failure, scrubbed, or empty."""
        return ""

    def read_something(self) -> bool:
        """Whether the server may have read the first of what was sent to it (True when that cannot be told)."""
        return True

    @property
    def restartable(self) -> bool:
        """Whether its peer may have died of what was sent, so that opening it anew makes sense."""
        return False


_SEQUENCE = re.compile(r"(?:\x1b\[|\x9b)[0-?]*[ -/]*[@-~]|\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)?")
"""What drives a terminal: a control sequence (colours, moves), or a command up to its end (titles, links)."""


def one_line(text: str, limit: int = 500) -> str:
    """Fold a text into one line of at most ``limit`` characters, without control characters or what they begin."""
    text = " ".join(_SEQUENCE.sub("", text).split())
    if not text.isprintable():
        text = "".join(char for char in text if char.isprintable())
    return text if len(text) <= limit else text[: limit - 1] + "…"


def explain_validation(error: ValidationError) -> str:
    """The first complaint of a validation, in one line: where, and what; without the value itself."""
    first = error.errors(include_url=False, include_context=False, include_input=False)[0]
    where = ".".join(str(part) for part in first["loc"])
    return one_line(f"{where}: {first['msg']}" if where else first["msg"], 200)
