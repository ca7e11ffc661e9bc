"""The live connection: what a caller holds between the handshake and the loss.

Every call runs in its caller's task; nothing here waits for anything but the server, the caller's own scope and, after a
loss, for the reason of it, which the wire gives within `LOSS_SECONDS`.
"""

from __future__ import annotations

import contextlib
from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, cast

import trio
from mcp.client.session import ClientSession
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost, ToolsListChanged, listen
from mcp.shared.exceptions import MCPError
from mcp_types import (
    URL_ELICITATION_REQUIRED,
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    EmptyResult,
    InputRequiredResult,
    RootsListChangedNotification,
    SetLevelRequest,
    SetLevelRequestParams,
    TextContent,
)
from mcp_types.version import LATEST_MODERN_VERSION
from pydantic import ValidationError

from ...model.about import ServerInfo, server_info
from ...model.schema.output import OutputChecks
from ...model.status import ToolDef
from ...ports import (
    OUTPUT_INVALID,
    RETRY_AFTER,
    Client,
    ConnectionLost,
    Era,
    Expiry,
    ListFailed,
    Listing,
    Loss,
    Progress,
)
from ...telemetry.log import Log, about, whom
from . import noted, quick
from .library import News, Shelves, failed_by
from .listing import Tap, explain_validation, list_all
from .remote.failures import HttpFailed
from .remote.meaning import FOR_NOW
from .rounds import NoInput, Round, play_rounds, visit_first
from .rpc import ConnectionClosed
from .said import later as said_later
from .said import remedy, said
from .wire import Wire, one_line

if TYPE_CHECKING:
    from mcp.shared.dispatcher import ProgressFnT

__all__ = ["Link", "looks_closed"]

_LOG = Log("playbill.edge")

LOSS_SECONDS = 1.0
"""Within which the reason of a loss is known after its first sign."""

PING_EVERY, PING_WITHIN = 30.0, 30.0
"""Seconds of silence after which a remote server is pinged, and within which it answers."""

RELISTEN_FIRST, RELISTEN_MOST = 0.1, 5.0
"""Seconds before a subscription that ended is opened again: the first time, and at most."""

_OURS = frozenset({RETRY_AFTER, OUTPUT_INVALID})
"""Ours to say in a result's ``_meta``: a server's own word there could have its tool called again."""


class Link:
    """One live MCP connection; fulfils `ports.Connection`.

    Args:
        wire: below.
        session: initialised.
        era: as agreed on.
        on_list_changed: called, never waiting, when the tool list may have changed.
        client: what the server may ask of us, or None.
        news: hears what the server announces of its resources and prompts.
        tap: below the session, for calls that need nothing of it but its stamp; None: they all go through the session.
    """

    def __init__(
        self,
        wire: Wire,
        session: ClientSession,
        era: Era,
        on_list_changed: Callable[[], None],
        client: Client | None = None,
        news: News | None = None,
        tap: Tap | None = None,
    ) -> None:
        self.era = era
        self.client = client
        self._outputs = OutputChecks()
        self._wire = wire
        self._session = session
        self._tap = tap
        self._whom = whom()
        self._on_list_changed = on_list_changed
        self.lost = trio.Event()
        self._over = trio.Event()  # `lost`, or the wire is
        self._reason = ""
        self._listed = False
        self._tools: tuple[ToolDef, ...] = ()
        self._by_name: dict[str, ToolDef] = {}
        self.scrub = wire.scrub
        self.library = Shelves(self, session, News() if news is None else news)
        wire.on_missed = self.library.missed
        self.info = _info_of(session, wire.scrub)
        """What the server said of itself."""

    @property
    def pid(self) -> int | None:
        """The server process, or None when there is none."""
        return self._wire.pid

    @property
    def protocol_version(self) -> str | None:
        """As negotiated."""
        return self._session.protocol_version

    @property
    def kind(self) -> str | None:
        """As `ports.Connection.kind`."""
        return "sse" if self._wire.older else None

    def stderr_tail(self) -> str:
        """What the process wrote on stderr last, scrubbed; never waits."""
        return self._wire.stderr_tail()

    def lose(self, reason: str) -> None:
        """End it for all callers; the first reason stays."""
        if not self.lost.is_set():
            self._reason = reason
            self.lost.set()
            self._over.set()

    @property
    def loss(self) -> Loss | None:
        """How it was lost; None while it was not, or was closed by us."""
        if not self.lost.is_set():
            return None
        wire = self._wire
        return Loss(self._reason, needs_auth=wire.needs_auth, renew=wire.renew, once=wire.once)

    async def wait_lost(self) -> str:
        """Wait until it is lost; returns why."""
        await self.lost.wait()
        return self._reason

    async def list_tools(self) -> Listing:
        """All pages of the tool list; empty, without asking, when the server declares no tools.

        Raises:
            ConnectionLost: the connection ended first.
            ListFailed: the server answered with an error or nonsense.
        """
        await self.refuse_when_lost()
        self._listed = True
        capabilities = self._session.server_capabilities
        if capabilities is None or capabilities.tools is None:
            return Listing(())
        scrub = self._wire.scrub
        try:
            listing = await list_all(self._session, self._tools)
        except MCPError as error:
            await self._raise_when_lost(error)
            raise ListFailed(one_line(scrub(f"refused: {said(error)}")), retry_after=said_later(error)) from None
        except ValidationError as error:
            raise ListFailed(one_line(scrub(f"no tool list: {explain_validation(error)}"))) from None
        except ValueError as error:
            raise ListFailed(one_line(scrub(f"it cannot be read: {error}"))) from None
        self._tools = listing.tools
        self._by_name = {tool.bare: tool for tool in listing.tools}
        return Listing(listing.tools, tuple(one_line(scrub(problem)) for problem in listing.problems))

    async def call_tool(
        self,
        bare: str,
        arguments: Mapping[str, Any],
        progress: Progress | None,
        *,
        meta: Mapping[str, Any] | None = None,
    ) -> CallToolResult:
        """Call a tool in the caller's task; cancelling it tells the server. What it asks for meanwhile, the client answers.

        Returns:
            The tool's result. An error response, a request for input that is not to be had, and a result that the protocol
            does not allow are results with ``is_error`` and a text that says so. One that is not what the tool's output schema
            says has that in its ``_meta`` (`OUTPUT_INVALID`).

        Raises:
            ConnectionLost: the connection ended before the answer.
        """
        await self.refuse_when_lost()
        noted.goes_over(self._wire, self.protocol_version)
        return await self._play(bare, arguments, progress, meta)

    async def call_directly(
        self, bare: str, arguments: Mapping[str, Any], expiry: Expiry, meta: Mapping[str, Any] | None
    ) -> CallToolResult:
        """As `call_tool`, in no scope but what the caller is in anyway: the answer is waited for until ``expiry``.

        Raises:
            Expired: it is past.
            ConnectionLost: as there.
        """
        tap, version = self._tap, self._session.protocol_version
        if tap is None or version is None or not tap.direct:
            return cast(
                "CallToolResult",
                await expiry.within(lambda: self.call_tool(bare, arguments, expiry.told(None), meta=meta)),
            )
        if self.lost.is_set():
            await self.refuse_when_lost()
        try:
            raw = await tap.send_directly(quick.METHOD, quick.params_of(tap, bare, arguments, meta), expiry)
            result = quick.read(raw, version)
        except (MCPError, ValueError) as error:
            failure = error  # which may take a while: the reason of a loss is waited for, and a user is asked
            return cast("CallToolResult", await expiry.within(lambda: self._failed(failure)))
        if isinstance(result, InputRequiredResult):
            return cast(
                "CallToolResult",
                await expiry.within(lambda: self._play(bare, arguments, expiry.told(None), meta, result)),
            )
        return self._checked(bare, result)

    async def _play(
        self,
        bare: str,
        arguments: Mapping[str, Any],
        progress: Progress | None,
        meta: Mapping[str, Any] | None,
        first: InputRequiredResult | None = None,
    ) -> CallToolResult:
        """Call a tool until it has its result, or from what it answered at first."""

        async def call(round_: Round) -> CallToolResult | InputRequiredResult:
            if round_.state is not None or round_.responses is not None:
                await self.refuse_when_lost()
            elif (tap := self._tap) is not None and tap.stamp is not None and self.protocol_version is not None:
                return await quick.call(tap, self.protocol_version, bare, arguments, meta, progress)
            params = CallToolRequestParams(
                name=bare,
                arguments=dict(arguments),
                input_responses=round_.responses,
                request_state=round_.state,
                _meta=None if meta is None else cast("Any", dict(meta)),
            )
            return await self._session.send_request(
                CallToolRequest(params=params), quick.RESULT, progress_callback=cast("ProgressFnT | None", progress)
            )

        try:
            result: CallToolResult = await play_rounds(self._session, call, self.lost, first)
        except (MCPError, NoInput, ValueError) as error:
            return await self._failed(error)
        return self._checked(bare, result)

    async def _failed(self, error: MCPError | NoInput | ValueError) -> CallToolResult:
        """What a call comes to that has no result of the server. A checkpoint, or not.

        Raises:
            ConnectionLost: that is what the error means.
        """
        if isinstance(error, MCPError):
            await self._raise_when_lost(error)
            noted.refused(error)
            if isinstance(error, HttpFailed):
                later = said_later(error)
                if later is None and error.meaning is not None and error.meaning.status in FOR_NOW:
                    later = 1.0
                return self._error(f"The call failed: {said(error)}", later)
            visited = ""
            if error.code == URL_ELICITATION_REQUIRED and (
                actions := await visit_first(self._session, error, self.lost)
            ):
                visited = f" The user was asked ({actions}); once that is done, the call can be made again."
            return self._error(f"The server refused the call: {self._said(error)}{visited}")
        if isinstance(error, NoInput):
            noted.failed("input_required")
            return self._error(f"The tool asks for input that it does not get: {error}")
        if isinstance(error, ValidationError):
            noted.failed("invalid_result")
            return self._error(f"The server answered with an invalid result: {explain_validation(error)}")
        noted.failed("unreadable")
        return self._error(f"The call could not be sent, or its answer not be read: {error}")

    def _checked(self, bare: str, result: CallToolResult) -> CallToolResult:
        """The result, with what is wrong with its structured content in its ``_meta``; what is ours to say there is not its."""
        tool = self._by_name.get(bare)
        if result.meta is None and (tool is None or tool.output_schema is None):
            return result
        meta = {name: value for name, value in (result.meta or {}).items() if name not in _OURS}
        if tool is not None and tool.output_schema is not None and not result.is_error:
            given = result.structured_content is not None
            problem = self._outputs.problem(tool.output_schema, given, result.structured_content)
            if problem is not None:
                with about(self._whom):  # the problem itself quotes the result
                    _LOG.info("a result of tool %r is not what its output schema says", bare)
                meta[OUTPUT_INVALID] = problem
        if meta != (result.meta or {}):
            result = result.model_copy(update={"meta": meta or None})
        return result

    async def asked(self, ask: Callable[[], Awaitable[Any]]) -> Any:
        """Make a request of which an error is no result, in the caller's task.

        Raises:
            ConnectionLost: the connection ended before the answer.
            RequestFailed: the server answered with an error or nonsense, or asked for input that it does not get.
        """
        await self.refuse_when_lost()
        try:
            return await ask()
        except (MCPError, NoInput, ValueError) as error:
            if isinstance(error, MCPError):
                await self._raise_when_lost(error)
            raise failed_by(error, self._said, self._wire.scrub) from None

    async def roots_changed(self) -> None:
        """Say that the roots are others now, where the protocol has a word for that (before 2026-07-28). A checkpoint."""
        await trio.lowlevel.checkpoint()
        announced = self.client is not None and self.client.handlers.roots is not None
        if announced and self.era != "modern" and not self.lost.is_set():
            await self._session.send_notification(RootsListChangedNotification())

    async def hold(self, closing: trio.Event) -> None:
        """Follow the server's changes until the wire is lost, or `lose` is called, as who sets `closing` does."""
        wire = self._wire
        wire.on_lost = self._over.set
        # A task that has nothing to do is not started: each costs time when forty servers start together.
        tasks: list[Callable[[], Awaitable[None]]] = []
        if wire.idle_since() is not None:
            tasks.append(self._keep_alive)
        if self.era == "modern":
            tasks += self.library.hold, self._follow_changes
        elif (request := self._log_wish()) is not None:
            tasks.append(lambda: self._ask_for_log(request))
        if not tasks:
            await self._held(closing)
            return
        async with trio.open_nursery() as nursery:
            for task in tasks:
                nursery.start_soon(task)
            await self._held(closing)
            nursery.cancel_scope.cancel()

    async def _held(self, closing: trio.Event) -> None:
        if not (self._wire.lost.is_set() or closing.is_set()):
            await self._over.wait()
        if self._wire.lost.is_set():
            self.lose(self._wire.reason)

    def _log_wish(self) -> SetLevelRequest | None:
        """The request for messages of its log, where both sides have to do with them."""
        capabilities = self._session.server_capabilities
        handlers = None if self.client is None else self.client.handlers
        if handlers is None or handlers.logging is None or capabilities is None or capabilities.logging is None:
            return None
        return SetLevelRequest(params=SetLevelRequestParams(level=handlers.log_level))

    async def _ask_for_log(self, request: SetLevelRequest) -> None:
        """Say once which messages of its log are wanted; since 2026-07-28 each request says so."""
        with contextlib.suppress(MCPError, ValidationError, ValueError):
            await self._session.send_request(request, EmptyResult)

    async def _keep_alive(self) -> None:
        """Ask a server that has been silent for long whether it is still there."""
        while (since := self._wire.idle_since()) is not None:
            if (wait := since + PING_EVERY - trio.current_time()) > 0:
                await trio.sleep(wait)
                continue
            asked = trio.current_time()
            with trio.move_on_after(PING_WITHIN) as scope:
                # An answer, or the wire knows that there is none.
                with contextlib.suppress(MCPError, ValidationError, ValueError):
                    await self._ping()
                # One that is refused without an answer is not asked at full speed.
                await trio.sleep(min(1.0, PING_EVERY))
            if scope.cancelled_caught and (self._wire.idle_since() or 0.0) <= asked:  # nothing else was heard either
                self._wire.lose(f"it has not answered a ping within {PING_WITHIN:g} s")
                return

    async def _ping(self) -> None:
        if self.era == "modern":  # which has no ping; this is the request that any server answers
            await self._session.send_discover(self.protocol_version or LATEST_MODERN_VERSION)
        else:
            await self._session.send_ping()

    async def _follow_changes(self) -> None:
        """Keep one subscription open. Nothing is replayed, so that each acknowledgement means: list again."""
        said = self._session.server_capabilities
        tools = bool(said is not None and said.tools is not None and said.tools.list_changed)
        others = self.library.announces()
        if not tools and not any(others.values()):
            return
        delay, agreed = RELISTEN_FIRST, False
        while True:
            opened = trio.current_time()
            try:
                async with listen(
                    self._session,
                    tools_list_changed=tools,
                    resources_list_changed=others["resources"],
                    prompts_list_changed=others["prompts"],
                ) as subscription:
                    agreed = True
                    if self._listed and tools:  # else the first list is still to be asked for
                        self._on_list_changed()
                    self.library.brought(None)
                    async for event in subscription:
                        if isinstance(event, ToolsListChanged):
                            self._on_list_changed()
                        self.library.brought(event)
            except SubscriptionLost as error:
                _LOG.info("%s", one_line(self._wire.scrub(f"the subscription to changes was lost: {error}")))
            except (MCPError, ListenNotSupportedError) as error:
                _LOG.info("%s", one_line(self._wire.scrub(f"the server refuses a subscription to changes: {error}")))
                if not agreed:
                    return
            delay = RELISTEN_FIRST if trio.current_time() - opened > RELISTEN_MOST else min(2 * delay, RELISTEN_MOST)
            await trio.sleep(delay)

    async def refuse_when_lost(self) -> None:
        """Raise `ConnectionLost` when it is; a checkpoint only then."""
        if self.lost.is_set():
            await trio.lowlevel.checkpoint()
            raise ConnectionLost(self._reason)

    async def _raise_when_lost(self, error: MCPError) -> None:
        """Raise `ConnectionLost` when that is what the error means. A server may send the same code, even the same text."""
        certain = isinstance(error, ConnectionClosed)
        if not certain and not looks_closed(error):
            return
        with trio.move_on_after(LOSS_SECONDS):
            await self.lost.wait()
        if certain or self.lost.is_set():
            raise ConnectionLost(self._reason or "the connection was lost") from None

    def _said(self, error: MCPError) -> str:
        """What an error says, and what can be done about it."""
        with about(self._whom):  # the caller's task may be anybody's
            return f"{said(error)}{remedy(error, self.era)}"

    def _error(self, text: str, later: float | None = None) -> CallToolResult:
        meta = None if later is None else {RETRY_AFTER: later}
        return CallToolResult(content=[TextContent(text=self._wire.scrub(text))], is_error=True, _meta=meta)


def _info_of(session: ClientSession, scrub: Callable[[str], str]) -> ServerInfo:
    """What the server said of itself in the handshake, without our secrets: it may know them from its environment."""
    info, instructions = session.server_info, session.instructions
    said = {} if info is None else info.model_dump(mode="json", by_alias=True, exclude_none=True)
    texts = {key: scrub(value) if isinstance(value, str) else value for key, value in said.items()}
    return server_info(texts, None if instructions is None else scrub(instructions))


def looks_closed(error: MCPError) -> bool:
    """Whether an error is as that of a connection that is closed; a server may send the same one."""
    return error.error == ConnectionClosed().error
