"""Which era a server speaks: ``server/discover`` first, ``initialize`` when that leads nowhere.

    known     step                 then
    –         discover, 1.5 s      a modern version in common: modern. An error, nonsense or silence: initialize
    modern    discover, 6 s        the same
    legacy    initialize           legacy
    chosen    initialize           legacy, whatever a refusal says
    any       initialize refused   by -32022, or while discover was answered after all: modern, with the late answer, or with a
                                   second discover at a version the refusal names

A server that is slow to start reads the probe late, answers it, and has then chosen the modern era: the ``initialize`` that was
already sent is refused. That is why the probe's answer is still waited for after its time (the SDK's reasoning, in its
``client/_probe.py``, with a second probe instead). Neither message may be cancelled, and neither is.
"""

from __future__ import annotations

from typing import Any

import trio
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from mcp_types import UNSUPPORTED_PROTOCOL_VERSION, DiscoverResult, UnsupportedProtocolVersionErrorData
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, LATEST_MODERN_VERSION, MODERN_PROTOCOL_VERSIONS
from pydantic import ValidationError

from ...ports import Era
from .remote.failures import HttpFailed
from .rpc import ConnectionClosed

__all__ = ["PROBE_SECONDS", "ProbeLost", "negotiate", "shake_hands"]

PROBE_SECONDS = 1.5
"""How long an unknown server may be silent on the probe."""

KNOWN_MODERN_FACTOR = 4

_FINAL = frozenset({401, 403, 407, 429, 502, 503, 504})
"""HTTP statuses that have nothing to do with what was asked: the next message would be refused alike."""


class ProbeLost(Exception):
    """The connection ended before the probe was answered: a server may have ended because of it.

    Also when ``initialize`` had been sent by then: a server that starts slowly reads the probe late.
    """


class _Probe:
    """One ``server/discover`` and what became of it."""

    def __init__(self) -> None:
        self.asked = False
        self.done = trio.Event()
        self.result: DiscoverResult | None = None
        self.error: MCPError | None = None

    @property
    def unanswered(self) -> bool:
        """Whether it was asked, and nothing came of it, or only the end of the connection."""
        return self.asked and (not self.done.is_set() or _is_lost(self.error))

    async def ask(self, session: ClientSession, version: str) -> None:
        self.asked = True
        try:
            raw = await session.send_discover(version)
            result = DiscoverResult.model_validate(raw)
            if any(common in result.supported_versions for common in MODERN_PROTOCOL_VERSIONS):
                self.result = result
        except MCPError as error:
            self.error = error
        except ValidationError:
            pass  # no evidence of anything
        finally:
            self.done.set()


async def negotiate(session: ClientSession, known: Era | None, seconds: float = PROBE_SECONDS) -> Era:
    """Shake hands; the session is usable afterwards.

    Args:
        session: entered, nothing sent yet.
        known: the era this server was last met in.
        seconds: the probe's time.

    Returns:
        The era that was agreed on.

    Raises:
        ProbeLost: the connection ended before the probe was answered.
        MCPError: the server refused, or the connection was lost.
        ValidationError, RuntimeError: it answered ``initialize`` with nonsense, or with a version nobody knows.
    """
    outcome: Era | Exception
    probe = _Probe()
    if known == "legacy":
        return await _conclude(session, probe)
    async with trio.open_nursery() as nursery:
        try:
            nursery.start_soon(probe.ask, session, LATEST_MODERN_VERSION)
            with trio.move_on_after(seconds * (KNOWN_MODERN_FACTOR if known == "modern" else 1)):
                await probe.done.wait()
            outcome = await _conclude(session, probe)
        except Exception as error:
            outcome = error  # raised outside, so that the nursery does not wrap it
        nursery.cancel_scope.cancel()
    if isinstance(outcome, Exception):
        raise outcome
    return outcome


async def shake_hands(session: ClientSession) -> Era:
    """Shake hands in the way of before 2026-07-28 and in no other, as an entry may ask for.

    Raises:
        MCPError, ValidationError, RuntimeError: as `negotiate`.
    """
    await session.initialize()
    return "legacy"


async def _conclude(session: ClientSession, probe: _Probe) -> Era:
    if _is_lost(probe.error):
        raise ProbeLost
    if probe.result is not None:
        session.adopt(probe.result)
        return "modern"
    if isinstance(probe.error, HttpFailed) and probe.error.meaning is not None and probe.error.meaning.status in _FINAL:
        raise probe.error
    versions = _named_versions(probe.error)
    if _common(versions):
        return await _ask_again(session, versions)
    if versions and not any(version in HANDSHAKE_PROTOCOL_VERSIONS for version in versions):
        assert probe.error is not None
        raise probe.error  # it speaks only versions that we do not
    try:
        await session.initialize()
    except MCPError as refusal:
        if _is_lost(refusal):
            if probe.unanswered:
                raise ProbeLost from None
            raise
        if probe.asked:
            # -32022 says that the probe was answered, or will be; otherwise look only at what has arrived by now.
            with trio.move_on_after(PROBE_SECONDS if refusal.code == UNSUPPORTED_PROTOCOL_VERSION else 0.05):
                await probe.done.wait()
        if probe.result is not None:
            session.adopt(probe.result)
            return "modern"
        if _common(_named_versions(refusal)):
            return await _ask_again(session, _named_versions(refusal))
        raise
    return "legacy"


async def _ask_again(session: ClientSession, versions: list[str]) -> Era:
    raw = await session.send_discover(_common(versions)[-1])
    session.adopt(DiscoverResult.model_validate(raw))
    return "modern"


def _named_versions(error: MCPError | None) -> list[str]:
    if error is None or error.code != UNSUPPORTED_PROTOCOL_VERSION:
        return []
    try:
        return UnsupportedProtocolVersionErrorData.model_validate(error.data).supported
    except ValidationError:
        return []


def _common(versions: list[str]) -> list[str]:
    return [version for version in MODERN_PROTOCOL_VERSIONS if version in versions]


def _is_lost(error: Any) -> bool:
    return isinstance(error, ConnectionClosed) or (
        isinstance(error, MCPError) and error.error == ConnectionClosed().error
    )
