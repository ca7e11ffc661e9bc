"""What a server offers besides tools: resources and prompts, read, listed, completed and followed; fulfils `ports.Library`.

Changes are announced in two ways. Before 2026-07-28 they come by themselves, those of single resources once these were
subscribed to. Since then a stream has to be open (``subscriptions/listen``) that names what it is to bring: one for all lists
(`link` holds it), and one for the resources that somebody follows, which is opened anew, before the old one is closed, whenever
they are others. Nothing is replayed: a stream that was lost and is open again means that everything may have changed.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

import trio
from mcp.client.subscriptions import (
    ListenNotSupportedError,
    PromptsListChanged,
    ResourcesListChanged,
    ResourceUpdated,
    SubscriptionLost,
    listen,
)
from mcp.shared.exceptions import MCPError
from mcp_types import (
    METHOD_NOT_FOUND,
    CompleteRequest,
    CompleteRequestParams,
    CompleteResult,
    CompletionArgument,
    CompletionContext,
    EmptyResult,
    GetPromptRequest,
    GetPromptRequestParams,
    GetPromptResult,
    InputRequiredResult,
    PromptReference,
    ReadResourceRequest,
    ReadResourceRequestParams,
    ReadResourceResult,
    ResourceTemplateReference,
    SubscribeRequest,
    SubscribeRequestParams,
    UnsubscribeRequest,
    UnsubscribeRequestParams,
)
from pydantic import TypeAdapter, ValidationError

from ...ports import ConnectionLost, ListFailed, Progress, PromptListing, RequestFailed, ResourceListing, Shelf
from ...telemetry.log import Log
from . import shelves
from .listing import explain_validation
from .rounds import NoInput, Round, play_rounds
from .wire import one_line

if TYPE_CHECKING:
    from mcp.client.session import ClientSession
    from mcp.shared.dispatcher import ProgressFnT

    from .link import Link

__all__ = ["News", "Shelves", "failed_by"]

_LOG = Log("playbill.edge")

LEAVING_SECONDS = 5.0
"""How long a new subscription waits for the answer to the end of the one before."""

MAX_COMPLETIONS = 100
"""Values of one completion, as the protocol has it; what a server gives beyond is left out."""

SUBSCRIBED_AT_ONCE = 32
"""Requests for the changes of a resource that wait for an answer at the same time."""

RELISTEN_FIRST, RELISTEN_MOST = 0.1, 5.0
"""Seconds before a stream of changes that ended is opened again: the first time, and at most."""

_READ: TypeAdapter[Any] = TypeAdapter(ReadResourceResult | InputRequiredResult)
_PROMPT: TypeAdapter[Any] = TypeAdapter(GetPromptResult | InputRequiredResult)

_LISTS: dict[str, Shelf] = {
    "notifications/resources/list_changed": "resources",
    "notifications/prompts/list_changed": "prompts",
}


class News:
    """Announcements of one server, on their way to whoever follows them; made before there is a session."""

    def __init__(self) -> None:
        self.changed: Callable[[Shelf], None] = lambda shelf: None
        self.updated: Callable[[str, bool], None] = lambda uri, missed: None
        self.subscribed_only = False
        """Only what a stream brings counts: set of a server of 2026-07-28 or later."""

    def heard(self, method: str, params: Mapping[str, Any] | None) -> bool:
        """Take a notification, if it is one of these; returns whether it was. Never waits."""
        shelf = _LISTS.get(method)
        if shelf is None and method != "notifications/resources/updated":
            return False
        if not self.subscribed_only:
            uri = (params or {}).get("uri")
            if shelf is not None:
                self.changed(shelf)
            elif isinstance(uri, str):
                self.updated(uri, False)
        return True


class Shelves:
    """The library of one link.

    Args:
        link: over an initialised session.
        session: it.
        news: hears what the server announces.
    """

    def __init__(self, link: Link, session: ClientSession, news: News) -> None:
        self._link = link
        self._session = session
        self._news = news
        news.subscribed_only = link.era == "modern"
        self._resources: ResourceListing = ResourceListing((), ())
        self._prompts: PromptListing = PromptListing(())
        self._followed: frozenset[str] = frozenset()
        self._leaving: dict[str, trio.Event] = {}
        self._subscribing = trio.Semaphore(SUBSCRIBED_AT_ONCE)
        self._wanted: frozenset[str] = frozenset()
        self._answers: dict[str, str | None] = {}
        self.listed: set[Shelf] = set()
        """Which were asked for."""
        self._wish = trio.Event()
        self._answered = trio.Event()

    @property
    def has(self) -> frozenset[str]:
        """As `ports.Library`."""
        said = self._session.server_capabilities
        if said is None:
            return frozenset()
        found = {
            "resources": said.resources is not None,
            "prompts": said.prompts is not None,
            "completions": said.completions is not None,
            "subscriptions": said.resources is not None
            and (self._link.era == "modern" or bool(said.resources.subscribe)),
        }
        return frozenset(name for name, there in found.items() if there)

    def announces(self) -> dict[Shelf, bool]:
        """Which of its lists the server says it announces changes of."""
        said = self._session.server_capabilities
        return {
            "resources": bool(said and said.resources and said.resources.list_changed),
            "prompts": bool(said and said.prompts and said.prompts.list_changed),
        }

    def brought(self, event: object) -> None:
        """Take what the stream of changes of lists brought; None: it is open, and what was before, nobody knows."""
        if isinstance(event, ResourcesListChanged) or (event is None and "resources" in self.listed):
            self._news.changed("resources")
        if isinstance(event, PromptsListChanged) or (event is None and "prompts" in self.listed):
            self._news.changed("prompts")

    def missed(self) -> None:
        """Announcements may not have come: everything may have changed. Never waits."""
        self.brought(None)
        for uri in self._followed | self._wanted:
            self._news.updated(uri, True)

    def listen(self, changed: Callable[[Shelf], None], updated: Callable[[str, bool], None]) -> None:
        """As `ports.Library`."""
        self._news.changed, self._news.updated = changed, updated

    # ── lists ────────────────────────────────────────────────────────────────────────────────────────────────────────

    async def list_resources(self) -> ResourceListing:
        """As `ports.Library`; empty, without asking, when the server declares none."""
        if "resources" not in self.has:
            await trio.lowlevel.checkpoint()
            return ResourceListing((), ())
        problems: list[str] = []
        before = self._resources
        session = self._session
        self.listed.add("resources")
        found, unknown = before.resources, None
        try:
            found = await self._listed(
                "resources/list", lambda: shelves.list_resources(session, before.resources, problems)
            )
        except ListFailed as failed:
            if failed.code != METHOD_NOT_FOUND:
                raise
            found, unknown = (), failed  # it may know templates all the same
            problems.append(failed.reason)
        templates, again = before.templates, False
        left = trio.current_effective_deadline() - trio.current_time()
        try:
            with trio.fail_after(left / 2):  # so that what is listed already is not lost with them
                templates = await self._listed(
                    "resources/templates/list", lambda: shelves.list_templates(session, before.templates, problems)
                )
        except trio.TooSlowError:
            problems.append(f"resources/templates/list: no answer within {left / 2:g} s")
            again = True
        except ListFailed as failed:
            if failed.code != METHOD_NOT_FOUND:  # which only means that it knows none
                problems.append(failed.reason)
                again = True
            elif unknown is not None:
                raise unknown from None
        self._resources = ResourceListing(found, templates, self._told(problems), again)
        return self._resources

    async def list_prompts(self) -> PromptListing:
        """As `ports.Library`; empty, without asking, when the server declares none."""
        if "prompts" not in self.has:
            await trio.lowlevel.checkpoint()
            return PromptListing(())
        problems: list[str] = []
        self.listed.add("prompts")
        before, session = self._prompts.prompts, self._session
        found = await self._listed("prompts/list", lambda: shelves.list_prompts(session, before, problems))
        self._prompts = PromptListing(found, self._told(problems))
        return self._prompts

    def _told(self, problems: list[str]) -> tuple[str, ...]:
        return tuple(one_line(self._link.scrub(problem)) for problem in problems)

    async def _listed(self, what: str, fetch: Callable[[], Awaitable[Any]]) -> Any:
        try:
            return await self._link.asked(fetch)
        except RequestFailed as failed:
            raise ListFailed(f"{what}: {failed.reason}", code=failed.code) from None

    # ── single requests ──────────────────────────────────────────────────────────────────────────────────────────────

    async def read(self, uri: str, progress: Progress | None, meta: Mapping[str, Any] | None) -> Any:
        """As `ports.Library`."""

        async def ask(given: Round) -> Any:
            params = ReadResourceRequestParams(
                uri=uri, input_responses=given.responses, request_state=given.state, _meta=_meta(meta)
            )
            return await self._send(ReadResourceRequest(params=params), _READ, progress)

        return await self._link.asked(lambda: play_rounds(self._session, ask, self._link.lost))

    async def prompt(
        self, name: str, arguments: Mapping[str, str], progress: Progress | None, meta: Mapping[str, Any] | None
    ) -> Any:
        """As `ports.Library`."""

        async def ask(given: Round) -> Any:
            params = GetPromptRequestParams(
                name=name,
                arguments=dict(arguments) or None,
                input_responses=given.responses,
                request_state=given.state,
                _meta=_meta(meta),
            )
            return await self._send(GetPromptRequest(params=params), _PROMPT, progress)

        return await self._link.asked(lambda: play_rounds(self._session, ask, self._link.lost))

    async def complete(self, kind: str, of: str, argument: str, value: str, context: Mapping[str, str]) -> Any:
        """As `ports.Library`."""
        ref = PromptReference(name=of) if kind == "prompt" else ResourceTemplateReference(uri=of)
        params = CompleteRequestParams(
            ref=ref,
            argument=CompletionArgument(name=argument, value=value),
            context=CompletionContext(arguments=dict(context)) if context else None,
        )
        request = CompleteRequest(params=params)
        result = await self._link.asked(lambda: self._session.send_request(request, CompleteResult))
        completion = result.completion
        if len(completion.values) > MAX_COMPLETIONS:
            completion = completion.model_copy(update={"values": completion.values[:MAX_COMPLETIONS], "has_more": True})
        return completion

    async def _send(self, request: Any, adapter: TypeAdapter[Any], progress: Progress | None) -> Any:
        callback = cast("ProgressFnT | None", progress)
        return await self._session.send_request(request, adapter, progress_callback=callback)

    # ── what is followed ─────────────────────────────────────────────────────────────────────────────────────────────

    async def follow(self, uris: frozenset[str], told: Callable[[str, str | None], None]) -> None:
        """As `ports.Library`."""
        if "subscriptions" not in self.has:
            await trio.lowlevel.checkpoint()
            for uri in uris:
                told(uri, "the server tells no changes of single resources")
        elif self._link.era == "modern":
            await self._wish_for(uris, told)
        else:
            lost: list[ConnectionLost] = []
            async with trio.open_nursery() as nursery:
                for uri in sorted(uris):
                    nursery.start_soon(self._subscribe, uri, told, lost)
            if lost:
                raise lost[0]

    async def _subscribe(self, uri: str, told: Callable[[str, str | None], None], lost: list[ConnectionLost]) -> None:
        if (leaving := self._leaving.get(uri)) is not None:
            with trio.move_on_after(LEAVING_SECONDS):
                await leaving.wait()
        request = SubscribeRequest(params=SubscribeRequestParams(uri=uri))
        async with self._subscribing:
            try:
                await self._link.asked(lambda: self._session.send_request(request, EmptyResult))
            except RequestFailed as failed:
                told(uri, failed.reason)
            except ConnectionLost as error:
                lost.append(error)
            else:
                self._followed |= {uri}
                told(uri, None)

    async def unfollow(self, uris: frozenset[str]) -> None:
        """As `ports.Library`."""
        await trio.lowlevel.checkpoint()
        if self._link.era == "modern":
            self._wanted -= uris
            self._wish.set()
            return
        async with trio.open_nursery() as nursery:
            for uri in sorted(uris & self._followed):
                nursery.start_soon(self._unsubscribe, uri)

    async def _unsubscribe(self, uri: str) -> None:
        self._followed -= {uri}
        left = self._leaving[uri] = trio.Event()
        request = UnsubscribeRequest(params=UnsubscribeRequestParams(uri=uri))
        try:
            with contextlib.suppress(RequestFailed, ConnectionLost):
                await self._link.asked(lambda: self._session.send_request(request, EmptyResult))
        finally:
            left.set()
            if self._leaving.get(uri) is left:
                del self._leaving[uri]

    async def _wish_for(self, uris: frozenset[str], told: Callable[[str, str | None], None]) -> None:
        left = set(uris)
        for uri in uris:
            self._answers.pop(uri, None)
        self._wanted |= uris
        self._wish.set()
        try:
            while left:
                answered = self._answered
                for uri in sorted(left & self._answers.keys()):
                    left.discard(uri)
                    told(uri, self._answers[uri])
                if left:
                    await first_of(answered, self._link.lost)
                    await self._link.refuse_when_lost()
        finally:
            if left:  # given up
                self._wanted -= left
                self._wish.set()

    async def hold(self) -> None:
        """Keep the stream open that brings the changes of what is followed, in the modern era, until cancelled."""
        if self._link.era != "modern":
            return
        async with trio.open_nursery() as nursery:
            stream: trio.CancelScope | None = None
            while True:
                await self._wish.wait()
                self._wish = trio.Event()
                before, stream = stream, trio.CancelScope()
                opened = trio.Event()
                if self._wanted:
                    nursery.start_soon(self._hold_resources, self._wanted, stream, opened)
                    await first_of(opened, self._wish)
                    if not opened.is_set() or stream.cancel_called:  # others are wanted by now, or it was refused
                        stream.cancel()
                        stream = before
                        continue
                if before is not None:
                    before.cancel()

    async def _hold_resources(self, uris: frozenset[str], scope: trio.CancelScope, opened: trio.Event) -> None:
        def acknowledged(subscription: Any) -> None:
            honored = uris.intersection(subscription.honored.resource_subscriptions or ())
            if opened.is_set():
                for uri in uris:
                    self._news.updated(uri, True)
            else:
                refused = dict.fromkeys(uris - honored, "the server does not agree to tell its changes")
                self._answer(dict.fromkeys(honored, None) | refused)
            opened.set()

        def brought(event: Any) -> None:
            if isinstance(event, ResourceUpdated):
                self._news.updated(event.uri, False)

        with scope:
            reason = await self._stream(acknowledged, brought, resource_subscriptions=sorted(uris))
            # What an open stream brings already is not refused with what was to come to it.
            self._answer({uri: reason for uri in uris if self._answers.get(uri, "") is not None})
            scope.cancel()
            opened.set()

    def _answer(self, answers: Mapping[str, str | None]) -> None:
        self._answers |= answers
        self._wanted -= {uri for uri, refused in answers.items() if refused is not None}
        self._answered.set()
        self._answered = trio.Event()

    async def _stream(self, acknowledged: Callable[[Any], None], brought: Callable[[Any], None], **what: Any) -> str:
        """Keep one stream open; returns only when it is refused from the start, and why."""
        delay, agreed = RELISTEN_FIRST, False
        while True:
            since = trio.current_time()
            try:
                async with listen(self._session, **what) as subscription:
                    acknowledged(subscription)
                    agreed = True
                    async for event in subscription:
                        brought(event)
            except SubscriptionLost as error:
                _LOG.info("%s", one_line(self._link.scrub(f"a stream of changes was lost: {error}")))
            except (MCPError, ListenNotSupportedError) as error:
                reason = one_line(self._link.scrub(f"the server refuses a stream of changes: {error}"))
                _LOG.info("%s", reason)
                if not agreed:
                    return reason
            delay = RELISTEN_FIRST if trio.current_time() - since > RELISTEN_MOST else min(2 * delay, RELISTEN_MOST)
            await trio.sleep(delay)


async def first_of(*events: trio.Event) -> None:
    """Wait for one of them."""
    async with trio.open_nursery() as nursery:

        async def wait(event: trio.Event) -> None:
            await event.wait()
            nursery.cancel_scope.cancel()

        for event in events:
            nursery.start_soon(wait, event)


def _meta(meta: Mapping[str, Any] | None) -> Any:
    return None if meta is None else dict(meta)


def failed_by(error: Exception, said: Callable[[MCPError], str], scrub: Callable[[str], str]) -> RequestFailed:
    """What an error of a request comes to, where it is not the loss of the connection."""
    if isinstance(error, MCPError):
        return RequestFailed(one_line(scrub(said(error))), error.code)
    if isinstance(error, NoInput):
        return RequestFailed(one_line(scrub(f"it asks for input that it does not get: {error}")))
    if isinstance(error, ValidationError):
        return RequestFailed(one_line(scrub(f"it answered with an invalid result: {explain_validation(error)}")))
    return RequestFailed(one_line(scrub(f"it cannot be sent, or its answer not be read: {error}")))
