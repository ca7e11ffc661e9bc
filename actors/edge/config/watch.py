"""Watching files for changes: tells when it is worth looking at them again, and nothing else.

Theory of operation. `watch_plan` says which folders to watch; watchfiles watches them, in a thread of its own, for as long
as that plan holds. What it tells is settled (until `STEP` passes without news, `LONGEST` at most), filtered to what concerns
us, and answered with one call of ``changed``, which compares by content: a change that leaves the text as it was costs one
look. A file that is not there gets `RETURN` to come back: many editors move the old one away and write a new one.

    survey ─▶ watch begins ─▶ survey again ─same─▶ call ``changed`` ─▶ wait ─▶ settle ─▶ call ``changed`` ─▶ survey ─same─▶ wait
      ▲                          │ not the same                                                               │ not the same
      └──────────────────────────┴────────────────────────────────────────────────────────────────────────────┘

As it is surveyed and told once more after the watch has begun, nothing that happens in between is missed. A watched folder
that is deleted, moved away or made again changes the plan, and the watch begins anew.

It costs no look at the files as long as nothing happens. Where changes cannot be had from the system, watchfiles polls
(``WATCHFILES_FORCE_POLLING``); it does so by whole seconds of the file's time, so then ``changed`` is called every
`POLL_LOOK` seconds besides.
"""

from __future__ import annotations

import importlib.util
import math
import os
import platform
import stat
from collections.abc import Awaitable, Callable, Collection
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import NoReturn

import trio

from ...model.errors import PlaybillError
from .watch_plan import Plan, Seen, plan

__all__ = ["require_watchfiles", "survey", "watch"]

STEP = 0.1
"""Seconds without news after which a change is told; also how often the watching thread looks whether it is to end."""

LONGEST = 0.5
"""Seconds after which a change is told though the news go on."""

RETURN = 0.3
"""Seconds that a file which has just gone may take to come back."""

POLL_LOOK = 2.0
"""Seconds between looks where changes are polled for."""

LEAVING = 1.0
"""Seconds that the thread may take to end; then it is left behind (a file system that does not answer holds it)."""

Paths = Callable[[], Collection[str | Path]]


def can_watch() -> bool:
    """Whether the package that watches is installed. Imports nothing."""
    return importlib.util.find_spec("watchfiles") is not None


def require_watchfiles() -> None:
    """Refuse to watch without the package that does it. Imports nothing.

    Raises:
        PlaybillError: it is not installed.
    """
    if not can_watch():
        how = "install playbill with its extra 'watch' (in a clone: pip install '.[watch]')"
        raise PlaybillError(f"watching the configuration needs watchfiles: {how}")


def survey(paths: Collection[str | Path]) -> Plan:
    """Look at the file system and plan the watch of these files; a file or folder that is missing is part of the plan."""
    return plan([Path(path).absolute() for path in paths], _look, partial(os.access, mode=os.R_OK))


def _look(path: str) -> Seen:
    try:
        found = os.lstat(path)
        if stat.S_ISLNK(found.st_mode):
            return Seen("link", target=str(Path(path).readlink()))
    except OSError:
        return Seen("missing")
    if stat.S_ISDIR(found.st_mode):
        return Seen("folder", identity=(found.st_dev, found.st_ino))
    return Seen("file")


async def watch(
    paths: Paths, changed: Callable[[], Awaitable[None]], *, watching: Callable[[], None] = lambda: None
) -> NoReturn:
    """Watch files until cancelled. The thread behind it has then ended too.

    Args:
        paths: the files now; asked anew whenever something changes.
        changed: awaited once when the watch has begun, and after each change that can have changed what a file says.
            Changes that come meanwhile are told together by the next call.
        watching: called, never waiting, whenever a watch has begun.

    Raises:
        OSError: the system lets nobody watch these folders.
        Exception: what watchfiles or ``changed`` raised.
    """
    while True:
        now = await _survey(paths)
        try:
            await _hold(now, paths, changed, watching)
        except FileNotFoundError:
            # A folder went between the look and the watch. The plan is another one now, or something else is wrong.
            if await _survey(paths) == now:
                raise


async def _survey(paths: Paths) -> Plan:
    return await trio.to_thread.run_sync(survey, paths(), abandon_on_cancel=True)


class _Thread:
    """The watching thread's end of things; to watchfiles it is the event that ends the watch.

    Args:
        tell: takes the paths that changed, or what went wrong; called in the loop.
    """

    def __init__(self, tell: Callable[[frozenset[str] | Exception], None]) -> None:
        self._tell = tell
        self._token = trio.lowlevel.current_trio_token()
        self._begun = False
        self.ended = False

    def is_set(self) -> bool:
        """Whether to end. watchfiles asks this first when it watches, which is how we know."""
        if not self._begun:
            self._begun = True
            self._say(frozenset())
        return self.ended

    def listen(self, plan: Plan) -> None:
        """Watch in this thread until ended; what goes wrong is told and not raised."""
        try:
            from watchfiles import watch as changes

            polled = _polled()
            for found in changes(
                *(folder for folder, _ in plan.folders),
                watch_filter=lambda _, path: plan.concerns(path),
                debounce=round(LONGEST * 1000),
                step=round(STEP * 1000),
                stop_event=self,
                rust_timeout=round(POLL_LOOK * 1000) if polled else 0,
                yield_on_timeout=polled,
                raise_interrupt=False,
                recursive=False,
            ):
                self._say(frozenset(path for _, path in found))
            if not self.ended:
                raise RuntimeError("the watch ended by itself")
        except Exception as error:
            self._say(error)
        except BaseException as error:  # a panic of the Rust code is no Exception, and no reason to end a host
            self._say(RuntimeError(f"{type(error).__name__}: {error}"))

    def _say(self, news: frozenset[str] | Exception) -> None:
        with suppress(trio.RunFinishedError):
            self._token.run_sync_soon(self._tell, news)


def _polled() -> bool:
    """Whether watchfiles will poll: by its own rule."""
    asked = os.environ.get("WATCHFILES_FORCE_POLLING")
    if asked:
        return asked.lower() not in ("false", "disable", "disabled")
    return platform.system() == "Linux" and "microsoft-standard" in platform.release().lower()


async def _hold(plan: Plan, paths: Paths, changed: Callable[[], Awaitable[None]], watching: Callable[[], None]) -> None:
    """Watch by one plan, until it does not hold any more."""
    news_in, news = trio.open_memory_channel[frozenset[str] | Exception](math.inf)

    def tell(what: frozenset[str] | Exception) -> None:
        with suppress(trio.BrokenResourceError):
            news_in.send_nowait(what)

    thread = _Thread(tell)
    patience = trio.CancelScope(shield=True)

    async def listen() -> None:
        with patience:
            # A limiter of its own: the program's threads are not ours to occupy.
            await trio.to_thread.run_sync(thread.listen, plan, abandon_on_cancel=True, limiter=trio.CapacityLimiter(1))

    failure: Exception | None = None
    async with trio.open_nursery() as nursery:
        nursery.start_soon(listen)
        try:
            with news:
                await _attend(news, plan, paths, changed, watching)
        except Exception as error:
            failure = error  # not from here: it would leave in a group
        finally:
            thread.ended = True
            patience.deadline = trio.current_time() + LEAVING
    if failure is not None:
        raise failure


async def _attend(
    news: trio.MemoryReceiveChannel[frozenset[str] | Exception],
    plan: Plan,
    paths: Paths,
    changed: Callable[[], Awaitable[None]],
    watching: Callable[[], None],
) -> None:
    """Answer the news of one watch; returns when its plan does not hold any more."""
    heard = await _hear(news)
    if await _survey(paths) != plan:
        return
    watching()
    await changed()
    while not plan.outdated_by(heard):
        heard = await _hear(news)
        now = await _survey(paths)
        if now.missing - plan.missing:  # what was missing before is not being saved
            with trio.move_on_after(RETURN):
                while now.missing - plan.missing:
                    heard |= await _hear(news)
                    now = await _survey(paths)
        await changed()
        if now != plan:
            return


async def _hear(news: trio.MemoryReceiveChannel[frozenset[str] | Exception]) -> frozenset[str]:
    """Wait for news; all there are come together."""
    heard = frozenset[str]()
    what = await news.receive()
    while True:
        if isinstance(what, Exception):
            raise what
        heard |= what
        try:
            what = news.receive_nowait()
        except trio.WouldBlock:
            return heard
