"""The house: the two supervisors and everything that must outlive an actor, started together and closed in order."""

from __future__ import annotations

import math
import random
from contextlib import suppress
from functools import partial

import trio

from ..supervision import (
    Backoff,
    Cell,
    ChildSpec,
    ChildState,
    Context,
    Escalated,
    Intensity,
    Restart,
    Shutdown,
    StartFailed,
    Supervisor,
)
from .asking import Asking
from .board import Board
from .calls import Calls
from .coordinator import Coordinator, Run
from .deadline import Timer
from .desk import Desk, Reload
from .edge.auth.hub import Hub
from .host import Host
from .logging_in import LoginDoor
from .model.budget import Budget
from .model.client import ClientHandlers
from .model.config import ConfigState, ServerEntry
from .model.diff import launch_key
from .model.errors import ConfigError, OperationTimeout, PlaybillError
from .model.native import NativeTool
from .model.profile import Profile
from .model.snapshot import Snapshot
from .model.status import Lifecycle
from .operations import Operations
from .ports import RESTART_SPACING, Client, Connect, EraMemory, Sites, Store
from .projector import Projector, look
from .server import ServerActor, ServerSettings
from .telemetry.connects import decided
from .telemetry.gauges import restarted, unwatch
from .telemetry.gauges import watch as observe
from .telemetry.notes import alone

__all__ = ["House"]

CLOSE_BUDGET = 10.0
"""Seconds that closing may take in all."""

CORE_BACKOFF = Backoff(base=0.02, max=1.0, reset_after=5.0)
CORE_INTENSITY = Intensity(restarts=20, window=30.0, then="escalate")

WATCH_BACKOFF = Backoff(base=0.5, max=30.0, reset_after=30.0)
WATCH_INTENSITY = Intensity(restarts=5, window=60.0, then="park", park_retry=60.0)
"""A watch that fails is told, and tried again for ever: no reason to end a host."""

WATCH_PATIENCE = 10.0
"""Seconds that it may take until the file system is watched."""

PROJECTION_GRACE = 1.0
"""Seconds that closing waits for the last projection; one that does not come is a projector that is down."""

EXIT_GRACE = 6.0
"""Seconds that a server's orderly end may take after its calls have drained: stdin closed, SIGTERM, SIGKILL."""


class House:
    """What `open_host` opens.

    Args:
        store: where the configuration lives.
        run: runs the store's work.
        first: the first configuration.
        known: the fingerprint of its text.
        watched: whether to reload when the store's files change.
        natives, budget, profile: for the catalog.
        connect: opens connections.
        settings, backoff, intensity: of the server actors.
        operation_timeout: seconds.
        rng: for jitter.
        sites: where a fault kit may strike in the core actors.
        handlers: what servers may ask of the embedder; None for nothing.
        logins: at remote servers; None: those of given connections.
    """

    def __init__(
        self,
        *,
        store: Store,
        run: Run,
        first: ConfigState,
        known: str | None,
        watched: bool,
        natives: tuple[NativeTool, ...],
        budget: Budget,
        profile: Profile,
        connect: Connect,
        settings: ServerSettings,
        backoff: Backoff,
        intensity: Intensity,
        operation_timeout: float,
        rng: random.Random,
        sites: Sites | None = None,
        handlers: ClientHandlers | None = None,
        logins: Hub | None = None,
    ) -> None:
        self._handlers = handlers
        self._connect = connect
        self._logins = logins
        self._settings = settings
        self._profile = profile
        self._backoff = backoff
        self._intensity = intensity
        self._eras: EraMemory = {}
        self._closing = trio.Event()
        self._nursery: trio.Nursery | None = None
        self._parked: set[str] = set()
        self._restarted: dict[str, tuple[int, float]] = {}  # of each server how often, and when last
        self._board = Board(first)
        self._board.seen = look(self._board, natives, budget, profile)
        self._cell: Cell[Snapshot] = Cell(self._board.seen.snapshot)
        self._store = store
        self._watched = watched
        self._core = Supervisor("core", rng=rng, observe=self._observe_core)
        self._pool = Supervisor("servers", rng=rng, observe=self._observe, spacing=RESTART_SPACING)
        self._projector = Projector(self._board, self._cell, natives, budget, profile, sites)
        desk = Desk()
        desk.known = known
        self._coordinator = Coordinator(
            board=self._board,
            desk=desk,
            store=store,
            pool=self._pool,
            spec_for=self._spec_for,
            run=run,
            drain=settings.drain,
            sites=sites,
        )
        self._operations = Operations(
            core=self._core,
            pool=self._pool,
            board=self._board,
            cell=self._cell,
            closing=self._is_closing,
            timeout=operation_timeout,
        )
        self._timer = Timer()
        calls = Calls(board=self._board, cell=self._cell, natives=natives, closing=self._is_closing, timer=self._timer)
        self.host = Host(
            core=self._core,
            pool=self._pool,
            board=self._board,
            cell=self._cell,
            operations=self._operations,
            calls=calls,
            door=LoginDoor(logins, self._operations, self._pool, self._cell, settings.drain, self._closing),
            drain=settings.drain,
        )

    def _is_closing(self) -> bool:
        return self._closing.is_set()

    @trio.lowlevel.enable_ki_protection
    async def start(self, nursery: trio.Nursery) -> None:
        """Start both supervisors, the projector and the coordinator, which hands over the servers. A checkpoint."""
        self._nursery = nursery
        observe(self, self.host.snapshot)
        # What runs here is no part of what its opener is doing, nor is a restart part of what the first start was.
        with alone():
            await self._start(nursery)

    async def _start(self, nursery: trio.Nursery) -> None:
        # Shielded: a cancelled program still closes in order, by `close`.
        await nursery.start(partial(self._pool.run, shielded=True))
        await nursery.start(partial(self._core.run, shielded=True))
        nursery.start_soon(self._timer.run)
        # The coordinator may finish a write; the projector has nothing to finish.
        for name, body, grace in (
            ("projector", self._projector, 0.0),
            ("coordinator", self._coordinator, CLOSE_BUDGET),
        ):
            spec = ChildSpec(
                name=name,
                body=body,
                restart=Restart.PERMANENT,
                backoff=CORE_BACKOFF,
                intensity=CORE_INTENSITY,
                shutdown=Shutdown(grace=grace, join=1.0),
                # An operation waits in its caller's task: there are never more requests than callers.
                mailbox=float("inf"),
            )
            try:
                await self._core.start(spec)
            except StartFailed as failed:
                raise Escalated(failed.name, failed.reason) from None
        if self._watched:
            self._core.start_soon(
                ChildSpec(
                    name="watcher",
                    body=self._watch,
                    restart=Restart.PERMANENT,
                    backoff=WATCH_BACKOFF,
                    intensity=WATCH_INTENSITY,
                    shutdown=Shutdown(grace=0.0, join=2.0),
                    start_timeout=WATCH_PATIENCE,
                )
            )

    async def _watch(self, ctx: Context) -> None:
        """The watcher: asks for a reload whenever the store's files may say something else. A checkpoint."""

        def watching() -> None:
            ctx.started()
            ctx.healthy()

        from .edge.config.watch import watch

        await watch(self._store.watched, self._look_again, watching=watching)

    async def _look_again(self) -> None:
        while True:
            try:
                await self._operations.submit("reload", Reload(if_changed=True), None)
            except ConfigError:
                return  # told by the snapshot
            except OperationTimeout:
                # A store that does not answer; another change may never come, so this one is not let go.
                await trio.sleep(WATCH_BACKOFF.base)
            else:
                return

    def look_late(self) -> None:
        """What was asked of the store and given up is done after all, or was left: have it read again, whatever is known.

        Not waited for. Nothing happens once the host closes.
        """
        if self._nursery is not None and not self._closing.is_set():
            self._nursery.start_soon(self._catch_up)

    async def _catch_up(self) -> None:
        # An error is told by the snapshot; a look that is given up too will end in another one.
        with suppress(PlaybillError):
            await self._operations.submit("reload", Reload(), None)

    def _observe_core(self, state: ChildState) -> None:
        """A watch that failed is told in the snapshot, until there is one again."""
        if state.name != "watcher" or self._closing.is_set():
            return
        if state.stage in ("backing_off", "parked"):
            path = self._board.config.config.path
            why = f"changes of it are not noticed, only reload() reads it: {state.reason}"
            self._board.set_notice("watcher", why if path is None else f"{path}: {why}")
        elif state.stage == "running":
            self._board.set_notice("watcher", None)

    def _spec_for(self, entry: ServerEntry) -> ChildSpec:
        key = launch_key(entry)
        # Started as something new: what was met under this name before may have been another server.
        self._eras.pop(entry.name, None)

        def newest() -> ServerEntry:
            # Keys that do not ask for a new process (timeouts) may have changed since this one was specified.
            now = self._board.config.config.get(entry.name)
            return now if now is not None and launch_key(now) == key else entry

        settings = self._settings
        return ChildSpec(
            name=entry.name,
            body=ServerActor(
                newest,
                connect=self._connect,
                board=self._board,
                eras=self._eras,
                settings=settings,
                profile=self._profile,
                closing=self._closing,
                client=None if self._handlers is None else self._asking,
                logins=None if self._logins is None else self._logins.changed,
            ),
            restart=Restart.PERMANENT,
            start_timeout=math.inf,  # it says that it has started in its first step; nobody need watch it do so
            backoff=self._backoff,
            intensity=self._intensity,
            shutdown=Shutdown(grace=settings.drain + EXIT_GRACE, join=5.0),
            key=key,
        )

    def _asking(self, server: str, generation: int) -> Client:
        assert self._handlers is not None
        return Asking(self._handlers, server, generation, self._nursery_of_handlers)

    def _nursery_of_handlers(self) -> trio.Nursery:
        assert self._nursery is not None
        return self._nursery

    def _observe(self, state: ChildState) -> None:
        """The supervisor's word, as a value of the model, on the board."""
        if self._closing.is_set():
            # Who reads the snapshot after the host closed sees what was last true of it, not its taking down.
            return
        if state.stage == "removed":
            self._parked.discard(state.name)
            self._restarted.pop(state.name, None)
            self._board.set_lifecycle(state.name, None)
            return
        if state.stage == "parked":
            self._parked.add(state.name)
        elif state.stage == "backing_off" or state.first:
            self._parked.discard(state.name)
        if state.restarts != self._restarted.get(state.name, (0, 0.0))[0]:
            self._restarted[state.name] = state.restarts, trio.current_time()
        lifecycle = Lifecycle(
            stage=state.stage,
            generation=state.generation,
            restarts=state.restarts,
            restarted_at=self._restarted[state.name][1] if state.restarts else None,
            # A replacement that waits for the old one's end is a first start: calls wait for it.
            first=state.first or state.pending,
            next_retry_at=state.next_retry_at,
            asked=state.asked,
            attempt=state.attempt,
            error=state.reason,
            probation=state.name in self._parked and state.stage in ("starting", "running"),
        )
        before = self._board.status(state.name).lifecycle
        self._board.set_lifecycle(state.name, lifecycle)
        if state.restarts > (0 if before is None else before.restarts):
            restarted(state.name)
        if before is None or before.stage != state.stage:
            decided(state.name, lifecycle, trio.current_time())

    @trio.lowlevel.enable_ki_protection
    async def close(self) -> None:
        """Close in order, within the budget, whatever the servers do; shielded. A checkpoint."""
        self._closing.set()
        unwatch(self)
        with trio.CancelScope(shield=True, deadline=trio.current_time() + CLOSE_BUDGET):
            # Side by side, so that a write that hangs does not take the servers' time; the projector is last.
            async with trio.open_nursery() as nursery:
                nursery.start_soon(self._core.stop_child, "watcher")
                nursery.start_soon(self._core.stop_child, "coordinator")
                nursery.start_soon(self._pool.stop)
            # Who asked for what was just finished still sees it.
            with trio.move_on_after(PROJECTION_GRACE if self._core.ref("projector") is not None else 0):
                await self._board.projected(self._board.version)
            await self._core.stop()
        # Past the budget nothing is waited for but what no scope can cut short. The timer is shielded too: nothing keeps it.
        try:
            self._pool.abort()
            self._core.abort()
            self._board.close()
            self._cell.close()
        finally:
            self._timer.end()
