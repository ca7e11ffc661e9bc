"""The composition root: `open_host` joins the cast with the outside world, and takes it all down again.

Theory of operation
    Two supervisors run in the caller's own nursery: ``core`` (the projector and the coordinator; when one of them cannot be
    kept alive, that leaves `open_host` as `Escalated`) and ``pool`` (one child for each server that is meant to run; those
    park). Everything that must outlive an actor is made here and handed in: board, desk, snapshot cell, era memory.

    Closing refuses operations, lets a begun write end, stops the servers side by side and the projector last, all within
    one budget of 10 s, whatever the servers do.
"""

from __future__ import annotations

import random
import threading
from collections.abc import AsyncIterator, Callable, Collection, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, TypeVar

import trio

from ..supervision import Backoff, Intensity
from .model.budget import Budget, as_budget
from .model.client import ClientHandlers
from .model.config import Config, ConfigState
from .model.errors import ConfigError, OperationTimeout, PlaybillError
from .model.native import NativeTool, check_natives
from .model.profile import PORTABLE, Profile, find_profile
from .model.settings import ServerSettings

if TYPE_CHECKING:
    from .coordinator import Run
    from .edge.auth.hub import Hub
    from .edge.config.discover import Scope
    from .edge.config.inputs import Inputs
    from .host import Host
    from .ports import Connect, Sites, Store

__all__ = ["open_host"]

T = TypeVar("T")

STORE_PATIENCE = 8.0
"""Seconds after which a file system that does not answer is given up for this operation."""

SERVER_BACKOFF = Backoff(base=0.5, max=30.0, reset_after=30.0)
SERVER_INTENSITY = Intensity(restarts=5, window=60.0, then="park", park_retry=300.0)


@asynccontextmanager
async def open_host(
    config: Path | str | Config | None = None,
    *,
    native_tools: Sequence[NativeTool] = (),
    budget: Budget | int = 100,
    profile: Profile | str = PORTABLE,
    inputs: Inputs | None = None,
    inherit_env: Collection[str] | bool = (),
    scope: Scope | None = None,
    watch: bool = False,
    handlers: ClientHandlers | None = None,
    login_folder: Path | str | None = None,
    connect: Connect | None = None,
    store: Store | None = None,
    settings: ServerSettings | None = None,
    backoff: Backoff = SERVER_BACKOFF,
    intensity: Intensity = SERVER_INTENSITY,
    operation_timeout: float = 30.0,
    rng: random.Random | None = None,
    sites: Sites | None = None,
) -> AsyncIterator[Host]:
    """Open a host: many MCP servers, supervised inside the caller's own ``trio.run``.

    It returns at once: every actor is registered, no server need have answered. Leaving it ends everything that it started.
    The first one imports most of the package, in one step (0.1 to 0.4 s); to have most of that behind you, import
    ``playbill.actors.house`` before.

    Args:
        config: path of an ``mcp.json``; or a `Config` value, and operations change memory only; or None to find the
            project's ``.mcp.json`` (in the nearest folder from here upwards) and the user's file. Both are then in force: of a
            name that is in both, the project's entry. What a project's file starts runs only once it is trusted
            (`Host.trust`).
        native_tools: the program's own tools; they always ship.
        budget: how many tools, native and MCP, the catalog holds at most.
        profile: what the catalog is made for: a provider's name, or ``portable`` for what all of them take (`Profile`).
        inputs: values of ``${input:ID}`` by id; or a function, sync or async, from an `InputSpec` to a value, or None for want
            of one. It is asked at each start of a server that needs it, one input at a time, within the ``connectTimeout``.
            Else the variable ``PLAYBILL_INPUT_<ID>`` counts, then a declared default.
        inherit_env: names of variables of this process that each local server gets besides the usual few; True: all.
        scope: without a ``config``: only the file of this scope, ``project`` or ``user``, which need not be there.
        watch: reload by itself when the file changes, whoever changes it and however. It does nothing for a `Config` value.
        handlers: what servers may ask of the program (sampling, elicitation, roots) and tell it (logging); what has no
            handler is not announced to them.
        login_folder: where logins at remote servers are kept (`Host.login`); None: in the user's state folder of playbill.
        connect: opens connections; None for real processes and remote servers. For tests and fault kits: ``inputs`` and
            ``inherit_env`` are not used then.
        store: where the configuration lives; None for the file or value given. For tests and fault kits: it is not called in
            a thread.
        settings: the times of server actors.
        backoff, intensity: when a server that died is started again, and when it is parked.
        operation_timeout: seconds an operation may take until it is visible.
        rng: for the jitter of restarts.
        sites: where a fault kit may strike in the core actors; None: nowhere.

    Raises:
        ConfigError: the configuration cannot be read; of two files: neither can.
        ValueError: there is no such profile; or it does not take the native tools (`check_natives`), or two have one name.
        TypeError: ``budget``, ``inputs``, ``inherit_env`` or ``handlers`` is something else.
        PlaybillError: it does not run under trio; or ``watch`` is asked for and its extra is not installed.
        Escalated: a core actor could not be kept alive.
        BaseException: what the body raises, as it is, not in a group.
    """
    try:
        trio.lowlevel.current_trio_token()
    except RuntimeError:
        raise PlaybillError(
            "a host runs inside trio.run(), and this is not trio (beside asyncio: docs/embedding.md)"
        ) from None
    cap = as_budget(budget)
    if cap is None:
        raise TypeError("a budget is a whole number of tools or a Budget, not None (Budget(None) is no cap)")
    if handlers is not None and not isinstance(handlers, ClientHandlers):
        raise TypeError(f"handlers are ClientHandlers, not {handlers!r}")
    taker = find_profile(profile)
    check_natives(native_tools, taker)
    # Only now: most programs import this long before they open a host, and some never do. Once; 0.1 s or so.
    from .edge.config.file import MemoryStore
    from .house import House
    from .sources import find_store

    place = find_store(config, scope) if store is None else store
    threads = _Threads()
    run: Run = threads if store is None and not isinstance(place, MemoryStore) else _inline
    if watched := watch and bool(place.watched()):
        from .edge.config.watch import require_watchfiles

        require_watchfiles()
    config, known = await _first_load(place, run)
    first = ConfigState(1, config, None if config.error is None else str(config.error))
    body_error: BaseException | None = None
    try:
        async with AsyncExitStack() as stack:
            logins: Hub | None = None
            if connect is None:
                from .edge.auth.hub import open_hub
                from .edge.wire.connecting import open_connect

                folder = None if login_folder is None else Path(login_folder)
                logins = await stack.enter_async_context(open_hub(folder, inputs))
                connect = await stack.enter_async_context(open_connect(inputs, inherit_env, logins.login_for))
            nursery = await stack.enter_async_context(trio.open_nursery())
            house = House(
                store=place, run=run, first=first, known=known, watched=watched,
                natives=tuple(native_tools), budget=cap, profile=taker, connect=connect,
                settings=settings or ServerSettings(), backoff=backoff, intensity=intensity,
                operation_timeout=operation_timeout, rng=rng or random.Random(), sites=sites, handlers=handlers,
                logins=logins,
            )  # fmt: skip
            try:
                threads.late = house.look_late
                await house.start(nursery)
                try:
                    yield house.host
                except BaseException as error:
                    body_error = error
                    raise
            finally:
                await house.close()
                nursery.cancel_scope.cancel()
    except BaseExceptionGroup as group:
        alone = _alone(group, body_error)
    else:
        return
    raise alone


def _alone(group: BaseExceptionGroup[BaseException], body_error: BaseException | None) -> BaseException:
    """The one error that should leave: the body's own if it is among them, else the only leaf, else the group."""
    leaves = list(_leaves(group))
    others = [leaf for leaf in leaves if not isinstance(leaf, trio.Cancelled)]
    # By the leaves: a cancel scope on the way takes groups apart and makes others of them.
    own = list(_leaves(body_error)) if isinstance(body_error, BaseExceptionGroup) else [body_error]
    own = [leaf for leaf in own if not isinstance(leaf, trio.Cancelled)]
    if body_error is not None and own and all(any(leaf is each for each in others) for leaf in own):
        return body_error
    for leaf in others:
        if not isinstance(leaf, Exception):
            return leaf  # Ctrl-C, or the program's exit: whatever else broke on the way, that is why
    if len(others) == 1:
        return others[0]
    return leaves[0] if not others and len(leaves) == 1 else group


def _leaves(group: BaseExceptionGroup[BaseException]) -> Iterable[BaseException]:
    for each in group.exceptions:
        if isinstance(each, BaseExceptionGroup):
            yield from _leaves(each)
        else:
            yield each


async def _first_load(store: Store, run: Run) -> tuple[Config, str | None]:
    """The first configuration, and the fingerprint of its text."""
    try:
        return await run(lambda: (store.load(), store.answered()))
    except OperationTimeout:
        from .edge.config.file import FileStore

        path = str(store.path) if isinstance(store, FileStore) else None
        raise ConfigError(
            f"cannot be read: the file system gave no answer within {STORE_PATIENCE:g} s", file=path
        ) from None


class _Threads:
    """Runs a store's work in worker threads, each for `STORE_PATIENCE` seconds at most.

    A thread cannot be ended from outside. One that is given up ends by itself where the store looks whether anybody still waits
    (`FileStore` does so just before it replaces the file); if it got its work done after all, that is told.
    """

    def __init__(self) -> None:
        self.late: Callable[[], None] = lambda: None
        """Called in the loop when the work of a thread that was given up is over."""

    async def __call__(self, work: Callable[[], T], /) -> T:
        """As `Run`. A checkpoint."""
        token = trio.lowlevel.current_trio_token()
        given_up, over = threading.Event(), threading.Event()

        def visit() -> T:
            try:
                return work()
            finally:
                over.set()
                if given_up.is_set():
                    with suppress(trio.RunFinishedError):
                        token.run_sync_soon(self.late)

        with trio.move_on_after(STORE_PATIENCE):
            return await trio.to_thread.run_sync(visit, abandon_on_cancel=True)
        given_up.set()
        if over.is_set():  # just now: the thread may not have seen that it was given up
            self.late()
        raise OperationTimeout("reading or writing the configuration", STORE_PATIENCE, None)


async def _inline(work: Callable[[], T], /) -> T:
    await trio.lowlevel.checkpoint()
    return work()
