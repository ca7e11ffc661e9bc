"""Meeting a server: a session over a wire, and the handshake; the way to a `Link`."""

from __future__ import annotations

import functools
import importlib.metadata
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any

import trio
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from mcp_types import Implementation, ToolListChangedNotification
from pydantic import ValidationError

from ...ports import Client, Era
from . import noted
from .asked import Asked
from .library import News
from .link import LOSS_SECONDS, Link, looks_closed
from .listing import Tap, explain_validation
from .negotiate import ProbeLost, negotiate, shake_hands
from .remote.failures import HttpFailed
from .said import later as said_later
from .said import said
from .wire import Refused, Wire

__all__ = ["open_link"]


@asynccontextmanager
async def open_link(
    wire: Wire,
    known: Era | None,
    probe_seconds: float,
    on_list_changed: Callable[[], None],
    client: Client | None = None,
) -> AsyncIterator[Link]:
    """Enter a session over a wire and shake hands; leaving ends the session, not the wire.

    Args:
        wire: just opened.
        known: the era this server was last met in.
        probe_seconds: see `negotiate`.
        on_list_changed: called, never waiting, when the tool list may have changed.
        client: what the server may ask of us, and so what is announced; None for nothing.

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
    asked, news = None if client is None else Asked(client), News()

    def heard(method: str, params: Mapping[str, Any] | None) -> bool:
        return news.heard(method, params) or (asked is not None and asked.heard(method, params))

    tap = Tap(
        wire.dispatcher(notified), wire.dispatcher_ended, heard, lambda: noted.goes_over(wire, agreed()), wire.offers
    )
    callbacks = {} if asked is None else asked.callbacks()
    async with ClientSession(
        dispatcher=tap, message_handler=on_message, client_info=_client_info(), **callbacks
    ) as session:
        try:
            if wire.offers is None:
                era = await negotiate(session, known, probe_seconds)
            else:
                era = await shake_hands(session)
        except Exception as error:  # raised outside, so that no group is made of it
            refused = await _refusal(wire, known, error)
        else:
            try:
                if client is not None:
                    client.met(session.protocol_version)
                yield Link(wire, session, era, on_list_changed, client, news, tap if wire.plain else None)
            except BaseException as error:
                raised = error
    if refused is not None:
        raise refused
    if raised is not None:
        raise raised


async def _refusal(wire: Wire, known: Era | None, error: Exception) -> Refused:
    lost = isinstance(error, ProbeLost) or (isinstance(error, MCPError) and looks_closed(error))
    if lost:
        # It may have died before it read a word; then the probe is not what it died of.
        died_of_probe = isinstance(error, ProbeLost) and wire.restartable and wire.read_something()
        with trio.move_on_after(LOSS_SECONDS):
            await wire.lost.wait()
        return Refused("the connection was lost during the handshake", died_of_probe)
    if isinstance(error, MCPError):
        words = said(error) if isinstance(error, HttpFailed) else f"the handshake was refused: {said(error)}"
        return Refused(words, retry_after=said_later(error))
    if isinstance(error, ValidationError):
        return Refused(f"the handshake got an invalid answer: {explain_validation(error)}")
    return Refused(f"the handshake failed: {error or type(error).__name__}")


@functools.cache
def _client_info() -> Implementation:
    try:
        version = importlib.metadata.version("playbill")
    except importlib.metadata.PackageNotFoundError:
        version = "0"
    return Implementation(name="playbill", version=version)
