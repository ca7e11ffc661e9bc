"""One login in use: its token for each request, and the one renewal at a time that all requests wait for.

Theory of operation. A request asks for a token and, refused with it, for another one. Whoever needs a renewal first begins it;
it runs in a task of the hub, not of the request, so that no request that is cancelled, and no connection that ends, loses what
comes of it: a refresh token is often good for one use. It holds the login's lock from reading the file to having written it, so
of all processes one renews, and the others find what came of it (`store`).

    a flight ends with          then each that waited
    another token               goes on with it
    no login to be had          is answered with the server's refusal; the server needs a login
    nobody answering now        fails for now (`LoginUnavailable`); the login stays as it is
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable
from contextlib import AsyncExitStack
from typing import TYPE_CHECKING

import trio
from attrs import define, evolve, field

from ...model.oauth import OAuth
from .challenge import Challenge
from .loading import imported
from .record import Record, decide, union
from .refused import LoginRefused
from .store import LoginStore, StoreFailed

if TYPE_CHECKING:
    from .web import Web

__all__ = ["Keeper"]

_LOG = logging.getLogger("playbill.login")

RENEW_SECONDS = 90.0
POLL_SECONDS = 1.0
"""Between two looks whether another process has logged in."""

_SECRETS_KEPT = 16
_LONGEST_WANTED = 4096


@define(eq=False)
class _Flight:
    over: trio.Event = field(factory=trio.Event)
    failure: str | None = None
    refused: bool = False


class Keeper:
    """The login of one server, for all that use it in this host.

    Args:
        store: where it is kept.
        key: under which.
        server: URL of the MCP server, expanded.
        settings: expanded.
        spawn: starts a task that outlives whoever asked for it.
        now: seconds since the epoch.

    Attributes:
        record: what is known of it, or None.
        reason: why there is no token, in one line; None when nobody has tried.
        refused: the token that was refused last, in the end; None: a request without one.
        brought: the token that the newest renewal here got from the authorization server, or None.
    """

    def __init__(
        self,
        store: LoginStore,
        key: str,
        server: str,
        settings: OAuth,
        spawn: Callable[..., None],
        now: Callable[[], float] = time.time,
    ) -> None:
        self.key = key
        self.server = server
        self.settings = settings
        self.record: Record | None = None
        self.reason: str | None = None
        self.refused: str | None = None
        self.brought: str | None = None
        self._store = store
        self._spawn = spawn
        self._now = now
        self._flight: _Flight | None = None
        self._unkept: tuple[Record | None, Record] | None = None
        self._bell = trio.Event()
        self._secrets: dict[str, None] = {}

    @property
    def secrets(self) -> set[str]:
        """What must not be shown: what is kept, and what was lately."""
        own = {self.settings.client_secret} if self.settings.client_secret else set()
        own |= {
            each for each in (self.settings.private_key or "").splitlines() if each and not each.startswith("-----")
        }
        return own | set(self._secrets)

    @property
    def flying(self) -> trio.Event | None:
        """Set when the renewal that is under way is over; None when none is."""
        return None if self._flight is None else self._flight.over

    def take(self, record: Record | None) -> None:
        """This is the login from now on; never waits."""
        before = None if self.record is None else self.record.access_token
        self.record = record
        if record is None:
            self._unkept = None
        for each in () if record is None else sorted(record.secrets):
            self._secrets.pop(each, None)
            self._secrets[each] = None
        while len(self._secrets) > _SECRETS_KEPT:
            del self._secrets[next(iter(self._secrets))]
        if record is not None and record.access_token not in (None, before):
            self.reason = None
            self._bell.set()
            self._bell = trio.Event()

    async def load(self) -> None:
        """Look at the file again. A checkpoint."""
        self.take(self._newest(await trio.to_thread.run_sync(self._store.read, self.key)))

    def _newest(self, there: Record | None) -> Record | None:
        """What the file holds; or what could not be written in its place, when nobody else wrote it since.

        A refresh token that was used is worth nothing, or worse: who uses it again may lose all.
        """
        return self._unkept[1] if self._unkept is not None and there == self._unkept[0] else there

    # ── for requests ─────────────────────────────────────────────────────────────────────────────────────────────────

    async def token(self) -> str | None:
        """A token for a request, renewed if it is about to end; None when there is none.

        Raises:
            LoginUnavailable: it has ended, and cannot be renewed now.
        """
        way = self._way(None)
        if way in ("refresh", "fetch") and self.record is not None:
            flight = await self._renewed(None, Challenge())
            failure, record = flight.failure, self.record
            if failure is not None and (record is None or record.access_token is None or self._over(record)):
                raise _unavailable(failure)
        elif way != "use":
            return None
        return None if self.record is None else self.record.access_token

    async def another(self, refused: str | None, challenge: Challenge) -> str | None:
        """A token other than the one that was refused; None when a person has to log in.

        Args:
            refused: None when the request had none.
            challenge: of the refusal.

        Raises:
            LoginUnavailable: it cannot be renewed now.
        """
        for _ in range(3):
            if self._way(refused) == "use":
                break
            flight = await self._renewed(refused, challenge)
            if flight.failure is not None:
                raise _unavailable(flight.failure)
            if flight.refused or self._way(refused) == "none":
                break
        token = None if self.record is None else self.record.access_token
        return None if token == refused else token

    async def more(self, refused: str | None, challenge: Challenge) -> str | None:
        """A token for a request that was refused for want of scope; None when a person has to log in for it."""
        have = None if self.record is None else self.record.scope
        if challenge.scope is not None and set(challenge.scope.split()) <= set((have or "").split()):
            return None  # it has them, and they are not enough: another token would have the same
        await self._renewed(refused, challenge)
        token = None if self.record is None else self.record.access_token
        return None if token == refused else token

    async def changed(self, tried: str | None) -> None:
        """Wait until there is a token that was not refused, whoever logged in.

        Args:
            tried: one that is no better, or None.
        """
        known = (None, self.refused, tried)
        seen: object = None
        while True:
            bell = self._bell
            mark = await trio.to_thread.run_sync(self._store.mark, self.key)
            if mark != seen:
                record = await trio.to_thread.run_sync(self._store.read, self.key)
                seen = None if record is None else mark  # one that cannot be read may be soon, without being written
                if record is not None and record.access_token not in known:
                    self.take(record)
            if self.record is not None and self.record.access_token not in known:
                return
            with trio.move_on_after(POLL_SECONDS):
                await bell.wait()

    # ── the renewal ──────────────────────────────────────────────────────────────────────────────────────────────────

    def _way(self, refused: str | None) -> str:
        return decide(self.record, refused, self._now(), by_itself=self.settings.by_itself)

    def _over(self, record: Record) -> bool:
        return record.expires_at is not None and record.expires_at <= self._now()

    async def _renewed(self, refused: str | None, challenge: Challenge) -> _Flight:
        """Wait for the renewal that is under way, or begin one; what came of it. A checkpoint."""
        flight = self._flight
        if flight is None:
            flight = _Flight()
            self._spawn(self._renew, flight, refused, challenge)
            self._flight = flight
        await flight.over.wait()
        return flight

    async def _renew(self, flight: _Flight, refused: str | None, challenge: Challenge) -> None:
        flight.failure = "it could not be renewed in time"
        try:
            with trio.move_on_after(RENEW_SECONDS):
                await imported("renewal")
                if not self.settings.by_itself:
                    await self.load()
                    if self.record is None:  # nobody has logged in: nothing is locked, and no folder made, for that
                        flight.failure = None
                        return
                async with AsyncExitStack() as stack:
                    try:
                        await stack.enter_async_context(self._store.locked(self.key))
                    except StoreFailed:
                        if not self.settings.by_itself:  # who fetches tokens loses nothing by two of them
                            raise
                    there = await trio.to_thread.run_sync(self._store.read, self.key)
                    record = self._newest(there)
                    self.take(record)
                    after = await self._next(record, refused, challenge) or record
                    if after is not None and after != record:
                        self.brought = after.access_token
                    if after is not None and after != there:
                        self.take(after)
                        self._unkept = there, after
                        with trio.CancelScope(shield=True):
                            await trio.to_thread.run_sync(self._store.write, self.key, after)
                        self._unkept = None
                flight.failure = None
        except LoginRefused as error:
            self.reason, flight.failure, flight.refused = str(error), None, True
        except StoreFailed as error:
            _LOG.warning("a login cannot be kept: %s", error)
            flight.failure = None if self._way(refused) == "use" else str(error)
        except Exception as error:
            words = getattr(error, "in_words", None)  # of `LoginUnavailable`, which is imported only here
            if words is None:
                _LOG.exception("a login could not be renewed")
            flight.failure = words or f"it could not be renewed ({type(error).__name__})"
        finally:
            self._flight = None
            flight.over.set()

    async def _next(self, record: Record | None, refused: str | None, challenge: Challenge) -> Record | None:
        """The login after a renewal; None when it stays. With its lock held."""
        from . import renewal

        way = decide(record, refused, self._now(), by_itself=self.settings.by_itself)
        if way == "use":
            return None
        if challenge.wants_more and not self.settings.by_itself:
            # A refresh brings no more scope: it is noted what to ask for when a person logs in.
            if record is None:
                return None
            wanted = union(record.wanted, challenge.scope)
            return evolve(record, wanted=wanted) if len(wanted or "") <= _LONGEST_WANTED else None
        if way == "refresh" and not challenge.wants_more:
            assert record is not None
            after = await renewal.refresh(_web(), record, self.settings, refused, self._now())
            if after.access_token is not None or not self.settings.by_itself:
                self.reason = None if after.access_token is not None else "the login has ended, or was revoked"
                return after
        if self.settings.by_itself:
            return await renewal.fetch(_web(), self.server, self.settings, record, challenge, self._now())
        if record is not None and record.access_token is not None and record.access_token == refused:
            self.reason = "the login has ended, or was revoked"
            return evolve(record, access_token=None)
        return None


def _web() -> Web:
    from .web import Web

    return Web()


def _unavailable(failure: str) -> Exception:
    from .web import LoginUnavailable

    return LoginUnavailable(f"the login is not to be had now: {failure}")
