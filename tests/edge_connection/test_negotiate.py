"""Which era: every branch, against a scripted peer, with the probe's time in virtual seconds."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import trio
import trio.testing
from mcp.client.session import ClientSession
from mcp.shared.exceptions import MCPError
from playbill.actors.edge.wire.dispatcher import PipeDispatcher
from playbill.actors.edge.wire.negotiate import ProbeLost, negotiate
from pydantic import ValidationError

from .peer import Peer, open_peer

INITIALIZED = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": {"name": "s", "version": "1"}}
DISCOVERED = {
    "supportedVersions": ["2026-07-28"],
    "capabilities": {},
    "resultType": "complete",
    "ttlMs": 0,
    "cacheScope": "private",
}


def refusal(*supported: str) -> dict[str, Any]:
    return {"code": -32022, "message": "Unsupported", "data": {"supported": list(supported), "requested": "x"}}


class Shaking:
    """A negotiation in a task of its own."""

    def __init__(self, session: ClientSession) -> None:
        self.session = session
        self.era: str | None = None
        self.error: Exception | None = None
        self.took = -1.0
        self.done = trio.Event()

    async def run(self, known: str | None) -> None:
        began = trio.current_time()
        try:
            self.era = await negotiate(self.session, known)
        except Exception as error:
            self.error = error
        self.took = trio.current_time() - began
        self.done.set()


@asynccontextmanager
async def shaking(known: str | None = None) -> AsyncIterator[tuple[Peer, Shaking]]:
    async with open_peer() as peer:
        dispatcher = PipeDispatcher(peer.client_receive, peer.client_send)
        async with ClientSession(dispatcher=dispatcher) as session, trio.open_nursery() as nursery:  # type: ignore[arg-type]
            one = Shaking(session)
            nursery.start_soon(one.run, known)
            yield peer, one
            await one.done.wait()


async def expect(peer: Peer, method: str) -> dict[str, Any]:
    message = await peer.next()
    assert message["method"] == method
    return message


@pytest.mark.parametrize("known", [None, "modern"])
async def test_an_answer_to_the_probe_is_modern(known: str | None) -> None:
    async with shaking(known) as (peer, one):
        await peer.reply(await expect(peer, "server/discover"), **DISCOVERED)
    assert (one.era, one.session.protocol_version) == ("modern", "2026-07-28")


async def test_a_server_known_as_legacy_is_not_probed(autojump_clock: trio.testing.MockClock) -> None:
    async with shaking("legacy") as (peer, one):
        await peer.reply(await expect(peer, "initialize"), **INITIALIZED)
        await expect(peer, "notifications/initialized")
    assert one.era == "legacy"
    assert one.took == 0


@pytest.mark.parametrize(
    "answer",
    [
        {"error": {"code": -32601, "message": "Method not found"}},
        {"error": {"code": -32602, "message": "Invalid params"}},
        {"error": refusal("2025-11-25")},
        {"error": refusal("2024-11-05", "2026-07-28-not")},
        {"error": {"code": -32022, "message": "no data"}},
        {"result": {"supportedVersions": ["2025-11-25"], "capabilities": {}}},
        {"result": {"nonsense": True}},
    ],
)
async def test_anything_else_leads_to_initialize_at_once(
    answer: dict[str, Any], autojump_clock: trio.testing.MockClock
) -> None:
    async with shaking() as (peer, one):
        probe = await expect(peer, "server/discover")
        await peer.send(id=probe["id"], **answer)
        await peer.reply(await expect(peer, "initialize"), **INITIALIZED)
        await expect(peer, "notifications/initialized")
    assert one.era == "legacy"
    assert one.took == 0


@pytest.mark.parametrize(("known", "seconds"), [(None, 1.5), ("modern", 6.0)])
async def test_silence_leads_to_initialize_after_its_time(
    known: str | None, seconds: float, autojump_clock: trio.testing.MockClock
) -> None:
    async with shaking(known) as (peer, one):
        await expect(peer, "server/discover")
        await peer.reply(await expect(peer, "initialize"), **INITIALIZED)
        await expect(peer, "notifications/initialized")  # and no notifications/cancelled before it
    assert one.era == "legacy"
    assert one.took == pytest.approx(seconds, abs=0.1)


async def test_a_mutual_version_named_by_the_refusal_is_asked_for() -> None:
    async with shaking() as (peer, one):
        probe = await expect(peer, "server/discover")
        await peer.send(id=probe["id"], error=refusal("2026-07-28", "2027-01-01"))
        await peer.reply(await expect(peer, "server/discover"), **DISCOVERED)
    assert one.era == "modern"


async def test_a_server_of_unknown_modern_versions_only_is_refused() -> None:
    async with shaking() as (peer, one):
        probe = await expect(peer, "server/discover")
        await peer.send(id=probe["id"], error=refusal("2099-01-01"))
    assert isinstance(one.error, MCPError)
    assert one.error.code == -32022


@pytest.mark.parametrize("first", ["answer", "refusal"])
async def test_the_late_answer_is_used_when_initialize_is_refused(
    first: str, autojump_clock: trio.testing.MockClock
) -> None:
    async with shaking() as (peer, one):
        probe = await expect(peer, "server/discover")
        request = await expect(peer, "initialize")
        if first == "answer":
            await peer.reply(probe, **DISCOVERED)
            await peer.send(id=request["id"], error=refusal("2026-07-28"))
        else:
            await peer.send(id=request["id"], error=refusal("2026-07-28"))
            await peer.reply(probe, **DISCOVERED)
    assert (one.era, one.session.protocol_version) == ("modern", "2026-07-28")
    assert one.took < 2


async def test_without_a_late_answer_the_server_is_asked_again(autojump_clock: trio.testing.MockClock) -> None:
    async with shaking() as (peer, one):
        await expect(peer, "server/discover")
        request = await expect(peer, "initialize")
        await peer.send(id=request["id"], error=refusal("2026-07-28"))
        await peer.reply(await expect(peer, "server/discover"), **DISCOVERED)
    assert one.era == "modern"


async def test_a_server_known_as_legacy_that_is_modern_now_is_asked_at_once(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with shaking("legacy") as (peer, one):
        request = await expect(peer, "initialize")
        await peer.send(id=request["id"], error=refusal("2026-07-28"))
        await peer.reply(await expect(peer, "server/discover"), **DISCOVERED)
    assert one.era == "modern"
    assert one.took == 0


async def test_any_refusal_of_initialize_gives_way_to_a_late_answer(autojump_clock: trio.testing.MockClock) -> None:
    async with shaking() as (peer, one):
        probe = await expect(peer, "server/discover")
        request = await expect(peer, "initialize")
        await peer.reply(probe, **DISCOVERED)
        await peer.send(id=request["id"], error={"code": -32601, "message": "Method not found"})
    assert one.era == "modern"


async def test_a_refusal_of_both_is_a_refusal() -> None:
    async with shaking() as (peer, one):
        probe = await expect(peer, "server/discover")
        await peer.send(id=probe["id"], error={"code": -32601, "message": "Method not found"})
        request = await expect(peer, "initialize")
        await peer.send(id=request["id"], error={"code": -32603, "message": "no"})
    assert isinstance(one.error, MCPError)
    assert one.error.message == "no"


@pytest.mark.parametrize("result", [{}, {**INITIALIZED, "serverInfo": 5}])
async def test_nonsense_for_initialize_is_an_error(result: dict[str, Any]) -> None:
    async with shaking("legacy") as (peer, one):
        await peer.reply(await expect(peer, "initialize"), **result)
    assert isinstance(one.error, ValidationError)


async def test_a_version_nobody_knows_is_an_error() -> None:
    async with shaking("legacy") as (peer, one):
        await peer.reply(await expect(peer, "initialize"), **{**INITIALIZED, "protocolVersion": "1999-01-01"})
    assert isinstance(one.error, RuntimeError)


async def test_a_loss_while_only_the_probe_was_sent_is_told_apart() -> None:
    async with shaking() as (peer, one):
        await expect(peer, "server/discover")
        await peer.stop_writing()
    assert isinstance(one.error, ProbeLost)


async def test_so_is_one_after_initialize_was_sent_as_a_slow_server_reads_the_probe_late(
    autojump_clock: trio.testing.MockClock,
) -> None:
    async with shaking() as (peer, one):
        await expect(peer, "server/discover")
        await expect(peer, "initialize")
        await peer.stop_writing()
    assert isinstance(one.error, ProbeLost)


async def test_a_loss_after_the_probe_was_answered_is_an_ordinary_one() -> None:
    async with shaking() as (peer, one):
        probe = await expect(peer, "server/discover")
        await peer.send(id=probe["id"], error={"code": -32601, "message": "Method not found"})
        await expect(peer, "initialize")
        await peer.stop_writing()
    assert isinstance(one.error, MCPError)


async def test_a_loss_without_a_probe_is_an_ordinary_one() -> None:
    async with shaking("legacy") as (peer, one):
        await expect(peer, "initialize")
        await peer.stop_writing()
    assert isinstance(one.error, MCPError)


async def test_nothing_is_announced_that_has_no_handler() -> None:
    async with shaking("legacy") as (peer, _):
        request = await expect(peer, "initialize")
        assert request["params"]["capabilities"] == {}
        await peer.reply(request, **INITIALIZED)
        await expect(peer, "notifications/initialized")
