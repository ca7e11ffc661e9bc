"""The wire of a server over HTTP: how it was lost, and when it was last heard."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Protocol

import trio

from ..wire import Wire
from .meaning import Meaning, read_status

if TYPE_CHECKING:
    import httpx2
    from mcp.shared.dispatcher import Dispatcher

    from .conversation import Conversation

__all__ = ["LOGIN", "MakeConversation", "RemoteWire"]

LOGIN = "playbill.login"
"""In the extensions of a response that refuses: why there is no login, in one line."""


_NEED_LOGIN = frozenset({"tools/list", "tools/call"})
_TO_BE_READY = frozenset({"initialize", "server/discover", "tools/list"})
"""Without a result of these a server is of no use: being refused one of them is being refused the connection."""


class MakeConversation(Protocol):
    """Makes the dispatcher of a wire."""

    def __call__(self, on_list_changed: Callable[[], None]) -> Conversation: ...


class RemoteWire(Wire):
    """As `Wire`; its dispatcher is made once, by `make`.

    Args:
        scrub: takes a text and returns it without secrets.
        renews_login: the next connection has another login than this one.

    Attributes:
        make: set before the dispatcher is asked for.
    """

    def __init__(self, scrub: Callable[[str], str], *, renews_login: bool = False) -> None:
        super().__init__(scrub)
        self._renews_login = renews_login
        self.make: MakeConversation | None = None
        self._conversation: Conversation | None = None

    def dispatcher(self, on_list_changed: Callable[[], None]) -> Dispatcher[Any]:
        """As `Wire.dispatcher`."""
        assert self.make is not None
        self._conversation = self.make(on_list_changed)
        return self._conversation

    def dispatcher_ended(self) -> None:
        """Nothing: it ends when the connection was lost, which is known better, or when we close it."""

    @property
    def session_id(self) -> str | None:
        """As `Wire.session_id`."""
        return None if self._conversation is None else self._conversation.session_id

    def idle_since(self) -> float | None:
        """As `Wire.idle_since`."""
        return trio.current_time() if self._conversation is None else self._conversation.silent_since

    @property
    def worked(self) -> bool:
        """Whether the login was good for what needs one: a list or a call had a result. Some shake hands with anybody."""
        return self._conversation is not None and not self._conversation.worked.isdisjoint(_NEED_LOGIN)

    def lose(self, reason: str, *, renew: bool = False, once: bool = False, needs_auth: bool = False) -> None:
        """As `Wire.lose`, and settle all that is pending.

        Args:
            reason: why.
            renew: only the session has ended; a new connection may be made at once.
            once: as `Loss.once`.
            needs_auth: it wants a login.
        """
        if not self.lost.is_set():
            self.renew, self.once, self.needs_auth = renew, once, needs_auth
        super().lose(reason)
        if self._conversation is not None:
            self._conversation.shut()

    def refuse(self, response: httpx2.Response, method: str = "") -> Meaning:
        """Read a status that is no success; the connection is lost when it wants a login.

        Args:
            response: its body may be read already.
            method: that was refused, or ``GET``; "" for what has no result, which is then judged as a call is.
        """
        meaning = read_status(response.status_code, response.headers, time.time())
        worked = self.worked
        if meaning.wants_login(handshake=not worked and method in _TO_BE_READY):
            # One that never worked is wrong. One that worked has expired, if another can be had; but where it worked for
            # something else only, that may have needed no login: then another one is tried once.
            same = self._conversation is not None and (method or "tools/call") in self._conversation.worked
            renew = worked and self._renews_login
            why = response.extensions.get(LOGIN)
            reason = f"{meaning}: {why}" if why else str(meaning)
            self.lose(reason, needs_auth=not renew, renew=renew, once=renew and not same)
        return meaning
