"""Strict mode's way back: a null that stands for something left out is not sent to the server, whose schema takes none."""

from __future__ import annotations

from typing import Any

import pytest
import trio
from playbill.actors import Config
from playbill.actors.model.status import ToolDef
from playbill.actors.testing import Script, ScriptedServers

from .conftest import Open

SEARCH = ToolDef(
    "search",
    description="Searches.",
    input_schema={
        "type": "object",
        "properties": {
            "q": {"type": "string"},
            "limit": {"type": "integer"},
            "lang": {"type": ["string", "null"]},
            "where": {"type": "object", "properties": {"site": {"type": "string"}, "page": {"type": "integer"}}},
        },
        "required": ["q"],
    },
)
SENT = {"q": "x", "limit": None, "lang": None, "where": {"site": "s", "page": None}}
MEANT = {"q": "x", "lang": None, "where": {"site": "s"}}


def received(result: Any) -> dict[str, Any]:
    """The arguments as the scripted server had them."""
    arguments: dict[str, Any] = result["arguments"]
    return arguments


@pytest.mark.parametrize("provider", ["openai", "openai-responses"])
async def test_a_server_is_sent_no_null_for_what_it_lets_be_left_out(opened: Open, provider: str) -> None:
    async with opened(ScriptedServers(a=Script([SEARCH])), profile="openai-strict") as host:
        await host.ready(timeout=5)
        held = host.snapshot().catalog
        (tool,) = held.for_provider(provider)
        parameters = tool.get("function", tool)["parameters"]
        assert sorted(parameters["required"]) == ["lang", "limit", "q", "where"], "a strict model must send them all"
        assert received(await host.call("mcp__a__search", SENT)) == MEANT
        assert received(await host.call("mcp__a__search", SENT, catalog=held)) == MEANT
        assert received(await host.call("mcp__a__search", {"q": None})) == {"q": None}, (
            "it is required: the server's say"
        )
        assert SENT["limit"] is None, "what the caller gave is not changed"


async def test_only_who_was_shown_a_strict_catalog_has_its_nulls_left_out(opened: Open) -> None:
    async with opened(ScriptedServers(a=Script([SEARCH]))) as host:
        await host.ready(timeout=5)
        strict = host.view(profile="openai-strict")
        held = strict.snapshot().catalog
        assert received(await strict.call("mcp__a__search", SENT)) == MEANT
        assert received(await host.call("mcp__a__search", SENT, catalog=held)) == MEANT
        assert received(await host.call("mcp__a__search", SENT)) == SENT
        assert received(await strict.call("mcp__a__search", SENT, catalog=host.snapshot().catalog)) == SENT
        for through in (host, strict):
            assert received(await through.call_tool("a", "search", SENT)) == SENT, "by origin: nobody's catalog"


async def test_a_call_that_waits_for_a_first_start_is_sent_no_such_null_either(opened: Open) -> None:
    servers = ScriptedServers(a=Script([SEARCH], connect_delay=3))
    async with opened(servers, profile="openai-strict") as host:
        assert received(await host.call("mcp__a__search", SENT)) == MEANT
        assert trio.current_time() >= 3


async def test_what_counts_is_what_the_server_advertises_when_it_is_called(opened: Open) -> None:
    servers = ScriptedServers(a=Script([SEARCH]))
    async with opened(servers, Config(servers.entries()), profile="openai-strict") as host:
        await host.ready(timeout=5)
        held = host.snapshot().catalog
        # In strict mode it looks the same: what may be left out there is null.
        schema = SEARCH.input_schema
        nullable = {**schema, "properties": {**schema["properties"], "limit": {"type": ["integer", "null"]}}}
        servers.scripts["a"].tools = (ToolDef("search", description="Searches.", input_schema=nullable),)
        servers.live["a"].announce()
        await trio.sleep(1)
        assert received(await host.call("mcp__a__search", SENT, catalog=held)) == {**MEANT, "limit": None}
