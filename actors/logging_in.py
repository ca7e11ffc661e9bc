"""Logging in and out at a server of a host: what `Host.login` and `Host.logout` do.

A login is kept first; then the server that waits for it connects anew by itself, in the same incarnation. One that was given up
is revived, one that is ready goes on with the new login at its next request.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from functools import partial
from typing import TYPE_CHECKING

import trio

from ..supervision import Cell, Supervisor
from .edge.auth.handlers import Handlers, OpenUrl, WaitForCallback
from .edge.auth.hub import LOGIN_SECONDS, Hub
from .given import check_names
from .line import Stop
from .model.config import ServerEntry
from .model.errors import HostClosed, LoginFailed
from .model.snapshot import Snapshot
from .operations import Operations

if TYPE_CHECKING:
    from .edge.auth.logins import Logins

__all__ = ["LoggingIn", "LoginDoor"]

NOTICE_SECONDS = 5.0
"""Within which a server that waits for a login has noticed that there is one; else it is restarted."""


class LoginDoor:
    """Where people come in.

    Args:
        logins: of the host; None: its connections are not ours, and have none.
        operations, pool, cell: of the host.
        drain: seconds that calls in flight may go on when a server is logged out of.
        closing: set when the host begins to close.
    """

    def __init__(
        self,
        logins: Hub | None,
        operations: Operations,
        pool: Supervisor,
        cell: Cell[Snapshot],
        drain: float,
        closing: trio.Event,
    ) -> None:
        self._logins = logins
        self._operations = operations
        self._pool = pool
        self._cell = cell
        self._drain = drain
        self._closing = closing

    async def log_in(self, name: str, handlers: Handlers, scopes: Iterable[str], seconds: float | None) -> Snapshot:
        """As `Host.login`."""
        if isinstance(scopes, str):
            raise TypeError(f"scopes are a list of strings, not the one string {scopes!r}")
        if handlers.redirect_uri is not None and handlers.wait_for_callback is None:
            raise ValueError("a redirect_uri of your own needs a wait_for_callback that answers for it")
        logins, entry = self._open(name)
        patience = LOGIN_SECONDS if seconds is None else seconds
        await self._while_open(partial(logins.log_in, entry, handlers, scopes=tuple(scopes), seconds=patience))
        if not entry.runnable:
            return self._cell.value
        if self._phase(name) == "needs_auth":
            with trio.move_on_after(NOTICE_SECONDS):
                try:
                    return await self._cell.wait(lambda _: self._phase(name) != "needs_auth")
                except trio.ClosedResourceError:
                    raise HostClosed from None
        return await self._operations.act("login", name, None, self._again)

    async def log_out(self, name: str) -> Snapshot:
        """As `Host.logout`."""
        logins, entry = self._open(name)
        await logins.log_out(entry)
        if not entry.runnable:
            return self._cell.value
        return await self._operations.act("logout", name, None, self._anew)

    async def _while_open(self, work: Callable[[], Awaitable[object]]) -> None:
        """Do it; a host that closes ends it, as what comes of it is of no use to it: no port is left open for a person."""
        failed: Exception | None = None
        done = False
        async with trio.open_nursery() as nursery:

            async def closes() -> None:
                await self._closing.wait()
                nursery.cancel_scope.cancel()

            nursery.start_soon(closes)
            try:
                await work()
                done = True
            except Exception as error:
                failed = error  # raised below, not in a group
            nursery.cancel_scope.cancel()
        if failed is not None:
            raise failed
        if not done:
            raise HostClosed

    def _open(self, name: str) -> tuple[Logins, ServerEntry]:
        if self._operations.closing:
            raise HostClosed
        entry = self._operations.entry(name)
        if self._logins is None:
            raise LoginFailed(name, "the connections of this host were given to it, and have logins of their own")
        return self._logins.logins(), entry

    def _phase(self, name: str) -> str | None:
        state = self._cell.value.model.server(name)
        return None if state is None else state.phase

    def _again(self, name: str) -> None:
        if self._phase(name) == "needs_auth":
            self._anew(name)
        elif self._phase(name) != "ready":
            self._pool.revive(name)

    def _anew(self, name: str) -> None:
        self._pool.restart_soon(name, stop_reason=Stop("its login has changed", self._drain))


class LoggingIn:
    """What a host can do about logins."""

    _door: LoginDoor

    async def login(
        self,
        name: str,
        *,
        open_url: OpenUrl,
        wait_for_callback: WaitForCallback | None = None,
        redirect_uri: str | None = None,
        scopes: Iterable[str] = (),
        timeout: float | None = None,
    ) -> Snapshot:
        """Log a person in to a remote server (OAuth), and connect to it anew at once. See docs/login.md.

        Args:
            name: as configured.
            open_url: is given, sync or async, the URL that the person's browser is to go to.
            wait_for_callback: gives, sync or async, the URL that the browser was redirected to; None: only a port of 127.0.0.1
                takes that.
            redirect_uri: where to have it redirected, instead of to that port.
            scopes: what to ask for instead of what the server says it takes.
            timeout: seconds for the person; None: five minutes.

        Raises:
            UnknownServer, LoginFailed: no such server is configured; there is no login to be had, or nobody logged in.
            HostClosed: the host closes meanwhile.
            Exception: what one of the functions raises; ValueError: a ``redirect_uri`` without a ``wait_for_callback``.
        """
        check_names(name)
        return await self._door.log_in(name, Handlers(open_url, wait_for_callback, redirect_uri), scopes, timeout)

    async def logout(self, name: str) -> Snapshot:
        """Forget the login of a remote server, and have it revoked where that can be; the server is connected to anew.

        Raises:
            UnknownServer, LoginFailed: no such server is configured; it cannot be forgotten, or there can be none.
        """
        check_names(name)
        return await self._door.log_out(name)
