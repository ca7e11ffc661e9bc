"""`make_connect`: from an entry to a live MCP connection, and back to nothing.

Theory of operation. One background task, the backstage, owns everything: it opens the wire, enters the SDK's session, shakes
hands, and leaves both again, in that one task, shielded from whatever happens to the caller. The context manager that the
caller sees only starts it, waits for word, and on leaving tells it to end. So the death of a transport, which cancels the tasks
inside its blocks, reaches nobody but the backstage; a caller that is cancelled at any point finds the process ended, by its
deadlines.

    state       entered by           left by
    opening     entering             the handshake → up; a failure → failed; leaving → ended (killed without grace)
    up          the handshake        the loss of the wire → lost; leaving → ended (with grace)
    lost        the wire             leaving
    failed      a failure            entering raises ConnectionFailed

Calls run in their callers' tasks: a loss settles them with `ConnectionLost`.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from types import TracebackType
from typing import TYPE_CHECKING, Any, Literal

import trio
from attrs import evolve, frozen

from ...model.config import ServerEntry
from ...model.diff import transport_kind
from ...model.errors import PlaybillError
from ...model.protocol import older as older_version
from ...ports import Client, Connect, Connection, ConnectionFailed, Era, EraMemory, Opening
from ...telemetry.log import About, about
from ...telemetry.names import peer_of
from ...telemetry.notes import alone, current
from ..config.expand import ExpandError, header_secrets
from .lines import DEFAULT_MAX_LINE
from .sdk import load_sdk
from .spawn import SpawnFailed
from .transports import native_is_tested, open_wire
from .wire import HttpLogin, HttpRefused, Launch, LoginFor, Refused, Wire, one_line

if TYPE_CHECKING:
    from .link import Link
    from .warden import Warden

__all__ = ["make_connect"]

OLDER = "sse"
"""In an `EraMemory`: a server whose entry has no type, and that was last met over the older HTTP transport."""

CLOSE_SECONDS = 8.0
"""Within which a connection is closed, whatever its transport does (a process: 6 s by its own deadlines)."""


@frozen(kw_only=True)
class _Settings:
    warden: Warden | None
    expand: Callable[[ServerEntry], Launch]
    probe_seconds: float
    max_line: int
    dispatcher: Literal["auto", "native", "sdk"]
    open_wire: Callable[..., AbstractAsyncContextManager[Wire]]
    login_for: LoginFor | None

    def native(self) -> bool:
        return self.dispatcher == "native" or (self.dispatcher == "auto" and native_is_tested())


def make_connect(
    *,
    warden: Warden | None = None,
    expand: Callable[[ServerEntry], Launch] | None = None,
    probe_seconds: float = 1.5,
    max_line: int = DEFAULT_MAX_LINE,
    dispatcher: Literal["auto", "native", "sdk"] = "auto",
    open_wire: Callable[..., AbstractAsyncContextManager[Wire]] = open_wire,
    login_for: LoginFor | None = None,
) -> Connect:
    """Make the `Connect` that a host hands to its servers.

    Args:
        warden: has the processes watched; None: each by a watcher of its own.
        expand: an entry to what is really run or connected to; None = `expand.expand`.
        probe_seconds: how long a server of unknown era may be silent on ``server/discover`` before ``initialize`` is tried.
        max_line: longest message accepted over stdio, in bytes.
        dispatcher: ours or the SDK's over stdio; ``auto`` takes ours with the SDK version it was tested with.
        open_wire: `transports.open_wire`, or what stands in for it.
        login_for: the logins of remote servers; None: there are none.
    """
    settings = _Settings(
        warden=warden,
        expand=_default_expand if expand is None else expand,
        probe_seconds=probe_seconds,
        max_line=max_line,
        dispatcher=dispatcher,
        open_wire=open_wire,
        login_for=login_for,
    )

    def connect(
        entry: ServerEntry, *, eras: EraMemory, on_list_changed: Callable[[], None], client: Client | None = None
    ) -> Opening:
        return _Opening(_Backstage(settings, entry, eras, on_list_changed, client))

    return connect


def _default_expand(entry: ServerEntry) -> Launch:
    from ..config.expand import expand

    return expand(entry)


class _Opening:
    """As `ports.Opening`."""

    def __init__(self, backstage: _Backstage) -> None:
        self._backstage = backstage
        self._nursery = trio.open_nursery()

    async def __aenter__(self) -> Connection:
        self._inside = await self._nursery.__aenter__()
        self._inside.start_soon(self._backstage.run)
        try:
            return await self._backstage.opened()
        except BaseException:
            await self._leave()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None, /
    ) -> bool | None:
        await self._leave()
        return None

    async def _leave(self) -> None:
        self._backstage.close()
        # A cancelled caller must not see the nursery's own Cancelled instead of what it raised; run() is bounded.
        self._inside.cancel_scope.shield = True
        await self._nursery.__aexit__(None, None, None)

    def stderr_tail(self) -> str:
        return self._backstage.stderr_tail()


class _Backstage:
    """Opens, holds and closes one connection. See the top of this file."""

    def __init__(
        self,
        settings: _Settings,
        entry: ServerEntry,
        eras: EraMemory,
        on_list_changed: Callable[[], None],
        client: Client | None,
    ) -> None:
        self._client = client
        self._settings = settings
        self._entry = entry
        self._eras = eras
        self._on_list_changed = on_list_changed
        self._scope = trio.CancelScope(shield=True)
        self._word = trio.Event()
        self._closing = trio.Event()
        self._link: Link | None = None
        self._failure: ConnectionFailed | None = None
        self._wire: Wire | None = None
        self._scrub: Callable[[str], str] = str
        self._login: HttpLogin | None = None

    def stderr_tail(self) -> str:
        return "" if self._wire is None else self._wire.stderr_tail()

    async def opened(self) -> Link:
        """Wait for the word: the connection, or `ConnectionFailed`."""
        await self._word.wait()
        if self._link is None:
            assert self._failure is not None
            raise self._failure
        return self._link

    def close(self) -> None:
        """Begin the end; never waits."""
        self._closing.set()
        if self._link is None:
            self._scope.cancel()
        else:
            self._link.lose("the connection was closed")
            self._scope.deadline = trio.current_time() + CLOSE_SECONDS

    async def run(self) -> None:
        """Open, hold, close. Raises nothing."""
        with about(About(self._entry.name, lambda text: self._scrub(text))):
            with self._scope:
                errors: list[Exception] = []
                try:
                    await self._open_and_hold()
                except* Exception as group:
                    errors = _leaves(group)
                if errors:
                    self._fail(_failure_of(self._wire, errors[0], self._scrub))
            self._end()

    def _end(self) -> None:
        if self._link is not None:
            closed = "the connection was closed" if self._closing.is_set() else "the transport ended"
            self._link.lose(self._failure.reason if self._failure is not None else closed)
        elif self._failure is None:
            self._failure = ConnectionFailed("closed before the connection was made")
        self._word.set()

    def _fail(self, failure: ConnectionFailed) -> None:
        """Note why there is no connection; of a second attempt, after why there was none at the first."""
        first = self._failure
        if self._link is None:
            self._eras.pop(self._entry.name, None)
        if first is None:
            self._failure = failure
        elif first.reason != failure.reason:
            first.reason = one_line(f"{first.reason}; over SSE: {failure.reason}")
            first.needs_auth = first.needs_auth or failure.needs_auth

    async def _open_and_hold(self) -> None:
        launch = self._settings.expand(self._entry)
        self._scrub = scrubber(launch.secrets)
        launch = await self._with_login(launch)
        if self._settings.login_for is not None and launch.url is not None:
            self._login = await self._settings.login_for(self._entry.name, launch)
            if self._login is not None:
                self._scrub = _scrubbing(self._scrub, self._login.secrets)
        known = self._eras.get(self._entry.name)
        if (other := await self._attempt(launch, known)) is not None:
            await self._attempt(launch, other)

    async def _with_login(self, launch: Launch) -> Launch:
        """The launch with the headers that its helper gives, if it has one; what that says is a secret from here on."""
        command = getattr(launch, "headers_helper", None)
        if command is None or launch.url is None:
            return launch
        from .remote.helper import headers_from

        given = await headers_from(
            command,
            name=self._entry.name,
            url=launch.url,
            cwd=launch.cwd,
            env=launch.env,
            warden=self._settings.warden,
        )
        values = header_secrets(given)
        self._scrub = scrubber(launch.secrets | values)
        names = {name.lower() for name in given}
        kept = {name: value for name, value in launch.headers.items() if name.lower() not in names}
        return evolve(launch, headers={**kept, **given}, secrets=launch.secrets | values)  # type: ignore[misc]

    async def _attempt(self, launch: Launch, known: Era | None) -> Era | None:
        """One process, or one HTTP connection.

        Args:
            launch: what to open.
            known: as `EraMemory` has it.

        Returns:
            None; or how to try once more: it died of the probe, or may speak the older HTTP transport.
        """
        settings = self._settings
        older = known == OLDER and self._entry.type is None
        more: dict[str, Any] = {"older": True} if older else {}
        if self._login is not None:
            more["auth"] = self._login.auth
        wire_manager = settings.open_wire(
            self._entry,
            launch,
            self._scrub,
            warden=settings.warden,
            native=settings.native(),
            max_line=settings.max_line,
            **more,
        )
        async with wire_manager as wire:
            self._wire = wire
            wire.older = older
            wire.offers = older_version(self._entry.protocol_version)
            wire.peer = peer_of(OLDER if older else transport_kind(self._entry), launch.url)
            if (note := current()) is not None:
                note.update(wire.peer)
            await load_sdk()
            from .meeting import open_link

            try:
                era = "legacy" if wire.legacy_only else None if known == OLDER else known
                told = self._on_list_changed
                async with open_link(wire, era, settings.probe_seconds, told, self._client) as link:
                    self._eras[self._entry.name] = OLDER if older else link.era
                    self._link = link
                    self._failure = None  # of a first attempt
                    wire.graceful = True
                    self._word.set()
                    with alone():  # what is asked from here on is no part of the connect
                        await link.hold(self._closing)
            except Refused as refused:
                if refused.died_of_probe:
                    return "legacy"
                # It may be another program than the one that was met: the next attempt asks anew.
                self._fail(_failure_of(wire, refused, self._scrub))
                if wire.not_streamable and self._entry.type is None:
                    return OLDER
            except Exception as error:
                # A defect is the reason, not the end of the server that follows from it.
                if not isinstance(cause := _leaf(error), _KNOWN):
                    wire.lose(_words_of(cause))
                raise
        return None


def scrubber(secrets: set[str]) -> Callable[[str], str]:
    """A function that replaces each of the secrets in a text by ``***``."""
    found = sorted((secret for secret in secrets if secret), key=len, reverse=True)

    def scrub(text: str) -> str:
        for secret in found:
            text = text.replace(secret, "***")
        return text

    return scrub


def _scrubbing(scrub: Callable[[str], str], secrets: Callable[[], set[str]]) -> Callable[[str], str]:
    """A scrubber that knows besides what is secret at the time."""
    return lambda text: scrub(scrubber(secrets())(text))


def _leaves(group: BaseExceptionGroup[Exception]) -> list[Exception]:
    leaves: list[Exception] = []
    for error in group.exceptions:
        if isinstance(error, BaseExceptionGroup):
            leaves += _leaves(error)
        else:
            leaves.append(error)
    return leaves


_KNOWN = (PlaybillError, SpawnFailed, HttpRefused, Refused)
"""What says in words for a person why there is no connection."""


def _leaf(error: Exception) -> Exception:
    return _leaves(error)[0] if isinstance(error, ExceptionGroup) else error


def _words_of(error: Exception) -> str:
    words, kind = str(error), type(error).__name__
    return words or kind if isinstance(error, _KNOWN) or not words else f"{kind}: {words}"


def _failure_of(wire: Wire | None, error: Exception, scrub: Callable[[str], str]) -> ConnectionFailed:
    """The one place where an exception becomes a reason."""
    reason = _words_of(error)
    tail, needs_auth = "", isinstance(error, HttpRefused) and error.needs_auth
    later = error.retry_after if isinstance(error, HttpRefused | Refused) else None
    if wire is not None:
        tail, needs_auth = wire.stderr_tail(), needs_auth or wire.needs_auth
        if wire.lost.is_set():
            reason = wire.reason
        elif words := wire.last_words():
            reason = f"{reason}: {words}"
    futile = isinstance(error, ExpandError | SpawnFailed | HttpRefused) and error.futile
    return ConnectionFailed(
        one_line(scrub(reason)), stderr_tail=tail, needs_auth=needs_auth, retry_after=later, futile=futile
    )
