"""The live connection: what a caller holds between the handshake and the loss.

Every call runs in its caller's task; nothing here waits for anything but the server, the caller's own scope and, after a
loss, for the reason of it, which the wire gives within `LOSS_SECONDS`.
"""

from __future__ import annotations

import contextlib
import functools
import importlib.metadata
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import TYPE_CHECKING, Any, cast

import trio
from mcp.client.session import ClientSession
from mcp.client.subscriptions import ListenNotSupportedError, SubscriptionLost, listen
from mcp.shared.exceptions import MCPError
from mcp_types import (
    CallToolRequest,
    CallToolRequestParams,
    CallToolResult,
    Implementation,
    InputRequiredResult,
    TextContent,
    ToolListChangedNotification,
)
from mcp_types.version import LATEST_MODERN_VERSION
from pydantic import TypeAdapter, ValidationError

from ...model.status import ToolDef
from ...ports import RETRY_AFTER, ConnectionLost, Era, ListFailed, Listing, Loss, Progress
from ...telemetry.log import Log
from . import noted
from .listing import Tap, explain_validation, list_all
from .negotiate import ProbeLost, negotiate
from .remote.failures import HttpFailed
from .remote.meaning import FOR_NOW
from .rpc import ConnectionClosed
from .wire import Refused, Wire, one_line

if TYPE_CHECKING:
    from mcp.shared.dispatcher import ProgressFnT

__all__ = ["Link", "open_link"]

_LOG = Log("playbill.edge")

LOSS_SECONDS = 1.0
"""Within which the reason of a loss is known after its first sign."""

PING_EVERY, PING_WITHIN = 30.0, 30.0
"""Seconds of silence after which a remote server is pinged, and within which it answers."""

RELISTEN_FIRST, RELISTEN_MOST = 0.1, 5.0
"""Seconds before a subscription that ended is opened again: the first time, and at most."""

_RESULT: TypeAdapter[CallToolResult | InputRequiredResult] = TypeAdapter(CallToolResult | InputRequiredResult)


class Link:
    """One live MCP connection; fulfils `ports.Connection`.

    Args:
        wire: below.
        session: initialised.
        era: as agreed on.
        on_list_changed: called, never waiting, when the tool list may have changed.
    """

    def __init__(self, wire: Wire, session: ClientSession, era: Era, on_list_changed: Callable[[], None]) -> None:
        self.era = era
        self._wire = wire
        self._session = session
        self._on_list_changed = on_list_changed
        self._lost = trio.Event()
        self._reason = ""
        self._listed = False
        self._tools: tuple[ToolDef, ...] = ()

    @property
    def pid(self) -> int | None:
        """The server process, or None when there is none."""
        return self._wire.pid

    @property
    def protocol_version(self) -> str | None:
        """As negotiated."""
        return self._session.protocol_version

    def stderr_tail(self) -> str:
        """What the process wrote on stderr last, scrubbed; never waits."""
        return self._wire.stderr_tail()

    def lose(self, reason: str) -> None:
        """End it for all callers; the first reason stays."""
        if not self._lost.is_set():
            self._reason = reason
            self._lost.set()

    @property
    def loss(self) -> Loss | None:
        """How it was lost; None while it was not, or was closed by us."""
        if not self._lost.is_set():
            return None
        wire = self._wire
        return Loss(self._reason, needs_auth=wire.needs_auth, renew=wire.renew, once=wire.once)

    async def wait_lost(self) -> str:
        """Wait until it is lost; returns why."""
        await self._lost.wait()
        return self._reason

    async def list_tools(self) -> Listing:
        """All pages of the tool list; empty, without asking, when the server declares no tools.

        Raises:
            ConnectionLost: the connection ended first.
            ListFailed: the server answered with an error or nonsense.
        """
        await self._refuse_when_lost()
        self._listed = True
        capabilities = self._session.server_capabilities
        if capabilities is None or capabilities.tools is None:
            return Listing(())
        scrub = self._wire.scrub
        try:
            listing = await list_all(self._session, self._tools)
        except MCPError as error:
            await self._raise_when_lost(error)
            raise ListFailed(one_line(scrub(f"refused: {_said(error)}")), retry_after=_later(error)) from None
        except ValidationError as error:
            raise ListFailed(one_line(scrub(f"no tool list: {explain_validation(error)}"))) from None
        except ValueError as error:
            raise ListFailed(one_line(scrub(f"it cannot be read: {error}"))) from None
        self._tools = listing.tools
        return Listing(listing.tools, tuple(one_line(scrub(problem)) for problem in listing.problems))

    async def call_tool(self, bare: str, arguments: Mapping[str, Any], progress: Progress | None) -> CallToolResult:
        """Call a tool in the caller's task; cancelling it tells the server.

        Returns:
            The tool's result. An error response, a request for input, and a result that the protocol does not allow are
            results with ``is_error`` and a text that says so.

        Raises:
            ConnectionLost: the connection ended before the answer.
        """
        await self._refuse_when_lost()
        noted.goes_over(self._wire, self.protocol_version)
        request = CallToolRequest(params=CallToolRequestParams(name=bare, arguments=dict(arguments)))
        try:
            result = await self._session.send_request(
                request, _RESULT, progress_callback=cast("ProgressFnT | None", progress)
            )
        except MCPError as error:
            await self._raise_when_lost(error)
            noted.refused(error)
            if isinstance(error, HttpFailed):
                later = _later(error)
                if later is None and error.meaning is not None and error.meaning.status in FOR_NOW:
                    later = 1.0
                return self._error(f"The call failed: {_said(error)}", later)
            return self._error(f"The server refused the call: {_said(error)}")
        except ValidationError as error:
            noted.failed("invalid_result")
            return self._error(f"The server answered with an invalid result: {explain_validation(error)}")
        except ValueError as error:
            noted.failed("unreadable")
            return self._error(f"The call could not be sent, or its answer not be read: {error}")
        if isinstance(result, InputRequiredResult):
            noted.failed("input_required")
            asked = ", ".join(sorted(result.input_requests or ())) or "more input"
            return self._error(f"The tool asks for input that this host cannot give ({asked}); nothing was done.")
        if result.meta and RETRY_AFTER in result.meta:  # ours to say, and a server's word would have it called again
            meta = {name: value for name, value in result.meta.items() if name != RETRY_AFTER}
            result = result.model_copy(update={"meta": meta or None})
        return result

    async def hold(self, closing: trio.Event) -> None:
        """Follow the server's changes until the wire is lost or `closing` is set."""
        async with trio.open_nursery() as nursery:
            nursery.start_soon(self._keep_alive)
            if self.era == "modern":
                nursery.start_soon(self._follow_changes)
            nursery.start_soon(self._follow_loss, nursery.cancel_scope)
            await closing.wait()
            nursery.cancel_scope.cancel()

    async def _follow_loss(self, scope: trio.CancelScope) -> None:
        await self._wire.lost.wait()
        self.lose(self._wire.reason)
        scope.cancel()

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
                await trio.sleep(
                    min(1.0, PING_EVERY)
                )  # one that is refused without an answer is not asked at full speed
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
        capabilities = self._session.server_capabilities
        if capabilities is None or capabilities.tools is None or not capabilities.tools.list_changed:
            return
        delay = RELISTEN_FIRST
        while True:
            opened = trio.current_time()
            try:
                async with listen(self._session, tools_list_changed=True) as subscription:
                    if self._listed:  # else the first list is still to be asked for
                        self._on_list_changed()
                    async for _ in subscription:
                        self._on_list_changed()
            except SubscriptionLost as error:
                _LOG.info("%s", one_line(self._wire.scrub(f"the subscription to changes was lost: {error}")))
            except (MCPError, ListenNotSupportedError) as error:
                _LOG.info("%s", one_line(self._wire.scrub(f"the server refuses a subscription to changes: {error}")))
                return
            delay = RELISTEN_FIRST if trio.current_time() - opened > RELISTEN_MOST else min(2 * delay, RELISTEN_MOST)
            await trio.sleep(delay)

    async def _refuse_when_lost(self) -> None:
        if self._lost.is_set():
            await trio.lowlevel.checkpoint()
            raise ConnectionLost(self._reason)

    async def _raise_when_lost(self, error: MCPError) -> None:
        """Raise `ConnectionLost` when that is what the error means. A server may send the same code, even the same text."""
        certain = isinstance(error, ConnectionClosed)
        if not certain and not _looks_closed(error):
            return
        with trio.move_on_after(LOSS_SECONDS):
            await self._lost.wait()
        if certain or self._lost.is_set():
            raise ConnectionLost(self._reason or "the connection was lost") from None

    def _error(self, text: str, later: float | None = None) -> CallToolResult:
        meta = None if later is None else {RETRY_AFTER: later}
        return CallToolResult(content=[TextContent(text=self._wire.scrub(text))], is_error=True, _meta=meta)


@asynccontextmanager
async def open_link(
    wire: Wire, known: Era | None, probe_seconds: float, on_list_changed: Callable[[], None]
) -> AsyncIterator[Link]:
    """Enter a session over a wire and shake hands; leaving ends the session, not the wire.

    Args:
        wire: just opened.
        known: the era this server was last met in.
        probe_seconds: see `negotiate`.
        on_list_changed: called, never waiting, when the tool list may have changed.

    Raises:
        Refused: the server cannot be talked to.
    """
    era: Era | None = None

    def notified() -> None:
        if era != "modern":  # there, only a subscription counts
            on_list_changed()

    async def on_message(message: Any) -> None:
        await trio.lowlevel.checkpoint()
        if isinstance(message, ToolListChangedNotification):
            notified()

    def agreed() -> str | None:
        return session.protocol_version if era is not None else None

    refused: Refused | None = None
    raised: BaseException | None = None
    tap = Tap(wire.dispatcher(notified), wire.dispatcher_ended, lambda: noted.goes_over(wire, agreed()))
    async with ClientSession(dispatcher=tap, message_handler=on_message, client_info=_client_info()) as session:
        try:
            era = await negotiate(session, known, probe_seconds)
        except Exception as error:  # raised outside, so that no group is made of it
            refused = await _refusal(wire, known, error)
        else:
            try:
                yield Link(wire, session, era, on_list_changed)
            except BaseException as error:
                raised = error
    if refused is not None:
        raise refused
    if raised is not None:
        raise raised


async def _refusal(wire: Wire, known: Era | None, error: Exception) -> Refused:
    lost = isinstance(error, ProbeLost) or (isinstance(error, MCPError) and _looks_closed(error))
    if lost:
        # It may have died before it read a word; then the probe is not what it died of.
        died_of_probe = isinstance(error, ProbeLost) and wire.restartable and wire.read_something()
        with trio.move_on_after(LOSS_SECONDS):
            await wire.lost.wait()
        return Refused("the connection was lost during the handshake", died_of_probe)
    if isinstance(error, MCPError):
        words = _said(error) if isinstance(error, HttpFailed) else f"the handshake was refused: {_said(error)}"
        return Refused(words, retry_after=_later(error))
    if isinstance(error, ValidationError):
        return Refused(f"the handshake got an invalid answer: {explain_validation(error)}")
    return Refused(f"the handshake failed: {error or type(error).__name__}")


def _looks_closed(error: MCPError) -> bool:
    return error.error == ConnectionClosed().error


def _later(error: MCPError) -> float | None:
    """After how many seconds a refusal asks to be tried again; None when it does not say."""
    return error.meaning.retry_after if isinstance(error, HttpFailed) and error.meaning is not None else None


def _said(error: MCPError) -> str:
    """What a JSON-RPC error says, for people and models."""
    if isinstance(error, HttpFailed):
        return error.reason
    text = f"{error.message} (error {error.code})"
    if error.data not in (None, "", {}, []):
        text += f": {str(error.data)[:1000]}"
    return text


@functools.cache
def _client_info() -> Implementation:
    try:
        version = importlib.metadata.version("playbill")
    except importlib.metadata.PackageNotFoundError:
        version = "0"
    return Implementation(name="playbill", version=version)
