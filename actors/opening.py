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
from collections.abc import AsyncIterator, Callable, Iterable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from pathlib import Path
from typing import TypeVar

import trio

from ..supervision import Backoff, Intensity
from .coordinator import Run
from .edge.config.file import FileStore
from .edge.wire.connecting import open_connect
from .host import Host
from .house import House
from .model.config import Config, ConfigState
from .model.errors import ConfigError, OperationTimeout, PlaybillError
from .model.snapshot import Budget, NativeTool
from .ports import Connect, Sites, Store
from .server import ServerSettings
from .sources import find_store

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

    Args:
        config: path of an ``mcp.json``; or a `Config` value, and operations change memory only; or None to find the
            project's ``.mcp.json`` (nearest parent), else the user's.
        native_tools: the program's own tools; they always ship.
        budget: how many tools, native and MCP, the catalog holds at most.
        connect: opens connections; None for real processes and remote servers. For tests and fault kits.
        store: where the configuration lives; None for the file or value given. For tests and fault kits: it is not called in
            a thread.
        settings: the times of server actors.
        backoff, intensity: when a server that died is started again, and when it is parked.
        operation_timeout: seconds an operation may take until it is visible.
        rng: for the jitter of restarts.
        sites: where a fault kit may strike in the core actors; None: nowhere.

    Raises:
        ConfigError: the configuration cannot be read.
        ValueError: two native tools have one name.
        PlaybillError: it does not run under trio.
        Escalated: a core actor could not be kept alive.
        BaseException: what the body raises, as it is, not in a group.
    """
    try:
        trio.lowlevel.current_trio_token()
    except RuntimeError:
        raise PlaybillError("a host runs inside trio.run(), and this is not trio") from None
    names = [tool.name for tool in native_tools]
    if len(set(names)) != len(names):
        raise ValueError(f"native tool {next(name for name in names if names.count(name) > 1)!r} is given twice")
    cap = Budget(budget) if isinstance(budget, int) else budget
    place = find_store(config) if store is None else store
    run = _in_thread if isinstance(place, FileStore) and store is None else _inline
    first = ConfigState(1, await _first_load(place, run))
    body_error: BaseException | None = None
    try:
        async with AsyncExitStack() as stack:
            if connect is None:
                connect = await stack.enter_async_context(open_connect())
            nursery = await stack.enter_async_context(trio.open_nursery())
            house = House(
                store=place, run=run, first=first, natives=tuple(native_tools), budget=cap, connect=connect,
                settings=settings or ServerSettings(), backoff=backoff, intensity=intensity,
                operation_timeout=operation_timeout, rng=rng or random.Random(), sites=sites,
            )  # fmt: skip
            try:
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


async def _first_load(store: Store, run: Run) -> Config:
    try:
        return await run(store.load)
    except OperationTimeout:
        path = str(store.path) if isinstance(store, FileStore) else None
        raise ConfigError(
            f"cannot be read: the file system gave no answer within {STORE_PATIENCE:g} s", file=path
        ) from None


async def _in_thread(work: Callable[[], T], /) -> T:
    with trio.move_on_after(STORE_PATIENCE):
        return await trio.to_thread.run_sync(work, abandon_on_cancel=True)
    raise OperationTimeout("reading or writing the configuration", STORE_PATIENCE, None)


async def _inline(work: Callable[[], T], /) -> T:
    await trio.lowlevel.checkpoint()
    return work()
