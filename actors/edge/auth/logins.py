"""The logins of one host: who uses which, a person's login and logout, and the word of another login.

Theory of operation. Each login has one keeper for all servers of the host that use it, for as long as the host is open.
Renewals run in the nursery of the hub (`hub`), which makes these logins when they are first needed.
"""

from __future__ import annotations

import json
import math
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import trio
from attrs import evolve, frozen

from ...model.config import ServerEntry
from ...model.errors import LoginFailed
from ...model.oauth import OAuth
from ..config.expand import Expanded
from ..config.inputs import Inputs, Supply
from .challenge import Challenge, read_challenge
from .hub import LOGIN_SECONDS, open_hub
from .keeper import Keeper
from .loading import imported
from .record import Record, key_of
from .refused import LoginRefused
from .store import LoginStore, StoreFailed
from .urls import refusal

if TYPE_CHECKING:
    from .handlers import Handlers

__all__ = ["HttpLogin", "LoggedIn", "LoggedOut", "Logins", "open_logins"]


@frozen
class HttpLogin:
    """What a connection takes of a login.

    Args:
        auth: an ``httpx2.Auth``.
        secrets: what must not be shown, now.
    """

    auth: Any
    secrets: Callable[[], set[str]]


@frozen
class LoggedIn:
    """What came of a login.

    Args:
        server: where, without a query.
        issuer: the authorization server, or None.
        scope: that was granted, or None.
        expires_at: seconds since the epoch, or None.
        renews: it is renewed without a person.
        missing: the scopes that were asked for and not granted.
    """

    server: str
    issuer: str | None
    scope: str | None
    expires_at: float | None
    renews: bool
    missing: tuple[str, ...] = ()


@frozen
class LoggedOut:
    """What came of a logout.

    Args:
        there: there was a login.
        lives_until: seconds since the epoch at which the token ends that could not be revoked, ``inf`` when that was not said;
            None: it was revoked, or there was none.
    """

    there: bool
    lives_until: float | None = None


class Logins:
    """Made by a `Hub`.

    Args:
        store: where they are kept.
        supply: expands entries.
        nursery: for renewals.
        now: seconds since the epoch.
    """

    def __init__(
        self, store: LoginStore, supply: Supply, nursery: trio.Nursery, now: Callable[[], float] = time.time
    ) -> None:
        self._store = store
        self._supply = supply
        self._nursery = nursery
        self._now = now
        self._keepers: dict[str, Keeper] = {}
        self._of: dict[str, Keeper] = {}
        self._tried: dict[str, str | None] = {}

    # ── for connections ──────────────────────────────────────────────────────────────────────────────────────────────

    async def login_for(self, name: str, launch: Expanded) -> HttpLogin | None:
        """The login that a server's requests carry; None where there is none to be had. A checkpoint.

        Args:
            name: the server's.
            launch: its entry, expanded, with all its headers.
        """
        self._of.pop(name, None)
        if launch.url is None or no_login(launch) is not None:
            await trio.lowlevel.checkpoint()
            return None
        keeper = self._of[name] = self._keeper(launch)
        await imported("bearer")
        await keeper.load()
        self._tried[name] = None if keeper.record is None else keeper.record.access_token
        from .bearer import Bearer

        return HttpLogin(Bearer(keeper), lambda: keeper.secrets)

    async def changed(self, name: str) -> None:
        """Wait until there is another login for a server than the one it refused; for ever where there is none to be had."""
        keeper = self._of.get(name)
        if keeper is None:
            await trio.sleep_forever()
            return
        await keeper.changed(self._tried.get(name))

    def _keeper(self, launch: Expanded) -> Keeper:
        settings = launch.oauth or OAuth()
        assert launch.url is not None
        key = key_of(launch.url, settings)
        found = self._keepers.get(key)
        if found is None or found.settings != settings or found.server != launch.url:
            before = found
            found = self._keepers[key] = Keeper(
                self._store, key, launch.url, settings, self._nursery.start_soon, self._now
            )
            if before is not None:
                found.take(before.record)
        return found

    # ── for people ───────────────────────────────────────────────────────────────────────────────────────────────────

    async def log_in(
        self, entry: ServerEntry, handlers: Handlers, *, scopes: tuple[str, ...] = (), seconds: float = LOGIN_SECONDS
    ) -> LoggedIn:
        """Log in to a server, and keep the login.

        Args:
            entry: of the server.
            handlers: how the person is reached; of no use to a client that logs in by itself.
            scopes: to ask for instead of what the server says it takes.
            seconds: for the person, from when the URL is shown; for a client that logs in by itself, for all of it.

        Raises:
            LoginFailed: there is no login.
            ExpandError: the entry cannot be expanded.
            Exception: what a handler raises.
        """
        launch = await self._launch(entry)
        keeper = self._keeper(launch)
        record: Record | None = None
        missing: tuple[str, ...] = ()
        try:
            if keeper.settings.by_itself:
                with trio.move_on_after(seconds):
                    record, missing = await self._logged_in(entry, keeper, launch, handlers, scopes, seconds)
            else:
                record, missing = await self._logged_in(entry, keeper, launch, handlers, scopes, seconds)
        except (LoginRefused, StoreFailed) as error:
            raise LoginFailed(entry.name, str(error)) from None
        except Exception as error:
            words = getattr(error, "in_words", None)
            if words is None:
                raise
            raise LoginFailed(entry.name, words) from None
        if record is None:
            raise LoginFailed(entry.name, f"nobody logged in within {seconds:g} s")
        renews = record.refresh_token is not None or keeper.settings.by_itself
        return LoggedIn(record.server, record.issuer, record.scope, record.expires_at, renews, missing)

    async def log_out(self, entry: ServerEntry) -> LoggedOut:
        """Forget the login of a server, and have it revoked where that is possible.

        Raises:
            LoginFailed: it cannot be forgotten.
            ExpandError: as `log_in`.
        """
        launch = await self._launch(entry)
        keeper = self._keeper(launch)
        record: Record | None = None
        if await trio.to_thread.run_sync(self._store.mark, keeper.key) is None:
            keeper.take(None)
            return LoggedOut(False)
        try:
            async with self._store.locked(keeper.key):
                record = await trio.to_thread.run_sync(self._store.read, keeper.key)
                there = await trio.to_thread.run_sync(self._store.forget, keeper.key)
        except StoreFailed as error:
            raise LoginFailed(entry.name, str(error)) from None
        keeper.take(None)
        if record is None or await self._revoke(record, keeper.settings):
            return LoggedOut(there)
        ends = record.expires_at
        over = record.refresh_token is None and ends is not None and ends <= self._now()
        return LoggedOut(there, None if over else math.inf if ends is None else ends)

    async def _launch(self, entry: ServerEntry) -> Expanded:
        """The entry expanded, if there is a login for it at all."""
        if entry.error is not None:
            raise LoginFailed(entry.name, entry.error)
        if entry.url is None:
            raise LoginFailed(entry.name, "it is no remote server")
        if not entry.trusted:
            raise LoginFailed(entry.name, "it is not trusted yet")
        launch = await self._supply.expand(entry)
        if (why := no_login(launch)) is not None:
            raise LoginFailed(entry.name, why)
        return launch

    async def _logged_in(
        self,
        entry: ServerEntry,
        keeper: Keeper,
        launch: Expanded,
        handlers: Handlers,
        scopes: tuple[str, ...],
        seconds: float,
    ) -> tuple[Record, tuple[str, ...]]:
        """The login, and what was asked for and not granted."""
        await imported("renewal")
        from .interactive import log_in
        from .renewal import fetch
        from .web import Web

        web, server = Web(), keeper.server
        challenge = await _challenge(web, launch, entry.type == "sse")
        before = await trio.to_thread.run_sync(self._store.read, keeper.key)
        settings = keeper.settings
        if settings.by_itself:
            asking = evolve(settings, scopes=scopes) if scopes else settings
            record = await fetch(web, server, asking, before, challenge, self._now())
            wanted: str | None = " ".join(scopes)
        else:
            record, wanted = await log_in(
                web,
                server,
                settings,
                handlers,
                challenge=challenge,
                before=before,
                scopes=scopes,
                seconds=seconds,
                now=self._now,
            )
        with trio.CancelScope(shield=True):
            async with self._store.locked(keeper.key):
                await trio.to_thread.run_sync(self._store.write, keeper.key, record)
        keeper.take(record)
        granted = (record.scope or "").split()
        return record, tuple(each for each in (wanted or "").split() if each not in granted)

    async def _revoke(self, record: Record, settings: OAuth) -> bool:
        """Whether nothing of it is good any more, as far as its authorization server says."""
        await imported("renewal")
        from .grant import proof_of, revoke
        from .web import Web

        client, endpoint = record.client, record.revocation_endpoint
        if client is None or endpoint is None:
            return record.access_token is None and record.refresh_token is None
        proof = proof_of(settings, client, record.issuer)
        done = True
        for kind in ("refresh_token", "access_token"):
            token = getattr(record, kind)
            if token is not None:
                done = await revoke(Web(), endpoint, client, proof, token, kind) and done
        return done

    async def settled(self) -> None:
        """Wait until no renewal is under way."""
        for keeper in list(self._keepers.values()):
            if (flying := keeper.flying) is not None:
                await flying.wait()


def no_login(launch: Expanded) -> str | None:
    """Why there is no OAuth at a server, or None."""
    if any(name.lower() == "authorization" for name in launch.headers):
        return "its entry has an Authorization header already"
    if launch.oauth is not None and not launch.oauth.enabled:
        return "its entry says oauth: false"
    why = None if launch.url is None else refusal(launch.url.partition("#")[0], launch.url)
    return None if why is None else f"there is no login over it: {why}"


_HELLO = {
    "jsonrpc": "2.0",
    "id": 0,
    "method": "initialize",
    "params": {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "playbill", "version": "0"},
    },
}


async def _challenge(web: Any, launch: Expanded, older: bool) -> Challenge:
    """What the server says to somebody who is not logged in."""
    assert launch.url is not None
    if older:
        headers = {**launch.headers, "accept": "text/event-stream"}
        answer = await web.probe("GET", launch.url, headers, None)
    else:
        headers = {
            **launch.headers,
            "accept": "application/json, text/event-stream",
            "content-type": "application/json",
        }
        answer = await web.probe("POST", launch.url, headers, json.dumps(_HELLO).encode())
    if answer.status in (401, 403):
        return read_challenge(answer.headers.get_list("www-authenticate"))
    return Challenge(none=answer.status < 300)


@asynccontextmanager
async def open_logins(folder: Path | None = None, inputs: Inputs | None = None) -> AsyncIterator[Logins]:
    """The logins of a host, for as long as it is open: as `open_hub`, where somebody is sure to log in or out.

    Args:
        folder: where they are kept; None: in the user's state folder of playbill.
        inputs: supplies ``${input:ID}``.
    """
    async with open_hub(folder, inputs) as hub:
        yield hub.logins()
