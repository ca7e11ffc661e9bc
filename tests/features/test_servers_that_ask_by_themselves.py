"""A server of the SDK that asks in the course of a call, as most do (``ctx.elicit``): its entry chooses the older era, and the
handlers are reached; without that nothing carries its question, and the result says what to do."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from attrs import evolve
from playbill.actors import Config, Host, RequestRefused, ServerEntry, open_host
from playbill.actors.model import protocol

from ..forked import Forked
from . import asks
from . import server as features
from .conftest import PATIENCE, Embedder, free_port, said

pytestmark = pytest.mark.filterwarnings("ignore::mcp.shared.exceptions.MCPDeprecationWarning")

OLDER = "2025-11-25"
CANNOT = 'cannot come this way in protocol 2026-07-28: set "protocolVersion": "2025-11-25" in its entry.'
SERVE = f"import runpy; runpy.run_path({asks.__file__!r}, run_name='__main__')"


@asynccontextmanager
async def met(entry: ServerEntry) -> AsyncIterator[tuple[Host, Embedder]]:
    """A host with the one server, ready, and who answers it."""
    embedder = Embedder()
    async with open_host(Config((entry,)), handlers=embedder.handlers()) as host:
        assert (await host.ready(timeout=PATIENCE)).missing == {}
        yield host, embedder


def version(host: Host) -> str | None:
    state = host.snapshot().model.server("s")
    return None if state is None else state.protocol_version


async def reaches_the_handlers(entry: ServerEntry) -> None:
    async with met(entry) as (host, embedder):
        assert version(host) == OLDER
        assert await said(host, "elicit") == "accept name='Ophelia'"
        assert await said(host, "sample") == "parrot: ALAS"
        assert len(embedder.asked) == 2


async def is_told_the_remedy(entry: ServerEntry) -> None:
    async with met(entry) as (host, embedder):
        assert version(host) == "2026-07-28"
        for tool, handler in (("elicit", "elicitation"), ("sample", "sampling")):
            result = await host.call_tool("s", tool, {}, timeout=PATIENCE)
            assert result.is_error
            text = await said(host, tool)
            assert text.startswith("The server refused the call: Cannot send ")
            assert text.endswith(f" (error -32600). What it wanted to ask the {handler} handler {CANNOT}")
        assert embedder.asked == []


async def test_in_memory_the_entry_chooses_the_era_and_without_it_the_remedy_is_told() -> None:
    entry = ServerEntry("s", server=asks.make())
    await is_told_the_remedy(entry)
    await reaches_the_handlers(evolve(entry, protocol_version=OLDER))


async def test_over_stdio_the_handlers_are_reached_with_the_key() -> None:
    command = {"command": sys.executable, "args": (str(Path(asks.__file__)), "stdio")}
    await reaches_the_handlers(ServerEntry("s", **command, protocol_version=OLDER))


async def test_over_http_the_entry_chooses_the_era_and_without_it_the_remedy_is_told() -> None:
    port, quiet = free_port(), {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    entry = ServerEntry("s", url=f"http://127.0.0.1:{port}/mcp")
    with Forked([sys.executable, "-c", SERVE, str(port)], **quiet) as process:
        try:
            await reaches_the_handlers(evolve(entry, protocol_version=OLDER))
            await is_told_the_remedy(entry)
        finally:
            process.kill()


async def test_a_prompt_that_asks_is_told_the_remedy_too_and_another_refusal_is_not() -> None:
    async with met(ServerEntry("s", server=asks.make())) as (host, _):
        with pytest.raises(RequestRefused, match="What it wanted to ask the elicitation handler"):
            await host.get_prompt("s", "cue", {}, timeout=PATIENCE)
        assert await said(host, "refuse") == "The server refused the call: no such seat (error -32600)"


async def test_each_way_of_asking_is_logged_with_its_method_alone(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level("INFO", logger="playbill.client")
    modern, by_itself = ServerEntry("s", server=features.make()), ServerEntry("s", server=asks.make())
    for entry in (modern, by_itself, evolve(by_itself, protocol_version=OLDER)):
        caplog.clear()
        async with open_host(Config((entry,))) as host:
            await host.ready(timeout=PATIENCE)
            assert (await host.call_tool("s", "elicit", {}, timeout=PATIENCE)).is_error
        (record,) = (each for each in caplog.records if getattr(each, "event", None) == "question")
        assert (record.name, record.server, record.method) == ("playbill.client", "s", "elicitation/create")
        assert record.getMessage() == "asks the program: elicitation/create"


@pytest.mark.parametrize("chosen", protocol.VERSIONS[:-1])
async def test_exactly_the_version_of_the_entry_is_offered(chosen: str) -> None:
    async with met(ServerEntry("s", server=asks.make(), protocol_version=chosen)) as (host, _):
        assert version(host) == chosen


async def test_another_version_meets_the_server_anew_and_what_was_chosen_is_not_remembered_as_found() -> None:
    entry, other = ServerEntry("s", server=asks.make()), ServerEntry("other", server=asks.make())
    async with open_host(Config((evolve(entry, protocol_version=OLDER), other))) as host:
        await host.ready(timeout=PATIENCE)
        assert version(host) == OLDER
        generation = _generation(host, "s"), _generation(host, "other")
        await host.apply(Config((evolve(entry, protocol_version=OLDER, exclude=("sample",)), other)))
        assert (_generation(host, "s"), _generation(host, "other")) == generation
        await host.apply(Config((entry, other)))
        await host.ready(timeout=PATIENCE)
        assert version(host) == "2026-07-28"
        assert _generation(host, "other") == generation[1]


def _generation(host: Host, name: str) -> Any:
    state = host.snapshot().model.server(name)
    assert state is not None
    return state.generation


def test_an_entry_made_in_code_names_a_version_that_there_is() -> None:
    with pytest.raises(ValueError, match=r"protocol_version of server 's': .* \(did you mean '2025-11-25'\?\)"):
        ServerEntry("s", command="x", protocol_version="2025-11")
    with pytest.raises(TypeError, match="protocol_version of server 's' is a string"):
        ServerEntry("s", command="x", protocol_version=2025)  # type: ignore[arg-type]


def test_the_versions_are_those_of_the_sdk() -> None:
    from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, KNOWN_PROTOCOL_VERSIONS

    assert protocol.VERSIONS == KNOWN_PROTOCOL_VERSIONS
    assert tuple(filter(protocol.older, protocol.VERSIONS)) == HANDSHAKE_PROTOCOL_VERSIONS
    assert HANDSHAKE_PROTOCOL_VERSIONS[-1] == protocol.NEWEST_OLDER


async def test_a_server_that_knows_only_the_modern_protocol_is_not_met_in_it_when_its_entry_says_otherwise() -> None:
    from mcp.shared.exceptions import MCPError
    from mcp.types import UNSUPPORTED_PROTOCOL_VERSION

    class Session:
        async def initialize(self) -> None:
            raise MCPError(UNSUPPORTED_PROTOCOL_VERSION, "no", {"supported": ["2026-07-28"], "requested": OLDER})

    from playbill.actors.edge.wire.negotiate import shake_hands

    with pytest.raises(MCPError, match="no"):
        await shake_hands(Session())  # type: ignore[arg-type]
