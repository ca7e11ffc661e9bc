"""Resources and prompts, as a program reads them: what `Host` and `View` can do with them.

Like calls they bypass every mailbox and are made in the caller's own task, by its deadline. A subscription is kept on the board
(`watches`); whoever is connected to the server follows it, so that it outlives the server's restarts.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any

import trio

from .board import Board
from .calls import Calls
from .deadline import IDLE, Deadline, by_deadline
from .given import check_call, check_names
from .line import own_meta
from .model.errors import (
    HostClosed,
    NotSupported,
    OperationTimeout,
    RequestRefused,
    ServerUnavailable,
    UnknownPrompt,
    UnknownServer,
)
from .model.meant import meant_by
from .model.nearest import nearest
from .model.offers import ResourceUpdate
from .model.plain import quoted
from .ports import Library, Progress, RequestFailed
from .refusal import refusal
from .watches import Watch

if TYPE_CHECKING:
    from mcp.types import Completion, GetPromptResult, ReadResourceResult

__all__ = ["Reading"]

SUBSCRIBE_SECONDS = 30.0


class Reading:
    """What a host, or a view, can do with resources and prompts."""

    _board: Board
    _calls: Calls

    def _hidden(self, server: str) -> str | None:
        """Why nothing of a server is given, in words, or None."""
        return None

    async def read_resource(
        self,
        server: str,
        uri: str,
        *,
        timeout: float | None = None,
        progress: Progress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> ReadResourceResult:
        """Read a resource, whether or not it is listed.

        Args:
            server: its name.
            uri: of the resource, or of a template with its variables filled in.
            timeout: seconds in all. None: the entry's ``timeout`` or 60 s without a sign of life, as for a call.
            progress: awaited with (progress, total, message) for each progress notification.
            meta: for the request's ``_meta``.

        Returns:
            Its contents, each a text or a blob in base64.

        Raises:
            UnknownServer: no such server is configured.
            NotSupported: it has no resources; or the view leaves the server out.
            RequestRefused: it does not give it; ``near`` is the listed URI most like it.
            ServerUnavailable, ServerDied, CallTimeout, HostClosed: as in `Host.call`.
        """
        check_names(server, uri)
        check_call(None, timeout, meta)

        async def ask(library: Library, told: Progress) -> Any:
            return await library.read(uri, told, own_meta(meta))

        def near() -> str | None:
            offers = self._board.status(server).offers
            return meant_by(uri, offers.resources, offers.templates)

        return await self._ask(server, "resources", "resource", uri, near, timeout, progress, ask)  # type: ignore[no-any-return]

    async def get_prompt(
        self,
        server: str,
        name: str,
        arguments: Mapping[str, str] | None = None,
        *,
        timeout: float | None = None,
        progress: Progress | None = None,
        meta: Mapping[str, Any] | None = None,
    ) -> GetPromptResult:
        """Fill in a prompt.

        Args:
            server: its name.
            name: the prompt's.
            arguments: strings by name.
            timeout, progress, meta: as in `read_resource`.

        Returns:
            Its messages.

        Raises:
            UnknownServer: no such server is configured.
            NotSupported: it has no prompts; or the view leaves the server out.
            UnknownPrompt: its list is current, and has no prompt of that name.
            RequestRefused: it does not give it, for want of an argument perhaps.
            TypeError: an argument is no string.
            ServerUnavailable, ServerDied, CallTimeout, HostClosed: as in `Host.call`.
        """
        check_names(server, name)
        check_call(arguments, timeout, meta)
        given = _strings(arguments, "arguments of a prompt")

        async def ask(library: Library, told: Progress) -> Any:
            known = self._prompts(server)
            if name not in known and self._current(server, "prompts"):
                raise UnknownPrompt(name, nearest(name, known), server=server)
            return await library.prompt(name, given, told, own_meta(meta))

        return await self._ask(server, "prompts", "prompt", name, None, timeout, progress, ask)  # type: ignore[no-any-return]

    async def complete(
        self,
        server: str,
        argument: str,
        value: str = "",
        *,
        prompt: str | None = None,
        template: str | None = None,
        context: Mapping[str, str] | None = None,
        timeout: float | None = None,
    ) -> Completion:
        """What the value of an argument may go on with.

        Args:
            server: its name.
            argument: of the prompt, or a variable of the template.
            value: what is typed of it.
            prompt, template: the prompt's name, or the URI template; one of them.
            context: arguments that are filled in already.
            timeout: as in `read_resource`.

        Returns:
            ``values``, at most 100 of ``total``.

        Raises:
            UnknownServer: no such server is configured.
            NotSupported: it completes nothing; or the view leaves the server out.
            RequestRefused: it does not complete that.
            ValueError: both a prompt and a template are given, or neither.
            TypeError: an argument is no string.
            ServerUnavailable, ServerDied, CallTimeout, HostClosed: as in `Host.call`.
        """
        if (prompt is None) == (template is None):
            raise ValueError("complete() takes a prompt or a template")
        kind, of = ("prompt", prompt) if prompt is not None else ("template", template or "")
        check_names(server, argument, value, of)
        check_call(context, timeout)
        filled = _strings(context, "arguments that are filled in")

        async def ask(library: Library, told: Progress) -> Any:
            return await library.complete(kind, of, argument, value, filled)

        return await self._ask(server, "completions", f"completions of {kind}", of, None, timeout, None, ask)  # type: ignore[no-any-return]

    @asynccontextmanager
    async def subscribe(
        self, server: str, uri: str, *, timeout: float = SUBSCRIBE_SECONDS
    ) -> AsyncIterator[AsyncIterator[ResourceUpdate]]:
        """Hear of each change of a resource: ``async with host.subscribe(server, uri) as updates``, and iterate over that.

        Conflated: a slow reader gets the newest update only. It goes on when the server is restarted, and gives an update with
        ``missed`` then. The iterator ends when the host closes.

        Args:
            server: its name.
            uri: of the resource.
            timeout: seconds until the server has agreed.

        Yields:
            The updates, to be iterated by one task.

        Raises:
            UnknownServer: no such server is configured.
            NotSupported: it has no subscriptions; or the view leaves the server out.
            RequestRefused: it does not agree; from the iterator: it did, and does not after a restart.
            ServerUnavailable: it cannot be asked now; from the iterator: it will not be back by itself (removed, disabled, …).
            OperationTimeout: it has not agreed in time.
            HostClosed: the host is closed.
        """
        check_names(server, uri)
        watch: Watch | None = None
        try:
            with trio.move_on_after(timeout) as limit:
                line = await self._calls.line(self._shown(server, "subscriptions"))
                if "subscriptions" not in (has := self._library(server, line.connection).has):
                    raise NotSupported(server, "subscriptions" if "resources" in has else "resources")
                watch = self._board.watches.add(server, uri)
                while not watch.generation and not watch.ended:
                    await self._news(watch)
            if limit.cancelled_caught:
                raise OperationTimeout("subscribe", timeout, None)
            assert watch is not None
            self._check(watch)
            yield _Updates(self, watch)
        finally:
            if watch is not None:
                self._board.watches.remove(watch)

    async def _news(self, watch: Watch) -> None:
        """Wait for news of a watch, or of its server."""
        version, news = self._board.version, watch.news
        reason = refusal(self._board.config.config.get(watch.server), self._board.status(watch.server))
        if reason is not None and not self._will_be_back(watch.server):
            raise ServerUnavailable(watch.server, reason)
        async with trio.open_nursery() as nursery:

            async def of_the_server() -> None:
                try:
                    await self._board.changed(version)
                except trio.ClosedResourceError:
                    watch.ended = True
                nursery.cancel_scope.cancel()

            nursery.start_soon(of_the_server)
            await news.wait()
            nursery.cancel_scope.cancel()

    def _will_be_back(self, server: str) -> bool:
        entry, life = self._board.config.config.get(server), self._board.status(server).lifecycle
        report = self._board.status(server).report
        if entry is None or not entry.runnable:
            return False
        return life is None or not (report is not None and report.needs_auth)

    def _check(self, watch: Watch) -> None:
        if watch.ended:
            raise HostClosed
        if watch.refused is not None:
            raise RequestRefused(watch.server, f"changes of {quoted(watch.uri)}", watch.refused)

    async def _ask(
        self,
        server: str,
        feature: str,
        kind: str,
        name: str,
        near: Callable[[], str | None] | None,
        timeout: float | None,
        progress: Progress | None,
        ask: Callable[[Library, Progress], Awaitable[Any]],
    ) -> Any:
        entry = self._board.config.config.get(self._shown(server, feature))
        assert entry is not None

        async def work(deadline: Deadline) -> Any:
            line = await self._calls.line(server)
            library = self._library(server, line.connection)
            if feature not in library.has:
                raise NotSupported(server, feature)
            try:
                return await line.use(lambda: ask(library, deadline.note(progress)), deadline)
            except RequestFailed as failed:
                meant = None if near is None else near()
                reason = failed.reason.removesuffix(f": {{'uri': {name!r}}}")  # it was named already
                raise RequestRefused(server, f"{kind} {quoted(name)}", reason, failed.code, meant) from None

        return await by_deadline(f"{server}: {name}", timeout, entry.timeout or IDLE, work, what=kind)

    def _library(self, server: str, connection: object) -> Library:
        library: Library | None = getattr(connection, "library", None)
        if library is None:
            raise NotSupported(server, "resources")
        return library

    def _configured(self, server: str) -> str:
        config = self._board.config.config
        if self._calls.closing():
            raise HostClosed
        if config.get(server) is None:
            raise UnknownServer(server, nearest(server, (each.name for each in config.servers)), config.path)
        return server

    def _shown(self, server: str, feature: str) -> str:
        if (reason := self._hidden(self._configured(server))) is not None:
            raise NotSupported(server, feature, reason)
        return server

    def _prompts(self, server: str) -> list[str]:
        return [each.name for each in self._board.status(server).offers.prompts]

    def _current(self, server: str, shelf: str) -> bool:
        status = self._board.status(server)
        report = status.report
        if report is None or getattr(status.offers, f"{shelf}_error") is not None:
            return False
        return bool(getattr(status.offers, f"{shelf}_generation") == report.generation)


def _strings(given: Mapping[str, Any] | None, what: str) -> dict[str, str]:
    for key, value in (given or {}).items():
        if not isinstance(value, str):
            raise TypeError(f"{what} are strings, and {key!r} is {value!r}")
    return dict(given or {})


class _Updates(AsyncIterator[ResourceUpdate]):
    def __init__(self, reading: Reading, watch: Watch) -> None:
        self._reading = reading
        self._watch = watch

    async def __anext__(self) -> ResourceUpdate:
        await trio.lowlevel.checkpoint()
        watch = self._watch
        while watch.pending is None:
            if watch.ended:
                raise StopAsyncIteration
            self._reading._check(watch)
            await self._reading._news(watch)
        update, watch.pending = watch.pending, None
        return update
