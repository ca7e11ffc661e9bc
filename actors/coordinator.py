"""The coordinator: the one writer of the configuration.

Theory of operation
    Requests come through its mailbox as asks. It takes all there are at once and serves them as one batch: the edits in
    one write, then, if anybody asked for it, one reload; so n requests at once cost at most two rounds, and a request that
    comes during a round is served by one that starts after it. It waits for nothing but the store (a worker thread):

        batch → store (re-read, edit, write) → config on the board → delta (pure) → supervisor → answer the revision

    The delta is level-triggered: it compares the configuration in force with what the supervisor holds, so that a crash
    between any two steps is made good by the next incarnation's first look, and nothing is started twice.

    What must outlive an incarnation is in its `Desk`: which operations were begun and how they ended, and which text was
    being taken up. An operation that was begun and not answered is asked for again by its caller; if the store shows that
    it took effect, it is answered and not repeated. A text that was being taken up when two incarnations died is refused
    from then on, by fingerprint; the last good configuration stays.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from contextlib import suppress
from typing import Any, Protocol, TypeVar, overload

import trio
from attrs import evolve, frozen

from ..supervision import Ask, ChildSpec, Context
from .board import Board
from .desk import Apply, Begun, Desk, Reload, Taken, Trust, merge
from .line import Stop
from .model.config import Config, ConfigState, ServerEntry
from .model.diff import plan
from .model.edits import Edit
from .model.errors import ConfigError, PlaybillError, UnknownServer
from .model.nearest import nearest
from .ports import Edited, NoSites, Sites, Store
from .telemetry import operations as telling

__all__ = ["Coordinator", "Pool", "Run"]


@frozen
class _Prepared:
    """A delta as the supervisor takes it."""

    stop: tuple[tuple[str, Stop], ...]
    replace: tuple[ChildSpec, ...]
    start: tuple[ChildSpec, ...]


T = TypeVar("T")
U = TypeVar("U")


class _Poison(Exception):
    """Reading a text raised what nobody expects."""

    def __init__(self, fingerprint: str | None) -> None:
        self.fingerprint = fingerprint
        super().__init__("reading the configuration failed")


class _Refused(Exception):
    """A text cannot be taken up, for a reason that can be told."""

    def __init__(self, fingerprint: str | None, error: ConfigError) -> None:
        self.fingerprint = fingerprint
        self.error = error
        super().__init__("the configuration was refused")


class Run(Protocol):
    """Runs a store's work; raises what it raises, or `OperationTimeout` when it does not come back."""

    async def __call__(self, work: Callable[[], T], /) -> T: ...


class Pool(Protocol):
    """The part of a supervisor that the coordinator hands specifications to; none of it waits."""

    def keys(self) -> Mapping[str, Hashable]: ...
    def start_soon(self, spec: ChildSpec) -> None: ...
    def replace_soon(self, spec: ChildSpec, *, stop_reason: object = None) -> None: ...
    def stop_soon(self, name: str, *, stop_reason: object = None) -> None: ...


class Coordinator:
    """The body of the coordinator's child specification; each incarnation is one call of it.

    Args:
        board: where the configuration in force is.
        desk: what outlives this actor.
        store: where the configuration lives.
        pool: the supervisor of the servers.
        spec_for: makes the child specification of an entry; its key is the entry's launch key.
        run: runs the store's work to its end, in a worker thread if it blocks; a checkpoint.
        drain: seconds that calls in flight may take when their server is replaced or removed.
        sites: where a fault kit may strike.
    """

    def __init__(
        self,
        *,
        board: Board,
        desk: Desk,
        store: Store,
        pool: Pool,
        spec_for: Callable[[ServerEntry], ChildSpec],
        run: Run,
        drain: float,
        sites: Sites | None = None,
    ) -> None:
        self._board = board
        self._desk = desk
        self._store = store
        self._pool = pool
        self._spec_for = spec_for
        self._run = run
        self._drain = drain
        self._sites = sites or NoSites()

    async def __call__(self, ctx: Context) -> None:
        """Run one incarnation; a checkpoint."""
        self._desk.take_over()
        self._hand_over(self._prepare(self._board.config.config))
        ctx.started()
        ctx.healthy()
        with trio.CancelScope(shield=True):
            await self._settle()
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._leave_on_stop, ctx, nursery.cancel_scope)
            while True:
                await self._sites.hit("mailbox", "coordinator")
                batch = [ask for ask in await ctx.mailbox.receive_batch() if isinstance(ask, Ask)]
                # A begun write is finished whatever comes; the store's own deadline bounds it.
                with trio.CancelScope(shield=True):
                    await self._serve([ask for ask in batch if not ask.abandoned])

    async def _leave_on_stop(self, ctx: Context, scope: trio.CancelScope) -> None:
        await ctx.wait_stop()
        scope.cancel()

    async def _serve(self, asks: Sequence[Ask]) -> None:
        """Serve one batch: what ended already, edits in one write, values, then at most one reload."""
        waiting: list[Ask] = []
        for ask in asks:
            ended = self._desk.ended.get(ask.message.id)
            if ended is not None:
                ask.reply(ended)
            elif self._desk.gives_up(ask.message.id):
                why = "this operation ended the coordinator each time it was tried; it is given up"
                self._answer([ask], [ConfigError(why, file=self._board.config.config.path)])
            else:
                waiting.append(ask)
        edits = [ask for ask in waiting if not isinstance(ask.message.request, (Reload, Apply, Trust))]
        if edits:
            await self._edit(edits)
        for ask in waiting:
            if isinstance(ask.message.request, Apply):
                await self._apply(ask, ask.message.request.config)
        trusts = [ask for ask in waiting if isinstance(ask.message.request, Trust)]
        reloads = [ask for ask in waiting if isinstance(ask.message.request, Reload)]
        if trusts or reloads:
            await self._reload(trusts, reloads)

    async def _settle(self) -> None:
        """Find out what became of the edits that the last incarnation began; a checkpoint when there are any."""
        if not self._desk.begun:
            return
        try:
            config, fingerprint = await self._read(lambda: self._store.load(self._board.config.config))
        except PlaybillError as error:
            # What is in force stays, and what is known of the text: it is not to be taken up, nor its error cleared.
            config = self._board.config.config
            if isinstance(error, ConfigError):
                self._refuse(error)
        else:
            self._take_up(config, fingerprint)
        self._desk.settle(config, self._board.config.rev)

    async def _edit(self, asks: Sequence[Ask]) -> None:
        ids = [ask.message.id for ask in asks]
        requests: list[Edit] = [ask.message.request for ask in asks]
        merged = merge(requests)
        before = self._board.config.config
        refusals: list[PlaybillError | None] = [None] * len(asks)
        try:
            for id, request in zip(ids, requests, strict=True):
                there = before.get(request.server)
                self._desk.begun[id] = Begun(request, source=None if there is None else there.source)
            # Read first by itself: if that ends us it is the text's fault; if the edit does, it is not.
            done, fingerprint = await self._read(
                lambda: self._store.load(before), lambda: self._edited([edit for edit, _ in merged], before)
            )
            for (_, answers), refused in zip(merged, done.refused, strict=True):
                for index in answers:
                    refusals[index] = refused
                    self._desk.begun[ids[index]].outcome = (refused,)
            await self._sites.hit("coordinator", "coordinator")
            self._take_up(done.config, fingerprint)
        except PlaybillError as error:
            refusals = [error] * len(asks)
            if isinstance(error, ConfigError):
                self._refuse(error)
        self._answer(asks, refusals)

    def _edited(self, edits: Sequence[Edit], before: Config) -> tuple[Edited, str | None]:
        """In the worker thread: re-read, edit, write; and what the text is then."""
        # Not what the file is by now: another program may have written after us.
        return self._store.edit(edits, before), self._store.answered()

    async def _apply(self, ask: Ask, config: Config) -> None:
        refused: PlaybillError | None = None
        try:
            self._prepare(config)
            await self._run(lambda: self._store.put(config))
            await self._sites.hit("coordinator", "coordinator")
            self._take_up(config, None)
        except PlaybillError as error:
            refused = error
        self._answer([ask], [refused])

    async def _reload(self, trusts: Sequence[Ask], reloads: Sequence[Ask]) -> None:
        asks = [*trusts, *reloads]
        trusted = [ask.message.request for ask in trusts]
        refusals: list[PlaybillError | None] = [None] * len(asks)
        if_changed = not trusts and all(ask.message.request.if_changed for ask in reloads)
        try:
            # Asked here and not by who noticed a change: no edit of ours is half done now.
            if if_changed and await self._run(self._store.fingerprint) == self._desk.known:
                self._answer(asks, refusals)
                return
            (config, trouble), fingerprint = await self._read(lambda: self._load(trusted))
            # Who asked for a reload is told what is not in force; who approved a server has what was asked for.
            refusals = [*trouble, *[config.error] * len(reloads)]
            await self._sites.hit("coordinator", "coordinator")
            self._take_up(config, fingerprint)
        except PlaybillError as error:
            refusals = [error] * len(asks)
            if isinstance(error, ConfigError):
                self._refuse(error)
        self._answer(asks, refusals)

    def _load(self, trusted: Sequence[Trust]) -> tuple[Config, list[PlaybillError | None]]:
        """In the worker thread: approve what still reads as it was shown, then read anew."""
        approved: list[bool | PlaybillError] = []
        for each in trusted:
            try:
                approved.append(self._store.approve(each.server, each.shown))
            except PlaybillError as error:
                approved.append(error)
        config = self._store.load(self._board.config.config)
        return config, [self._trouble(a.server, done, config) for a, done in zip(trusted, approved, strict=True)]

    def _trouble(self, name: str, approved: bool | PlaybillError, config: Config) -> PlaybillError | None:
        if isinstance(approved, PlaybillError):
            return approved
        if approved:
            return None
        return UnknownServer(name, nearest(name, (entry.name for entry in config.servers)), config.path)

    @overload
    async def _read(self, work: Callable[[], T]) -> tuple[T, str | None]: ...
    @overload
    async def _read(self, work: Callable[[], object], then: Callable[[], U]) -> U: ...
    async def _read(self, work: Callable[[], Any], then: Callable[[], Any] | None = None) -> Any:
        """Read the store; a text that ends us is remembered by its fingerprint, and refused when it has done so twice.

        A text that is refused is known from then on, and its error is raised.

        Args:
            work: reads.
            then: what to do afterwards, in the same visit to the store; what it raises is not the text's fault.

        Returns:
            What ``then`` returned; without one, what ``work`` returned and the fingerprint of the text.
        """

        def reading() -> Any:
            fingerprint = self._store.fingerprint()
            if self._desk.refuses(fingerprint):
                why = (
                    "taking up this text ended the coordinator twice: the last good one stays in force until it changes"
                )
                raise _Refused(fingerprint, ConfigError(why, file=self._board.config.config.path))
            try:
                try:
                    value = work()
                except PlaybillError:
                    raise
                except Exception as error:
                    raise _Poison(fingerprint) from error
                return (value, self._store.answered()) if then is None else then()
            except ConfigError as error:
                raise _Refused(self._store.answered(), error) from error

        try:
            return await self._run(reading)
        except _Refused as refused:
            self._desk.known = refused.fingerprint
            raise refused.error from None
        except _Poison as poison:
            if poison.fingerprint is not None:
                self._desk.suspects[poison.fingerprint] += 1
            raise

    def _take_up(self, config: Config, fingerprint: str | None) -> None:
        """Put a configuration in force: decide all, store it on the board, then hand its delta to the supervisor.

        If this raises, the next incarnation finds on the desk which text it was.
        """
        self._desk.reading = fingerprint
        prepared = self._prepare(config)
        state = self._board.config
        error = None if config.error is None else str(config.error)
        if config != state.config or config.places is not state.config.places or state.error != error:
            self._board.set_config(ConfigState(state.rev + 1, config, error))
        self._hand_over(prepared)
        telling.in_force(
            self._board.config.rev,
            len(config.servers),
            started=len(prepared.start),
            replaced=len(prepared.replace),
            stopped=len(prepared.stop),
        )
        if config.error is not None and state.error != error:
            telling.refused(self._board.config.rev, config.error)
        self._desk.reading = None
        self._desk.known = fingerprint

    def _prepare(self, config: Config) -> _Prepared:
        delta = plan(config, self._pool.keys())
        return _Prepared(
            stop=tuple(
                (name, Stop("it was removed" if config.get(name) is None else "it was disabled", self._drain))
                for name in delta.stop
            ),
            replace=tuple(self._spec_for(entry) for entry in delta.replace),
            start=tuple(self._spec_for(entry) for entry in delta.start),
        )

    def _hand_over(self, prepared: _Prepared) -> None:
        for name, stop in prepared.stop:
            self._pool.stop_soon(name, stop_reason=stop)
        # Closed: the host is closing, and nobody is started any more.
        with suppress(trio.ClosedResourceError):
            for spec in prepared.replace:
                self._pool.replace_soon(spec, stop_reason=Stop("it was replaced", self._drain))
            for spec in prepared.start:
                self._pool.start_soon(spec)

    def _refuse(self, error: ConfigError) -> None:
        """Say on the board why the text as it is now is not in force."""
        state = self._board.config
        if state.error != str(error):
            self._board.set_config(evolve(state, rev=state.rev + 1, error=str(error)))
            telling.refused(self._board.config.rev, error)

    def _answer(self, asks: Sequence[Ask], refusals: Sequence[PlaybillError | None]) -> None:
        rev = self._board.config.rev
        for ask, refused in zip(asks, refusals, strict=True):
            taken = Taken(rev, refused)
            self._desk.end(ask.message.id, taken)
            ask.reply(taken)
