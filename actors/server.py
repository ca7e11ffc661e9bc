"""The server actor: one incarnation of one server, from spawn to the last byte.

Theory of operation
    The body connects, lists, opens its `Line` and then waits for whichever comes first: the connection is lost (it
    raises, and the supervisor decides) or it is asked to stop (it drains and returns). The connection is entered and left
    in the body's own task; what it reports goes to the board, stamped with its generation.

    | state      | what it waits for            | on success | on loss or timeout   | on a stop                  |
    |------------|------------------------------|------------|----------------------|----------------------------|
    | connecting | spawn, handshake             | listing    | raise                | cancel: no grace           |
    | listing    | the first complete list      | ready      | raise                | cancel: no grace           |
    | ready      | loss, list_changed, stop     | –          | raise                | close line, drain, return  |
    | needs_auth | another login, stop          | connecting | –                    | return                     |

    A loss that only ends the session (a server over HTTP that was restarted) leads to connecting again in the same
    incarnation, at once, without the supervisor; a loss for want of a login to needs_auth. If it may be mended by another login
    that is at hand, it is the first of these; but the second if that was tried for the loss before, in vain.

    A list_changed is answered by one listing after the announcements have settled for 50 ms, or 1 s after the first. A
    listing that fails keeps the last good list and is tried again with growing pauses; so is the next one after a listing
    that brought nothing new.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextvars import copy_context
from typing import TypeVar

import trio

from ..supervision import Context
from .board import Board
from .line import Line, Stop
from .model.config import ServerEntry
from .model.profile import Profile
from .model.settings import ServerSettings
from .model.status import Report, ToolDef
from .model.tool import prepare
from .offering import Offering
from .ports import (
    Client,
    Connect,
    Connection,
    ConnectionFailed,
    ConnectionLost,
    EraMemory,
    Library,
    ListFailed,
    Listing,
    LoginChanged,
    Loss,
)
from .telemetry.connects import Connects, Incarnate

_E = TypeVar("_E", bound=BaseException)

__all__ = ["ServerActor", "ServerLost", "ServerSettings"]

_Kinds = dict[tuple[str | None, str | None], str | None]
"""How a server was reached last, by URL and type of its entry; one at most."""

JUDGED_AT_ONCE = 25
"""Tools of a list that are judged before others may run."""

_CLOSED = Stop("the host is closing", 0.0)


class ServerLost(Exception):
    """The connection was lost by itself; ``reason`` is one line.

    Args:
        loss: how.
    """

    def __init__(self, loss: Loss) -> None:
        self.loss = loss
        self.reason = loss.reason
        super().__init__(loss.reason)


class ServerActor:
    """The body of one server's child specification; each incarnation is one call of it.

    Args:
        entry: gives the entry to connect with, asked anew by each incarnation.
        connect: opens a connection.
        board: where reports and the line go.
        eras: which protocol era each server was last met in.
        settings: its times.
        profile: the host's, which its tools are judged for; and for those of living views.
        closing: set when the whole host closes: calls are then not waited for.
        client: makes what an incarnation of the server may ask of the embedder, from its name and generation; or None.
        logins: tells when somebody has logged in; None: only a restart tries again.
    """

    def __init__(
        self,
        entry: Callable[[], ServerEntry],
        *,
        connect: Connect,
        board: Board,
        eras: EraMemory,
        settings: ServerSettings,
        profile: Profile,
        closing: trio.Event,
        client: Callable[[str, int], Client] | None = None,
        logins: LoginChanged | None = None,
    ) -> None:
        self._client = client
        self._closing = closing
        self._logins = logins
        self._profile = profile
        self._entry = entry
        self._connect = connect
        self._board = board
        self._eras = eras
        self._settings = settings
        self._connects = Connects()
        self._kinds: _Kinds = {}

    async def __call__(self, ctx: Context) -> None:
        """Run one incarnation; a checkpoint. A session that ended is opened anew in the same one, and so after a login.

        Raises:
            ConnectionFailed: it could not connect, list, or do so in time.
            ServerLost: the connection was lost.
        """
        ctx.started()
        renewed_at, doubted = -math.inf, False
        while True:
            incarnation = _Incarnation(self._entry(), ctx, self._board, self._settings, self._profile, self._closing)
            incarnation.kinds = self._kinds
            if self._client is not None:
                incarnation.client = self._client(incarnation.entry.name, ctx.generation)
            try:
                with self._connects.incarnate(incarnation.entry.name, ctx.generation) as told:
                    await incarnation.run(self._connect, self._eras, told)
                return
            except ConnectionFailed as failed:
                incarnation.report(
                    error=failed.reason,
                    stderr_tail=failed.stderr_tail,
                    needs_auth=failed.needs_auth,
                    futile=failed.futile,
                )
                if not failed.needs_auth:
                    raise
            except ServerLost as lost:
                loss, now = lost.loss, trio.current_time()
                futile = loss.needs_auth or (loss.once and doubted)
                renews = loss.renew and not futile and not ctx.stopping.is_set()
                if renews and now - renewed_at >= self._settings.renew_pause:
                    # A server that was restarted has forgotten its sessions; that is no crash of what is there now.
                    renewed_at, doubted = now, loss.once
                    continue
                if not futile:
                    raise
                if not loss.needs_auth:  # else it was told
                    incarnation.report(error=loss.reason, needs_auth=True)
            finally:
                if incarnation.client is not None:
                    incarnation.client.close()
            # Trying again with the same login is futile and may lock an account: wait for another one, or for a restart.
            if not await self._logged_in(ctx):
                return

    async def _logged_in(self, ctx: Context) -> bool:
        """Wait for another login; False: for a stop."""
        if self._logins is None:
            await ctx.wait_stop()
            return False
        async with trio.open_nursery() as nursery:

            async def stop() -> None:
                await ctx.wait_stop()
                nursery.cancel_scope.cancel()

            nursery.start_soon(stop)
            await self._logins(self._entry().name)
            nursery.cancel_scope.cancel()
        return not ctx.stopping.is_set()


class _Incarnation:
    def __init__(
        self,
        entry: ServerEntry,
        ctx: Context,
        board: Board,
        settings: ServerSettings,
        profile: Profile,
        closing: trio.Event,
    ) -> None:
        self.closing = closing
        self.profile = profile
        self.entry = entry
        self.ctx = ctx
        self.board = board
        self.settings = settings
        self.changed = trio.Event()
        self.changed_at = -math.inf
        self.follow: Callable[[], None] | None = None
        self.line: Line | None = None
        self.client: Client | None = None
        self.kinds: _Kinds = {}

    def report(self, connection: Connection | None = None, *, listing: Listing | None = None, **said: object) -> None:
        reached = (self.entry.url, self.entry.type)
        if connection is not None:
            said |= {"connected": True, "pid": connection.pid, "protocol_version": connection.protocol_version}
            said |= {"info": getattr(connection, "info", None)}
            self.kinds.clear()
            self.kinds[reached] = connection.kind
        if listing is not None:
            said |= {"list_error": "; ".join(listing.problems) or None}
        self.board.report(
            self.entry.name,
            Report(generation=self.ctx.generation, kind=self.kinds.get(reached), **said),  # type: ignore[arg-type]
            None if listing is None else listing.tools,
        )

    def on_list_changed(self) -> None:
        self.changed_at = trio.current_time()
        self.changed.set()
        if self.follow is not None:
            self.follow()

    async def run(self, connect: Connect, eras: EraMemory, told: Incarnate) -> None:
        self.report()
        patience = self.entry.connect_timeout or self.settings.connect_timeout
        more = {} if self.client is None else {"client": self.client}
        opening = connect(self.entry, eras=eras, on_list_changed=self.on_list_changed, **more)
        connection: Connection | None = None
        failure: ConnectionFailed | ServerLost | None = None
        self.board.set_opening(self.entry.name, opening)
        with trio.CancelScope(deadline=trio.current_time() + patience) as limit:
            self.ctx.cancel_at_stop(limit)
            try:
                async with opening as connection:
                    self.report(connection)
                    listing = await self._first_list(connection)
                    limit.deadline = math.inf
                    self.ctx.cancel_at_stop(None)  # a stop is a matter for the line from here on
                    told.ready(len(listing.tools), connection.protocol_version)
                    await self._serve(connection, listing)
            except* ServerLost as lost:
                failure = _leaf(lost)
                self._tell(failure.loss, opening.stderr_tail())
            except* ConnectionFailed as failed:
                failure = _leaf(failed)
            finally:
                self.ctx.cancel_at_stop(None)
                self.board.set_opening(self.entry.name, None, opening)
        if failure is not None:
            raise failure
        if limit.cancelled_caught and not self.ctx.stopping.is_set():
            missing = "the handshake" if connection is None else "its tool list"
            tail = opening.stderr_tail()
            said = [line.strip() for line in tail.splitlines() if line.strip()]
            words = f"; it said: {''.join(filter(str.isprintable, said[-1]))[:200]}" if said else ""
            raise ConnectionFailed(
                f"no answer within {patience:g} s (it waited for {missing}){words}", stderr_tail=tail
            )

    async def _first_list(self, connection: Connection) -> Listing:
        try:
            return await self._judged(await connection.list_tools())
        except ListFailed as failed:
            tail = connection.stderr_tail()
            reason = f"tools/list: {failed.reason}"
            raise ConnectionFailed(reason, stderr_tail=tail, retry_after=failed.retry_after) from None
        except ConnectionLost as lost:
            # Said now, and again with its end: clearing away what is left of it may take seconds.
            tail, needs_auth = connection.stderr_tail(), connection.loss is not None and connection.loss.needs_auth
            self.report(error=lost.reason, stderr_tail=tail, needs_auth=needs_auth)
            raise ConnectionFailed(lost.reason, stderr_tail=tail, needs_auth=needs_auth) from None

    async def _judged(self, listing: Listing) -> Listing:
        """The listing, each tool judged already, for the host and for its views: the projection, which is one step, need not.

        One that is as it was before is the same object, also after a restart: it has been judged. A checkpoint if it is long.
        """
        judged = 0
        profiles = self.board.profiles(self.profile)
        known = {tool.bare: tool for tool in self.board.status(self.entry.name).tools or ()}
        tools = []
        for tool in listing.tools:
            was = known.get(tool.bare)
            tools.append(was if was is not None and (was is tool or was == tool) else tool)
            for profile in profiles:
                judged += 1
                if judged % JUDGED_AT_ONCE == 0:
                    await trio.lowlevel.checkpoint()
                prepare(self.entry.name, tools[-1], profile)
        return Listing(tuple(tools), listing.problems)

    async def _serve(self, connection: Connection, listing: Listing) -> None:
        line = self.line = Line(self.entry.name, self.ctx.generation, connection, self.client)
        self.report(connection, listing=listing, ready=True)
        self.board.open_line(line)
        self.ctx.healthy()
        try:
            async with trio.open_nursery() as nursery:
                context = copy_context()

                def follow() -> None:
                    # Only what changes is followed, and as if this task had started it: who announces it may be anybody.
                    if self.follow is not None:
                        self.follow = None
                        context.run(nursery.start_soon, self._follow_list, connection, listing.tools)

                self.follow = follow
                if self.changed.is_set():
                    follow()
                nursery.start_soon(self._follow_offers, connection, nursery)
                try:
                    with trio.CancelScope() as serving:
                        self.ctx.cancel_at_stop(serving)
                        await self._notice_loss(connection)
                finally:
                    stop = self.ctx.stop_reason if isinstance(self.ctx.stop_reason, Stop) else _CLOSED
                    if self.ctx.stopping.is_set():  # also when its grace is over already
                        line.close(stop.reason)
                self.board.close_line(line)
                nursery.start_soon(self._notice_loss, connection)
                nursery.start_soon(self._cut_drain, nursery.cancel_scope)
                await line.drain(stop.drain)
                nursery.cancel_scope.cancel()
        finally:
            self.follow = None
            self.board.close_line(line)

    async def _cut_drain(self, scope: trio.CancelScope) -> None:
        await self.closing.wait()
        scope.cancel()

    async def _notice_loss(self, connection: Connection) -> None:
        reason = await connection.wait_lost()
        # Now, and not when what is left of it has been cleared away: that may take seconds.
        loss = connection.loss or Loss(reason)
        self._tell(loss, connection.stderr_tail(), ready=True)
        raise ServerLost(loss)

    def _tell(self, loss: Loss, stderr_tail: str, *, ready: bool = False) -> None:
        if loss.renew:  # what ails it is mended at once, and calls may wait for that
            self.report(ready=ready)
        else:
            self.report(ready=ready, error=loss.reason, stderr_tail=stderr_tail, needs_auth=loss.needs_auth)

    async def _follow_list(self, connection: Connection, tools: tuple[ToolDef, ...]) -> None:
        settings = self.settings
        after_failure = settings.relist_pause
        wait = 0.0
        while True:
            await self.changed.wait()
            await self._settle()
            await trio.sleep(wait)
            # Cleared before the request: what is announced while the answer is under way is fetched again.
            self.changed = trio.Event()
            try:
                with trio.fail_after(settings.list_timeout):
                    listing = await self._judged(await connection.list_tools())
            except ConnectionLost:
                return
            except (ListFailed, trio.TooSlowError) as error:
                reason = getattr(error, "reason", f"no answer within {settings.list_timeout:g} s")
                self.report(connection, ready=True, list_error=f"tools/list: {reason}")
                after_failure = max(after_failure, getattr(error, "retry_after", None) or 0.0)
                wait, after_failure = after_failure, min(2 * after_failure, settings.relist_pause_max)
                self.changed.set()
                continue
            after_failure = settings.relist_pause
            # A server that announces a change whenever it is asked must not be asked for ever at full speed.
            wait = 0.0 if listing.tools != tools else min(max(2 * wait, settings.settle), settings.unchanged_pause_max)
            tools = listing.tools
            self.report(connection, listing=listing, ready=True)

    async def _follow_offers(self, connection: Connection, nursery: trio.Nursery) -> None:
        library: Library | None = getattr(connection, "library", None)
        if library is not None:
            offering = Offering(self.entry.name, self.ctx.generation, library, self.board, self.settings)
            await offering.run(nursery)

    async def _settle(self) -> None:
        latest = trio.current_time() + self.settings.settle_max
        # Not an event per announcement: 20,000 of them a second must cost 20 wake-ups, not 20,000.
        while (quiet := min(self.changed_at + self.settings.settle, latest)) > trio.current_time():  # noqa: ASYNC110
            await trio.sleep_until(quiet)


def _leaf(group: BaseExceptionGroup[_E]) -> _E:
    first = group.exceptions[0]
    return _leaf(first) if isinstance(first, BaseExceptionGroup) else first
