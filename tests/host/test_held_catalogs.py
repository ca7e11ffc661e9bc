"""A turn holds a catalog: a call through it reaches the tool that the model was shown, or none."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import Any

import pytest
from playbill.actors import Config, Host, ServerEntry, ToolNotOffered, UnknownTool
from playbill.actors.model.status import ToolDef
from playbill.actors.testing import Script, ScriptedServers

from .conftest import Open

BY_ID = {"type": "object", "properties": {"id": {"type": "integer"}}, "required": ["id"]}
BY_PATH = {"type": "object", "properties": {"path": {"type": "string"}}, "required": ["path"]}
ODD = {"type": "object", "properties": {"id": {"$ref": "#/nowhere"}}}

OLD = ServerEntry("a", command="old")
OTHER = ServerEntry("a", command="another")

Handler = Callable[[str, Mapping[str, Any]], Awaitable[Any]]


def program(heard: list[str], name: str, *tools: ToolDef, delay: float = 0) -> Script:
    async def handle(bare: str, arguments: Mapping[str, Any]) -> Any:
        heard.append(name)
        return name

    return Script(tools, handler=handle, connect_delay=delay)


def delete(schema: dict[str, Any], description: str = "deletes") -> ToolDef:
    return ToolDef("delete", description=description, input_schema=schema)


async def removed_and_added(host: Host) -> None:
    await host.apply(Config())
    await host.apply(Config((OTHER,)))


async def replaced(host: Host) -> None:
    await host.apply(Config((OTHER,)))


CHANGES = pytest.mark.parametrize("change", [removed_and_added, replaced])


@CHANGES
@pytest.mark.parametrize("of_view", [False, True])
@pytest.mark.parametrize("started", [False, True])
async def test_another_programs_tool_of_the_same_name_is_not_called_for_the_one_that_was_shown(
    opened: Open, change: Callable[[Host], Awaitable[None]], of_view: bool, started: bool
) -> None:
    heard: list[str] = []
    servers = ScriptedServers(a=program(heard, "old", delete(BY_ID)))
    async with opened(servers, Config((OLD,))) as host:
        await host.ready(timeout=5)
        held = (host.view(profile="openai-strict") if of_view else host).snapshot().catalog
        servers.scripts["a"] = program(heard, "new", delete(BY_PATH), delay=2)
        await change(host)
        if started:
            await host.ready(timeout=30)
        with pytest.raises(ToolNotOffered, match="server 'a' lists it with another input schema now"):
            await host.call("mcp__a__delete", {"id": 1}, catalog=held)
        assert heard == []
        assert await host.call("mcp__a__delete", {"path": "x"}) == "new"


@CHANGES
@pytest.mark.parametrize("schema", [BY_ID, dict(reversed(BY_ID.items()))])
async def test_the_same_tool_is_called_whatever_runs_it_and_however_it_is_described(
    opened: Open, change: Callable[[Host], Awaitable[None]], schema: dict[str, Any]
) -> None:
    heard: list[str] = []
    servers = ScriptedServers(a=program(heard, "old", delete(BY_ID)))
    async with opened(servers, Config((OLD,))) as host:
        await host.ready(timeout=5)
        held, strict = host.snapshot().catalog, host.view(profile="openai-strict").snapshot().catalog
        servers.scripts["a"] = program(heard, "new", delete(schema, "deletes; 3 are left"), delay=2)
        await change(host)
        assert await host.call("mcp__a__delete", {"id": 1}, catalog=held) == "new"
        assert await host.call("mcp__a__delete", {"id": 1}, catalog=strict) == "new"
        await host.restart("a")
        assert await host.call("mcp__a__delete", {"id": 1}, catalog=held) == "new"


async def test_a_tool_withdrawn_while_its_server_starts_is_not_offered_to_who_was_shown_it(opened: Open) -> None:
    servers = ScriptedServers(a=["gone", "stay"])
    async with opened(servers, Config((OLD,))) as host:
        await host.ready(timeout=5)
        held = host.snapshot().catalog
        await host.apply(Config())
        servers.scripts["a"] = Script(("stay",), connect_delay=2)
        await host.apply(Config((OTHER,)))
        with pytest.raises(ToolNotOffered, match="server 'a' does not advertise it any more") as refused:
            await host.call("mcp__a__gone", catalog=held)
        assert refused.value.name == "mcp__a__gone"
        assert await host.call("mcp__a__stay", catalog=held)
        with pytest.raises(UnknownTool):
            await host.call("mcp__a__gone")


async def test_a_tool_that_became_unfit_while_its_server_starts_says_why(opened: Open) -> None:
    servers = ScriptedServers(a=Script((delete(BY_ID),)))
    async with opened(servers, Config((OLD,))) as host:
        await host.ready(timeout=5)
        held = host.snapshot().catalog
        await host.apply(Config())
        servers.scripts["a"] = Script((delete(ODD),), connect_delay=2)
        await host.apply(Config((OTHER,)))
        with pytest.raises(ToolNotOffered, match="nowhere"):
            await host.call("mcp__a__delete", catalog=held)
